use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use api::Kind;

/// How many requests were made, by verb, kind and subresource.
#[derive(Debug, Default)]
pub struct RequestCounts {
    made: Mutex<BTreeMap<(&'static str, Kind, &'static str), u64>>,
}

impl RequestCounts {
    pub(crate) fn add(&self, verb: &'static str, kind: Kind, subresource: &'static str) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner).entry((verb, kind, subresource)).or_default() += 1;
    }

    /// Every request made so far, by verb, kind and subresource.
    pub fn all(&self) -> Vec<((&'static str, Kind, &'static str), u64)> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(key, count)| (*key, *count)).collect()
    }
}
