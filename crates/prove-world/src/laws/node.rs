//! The laws of one machine: what is mounted is attached, reported and recorded, and processes have their volumes.

use api::{Kind, Object, PersistentVolume, names};

use crate::laws::Violation;
use crate::laws::machine::{all_that_may_come, durable_record, lists, may_come};
use crate::machine::is_inline;
use crate::truth::PretendHost;
use crate::world::World;

pub(super) fn check_mounts(world: &World) -> Option<Violation> {
    for (node, host) in &world.truth.hosts {
        for (volume, path) in host.staged.iter().chain(&host.published) {
            let (volume, node, path) = (volume.clone(), node.clone(), path.clone());
            if needs_attachment(world, &volume)
                && !world.truth.attached.get(&volume).is_some_and(|nodes| nodes.contains(&node))
                && !world.was_silent(&node)
            {
                return Some(Violation::MountedUnattached { volume, node, path });
            }
            if !is_inline(&volume) && !in_use(world, &node, &volume) && !world.was_silent(&node) {
                return Some(Violation::MountedUnreported { volume, node, path });
            }
            if !is_recorded(host, &volume) {
                return Some(Violation::MountedUnrecorded { volume, node, path });
            }
        }
        for (volume, path) in &host.published {
            if !is_inline(volume) && !host.staged.iter().any(|(staged, _)| staged == volume) {
                let (volume, node, path) = (volume.clone(), node.clone(), path.clone());
                return Some(Violation::PublishedUnstaged { volume, node, path });
            }
        }
    }
    None
}

/// The volume's driver attaches, unless its object says that it does not.
fn needs_attachment(world: &World, volume: &str) -> bool {
    if is_inline(volume) {
        return false;
    }
    let driver = world.cluster.volumes().filter_map(|object| object.spec.csi.as_ref());
    let Some(csi) = driver.into_iter().find(|csi| csi.volume_handle == volume) else { return true };
    let mut drivers = world.cluster.all(Kind::CSIDriver).filter(|held| held.object.meta().name == csi.driver);
    drivers.all(|held| match &held.object {
        Object::CSIDriver(driver) => driver.attach_required(),
        _ => true,
    })
}

pub(super) fn in_use(world: &World, node: &str, volume: &str) -> bool {
    let named = |object: &PersistentVolume| {
        let csi = object.spec.csi.as_ref().filter(|csi| csi.volume_handle == volume)?;
        Some(names::unique_volume_name(&csi.driver, &csi.volume_handle))
    };
    let Some(unique) = world.cluster.volumes().find_map(|object| named(object)) else { return false };
    world.cluster.nodes().any(|object| object.metadata.name == node && object.reports_in_use(&unique))
}

/// A record is a file beside the staging path, whose name has the volume's hash.
fn is_recorded(host: &PretendHost, volume: &str) -> bool {
    let hash = names::staging_hash(volume);
    host.files.keys().any(|path| path.contains(&hash))
}

/// Before a volume is put somewhere: its record is durable and lists the place (reliability 45).
pub(super) fn check_recorded(world: &World, actor: &str, node: &str, volume: &str, path: &str) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    let (actor, volume, node) = (actor.to_string(), volume.to_string(), node.to_string());
    let Some(record) = durable_record(host, &volume) else {
        return Some(Violation::MountsWithoutRecord { actor, volume, node });
    };
    (!lists(&record, path)).then(|| Violation::MountsUnlisted { actor, volume, path: path.into() })
}

pub(super) fn check_remove_file(world: &World, actor: &str, node: &str, path: &str) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    let mounted = host.staged.iter().chain(&host.published).map(|(id, _)| id.as_str());
    let coming = all_that_may_come(world, node).map(|(volume, ..)| volume);
    let volume = mounted.chain(coming).find(|id| path.contains(&names::staging_hash(id)))?.to_string();
    let (actor, node, path) = (actor.into(), node.into(), path.into());
    Some(Violation::RemovesRecord { actor, volume, node, path })
}

/// Before a record is written: it lists every place where its volume may be (reliability 47).
pub(super) fn check_write_file(world: &World, actor: &str, node: &str, path: &str, bytes: &[u8]) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    let published = host.published.iter().map(|(id, _)| id.as_str());
    let mut known = published.chain(all_that_may_come(world, node).map(|(volume, ..)| volume));
    let volume = known.find(|volume| path.contains(&names::staging_hash(volume)))?;
    let mounted = host.published.iter().filter(|(id, _)| id == volume).map(|(_, at)| at.as_str());
    let coming = may_come(world, node, volume).map(|(at, _)| at);
    let dropped = mounted.chain(coming).find(|at| !lists(bytes, at))?;
    Some(Violation::DropsFromRecord { actor: actor.into(), volume: volume.into(), path: dropped.into() })
}

pub(super) fn check_unstage(world: &World, actor: &str, node: &str, volume: &str) -> Option<Violation> {
    let (actor, id) = (actor.to_string(), volume.to_string());
    if let Some((_, path)) = world.truth.hosts.get(node)?.published.iter().find(|(id, _)| id == volume) {
        return Some(Violation::UnstagesPublished { actor, volume: id, path: path.clone() });
    }
    let path = may_come(world, node, volume).find(|(_, published)| *published)?.0.to_string();
    Some(Violation::UnstagesUncertain { actor, volume: id, path })
}

pub(super) fn check_unpublish(world: &World, actor: &str, node: &str, path: &str) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    let (process, _) = host.processes.iter().find(|(name, running)| **running && belongs(name, path))?;
    Some(Violation::UnpublishesUnderProcess { actor: actor.into(), path: path.into(), process: process.clone() })
}

pub(super) fn check_processes(world: &World) -> Option<Violation> {
    for (node, host) in &world.truth.hosts {
        for (process, _) in host.processes.iter().filter(|(_, running)| **running) {
            if !host.published.iter().any(|(_, at)| belongs(process, at)) {
                return Some(Violation::RunsWithoutVolume { process: process.clone(), node: node.clone() });
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
