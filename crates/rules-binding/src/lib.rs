//! Claims and volumes: match, bind, protect, release, default class.
//!
//! Owns: who belongs to whom (`pv.spec.claimRef`, `pvc.spec.volumeName`), the phases of claims and volumes, the two
//! protection finalizers, the annotations that call a provisioner and a resizer and that say which driver has taken
//! over a plugin, the condition `Unused` of claims, the default class of a claim that names none, and the claims that
//! are made from the templates in pods. [`AttributesProtection`], a controller of its own, owns the finalizer of
//! VolumeAttributesClasses.
//!
//! Writes: claims and volumes, and the status of both. Each write carries the resource version it was decided on.
//!
//! Only reads: classes (what a claim asks for) and pods (who uses a claim, and what is made for them).
//!
//! Laws:
//! - a binding is written volume first, claim second, statuses last within each; every prefix of those writes is a
//!   reservation that the next look completes (PV-20, reliability 16);
//! - a released volume is never bound again unless a user clears its claimRef (reliability 17);
//! - a bound claim never loses its volume's name; without the volume it is Lost (reliability 19);
//! - nothing is declared gone on the word of a cache: *Released* and *Lost* follow a fresh read (reliability 105);
//! - a claim keeps its protection while a pod on a node uses it, a volume while it is bound (reliability 21);
//! - defaulting fills a class that is not set and never changes one (reliability 22).
//!
//! Does not know: drivers, provisioners at work (it only names one), nodes, attachments.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod attributes;
mod build;
mod decide;
mod ephemeral;
mod memory;
mod migration;
mod news;
mod reason;
mod tally;
mod users;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};

pub use action::{Action, ClaimUsage};
pub use attributes::{AttributesAction, AttributesProtection, AttributesReason, AttributesView};
pub use ephemeral::{TemplateClaim, TemplatePod};
pub use memory::{Looked, Memory};
pub use migration::{Handover, Local, MigrationMark};
pub use reason::Reason;
pub use tally::{EndedWait, WaitTally};
pub use view::{
    BindingState, Candidate, ClaimFacts, ClaimView, NamedVolume, Prospect, View, VolumeFacts, VolumeOwner, VolumeView,
};

/// The rules that bind claims to volumes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binding;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Claim(ObjectKey),
    /// A volume, by name.
    Volume(String),
    /// A pod that makes claims from templates.
    Pod(ObjectKey),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Claim(key) => write!(f, "claim {key}"),
            Key::Volume(name) => write!(f, "volume {name}"),
            Key::Pod(key) => write!(f, "pod {key}"),
        }
    }
}

impl Rules for Binding {
    const NAME: &'static str = "binding";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, _local: &Local) -> Vec<Key> {
        wakes::keys(cache)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Claim(key) => View::Claim(build::claim(key, cache, local)),
            Key::Volume(name) => View::Volume(build::volume(name, cache, local)),
            Key::Pod(key) => View::Pod(ephemeral::view(key, cache)),
        }
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, _memory: Memory, did: &Action, got: &Outcome) -> Memory {
        Memory::after(now, did, got)
    }

    fn learn(_local: &mut Local, _did: &Action, _got: &Outcome, _cache: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::Claim(key) => ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() },
            Key::Volume(name) => ObjectRef::cluster(Kind::PersistentVolume, name.as_str()),
            Key::Pod(key) => ObjectRef { kind: Kind::Pod, key: key.clone() },
        }
    }
}

impl Narrate for Binding {
    fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        news::rest_event(key, why)
    }
}
