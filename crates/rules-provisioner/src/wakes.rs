use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{
    CSINode, Lease, Node, ObjectKey, PersistentVolume, PersistentVolumeClaim, ReferenceGrant, StorageClass,
    VolumeAttachment, VolumeAttributesClass, VolumeSnapshot, VolumeSnapshotContent, names,
};
use control::{Cache, Route, Sides, routes};

use crate::intent::{self, journal};
use crate::{Key, Local, Provisioner};

type Woken<'a> = control::Woken<'a, Provisioner>;

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let claims = cache.claims().filter(|claim| is_asked(claim, local));
    let volumes = cache.volumes().filter(|volume| is_ours(volume, local));
    claims
        .map(|claim| key_of(&claim))
        .chain(begun(cache, local))
        .chain(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())))
        .collect()
}

fn key_of(claim: &PersistentVolumeClaim) -> Key {
    Key::Claim { key: claim.metadata.key(), uid: claim.metadata.uid.clone() }
}

/// Claims with an entry in the journal, some of which may be gone.
fn begun(cache: &Cache, local: &Local) -> Vec<Key> {
    journal::entries(cache, local, key_in)
}

fn key_in(uid: &str, record: &str) -> Option<Key> {
    intent::key_in(record).map(|key| Key::Claim { key, uid: uid.into() })
}

/// Everything a decision read wakes its key.
pub(crate) const ROUTES: &[Route<Provisioner>] = routes![
    PersistentVolumeClaim => each(claim_wakes),
    PersistentVolume => each(volume_wakes),
    StorageClass => each(class_wakes),
    VolumeAttachment => each(attachment_wakes),
    CSINode => both(csi_node_wakes),
    Node => both(node_wakes),
    VolumeAttributesClass => each(attributes_class_wakes),
    VolumeSnapshot => each(snapshot_wakes),
    VolumeSnapshotContent => each(content_wakes),
    ReferenceGrant => each(grant_wakes),
    Lease => both(journal_wakes),
];

/// The claim itself, and those whose volumes are made from its volume.
fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    wake_if_asked(claim, woken);
    if journal::has_entry(&claim.metadata.uid, woken.cache, woken.local) {
        woken.wake(key_of(claim));
    }
    wake_copies("PersistentVolumeClaim", &claim.metadata.key(), woken);
    if claim.metadata.has_finalizer(names::CLONE_PROTECTION) {
        wake_begun_copies("PersistentVolumeClaim", &claim.metadata.key(), woken);
    }
}

/// The volume itself, the claim whose volume has, or would have, that name, and claims whose volumes are made from it.
fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    let name = &volume.metadata.name;
    if is_ours(volume, woken.local) {
        woken.wake(Key::Volume(name.clone()));
    }
    let Some(holder) = &volume.spec.claim_ref else { return wake_namesakes(name, woken) };
    let key = ObjectKey::new(holder.namespace.as_str(), holder.name.as_str());
    wake_copies("PersistentVolumeClaim", &key, woken);
    if volume.metadata.is_deleting() {
        wake_begun_copies("PersistentVolumeClaim", &key, woken);
    }
    if let Some(claim) = woken.cache.claim(&key) {
        wake_if_asked(&claim, woken);
    }
    if journal::has_entry(&holder.uid, woken.cache, woken.local) {
        woken.wake(Key::Claim { key, uid: holder.uid.clone() });
    }
    // A volume named after the whole uid of the claim it is for can have the name of no other claim's volume.
    let whole = woken.local.settings.volume_name_uuid_length.is_none();
    if !whole || woken.local.volume_name(&holder.uid) != *name {
        wake_namesakes(name, woken);
    }
}

/// Claims of the class that have no volume yet or are being worked on, and volumes to be deleted that say nothing of
/// the secret that takes, because the class does. In a large cluster nearly all claims and volumes are bound to each
/// other.
fn class_wakes(class: &StorageClass, woken: &mut Woken<'_>) {
    let (name, local) = (class.metadata.name.as_str(), woken.local);
    woken.cache.unbound_claims_by_class(name).for_each(|claim| wake_if_asked(&claim, woken));
    woken.wake_all(begun(woken.cache, local));
    let silent = |volume: &Arc<PersistentVolume>| {
        is_ours(volume, local) && volume.metadata.annotation(names::DELETION_SECRET_NAME).is_none()
    };
    let volumes = woken.cache.loose_volumes_by_class(name).filter(silent);
    woken.wake_all(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())));
}

/// The last attachment to go lets a volume be deleted.
fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_>) {
    woken.wake_all(attachment.volume().map(|volume| Key::Volume(volume.into())));
}

/// What a node says of itself all the time does not matter; where it is does.
fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    if woken.local.uses_topology() && moved(&node) {
        wake_unbound(|_| true, woken);
    }
}

fn csi_node_wakes(node: Sides<'_, CSINode>, woken: &mut Woken<'_>) {
    if woken.local.uses_topology() && registered(&node, &woken.local.driver) {
        wake_unbound(|_| true, woken);
    }
}

fn attributes_class_wakes(class: &VolumeAttributesClass, woken: &mut Woken<'_>) {
    let name = Some(class.metadata.name.as_str());
    wake_unbound(|claim| claim.spec.volume_attributes_class_name.as_deref() == name, woken);
}

fn snapshot_wakes(snapshot: &VolumeSnapshot, woken: &mut Woken<'_>) {
    wake_copies("VolumeSnapshot", &snapshot.metadata.key(), woken);
    wake_begun_copies("VolumeSnapshot", &snapshot.metadata.key(), woken);
}

fn content_wakes(content: &VolumeSnapshotContent, woken: &mut Woken<'_>) {
    let held = &content.spec.volume_snapshot_ref;
    wake_copies("VolumeSnapshot", &ObjectKey::new(held.namespace.as_str(), held.name.as_str()), woken);
}

fn grant_wakes(grant: &ReferenceGrant, woken: &mut Woken<'_>) {
    let from = grant.metadata.namespace.as_str();
    wake_unbound(|claim| claim.source().is_some_and(|(_, namespace)| namespace == from), woken);
}

fn journal_wakes(lease: Sides<'_, Lease>, woken: &mut Woken<'_>) {
    for (uid, record) in journal::changed(&lease, woken.local) {
        let Some(key) = intent::key_in(record) else { continue };
        // The last entry to go lets a volume be deleted.
        let volumes = woken.cache.volumes_by_claim(&key.to_string());
        woken.wake_all(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())));
        woken.wake(Key::Claim { key, uid: uid.into() });
    }
    if journal::has_room_again(&lease, woken.local) {
        wake_unbound(|_| true, woken);
    }
}

fn wake_if_asked(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    if is_asked(claim, woken.local) {
        woken.wake(key_of(claim));
    }
}

/// Claims whose volumes are made from this.
fn wake_copies(kind: &str, source: &ObjectKey, woken: &mut Woken<'_>) {
    let term = format!("{kind}/{}/{}", source.namespace, source.name);
    woken.cache.claims_by_source(&term).for_each(|claim| wake_if_asked(&claim, woken));
}

/// Claims that are gone and whose volumes were being made from this. It means reading the journal, so it is asked only
/// where the answer may matter.
fn wake_begun_copies(kind: &str, source: &ObjectKey, woken: &mut Woken<'_>) {
    woken.wake_all(begun_from(kind, source, woken.cache, woken.local));
}

/// Claims that have no volume yet.
fn wake_unbound(concerned: impl Fn(&PersistentVolumeClaim) -> bool, woken: &mut Woken<'_>) {
    let waiting = woken.cache.unbound_claims().filter(|claim| concerned(claim));
    waiting.for_each(|claim| wake_if_asked(&claim, woken));
}

/// Rare: a volume whose name looks like one of ours, and which is not for the claim it would be named after.
fn wake_namesakes(name: &str, woken: &mut Woken<'_>) {
    let (cache, local) = (woken.cache, woken.local);
    if name.starts_with(local.settings.volume_name_prefix.as_str()) {
        // A claim that names its volume asks for no other, unless one was begun for it.
        let found = cache.unbound_claims().filter(|claim| volume_name(claim, cache, local) == name);
        found.for_each(|claim| wake_if_asked(&claim, woken));
        woken.wake_all(begun(cache, local));
    }
}

/// The labels of a node changed, or the node came or went.
pub(crate) fn moved(node: &Sides<'_, Node>) -> bool {
    let [before, after] = [node.before, node.after].map(|node| node.map(|node| &node.metadata.labels));
    before != after
}

/// What a node says about a driver changed, or the node came or went.
pub(crate) fn registered(node: &Sides<'_, CSINode>, driver: &str) -> bool {
    let [before, after] = [node.before, node.after]
        .map(|node| node.map(|node| node.spec.drivers.iter().find(|entry| entry.name == driver)));
    before != after
}

/// The provisioner that was asked to make the claim's volume (P5: the older name is read as well).
pub(crate) fn asked(claim: &PersistentVolumeClaim) -> Option<&str> {
    let current = claim.metadata.annotation(names::STORAGE_PROVISIONER);
    current.or(claim.metadata.annotation(names::STORAGE_PROVISIONER_BETA))
}

/// We were asked: by name, or because our driver has taken over from the plugin that was (S4-44). A plugin stands down
/// where the mark says so (S4-9).
pub(crate) fn is_asked(claim: &PersistentVolumeClaim, local: &Local) -> bool {
    let mark = claim.metadata.migrated_to();
    let (taken_over, stands_down) = (mark == Some(&*local.driver), local.is_plugin() && mark.is_some());
    asked(claim).is_some_and(|name| (local.is_known(name) && !stands_down) || (taken_over && local.answers_to(name)))
}

/// The name the claim's volume has or would get. What was recorded counts, whatever the settings are now.
pub(crate) fn volume_name(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> String {
    let page = Arc::new(journal::page(&claim.metadata.uid, cache, local));
    match intent::find(claim, &page).1 {
        Some(recorded) => recorded.terms.request.name,
        None => local.volume_name(&claim.metadata.uid),
    }
}

/// Claims with an entry in the journal whose volumes are made from this.
pub(crate) fn begun_from(kind: &str, source: &ObjectKey, cache: &Cache, local: &Local) -> Vec<Key> {
    let is_it = |record: &str| {
        // Reading every entry would cost more than looking for the name in it.
        let found = record.contains(source.name.as_str()).then(|| intent::source_in(record)).flatten();
        found.is_some_and(|found| {
            found.kind.object() == kind && found.namespace == source.namespace && found.name == source.name
        })
    };
    journal::entries(cache, local, |uid, record| is_it(record).then(|| key_in(uid, record)).flatten())
}

/// Sidecars 2.10: made by us, taken over by us, or made by hand for our driver (P82). Of a plugin, what its driver has
/// not taken over (PV-27, PV-30).
pub(crate) fn is_ours(volume: &PersistentVolume, local: &Local) -> bool {
    let made_by = volume.metadata.annotation(names::PROVISIONED_BY).filter(|name| !name.is_empty());
    if local.is_plugin() {
        let by_hand = || rules_translate::plugin_of(volume) == local.plugin();
        return volume.metadata.migrated_to().is_none() && made_by.map_or_else(by_hand, |name| local.is_known(name));
    }
    let given = volume.metadata.migrated_to().is_some_and(|name| local.answers_to(name));
    match volume.metadata.annotation(names::PROVISIONED_BY) {
        Some(name) => local.answers_to(name) || given,
        None => given || volume.spec.csi.as_ref().is_some_and(|source| *source.driver == *local.driver),
    }
}
