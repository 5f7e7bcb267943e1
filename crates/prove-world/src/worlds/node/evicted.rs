//! A node falls silent while a volume is mounted there for a pod, and the node lifecycle controller notices.
//!
//! Beside those of `node-dead` the node lifecycle controller, which nobody tells anything: it reads Leases, calls the
//! node Unknown, taints it and evicts the pod. The attach/detach controller takes the volume after a time without a
//! sign of life (`--force-detach-after`). The user makes the pod's successor, as a deployment would, and the node may
//! be heard again at any moment: then it renews its Lease and says that it is ready.
//!
//! Time passes for the lifecycle controller as it waits ([`Watchful`]). Of a node that was seen to live one look is
//! like another, so such a node is looked at again only when it is silent. The time for which the pod tolerates the
//! taint is over at once.

use api::{Kind, Node, Object, ObjectRef, Subresource, Write};
use control::{BackOff, Cache, Change, Decision, Outcome, Pulse, Route, Rules, Timestamp};
use rules_attachdetach::Local;
use rules_attacher::Attacher;
use rules_nodelifecycle::{Action, Key, Memory, NodeLifecycle, Reason, View};
use serde_json::json;

use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::world::{UserMove, World};
use crate::worlds::attach::{self, NODES, attacher};
use crate::worlds::node::dead::{self, BACK, BETWEEN_READS, FIRST_READ, Patient, SILENT, lease, mark, patch};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "node-evicted",
    about: "nodelifecycle, attachdetach, attacher and two node agents; a node falls silent, loses pod and volume, and \
            is heard again",
    start: || start::<Watchful>(Seat::fixed(|_, _| ())),
    user,
    rest,
    waives: &[],
};

/// Of what the class says nothing, this long without a sign of life.
const FORCE_AFTER: u64 = 40_000;
/// When pods are looked at: later than any taint is added and tolerated.
const LATER: Timestamp = Timestamp(10_000_000);

/// The node lifecycle controller, for which time passes as it waits.
pub struct Watchful;

impl Watchful {
    /// When a key is looked at: at the last read of a Lease.
    fn now(view: &View, memory: &Memory) -> Timestamp {
        let first = if matches!(view, View::Pod(_)) { LATER } else { FIRST_READ };
        memory.pulse.as_ref().map_or(first, |pulse| pulse.read)
    }

    /// Decides at that moment, and at the end of the wait unless the node lives.
    pub fn decide(silent: bool, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match NodeLifecycle::decide(Watchful::now(view, memory), view, memory) {
            Decision::Wait(until, _) if silent || memory.pulse.as_ref().is_none_or(|pulse| !pulse.beats) => {
                NodeLifecycle::decide(until, view, memory)
            }
            other => other,
        }
    }
}

impl Rules for Watchful {
    const NAME: &'static str = NodeLifecycle::NAME;
    type Key = Key;
    type Local = ();
    /// And whether the node is silent, which no rule sees: it says when it is worth looking again.
    type View = (View, bool);
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = &[];

    fn watches() -> &'static [Kind] {
        NodeLifecycle::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &()) -> Vec<Key> {
        let mut keys = NodeLifecycle::wakes(change, cache, local);
        if let Some(Object::Lease(lease)) = change.object() {
            keys.extend(NODES.iter().filter(|node| mark(node).key == lease.metadata.key()).map(|node| of(node)));
        }
        keys
    }

    fn keys(cache: &Cache, local: &()) -> Vec<Key> {
        NodeLifecycle::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &()) -> (View, bool) {
        let marked = |node: &str| {
            let mark = cache.lease(&mark(node).key);
            mark.is_some_and(|mark| mark.metadata.annotation("state") == Some(SILENT))
        };
        let silent = matches!(key, Key::Node(node) if marked(node));
        (NodeLifecycle::view(key, cache, local), silent)
    }

    fn decide(_: Timestamp, (view, silent): &(View, bool), memory: &Memory) -> Decision<Action, Reason> {
        Watchful::decide(*silent, view, memory)
    }

    /// At the moment of the read; what is new is as new as ever.
    fn remember(_: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        let now = match did {
            Action::ReadLease { .. } => {
                memory.pulse.as_ref().map_or(FIRST_READ, |pulse| pulse.read.after_millis(BETWEEN_READS))
            }
            _ => FIRST_READ,
        };
        let mut memory = NodeLifecycle::remember(now, memory, did, got);
        if let Some(pulse) = memory.pulse.as_mut().filter(|pulse| pulse.since == now) {
            *pulse = Pulse { since: FIRST_READ, read: FIRST_READ, ..pulse.clone() };
        }
        memory
    }

    fn learn(_: &mut (), _: &Action, _: &Outcome, _: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off(local: &()) -> BackOff {
        NodeLifecycle::back_off(local)
    }

    fn object(key: &Key) -> ObjectRef {
        NodeLifecycle::object(key)
    }
}

fn of(node: &str) -> Key {
    Key::Node(node.into())
}

/// The world with other rules in the place of the node lifecycle controller, from the moment the pod runs.
pub fn start<L: Actor>(lifecycle: Seat<L>) -> World {
    let (cluster, truth) = dead::furnished();
    let detach = Seat::<Patient>::fixed(|_, _| Local { force_after: Some(FORCE_AFTER), ..Local::default() });
    let attacher = Seat::<Attacher>::fixed(|_, _| attacher());
    let mut members = dead::attaching(detach, attacher, &cluster, &truth);
    members.push(Instance::start("nodelifecycle", "", lifecycle, &cluster, &truth));
    attach::running(World::of(cluster, truth, members))
}

/// The first node falls silent, and is heard again, once; the pod gets a successor when it is on its way out.
pub fn user(world: &World) -> Vec<UserMove> {
    let node = NODES[0];
    let mut moves = Vec::new();
    if world.cluster.pods().all(|pod| pod.metadata.is_deleting()) {
        moves.push(attach::creation(world, NODES[1]));
    }
    if world.is_silent(node) {
        moves.push(UserMove { label: format!("{node} is heard again"), writes: heard_again(world, node) });
    } else if !world.was_silent(node) {
        moves.push(UserMove { label: format!("{node} falls silent"), writes: vec![dead::falls_silent(node)] });
    }
    moves
}

/// A node that is back renews its Lease and says that it is ready, since just now.
fn heard_again(world: &World, node: &str) -> Vec<Write> {
    let back = patch(mark(node), None, json!({ "metadata": { "annotations": { "state": BACK } } }));
    let ready = json!([{ "type": "Ready", "status": "True", "lastHeartbeatTime": "1970-01-01T00:05:00Z" }]);
    let status = json!({ "status": { "conditions": ready } });
    let says = patch(ObjectRef::cluster(Kind::Node, node), Some(Subresource::Status), status);
    [back].into_iter().chain(world.renewal(&lease(node))).chain([says]).collect()
}

/// A silent node is called so and keeps no pod but one that only it can end; a successor runs. One that is heard of is
/// free of taints, and all is as in the world `attach`.
pub fn rest(world: &World) -> Option<Violation> {
    let is_ready = |node: &Node| node.status.conditions.iter().any(|one| one.r#type == "Ready" && one.status == "True");
    let node = world.cluster.nodes().find(|node| node.metadata.name == NODES[0])?;
    let name = || node.metadata.name.clone();
    if !world.is_silent(NODES[0]) {
        let open = is_ready(node) && node.spec.taints.is_empty();
        return if open { attach::rest(world) } else { Some(Violation::NodeNotForgiven { node: name() }) };
    }
    let kept = world.cluster.pods().any(|pod| pod.spec.node_name == NODES[0] && !pod.metadata.is_deleting());
    if is_ready(node) || kept {
        return Some(Violation::NodeNotNoticed { node: name() });
    }
    let moved = world.cluster.pods().any(|pod| pod.spec.node_name == NODES[1] && !pod.metadata.is_deleting());
    let runs = world.truth.hosts.get(NODES[1]).is_some_and(|host| host.processes.values().any(|runs| *runs));
    (moved && !runs).then(|| Violation::PodDoesNotRun { node: NODES[1].into() })
}
