//! The world of [`resize`](crate::worlds::resize) with the real agent in it: the pod that uses the claim runs on a
//! node whose machine is a model kernel, the agent and its driver grow the filesystem there, and what the laws take
//! for its size is what the kernel says.

use std::sync::Arc;

use api::{Kind, ObjectRef};
use control::Rules;
use rules_node::Node;
use rules_resizer::Resizer;
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::world::World;
use crate::worlds::attach::{self, INCARNATIONS, NODES, agent_seat, put_node};
use crate::worlds::{DRIVER, node, put, resize};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "node-growth",
    about: "resizer and a node's agent on a model kernel; a running pod's claim is asked to grow, too far and back",
    start: || start::<Resizer, Node>(Seat::fixed(|_, _| resize::local()), agent_seat()),
    user: resize::user,
    rest,
    waives: &[],
};

/// The world with other rules in the places of the resizer and the agent, from the moment the pod runs.
pub fn start<R: Actor, N: Rules<Local = rules_node::Local>>(seat: Seat<R>, agent: Seat<N>) -> World {
    let mut world = attach::running(furnished(agent));
    let resizer = Instance::start("resizer", "", seat, &world.cluster, &world.truth);
    world.members.insert(0, resizer);
    world
}

/// A node with its agent, and a pod on it with the claim.
fn furnished<N: Rules<Local = rules_node::Local>>(agent: Seat<N>) -> World {
    let mut cluster = Cluster::new();
    resize::furnish(&mut cluster);
    put_node(&mut cluster, NODES[0], INCARNATIONS[0]);
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": false } });
    put(&mut cluster, ObjectRef::cluster(Kind::CSIDriver, DRIVER), driver);
    let pod = ObjectRef::namespaced(Kind::Pod, NAMESPACE, "app-0");
    put(&mut cluster, pod, node::pod_body("app-0", false));
    let mut truth = node::truth(false);
    resize::describe(&mut truth);
    let truth = Arc::new(truth);
    let members = vec![Instance::start("agent", NODES[0], agent, &cluster, &truth)];
    World::of(cluster, truth, members)
}

/// As without the agent. What the driver cannot grow while it is in use stays as it is, and the claim says that it
/// does not have its size yet.
pub fn rest(world: &World) -> Option<Violation> {
    let told = || world.cluster.claims().any(|claim| claim.status.allocated_resource_statuses.contains_key("storage"));
    let excused = |found: &Violation| matches!(found, Violation::NotGrown { .. }) && world.truth.impossible && told();
    resize::rest(world).filter(|found| !excused(found))
}
