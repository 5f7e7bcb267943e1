//! Picks a node for a pod.
//!
//! Owns: which node a pod without one gets, the selected-node annotation by which a claim of delayed binding learns
//! where its volume is needed, and which free volume such a claim gets instead.
//!
//! Writes: `pods/binding`, that one annotation, the reference of a free volume to a claim, and the condition
//! `PodScheduled` of a pod that has to wait.
//!
//! Only reads: claims, classes, nodes, other pods; what nodes have attached, what drivers say they take and have left.
//!
//! Laws:
//! - a pod is placed only when every claim it names is bound, is not being deleted, and its volume can be reached from
//!   the node (reliability 11);
//! - a claim's selected node is changed only while nothing was made for it;
//! - a claim of delayed binding is told the node of a pod that is there already, if nobody has told it one;
//! - a volume is reserved only if it belongs to nobody, suits the claim and can be reached from the chosen node;
//! - no node gets more volumes of a driver than it takes, nor pods that ask for more than it has (reliability 36);
//! - the choice depends on the objects alone: preferred node first, then most storage left, then fewest pods, then
//!   name.
//!
//! What a node must be is the table in `filters`.
//!
//! What a pod waits for is told in its condition `PodScheduled` and in an event, once it lasts.
//!
//! Does not know: pod affinity, what pods merely prefer, priorities: no pod is ended for another. A pod that names
//! another scheduler is left to it. On a cluster that has a scheduler of its own these rules are not run.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod filters;
mod memory;
mod obstacle;
mod reason;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};

pub use action::Action;
pub use memory::Memory;
pub use obstacle::NodeObstacle;
pub use reason::Reason;
pub use view::{ClaimState, Delayed, DriverRoom, Making, NodeView, PendingPod, Reach, View};

/// The rules that choose nodes for pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduler;

impl Rules for Scheduler {
    const NAME: &'static str = "scheduler";
    type Key = ObjectKey;
    type Local = ();
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, _local: &()) -> Vec<ObjectKey> {
        wakes::keys(cache)
    }

    fn view(key: &ObjectKey, cache: &Cache, _local: &()) -> View {
        build::view(key, cache)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    fn learn(_local: &mut (), _did: &Action, _got: &Outcome, _cache: &Cache) -> Vec<ObjectKey> {
        Vec::new()
    }

    fn object(key: &ObjectKey) -> ObjectRef {
        ObjectRef { kind: Kind::Pod, key: key.clone() }
    }
}

impl Narrate for Scheduler {
    fn rest_event(_key: &ObjectKey, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        // Who asks for another scheduler hears from that one.
        (!why.settled && why.code != Reason::OtherScheduler).then_some((EventType::Warning, action::FAILED))
    }

    /// A pod without a node rests only after it was given a moment, and its status says why.
    fn patience(why: &Why<Reason>) -> u64 {
        match why.code {
            Reason::NodeMissing => 2_000,
            _ => 0,
        }
    }
}
