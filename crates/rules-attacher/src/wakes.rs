//! Which keys a change concerns.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use api::{Kind, Object, VolumeAttachment, names};
use control::{Cache, Change};

use crate::{Key, Listed, Local, build};

/// The kinds a decision looks at.
pub(crate) const WATCHES: [Kind; 4] = [Kind::VolumeAttachment, Kind::PersistentVolume, Kind::CSINode, Kind::Node];

pub(crate) fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
    let mut keys = BTreeSet::new();
    if let (Some(Object::Node(before)), Some(Object::Node(after))) = (&change.before, &change.after)
        && before.metadata.annotation(names::NODE_ID) == after.metadata.annotation(names::NODE_ID)
    {
        return Vec::new(); // A heartbeat.
    }
    for side in change.sides() {
        match side {
            Object::VolumeAttachment(attachment) => {
                keys.extend(ours(attachment, local));
                keys.extend(attachment.volume().map(|volume| Key::Volume(volume.into())));
                // Attachments of one volume wait for each other.
                keys.extend(build::siblings(attachment, cache).filter_map(|other| ours(other, local)));
            }
            Object::PersistentVolume(volume) => {
                let name = &volume.metadata.name;
                keys.insert(Key::Volume(name.clone()));
                keys.extend(cache.attachments_by_volume(name).filter_map(|attachment| ours(attachment, local)));
            }
            Object::CSINode(_) | Object::Node(_) => {
                let on_node = cache.attachments_by_node(&side.meta().name);
                keys.extend(on_node.filter_map(|attachment| ours(attachment, local)));
            }
            Object::Pod(_)
            | Object::PersistentVolumeClaim(_)
            | Object::StorageClass(_)
            | Object::CSIDriver(_)
            | Object::Secret(_)
            | Object::VolumeAttributesClass(_)
            | Object::CSIStorageCapacity(_)
            | Object::VolumeSnapshot(_)
            | Object::VolumeSnapshotContent(_)
            | Object::ReferenceGrant(_)
            | Object::Lease(_) => {}
        }
    }
    keys.into_iter().collect()
}

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let finalizer = names::attacher_finalizer(&local.driver);
    let attachments = cache.each_attachment().filter_map(|attachment| ours(&attachment, local));
    let volumes = cache.each_volume().filter(|volume| volume.metadata.has_finalizer(&finalizer));
    let listing = (local.publish_unpublish && local.list_every_millis > 0).then(|| Key::Listing(local.driver.clone()));
    attachments.chain(volumes.map(|volume| Key::Volume(volume.metadata.name.clone()))).chain(listing).collect()
}

/// Attachments of ours whose status says something else than the driver's list.
pub(crate) fn disagreeing(cache: &Cache, local: &Local) -> Vec<Key> {
    let disagrees = |attachment: &VolumeAttachment| match build::listed(attachment, cache, local) {
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
