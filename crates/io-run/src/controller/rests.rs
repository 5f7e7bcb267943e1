//! Which keys rest, and for how long: what lasts is told to users, what is over in a moment is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control::{EventType, Timestamp};

/// What would be told about a key that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub event_type: EventType,
    pub reason: &'static str,
    pub text: String,
}

/// The keys that rest with something to tell, and when it is due.
#[derive(Debug)]
pub(super) struct Rests<K> {
    resting: BTreeMap<Arc<K>, (Rest, Timestamp)>,
    /// Those to be told, in the order of their moments.
    due: BTreeSet<(Timestamp, Arc<K>)>,
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Rests { resting: BTreeMap::new(), due: BTreeSet::new() }
    }
}

impl<K: Ord> Rests<K> {
    /// The key rests. If it rested with these words before, its moment stays the one it was, and a moment that is past
    /// has it told again: whoever writes events counts what is said again.
    pub fn begun(&mut self, key: Arc<K>, rest: Rest, due: Timestamp) {
        let since = self.resting.get(&key).filter(|(before, _)| *before == rest).map(|(_, since)| *since);
        self.over(&key);
        let due = since.unwrap_or(due);
        self.due.insert((due, key.clone()));
        self.resting.insert(key, (rest, due));
    }

    /// The key rests no more, or has nothing to tell.
    pub fn over(&mut self, key: &Arc<K>) {
        if let Some((key, (_, due))) = self.resting.remove_entry(key) {
            self.due.remove(&(due, key));
        }
    }

    /// What has lasted until now, each once.
    pub fn lasting(&mut self, now: Timestamp) -> Vec<(Arc<K>, Rest)> {
        let mut told = Vec::new();
        while self.next().is_some_and(|due| due <= now) {
            let Some((_, key)) = self.due.pop_first() else { break };
            if let Some((rest, _)) = self.resting.get(&key) {
                told.push((key, rest.clone()));
            }
        }
        told
    }

    /// When the next one will have.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// It could not be told; if the key still rests, it is due again then.
    pub fn later(&mut self, key: &Arc<K>, due: Timestamp) {
        if let Some((key, (rest, _))) = self.resting.remove_entry(key) {
            self.due.insert((due, key.clone()));
            self.resting.insert(key, (rest, due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(text: &str) -> Rest {
        Rest { event_type: EventType::Normal, reason: "Reason", text: text.into() }
    }

    fn told(rests: &mut Rests<&'static str>, now: u64) -> Vec<String> {
        rests.lasting(Timestamp(now)).into_iter().map(|(key, rest)| format!("{key} {}", rest.text)).collect()
    }

    #[test]
    fn only_what_lasts_is_told() {
        let (mut rests, [a, b]) = (Rests::default(), ["a", "b"].map(Arc::new));
        rests.begun(a.clone(), rest("waits"), Timestamp(20));
        rests.begun(b.clone(), rest("waits"), Timestamp(10));
        assert!(told(&mut rests, 9).is_empty());
        assert_eq!(rests.next(), Some(Timestamp(10)));
        rests.over(&b);
        assert!(told(&mut rests, 19).is_empty());
        assert_eq!(told(&mut rests, 20), ["a waits"]);
        assert!(told(&mut rests, 99).is_empty(), "once is enough");
        rests.later(&a, Timestamp(110));
        rests.later(&b, Timestamp(110));
        assert_eq!((told(&mut rests, 109).len(), told(&mut rests, 110)), (0, vec!["a waits".to_string()]));
    }

    #[test]
    fn the_same_words_keep_their_moment_and_other_words_begin_anew() {
        let (mut rests, a) = (Rests::default(), Arc::new("a"));
        rests.begun(a.clone(), rest("one"), Timestamp(10));
        rests.begun(a.clone(), rest("one"), Timestamp(50));
        assert_eq!(told(&mut rests, 10), ["a one"]);
        rests.begun(a.clone(), rest("one"), Timestamp(60));
        assert_eq!(told(&mut rests, 11), ["a one"], "looked at again, it is said again, and counted elsewhere");
        rests.begun(a.clone(), rest("two"), Timestamp(70));
        assert!(told(&mut rests, 69).is_empty());
        assert_eq!(told(&mut rests, 70), ["a two"]);
        assert!(rests.due.is_empty() && rests.resting.len() == 1);
    }
}
