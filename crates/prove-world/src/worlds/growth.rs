//! The world of [`resize`](crate::worlds::resize) with the real agent in it: the pod that uses the claim runs on a
//! node whose machine is a model kernel, the agent and its driver grow the filesystem there, and what the laws take
//! for its size is what the kernel says.

use std::sync::Arc;

use api::{Kind, ObjectRef, Pod, Precondition, Write};
use control::Rules;
use rules_node::Node;
use rules_resizer::Resizer;
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::world::{UserMove, World};
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

/// The same, and the pod goes meanwhile. A driver's answer that is lost with it leaves the claim at its old size until
/// the next pod comes, so nothing else goes wrong here.
pub const LEFT: Scenario = Scenario {
    name: "node-growth-left",
    about: "the same, and the pod goes meanwhile, with nothing going wrong: the claim is told what its filesystem has",
    user: user_with_pod,
    rest: rest_told,
    ..SCENARIO
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
    let too_small = |found: &Violation| matches!(found, Violation::NotGrown { .. } | Violation::NotInfeasible { .. });
    resize::rest(world).filter(|found| !(too_small(found) && world.truth.impossible && told()))
}

fn user_with_pod(world: &World) -> Vec<UserMove> {
    let delete = |pod: &Arc<Pod>| Write::Delete {
        target: ObjectRef { kind: Kind::Pod, key: pod.metadata.key() },
        only_if: Precondition::same(&pod.metadata),
        grace_seconds: None,
    };
    let pods = world.cluster.pods().filter(|pod| !pod.metadata.is_deleting());
    let end = pods.map(|pod| UserMove { label: "delete the pod".into(), writes: vec![delete(pod)] });
    resize::user(world).into_iter().filter(|one| one.label.ends_with('i')).chain(end).collect()
}

/// What the filesystem has is what the claim says, whoever is gone.
fn rest_told(world: &World) -> Option<Violation> {
    if world.cluster.pods().next().is_some() {
        return rest(world);
    }
    let claim = world.cluster.claims().next()?;
    let (asked, has) = (resize::bytes(&claim.spec.resources.requests), resize::bytes(&claim.status.capacity));
    let filesystem = world.truth.sizes.get(attach::HANDLE)?.filesystem;
    (has != filesystem).then_some(Violation::NotGrown { asked, has, filesystem })
}
