//! Creates or deletes one volume of one driver.
//!
//! Three controllers live here. [`Provisioner`] makes volumes for claims and deletes volumes nobody wants; [`Sources`] lets
//! go of the snapshots and claims that volumes were made from; [`Capacity`] publishes what the driver can still provide.
//! Whatever the operator and the driver said at the start is in one [`Local`].
//!
//! Owns: the intent to make a volume (only `intent/` knows what it looks like), the
//! driver's journal, the PersistentVolume made for a claim, the provisioner's finalizer on volumes, its finalizers on sources, the selected node of a claim when it has to be
//! chosen again, capacity objects, and the driver's CreateVolume, DeleteVolume and GetCapacity.
//!
//! Writes: the journal, claims (an intent under [`Intent::OnClaim`], selected node, source finalizer), volumes (create,
//! delete, finalizer), snapshots (source finalizer), capacity objects.
//!
//! Only reads: classes, attributes classes, attachments, nodes and what is registered on them, snapshot contents, reference
//! grants; and, past every cache and just before a call, the secret that goes with it.
//!
//! Laws:
//! - CreateVolume begins only after the intent for that claim's uid is durable, and known by this incarnation to be so
//!   (reliability 6). An intent found, not made, is first adopted: one write after which no earlier one can take it away.
//!   A full journal delays the intent, and with it the volume, until entries have left it;
//! - the intent goes only when a PersistentVolume accounts for the volume, when DeleteVolume is confirmed, or when the
//!   driver itself said that there is no volume (reliability 1, 7);
//! - a repeated CreateVolume carries the same arguments, as they were recorded with the intent: neither a class replaced
//!   meanwhile nor a node that went changes them (14, 69). Only a list of places too long for an object is made anew;
//! - what the driver has finally refused is not repeated under terms that no longer hold: it starts over;
//! - a claim whose volume was recorded lately gets another only after a fresh read that still wants one: the news that it
//!   is bound or gone may be late (reliability 13, 105);
//! - DeleteVolume begins only after a fresh read that still condemns the volume, and, of a volume that was attached
//!   once, after a list past the cache that shows no attachment (8, 105). One list serves all that wait for it;
//! - what a volume is made from is held from before the call until no claim without a volume refers to it (12);
//! - nothing done for one uid touches a namesake (13). Keys of claims, and memory, name the uid they are about;
//! - forgetting everything at any moment costs repeated calls and nothing else. With [`Intent::InMemory`], upstream's
//!   protocol, it may also cost a volume: that is what the setting is for.
//!
//! Classes and volumes of an in-tree plugin that the driver has taken over are translated when they are looked at
//! (`build.rs`, `decide/volume.rs`), and what is made for such a class is recorded as the plugin would have done (`pv.rs`).
//!
//! Does not know: binding, pods, scheduling.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod capacity;
mod decide;
mod intent;
mod memory;
mod news;
mod pv;
mod reason;
mod secrets;
mod settings;
mod source;
mod sources;
mod tally;
mod terms;
mod topology;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef};
use control::{BackOff, Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};

pub use action::Action;
pub use capacity::{
    Capacity, CapacityAction, CapacityKey, CapacityMemory, CapacityReason, CapacityTally, CapacityView, Owned,
    OwnerStep, owner, tally,
};
pub use decide::is_condemned;
pub use intent::IntentLocation;
pub use intent::journal::JournalView;
pub use memory::{Fresh, Headroom, InFlight, Made, Memory, Stage};
pub use reason::Reason;
pub use secrets::SecretRefs;
pub use settings::{CapacitySettings, InTree, Intent, Local, OwnNode, RecentlyProvisioned, Settings};
pub use source::{ContentSource, SourceKind, SourceProtection};
pub use sources::{RemoveSourceFinalizer, SourceKey, SourceReason, SourceView, Sources};
pub use tally::{AttemptGoal, AttemptTally, EndedAttempt};
pub use terms::{Obstacle, Terms, Unfit, VolumeRequest};
pub use topology::{Requirement, Segments};
pub use view::{ClaimView, ClassTerms, Goal, NameSlot, Provision, View, VolumeView};

/// The rules that make and delete volumes of one driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provisioner;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A claim that may need a volume, or is gone while its volume was being made. Namesakes are different claims.
    Claim {
        /// Where it is, or was.
        key: ObjectKey,
        uid: String,
    },
    /// A volume that may have to go, by name.
    Volume(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Claim { key, .. } => write!(f, "claim {key}"),
            Key::Volume(name) => write!(f, "volume {name}"),
        }
    }
}

impl Rules for Provisioner {
    const NAME: &'static str = "provisioner";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        wakes::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Claim { key, uid } => View::Claim(build::claim(key, uid, cache, local)),
            Key::Volume(name) => View::Volume(build::volume(name, cache, local)),
        }
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, _cache: &Cache) -> Vec<Key> {
        if let (Action::CreatePv { claim, .. }, Outcome::Done(_)) = (did, got) {
            local.recently_provisioned.note(&claim.metadata.uid);
        }
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        local.settings.pauses
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::Claim { key, .. } => ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() },
            Key::Volume(name) => ObjectRef::cluster(Kind::PersistentVolume, name.as_str()),
        }
    }
}

impl Narrate for Provisioner {
    fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        news::rest_event(key, why)
    }
}
