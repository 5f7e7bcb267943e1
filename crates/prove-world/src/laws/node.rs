//! The laws of one machine: what is mounted is attached, reported and recorded, and processes have their volumes.

use api::{PersistentVolume, names};

use crate::laws::Violation;
use crate::truth::PretendHost;
use crate::world::World;

pub(super) fn check_mounts(world: &World) -> Option<Violation> {
    for (node, host) in &world.truth.hosts {
        for (volume, path) in host.staged.iter().chain(&host.published) {
            let (volume, node, path) = (volume.clone(), node.clone(), path.clone());
            if !world.truth.attached.get(&volume).is_some_and(|nodes| nodes.contains(&node)) {
                return Some(Violation::MountedUnattached { volume, node, path });
            }
            if !in_use(world, &node, &volume) {
                return Some(Violation::MountedUnreported { volume, node, path });
            }
            if !is_recorded(host, &volume) {
                return Some(Violation::MountedUnrecorded { volume, node, path });
            }
        }
        for (volume, path) in &host.published {
            if !host.staged.iter().any(|(staged, _)| staged == volume) {
                let (volume, node, path) = (volume.clone(), node.clone(), path.clone());
                return Some(Violation::PublishedUnstaged { volume, node, path });
            }
        }
    }
    None
}

fn in_use(world: &World, node: &str, volume: &str) -> bool {
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

pub(super) fn check_recorded(world: &World, actor: &str, node: &str, volume: &str) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    (!is_recorded(host, volume)).then(|| Violation::MountsWithoutRecord {
        actor: actor.into(),
        volume: volume.into(),
        node: node.into(),
    })
}

pub(super) fn check_remove_file(world: &World, actor: &str, node: &str, path: &str) -> Option<Violation> {
    let host = world.truth.hosts.get(node)?;
    let (volume, _) =
        host.staged.iter().chain(&host.published).find(|(id, _)| path.contains(&names::staging_hash(id)))?;
    let (actor, node, path) = (actor.into(), node.into(), path.into());
    Some(Violation::RemovesRecord { actor, volume: volume.clone(), node, path })
}

pub(super) fn check_unstage(world: &World, actor: &str, node: &str, volume: &str) -> Option<Violation> {
    let (_, path) = world.truth.hosts.get(node)?.published.iter().find(|(id, _)| id == volume)?;
    Some(Violation::UnstagesPublished { actor: actor.into(), volume: volume.into(), path: path.clone() })
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
