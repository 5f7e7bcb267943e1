//! Creates or deletes one volume of one driver.
//!
//! Owns: the intent on a claim (a finalizer, and what the class said), the PersistentVolume made for a claim, the
//! provisioner's finalizer on volumes, and the driver's CreateVolume and DeleteVolume.
//!
//! Writes: claims (intent only), volumes (create, delete, finalizer).
//!
//! Only reads: classes and attachments.
//!
//! Laws:
//! - CreateVolume begins only after the intent for that claim's uid is durable, and known by this life to be so
//!   (reliability 6). An intent found, not made, is first adopted: one write that makes every earlier write fail;
//! - the intent goes only when a PersistentVolume accounts for the volume, when DeleteVolume is confirmed, or when the
//!   driver itself said that there is no volume (reliability 1, 7);
//! - a repeated CreateVolume carries the same arguments; a class replaced meanwhile does not change them (14, 69);
//! - DeleteVolume begins only after a fresh read that still condemns the volume (8, 105);
//! - nothing done for one uid touches a namesake (13). Memory names the uid it is about;
//! - forgetting everything at any moment costs repeated calls and nothing else.
//!
//! Does not know: binding, pods, nodes. Not supported, and said so in the reason: secrets, data sources, selectors.
//! Topology is not sent.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod act;
mod capacity;
mod decide;
mod decide_in_memory;
mod decide_volume;
mod find;
mod index;
mod intent;
mod memory;
mod pv;
mod secrets;
mod settings;
mod source;
mod sources;
mod step;
mod terms;
mod topology;
mod view;

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Change, Decision, Outcome, Rules, Tick};

pub use act::Action;
pub use capacity::{Capacity, CapacityAction, CapacityKey, CapacityMemory, CapacityView, Owned, OwnerStep, owner};
pub use decide_volume::is_condemned;
pub use memory::{Fresh, Job, Made, Memory, Room, Stage};
pub use secrets::SecretRefs;
pub use settings::{Abilities, CapacitySettings, Intent, Local, OwnNode, Settings};
pub use source::{ContentSource, Hold, SourceKind};
pub use sources::{LetGo, SourceKey, SourceView, Sources};
pub use terms::{Obstacle, Request, Terms, Unfit};
pub use topology::{Requirement, Segments};
pub use view::{ClaimView, Course, Offer, Slot, View, VolumeView, Work};

/// The rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provisioner;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A claim that may need a volume.
    Claim(ObjectKey),
    /// A volume that may have to go, by name.
    Volume(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Claim(key) => write!(f, "claim {key}"),
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
    type Memory = Memory;

    fn watches() -> &'static [Kind] {
        &[
            Kind::PersistentVolumeClaim,
            Kind::PersistentVolume,
            Kind::StorageClass,
            Kind::VolumeAttachment,
            Kind::CSINode,
            Kind::Node,
            Kind::VolumeAttributesClass,
            Kind::VolumeSnapshot,
            Kind::VolumeSnapshotContent,
            Kind::ReferenceGrant,
        ]
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        index::wakes(change, cache, local)
    }

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        index::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Claim(key) => View::Claim(find::claim(key, cache, local)),
            Key::Volume(name) => View::Volume(find::volume(name, cache, local)),
        }
    }

    fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Action> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Tick, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    fn learn(_local: &mut Local, _did: &Action, _got: &Outcome) {}

    fn about(key: &Key) -> ObjectRef {
        match key {
            Key::Claim(key) => ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() },
            Key::Volume(name) => ObjectRef::cluster(Kind::PersistentVolume, name.as_str()),
        }
    }
}
