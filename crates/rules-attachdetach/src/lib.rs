//! Which attachments should exist: the attach/detach controller.
//!
//! A key is one volume on one node. While a pod on the node uses the volume, a VolumeAttachment exists, and once the
//! attacher says it is attached the node's status reports it. When no pod uses it any more the report is taken back,
//! and only then, on proof that the node does not use the volume, the attachment is deleted.
//!
//! Owns: VolumeAttachment objects (creation, deletion, the adoption mark) and `status.volumesAttached` of nodes.
//! Writes: those, and one annotation on nodes that serves as a fence.
//! Only reads: pods, claims, volumes, classes, drivers, CSINodes, Leases and taints of nodes, and
//! `status.volumesInUse` of nodes, but for that of a dead one.
//!
//! Laws (the numbers are those of the reliability reference, each has a test):
//! - an attachment is deleted only after a write of this controller to the node was answered with a node that has the
//!   volume neither in `volumesAttached` nor in `volumesInUse` (26, 28), or after the node was read and is gone (37);
//! - that write takes the volume out of `volumesInUse` only where somebody allowed it, with the out-of-service taint,
//!   in the class or at the start, and the node's Lease, read past the cache, shows that the node is dead (`force`);
//! - every report carries the node's version, so that the write that gave the proof also stops every report sent
//!   before it, by this incarnation of the controller or an earlier one;
//! - a deletion carries the attachment's uid and the version it had at the proof, and an attachment is reported only
//!   when this incarnation made it or adopted it (changed its version) since the last proof: a deletion still on its
//!   way can no longer succeed;
//! - a volume for one node only gets no second attachment while any other node has one, in whatever state, or holds
//!   the volume (24, 34); waiting nodes go in the order of their names, so that two of them never block each other;
//! - time alone detaches nothing (27);
//! - a volume of an in-tree plugin is attached only where its driver serves it, and never to a node that says that it
//!   uses it by its plugin; the node is asked past the cache first;
//!   what was attached for it is detached wherever it is not wanted (S4-15, S4-32, S4-33).
//!
//! Does not know: drivers' sockets, CSI calls, how a volume is mounted, attach limits, what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod detach;
mod force;
mod inline;
mod lost;
mod memory;
mod news;
mod reason;
mod rival;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

pub use action::Action;
pub use force::{ForcePolicy, Local, millis};
pub use memory::{Memory, Proof};
pub use reason::Reason;
pub use view::{Attachment, HolderEvidence, Key, NodeFacts, Pair, Rival, Unwanted, View, Want};

use alloc::vec::Vec;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Decision, EventType, HandleOf, Narrate, Outcome, Route, Rules, Timestamp, Why};

/// The attach/detach controller.
pub struct AttachDetach;

impl Rules for AttachDetach {
    const NAME: &'static str = "attachdetach";

    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;
    const HANDLE_OF: Option<HandleOf> = Some(rules_translate::handle_of);

    fn keys(cache: &Cache, _local: &Local) -> Vec<Key> {
        wakes::keys(cache)
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

    fn object(key: &Key) -> ObjectRef {
        ObjectRef::cluster(Kind::PersistentVolume, key.volume.clone())
    }

    /// The volume, the node, and the attachment of one to the other.
    fn about(key: &Key, cache: &Cache, _local: &Local) -> Vec<ObjectRef> {
        let attachments = cache.attachments_by_volume(&key.volume);
        let here = attachments.filter(|attachment| attachment.spec.node_name == key.node);
        let here = here.map(|attachment| ObjectRef::cluster(Kind::VolumeAttachment, &*attachment.metadata.name));
        [Self::object(key), ObjectRef::cluster(Kind::Node, &*key.node)].into_iter().chain(here).collect()
    }
}

impl Narrate for AttachDetach {
    /// Users look at their pods, not at volumes. What is taken from a node is told where people look for the volume
    /// and for the node.
    fn event_targets(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectRef> {
        let pods: Vec<ObjectKey> = build::pods_of(key, cache, local);
        if !pods.is_empty() {
            return pods.into_iter().map(|key| ObjectRef { kind: Kind::Pod, key }).collect();
        }
        let volume = cache.volume(&ObjectKey::cluster(key.volume.clone()));
        let class = volume.as_ref().map_or("", |volume| volume.class());
        let node = ObjectRef::cluster(Kind::Node, key.node.clone());
        match force::policy(cache, local, class, &key.node) {
            ForcePolicy::Never(_) => alloc::vec![Self::object(key)],
            ForcePolicy::OutOfService | ForcePolicy::After(_) | ForcePolicy::Everywhere(_) => {
                alloc::vec![Self::object(key), node]
            }
        }
    }

    fn rest_event(_key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        news::rest_event(why)
    }

    fn patience(why: &Why<Reason>) -> u64 {
        news::patience(why)
    }
}
