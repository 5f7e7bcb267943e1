//! Publishes how much the driver can still provide, for each class and place (sidecars 2.11).
//!
//! Owns: the CSIStorageCapacity objects that carry this driver's and this provisioner's labels.
//!
//! Writes: those. Only reads: classes, nodes and what drivers say on them. Volumes only tell when to ask again.
//!
//! Laws: exactly one object per class and place there is, none for others; nothing is written that says nothing new. A
//! driver that cannot be asked leaves what it said before.
//!
//! Speaks `storage.k8s.io/v1` only, which came with Kubernetes 1.24; the older version of these objects went with 1.27.

mod action;
mod decide;
mod index;
mod memory;
mod owner;
mod reason;
mod tally;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{CSIStorageCapacity, Kind, ObjectKey, ObjectRef, StorageClass};
use control::{BackOff, Cache, Decision, Narrate, Outcome, Route, Rules, Timestamp};

pub use action::CapacityAction;
pub(crate) use index::labels;
pub use memory::CapacityMemory;
#[cfg(test)]
pub(crate) use memory::Said;
pub use owner::{Owned, OwnerStep, owner};
pub use reason::CapacityReason;
pub use tally::{CapacityTally, tally};

use crate::{Local, Segments};

/// The rules that publish what the driver has left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityKey {
    /// What there is for a class in a place.
    Place { class: String, segments: Segments },
    /// An object with our labels.
    Object(ObjectKey),
}

impl fmt::Display for CapacityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityKey::Place { class, segments } => write!(f, "capacity of class {class} in {segments:?}"),
            CapacityKey::Object(key) => write!(f, "capacity object {key}"),
        }
    }
}

/// Everything one decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time and looked at once")]
pub enum CapacityView {
    /// Nothing is published about it.
    Unwanted,
    /// This is to be published.
    Wanted {
        class: Arc<StorageClass>,
        segments: Segments,
        /// What is published.
        published: Option<Arc<CSIStorageCapacity>>,
        local: Local,
    },
    /// An object that says what is to be said.
    InPlace,
    /// An object with our labels that says nothing anybody wants to know.
    Stray(Arc<CSIStorageCapacity>),
}

impl Rules for Capacity {
    const NAME: &'static str = "capacity";
    type Key = CapacityKey;
    type Local = Local;
    type View = CapacityView;
    type Action = CapacityAction;
    type Reason = CapacityReason;
    type Memory = CapacityMemory;

    const ROUTES: &'static [Route<Self>] = index::ROUTES;

    fn keys(cache: &Cache, local: &Local) -> Vec<CapacityKey> {
        index::keys(cache, local)
    }

    fn view(key: &CapacityKey, cache: &Cache, local: &Local) -> CapacityView {
        index::view(key, cache, local)
    }

    fn decide(
        now: Timestamp,
        view: &CapacityView,
        memory: &CapacityMemory,
    ) -> Decision<CapacityAction, CapacityReason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: CapacityMemory, did: &CapacityAction, got: &Outcome) -> CapacityMemory {
        memory.after(now, did, got)
    }

    fn learn(_local: &mut Local, _did: &CapacityAction, _got: &Outcome, _cache: &Cache) -> Vec<CapacityKey> {
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        local.settings.pauses
    }

    fn object(key: &CapacityKey) -> ObjectRef {
        match key {
            CapacityKey::Place { class, .. } => ObjectRef::cluster(Kind::StorageClass, class.as_str()),
            CapacityKey::Object(key) => ObjectRef { kind: Kind::CSIStorageCapacity, key: key.clone() },
        }
    }
}

impl Narrate for Capacity {}
