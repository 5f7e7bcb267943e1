//! A node falls silent while a volume is attached to it and mounted for a pod, which is then moved to another node.
//!
//! The attach/detach controller, the attacher and both agents. The node has the taint that allows its volumes to be
//! taken (`node.kubernetes.io/out-of-service`), from the beginning: also while it lives. A node that is silent does
//! nothing and does not renew its Lease; what is mounted there stays mounted and what runs there goes on, as on a node
//! that is cut off. Later it may be heard again.
//!
//! Time is what its Lease is judged by, so here it passes ([`Patient`]): between two reads of a Lease a living node
//! renews it. Whether somebody else notices that the node is silent, as the node lifecycle controller does, is up to
//! the user.
//!
//! What a node that is or was silent has mounted may be detached, or missing from its list: somebody allowed that, and
//! the driver keeps what is not attached from being written. So the law of the one node looks at those who can write:
//! a volume for one node is attached to one, and mounted on one that is attached or was never silent.

use std::sync::Arc;

use api::{Kind, ObjectRef, Patch, Precondition, Subresource, Value, Write, names};
use control::{BackOff, Cache, Change, Decision, HandleOf, Outcome, Pulse, Route, Rules, Timestamp};
use rules_attachdetach::{Action, AttachDetach, Key, Local, Memory, Reason, View};
use rules_attacher::Attacher;
use rules_node::Node;
use serde_json::json;

use crate::cluster::{Cluster, Event, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Member, Seat};
use crate::step::{Move, Step};
use crate::truth::{PretendHost, Truth};
use crate::world::{UserMove, World};
use crate::worlds::attach::{self, INCARNATIONS, NODES, agent_seat, attacher};
use crate::worlds::put;

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "node-dead",
    about: "attachdetach, attacher and two node agents; a node out of service falls silent with a volume mounted, its \
            pod moves, and it is heard again",
    start: || start::<Patient, Attacher>(Seat::fixed(|_, _| Local::default()), Seat::fixed(|_, _| attacher())),
    user,
    rest,
    waives: &[],
};

/// The same from the moment the node has fallen silent and is said to be Unknown: it may be heard again before, while
/// and after its volume goes.
pub const BACK_AGAIN: Scenario = Scenario {
    name: "node-back",
    about: "the same from the moment the node has fallen silent and is said to be Unknown",
    start: || {
        fallen_silent(start::<Patient, Attacher>(Seat::fixed(|_, _| Local::default()), Seat::fixed(|_, _| attacher())))
    },
    ..SCENARIO
};

/// The moment at which a Lease is first read; the last renewal was then.
pub(crate) const FIRST_READ: Timestamp = Timestamp(100_000);
pub(crate) const RENEWALS: [&str; 2] = ["1970-01-01T00:01:40.000000Z", "1970-01-01T00:01:41.000000Z"];
/// Between two reads a Lease runs out that is not renewed.
pub(crate) const BETWEEN_READS: u64 = 50_000;

/// The attach/detach controller, for which time passes as it waits. Everywhere else pauses take none.
pub struct Patient;

impl Patient {
    /// Decides at the moment of the last read, and at the end of the wait if there is one. A node that was seen to live
    /// is looked at again once somebody says that it is silent; in between one look is like another.
    pub fn decide(view: &View, memory: &Memory) -> Decision<Action, Reason> {
        let pulse = memory.pulse.as_ref();
        let unheard = match view {
            View::Pair(pair) => pair.node.as_ref().is_some_and(|node| node.unheard),
            _ => false,
        };
        match AttachDetach::decide(pulse.map_or(FIRST_READ, |pulse| pulse.read), view, memory) {
            Decision::Wait(..) if unheard || pulse.is_some_and(|pulse| !pulse.beats) => {
                AttachDetach::decide(next_read(memory), view, memory)
            }
            other => other,
        }
    }

    /// Remembers at the moment of the read. What was renewed is new, however often it was read before, and what a
    /// volume was taken on is too old for another time.
    pub fn remember(memory: Memory, did: &Action, got: &Outcome) -> Memory {
        let now = next_read(&memory);
        let mut memory = AttachDetach::remember(now, memory, did, got);
        if let Some(pulse) = memory.pulse.as_mut().filter(|pulse| pulse.since == now) {
            *pulse = Pulse { since: FIRST_READ, read: FIRST_READ, ..pulse.clone() };
        }
        if let Action::ForceRelease { .. } = did {
            memory.pulse = None;
        }
        memory
    }
}

fn next_read(memory: &Memory) -> Timestamp {
    memory.pulse.as_ref().map_or(FIRST_READ, |pulse| pulse.read.after_millis(BETWEEN_READS))
}

impl Rules for Patient {
    const NAME: &'static str = AttachDetach::NAME;
    const HANDLE_OF: Option<HandleOf> = AttachDetach::HANDLE_OF;
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = &[];

    fn watches() -> &'static [Kind] {
        AttachDetach::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        AttachDetach::wakes(change, cache, local)
    }

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        AttachDetach::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        AttachDetach::view(key, cache, local)
    }

    fn decide(_: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        Patient::decide(view, memory)
    }

    fn remember(_: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        Patient::remember(memory, did, got)
    }

    fn learn(_: &mut Local, _: &Action, _: &Outcome, _: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        AttachDetach::back_off(local)
    }

    fn object(key: &Key) -> ObjectRef {
        AttachDetach::object(key)
    }
}

/// The world with other rules in the places of the attach/detach controller and the attacher, from the moment the pod
/// runs.
pub fn start<R: Actor, A: Actor>(detach: Seat<R>, attacher: Seat<A>) -> World {
    let (mut cluster, truth) = furnished();
    let taints = json!([{ "key": names::OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute" }]);
    let taint = patch(ObjectRef::cluster(Kind::Node, NODES[0]), None, json!({ "spec": { "taints": taints } }));
    if let Err(refusal) = cluster.write("setup", &taint) {
        unreachable!("a node takes a taint: {refusal}");
    }
    let members = attaching(detach, attacher, &cluster, &truth);
    attach::running(World::of(cluster, truth, members))
}

/// Two nodes that renew their Leases, a bound volume, and a pod on the first node that uses it.
pub(crate) fn furnished() -> (Cluster, Arc<Truth>) {
    let mut cluster = Cluster::new();
    attach::furnish(&mut cluster, &NODES);
    let target = ObjectRef::cluster(Kind::Namespace, names::NODE_LEASES);
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": names::NODE_LEASES } });
    cluster.mirror(Kind::Lease, &Write::Create { target, body });
    let mut truth = Truth::default();
    for (node, incarnation) in NODES.iter().zip(INCARNATIONS) {
        truth.hosts.insert((*node).into(), PretendHost { incarnation, ..PretendHost::default() });
        let spec = json!({ "holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": RENEWALS[0] });
        put(&mut cluster, lease(node), json!({ "metadata": {}, "spec": spec }));
    }
    (cluster, Arc::new(truth))
}

/// Those that attach, and the agents of both nodes.
pub(crate) fn attaching<R: Actor, A: Actor>(
    detach: Seat<R>,
    attacher: Seat<A>,
    cluster: &Cluster,
    truth: &Truth,
) -> Vec<Arc<dyn Member>> {
    let mut members: Vec<Arc<dyn Member>> = vec![
        Instance::start("attachdetach", "", detach, cluster, truth),
        Instance::start("attacher", "", attacher, cluster, truth),
    ];
    for node in NODES {
        members.push(Instance::start(&format!("agent of {node}"), node, agent_seat::<Node>(), cluster, truth));
    }
    members
}

/// The world after the first node has fallen silent and somebody has noticed.
pub fn fallen_silent(world: World) -> World {
    let moves = user(&world);
    let Some(at) = moves.iter().position(|one| one.label.ends_with("Unknown")) else { return world };
    let step = Move { step: Step::User(at as u8), budget: world.budget, behind: None, calm: false };
    world.take(step, &moves).world
}

pub(crate) fn lease(node: &str) -> ObjectRef {
    ObjectRef::namespaced(Kind::Lease, names::NODE_LEASES, node)
}

/// What says that a node is silent, or was.
pub(crate) fn mark(node: &str) -> ObjectRef {
    ObjectRef::namespaced(Kind::Lease, NAMESPACE, format!("silence-of-{node}"))
}

pub(crate) fn patch(target: ObjectRef, subresource: Option<Subresource>, body: Value) -> Write {
    Write::Patch { target, subresource, patch: Patch::merge(Precondition::default(), body) }
}

pub(crate) const SILENT: &str = "silent";
pub(crate) const BACK: &str = "back";

impl World {
    fn silence(&self, node: &str) -> Option<String> {
        let held = self.cluster.read(&mark(node))?;
        held.object.meta().annotation("state").map(String::from)
    }

    /// The node does nothing, and does not renew its Lease.
    pub(crate) fn is_silent(&self, node: &str) -> bool {
        !node.is_empty() && self.silence(node).as_deref() == Some(SILENT)
    }

    /// The node is silent, or was: volumes may have been taken from it.
    pub(crate) fn was_silent(&self, node: &str) -> bool {
        self.silence(node).is_some()
    }

    /// A living node renews its Lease before anybody reads it again.
    pub(crate) fn renew(&mut self, target: &ObjectRef) -> Vec<Event> {
        if target.kind != Kind::Lease || target.key.namespace != names::NODE_LEASES || self.is_silent(&target.key.name)
        {
            return Vec::new();
        }
        let Some(renewal) = self.renewal(target) else { return Vec::new() };
        match self.cluster.write("node", &renewal) {
            Ok(committed) => committed.events,
            Err(refusal) => unreachable!("a node may renew its Lease: {refusal}"),
        }
    }

    /// What a node writes to renew its Lease.
    pub(crate) fn renewal(&self, target: &ObjectRef) -> Option<Write> {
        let api::Object::Lease(before) = &self.cluster.read(target)?.object else { return None };
        let first = before.spec.renew_time.as_ref().is_some_and(|at| at.0 == RENEWALS[0]);
        Some(patch(target.clone(), None, json!({ "spec": { "renewTime": RENEWALS[usize::from(first)] } })))
    }
}

/// A node's own word, or what somebody says of it.
fn ready(status: &str) -> Write {
    let conditions = json!([{ "type": "Ready", "status": status }]);
    let target = ObjectRef::cluster(Kind::Node, NODES[0]);
    patch(target, Some(Subresource::Status), json!({ "status": { "conditions": conditions } }))
}

pub(crate) fn falls_silent(node: &str) -> Write {
    let meta = json!({ "name": mark(node).key.name, "namespace": NAMESPACE, "annotations": { "state": SILENT } });
    let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta });
    Write::Create { target: mark(node), body }
}

/// The first node falls silent, noticed or not, and is heard again, once; the pod moves.
pub fn user(world: &World) -> Vec<UserMove> {
    let node = NODES[0];
    let mut moves: Vec<UserMove> = attach::user(world).into_iter().take(1).collect();
    match world.silence(node).as_deref() {
        None => {
            let falls = falls_silent(node);
            moves.push(UserMove { label: format!("{node} falls silent"), writes: vec![falls.clone()] });
            moves.push(UserMove {
                label: format!("{node} falls silent and is said to be Unknown"),
                writes: vec![falls, ready("Unknown")],
            });
        }
        Some(SILENT) => {
            let back = patch(mark(node), None, json!({ "metadata": { "annotations": { "state": BACK } } }));
            moves.push(UserMove { label: format!("{node} is heard again"), writes: vec![back, ready("True")] });
        }
        Some(_) => {}
    }
    moves
}

/// Once the node is heard again, or if it never was silent, all is as in the world `attach`. While it is silent, a pod
/// that was moved away from it runs, if somebody has said that the node is silent.
pub fn rest(world: &World) -> Option<Violation> {
    if !world.is_silent(NODES[0]) {
        return attach::rest(world);
    }
    let unheard = |node: &api::Node| node.status.conditions.iter().any(|condition| condition.status == "Unknown");
    let noticed = world.cluster.nodes().any(|node| node.metadata.name == NODES[0] && unheard(node));
    let moved = world.cluster.pods().any(|pod| pod.spec.node_name == NODES[1] && !pod.metadata.is_deleting());
    let runs = world.truth.hosts.get(NODES[1]).is_some_and(|host| host.processes.values().any(|runs| *runs));
    (noticed && moved && !runs).then(|| Violation::PodDoesNotRun { node: NODES[1].into() })
}
