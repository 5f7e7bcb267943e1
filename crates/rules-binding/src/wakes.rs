//! Which keys a change concerns.

use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use control::{Cache, Route, routes};

use crate::{Binding, Key, build};

type Woken<'a> = control::Woken<'a, Binding>;

pub(crate) fn keys(cache: &Cache) -> Vec<Key> {
    let claims = cache.keys(Kind::PersistentVolumeClaim).map(|key| Key::Claim(key.clone()));
    let volumes = cache.keys(Kind::PersistentVolume).map(|key| Key::Volume(key.name.clone()));
    let pods = cache.pods().filter(|pod| makes_claims(pod)).map(|pod| Key::Pod(pod.metadata.key()));
    claims.chain(volumes).chain(pods).collect()
}

pub(crate) const ROUTES: &[Route<Binding>] = routes![
    PersistentVolumeClaim => each(claim_wakes),
    PersistentVolume => each(volume_wakes),
    StorageClass => each(class_wakes),
    Pod => each(pod_wakes),
];

/// The claim itself, the volume it names, and the volumes that refer to it (PV-4).
fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    let key = claim.metadata.key();
    let referring = woken.cache.volumes_by_claim(&key.to_string());
    woken.wake_all(referring.map(|volume| Key::Volume(volume.metadata.name.clone())));
    if !claim.spec.volume_name.is_empty() {
        woken.wake(Key::Volume(claim.spec.volume_name.clone()));
    }
    // PV-60: a claim that a pod made and somebody deleted is made again.
    let users = woken.cache.pods_by_claim(&key.to_string()).filter(|pod| makes_claims(pod));
    woken.wake_all(users.map(|pod| Key::Pod(pod.metadata.key())));
    woken.wake(Key::Claim(key));
}

/// The volume itself, the claim it refers to, the claims that name it, and the claims that might want it.
fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    let name = &volume.metadata.name;
    woken.wake(Key::Volume(name.clone()));
    woken.wake_all(woken.cache.claims_by_volume(name).map(|claim| Key::Claim(claim.metadata.key())));
    match &volume.spec.claim_ref {
        Some(holder) => woken.wake(Key::Claim(ObjectKey::new(holder.namespace.as_str(), holder.name.as_str()))),
        None => woken.wake_all(unbound_of_class(volume.class(), woken.cache)),
    }
}

/// Claims of the class; for a default class also those that name none.
fn class_wakes(class: &StorageClass, woken: &mut Woken<'_>) {
    woken.wake_all(unbound_of_class(&class.metadata.name, woken.cache));
    if class.is_default() {
        woken.wake_all(unbound_of_class("", woken.cache));
    }
}

/// Some claim of the pod is made from a template.
fn makes_claims(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| volume.ephemeral.is_some())
}

fn pod_wakes(pod: &Pod, woken: &mut Woken<'_>) {
    if makes_claims(pod) {
        woken.wake(Key::Pod(pod.metadata.key()));
    }
    let namespace = pod.metadata.namespace.as_str();
    for claim in pod.claim_names() {
        let claim = ObjectKey::new(namespace, claim);
        // PV-29: a volume whose claim is gone may wait for the pod.
        let waiting = woken.cache.volumes_by_claim(&claim.to_string()).filter(|volume| build::is_recycled(volume));
        woken.wake_all(waiting.map(|volume| Key::Volume(volume.metadata.name.clone())));
        woken.wake(Key::Claim(claim));
    }
}

fn unbound_of_class(class: &str, cache: &Cache) -> Vec<Key> {
    cache.unbound_claims_by_class(class).map(|claim| Key::Claim(claim.metadata.key())).collect()
}
