use alloc::collections::{BTreeMap, BTreeSet};

use crate::Timestamp;

/// When a key is due that was begun and goes on: before all others.
pub const BEGUN: Timestamp = Timestamp(0);

/// Which keys to look at, and when. One look at a key at a time; a key woken while it is being looked at is looked at
/// again afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue<K> {
    due: BTreeMap<K, Timestamp>,
    order: BTreeSet<(Timestamp, K)>,
    busy: BTreeMap<K, Option<Timestamp>>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue { due: BTreeMap::new(), order: BTreeSet::new(), busy: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Look at this key at this moment, or earlier if it is due earlier.
    pub fn wake(&mut self, key: K, at: Timestamp) {
        if let Some(again) = self.busy.get_mut(&key) {
            *again = Some(again.map_or(at, |earlier| earlier.min(at)));
            return;
        }
        if let Some(due) = self.due.get(&key) {
            if *due <= at {
                return;
            }
            self.order.remove(&(*due, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.order.insert((at, key));
    }

    /// The key that has been due longest, if any is due. It stays taken until [`Queue::done`].
    pub fn take(&mut self, now: Timestamp) -> Option<K> {
        let (due, _) = self.order.first()?;
        if *due > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        self.busy.insert(key.clone(), None);
        Some(key)
    }

    /// Takes this very key, whenever it is due: for whoever explores every order. `false` if it does not wait.
    pub fn take_key(&mut self, key: &K) -> bool {
        let Some((key, due)) = self.due.remove_entry(key) else { return false };
        self.order.remove(&(due, key.clone()));
        self.busy.insert(key, None);
        true
    }

    /// Keys waiting to be looked at, in their own order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.due.keys()
    }

    /// The look is over. If the key was woken meanwhile it is due again.
    pub fn done(&mut self, key: K) {
        if let Some(Some(at)) = self.busy.remove(&key) {
            self.wake(key, at);
        }
    }

    /// The look led to something that is done now: the key is due again, before all that is not begun. So as few as
    /// possible are half done, whatever happens.
    pub fn go_on(&mut self, key: K) {
        self.busy.remove(&key);
        self.wake(key, BEGUN);
    }

    /// When the next key is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(due, _)| *due)
    }

    /// Keys waiting to be looked at, now or later.
    pub fn waiting(&self) -> usize {
        self.order.len()
    }

    /// Keys being looked at.
    pub fn busy(&self) -> usize {
        self.busy.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reliability 106: one look per key at a time.
    #[test]
    fn a_key_woken_while_busy_comes_again_once() {
        let mut queue = Queue::default();
        queue.wake("a", Timestamp(1));
        queue.wake("a", Timestamp(1));
        assert_eq!(queue.take(Timestamp(1)), Some("a"));
        queue.wake("a", Timestamp(1));
        queue.wake("a", Timestamp(2));
        assert_eq!(queue.take(Timestamp(9)), None);
        queue.done("a");
        assert_eq!(queue.take(Timestamp(9)), Some("a"));
        queue.done("a");
        assert_eq!((queue.waiting(), queue.busy()), (0, 0));
    }

    #[test]
    fn what_was_begun_goes_on_before_anything_is_begun() {
        let mut queue = Queue::default();
        queue.wake("a", Timestamp(1));
        queue.wake("b", Timestamp(1));
        assert_eq!(queue.take(Timestamp(5)), Some("a"));
        queue.wake("a", Timestamp(9));
        queue.go_on("a");
        assert_eq!(queue.take(Timestamp(5)), Some("a"));
        queue.done("a");
        assert_eq!(queue.take(Timestamp(5)), Some("b"));
    }

    #[test]
    fn the_earliest_wake_wins_and_nothing_comes_early() {
        let mut queue = Queue::default();
        queue.wake("a", Timestamp(50));
        queue.wake("b", Timestamp(20));
        queue.wake("a", Timestamp(10));
        assert_eq!(queue.next(), Some(Timestamp(10)));
        assert_eq!(queue.take(Timestamp(9)), None);
        assert_eq!(queue.take(Timestamp(30)), Some("a"));
        assert_eq!(queue.take(Timestamp(30)), Some("b"));
    }
}
