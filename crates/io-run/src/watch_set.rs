//! What the controllers of a process watch, all together.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use io_kube::Scope;

/// The kinds that are watched, each within the smallest scope that holds what every controller needs of it.
#[derive(Debug, Default)]
pub(crate) struct WatchSet {
    needed: BTreeMap<Kind, Scope>,
    listed: BTreeSet<Kind>,
}

impl WatchSet {
    /// A controller needs the objects of a kind within a scope. Answers with the scope to watch from now on if that
    /// changes.
    pub fn need(&mut self, kind: Kind, scope: Scope) -> Option<Scope> {
        let wider = match self.needed.get(&kind) {
            None => scope,
            Some(held) => union(held, &scope),
        };
        if self.needed.get(&kind) == Some(&wider) {
            return None;
        }
        self.listed.remove(&kind);
        self.needed.insert(kind, wider.clone());
        Some(wider)
    }

    /// Whether somebody needs a kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.needed.contains_key(&kind)
    }

    /// The watch of a kind has listed it.
    pub fn listed(&mut self, kind: Kind) {
        self.listed.insert(kind);
    }

    /// Whether all objects of a kind are watched, and have been listed.
    pub fn is_whole(&self, kind: Kind) -> bool {
        self.listed.contains(&kind) && self.needed.get(&kind) == Some(&Scope::default())
    }

    /// Whether all of these kinds have been listed within their present scopes.
    pub fn all_listed(&self, kinds: &BTreeSet<Kind>) -> bool {
        kinds.is_subset(&self.listed)
    }
}

/// The smallest scope that holds both: what they do not agree on does not limit it.
fn union(a: &Scope, b: &Scope) -> Scope {
    let same = |a: &String, b: &String| if a == b { a.clone() } else { String::new() };
    let labels = a.labels.iter().filter(|(key, value)| b.labels.get(*key) == Some(value));
    Scope {
        namespace: same(&a.namespace, &b.namespace),
        name: same(&a.name, &b.name),
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(namespace: &str, name: &str) -> Scope {
        Scope { namespace: namespace.into(), name: name.into(), ..Scope::default() }
    }

    #[test]
    fn a_scope_grows_with_what_is_needed_and_never_shrinks() {
        let mut set = WatchSet::default();
        assert_eq!(set.need(Kind::Lease, named("n", "a")), Some(named("n", "a")));
        assert_eq!(set.need(Kind::Lease, named("n", "a")), None);
        assert_eq!(set.need(Kind::Lease, named("n", "b")), Some(named("n", "")));
        assert_eq!(set.need(Kind::Lease, Scope::default()), Some(Scope::default()));
        assert_eq!(set.need(Kind::Lease, named("n", "a")), None, "all of them hold this one");
    }

    // Reliability 35: a controller that needs more than was listed waits for the next list.
    #[test]
    fn what_was_listed_within_a_smaller_scope_is_not_listed_within_a_larger_one() {
        let (mut set, leases) = (WatchSet::default(), BTreeSet::from([Kind::Lease]));
        set.need(Kind::Lease, named("n", "a"));
        assert!(!set.all_listed(&leases));
        set.listed(Kind::Lease);
        assert!(set.all_listed(&leases));
        assert!(!set.is_whole(Kind::Lease), "others may exist");
        set.need(Kind::Lease, named("n", "b"));
        assert!(!set.all_listed(&leases));
        set.need(Kind::Lease, Scope::default());
        assert!(!set.is_whole(Kind::Lease));
        set.listed(Kind::Lease);
        assert!(set.is_whole(Kind::Lease));
    }
}
