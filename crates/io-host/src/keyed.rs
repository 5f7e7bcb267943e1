//! One holder at a time for each key, so that work on different keys goes on side by side.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which keys are held.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    held: Mutex<BTreeSet<String>>,
    freed: Condvar,
}

/// The right to work on one key, until dropped.
pub(crate) struct Held<'a> {
    of: &'a Keyed,
    key: String,
}

impl Keyed {
    /// Waits until nobody else holds the key.
    pub(crate) fn hold(&self, key: &str) -> Held<'_> {
        let mut held = self.lock();
        while held.contains(key) {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.insert(key.to_owned());
        Held { of: self, key: key.to_owned() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.lock().remove(&self.key);
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_at_a_time_for_a_key_and_others_go_on() {
        let (keyed, inside) = (Keyed::default(), AtomicU32::new(0));
        let _other = keyed.hold("other");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _held = keyed.hold("target");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }
}
