//! How far what is published is from what should be.

use alloc::collections::BTreeSet;

use control::Cache;

use super::CapacityKey;
use super::index::{is_managed, keys, segments};
use crate::Local;

/// Numbers of capacity objects (sidecars 2.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacityTally {
    /// That there should be.
    pub goal: usize,
    /// That there should be and are.
    pub current: usize,
    /// That there are and should not be.
    pub obsolete: usize,
}

/// Counts what there is against what there should be.
pub fn tally(cache: &Cache, local: &Local) -> CapacityTally {
    let mut missing: BTreeSet<CapacityKey> =
        keys(cache, local).into_iter().filter(|key| matches!(key, CapacityKey::Place { .. })).collect();
    let goal = missing.len();
    let mut obsolete = 0;
    for object in cache.capacities().filter(|object| is_managed(object, local)) {
        let class = object.storage_class_name.clone();
        // A second one that says the same is as little wanted as one about nothing.
        if !missing.remove(&CapacityKey::Place { class, segments: segments(&object).clone() }) {
            obsolete += 1;
        }
    }
    CapacityTally { goal, current: goal - missing.len(), obsolete }
}
