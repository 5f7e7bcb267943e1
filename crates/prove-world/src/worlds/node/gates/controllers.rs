//! One volume of an in-tree plugin, a node that leaves the plugin to its driver, and controllers whose gate changes.
//!
//! The world of `gates`, but for what is switched: attach/detach controller and attacher are started again with
//! the plugin's gate off, and on again, at any moment, and pods come to the first node and go. With the gate off and
//! the plugin on the node's list the seed leaves open what happens (S4-46), beyond an error that the user is told
//! (S4-32). Here nothing is newly attached by then, what was attached before may stay with its pod and goes with it,
//! and once the gate is on all is as if it had never been off.

use rules_attachdetach::AttachDetach;
use serde_json::json;

use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Seat};
use crate::switched;
use crate::world::{UserMove, World};
use crate::worlds::attach::{self, NODES};
use crate::worlds::node::gates::{self, DISK, PLUGIN, by_driver, by_plugin};
use crate::worlds::put;

/// A pod is on the node, and the controllers begin with the gate on.
pub const SCENARIO: Scenario = Scenario {
    name: "controllers-gate",
    about: "attachdetach and attacher with a volume of an in-tree plugin, started again with its gate off and on, \
            while pods come to a node that leaves the plugin to its driver, and go",
    start: || start::<AttachDetach>(gates::gate()),
    user,
    rest,
    waives: &[],
};

/// The same with watches that fall behind and actions that are held up, over a gate that is switched twice.
pub const LATE: Scenario = Scenario {
    name: "controllers-gate-late",
    about: "the same with nothing that fails and news and actions that are late",
    ..SCENARIO
};

/// The world with other rules in the place of the attach/detach controller.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    with_switch(gates::start(seat))
}

/// A world of `gates` in which the controllers can be started again.
pub fn with_switch(mut world: World) -> World {
    put(&mut world.cluster, switched::object(), json!({ "metadata": {} }));
    world
}

/// A pod comes to the first node or goes, or the controllers' gate is switched.
fn user(world: &World) -> Vec<UserMove> {
    let mut moves = match gates::is_live(world) {
        true => attach::user(world).into_iter().skip(1).collect(),
        false => vec![attach::creation(world, NODES[0])],
    };
    let on = world.is_switched_off(PLUGIN);
    let label = format!("start the controllers with {} {}", PLUGIN.gate(), if on { "on" } else { "off" });
    moves.push(UserMove { label, writes: vec![switched::switch(PLUGIN, on)] });
    moves
}

/// With the gate on, a live pod is served as ever. With it off, nothing is left of pods that have gone, and the live
/// one is told of no attachment that there is not.
fn rest(world: &World) -> Option<Violation> {
    if !world.is_switched_off(PLUGIN) {
        return gates::rest(world);
    }
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    let wanted = world.cluster.pods().next().map(|pod| pod.spec.node_name.clone());
    let attached = world.truth.attached.get(DISK);
    for node in world.cluster.nodes() {
        let name = &node.metadata.name;
        let here = wanted.as_ref() == Some(name);
        let is_attached = attached.is_some_and(|nodes| nodes.contains(name));
        let uses = [node.reports_in_use(&by_driver()), node.reports_in_use(&by_plugin())];
        if uses != [here, false] || node.reports_attached(&by_driver()) && !(here && is_attached) {
            return Some(Violation::NodeStatusUntrue { node: name.clone() });
        }
    }
    let nodes: Vec<_> = world.cluster.attachments().map(|one| one.spec.node_name.clone()).collect();
    let held = attached.into_iter().flatten().all(|node| nodes.contains(node));
    if !held || nodes.iter().any(|node| wanted.as_ref() != Some(node)) {
        return Some(Violation::AttachmentsTo { nodes });
    }
    None
}
