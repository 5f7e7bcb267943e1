use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use api::Kind;

/// Requests made so far, by verb, kind and subresource; and what was learnt from their answers.
#[derive(Debug, Default)]
pub struct Counts {
    made: Mutex<BTreeMap<(&'static str, Kind, &'static str), u64>>,
    binary_turned_down: AtomicBool,
}

impl Counts {
    pub(crate) fn add(&self, verb: &'static str, kind: Kind, subresource: &'static str) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner).entry((verb, kind, subresource)).or_default() += 1;
    }

    /// The server has turned down no object in the binary form.
    pub(crate) fn binary_is_taken(&self) -> bool {
        !self.binary_turned_down.load(Ordering::Relaxed)
    }

    pub(crate) fn binary_turned_down(&self) {
        self.binary_turned_down.store(true, Ordering::Relaxed);
    }

    /// Every count.
    pub fn all(&self) -> Vec<((&'static str, Kind, &'static str), u64)> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(key, count)| (*key, *count)).collect()
    }
}
