//! Turns at objects that many keys write to.
//!
//! The volumes of a node are keys of their own and all of them write to that node, each write under the node's version.
//! Sent together, one of them succeeds and all others meet a conflict. So a key waits until the write of another key of
//! its engine to the same object is answered; the answer is in the cache by then, and the key decides on that.

use alloc::collections::{BTreeMap, BTreeSet};

use api::{ObjectRef, Patch, Write};

use crate::Effect;

/// Who writes to what, and who waits for that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turns<K: Ord> {
    at: BTreeMap<ObjectRef, Turn<K>>,
    /// What a key waits for.
    waits: BTreeMap<K, ObjectRef>,
    /// Keys whose turn has come and that have not been looked at since.
    called: BTreeMap<K, ObjectRef>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Turn<K: Ord> {
    holder: K,
    waiting: BTreeSet<K>,
}

impl<K: Ord> Default for Turns<K> {
    fn default() -> Self {
        Turns { at: BTreeMap::new(), waits: BTreeMap::new(), called: BTreeMap::new() }
    }
}

/// The object that an effect writes to under the version it was seen with.
pub(crate) fn contended(effect: &Effect) -> Option<&ObjectRef> {
    match effect {
        Effect::Write(Write::Patch { target, patch: Patch { only_if, .. }, .. }) => {
            only_if.resource_version.as_ref().map(|_| target)
        }
        _ => None,
    }
}

impl<K: Clone + Ord> Turns<K> {
    /// A key was looked at and wants to write to this, or to nothing. Whether it may; and whose turn comes instead, if
    /// the key was called and wants something else.
    pub(crate) fn ask(&mut self, key: &K, wants: Option<&ObjectRef>) -> (bool, Option<K>) {
        if let Some(at) = self.waits.remove(key)
            && let Some(turn) = self.at.get_mut(&at)
        {
            turn.waiting.remove(key);
        }
        let called = self.called.remove(key);
        let next = match called {
            Some(at) if wants != Some(&at) => self.pass_on(&at, key),
            Some(_) | None => None,
        };
        let Some(target) = wants else { return (true, next) };
        if let Some(turn) = self.at.get_mut(target) {
            if turn.holder != *key {
                turn.waiting.insert(key.clone());
                self.waits.insert(key.clone(), target.clone());
                return (false, next);
            }
        } else {
            self.at.insert(target.clone(), Turn { holder: key.clone(), waiting: BTreeSet::new() });
        }
        (true, next)
    }

    /// The key's write to this is answered. Whose turn comes.
    pub(crate) fn answered(&mut self, key: &K, target: &ObjectRef) -> Option<K> {
        self.pass_on(target, key)
    }

    fn pass_on(&mut self, target: &ObjectRef, from: &K) -> Option<K> {
        let turn = self.at.get_mut(target).filter(|turn| turn.holder == *from)?;
        let Some(next) = turn.waiting.pop_first() else {
            self.at.remove(target);
            return None;
        };
        turn.holder = next.clone();
        self.waits.remove(&next);
        self.called.insert(next.clone(), target.clone());
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Kind;

    fn node(name: &str) -> ObjectRef {
        ObjectRef::cluster(Kind::Node, name)
    }

    #[test]
    fn one_after_the_other_and_who_wants_something_else_passes_on() {
        let (mut turns, a) = (Turns::default(), node("a"));
        assert_eq!(turns.ask(&1, Some(&a)), (true, None));
        assert_eq!(turns.ask(&2, Some(&a)), (false, None));
        assert_eq!(turns.ask(&3, Some(&a)), (false, None));
        assert_eq!(turns.ask(&2, Some(&a)), (false, None), "asking again changes nothing");
        assert_eq!(turns.ask(&4, Some(&node("b"))), (true, None), "another object is another matter");
        assert_eq!(turns.answered(&1, &a), Some(2));
        assert_eq!(turns.ask(&4, Some(&a)), (false, None), "the turn is kept for who was called");
        assert_eq!(turns.ask(&2, None), (true, Some(3)));
        assert_eq!(turns.ask(&4, None), (true, None), "who wants nothing any more is not called");
        assert_eq!(turns.ask(&4, Some(&a)), (false, None));
        assert_eq!(turns.ask(&3, Some(&a)), (true, None));
        assert_eq!(turns.answered(&3, &a), Some(4));
        assert_eq!(turns.ask(&4, Some(&a)), (true, None));
        assert_eq!(turns.answered(&4, &a), None);
        assert_eq!(turns.answered(&4, &node("b")), None);
        assert_eq!(turns, Turns::default(), "nothing is left behind");
    }
}
