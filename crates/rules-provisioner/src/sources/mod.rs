//! Lets go of what volumes were made from, once no volume is being made from it any more.
//!
//! Owns: the removal of the two finalizers that the provisioner puts on snapshots and claims while it copies them.
//!
//! Writes: those finalizers. Only reads: claims, snapshots and the journal.
//!
//! Law: a source is let go only if no volume is being made from it (reliability 12). A snapshot waits for every claim without
//! a volume that refers to it; a claim that is being deleted only for those whose copies have begun, because no new one
//! begins. A claim being undone still refers to it. The provisioner writes to a source after it has recorded its intent and before it calls the driver, and
//! letting go fails on a source that has changed, so neither overtakes the other.
//!
//! Upstream takes the snapshot's finalizer off after the first of several copies and sweeps up the rest every five minutes.
//! Here a change of the last claim that refers to a source is what lets it go (P61, P62, P73).

mod action;
mod decide;
mod index;
mod reason;

use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Object, ObjectKey, ObjectRef};
use control::{BackOff, Cache, Decision, Narrate, Outcome, Route, Rules, Timestamp};

pub use action::RemoveSourceFinalizer;
pub use reason::SourceReason;

use crate::Local;

/// The rules that protect what volumes are made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKey {
    Snapshot(ObjectKey),
    /// A claim whose volume may be copied.
    Claim(ObjectKey),
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceKey::Snapshot(key) => write!(f, "snapshot {key}"),
            SourceKey::Claim(key) => write!(f, "claim {key}"),
        }
    }
}

/// A source, as far as holding it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceView {
    /// There is no such object.
    Gone,
    /// It is not held.
    Free,
    /// A claim whose volume may be copied again at any time: it is let go when it is being deleted.
    Standing,
    /// It is held and may have to go.
    Held {
        object: Object,
        /// The finalizer that holds it.
        finalizer: &'static str,
        /// Claims whose volumes are being made from it.
        users: Vec<ObjectKey>,
    },
}

impl Rules for Sources {
    const NAME: &'static str = "sources";
    type Key = SourceKey;
    type Local = Local;
    type View = SourceView;
    type Action = RemoveSourceFinalizer;
    type Reason = SourceReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = index::ROUTES;

    fn keys(cache: &Cache, _local: &Local) -> Vec<SourceKey> {
        index::keys(cache)
    }

    fn view(key: &SourceKey, cache: &Cache, local: &Local) -> SourceView {
        index::view(key, cache, local)
    }

    fn decide(_now: Timestamp, view: &SourceView, (): &()) -> Decision<RemoveSourceFinalizer, SourceReason> {
        decide::decide(view)
    }

    fn remember(_now: Timestamp, (): (), _did: &RemoveSourceFinalizer, _got: &Outcome) {}

    fn learn(_local: &mut Local, _did: &RemoveSourceFinalizer, _got: &Outcome, _cache: &Cache) -> Vec<SourceKey> {
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        local.settings.pauses
    }

    fn object(key: &SourceKey) -> ObjectRef {
        match key {
            SourceKey::Snapshot(key) => ObjectRef { kind: Kind::VolumeSnapshot, key: key.clone() },
            SourceKey::Claim(key) => ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() },
        }
    }
}

impl Narrate for Sources {}
