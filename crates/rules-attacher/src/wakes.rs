//! Which keys a change concerns.

use alloc::vec::Vec;

use api::{CSINode, Node, PersistentVolume, VolumeAttachment, names};
use control::{Cache, Route, Sides, routes};

use crate::{Attacher, Key, Listed, Local, build};

type Woken<'a> = control::Woken<'a, Attacher>;

pub(crate) const ROUTES: &[Route<Attacher>] = routes![
    VolumeAttachment => each(attachment_wakes),
    PersistentVolume => each(volume_wakes),
    CSINode => each(|node, woken| attachments_on(&node.metadata.name, woken)),
    Node => both(node_wakes),
];

fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_>) {
    woken.wake_all(ours(attachment, woken.local));
    woken.wake_all(attachment.volume().map(|volume| Key::Volume(volume.into())));
    // Attachments of one volume wait for each other.
    let siblings = build::siblings(attachment, woken.cache);
    woken.wake_all(siblings.iter().filter_map(|other| ours(other, woken.local)));
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    let name = &volume.metadata.name;
    woken.wake(Key::Volume(name.clone()));
    let attachments = woken.cache.attachments_by_volume(name);
    woken.wake_all(attachments.filter_map(|attachment| ours(&attachment, woken.local)));
}

fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    if let (Some(before), Some(after)) = (node.before, node.after)
        && before.metadata.annotation(names::NODE_ID) == after.metadata.annotation(names::NODE_ID)
    {
        return; // A heartbeat.
    }
    node.iter().for_each(|node| attachments_on(&node.metadata.name, woken));
}

fn attachments_on(node: &str, woken: &mut Woken<'_>) {
    let attachments = woken.cache.attachments_by_node(node);
    woken.wake_all(attachments.filter_map(|attachment| ours(&attachment, woken.local)));
}

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let finalizer = names::attacher_finalizer(&local.driver);
    let attachments = cache.attachments().filter_map(|attachment| ours(&attachment, local));
    let volumes = cache.volumes().filter(|volume| volume.metadata.has_finalizer(&finalizer));
    let listing = local.lists().then(|| Key::Listing(local.driver.clone()));
    attachments.chain(volumes.map(|volume| Key::Volume(volume.metadata.name.clone()))).chain(listing).collect()
}

/// Attachments of ours whose status says something else than the driver's list.
pub(crate) fn disagreeing(cache: &Cache, local: &Local) -> Vec<Key> {
    let listed = |attachment: &VolumeAttachment| {
        let volume = build::volume_of(attachment, cache);
        build::listed(attachment, volume.as_deref(), cache, local)
    };
    let disagrees = |attachment: &VolumeAttachment| match listed(attachment) {
        Listed::Unknown => false,
        Listed::Published => !attachment.status.attached || attachment.metadata.is_deleting(),
        Listed::Unpublished => attachment.status.attached,
    };
    let ours = cache.attachments().filter(|attachment| attachment.spec.attacher == local.driver);
    ours.filter(|attachment| disagrees(attachment))
        .map(|attachment| Key::Attachment(attachment.metadata.name.clone()))
        .collect()
}

fn ours(attachment: &VolumeAttachment, local: &Local) -> Option<Key> {
    (attachment.spec.attacher == local.driver).then(|| Key::Attachment(attachment.metadata.name.clone()))
}
