//! Which keys a change concerns.

use alloc::vec::Vec;

use api::{ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttributesClass};
use control::{Cache, Route, routes};

use crate::view::Key;
use crate::{Local, Resizer};

type Woken<'a> = control::Woken<'a, Resizer>;

pub(crate) const ROUTES: &[Route<Resizer>] = routes![
    PersistentVolumeClaim => each(claim_wakes),
    PersistentVolume => each(volume_wakes),
    VolumeAttributesClass => each(class_wakes),
    Pod => each(pod_wakes),
];

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    woken.wake_all(may_be_ours(claim, woken.cache, woken.local));
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    woken.wake_all(claim_of(volume).filter(|_| is_ours(volume, woken.local)));
}

fn class_wakes(class: &VolumeAttributesClass, woken: &mut Woken<'_>) {
    let users = woken.cache.claims().filter(|claim| names_class(claim, &class.metadata.name));
    users.for_each(|claim| claim_wakes(&claim, woken));
}

/// Whether a volume is in use is asked only after the driver refused because of it.
fn pod_wakes(pod: &Pod, woken: &mut Woken<'_>) {
    if woken.local.asks_pods {
        let names = pod.claim_names().map(|name| ObjectKey::new(pod.metadata.namespace.clone(), name));
        let cache = woken.cache;
        names.filter_map(|key| cache.claim(&key)).for_each(|claim| claim_wakes(&claim, woken));
    }
}

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let volumes = cache.volumes().filter(|volume| is_ours(volume, local));
    volumes.filter_map(|volume| claim_of(&volume)).collect()
}

/// The volume is our driver's, or of the in-tree plugin our driver has taken over, unless that plugin still serves; or
/// these rules speak for the plugin.
pub(crate) fn is_ours(volume: &PersistentVolume, local: &Local) -> bool {
    match &volume.spec.csi {
        Some(csi) => csi.driver == local.driver,
        None => {
            let plugin = rules_translate::plugin_of(volume);
            plugin.is_some() && plugin == local.migration.plugin_of(&local.driver)
        }
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
        Some(volume) => is_ours(&volume, local).then(|| Key(claim.metadata.key())),
        None => Some(Key(claim.metadata.key())),
    }
}

fn names_class(claim: &PersistentVolumeClaim, class: &str) -> bool {
    let target = claim.status.modify_volume_status.as_ref();
    claim.spec.volume_attributes_class_name.as_deref() == Some(class)
        || target.is_some_and(|status| status.target_volume_attributes_class_name == class)
}
