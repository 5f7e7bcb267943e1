use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::names;
use api::{Object, ObjectKey, PersistentVolume, PersistentVolumeClaim};
use control::{Cache, Change};

use crate::terms::{recorded, terms};
use crate::{ClaimView, Course, Key, Local, Offer, Slot, VolumeView, Work};

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let claims = cache.claims().filter(|claim| asked(claim) == Some(local.driver.as_str()));
    let volumes = cache.volumes().filter(|volume| is_ours(volume, local));
    claims
        .map(|claim| Key::Claim(claim.metadata.key()))
        .chain(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())))
        .collect()
}

pub(crate) fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
    let mut woken = BTreeSet::new();
    for side in change.sides() {
        match side {
            Object::PersistentVolumeClaim(claim) => {
                if asked(claim) == Some(local.driver.as_str()) {
                    woken.insert(Key::Claim(claim.metadata.key()));
                }
            }
            Object::PersistentVolume(volume) => volume_wakes(volume, cache, local, &mut woken),
            Object::StorageClass(class) => {
                let claims = cache.claims_by_class(&class.metadata.name);
                let ours = claims.filter(|claim| asked(claim) == Some(local.driver.as_str()));
                woken.extend(ours.map(|claim| Key::Claim(claim.metadata.key())));
            }
            // The last attachment to go lets a volume be deleted.
            Object::VolumeAttachment(attachment) => {
                if let Some(volume) = attachment.volume() {
                    woken.insert(Key::Volume(volume.into()));
                }
            }
            Object::CSIDriver(_)
            | Object::CSINode(_)
            | Object::Node(_)
            | Object::Pod(_)
            | Object::Secret(_)
            | Object::VolumeAttributesClass(_)
            | Object::CSIStorageCapacity(_)
            | Object::VolumeSnapshot(_)
            | Object::VolumeSnapshotContent(_)
            | Object::ReferenceGrant(_) => {}
        }
    }
    woken.into_iter().collect()
}

/// The volume itself, and the claim whose volume has, or would have, that name.
fn volume_wakes(volume: &PersistentVolume, cache: &Cache, local: &Local, woken: &mut BTreeSet<Key>) {
    if is_ours(volume, local) {
        woken.insert(Key::Volume(volume.metadata.name.clone()));
    }
    let named_for = |claim: &PersistentVolumeClaim| {
        names::volume_name_for_claim(&claim.metadata.uid) == volume.metadata.name
            && asked(claim) == Some(local.driver.as_str())
    };
    let holder = volume.spec.claim_ref.as_ref().map(|holder| ObjectKey::new(holder.namespace.as_str(), &*holder.name));
    match holder.and_then(|key| cache.claim(&key)) {
        Some(claim) if named_for(claim) => {
            woken.insert(Key::Claim(claim.metadata.key()));
        }
        // Rare: a volume whose name looks like one of ours and which is for somebody else.
        Some(_) | None if volume.metadata.name.starts_with("pvc-") => {
            woken.extend(cache.claims().filter(|claim| named_for(claim)).map(|claim| Key::Claim(claim.metadata.key())));
        }
        Some(_) | None => {}
    }
}

/// The provisioner that was asked to make the claim's volume (P5: the older name is read as well).
fn asked(claim: &PersistentVolumeClaim) -> Option<&str> {
    let current = claim.metadata.annotation(names::STORAGE_PROVISIONER);
    current.or(claim.metadata.annotation(names::STORAGE_PROVISIONER_BETA))
}

/// Sidecars 2.10: made by us, or made by hand for our driver (P82).
fn is_ours(volume: &PersistentVolume, local: &Local) -> bool {
    match volume.metadata.annotation(names::PROVISIONED_BY) {
        Some(provisioner) => provisioner == local.driver,
        None => volume.spec.csi.as_ref().is_some_and(|source| source.driver == local.driver),
    }
}

pub(crate) fn claim(key: &ObjectKey, cache: &Cache, local: &Local) -> ClaimView {
    let Some(claim) = cache.claim(key) else { return ClaimView::Gone };
    match asked(claim) {
        None => return ClaimView::NobodyAsked,
        Some(other) if other != local.driver => return ClaimView::AnotherAsked(other.into()),
        Some(_) => {}
    }
    let intent = claim.metadata.has_finalizer(names::PROVISIONING_INTENT);
    let name = claim.class().unwrap_or("");
    if !intent
        && let Some(class) = cache.class(&ObjectKey::cluster(name))
        && class.provisioner != local.driver
    {
        return ClaimView::ClassOfAnother { class: name.into(), provisioner: class.provisioner.clone() };
    }
    ClaimView::Ours(Work {
        claim: claim.clone(),
        local: local.clone(),
        intent,
        course: course(claim, name, cache),
        slot: slot(claim, cache),
        offer: offer(claim, name, cache, local),
    })
}

fn course(claim: &PersistentVolumeClaim, class: &str, cache: &Cache) -> Course {
    let class = cache.class(&ObjectKey::cluster(class));
    let placed = claim.metadata.annotation(names::SELECTED_NODE).is_some_and(|node| !node.is_empty());
    let ours = names::volume_name_for_claim(&claim.metadata.uid);
    if !claim.spec.volume_name.is_empty() && claim.spec.volume_name != ours {
        Course::Bound(claim.spec.volume_name.clone())
    } else if claim.metadata.is_deleting() {
        Course::Deleted
    } else if !claim.spec.volume_name.is_empty() {
        Course::Bound(ours)
    } else if class.is_some_and(|class| class.waits_for_consumer()) && !placed {
        Course::AwaitNode // P4
    } else {
        Course::Provide
    }
}

fn slot(claim: &PersistentVolumeClaim, cache: &Cache) -> Slot {
    let name = names::volume_name_for_claim(&claim.metadata.uid);
    let Some(volume) = cache.volume(&ObjectKey::cluster(name)) else { return Slot::Empty };
    match &volume.spec.claim_ref {
        Some(holder) if holder.uid == claim.metadata.uid => Slot::Filled,
        Some(holder) => Slot::Taken(format!("claim {}/{} with another uid", holder.namespace, holder.name)),
        None => Slot::Taken("nobody".into()),
    }
}

fn offer(claim: &PersistentVolumeClaim, name: &str, cache: &Cache, local: &Local) -> Offer {
    let record = recorded(claim);
    let class = cache.class(&ObjectKey::cluster(name)).filter(|class| class.provisioner == local.driver);
    let withdrawn = |replaced: bool, record: Option<(String, crate::Request)>| {
        let recorded = record.map(|(_, request)| request);
        Offer::Withdrawn { class: String::from(name), replaced, recorded }
    };
    match (class, record) {
        (None, record) => withdrawn(cache.class(&ObjectKey::cluster(name)).is_some(), record),
        (Some(class), Some((uid, request))) if uid != class.metadata.uid => withdrawn(true, Some((uid, request))),
        (Some(class), Some(_) | None) => match terms(claim, class) {
            Ok(terms) => Offer::Standing(terms),
            Err(obstacle) => Offer::Unfit(obstacle),
        },
    }
}

pub(crate) fn volume(name: &str, cache: &Cache, local: &Local) -> VolumeView {
    let Some(volume) = cache.volume(&ObjectKey::cluster(name)) else { return VolumeView::Gone };
    if !is_ours(volume, local) {
        return VolumeView::NotOurs;
    }
    let attachments = cache.attachments_by_volume(name);
    VolumeView::Ours {
        volume: Arc::clone(volume),
        local: local.clone(),
        attachments: attachments.map(|attachment| attachment.metadata.name.clone()).collect(),
    }
}
