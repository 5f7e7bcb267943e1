//! The laws of attaching: one node at a time, and attachments that say what is so.

use api::{AccessMode, Kind, Patch, PatchBody, PersistentVolume, VolumeAttachment, Write};

use crate::laws::{Violation, handle};
use crate::world::World;

pub(super) fn check_one_node(world: &World) -> Option<Violation> {
    for (volume, nodes) in &world.truth.attached {
        if nodes.len() > 1 && is_single_node(world, volume) {
            let nodes = nodes.iter().cloned().collect();
            return Some(Violation::AttachedToSeveral { volume: volume.clone(), nodes });
        }
    }
    for volume in world.cluster.volumes().map(|object| handle(object)) {
        // What was taken from a node that was silent cannot be written there.
        let attached = |node: &String| world.truth.attached.get(volume).is_some_and(|nodes| nodes.contains(node));
        let writes = |node: &&String| attached(node) || !world.was_silent(node);
        let holders = world.truth.hosts.iter().filter(|(_, host)| host.holds(volume)).map(|(name, _)| name);
        let nodes: Vec<_> = holders.filter(writes).cloned().collect();
        if nodes.len() > 1 && is_single_node(world, volume) {
            return Some(Violation::MountedOnSeveral { volume: volume.into(), nodes });
        }
    }
    None
}

pub(super) fn check_unpublish(world: &World, actor: &str, volume: &str, node: &str) -> Option<Violation> {
    let mounted = world.truth.hosts.get(node)?.holds(volume);
    (mounted && !world.was_silent(node)).then(|| Violation::DetachesMounted {
        actor: actor.into(),
        volume: volume.into(),
        node: node.into(),
    })
}

/// What somebody else says of a node, or does to its pods.
pub(super) fn check_silent(world: &World, actor: &str, write: &Write) -> Option<Violation> {
    let actor = || actor.to_string();
    match write {
        Write::Patch { target, patch: Patch { body: PatchBody::Merge(body), .. }, .. } if target.kind == Kind::Node => {
            let mut conditions = body["status"]["conditions"].as_array().into_iter().flatten();
            let unknown = conditions.any(|one| one["type"] == "Ready" && one["status"] == "Unknown");
            let node = &target.key.name;
            let wrong = unknown && !world.was_silent(node);
            wrong.then(|| Violation::CallsUnknown { actor: actor(), node: node.clone() })
        }
        Write::Delete { target, only_if, .. } if target.kind == Kind::Pod => {
            // One that comes late is refused where another pod has the name by now.
            let meant = |uid: &String| only_if.uid.as_ref().is_none_or(|wanted| wanted == uid);
            let mut pods = world.cluster.pods().filter(|pod| meant(&pod.metadata.uid));
            let pod = pods.find(|pod| pod.metadata.key() == target.key)?;
            let node = &pod.spec.node_name;
            let (pod, wrong) = (pod.metadata.name.clone(), !world.was_silent(node));
            wrong.then(|| Violation::TakesPod { actor: actor(), pod, node: node.clone() })
        }
        _ => None,
    }
}

pub(super) fn check_attachments(world: &World) -> Option<Violation> {
    for (volume, nodes) in &world.truth.attached {
        for node in nodes {
            if !wants(world, volume, node).any(|a| !a.metadata.finalizers.is_empty()) {
                return Some(Violation::AttachedUnheld { volume: volume.clone(), node: node.clone() });
            }
        }
    }
    for attachment in world.cluster.attachments() {
        let said = attachment.status.attached && !attachment.metadata.is_deleting();
        let Some(volume) = said.then(|| volume_of(world, attachment)).flatten() else { continue };
        let node = attachment.spec.node_name.clone();
        if !world.truth.attached.get(handle(volume)).is_some_and(|nodes| nodes.contains(&node)) {
            let (attachment, volume) = (attachment.metadata.name.clone(), handle(volume).into());
            return Some(Violation::SaysAttached { attachment, volume, node });
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

fn is_single_node(world: &World, volume: &str) -> bool {
    let many = |mode: &AccessMode| matches!(mode, AccessMode::ReadWriteMany | AccessMode::ReadOnlyMany);
    world
        .cluster
        .volumes()
        .filter(|object| handle(object) == volume)
        .all(|object| !object.spec.access_modes.iter().any(many))
}
