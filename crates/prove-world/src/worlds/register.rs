//! One node: its registrar, and two drivers of one name that come and go.
//!
//! Both drivers call the node differently, and one speaks a higher version, from a socket whose path comes first. A
//! driver runs while its pod is there. The user starts, stops and restarts them, and takes a volume into use while its
//! driver is registered, or out of it; a restart in one go is one that the agent sees as a socket made anew.
//!
//! # What is left out
//!
//! Pauses take no time here, so a driver that went may be forgotten at once and one that was turned away is not asked a
//! second time; tables and scripts of the rules show both. Topology, limits and drivers that are not fit are there as
//! well. What an earlier incarnation of the agent told a driver does not count: each registers them anew, and a law
//! about silent restarts has nothing to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Kind, ObjectRef, Patch, Precondition, Subresource, Write, names};
use control::{Rules, Timestamp};
use rules_registrar::{Local, Registrar};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE, NOW_MILLIS};
use crate::explore::Scenario;
use crate::laws::{Law, Violation};
use crate::member::{Instance, Member, Seat};
use crate::plugins::{NAME, NODE_ID, VERSION};
use crate::step::{Move, Step};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::attach::{HANDLE, INCARNATIONS, NODES};
use crate::worlds::{DRIVER, put};

/// A driver that is registered, and another of its name.
pub const SCENARIO: Scenario = Scenario {
    name: "register",
    about: "a node's registrar; two drivers of one name come and go, one of a newer version",
    start: || start::<Registrar>(false, seat()),
    user,
    rest,
    waives: &[Law::SilentRestart],
};

/// The same with a volume in use, and the other driver there from the start.
pub const IN_USE: Scenario = Scenario {
    name: "register-in-use",
    about: "the same while a volume is in use that only one of the two can serve",
    start: || start::<Registrar>(true, seat()),
    ..SCENARIO
};

/// A driver by the name of its pod, with the version it speaks and what it calls the node.
type Kept = (&'static str, &'static str, &'static str);
const OLD: Kept = ("old", "1.0.0", "node-7");
/// Its path comes before that of the other.
const NEW: Kept = ("new", "1.1.0", "node-8");

const NODE: &str = NODES[0];

/// The world with other rules in the place of the registrar, from the moment the first driver has been told that it
/// is registered.
pub fn start<R: Rules<Local = Local>>(in_use: bool, seat: Seat<R>) -> World {
    let mut cluster = Cluster::new();
    put_node(&mut cluster);
    put(&mut cluster, pod(OLD), pod_body(OLD));
    let mut world = World::of(cluster, Arc::default(), Vec::new());
    let running = world.plugins_of_pods();
    let plugins = &mut Arc::make_mut(&mut world.truth).plugins;
    (plugins.agent, plugins.running) = (INCARNATIONS[0], running);
    let registrar: Arc<dyn Member> = Instance::start("registrar", NODE, seat, &world.cluster, &world.truth);
    world.members.push(registrar);
    let world = world.played(|world| world.truth.plugins.registered().next().is_some());
    if !in_use {
        return world.played(|_| false);
    }
    let moves = [UserMove { label: String::new(), writes: vec![report(&[&volume()]), create(NEW)] }];
    let first = Move { step: Step::User(0), budget: world.budget, behind: None, calm: false };
    world.take(first, &moves).world
}

fn put_node(cluster: &mut Cluster) {
    let body = json!({
        "metadata": {
            "annotations": {
                names::CONTROLLER_MANAGED_ATTACH: "true", names::AGENT_INCARNATION: INCARNATIONS[0].to_string(),
            },
            "labels": { names::HOSTNAME_LABEL: NODE },
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    put(cluster, ObjectRef::cluster(Kind::Node, NODE), body);
    let uid = cluster.nodes().next().map(|node| node.metadata.uid.clone()).unwrap_or_default();
    // An object whose owner is unknown to its store would be collected.
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } });
    let target = ObjectRef::cluster(Kind::Node, NODE);
    cluster.mirror_as(Kind::CSINode, &Write::Create { target, body: node }, &uid);
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid });
    let body = json!({ "metadata": { "ownerReferences": [owner] }, "spec": { "drivers": [] } });
    put(cluster, ObjectRef::cluster(Kind::CSINode, NODE), body);
}

fn pod(driver: Kept) -> ObjectRef {
    ObjectRef::namespaced(Kind::Pod, NAMESPACE, driver.0)
}

fn pod_body((name, version, node_id): Kept) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "annotations": { NAME: DRIVER, VERSION: version, NODE_ID: node_id },
        },
        "spec": { "nodeName": NODE, "containers": [{ "name": "main", "image": "driver" }] },
    })
}

fn volume() -> String {
    names::unique_volume_name(DRIVER, HANDLE)
}

fn create(driver: Kept) -> Write {
    Write::Create { target: pod(driver), body: pod_body(driver) }
}

/// What the node's agent reports in use.
fn report(volumes: &[&str]) -> Write {
    let target = ObjectRef::cluster(Kind::Node, NODE);
    let patch = Patch::merge(Precondition::default(), json!({ "status": { "volumesInUse": volumes } }));
    Write::Patch { target, subresource: Some(Subresource::Status), patch }
}

/// How a registrar learns which sockets are there.
pub fn seat<R: Rules<Local = Local>>() -> Seat<R> {
    Seat {
        build: |truth, node| {
            let mut local = Local::new(node, truth.plugins.agent.to_string());
            follow(&mut local, truth);
            local
        },
        refresh: |local, truth, _| {
            let before = local.clone();
            follow(local, truth);
            *local != before
        },
        digest: |local, mut hasher| {
            use std::hash::Hash;
            local.hash(&mut hasher);
        },
    }
}

/// Sockets are numbered as their drivers are, so that the order in which they are seen tells no states apart.
fn follow(local: &mut Local, truth: &Truth) {
    let running = &truth.plugins.running;
    let gone: Vec<String> = local.sockets.keys().filter(|path| !running.contains_key(*path)).cloned().collect();
    gone.iter().for_each(|path| local.gone(path, Timestamp(NOW_MILLIS)));
    for (path, plugin) in running {
        if local.sockets.get(path).is_none_or(|socket| socket.incarnation != plugin.number) {
            local.sockets_seen = plugin.number - 1;
            local.seen(path.as_str());
        }
    }
}

/// The user starts, stops or restarts a driver, and takes the volume into use or out of it.
pub fn user(world: &World) -> Vec<UserMove> {
    let mut moves = Vec::new();
    for driver in [OLD, NEW] {
        let there = world.cluster.pods().find(|pod| pod.metadata.name == driver.0);
        let Some(there) = there else {
            moves.push(UserMove { label: format!("start driver {}", driver.0), writes: vec![create(driver)] });
            continue;
        };
        let only_if = Precondition::same(&there.metadata);
        let stop = Write::Delete { target: pod(driver), only_if, grace_seconds: Some(0) };
        moves.push(UserMove { label: format!("stop driver {}", driver.0), writes: vec![stop.clone()] });
        moves.push(UserMove { label: format!("restart driver {}", driver.0), writes: vec![stop, create(driver)] });
    }
    if crate::laws::register_uses(world, NODE, DRIVER) {
        moves.push(UserMove { label: "take the volume out of use".into(), writes: vec![report(&[])] });
    } else if served(world) {
        moves.push(UserMove { label: "take a volume into use".into(), writes: vec![report(&[&volume()])] });
    }
    moves
}

/// A driver is registered and listed, so that volumes of it may be mounted.
fn served(world: &World) -> bool {
    let listed = crate::laws::register_entry(world, NODE, DRIVER).map(|entry| entry.node_id.as_str());
    world.truth.plugins.registered().any(|(_, plugin)| listed == Some(plugin.node_id.as_str()))
}

/// The newest driver that can be registered is, and CSINode says what it says.
pub fn rest(world: &World) -> Option<Violation> {
    let plugins = &world.truth.plugins;
    let in_use = crate::laws::register_uses(world, NODE, DRIVER);
    let listed = crate::laws::register_entry(world, NODE, DRIVER).map(|entry| entry.node_id.clone());
    let fits = |id: &String| !in_use || listed.as_ref().is_none_or(|listed| listed == id);
    let fit: BTreeMap<_, _> = plugins.running.iter().filter(|(_, plugin)| fits(&plugin.node_id)).collect();
    let newest = fit.into_iter().max_by_key(|(_, plugin)| plugin.version.clone());
    let wanted: Vec<String> = newest.iter().map(|(at, _)| at.to_string()).collect();
    let sockets: Vec<String> = plugins.registered().map(|(at, _)| at.clone()).collect();
    if sockets != wanted {
        return Some(Violation::NotRegistered { sockets, wanted });
    }
    // Nobody is left to say what the entry of a volume in use should be.
    let wanted: Vec<String> = newest.iter().map(|(_, plugin)| plugin.node_id.clone()).collect();
    let listed: Vec<String> = listed.into_iter().collect();
    let kept = in_use && wanted.is_empty();
    (listed != wanted && !kept).then_some(Violation::EntryUntrue { listed, wanted })
}
