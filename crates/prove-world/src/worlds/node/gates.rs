//! One volume of an in-tree plugin, two nodes of different gates, and a pod that moves between them.
//!
//! The attach/detach controller with the plugin's gate on ([`controllers`] switches it), and the attacher of the
//! driver that takes the plugin over. The first node leaves the plugin's volumes to the driver. The second is switched
//! by the user, back and forth, once it is drained (S4-34 to S4-36): no pod is there, nothing is attached, and
//! everybody has heard of it.
//!
//! # What is left out
//!
//! Nodes here mount nothing; the worlds `attach` and `node` are about that. A node says in its status that it uses a
//! volume, under the plugin's name or the driver's, before anything is mounted and until nothing is (S4-33). It knows
//! how it was started by a look at its own CSINode, which the user writes where a kubelet would as it starts. What
//! attaches for the plugin is not there: a cloud does not attach a disk to a second node.

pub mod controllers;

use std::fmt;
use std::sync::Arc;

use api::{Kind, Node, Object, ObjectKey, ObjectRef, Patch, Pod, Precondition, Seen, Write, names};
use control::{Action, Cache, Decision, Effect, Outcome, Permission, Reply, Route, Rules, Timestamp, Why, routes};
use csi::ControllerRpc;
use rules_attachdetach::{AttachDetach, Local};
use rules_attacher::Attacher;
use rules_translate::{Migration, NodeSays, Phase, Plugin};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Member, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::attach::{self, INCARNATIONS, NODES};
use crate::worlds::put;

/// Both nodes leave the plugin's volumes to the driver, and the pod is on the first.
pub const SCENARIO: Scenario = Scenario {
    name: "node-gates",
    about: "attachdetach and attacher with a volume of an in-tree plugin; one of two nodes is switched to its plugin \
            and back, and a pod moves",
    start: || start::<AttachDetach>(gate()),
    user,
    rest,
    waives: &[],
};

/// The second node serves by the plugin, and a pod there uses the volume.
pub const BY_PLUGIN: Scenario = Scenario {
    name: "node-gates-held",
    about: "the same from the moment a pod uses the volume on the node that serves it by the plugin",
    start: || held::<AttachDetach>(gate()),
    ..SCENARIO
};

/// No pod is there yet, and pods come to the node that is switched alone: what the cluster says of the node and what is
/// known of it meet.
pub const SWITCHED_EARLY: Scenario = Scenario {
    name: "node-gates-switched",
    about: "the same before there is any pod, with pods on the node that is switched alone",
    start: || empty::<AttachDetach>(gate()),
    user: |world| {
        let mut moves: Vec<UserMove> = match is_live(world) {
            true => attach::user(world).into_iter().skip(1).collect(),
            false => vec![attach::creation(world, SWITCHED)],
        };
        moves.extend(switching(world));
        moves
    },
    ..SCENARIO
};

/// The plugin whose driver serves its volumes.
pub const PLUGIN: Plugin = Plugin::AwsEbs;
const DISK: &str = "vol-1";
/// The node that is switched.
const SWITCHED: &str = NODES[1];

/// The plugin's gate is as it was switched, which is on where nobody does, and the plugin is still there.
pub fn gate<R: Rules<Local = Local>>() -> Seat<R> {
    Seat::fixed(|truth, _| Local { migration: migration(truth), ..Local::default() })
}

fn migration(truth: &Truth) -> Migration {
    let phase = if truth.switched_off.contains(&PLUGIN) { Phase::Off } else { Phase::On };
    Migration::OFF.with(PLUGIN, phase)
}

/// The world with other rules in the place of the attach/detach controller.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    start_with(seat, attacher())
}

/// The world with other rules in that place, and an attacher that goes by other gates.
pub fn start_with<R: Actor>(seat: Seat<R>, attacher: Seat<Attacher>) -> World {
    started(seat, attacher, [true, true], Some(NODES[0]))
}

/// The same from the moment the second node uses the volume by the plugin.
pub fn held<R: Actor>(seat: Seat<R>) -> World {
    let world = started(seat, attacher(), [true, false], Some(SWITCHED));
    world.played(|world| world.cluster.nodes().any(|node| node.reports_in_use(&by_plugin())))
}

/// The same before there is any pod.
pub fn empty<R: Actor>(seat: Seat<R>) -> World {
    started(seat, attacher(), [true, true], None)
}

/// The attacher of the plugin's driver.
pub fn attacher_local(migration: Migration) -> rules_attacher::Local {
    let local = rules_attacher::Local::new(PLUGIN.driver(), [ControllerRpc::PublishUnpublishVolume]);
    rules_attacher::Local { migration, ..local }
}

fn attacher() -> Seat<Attacher> {
    Seat::fixed(|truth, _| attacher_local(migration(truth)))
}

fn started<R: Actor>(seat: Seat<R>, attacher: Seat<Attacher>, left: [bool; 2], place: Option<&str>) -> World {
    let mut cluster = Cluster::new();
    for ((node, incarnation), left) in NODES.iter().zip(INCARNATIONS).zip(left) {
        attach::put_node(&mut cluster, node, incarnation);
        let drivers = json!([{ "name": PLUGIN.driver(), "nodeID": node, "topologyKeys": null }]);
        for body in [json!({ "spec": { "drivers": drivers } }), says(left)] {
            setup(&mut cluster, &patch(node, Kind::CSINode, body));
        }
    }
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": true } });
    put(&mut cluster, ObjectRef::cluster(Kind::CSIDriver, PLUGIN.driver()), driver);
    attach::put_bound(&mut cluster, json!({ "awsElasticBlockStore": { "volumeID": DISK, "fsType": "ext4" } }));
    if let Some(place) = place {
        setup(&mut cluster, &attach::create("app-0", place));
    }
    let truth = Arc::new(Truth::default());
    let mut members: Vec<Arc<dyn Member>> = vec![
        Instance::start("attachdetach", "", seat, &cluster, &truth),
        Instance::start("attacher", "", attacher, &cluster, &truth),
    ];
    for node in NODES {
        let kubelet = Seat::<Kubelet> {
            build: |_, node| node.into(),
            refresh: |_, _, _| false,
            digest: |node, hasher| hasher.write(node.as_bytes()),
        };
        members.push(Instance::start(&format!("kubelet of {node}"), node, kubelet, &cluster, &truth));
    }
    World::of(cluster, truth, members)
}

fn setup(cluster: &mut Cluster, write: &Write) {
    if let Err(refusal) = cluster.write("setup", write) {
        unreachable!("the world is set up with writes the API takes: {refusal}");
    }
}

fn patch(node: &str, kind: Kind, body: Value) -> Write {
    let patch = Patch::merge(Precondition::default(), body);
    Write::Patch { target: ObjectRef::cluster(kind, node), subresource: None, patch }
}

/// What a CSINode says of the plugin.
fn says(left: bool) -> Value {
    json!({ "metadata": { "annotations": { names::MIGRATED_PLUGINS: left.then(|| PLUGIN.name()) } } })
}

fn by_plugin() -> String {
    format!("{}/{DISK}", PLUGIN.name())
}

fn by_driver() -> String {
    names::unique_volume_name(PLUGIN.driver(), DISK)
}

/// The pod moves, goes or comes; a drained node is switched.
fn user(world: &World) -> Vec<UserMove> {
    let mut moves = match is_live(world) {
        true => attach::user(world),
        false => NODES.iter().map(|node| attach::creation(world, node)).collect(),
    };
    moves.extend(switching(world));
    moves
}

fn is_live(world: &World) -> bool {
    world.cluster.pods().any(|pod| !pod.metadata.is_deleting())
}

fn switching(world: &World) -> Option<UserMove> {
    let left = !world.leaves(SWITCHED, PLUGIN);
    let to = if left { PLUGIN.driver() } else { PLUGIN.name() };
    let writes = vec![patch(SWITCHED, Kind::CSINode, says(left))];
    is_drained(world).then(|| UserMove { label: format!("switch {SWITCHED} to {to}"), writes })
}

/// S4-34: nobody is on the node that is switched, and nothing of it is on its way.
fn is_drained(world: &World) -> bool {
    let node = world.cluster.nodes().find(|node| node.metadata.name == SWITCHED);
    let uses = |node: &Arc<Node>| [by_plugin(), by_driver()].iter().any(|name| node.reports_in_use(name));
    world.is_fresh()
        && world.cluster.pods().all(|pod| pod.spec.node_name != SWITCHED)
        && world.cluster.attachments().all(|one| one.spec.node_name != SWITCHED)
        && !node.is_some_and(uses)
}

/// A live pod's volume is served by whom its node leaves it to, and nothing is left of any other.
fn rest(world: &World) -> Option<Violation> {
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    let wanted = world.cluster.pods().next().map(|pod| pod.spec.node_name.clone());
    for node in world.cluster.nodes() {
        let name = &node.metadata.name;
        let here = wanted.as_ref() == Some(name);
        let left = world.leaves(name, PLUGIN);
        let uses = [node.reports_in_use(&by_driver()), node.reports_in_use(&by_plugin())];
        if uses != [here && left, here && !left] || node.reports_attached(&by_driver()) != (here && left) {
            return Some(Violation::NodeStatusUntrue { node: name.clone() });
        }
    }
    let served = wanted.filter(|node| world.leaves(node, PLUGIN));
    let nodes: Vec<_> = world.cluster.attachments().map(|one| one.spec.node_name.clone()).collect();
    let attached = world.truth.attached.get(DISK).into_iter().flatten().cloned();
    if nodes.iter().cloned().ne(attached) || nodes != Vec::from_iter(served) {
        return Some(Violation::AttachmentsTo { nodes });
    }
    None
}

/// A node that says what it uses.
struct Kubelet;

/// The node's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Name(String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The node, and the pods on it.
type Facts = (Option<Arc<Node>>, Vec<Arc<Pod>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Deed {
    /// It looks how it was started, for the pod of this uid.
    Look { node: String, pod: String },
    /// It says that it uses these.
    Use { node: Seen, names: Vec<String> },
    /// The pod has ended.
    Remove(Seen),
}

impl Action for Deed {
    fn name(&self) -> &'static str {
        match self {
            Deed::Look { .. } => "Look",
            Deed::Use { .. } => "Use",
            Deed::Remove(_) => "Remove",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Deed::Look { node, .. } => Effect::Read(ObjectRef::cluster(Kind::CSINode, node.clone())),
            Deed::Use { node, names } => {
                let used = if names.is_empty() { Value::Null } else { json!(names) };
                Effect::Write(node.patch_status(json!({ "status": { "volumesInUse": used } })))
            }
            Deed::Remove(pod) => {
                Effect::Write(Write::Delete { target: pod.object.clone(), only_if: pod.same(), grace_seconds: Some(0) })
            }
        }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 3] = [
            Permission::new(Kind::CSINode, "", "get"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::Pod, "", "delete"),
        ];
        &ALL
    }
}

control::reasons! {
    /// What a node does about its pods.
    pub enum KubeletReason {
        Working,
        AsItShould,
    }
}

impl Kubelet {
    /// The old pod goes before the new one begins.
    fn next((node, pods): &Facts, known: Option<&(String, String)>) -> Option<Deed> {
        let node = node.as_ref()?;
        let used: Vec<String> = node.status.volumes_in_use.iter().flatten().cloned().collect();
        let uses =
            |names: Vec<String>| (used != names).then(|| Deed::Use { node: Seen::of::<Node>(&node.metadata), names });
        if let Some(ended) = pods.iter().find(|pod| pod.metadata.is_deleting()) {
            return uses(Vec::new()).or_else(|| Some(Deed::Remove(Seen::of::<Pod>(&ended.metadata))));
        }
        let Some(pod) = pods.first() else { return uses(Vec::new()) };
        match known.filter(|(uid, _)| *uid == pod.metadata.uid) {
            None => Some(Deed::Look { node: node.metadata.name.clone(), pod: pod.metadata.uid.clone() }),
            Some((_, name)) => uses(vec![name.clone()]),
        }
    }
}

impl Rules for Kubelet {
    const NAME: &'static str = "kubelet";
    type Key = Name;
    type Local = String;
    type View = Facts;
    type Action = Deed;
    type Reason = KubeletReason;
    /// The uid of the pod that it serves, and under which name it uses the pod's volume.
    type Memory = Option<(String, String)>;

    const ROUTES: &'static [Route<Self>] = routes![
        Pod => each(|pod: &Pod, woken| woken.wake(Name(pod.spec.node_name.clone()))),
        Node => each(|node: &Node, woken| woken.wake(Name(node.metadata.name.clone()))),
    ];

    fn keys(_: &Cache, node: &String) -> Vec<Name> {
        vec![Name(node.clone())]
    }

    /// Of its own node alone.
    fn view(Name(key): &Name, cache: &Cache, node: &String) -> Facts {
        if key != node {
            return (None, Vec::new());
        }
        (cache.node(&ObjectKey::cluster(node.clone())), cache.pods_by_node(node).collect())
    }

    fn decide(_: Timestamp, view: &Facts, known: &Self::Memory) -> Decision<Deed, KubeletReason> {
        match Kubelet::next(view, known.as_ref()) {
            Some(deed) => Decision::Do(deed, Why::waiting(KubeletReason::Working, "there is something to do")),
            None => Decision::Rest(Why::settled(KubeletReason::AsItShould, "it says what it uses")),
        }
    }

    fn remember(_: Timestamp, known: Self::Memory, did: &Deed, got: &Outcome) -> Self::Memory {
        match (did, got) {
            (Deed::Look { pod, .. }, Outcome::Done(Reply::Object(Object::CSINode(node)))) => {
                let left = NodeSays::of(Some(node)).leaves_to_csi(PLUGIN);
                Some((pod.clone(), if left { by_driver() } else { by_plugin() }))
            }
            (Deed::Remove(_), _) => None,
            (Deed::Look { .. } | Deed::Use { .. }, _) => known,
        }
    }

    fn learn(_: &mut String, _: &Deed, _: &Outcome, _: &Cache) -> Vec<Name> {
        Vec::new()
    }

    fn object(node: &Name) -> ObjectRef {
        ObjectRef::cluster(Kind::Node, node.0.clone())
    }
}
