//! The laws of a machine with a kernel: what processes really see, what records really say.

use api::{AccessMode, Kind, PersistentVolume, names};
use control::Effect;
use control::host::Op;
use csi::{Call, v1};
use serde_json::Value;

use crate::laws::{Violation, handle};
use crate::machine::is_inline;
use crate::truth::PretendHost;
use crate::world::World;
use crate::worlds::node::CANARY;

fn between<'a>(path: &'a str, from: &str) -> Option<&'a str> {
    path.split_once(from).and_then(|(_, rest)| rest.split('/').next())
}

/// The driver's id of the volume that a path is made for: a PersistentVolume of that name, or the pod's own.
fn volume_at(world: &World, path: &str) -> Option<String> {
    let name = between(path, "/kubernetes.io~csi/").or_else(|| between(path, "/volumeDevices/publish/"))?;
    let volume = world.cluster.volumes().find(|volume| volume.metadata.name == name);
    let inline = || Some(names::inline_volume_handle(between(path, "/pods/")?, name));
    volume.map(|volume| handle(volume).to_string()).or_else(inline)
}

/// Before a volume is published: if it is a pod's own, it is called as that pod's is.
pub(super) fn check_inline(world: &World, actor: &str, volume: &str, path: &str) -> Option<Violation> {
    let known = world.cluster.volumes().any(|object| handle(object) == volume);
    let foreign = !known && volume_at(world, path).is_some_and(|own| own != volume);
    foreign.then(|| Violation::PublishesForeign { actor: actor.into(), volume: volume.into(), path: path.into() })
}

/// Before a volume is staged.
pub(super) fn check_inline_stage(actor: &str, volume: &str) -> Option<Violation> {
    is_inline(volume).then(|| Violation::StagesInline { actor: actor.into(), volume: volume.into() })
}

/// Whether the pod of a process, if it is still there, may only read its volume.
fn reads_only(world: &World, process: &str) -> Option<bool> {
    let pod = world.cluster.pods().find(|pod| process.starts_with(&format!("{}_", pod.metadata.uid)))?;
    pod.spec.volumes.iter().find_map(|volume| match (&volume.persistent_volume_claim, &volume.csi) {
        (Some(used), _) => Some(used.read_only),
        (None, csi) => csi.as_ref().map(|csi| csi.read_only.unwrap_or(false)),
    })
}

pub(super) fn check_seen(world: &World) -> Option<Violation> {
    for (node, host) in &world.truth.hosts {
        let Some(machine) = &host.machine else { continue };
        if let Some((path, _)) = host.shown.iter().find(|(_, shown)| shown.volume.is_empty()) {
            return Some(Violation::ShowsNothing { node: node.clone(), path: path.clone() });
        }
        for (process, paths) in machine.seen() {
            for path in paths {
                let Some(shown) = host.shown.get(&path) else {
                    return Some(Violation::SeesDirectory { process, path });
                };
                if volume_at(world, &path).is_none_or(|volume| volume != shown.volume) {
                    return Some(Violation::SeesAnother { process, path, volume: shown.volume.clone() });
                }
                if reads_only(world, &process).is_some_and(|read_only| read_only != shown.read_only) {
                    return Some(Violation::SeesOtherwise { process, path, read_only: shown.read_only });
                }
            }
        }
    }
    None
}

pub(super) fn check_one_pod(world: &World) -> Option<Violation> {
    let once = |volume: &&PersistentVolume| volume.spec.access_modes == [AccessMode::ReadWriteOncePod];
    for volume in world.cluster.volumes().map(|volume| &**volume).filter(once).map(handle) {
        let all = world.truth.hosts.values().flat_map(|host| &host.published);
        let paths: Vec<String> = all.filter(|(id, _)| id == volume).map(|(_, path)| path.clone()).collect();
        if paths.len() > 1 {
            return Some(Violation::SeveralPods { volume: volume.into(), paths });
        }
    }
    None
}

fn is_whole(bytes: &[u8]) -> bool {
    let said = |record: &Value, key: &str| record[key].as_str().is_some_and(|text| !text.is_empty());
    serde_json::from_slice(bytes)
        .is_ok_and(|record: Value| said(&record, "driverName") && said(&record, "volumeHandle"))
}

/// Records that somebody spoiled.
fn unreadable(host: &PretendHost) -> impl Iterator<Item = &String> {
    host.files.iter().filter(|(_, bytes)| !is_whole(bytes)).map(|(path, _)| path)
}

pub(super) fn check_records(world: &World) -> Option<Violation> {
    for (node, host) in world.truth.hosts.iter().filter(|(_, host)| host.machine.is_some()) {
        for path in unreadable(host) {
            let of_it = |volume: &&PersistentVolume| path.contains(&names::staging_hash(handle(volume)));
            let volume = world.cluster.volumes().map(|volume| &**volume).find(of_it).map(handle).unwrap_or_default();
            if host.spoiled && !super::node::in_use(world, node, volume) {
                return Some(Violation::UnreportsUnreadable { node: node.clone(), path: path.clone() });
            }
            if !host.spoiled {
                return Some(Violation::RecordTorn { path: path.clone() });
            }
        }
    }
    None
}

/// The record as it would be after a loss of power, if there is one.
pub(super) fn durable_record(host: &PretendHost, volume: &str) -> Option<Vec<u8>> {
    let hash = names::staging_hash(volume);
    let records = host.machine.as_ref().map_or_else(|| host.files.clone(), |machine| machine.durable_records());
    records.into_iter().find(|(path, _)| path.contains(&hash)).map(|(_, bytes)| bytes)
}

/// The bytes of a record list a path.
pub(super) fn lists(record: &[u8], path: &str) -> bool {
    String::from_utf8_lossy(record).contains(&format!("\"{path}\""))
}

/// What is done about a volume whose record cannot be read.
pub(super) fn check_unreadable(world: &World, actor: &str, node: &str, effect: &Effect) -> Option<Violation> {
    let host = world.truth.hosts.get(node).filter(|host| host.machine.is_some())?;
    let path = unreadable(host).next()?;
    let about = match effect {
        Effect::Call { call, .. } => path.contains(&names::staging_hash(call.volume())),
        Effect::Host(Op::RemoveFile { path: file } | Op::WriteFile { path: file, .. }) => file == path,
        Effect::Host(_)
        | Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Nothing => false,
    };
    let what = match effect {
        Effect::Call { call, .. } => call.method().name().to_string(),
        Effect::Host(op) => format!("{op:?}"),
        _ => String::new(),
    };
    about.then(|| Violation::TouchesUnreadable { actor: actor.into(), path: path.clone(), what })
}

/// What would be written where others can read it.
pub(super) fn check_secrets(world: &World, actor: &str, effect: &Effect) -> Option<Violation> {
    world.cluster.all(Kind::Secret).next()?;
    let what = match effect {
        Effect::Write(write) if write.target().kind != Kind::Secret && format!("{write:?}").contains(CANARY) => {
            write.target().to_string()
        }
        Effect::Host(Op::WriteFile { path, bytes }) if String::from_utf8_lossy(bytes).contains(CANARY) => path.clone(),
        Effect::Host(_)
        | Effect::Call { .. }
        | Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Nothing => return None,
    };
    Some(Violation::TellsSecret { actor: actor.into(), what })
}

/// Before the driver is asked to grow a filesystem.
pub(super) fn check_grow(
    world: &World,
    actor: &str,
    node: &str,
    request: &v1::NodeExpandVolumeRequest,
) -> Option<Violation> {
    let host = world.truth.hosts.get(node).filter(|host| host.machine.is_some())?;
    let (actor, volume) = (actor.to_string(), request.volume_id.clone());
    let (path, staging) = (request.volume_path.clone(), request.staging_target_path.clone());
    let recorded =
        durable_record(host, &volume).is_some_and(|record| lists(&record, &path) && lists(&record, &staging));
    let staged = host.staged.iter().any(|(id, at)| *id == volume && (*at == staging || !host.shown.contains_key(at)));
    if !recorded || !staged || !host.published.contains(&(volume.clone(), path.clone())) {
        return Some(Violation::GrowsElsewhere { actor, volume, path });
    }
    let asked = request.capacity_range.map_or(0, |range| range.required_bytes);
    let has = world.truth.sizes.get(&volume).copied().unwrap_or_default().volume;
    (asked > has).then_some(Violation::GrowsFirst { actor, volume, asked, has })
}

/// Calls that were given up and may yet put a volume somewhere on a node: where, and whether it is published there.
pub(super) fn may_come<'a>(world: &'a World, node: &'a str, volume: &'a str) -> impl Iterator<Item = (&'a str, bool)> {
    all_that_may_come(world, node).filter(move |(id, ..)| *id == volume).map(|(_, path, published)| (path, published))
}

/// The same of every volume, with its id.
pub(super) fn all_that_may_come<'a>(world: &'a World, node: &'a str) -> impl Iterator<Item = (&'a str, &'a str, bool)> {
    world.late.iter().filter_map(move |late| {
        let coming = match &late.intent.effect {
            Effect::Call { call: Call::NodeStageVolume(request), .. } => {
                (request.volume_id.as_str(), request.staging_target_path.as_str(), false)
            }
            Effect::Call { call: Call::NodePublishVolume(request), .. } => {
                (request.volume_id.as_str(), request.target_path.as_str(), true)
            }
            _ => return None,
        };
        (late.node == node).then_some(coming)
    })
}
