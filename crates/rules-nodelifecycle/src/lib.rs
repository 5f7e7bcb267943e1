//! Which nodes live, and what becomes of the pods of those that do not: the node lifecycle controller, with the taint
//! manager and the pod garbage collector.
//!
//! A key is a node or a pod. A node shows that it lives by renewing its Lease; one that does not is said to be Unknown
//! and gets taints, which go again when it is heard of. Pods leave a node whose taints they do not tolerate, or no
//! longer. A pod object is removed without its node's word only when the node is shown to be dead or gone.
//!
//! Owns: the taints `node.kubernetes.io/unreachable` and `node.kubernetes.io/not-ready`.
//! Writes: those; conditions of a node that does not speak for itself (to Unknown); deletions of pods.
//! Only reads: Leases in `kube-node-lease`, pods and their tolerations, the taint `node.kubernetes.io/out-of-service`.
//!
//! Laws:
//! - a node is called Unknown only after its Lease, and what it says itself, did not change for as long as the Lease
//!   counts, by our own clock, and a read past the cache found the same Lease;
//! - a pod is removed by force only if its node is out of service, is not ready and its Lease shows that it is dead
//!   ([`control::Pulse`]), or if a read past the cache shows that the node is gone, and it has no living Lease;
//! - all else that ends a pod is an ordinary deletion, which waits for the node's word; a pod that has ended has it in
//!   its phase, so that its object is gone at once;
//! - nobody is evicted while no other node is ready: then it may be us who hear nothing.
//!
//! Does not know: volumes and attachments, where a pod goes next, who makes its successor, what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod memory;
mod node;
mod pod;
mod reason;
mod stay;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

pub use action::Action;
pub use memory::{Memory, Noticed, Vanished};
pub use reason::Reason;
pub use view::{Key, NodeLife, PodNode, PodStay, Readiness, View};

use alloc::vec::Vec;

use api::{Kind, ObjectRef};
use control::{Cache, Decision, Narrate, Outcome, Route, Rules, Timestamp};

/// The node lifecycle controller.
pub struct NodeLifecycle;

impl Rules for NodeLifecycle {
    const NAME: &'static str = "nodelifecycle";

    type Key = Key;
    type Local = ();
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, _local: &()) -> Vec<Key> {
        wakes::keys(cache)
    }

    fn view(key: &Key, cache: &Cache, _local: &()) -> View {
        build::view(key, cache)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    fn learn(_local: &mut (), _did: &Action, _got: &Outcome, _cache: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::Node(name) => ObjectRef::cluster(Kind::Node, name.clone()),
            Key::Pod(key) => ObjectRef { kind: Kind::Pod, key: key.clone() },
        }
    }
}

impl Narrate for NodeLifecycle {}
