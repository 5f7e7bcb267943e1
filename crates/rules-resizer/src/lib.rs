//! Growing and modifying the volumes of one driver.
//!
//! A user asks for a larger size, or for another class of attributes, in the claim. This controller has the driver do it,
//! hands over to the node where the node has a part in it, and says in the claim's status how far it has come.
//!
//! Owns: in claims `status.capacity` of a resize the node has no part in, `allocatedResources`,
//! `allocatedResourceStatuses` until it is the node's turn, `modifyVolumeStatus`, `currentVolumeAttributesClassName`, the
//! conditions about both, and the annotation that nothing is left for the node; in volumes the capacity, the attributes
//! class and the size from before a resize; and the calls ControllerExpandVolume and ControllerModifyVolume.
//! Writes: only those.
//! Only reads: attributes classes, pods (whether one uses a claim), secrets (just before a call, never kept).
//!
//! Laws (the numbers are those of the reliability reference, each has a test):
//! - a volume's capacity never shrinks, and is written before the claim's (55);
//! - the claim's capacity rises only when nothing is left to do for the node (56);
//! - the size under way is in the claim before the driver hears of it (57). It is lowered only after the driver refused it
//!   and no earlier call for it can have taken effect, or called it infeasible (58);
//! - the claim and the volume name the new class only after the driver did it, and what is under way is in the claim before
//!   the driver hears of it (60); what may have happened is repeated before anything else is tried (61);
//! - one call per volume at a time (68); nothing is written that is written already (109).
//!
//! Every step is decided from the objects, so a new incarnation goes on where the last one stopped: at worst it asks
//! the driver once more for what it did already.
//!
//! A volume of an in-tree plugin that the driver has taken over grows like any other, if its claim says so; it is translated
//! each time it is looked at, and only its capacity is written. A plugin that still serves is called like a driver,
//! under its own name, and claims name it (S4-20, S4-40).
//!
//! Does not know: the node's part, what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod memory;
mod news;
mod patch;
mod reason;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

pub use action::{Action, Begin, GrowthReport, ModifyReport, Work};
pub use memory::{GrowFailure, GrowMemory, Grown, Memory, ModifyFailure, ModifyMemory};
pub use reason::Reason;
pub use view::{
    BeforeSize, Bound, Class, DriverVolume, Expansion, Grow, Key, Modify, ModifyState, ResizeProgress, Sizes, Told,
    View,
};

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectRef};
use control::{BackOff, Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};
use csi::Capabilities;
use rules_translate::Migration;

/// The resizer of one driver.
pub struct Resizer;

/// The driver this resizer works for, or the in-tree plugin itself, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    pub driver: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The cluster has attributes classes.
    pub attributes_classes: bool,
    /// The size under way is kept in the claim, so that a resize that failed can be recovered from.
    pub recovers: bool,
    /// Nodes find on the volume the size its filesystem had before.
    pub tells_size_before: bool,
    /// After a refusal because a volume is in use, pods are looked at before the next attempt.
    pub asks_pods: bool,
    /// The driver is told the names of claim and volume when attributes change.
    pub extra_metadata: bool,
    /// How long what the driver calls impossible is left alone.
    pub slow_millis: u64,
    /// How long pauses after failures are.
    pub pauses: BackOff,
    /// How far the migration of each in-tree plugin has come.
    pub migration: Migration,
}

impl Rules for Resizer {
    const NAME: &'static str = "resizer";

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
        build::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory::remember(now, memory, did, got)
    }

    fn learn(_local: &mut Local, _did: &Action, _got: &Outcome, _cache: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        local.pauses
    }

    fn object(key: &Key) -> ObjectRef {
        ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.0.clone() }
    }
}

impl Narrate for Resizer {
    fn rest_event(_key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        news::rest_event(why)
    }
}
