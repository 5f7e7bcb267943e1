//! From the cache to a view.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::fit::{Fit, capacity, requested};
use api::names;
use api::{ObjectKey, PersistentVolume, PersistentVolumeClaim, ReclaimPolicy, StorageClass, VolumePhase};
use control::Cache;
use rules_translate::Plugin;

use crate::{
    BindingState, Candidate, ClaimFacts, ClaimView, Local, NamedVolume, Prospect, VolumeFacts, VolumeOwner, VolumeView,
    users,
};

pub(crate) fn claim(key: &ObjectKey, cache: &Cache, local: &Local) -> ClaimView {
    let Some(claim) = cache.claim(key) else { return ClaimView::Gone };
    let pods: Vec<_> = cache.pods_by_claim(&key.to_string()).collect();
    let holders = pods.iter().filter(|pod| users::holds(pod, &key.name, users::made_for(&claim)));
    let annotation = |name| claim.metadata.annotation(name);
    let provisioner = annotation(names::STORAGE_PROVISIONER).or(annotation(names::STORAGE_PROVISIONER_BETA));
    ClaimView::Here(ClaimFacts {
        used: local.tells_use.then(|| pods.iter().any(|pod| users::uses(pod, &claim))),
        holders: holders.map(|pod| pod.metadata.name.clone()).collect(),
        mark: local.mark(&claim.metadata, provisioner.map(|named| asked_for(&claim, named, cache))),
        grown_by: grown_by(&claim, cache, local),
        standing: standing(&claim, cache, local),
        claim,
    })
}

/// Q-4, S4-42: what a claim asked for whose provisioner is named. Of a class of a plugin that a driver has taken over
/// the driver is named, and the claim is the plugin's all the same. If the class is gone, the claim's mark tells.
fn asked_for<'a>(claim: &PersistentVolumeClaim, named: &'a str, cache: &Cache) -> &'a str {
    let Some(plugin) = Plugin::of_driver(named) else { return named };
    let class = claim.class().and_then(|class| cache.class(&ObjectKey::cluster(class)));
    let plugins = match class {
        Some(class) => class.provisioner == plugin.name(),
        None => claim.metadata.annotation(names::MIGRATED_TO) == Some(named),
    };
    if plugins { plugin.name() } else { named }
}

/// Growing is the work of the driver's resizer, if it has one, and of the node.
fn grown_by(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> Option<(String, bool)> {
    let volume = cache.volume(&ObjectKey::cluster(claim.spec.volume_name.as_str()))?;
    match (&volume.spec.csi, rules_translate::plugin_of(&volume)) {
        (Some(source), _) => Some((source.driver.clone(), false)),
        (None, Some(plugin)) if local.migration.is_migrated(plugin) => Some((plugin.driver().into(), true)),
        (None, Some(plugin)) if local.is_served(plugin.name()) => Some((plugin.name().into(), true)),
        (None, Some(_) | None) => None,
    }
}

fn standing(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> BindingState {
    let completed = claim.metadata.annotation(names::BIND_COMPLETED).is_some();
    match (completed, claim.spec.volume_name.is_empty()) {
        (true, true) => BindingState::Completed(NamedVolume::Nameless),
        (true, false) => BindingState::Completed(target(claim, cache)),
        (false, false) => BindingState::Named(target(claim, cache)),
        (false, true) => BindingState::Unbound(prospect(claim, cache, local)),
    }
}

fn target(claim: &PersistentVolumeClaim, cache: &Cache) -> NamedVolume {
    let name = &claim.spec.volume_name;
    let Some(volume) = cache.volume(&ObjectKey::cluster(name.as_str())) else {
        return NamedVolume::Missing(name.clone());
    };
    match &volume.spec.claim_ref {
        None => NamedVolume::Free(Candidate { fit: Fit::of_free(claim, &volume), volume }),
        Some(_) if refers(&volume, claim) => {
            NamedVolume::Ours(Candidate { fit: Fit::of_reserved(claim, &volume), volume })
        }
        Some(holder) => {
            NamedVolume::Foreign { volume: name.clone(), holder: format!("{}/{}", holder.namespace, holder.name) }
        }
    }
}

/// PV-8: by namespace and name, and by uid unless the reference leaves it open.
fn refers(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|holder| {
        holder.namespace == claim.metadata.namespace
            && holder.name == claim.metadata.name
            && (holder.uid.is_empty() || holder.uid == claim.metadata.uid)
    })
}

fn prospect(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> Prospect {
    if let Some(reserved) = reserved(claim, cache) {
        return Prospect::Reserved(reserved);
    }
    if let Err(text) = requested(claim) {
        return Prospect::BadRequest(text);
    }
    let class_name = claim.class().unwrap_or("");
    let class = cache.class(&ObjectKey::cluster(class_name));
    // PV-18: a missing class is not delayed.
    let delayed = class.as_ref().is_some_and(|class| class.waits_for_consumer());
    let placed = claim.metadata.annotation(names::SELECTED_NODE).is_some_and(|node| !node.is_empty());
    // PV-44: which of the free volumes can be reached from the chosen node is the scheduler's to judge. It says so by
    // reserving one; otherwise one is to be made.
    if !delayed && let Some(volume) = best_free(claim, cache) {
        return Prospect::Free(volume);
    }
    match (claim.class(), class) {
        (None, _) => match StorageClass::default_of(cache.classes()) {
            Some(class) => Prospect::DefaultClass(class.metadata.name.clone()),
            None => Prospect::NoClass,
        },
        (Some(""), _) => Prospect::NoClass,
        (Some(name), None) => Prospect::ClassMissing(name.into()),
        (Some(name), Some(_)) if delayed && !placed => {
            Prospect::AwaitsConsumer { class: name.into(), pods: pods_without_node(claim, cache) }
        }
        (Some(name), Some(class)) => provisioned_by(name, &class, local),
    }
}

fn provisioned_by(name: &str, class: &StorageClass, local: &Local) -> Prospect {
    let provisioner = class.provisioner.clone();
    if let Some(driver) = local.driver_for(&provisioner) {
        Prospect::Provision { class: name.into(), provisioner: driver.into() } // PV-36
    } else if local.is_served(&provisioner) {
        Prospect::Provision { class: name.into(), provisioner } // S4-41
    } else if provisioner == names::NO_PROVISIONER {
        Prospect::MadeByHand(name.into())
    } else if provisioner.starts_with("kubernetes.io/") {
        Prospect::InTree { class: name.into(), provisioner } // PV-35
    } else {
        Prospect::Provision { class: name.into(), provisioner }
    }
}

/// The volume that refers to the claim. One that does so by uid is a binding half written, and comes first; after
/// that, fitting ones come before others, and the order is by name.
fn reserved(claim: &PersistentVolumeClaim, cache: &Cache) -> Option<Candidate> {
    let term = claim.metadata.key().to_string();
    let referring = cache.volumes_by_claim(&term).filter(|volume| refers(volume, claim));
    let candidates = referring.map(|volume| Candidate { fit: Fit::of_reserved(claim, &volume), volume });
    // A volume reserved by name alone that does not fit is no reservation of ours (PV-14).
    let ours = candidates.filter(|candidate| by_uid(candidate) || candidate.fit == Fit::Fits);
    ours.min_by_key(|candidate| (!by_uid(candidate), candidate.fit != Fit::Fits))
}

fn by_uid(candidate: &Candidate) -> bool {
    candidate.volume.spec.claim_ref.as_ref().is_some_and(|holder| !holder.uid.is_empty())
}

/// PV-13, PV-14: among the free volumes of the class, fewest access modes first, then smallest, then by name.
fn best_free(claim: &PersistentVolumeClaim, cache: &Cache) -> Option<Arc<PersistentVolume>> {
    let free = cache.free_volumes_by_class(claim.class().unwrap_or("")).filter(|volume| {
        volume.status.phase == VolumePhase::Available
            && Fit::of_free(claim, volume) == Fit::Fits
            && claim.spec.selector.as_ref().is_none_or(|wanted| wanted.selects(&volume.metadata.labels))
            && !is_anothers(volume, cache)
    });
    free.min_by_key(|volume| (volume.spec.access_modes.len(), capacity(volume).unwrap_or(i64::MAX)))
}

/// A claim whose binding was completed names this volume, though somebody took the volume's own reference away. The
/// claim will repair that; nobody else may step in between (reliability 16).
fn is_anothers(volume: &PersistentVolume, cache: &Cache) -> bool {
    cache
        .claims_by_volume(&volume.metadata.name)
        .any(|claim| claim.metadata.annotation(names::BIND_COMPLETED).is_some())
}

/// PV-19: pods that would be the first consumer, had they a node.
fn pods_without_node(claim: &PersistentVolumeClaim, cache: &Cache) -> Vec<String> {
    let term = claim.metadata.key().to_string();
    let pods = cache.pods_by_claim(&term);
    pods.filter(|pod| !pod.is_terminal() && pod.spec.node_name.is_empty())
        .map(|pod| pod.metadata.name.clone())
        .collect()
}

pub(crate) fn volume(name: &str, cache: &Cache, local: &Local) -> VolumeView {
    let Some(volume) = cache.volume(&ObjectKey::cluster(name)) else { return VolumeView::Gone };
    let provisioner = volume.metadata.annotation(names::PROVISIONED_BY);
    let mark = local.mark(&volume.metadata, provisioner);
    let of_source = || rules_translate::plugin_of(&volume).map(Plugin::name);
    let served = provisioner.filter(|name| !name.is_empty()).or_else(of_source).is_some_and(|one| local.is_served(one));
    VolumeView::Here(VolumeFacts {
        holder: holder(&volume, cache),
        mark,
        served,
        pods: pods_left(&volume, cache),
        volume,
    })
}

/// Its data is to be scrubbed once its claim is gone.
pub(crate) fn is_recycled(volume: &PersistentVolume) -> bool {
    volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Recycle
}

/// PV-29: if there is a claim of that name again, they are its.
fn pods_left(volume: &PersistentVolume, cache: &Cache) -> Vec<String> {
    let Some(holder) = volume.spec.claim_ref.as_ref().filter(|_| is_recycled(volume)) else { return Vec::new() };
    let key = ObjectKey::new(holder.namespace.as_str(), holder.name.as_str());
    if cache.claim(&key).is_some() {
        return Vec::new();
    }
    let pods = cache.pods_by_claim(&key.to_string());
    pods.filter(|pod| !pod.is_terminal()).map(|pod| pod.metadata.name.clone()).collect()
}

fn holder(volume: &PersistentVolume, cache: &Cache) -> VolumeOwner {
    let Some(reference) = &volume.spec.claim_ref else { return VolumeOwner::Nobody };
    let key = ObjectKey::new(reference.namespace.as_str(), reference.name.as_str());
    if reference.uid.is_empty() {
        return VolumeOwner::Reserved(key);
    }
    match cache.claim(&key).filter(|claim| claim.metadata.uid == reference.uid) {
        None => VolumeOwner::Unseen { claim: key, uid: reference.uid.clone() },
        Some(claim) if claim.spec.volume_name.is_empty() && claim.volume_mode() != volume.volume_mode() => {
            VolumeOwner::Mismatched(key)
        }
        Some(claim) if claim.spec.volume_name.is_empty() => VolumeOwner::Unbound(key),
        Some(claim) if claim.spec.volume_name == volume.metadata.name => VolumeOwner::Bound(key),
        Some(claim) => VolumeOwner::Elsewhere { claim: key, volume: claim.spec.volume_name.clone() },
    }
}
