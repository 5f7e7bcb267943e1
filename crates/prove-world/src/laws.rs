//! The laws, and nothing of the rules.
//!
//! A second opinion on every state and every effect: it looks at the objects, at the driver and at the machines, and
//! does not know which controller exists or how it decides. Numbers are those of the reliability reference.

use api::names;
use api::{Object, Patch, PersistentVolume, VolumeAttachment, Write};
use control::host::Op;
use control::{Effect, Outcome};
use csi::Call;

use crate::cluster::Held;
use crate::laws_of_sizes::{bytes, expand, modify, sizes};
use crate::truth::{TIER, source_of};
use crate::world::World;

/// A law that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The law, in words.
    pub law: &'static str,
    /// How it was broken.
    pub text: String,
}

impl Broken {
    /// A broken law.
    pub fn new(law: &'static str, text: impl Into<String>) -> Broken {
        Broken { law, text: text.into() }
    }
}

/// Reliability 24 and 25.
pub const ONE_NODE: &str = "a single-node volume is on one node at a time";
/// Reliability 26 and 29: nothing is mounted that is not attached.
pub const MOUNTED_IS_ATTACHED: &str = "nothing is mounted that is not attached";
/// Reliability 26.
pub const NO_DETACH_WHILE_MOUNTED: &str = "a volume is not detached while it is mounted";
/// Reliability 30.
pub const MOUNTED_IS_IN_USE: &str = "what is mounted is reported in use";
/// Reliability 45.
pub const MOUNTED_IS_RECORDED: &str = "a record exists before the first node call and until the last";
/// Reliability 39 and 40.
pub const STAGE_ORDER: &str = "unstage never precedes the last unpublish";
/// Reliability 41 and 42.
pub const RUNNING_HAS_VOLUMES: &str = "a process runs only while its volumes are in place";
/// Reliability 32.
pub const ATTACHED_IS_ATTACHED: &str = "an attachment that says attached is attached";
/// Reliability 33.
pub const FINALIZER_AFTER_DETACH: &str = "an attachment's finalizer goes only after the driver has detached";
/// Reliability 1 and 7.
pub const ACCOUNTED: &str = "no volume exists that no object names and no intent records";
/// Reliability 6.
pub const INTENT_FIRST: &str = "the intent is recorded before the volume is created";
/// Reliability 8.
pub const NO_DELETE_IN_USE: &str = "a volume is not deleted while it is attached or bound";
/// Reliability 4 and 16.
pub const ONE_TO_ONE: &str = "a volume has at most one claim and a claim at most one volume";
/// Reliability 13: nothing is made for whoever is gone.
pub const FOR_A_CLAIM: &str = "a volume is created only for a claim that exists, or on an intent that will undo it";
/// Reliability 12.
pub const SOURCE_STAYS: &str = "what a volume is made from is not deleted while that is under way";
/// Reliability 55: what is said of a size is true, and no volume shrinks.
pub const SIZES_TRUE: &str = "a claim says no more than its volume, its volume no more than there is, and none shrinks";
/// Reliability 56.
pub const NODE_FIRST: &str = "a claim's size rises only after its filesystem has grown";
/// Reliability 57.
pub const SIZE_ON_RECORD: &str = "the size asked of the driver, and any that may still come, is on record in the claim";
/// Reliability 58.
pub const NEVER_SMALLER: &str = "the driver is never asked for less than the volume has";
/// Reliability 60.
pub const ATTRIBUTES_TRUE: &str =
    "attributes are named only when the driver has them, and on record before it is asked";
/// Reliability 37, 49, 115: rest.
pub const AS_ASKED: &str = "at rest the world is as asked";
/// Reliability 114.
pub const SILENT_RESTART: &str = "a restart at rest changes nothing";
/// Nobody waits for a wake that never comes.
pub const NOBODY_OVERSLEEPS: &str = "whoever has something to do is woken";
/// Reliability 109 and 115.
pub const COMES_TO_REST: &str = "when user and faults stop, the world comes to rest";

/// Reliability 85, 99.
pub const VERSIONS_GROW: &str = "versions only grow, and an object keeps its uid and its deletion";
/// Reliability 86.
pub const STALE_IS_REFUSED: &str = "a write on a stale version or a foreign uid is refused and changes nothing";
/// Reliability 99.
pub const FINALIZERS_HOLD: &str = "an object stays while it has finalizers";

/// Laws of every step: how objects may change.
pub(crate) fn passage(before: &World, after: &World) -> Option<Broken> {
    for kind in Object::KINDS {
        let (old, new) = (before.cluster.version(kind), after.cluster.version(kind));
        if old > new {
            return Some(Broken::new(VERSIONS_GROW, format!("{kind} went from {old} to {new}")));
        }
        if old == new {
            continue;
        }
        for held in after.cluster.all(kind) {
            if let Some(broken) = kept(before, held, old).or_else(|| grown(before, held)) {
                return Some(broken);
            }
        }
        for held in before.cluster.all(kind) {
            let meta = held.object.meta();
            let gone = after.cluster.read(&held.object.reference()).is_none_or(|now| now.object.meta().uid != meta.uid);
            let guarded = meta.finalizers.len() > 1 || (!meta.finalizers.is_empty() && !meta.is_deleting());
            if gone && guarded && before.cluster.version(kind) + 1 == new {
                return Some(Broken::new(
                    FINALIZERS_HOLD,
                    format!("{} went with {:?}", held.object.reference(), meta.finalizers),
                ));
            }
        }
    }
    None
}

fn kept(before: &World, held: &Held, old: u64) -> Option<Broken> {
    let broken = |text: &str| Some(Broken::new(VERSIONS_GROW, format!("{} {text}", held.object.reference())));
    let now = held.object.meta();
    let was = before.cluster.read(&held.object.reference());
    let Some(was) = was.map(|was| was.object.meta()).filter(|was| was.uid == now.uid) else {
        return if now.version() <= old { broken("is new under an old version") } else { None };
    };
    if was.resource_version == now.resource_version {
        return None;
    }
    if now.version() <= old {
        return broken("changed under an old version");
    }
    if was.creation_timestamp != now.creation_timestamp || (was.is_deleting() && !now.is_deleting()) {
        return broken("changed what never changes");
    }
    None
}

fn grown(before: &World, held: &Held) -> Option<Broken> {
    let Object::PersistentVolume(now) = &held.object else { return None };
    let was = before.cluster.volumes().find(|was| was.metadata.uid == now.metadata.uid)?;
    let (old, new) = (bytes(&was.spec.capacity), bytes(&now.spec.capacity));
    (new < old).then(|| Broken::new(SIZES_TRUE, format!("{} shrank from {old} to {new}", now.metadata.name)))
}

/// Laws of every write: what it believed was so, or it did nothing.
pub(crate) fn written(before: &World, after: &World, write: &Write, outcome: &Outcome) -> Option<Broken> {
    let kind = write.target().kind;
    let (uid, version) = belief(write);
    let true_still = before.cluster.read(write.target()).is_some_and(|held| {
        let meta = held.object.meta();
        uid.as_ref().is_none_or(|uid| *uid == meta.uid) && version.as_ref().is_none_or(|v| *v == meta.resource_version)
    });
    let touched = before.cluster.version(kind) != after.cluster.version(kind);
    let refused = matches!(outcome, Outcome::Refused(_));
    let wrong_belief = (uid.is_some() || version.is_some()) && !true_still;
    if (wrong_belief && !refused) || (refused && touched) {
        let text = format!("{} {} on uid {uid:?} version {version:?}", write.verb(), write.target());
        return Some(Broken::new(STALE_IS_REFUSED, text));
    }
    None
}

fn belief(write: &Write) -> (Option<String>, Option<String>) {
    match write {
        Write::Patch { patch: Patch::Merge(body) | Patch::Strategic(body), .. } => {
            let text = |field: &str| body["metadata"][field].as_str().map(str::to_string);
            (text("uid"), text("resourceVersion"))
        }
        Write::Delete { only_if, .. } => (only_if.uid.clone(), only_if.resource_version.clone()),
        Write::Bind { uid, .. } => (Some(uid.clone()), None),
        // Whatever came in between: a note may land at any time.
        Write::Note(note) => (Some(note.uid.clone()), None),
        Write::Create { .. } | Write::Patch { patch: Patch::Json(_), .. } => (None, None),
    }
}

/// Laws of every state.
pub(crate) fn state(world: &World) -> Option<Broken> {
    one_node(world)
        .or_else(|| mounts(world))
        .or_else(|| processes(world))
        .or_else(|| attachments(world))
        .or_else(|| volumes(world))
        .or_else(|| bindings(world))
        .or_else(|| sizes(world))
}

/// Laws of every effect, judged when it is begun and again when it happens.
pub(crate) fn effect(world: &World, actor: &str, node: &str, effect: &Effect) -> Option<Broken> {
    match effect {
        Effect::Call { call, .. } => self::call(world, actor, node, call),
        Effect::Host(Op::RemoveFile { path }) => {
            let held = world.truth.hosts.get(node)?;
            let (volume, _) =
                held.staged.iter().chain(&held.published).find(|(id, _)| path.contains(&names::staging_hash(id)))?;
            Some(Broken::new(
                MOUNTED_IS_RECORDED,
                format!("{actor} removes {path} while {volume} is mounted on {node}"),
            ))
        }
        Effect::Host(_) | Effect::Read(_) | Effect::Write(_) => None,
    }
}

fn call(world: &World, actor: &str, node: &str, call: &Call) -> Option<Broken> {
    match call {
        Call::ControllerUnpublishVolume(request) => {
            let host = world.truth.hosts.get(&request.node_id)?;
            host.holds(&request.volume_id).then(|| {
                let text =
                    format!("{actor} detaches {} from {}, where it is mounted", request.volume_id, request.node_id);
                Broken::new(NO_DETACH_WHILE_MOUNTED, text)
            })
        }
        Call::NodeUnstageVolume(request) => {
            let host = world.truth.hosts.get(node)?;
            let (_, at) = host.published.iter().find(|(id, _)| *id == request.volume_id)?;
            Some(Broken::new(STAGE_ORDER, format!("{actor} unstages {}, published at {at}", request.volume_id)))
        }
        Call::NodeStageVolume(request) => recorded(world, actor, node, &request.volume_id),
        Call::NodePublishVolume(request) => recorded(world, actor, node, &request.volume_id),
        Call::NodeUnpublishVolume(request) => {
            let host = world.truth.hosts.get(node)?;
            let (name, _) =
                host.processes.iter().find(|(name, running)| **running && belongs(name, &request.target_path))?;
            Some(Broken::new(
                RUNNING_HAS_VOLUMES,
                format!("{actor} unpublishes {} while {name} runs", request.target_path),
            ))
        }
        Call::CreateVolume(request) => create(world, actor, &request.name),
        Call::ControllerExpandVolume(request) => {
            let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
            expand(world, actor, &request.volume_id, wanted)
        }
        Call::ControllerModifyVolume(request) => {
            let tier = request.mutable_parameters.get(TIER).cloned().unwrap_or_default();
            modify(world, actor, &request.volume_id, &tier)
        }
        Call::DeleteVolume(request) => delete(world, actor, &request.volume_id),
        _ => None,
    }
}

fn create(world: &World, actor: &str, name: &str) -> Option<Broken> {
    if !intended(world, name) {
        let missing = world.cluster.claims().all(|claim| names::volume_name_for_claim(&claim.metadata.uid) != name);
        if missing {
            return Some(Broken::new(FOR_A_CLAIM, format!("{actor} creates {name} for a claim that is gone")));
        }
        let text = format!("{actor} creates {name} and nothing records the intent");
        return Some(Broken::new(INTENT_FIRST, text));
    }
    None
}

fn recorded(world: &World, actor: &str, node: &str, volume: &str) -> Option<Broken> {
    let hash = names::staging_hash(volume);
    let host = world.truth.hosts.get(node)?;
    (!host.files.keys().any(|path| path.contains(&hash)))
        .then(|| Broken::new(MOUNTED_IS_RECORDED, format!("{actor} mounts {volume} on {node} without a record")))
}

fn delete(world: &World, actor: &str, volume: &str) -> Option<Broken> {
    let broken = |text: String| Some(Broken::new(NO_DELETE_IN_USE, format!("{actor} deletes {volume}, {text}")));
    if let Some(nodes) = world.truth.attached.get(volume) {
        return broken(format!("attached to {nodes:?}"));
    }
    if let Some(copy) = being_made_from(world, volume) {
        return Some(Broken::new(SOURCE_STAYS, format!("{actor} deletes {volume}, which {copy} is being made from")));
    }
    for object in world.cluster.volumes().filter(|object| handle(object) == volume) {
        if let Some(attachment) = world.cluster.attachments().find(|a| a.volume() == Some(&object.metadata.name)) {
            return broken(format!("wanted on {}", attachment.spec.node_name));
        }
        if let Some(claim) = world.cluster.claims().find(|c| c.spec.volume_name == object.metadata.name) {
            return broken(format!("bound to {}", claim.metadata.key()));
        }
    }
    None
}

/// The volume that a call under way makes from this one.
fn being_made_from(world: &World, volume: &str) -> Option<String> {
    let begun = world.members.iter().flat_map(|member| (0..member.held()).map(move |at| member.held_intent(at)));
    begun.chain(world.late.iter().map(|late| &late.intent)).find_map(|intent| match &intent.effect {
        Effect::Call { call: Call::CreateVolume(request), .. } if source_of(request) == Some(volume) => {
            Some(request.name.clone())
        }
        Effect::Call { .. } | Effect::Read(_) | Effect::Write(_) | Effect::Host(_) => None,
    })
}

fn one_node(world: &World) -> Option<Broken> {
    for (volume, nodes) in &world.truth.attached {
        if nodes.len() > 1 && is_single_node(world, volume) {
            return Some(Broken::new(ONE_NODE, format!("{volume} is attached to {nodes:?}")));
        }
    }
    for volume in world.cluster.volumes().map(|object| handle(object)) {
        let nodes: Vec<_> =
            world.truth.hosts.iter().filter(|(_, host)| host.holds(volume)).map(|(name, _)| name).collect();
        if nodes.len() > 1 && is_single_node(world, volume) {
            return Some(Broken::new(ONE_NODE, format!("{volume} is mounted on {nodes:?}")));
        }
    }
    None
}

fn mounts(world: &World) -> Option<Broken> {
    for (name, host) in &world.truth.hosts {
        for (volume, at) in host.staged.iter().chain(&host.published) {
            if !world.truth.attached.get(volume).is_some_and(|nodes| nodes.contains(name)) {
                return Some(Broken::new(MOUNTED_IS_ATTACHED, format!("{volume} is mounted on {name} at {at}")));
            }
            if !in_use(world, name, volume) {
                return Some(Broken::new(MOUNTED_IS_IN_USE, format!("{volume} is mounted on {name} at {at}")));
            }
            if !host.files.keys().any(|path| path.contains(&names::staging_hash(volume))) {
                return Some(Broken::new(MOUNTED_IS_RECORDED, format!("{volume} is mounted on {name} at {at}")));
            }
        }
        for (volume, at) in &host.published {
            if !host.staged.iter().any(|(staged, _)| staged == volume) {
                return Some(Broken::new(
                    STAGE_ORDER,
                    format!("{volume} is published on {name} at {at} and not staged"),
                ));
            }
        }
    }
    None
}

fn in_use(world: &World, node: &str, volume: &str) -> bool {
    let named = |object: &PersistentVolume| {
        object.spec.csi.as_ref().is_some_and(|csi| csi.volume_handle == volume).then(|| unique(object))
    };
    let Some(unique) = world.cluster.volumes().find_map(|object| named(object)) else { return false };
    world.cluster.nodes().any(|object| object.metadata.name == node && object.reports_in_use(&unique))
}

fn unique(object: &PersistentVolume) -> String {
    object.spec.csi.as_ref().map(|csi| names::unique_volume_name(&csi.driver, &csi.volume_handle)).unwrap_or_default()
}

fn processes(world: &World) -> Option<Broken> {
    for (node, host) in &world.truth.hosts {
        for (name, _) in host.processes.iter().filter(|(_, running)| **running) {
            if !host.published.iter().any(|(_, at)| belongs(name, at)) {
                return Some(Broken::new(RUNNING_HAS_VOLUMES, format!("{name} runs on {node} without its volume")));
            }
        }
    }
    None
}

/// A process is named after its pod's uid, and so are the paths of the pod's volumes.
fn belongs(process: &str, path: &str) -> bool {
    let uid: String = process.chars().take_while(char::is_ascii_digit).collect();
    !uid.is_empty() && path.contains(&uid)
}

fn attachments(world: &World) -> Option<Broken> {
    for (volume, nodes) in &world.truth.attached {
        for node in nodes {
            let held = wants(world, volume, node).any(|a| !a.metadata.finalizers.is_empty());
            if !held {
                let text = format!("{volume} is attached to {node} and no attachment holds a finalizer for it");
                return Some(Broken::new(FINALIZER_AFTER_DETACH, text));
            }
        }
    }
    for attachment in world.cluster.attachments() {
        let said = attachment.status.attached && !attachment.metadata.is_deleting();
        let Some(volume) = said.then(|| volume_of(world, attachment)).flatten() else { continue };
        let node = &attachment.spec.node_name;
        if !world.truth.attached.get(handle(volume)).is_some_and(|nodes| nodes.contains(node)) {
            let text = format!("{} says {} is attached to {node}", attachment.metadata.name, handle(volume));
            return Some(Broken::new(ATTACHED_IS_ATTACHED, text));
        }
    }
    None
}

fn wants<'a>(world: &'a World, volume: &'a str, node: &'a str) -> impl Iterator<Item = &'a VolumeAttachment> {
    world
        .cluster
        .attachments()
        .filter(move |a| a.spec.node_name == node && volume_of(world, a).is_some_and(|object| handle(object) == volume))
        .map(|a| &**a)
}

fn volume_of<'a>(world: &'a World, attachment: &VolumeAttachment) -> Option<&'a PersistentVolume> {
    let name = attachment.volume()?;
    world.cluster.volumes().find(|object| object.metadata.name == name).map(|object| &**object)
}

fn volumes(world: &World) -> Option<Broken> {
    for (name, id) in &world.truth.volumes {
        let named = world.cluster.volumes().any(|object| handle(object) == id);
        if !named && !intended(world, name) {
            return Some(Broken::new(ACCOUNTED, format!("{id} is in the driver and nobody knows")));
        }
    }
    None
}

/// An intent is on the claim, or in a journal, where it may outlive the claim.
fn intended(world: &World, name: &str) -> bool {
    let on_claim = world.cluster.claims().any(|claim| {
        names::volume_name_for_claim(&claim.metadata.uid) == name
            && claim.metadata.has_finalizer(names::PROVISIONING_INTENT)
    });
    on_claim || entries(world).any(|uid| names::volume_name_for_claim(uid) == name)
}

/// The uids of the claims that journals tell of.
pub(crate) fn entries(world: &World) -> impl Iterator<Item = &str> {
    let annotations = world.cluster.leases().flat_map(|lease| lease.metadata.annotations.keys());
    annotations.filter_map(|name| Some(name.strip_prefix(names::JOURNAL_ENTRY)?.rsplit_once('.')?.0))
}

fn bindings(world: &World) -> Option<Broken> {
    for claim in world.cluster.claims() {
        let name = &claim.spec.volume_name;
        let rival = world
            .cluster
            .claims()
            .find(|c| !name.is_empty() && c.spec.volume_name == *name && c.metadata.uid != claim.metadata.uid);
        if let Some(rival) = rival {
            let text = format!("{} and {} both name {name}", claim.metadata.key(), rival.metadata.key());
            return Some(Broken::new(ONE_TO_ONE, text));
        }
        let Some(volume) = world.cluster.volumes().find(|object| object.metadata.name == *name) else { continue };
        let back = volume.spec.claim_ref.as_ref().is_some_and(|back| back.uid == claim.metadata.uid);
        if !back {
            let text = format!("{} names {name}, which is for another", claim.metadata.key());
            return Some(Broken::new(ONE_TO_ONE, text));
        }
    }
    for volume in world.cluster.volumes() {
        let twin = world.cluster.volumes().find(|object| {
            object.metadata.name != volume.metadata.name
                && !handle(object).is_empty()
                && handle(object) == handle(volume)
        });
        if let Some(twin) = twin {
            let text = format!("{} and {} are both {}", volume.metadata.name, twin.metadata.name, handle(volume));
            return Some(Broken::new(ONE_TO_ONE, text));
        }
    }
    None
}

pub(crate) fn handle(volume: &PersistentVolume) -> &str {
    volume.spec.csi.as_ref().map_or("", |csi| csi.volume_handle.as_str())
}

fn is_single_node(world: &World, volume: &str) -> bool {
    world
        .cluster
        .volumes()
        .filter(|object| handle(object) == volume)
        .all(|object| !object.spec.access_modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany"))
}
