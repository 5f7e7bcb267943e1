//! One volume attached to a node that is taken out of the cluster, with nobody on it any more.
//!
//! The attach/detach controller and the attacher alone: what was attached must be detached although the node and all it
//! said about itself are gone.

use std::sync::Arc;

use api::{Kind, ObjectRef, Precondition, Write};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::attach;

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "node-lost",
    about: "attachdetach and attacher; a node with an attached volume is taken out of the cluster",
    start: || start::<Attacher>(Seat::fixed(|_, _| attach::attacher())),
    user,
    rest,
    waives: &[],
};

/// The world with other rules in the place of the attacher, from the moment the volume is attached.
pub fn start<A: Actor>(seat: Seat<A>) -> World {
    let mut cluster = Cluster::new();
    attach::furnish(&mut cluster, &attach::NODES[..1]);
    let truth = Arc::new(Truth::default());
    let detach = Seat::<AttachDetach>::fixed(|_, _| Default::default());
    let members = vec![
        Instance::start("attachdetach", "", detach, &cluster, &truth),
        Instance::start("attacher", "", seat, &cluster, &truth),
    ];
    let world = World::of(cluster, truth, members);
    attach::reported(world)
}

/// The user takes the node out of the cluster, with what is registered on it and what ran there, at once.
pub fn user(world: &World) -> Vec<UserMove> {
    let mut writes = Vec::new();
    for kind in [Kind::Pod, Kind::CSINode, Kind::Node] {
        for held in world.cluster.all(kind) {
            let meta = held.object.meta();
            let target = held.object.reference();
            writes.push(Write::Delete { target, only_if: Precondition::same(meta), grace_seconds: Some(0) });
        }
    }
    let there = world.cluster.read(&ObjectRef::cluster(Kind::Node, attach::NODES[0])).is_some();
    let pods = world.cluster.pods().any(|pod| pod.metadata.namespace == NAMESPACE);
    let mut moves = Vec::new();
    if there {
        moves.push(UserMove { label: "take the node out".into(), writes: writes.clone() });
    }
    if pods {
        writes.truncate(1);
        moves.push(UserMove { label: "delete the pod by force".into(), writes });
    }
    moves
}

/// A node that is gone has nothing attached; one that is there has what its pod needs.
pub fn rest(world: &World) -> Option<Violation> {
    let wanted = world.cluster.pods().next().is_some() && world.cluster.nodes().next().is_some();
    let attachments: Vec<_> = world.cluster.attachments().map(|one| one.metadata.name.clone()).collect();
    let attached: Vec<_> = world.truth.attached.keys().cloned().collect();
    let as_asked = attachments.len() == usize::from(wanted) && attached.len() == usize::from(wanted);
    (!as_asked).then_some(Violation::AttachmentsLeft { attachments, attached })
}
