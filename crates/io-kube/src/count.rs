use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use api::Kind;

/// Requests made so far, by verb, kind and subresource.
#[derive(Debug, Default)]
pub struct Counts(Mutex<BTreeMap<(&'static str, Kind, &'static str), u64>>);

impl Counts {
    pub(crate) fn add(&self, verb: &'static str, kind: Kind, subresource: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((verb, kind, subresource)).or_default() += 1;
    }

    /// Every count.
    pub fn all(&self) -> Vec<((&'static str, Kind, &'static str), u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(key, count)| (*key, *count)).collect()
    }
}
