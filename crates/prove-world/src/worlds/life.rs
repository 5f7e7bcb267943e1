//! The whole life of two volumes: every controller, both nodes with their agents, two claims with a pod each, and a
//! user who deletes, makes again, moves and asks for more.
//!
//! One claim waits for its first pod, the other is bound at once. A pod that moves is deleted and, under another name
//! and at the same time, made again for the other node. The whole of it is for walks ([`crate::wander()`]); its parts
//! are small enough to be explored: one volume from nothing, one whose pod runs, and placing alone.

pub mod rest;

use std::sync::Arc;

use api::{ClaimPhase, Kind, ObjectRef, Patch, PersistentVolumeClaim, Pod, Precondition, Write, names};
use control::Rules;
use csi::ControllerRpc;
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::Binding;
use rules_node::Node;
use rules_provisioner::Provisioner;
use rules_resizer::{Local, Resizer};
use rules_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::member::{Instance, Member, Seat};
use crate::truth::{PretendHost, Truth};
use crate::world::{UserMove, World};
use crate::worlds::attach::{self, INCARNATIONS, NODES, agent_seat, put_node};
use crate::worlds::life::rest::{rest, rest_placing};
use crate::worlds::{DRIVER, provision, put};

/// Everything at once.
pub const SCENARIO: Scenario = Scenario {
    name: "life",
    about: "scheduler, binding, provisioner, attachdetach, attacher, resizer and two nodes; two claims and their pods, \
            a user who deletes, moves and asks for more",
    start: || start(ours(), &BOTH),
    user,
    rest,
    waives: &[],
};

/// One claim of delayed binding and its pod.
pub const ONE: Scenario = Scenario {
    name: "life-one",
    about: "the same with one claim, which waits for its pod to be placed",
    start: || start(ours(), &BOTH[..1]),
    ..SCENARIO
};

/// The same from the moment the pod runs.
pub const RUNNING: Scenario = Scenario {
    name: "life-running",
    about: "the same from the moment the pod runs",
    start: || attach::running(start(ours(), &BOTH[..1])),
    ..SCENARIO
};

/// The part before the nodes: a pod is placed while its claim is deleted and made again.
pub const PLACING: Scenario = Scenario {
    name: "life-placing",
    about: "scheduler, binding, provisioner; a claim that waits for its pod, a user who deletes and makes either",
    start: || start_placing(ours()),
    user: user_placing,
    rest: rest_placing,
    waives: &[],
};

/// A claim, its class of the same name, and the pods that use it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) claim: &'static str,
    mode: &'static str,
}

const BOTH: [Slot; 2] =
    [Slot { claim: "late", mode: "WaitForFirstConsumer" }, Slot { claim: "soon", mode: "Immediate" }];
const SMALL: &str = "1Gi";
const LARGE: &str = "2Gi";
/// What the driver calls impossible is left alone for longer than a world lasts.
const SLOW_MILLIS: u64 = 10 * 86_400_000;

fn ours() -> Seat<Scheduler> {
    Seat::fixed(|_, _| ())
}

/// Everything, with other rules in the place of the scheduler.
fn start<S: Rules>(scheduler: Seat<S>, slots: &[Slot]) -> World {
    let (cluster, truth) = furnished(slots);
    let detach = Seat::<AttachDetach>::fixed(|_, _| Default::default());
    let attacher = Seat::<Attacher>::fixed(|_, _| attach::attacher());
    let resizer = Seat::<Resizer>::fixed(|_, _| Local {
        slow_millis: SLOW_MILLIS,
        ..Local::new(DRIVER, [ControllerRpc::ExpandVolume])
    });
    let mut members = placing(scheduler, &cluster, &truth);
    members.push(Instance::start("attachdetach", "", detach, &cluster, &truth));
    members.push(Instance::start("attacher", "", attacher, &cluster, &truth));
    members.push(Instance::start("resizer", "", resizer, &cluster, &truth));
    for node in NODES {
        members.push(Instance::start(&format!("agent of {node}"), node, agent_seat::<Node>(), &cluster, &truth));
    }
    World::of(cluster, truth, members)
}

/// Placing alone, with other rules in the place of the scheduler, from the moment the claim has its volume.
pub fn start_placing<S: Rules>(scheduler: Seat<S>) -> World {
    let (cluster, truth) = furnished(&BOTH[..1]);
    let members = placing(scheduler, &cluster, &truth);
    World::of(cluster, truth, members).played(|world| world.cluster.claims().all(is_bound))
}

fn placing<S: Rules>(scheduler: Seat<S>, cluster: &Cluster, truth: &Truth) -> Vec<Arc<dyn Member>> {
    let binding = Seat::<Binding>::fixed(|_, _| rules_binding::Local::default());
    let provisioner = provision::seat::<Provisioner>(|_, _| provision::local());
    vec![
        Instance::start("scheduler", "", scheduler, cluster, truth),
        Instance::start("binding", "", binding, cluster, truth),
        Instance::start("provisioner", "", provisioner, cluster, truth),
    ]
}

/// Two nodes, a class for each claim, the claims, and a pod for each.
fn furnished(slots: &[Slot]) -> (Cluster, Arc<Truth>) {
    let mut cluster = Cluster::new();
    let mut truth = Truth::default();
    for (node, incarnation) in NODES.iter().zip(INCARNATIONS) {
        put_node(&mut cluster, node, incarnation);
        let labels = json!({ "metadata": { "labels": { names::HOSTNAME_LABEL: node } } });
        let patch = Patch::merge(Precondition::default(), labels);
        let label = Write::Patch { target: ObjectRef::cluster(Kind::Node, *node), subresource: None, patch };
        if let Err(refusal) = cluster.write("setup", &label) {
            unreachable!("a node takes a label: {refusal}");
        }
        truth.hosts.insert((*node).into(), PretendHost { incarnation, ..PretendHost::default() });
    }
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": true } });
    put(&mut cluster, ObjectRef::cluster(Kind::CSIDriver, DRIVER), driver);
    for slot in slots {
        put_class(&mut cluster, *slot);
        put(&mut cluster, claim_ref(*slot), claim_body(*slot));
        put(&mut cluster, pod_ref(&slot.pod(0)), pod_body(*slot, &slot.pod(0), None));
    }
    (cluster, Arc::new(truth))
}

fn put_class(cluster: &mut Cluster, slot: Slot) {
    let target = ObjectRef::cluster(Kind::StorageClass, slot.claim);
    let mut class = json!({
        "metadata": {}, "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": slot.mode,
        "allowVolumeExpansion": true,
    });
    put(cluster, target.clone(), class.clone());
    // Whether a claim may ask for more is for its class to say.
    class["apiVersion"] = "storage.k8s.io/v1".into();
    class["kind"] = "StorageClass".into();
    class["metadata"]["name"] = slot.claim.into();
    cluster.mirror(Kind::PersistentVolumeClaim, &Write::Create { target, body: class });
}

fn claim_ref(slot: Slot) -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, slot.claim)
}

fn pod_ref(name: &str) -> ObjectRef {
    ObjectRef::namespaced(Kind::Pod, NAMESPACE, name)
}

fn claim_body(slot: Slot) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {},
        "spec": {
            "storageClassName": slot.claim,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": SMALL } },
        },
    })
}

/// A pod, for one node if one is named.
fn pod_body(slot: Slot, name: &str, node: Option<&str>) -> Value {
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "containers": [{
                "name": "main", "image": "host", "command": ["/bin/sleep", "infinity"],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": slot.claim } }],
        },
    });
    if let Some(node) = node {
        body["spec"]["nodeSelector"] = json!({ names::HOSTNAME_LABEL: node });
    }
    body
}

impl Slot {
    fn pod(self, number: usize) -> String {
        format!("{}-{number}", self.claim)
    }

    pub(crate) fn live_claim(self, world: &World) -> Option<&Arc<PersistentVolumeClaim>> {
        world.cluster.claims().find(|claim| claim.metadata.name == self.claim && !claim.metadata.is_deleting())
    }

    pub(crate) fn uses(self, pod: &Pod) -> bool {
        pod.claim_names().any(|name| name == self.claim)
    }

    pub(crate) fn live_pod(self, world: &World) -> Option<&Arc<Pod>> {
        world.cluster.pods().find(|pod| self.uses(pod) && !pod.metadata.is_deleting())
    }
}

/// The claims of this world; its classes stay, whatever becomes of the claims.
pub(crate) fn slots(world: &World) -> impl Iterator<Item = Slot> {
    let there = |slot: &Slot| world.cluster.read(&ObjectRef::cluster(Kind::StorageClass, slot.claim)).is_some();
    BOTH.into_iter().filter(there)
}

pub(crate) fn is_bound(claim: &Arc<PersistentVolumeClaim>) -> bool {
    claim.status.phase == ClaimPhase::Bound
}

/// The user deletes, makes again, moves, and asks for more.
pub fn user(world: &World) -> Vec<UserMove> {
    let mut moves = Vec::new();
    for slot in slots(world) {
        claim_moves(world, slot, &mut moves);
        if let Some(claim) = slot.live_claim(world).filter(|claim| is_bound(claim))
            && claim.spec.resources.requests.get("storage").is_some_and(|size| size.to_string() == SMALL)
        {
            let more = json!({ "spec": { "resources": { "requests": { "storage": LARGE } } } });
            let patch = Patch::merge(Precondition::same(&claim.metadata), more);
            let write = Write::Patch { target: claim_ref(slot), subresource: None, patch };
            moves.push(UserMove { label: format!("ask for {LARGE} in claim {}", slot.claim), writes: vec![write] });
        }
        if let Some(pod) = slot.live_pod(world) {
            let from = if pod.spec.node_name == NODES[1] { 1 } else { 0 };
            let (label, create) = creation(world, slot, Some(NODES[1 - from]));
            let name = &pod.metadata.name;
            moves.push(UserMove { label: format!("delete pod {name}"), writes: vec![deletion(pod, None)] });
            let writes = vec![deletion(pod, None), create];
            moves.push(UserMove { label: format!("delete pod {name} and {label}"), writes });
        }
        pod_moves(world, slot, &mut moves);
    }
    moves
}

/// The user deletes or makes the claim or the pod; a pod that is deleted goes at once, because no node runs it.
fn user_placing(world: &World) -> Vec<UserMove> {
    let mut moves = Vec::new();
    for slot in slots(world) {
        claim_moves(world, slot, &mut moves);
        pod_moves(world, slot, &mut moves);
    }
    moves
}

fn claim_moves(world: &World, slot: Slot, moves: &mut Vec<UserMove>) {
    let claim = world.cluster.claims().find(|claim| claim.metadata.name == slot.claim);
    let (verb, write) = match claim {
        None => ("create", Write::Create { target: claim_ref(slot), body: claim_body(slot) }),
        Some(claim) if claim.metadata.is_deleting() => return,
        Some(claim) => {
            let only_if = Precondition::same(&claim.metadata);
            ("delete", Write::Delete { target: claim_ref(slot), only_if, grace_seconds: None })
        }
    };
    moves.push(UserMove { label: format!("{verb} claim {}", slot.claim), writes: vec![write] });
}

/// A pod is made where there is none, and any may be deleted by force: its object is gone at once.
fn pod_moves(world: &World, slot: Slot, moves: &mut Vec<UserMove>) {
    if slot.live_pod(world).is_none() {
        let (label, create) = creation(world, slot, None);
        moves.push(UserMove { label, writes: vec![create] });
    }
    for pod in world.cluster.pods().filter(|pod| slot.uses(pod)) {
        let label = format!("delete pod {} by force", pod.metadata.name);
        moves.push(UserMove { label, writes: vec![deletion(pod, Some(0))] });
    }
}

/// A new pod under a name that is free.
fn creation(world: &World, slot: Slot, node: Option<&str>) -> (String, Write) {
    let free = |name: &String| world.cluster.pods().all(|pod| pod.metadata.name != *name);
    let name = (0..).map(|number| slot.pod(number)).find(free).unwrap_or_default();
    let place = node.map(|node| format!(" for {node}")).unwrap_or_default();
    (format!("create pod {name}{place}"), Write::Create { target: pod_ref(&name), body: pod_body(slot, &name, node) })
}

fn deletion(pod: &Pod, grace_seconds: Option<u32>) -> Write {
    Write::Delete { target: pod_ref(&pod.metadata.name), only_if: Precondition::same(&pod.metadata), grace_seconds }
}

/// The class of this claim waits for a pod.
pub(crate) fn waits(claim: &str) -> bool {
    BOTH.iter().any(|slot| slot.claim == claim && slot.mode == "WaitForFirstConsumer")
}
