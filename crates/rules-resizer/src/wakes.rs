//! Which keys a change concerns.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, PersistentVolume, PersistentVolumeClaim};
use control::{Cache, Change};

use crate::Local;
use crate::view::Key;

/// The kinds a decision looks at.
pub(crate) const WATCHES: [Kind; 4] =
    [Kind::PersistentVolumeClaim, Kind::PersistentVolume, Kind::VolumeAttributesClass, Kind::Pod];

pub(crate) fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
    let mut keys = BTreeSet::new();
    for side in change.sides() {
        match side {
            Object::PersistentVolumeClaim(claim) => keys.extend(may_be_ours(claim, cache, local)),
            Object::PersistentVolume(volume) => {
                keys.extend(claim_of(volume).filter(|_| is_ours(volume, local)));
            }
            Object::VolumeAttributesClass(class) => {
                let name = class.metadata.name.as_str();
                let users = cache.claims().filter(|claim| names_class(claim, name));
                keys.extend(users.filter_map(|claim| may_be_ours(claim, cache, local)));
            }
            // Whether a volume is in use is asked only after the driver refused because of it.
            Object::Pod(pod) if local.asks_pods => {
                let names = pod.claim_names().map(|name| ObjectKey::new(pod.metadata.namespace.clone(), name));
                let claims = names.filter_map(|key| cache.claim(&key));
                keys.extend(claims.filter_map(|claim| may_be_ours(claim, cache, local)));
            }
            Object::Pod(_)
            | Object::StorageClass(_)
            | Object::VolumeAttachment(_)
            | Object::CSIDriver(_)
            | Object::CSINode(_)
            | Object::Node(_)
            | Object::Secret(_)
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
    let volumes = cache.each_volume().filter(|volume| is_ours(volume, local));
    volumes.filter_map(|volume| claim_of(&volume)).collect()
}

/// The volume is our driver's, or of the in-tree plugin our driver has taken over.
pub(crate) fn is_ours(volume: &PersistentVolume, local: &Local) -> bool {
    match &volume.spec.csi {
        Some(csi) => csi.driver == local.driver,
        None => rules_translate::plugin_of(volume).is_some_and(|plugin| plugin.driver() == local.driver),
    }
}

fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.claim_ref.as_ref()?;
    Some(Key(ObjectKey::new(claim.namespace.clone(), claim.name.clone())))
}

/// A bound claim, unless its volume is known to be another driver's.
fn may_be_ours(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> Option<Key> {
    let volume = &claim.spec.volume_name;
    if volume.is_empty() {
        return None;
    }
    match cache.volume(&ObjectKey::cluster(volume.clone())) {
        Some(volume) => is_ours(volume, local).then(|| Key(claim.metadata.key())),
        None => Some(Key(claim.metadata.key())),
    }
}

fn names_class(claim: &PersistentVolumeClaim, class: &str) -> bool {
    let target = claim.status.modify_volume_status.as_ref();
    claim.spec.volume_attributes_class_name.as_deref() == Some(class)
        || target.is_some_and(|status| status.target_volume_attributes_class_name == class)
}
