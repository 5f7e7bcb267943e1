//! One volume for one node at a time, two nodes, and a pod the user moves from one to the other.
//!
//! The attach/detach controller, the attacher and the agents of both nodes, against a driver that would attach the
//! volume anywhere and detach it under a running process.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Kind, ObjectRef, Pod, Precondition, Write, names};
use control::Rules;
use csi::{ControllerRpc, NodeRpc};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_node::Node;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::machine::ROOT;
use crate::member::{Actor, Instance, Member, Seat};
use crate::truth::{PretendHost, Truth};
use crate::world::{UserMove, World};
use crate::worlds::{DRIVER, incarnation_write, put};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "attach",
    about: "attachdetach, attacher and two node agents; a pod moves between nodes with a single-node volume",
    start: || start::<AttachDetach>(Seat::fixed(|_, _| Default::default())),
    user,
    rest,
    waives: &[],
};

/// The same from the moment the first node has been told that the volume is attached: the part where a detach and a
/// mount can meet, without the way there.
pub const REPORTED: Scenario = Scenario {
    name: "attach-reported",
    about: "the same, from the moment the first node has been told that the volume is attached",
    start: || start_reported::<AttachDetach>(Seat::fixed(|_, _| Default::default())),
    ..SCENARIO
};

/// The same with a user who also deletes pods by force: the object is gone at once, whatever still runs.
pub const FORCED: Scenario = Scenario {
    name: "attach-forced",
    about: "the same from the start, with a user who also deletes pods by force",
    user: |world| {
        let mut moves = user(world);
        moves.extend(world.cluster.pods().map(|pod| UserMove {
            label: format!("delete pod {} by force", pod.metadata.name),
            writes: vec![Write::Delete {
                target: ObjectRef { kind: Kind::Pod, key: pod.metadata.key() },
                only_if: Precondition::same(&pod.metadata),
                grace_seconds: Some(0),
            }],
        }));
        moves
    },
    ..SCENARIO
};

pub(crate) const HANDLE: &str = "v1";
pub(crate) const VOLUME: &str = "data-volume";
pub(crate) const CLAIM: &str = "data";
pub(crate) const NODES: [&str; 2] = ["node-a", "node-b"];
/// Incarnations are numbers like versions: only their order counts.
pub(crate) const INCARNATIONS: [u64; 2] = [80_000_001, 81_000_001];

/// The world with other rules in the place of the attach/detach controller.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    start_with(seat, attacher_seat())
}

/// The world with other rules in the places of the attach/detach controller and the attacher.
pub fn start_with<R: Actor, A: Actor>(seat: Seat<R>, attacher: Seat<A>) -> World {
    start_all(seat, attacher, agent_seat::<Node>())
}

/// The world with other rules in the places of the attach/detach controller, the attacher and the agents.
pub fn start_all<R: Actor, A: Actor, N: Actor>(seat: Seat<R>, attacher: Seat<A>, agent: Seat<N>) -> World {
    let mut cluster = Cluster::new();
    furnish(&mut cluster, &NODES);
    let mut truth = Truth::default();
    for (node, incarnation) in NODES.iter().zip(INCARNATIONS) {
        truth.hosts.insert((*node).into(), PretendHost { incarnation, ..PretendHost::default() });
    }
    let truth = Arc::new(truth);
    let mut members: Vec<Arc<dyn Member>> = vec![
        Instance::start("attachdetach", "", seat, &cluster, &truth),
        Instance::start("attacher", "", attacher, &cluster, &truth),
    ];
    for node in NODES {
        members.push(Instance::start(&format!("agent of {node}"), node, agent, &cluster, &truth));
    }
    World::of(cluster, truth, members)
}

/// The same, from the moment the first node has been told that the volume is attached and has not reacted yet.
pub fn start_reported<R: Actor>(seat: Seat<R>) -> World {
    reported(start(seat))
}

/// The world at the moment the first node has been told.
pub fn reported(world: World) -> World {
    let unique = names::unique_volume_name(DRIVER, HANDLE);
    world.played(|world| world.cluster.nodes().any(|node| node.reports_attached(&unique)))
}

/// The world at the moment its pod runs.
pub fn running(world: World) -> World {
    world.played(|world| world.truth.hosts.values().any(|host| host.processes.values().any(|runs| *runs)))
}

/// Nodes, a driver, a bound volume, and a pod on the first node that uses it.
pub(crate) fn furnish(cluster: &mut Cluster, nodes: &[&str]) {
    for (node, incarnation) in nodes.iter().zip(INCARNATIONS) {
        put_node(cluster, node, incarnation);
    }
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": true } });
    put(cluster, ObjectRef::cluster(Kind::CSIDriver, DRIVER), driver);
    put_bound(cluster, json!({ "csi": { "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4" } }));
    let first = ObjectRef::namespaced(Kind::Pod, NAMESPACE, "app-0");
    put(cluster, first, pod_body("app-0", NODES[0]));
}

pub(crate) fn put_node(cluster: &mut Cluster, node: &str, incarnation: u64) {
    let body = json!({
        "metadata": { "annotations": { names::CONTROLLER_MANAGED_ATTACH: "true" } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    put(cluster, ObjectRef::cluster(Kind::Node, node), body);
    let drivers = json!([{ "name": DRIVER, "nodeID": node, "topologyKeys": null }]);
    put(cluster, ObjectRef::cluster(Kind::CSINode, node), json!({ "metadata": {}, "spec": { "drivers": drivers } }));
    if let Err(refusal) = cluster.write("setup", &incarnation_write(node, incarnation)) {
        unreachable!("a node takes an annotation: {refusal}");
    }
}

/// A volume of this source, bound to its claim.
pub(crate) fn put_bound(cluster: &mut Cluster, source: Value) {
    let size = json!({ "storage": "1Gi" });
    let claim = json!({
        "metadata": {},
        "spec": {
            "storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": { "requests": size },
            "volumeName": VOLUME,
        },
        "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size },
    });
    put(cluster, ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM), claim);
    let uid = cluster.claims().next().map(|claim| claim.metadata.uid.clone()).unwrap_or_default();
    let mut volume = json!({
        "metadata": {},
        "spec": {
            "capacity": size, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": NAMESPACE, "name": CLAIM, "uid": uid,
            },
        },
        "status": { "phase": "Bound" },
    });
    for (kind, source) in source.as_object().into_iter().flatten() {
        volume["spec"][kind] = source.clone();
    }
    put(cluster, ObjectRef::cluster(Kind::PersistentVolume, VOLUME), volume);
}

fn pod_body(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "nodeName": node,
            "containers": [{
                "name": "main", "image": "host", "command": ["/bin/sleep", "infinity"],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": CLAIM } }],
        },
    })
}

/// The driver's attacher.
pub fn attacher() -> rules_attacher::Local {
    rules_attacher::Local::new(DRIVER, [ControllerRpc::PublishUnpublishVolume])
}

fn attacher_seat() -> Seat<Attacher> {
    Seat::fixed(|_, _| attacher())
}

/// How an agent learns about its machine.
pub fn agent_seat<N: Rules<Local = rules_node::Local>>() -> Seat<N> {
    Seat {
        build: agent_local,
        refresh: |local, truth, node| {
            let Some(host) = truth.hosts.get(node) else { return false };
            let before = local.clone();
            local.processes = host.process_states();
            if host.machine.is_some() {
                local.remounted(&host.watched, &host.mount_points());
                local.pod_dirs = unknown_dirs(host, local);
            }
            *local != before
        },
        digest: |local, mut hasher| {
            use std::hash::Hash;
            local.hash(&mut hasher);
        },
    }
}

/// What an agent finds on its machine when it starts.
pub(crate) fn agent_local(truth: &Truth, node: &str) -> rules_node::Local {
    let host = truth.hosts.get(node).cloned().unwrap_or_default();
    let mut local = rules_node::Local::new(node, host.incarnation.to_string(), ROOT);
    local
        .drivers
        .insert(DRIVER.into(), rules_node::DriverFacts::new([NodeRpc::StageUnstageVolume, NodeRpc::ExpandVolume]));
    for (path, bytes) in &host.files {
        let _ = local.load_record(path, Ok(bytes.clone()));
    }
    local.mounts = host.mount_points();
    local.processes = host.process_states();
    local.pod_dirs = unknown_dirs(&host, &local);
    local
}

/// Directories of pods of which there is no record and no process (KL-99). Whether there is an object the rules ask
/// before they touch any. The agent looks now and then; here it looks all the time.
fn unknown_dirs(host: &PretendHost, local: &rules_node::Local) -> BTreeMap<String, rules_node::PodDir> {
    let Some(machine) = &host.machine else { return BTreeMap::new() };
    let nothing = control::Cache::default();
    let unknown = rules_node::unknown_pods(machine.pods(), &nothing, local);
    unknown.map(|uid| (uid.clone(), machine.pod_dir(&uid))).collect()
}

fn live(world: &World) -> Option<&Arc<Pod>> {
    world.cluster.pods().find(|pod| !pod.metadata.is_deleting())
}

fn other(node: &str) -> &'static str {
    if node == NODES[0] { NODES[1] } else { NODES[0] }
}

fn free_name(world: &World) -> String {
    let free = |name: &String| world.cluster.pods().all(|pod| pod.metadata.name != *name);
    (0..).map(|n| format!("app-{n}")).find(free).unwrap_or_default()
}

pub(crate) fn create(name: &str, node: &str) -> Write {
    let target = ObjectRef::namespaced(Kind::Pod, NAMESPACE, name);
    Write::Create { target, body: pod_body(name, node) }
}

/// The user makes a pod under a name that is free.
pub(crate) fn creation(world: &World, node: &str) -> UserMove {
    let name = free_name(world);
    UserMove { label: format!("create pod {name} on {node}"), writes: vec![create(&name, node)] }
}

/// The user moves the pod: the old one is deleted and, under another name and at the same time, a new one is made on
/// the other node, as a deployment would do it. Or only deletes it, or makes one where there is none.
pub fn user(world: &World) -> Vec<UserMove> {
    let name = free_name(world);
    let Some(pod) = live(world) else { return vec![creation(world, NODES[0])] };
    let delete = Write::Delete {
        target: ObjectRef { kind: Kind::Pod, key: pod.metadata.key() },
        only_if: Precondition::same(&pod.metadata),
        grace_seconds: None,
    };
    let target = other(&pod.spec.node_name);
    vec![
        UserMove {
            label: format!("delete pod {} and create {name} on {target}", pod.metadata.name),
            writes: vec![delete.clone(), create(&name, target)],
        },
        UserMove { label: format!("delete pod {}", pod.metadata.name), writes: vec![delete] },
    ]
}

/// A live pod runs with its volume, and nothing is left of any other.
pub fn rest(world: &World) -> Option<Violation> {
    let wanted = live(world).map(|pod| pod.spec.node_name.clone());
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    for (node, host) in &world.truth.hosts {
        let attached = world.truth.attached.get(HANDLE).is_some_and(|nodes| nodes.contains(node));
        let runs = host.processes.values().filter(|running| **running).count();
        if wanted.as_ref() == Some(node) {
            if !attached || runs != 1 || !host.holds(HANDLE) {
                return Some(Violation::PodDoesNotRun { node: node.clone() });
            }
        } else if attached || runs > 0 || host.holds(HANDLE) || !host.files.is_empty() || !host.processes.is_empty() {
            return Some(Violation::LeftOnNode { node: node.clone() });
        }
    }
    for node in world.cluster.nodes() {
        let unique = names::unique_volume_name(DRIVER, HANDLE);
        let here = wanted.as_ref() == Some(&node.metadata.name);
        if node.reports_attached(&unique) != here || node.reports_in_use(&unique) != here {
            return Some(Violation::NodeStatusUntrue { node: node.metadata.name.clone() });
        }
    }
    let nodes: Vec<_> = world.cluster.attachments().map(|a| a.spec.node_name.clone()).collect();
    (nodes != Vec::from_iter(wanted)).then_some(Violation::AttachmentsTo { nodes })
}
