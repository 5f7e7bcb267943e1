//! The claims of a pod.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::fit::{self, Fit};
use api::{
    AccessMode, ClaimPhase, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, VolumePhase, names,
};
use control::Cache;

use crate::{ClaimState, Delayed, Making, Reach};

/// The labels by which volumes say where they are (SC-21).
const ZONES: [&str; 4] = [names::ZONE, names::REGION, names::ZONE_BETA, names::REGION_BETA];

pub(super) fn claims(pod: &Pod, cache: &Cache) -> Vec<(String, ClaimState)> {
    let mut seen = BTreeSet::new();
    let names = pod.claim_names().filter(|name| seen.insert(name.clone())).collect::<Vec<_>>();
    names.into_iter().map(|name| (name.to_string(), claim_state(pod, &name, cache))).collect()
}

/// Those of them that have no volume yet. Of a pod on a node they are few, and most pods have none.
pub(super) fn unbound_claims(pod: &Pod, cache: &Cache) -> Vec<(String, ClaimState)> {
    let namespace = pod.metadata.namespace.as_str();
    let pending = |name: &str| {
        let claim = cache.claim(&ObjectKey::new(namespace, name));
        claim.is_some_and(|claim| matches!(claim.status.phase, ClaimPhase::Pending | ClaimPhase::Other(_)))
    };
    match pod.claim_names().any(|name| pending(&name)) {
        true => claims(pod, cache),
        false => Vec::new(),
    }
}

fn claim_state(pod: &Pod, name: &str, cache: &Cache) -> ClaimState {
    let key = ObjectKey::new(pod.metadata.namespace.as_str(), name);
    let Some(claim) = cache.claim(&key) else {
        return ClaimState::Missing { templated: pod.templates_claim(name) };
    };
    if claim.metadata.is_deleting() {
        return ClaimState::Deleting;
    }
    if let Some(other) = sole_user(pod, &claim, cache) {
        return ClaimState::TakenBy(other);
    }
    let node = claim.metadata.annotation(names::SELECTED_NODE).filter(|node| !node.is_empty());
    match claim.status.phase {
        ClaimPhase::Bound => bound(&claim, node, cache),
        ClaimPhase::Lost => ClaimState::Lost(claim.spec.volume_name.clone()),
        ClaimPhase::Pending | ClaimPhase::Other(_) => unbound(&claim, node, cache),
    }
}

/// SC-19: the other pod that holds a claim which only one pod may use.
fn sole_user(pod: &Pod, claim: &PersistentVolumeClaim, cache: &Cache) -> Option<String> {
    if !claim.spec.access_modes.contains(&AccessMode::ReadWriteOncePod) {
        return None;
    }
    let term = claim.metadata.key().to_string();
    let mut users = cache.pods_by_claim(&term);
    let holds = |other: &Arc<Pod>| {
        other.metadata.uid != pod.metadata.uid && !other.is_terminal() && !other.spec.node_name.is_empty()
    };
    users.find(holds).map(|other| other.metadata.name.clone())
}

fn bound(claim: &PersistentVolumeClaim, node: Option<&str>, cache: &Cache) -> ClaimState {
    let name = &claim.spec.volume_name;
    match cache.volume(&ObjectKey::cluster(name.as_str())) {
        None => ClaimState::VolumeUnseen(name.clone()),
        Some(volume) => ClaimState::Bound { reach: reach(&volume), node: node.map(String::from) },
    }
}

fn reach(volume: &PersistentVolume) -> Reach {
    let zone = |label: &str| {
        let values = volume.metadata.labels.get(label)?;
        Some((label.to_string(), values.split("__").map(String::from).collect()))
    };
    let zones = ZONES.iter().filter_map(|label| zone(label)).collect();
    // SC-13.
    let translated = rules_translate::plugin_of(volume).and_then(|plugin| {
        let seen = rules_translate::volume_to_csi(volume).ok()?;
        Some((plugin, seen.object.spec.node_affinity))
    });
    Reach { affinity: volume.spec.node_affinity.clone(), translated, zones }
}

fn unbound(claim: &Arc<PersistentVolumeClaim>, node: Option<&str>, cache: &Cache) -> ClaimState {
    let class = cache.class(&ObjectKey::cluster(claim.class().unwrap_or("")));
    // PV-43: a claim that names its volume is bound without waiting for a pod.
    let Some(class) = class.filter(|class| claim.spec.volume_name.is_empty() && class.waits_for_consumer()) else {
        return ClaimState::Unbound;
    };
    if let Some(volume) = reserved(claim, cache) {
        return ClaimState::Reserved { volume: volume.metadata.name.clone(), reach: reach(&volume) };
    }
    let delayed = Delayed { claim: claim.clone(), free: free(claim, cache), making: making(&class, cache) };
    match node {
        None => ClaimState::AwaitsNode(delayed),
        Some(node) => ClaimState::NodeSelected {
            delayed,
            node: node.into(),
            in_the_making: claim.metadata.annotation(names::STORAGE_PROVISIONER).is_some(),
        },
    }
}

/// The volume that binding will give the claim because it refers to it: by uid, or by name alone if it suits the claim.
pub(super) fn reserved(claim: &PersistentVolumeClaim, cache: &Cache) -> Option<Arc<PersistentVolume>> {
    let by_uid = |volume: &PersistentVolume| {
        volume.spec.claim_ref.as_ref().is_some_and(|holder| holder.uid == claim.metadata.uid)
    };
    let by_name = |volume: &PersistentVolume| {
        let open = volume.spec.claim_ref.as_ref().is_some_and(|holder| holder.uid.is_empty());
        open && Fit::of_reserved(claim, volume) == Fit::Fits
    };
    let term = claim.metadata.key().to_string();
    let ours = cache.volumes_by_claim(&term).filter(|volume| by_uid(volume) || by_name(volume));
    ours.min_by_key(|volume| !by_uid(volume))
}

/// SC-3: the volumes that belong to nobody and suit the claim, in the order in which binding takes them: fewest access
/// modes, smallest, name. Of a volume that a bound claim still names somebody took the reference away, and it is
/// repaired.
fn free(claim: &PersistentVolumeClaim, cache: &Cache) -> Vec<Arc<PersistentVolume>> {
    let named = |volume: &PersistentVolume| {
        let mut claims = cache.claims_by_volume(&volume.metadata.name);
        claims.any(|claim| claim.metadata.annotation(names::BIND_COMPLETED).is_some())
    };
    let suits = |volume: &Arc<PersistentVolume>| {
        volume.status.phase == VolumePhase::Available
            && Fit::of_free(claim, volume) == Fit::Fits
            && claim.spec.selector.as_ref().is_none_or(|wanted| wanted.selects(&volume.metadata.labels))
            && !named(volume)
    };
    let mut found: Vec<_> = cache.free_volumes_by_class(claim.class().unwrap_or("")).filter(suits).collect();
    found.sort_by_cached_key(|volume| {
        let size = fit::capacity(volume).unwrap_or(i64::MAX);
        (volume.spec.access_modes.len(), size, volume.metadata.name.clone())
    });
    found
}

/// SC-4, SC-5: whether the class makes volumes, where, and what its driver says it has left.
fn making(class: &StorageClass, cache: &Cache) -> Making {
    if class.provisioner.is_empty() || class.provisioner == names::NO_PROVISIONER {
        return Making::Never;
    }
    let driver = cache.driver(&ObjectKey::cluster(class.provisioner.as_str()));
    let says = driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true));
    let of_class = || cache.capacities().filter(|one| one.storage_class_name == class.metadata.name).collect();
    Making::For { allowed: class.allowed_topologies.clone(), capacity: says.then(of_class) }
}
