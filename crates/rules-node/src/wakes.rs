//! Which keys a change concerns.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{CSIDriver, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment, names};
use control::{Cache, Route, Sides, routes};
use rules_translate::Plugin;

use crate::{Key, Local, Node, build, checks, inline, orphans, paths, served};

type Woken<'a> = control::Woken<'a, Node>;

pub(crate) const ROUTES: &[Route<Node>] = routes![
    api::Node => both(node_wakes),
    Pod => each(pod_wakes),
    PersistentVolumeClaim => each(claim_wakes),
    PersistentVolume => each(volume_wakes),
    VolumeAttachment => each(attachment_wakes),
    CSIDriver => each(driver_wakes),
];

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let mut keys = volume_keys(cache, local);
    for pod in cache.pods_by_node(&local.node) {
        keys.extend(keys_of_pod(&pod, cache, local));
    }
    keys.extend(orphan_keys(cache, local));
    keys.extend(local.pod_processes().map(|(name, _)| Key::Pod(name.pod)));
    for publish in local.records.values().flat_map(|record| record.publishes.values()) {
        keys.insert(Key::Pod(ObjectKey::new(publish.pod_namespace.clone(), publish.pod_name.clone())));
    }
    keys.into_iter().collect()
}

fn pod_wakes(pod: &Pod, woken: &mut Woken<'_>) {
    if pod.spec.node_name == woken.local.node {
        woken.wake_all(keys_of_pod(pod, woken.cache, woken.local));
        if woken.local.pod_dirs.contains_key(&pod.metadata.uid) {
            woken.wake_all([Key::Orphans]);
        }
    }
}

/// None where every directory is a known pod's.
fn orphan_keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let found: Vec<String> = orphans::candidates(cache, local).collect();
    let gone = found.iter().filter(|uid| local.gone.contains(*uid)).map(|uid| Key::Orphan(uid.clone()));
    gone.chain((!found.is_empty()).then_some(Key::Orphans)).collect()
}

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    users_of_claim(&claim.metadata.key(), woken);
    named_volume_wakes(&claim.spec.volume_name, woken);
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    woken.wake_all(volume_key(volume, woken.local));
    if let Some(claim) = &volume.spec.claim_ref {
        users_of_claim(&ObjectKey::new(claim.namespace.clone(), claim.name.clone()), woken);
    }
}

fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_>) {
    if attachment.spec.node_name == woken.local.node {
        named_volume_wakes(attachment.volume().unwrap_or_default(), woken);
        let held = attachment.spec.source.inline_volume_spec.as_ref().and_then(|spec| spec.csi.as_ref());
        woken.wake_all(held.map(|csi| Key::Volume(names::unique_volume_name(&csi.driver, &csi.volume_handle))));
    }
    // A plugin waits for attachments to any node, and with it the pods.
    if woken.local.drivers.keys().any(|name| Plugin::named(name).is_some()) {
        let pods: Vec<_> = woken.cache.pods_by_node(&woken.local.node).collect();
        pods.iter().for_each(|pod| pod_wakes(pod, woken));
    }
}

/// Its volumes, and the pods that use them: what a pod waits for may follow from the driver's policies.
fn driver_wakes(driver: &CSIDriver, woken: &mut Woken<'_>) {
    let prefix = names::unique_volume_name(&driver.metadata.name, "");
    let of_driver = |key: &Key| match key {
        Key::Volume(name) => name.starts_with(&prefix),
        Key::Pod(_) | Key::Check(_) | Key::Orphans | Key::Orphan(_) => false,
    };
    let (cache, local) = (woken.cache, woken.local);
    woken.wake_all(volume_keys(cache, local).into_iter().filter(of_driver));
    for keys in cache.pods_by_node(&local.node).map(|pod| keys_of_pod(&pod, cache, local)) {
        if keys.iter().any(of_driver) {
            woken.wake_all(keys);
        }
    }
}

/// Every volume: each decision about one reads the Node's version and lists.
fn node_wakes(node: Sides<'_, api::Node>, woken: &mut Woken<'_>) {
    if !node.iter().any(|node| node.metadata.name == woken.local.node) {
        return;
    }
    let is_volume = |key: &Key| match key {
        Key::Volume(_) => true,
        Key::Pod(_) | Key::Check(_) | Key::Orphans | Key::Orphan(_) => false,
    };
    woken.wake_all(keys(woken.cache, woken.local).into_iter().filter(is_volume));
    let listed = node.iter().flat_map(|node| node.status.volumes_in_use.iter().flatten());
    woken.wake_all(listed.map(|name| Key::Volume(name.clone())));
    woken.wake_all(orphan_keys(woken.cache, woken.local));
}

fn keys_of_pod(pod: &Pod, cache: &Cache, local: &Local) -> Vec<Key> {
    let claimed = pod.claim_names().filter_map(|claim| {
        let volume = build::volume_of_claim(&pod.metadata.namespace, &claim, cache).ok()?;
        volume_key(&volume, local)
    });
    let held = served::held_by(pod, local).into_iter().map(|(_, held)| Key::Volume(held.unique_name()));
    let inline = inline::of_pod(pod);
    let inline = inline.map(|(_, csi, handle)| Key::Volume(names::unique_volume_name(&csi.driver, &handle)));
    let recorded = local.records.iter().filter(|(_, record)| record.publishes.contains_key(&pod.metadata.uid));
    let recorded = recorded.map(|(name, _)| Key::Volume(name.clone()));
    let checks = checks::keys(pod).into_iter().map(Key::Check);
    claimed.chain(held).chain(inline).chain(recorded).chain(checks).chain([Key::Pod(pod.metadata.key())]).collect()
}

fn users_of_claim(claim: &ObjectKey, woken: &mut Woken<'_>) {
    woken.cache.pods_by_claim(&claim.to_string()).for_each(|pod| pod_wakes(&pod, woken));
}

fn named_volume_wakes(name: &str, woken: &mut Woken<'_>) {
    let volume = woken.cache.volume(&ObjectKey::cluster(name));
    woken.wake_all(volume.and_then(|volume| volume_key(&volume, woken.local)));
}

fn volume_keys(cache: &Cache, local: &Local) -> BTreeSet<Key> {
    let node = cache.node(&ObjectKey::cluster(local.node.clone()));
    let listed = node.iter().flat_map(|node| node.status.volumes_in_use.iter().flatten());
    let ours = listed.filter(|name| paths::split_unique_name(name).is_some());
    ours.chain(local.records.keys()).chain(&local.maybe_recorded).map(|name| Key::Volume(name.clone())).collect()
}

fn volume_key(volume: &PersistentVolume, local: &Local) -> Option<Key> {
    served::unique_name(volume, local).map(Key::Volume)
}
