//! The locks of calls under way. A volume has one mutating call at a time; calls share what they only read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csi::Lock;
use tokio::sync::Notify;

/// How calls under way hold a lock.
enum Hold {
    Alone,
    Shared(usize),
}

/// The table of all locks that are held.
#[derive(Default)]
pub struct CallLocks {
    held: Mutex<BTreeMap<String, Hold>>,
    freed: Notify,
}

/// The locks of one call. They are released when it is dropped.
pub struct Held<'a> {
    locks: &'a CallLocks,
    keys: Vec<String>,
}

impl CallLocks {
    /// Takes all of the locks, or none if another call holds one of them.
    pub fn take(&self, wanted: &[Lock]) -> Option<Held<'_>> {
        // The same thing may be named twice in one call; held alone once is enough.
        let mut merged: BTreeMap<String, bool> = BTreeMap::new();
        for want in wanted {
            *merged.entry(want.key()).or_insert(true) &= want.shared;
        }
        let mut held = self.lock();
        let free = |(key, shared): (&String, &bool)| match held.get(key) {
            None => true,
            Some(Hold::Shared(_)) => *shared,
            Some(Hold::Alone) => false,
        };
        if !merged.iter().all(free) {
            return None;
        }
        for (key, shared) in &merged {
            match held.get_mut(key) {
                Some(Hold::Shared(count)) => *count += 1,
                Some(Hold::Alone) | None => {
                    held.insert(key.clone(), if *shared { Hold::Shared(1) } else { Hold::Alone });
                }
            }
        }
        Some(Held { locks: self, keys: merged.into_keys().collect() })
    }

    /// Waits until all of the locks are free and takes them. A waiting call holds no lock, so calls cannot deadlock.
    pub async fn wait(&self, wanted: &[Lock]) -> Held<'_> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Listening begins before looking, or what is freed in between goes unnoticed.
            freed.as_mut().enable();
            if let Some(held) = self.take(wanted) {
                return held;
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.lock();
        for key in &self.keys {
            match held.get_mut(key) {
                Some(Hold::Shared(count)) if *count > 1 => *count -= 1,
                Some(Hold::Shared(_) | Hold::Alone) | None => {
                    held.remove(key);
                }
            }
        }
        drop(held);
        self.locks.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi::Thing;

    fn alone(id: &str) -> Lock {
        Lock::alone(Thing::Volume, id)
    }

    fn shared(id: &str) -> Lock {
        Lock::shared(Thing::Volume, id)
    }

    #[test]
    fn what_is_held_alone_is_held_once_and_what_is_shared_often() {
        let locks = CallLocks::default();
        let first = locks.take(&[alone("a"), shared("s")]).unwrap();
        assert!(locks.take(&[alone("a")]).is_none());
        assert!(locks.take(&[shared("a")]).is_none());
        assert!(locks.take(&[alone("s")]).is_none());
        // All or nothing: `b` is not taken when `a` is not free.
        assert!(locks.take(&[alone("b"), alone("a")]).is_none());
        let second = locks.take(&[alone("b"), shared("s")]).unwrap();
        drop(first);
        assert!(locks.take(&[alone("s")]).is_none());
        drop(second);
        drop(locks.take(&[alone("a"), alone("b"), alone("s")]).unwrap());
        assert!(locks.lock().is_empty());
    }

    #[test]
    fn a_thing_named_twice_in_one_call_is_held_in_the_stronger_way() {
        let locks = CallLocks::default();
        let _both = locks.take(&[shared("a"), alone("a")]).unwrap();
        assert!(locks.take(&[shared("a")]).is_none());
    }

    #[tokio::test]
    async fn who_waits_gets_it_when_it_is_freed() {
        let locks = std::sync::Arc::new(CallLocks::default());
        let held = locks.take(&[alone("a")]).unwrap();
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { drop(locks.wait(&[alone("a")]).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
    }
}
