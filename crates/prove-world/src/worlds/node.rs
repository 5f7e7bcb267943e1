//! One node whose machine is a model kernel (`prove-kernel`): its agent, and a CSI driver that mounts on the same
//! kernel.
//!
//! Everything the machine is asked may fail: no room, somebody uses it, an error of the disk with or without an
//! effect, an operation that hangs and goes on; the driver may refuse, answer late, or die between any two of its
//! operations; power may be lost at any moment, also between those two. Records are files of the kernel, and what
//! is left of them after a loss of power is what the kernel says.
//!
//! # What is left out
//!
//! The volumes of claims need no attachment: how the node waits for one is for the `attach` worlds. Pods have one
//! container without probes or hooks and one volume of a driver, so memory filesystems, config maps, subpaths and
//! fsGroup (reliability 51: the kernel knows no owners) are not in it. That a hung volume delays no other (50) cannot
//! be seen here, where nothing takes time: `io-host` and `io-run` show it on real threads.

pub mod dead;
pub mod evicted;
pub mod gates;
pub mod lost;
pub mod part;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::{Kind, ObjectRef, Pod, Precondition, VolumeMode, Write, names};
use control::{Effect, Rules};
use rules_node::Node;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::machine::KernelMachine;
use crate::member::{Instance, Intent, Member, Seat};
use crate::truth::{PretendHost, Truth};
use crate::world::{Late, USER, UserMove, World};
use crate::worlds::attach::{CLAIM, HANDLE, INCARNATIONS, NODES, VOLUME, agent_seat, put_node};
use crate::worlds::{DRIVER, put};

/// Two pods on one volume; the second one may only read.
pub const SCENARIO: Scenario = Scenario {
    name: "node",
    about: "a node's agent and driver on a model kernel; two pods with one volume come and go",
    start: || start::<Node>(TWO_PODS, agent_seat()),
    user: |world| user(world, 2),
    rest: |world| rest(world, 2),
    waives: &[],
};

/// The same with nothing going wrong, which leaves no directory behind either: of pods that are deleted by force before
/// anything of them ran the agent finds the directories, and sweeps them (KL-99).
pub const TIDY: Scenario = Scenario {
    name: "node-tidy",
    about: "the same with nothing going wrong: no directory is left of pods that went",
    rest: tidy,
    ..SCENARIO
};

/// Two pods on a volume that takes one at a time.
pub const ONE_POD: Scenario = Scenario {
    name: "node-one-pod",
    about: "the same with a volume that takes one pod at a time",
    start: || start::<Node>(Shape { mode: "ReadWriteOncePod", ..TWO_PODS }, agent_seat()),
    rest: |world| rest(world, 1),
    ..SCENARIO
};

/// A raw device. An agent that starts anew has the driver stage a device again, because nothing shows that it is
/// staged, so the law of silent restarts is not judged.
pub const BLOCK: Scenario = Scenario {
    name: "node-block",
    about: "a node's agent and driver on a model kernel; a pod with a raw device comes and goes",
    start: || start::<Node>(Shape { block: true, ..ONE }, agent_seat()),
    user: |world| user(world, 1),
    rest: |world| rest(world, 1),
    waives: &[crate::laws::Law::SilentRestart],
};

/// A volume that is staged with a secret, which is not there yet and comes.
pub const SECRET: Scenario = Scenario {
    name: "node-secret",
    about: "a node's agent and driver on a model kernel; a pod whose volume needs a secret that comes late",
    start: || start::<Node>(Shape { secret: true, ..ONE }, agent_seat()),
    user: |world| user(world, 1),
    rest: |world| rest(world, 1),
    waives: &[],
};

/// A pod with a volume of its own. Its driver attaches, and the volume is published all the same, and nothing else.
pub const INLINE: Scenario = Scenario {
    name: "node-inline",
    about: "a node's agent and driver on a model kernel; a pod with a volume in its own spec comes and goes",
    start: || start::<Node>(Shape { inline: true, ..ONE }, agent_seat()),
    user: |world| user(world, 1),
    rest: rest_inline,
    waives: &[],
};

/// A volume whose record somebody spoiled while its pod runs and the agent is down.
pub const UNREADABLE: Scenario = Scenario {
    name: "node-unreadable",
    about: "a node's agent and driver on a model kernel; the record of a volume in use cannot be read",
    start: || spoiled::<Node>(agent_seat()),
    user: |world| user(world, 1),
    rest: |_| None,
    waives: &[],
};

/// How a world is furnished.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The access mode of claim and volume.
    pub mode: &'static str,
    /// The volume is a raw device.
    pub block: bool,
    /// The volume is staged with a secret.
    pub secret: bool,
    /// The volume is in the pod's own spec.
    pub inline: bool,
    /// Pods that are there from the start.
    pub pods: u8,
}

/// One pod with a plain volume.
pub const ONE: Shape = Shape { mode: "ReadWriteOnce", block: false, secret: false, inline: false, pods: 1 };
/// Two pods with a plain volume.
pub const TWO_PODS: Shape = Shape { pods: 2, ..ONE };

/// What nobody but the driver may be told.
pub(crate) const CANARY: &str = "canary-of-the-secret";
const SECRET_NAME: &str = "key";
const GI: u64 = 1 << 30;

/// The world with other rules in the place of the agent.
pub fn start<N: Rules<Local = rules_node::Local>>(shape: Shape, agent: Seat<N>) -> World {
    let mut cluster = Cluster::new();
    put_node(&mut cluster, NODES[0], INCARNATIONS[0]);
    let modes: &[&str] = if shape.inline { &["Ephemeral"] } else { &["Persistent"] };
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": shape.inline, "volumeLifecycleModes": modes } });
    put(&mut cluster, ObjectRef::cluster(Kind::CSIDriver, DRIVER), driver);
    if !shape.inline {
        put_bound_volume(&mut cluster, shape);
    }
    for number in 0..shape.pods {
        let name = format!("app-{number}");
        let target = ObjectRef::namespaced(Kind::Pod, NAMESPACE, name.as_str());
        put(&mut cluster, target, if shape.inline { inline_body(&name) } else { pod_body(&name, shape.block) });
    }
    let truth = Arc::new(if shape.inline { machine(&[], &[]) } else { truth(shape.block) });
    let members: Vec<Arc<dyn Member>> = vec![Instance::start("agent", NODES[0], agent, &cluster, &truth)];
    let mut world = World::of(cluster, truth, members);
    if shape.secret {
        let target = ObjectRef::namespaced(Kind::Secret, NAMESPACE, SECRET_NAME);
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET_NAME, "namespace": NAMESPACE },
            "stringData": { "key": CANARY },
        });
        let intent =
            Intent { label: "create the secret".into(), effect: Effect::Write(Write::Create { target, body }) };
        world.late.push(Late { actor: USER.into(), node: String::new(), intent: Arc::new(intent) });
    }
    world
}

/// A machine with the volume's image on it.
pub(crate) fn truth(block: bool) -> Truth {
    machine(&[HANDLE], if block { &[HANDLE] } else { &[] })
}

fn machine(volumes: &[&str], devices: &[&str]) -> Truth {
    let machine = Some(Arc::new(KernelMachine::new(volumes, devices, GI)));
    let mut truth = Truth::default();
    let host = PretendHost { incarnation: INCARNATIONS[0], machine, ..PretendHost::default() };
    truth.hosts.insert(NODES[0].into(), host);
    truth
}

/// The world with a pod that runs, whose record was spoiled before the agent started anew.
pub fn spoiled<N: Rules<Local = rules_node::Local>>(agent: Seat<N>) -> World {
    let mut world = crate::worlds::attach::running(start::<Node>(ONE, agent_seat()));
    let truth = Arc::make_mut(&mut world.truth);
    for path in truth.hosts.values().flat_map(|host| host.files.keys().cloned()).collect::<Vec<_>>() {
        truth.with_machine(NODES[0], |machine| {
            machine.spoil(&path, b"{");
            control::Outcome::Done(control::Reply::Nothing)
        });
    }
    if let Some(host) = truth.hosts.get_mut(NODES[0]) {
        host.spoiled = true;
    }
    world.members = vec![Instance::start("agent", NODES[0], agent, &world.cluster, &world.truth)];
    world
}

fn put_bound_volume(cluster: &mut Cluster, shape: Shape) {
    let size = json!({ "storage": "1Gi" });
    let (modes, volume_mode) = (json!([shape.mode]), if shape.block { "Block" } else { "Filesystem" });
    let claim = json!({
        "metadata": {},
        "spec": {
            "storageClassName": "", "accessModes": modes, "resources": { "requests": size }, "volumeName": VOLUME,
            "volumeMode": volume_mode,
        },
        "status": { "phase": "Bound", "accessModes": modes, "capacity": size },
    });
    put(cluster, ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM), claim);
    let uid = cluster.claims().next().map(|claim| claim.metadata.uid.clone()).unwrap_or_default();
    let mut source = json!({ "driver": DRIVER, "volumeHandle": HANDLE });
    if !shape.block {
        source["fsType"] = "ext4".into();
    }
    if shape.secret {
        source["nodeStageSecretRef"] = json!({ "namespace": NAMESPACE, "name": SECRET_NAME });
    }
    let volume = json!({
        "metadata": {},
        "spec": {
            "capacity": size, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": volume_mode,
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": NAMESPACE, "name": CLAIM, "uid": uid,
            },
            "csi": source,
        },
        "status": { "phase": "Bound" },
    });
    put(cluster, ObjectRef::cluster(Kind::PersistentVolume, VOLUME), volume);
}

/// A pod on the node. Every second one may only read.
pub(crate) fn pod_body(name: &str, block: bool) -> Value {
    let read_only = name.ends_with(['1', '3', '5']);
    let mut container = json!({ "name": "main", "image": "host", "command": ["/bin/sleep", "infinity"] });
    if block {
        container["volumeDevices"] = json!([{ "name": "data", "devicePath": "/dev/data" }]);
    } else {
        container["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "nodeName": NODES[0],
            "containers": [container],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": CLAIM, "readOnly": read_only } }],
        },
    })
}

/// A pod with a volume of its own that it may only read.
fn inline_body(name: &str) -> Value {
    let mut pod = pod_body(name, false);
    pod["spec"]["volumes"] = json!([{ "name": "data", "csi": { "driver": DRIVER, "readOnly": true } }]);
    pod
}

fn live(world: &World) -> impl Iterator<Item = &Arc<Pod>> {
    world.cluster.pods().filter(|pod| !pod.metadata.is_deleting())
}

/// The user deletes a pod, or deletes it by force, or makes one if fewer than so many are there.
pub fn user(world: &World, most: usize) -> Vec<UserMove> {
    let delete = |pod: &Pod, grace_seconds| Write::Delete {
        target: ObjectRef { kind: Kind::Pod, key: pod.metadata.key() },
        only_if: Precondition::same(&pod.metadata),
        grace_seconds,
    };
    let mut moves = Vec::new();
    for pod in live(world) {
        let name = &pod.metadata.name;
        moves.push(UserMove { label: format!("delete pod {name}"), writes: vec![delete(pod, None)] });
    }
    for pod in world.cluster.pods() {
        let name = &pod.metadata.name;
        moves.push(UserMove { label: format!("delete pod {name} by force"), writes: vec![delete(pod, Some(0))] });
    }
    if live(world).count() < most {
        let free = |name: &String| world.cluster.pods().all(|pod| pod.metadata.name != *name);
        let name = (0..).map(|n| format!("app-{n}")).find(free).unwrap_or_default();
        let block = world.cluster.volumes().any(|volume| *volume.volume_mode() == VolumeMode::Block);
        let target = ObjectRef::namespaced(Kind::Pod, NAMESPACE, name.as_str());
        let inline = world.cluster.volumes().next().is_none();
        let body = if inline { inline_body(&name) } else { pod_body(&name, block) };
        moves.push(UserMove { label: format!("create pod {name}"), writes: vec![Write::Create { target, body }] });
    }
    moves
}

/// As many pods run as there are and may, each with the volume, and nothing is left of any other.
pub fn rest(world: &World, most: usize) -> Option<Violation> {
    let node = NODES[0].to_string();
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    let host = world.truth.hosts.get(&node)?;
    let machine = host.machine.as_ref()?;
    let wanted = live(world).count().min(most);
    let runs = host.processes.values().filter(|runs| **runs).count();
    if runs != wanted || host.published.len() != wanted || host.staged.len() != usize::from(wanted > 0) {
        let short = runs < wanted || host.published.len() < wanted;
        return Some(if short { Violation::PodDoesNotRun { node } } else { Violation::LeftOnNode { node } });
    }
    let unique = names::unique_volume_name(DRIVER, HANDLE);
    if world.cluster.nodes().any(|node| node.reports_in_use(&unique) != (wanted > 0)) {
        return Some(Violation::NodeStatusUntrue { node });
    }
    if live(world).next().is_none() {
        let nothing = host.processes.is_empty() && host.files.is_empty() && machine.attached().is_empty();
        if !nothing {
            return Some(Violation::LeftOnNode { node });
        }
    }
    None
}

/// Every pod runs with its own volume, and the driver has no other (reliability 52).
fn rest_inline(world: &World) -> Option<Violation> {
    let node = NODES[0].to_string();
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    let host = world.truth.hosts.get(&node)?;
    let machine = host.machine.as_ref()?;
    let own = |pod: &Arc<Pod>| names::inline_volume_handle(&pod.metadata.uid, "data");
    let wanted: BTreeSet<String> = live(world).map(own).collect();
    let published: BTreeSet<String> = host.published.iter().map(|(volume, _)| volume.clone()).collect();
    if published != wanted || host.processes.values().filter(|runs| **runs).count() != wanted.len() {
        return Some(Violation::PodDoesNotRun { node });
    }
    if machine.inline_volumes() != wanted || machine.attached() != wanted || host.files.len() != wanted.len() {
        return Some(Violation::LeftOnNode { node });
    }
    let reports = |node: &Arc<api::Node>| node.status.volumes_in_use.iter().flatten().next().is_some();
    world.cluster.nodes().any(reports).then_some(Violation::NodeStatusUntrue { node })
}

/// The same, and no directory is left of any pod or volume either. One whose removal the machine refuses may stay,
/// so this is asked for only where nothing goes wrong.
fn tidy(world: &World) -> Option<Violation> {
    let left = || {
        let machine = world.truth.hosts.get(NODES[0])?.machine.as_ref()?;
        let shared = |path: &String| SHARED.iter().any(|shared| path.ends_with(shared));
        machine.left().into_iter().find(|path| !shared(path))
    };
    let found = rest(world, 2);
    let nobody = live(world).next().is_none();
    found.or_else(|| left().filter(|_| nobody).map(|path| Violation::PathLeft { path }))
}

/// Directories that are there for every volume and stay.
const SHARED: [&str; 8] = [
    "/plugins",
    "/plugins/kubernetes.io",
    "/plugins/kubernetes.io/csi",
    "/csi/local.csi.longshore",
    "/csi/volumeDevices",
    "/volumeDevices/staging",
    "/volumeDevices/publish",
    "/longshore/pods",
];
