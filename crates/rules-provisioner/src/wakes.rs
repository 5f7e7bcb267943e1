use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CsiNodeDriver, Object, ObjectKey, PersistentVolume, PersistentVolumeClaim, names};
use control::{Cache, Change};

use crate::intent::{self, journal};
use crate::{Key, Local};

pub(crate) fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
    let claims = cache.each_claim().filter(|claim| is_asked(claim, local));
    let volumes = cache.each_volume().filter(|volume| is_ours(volume, local));
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
    journal::entries(cache, local).filter_map(|(uid, record)| key_in(uid, record)).collect()
}

fn key_in(uid: &str, record: &str) -> Option<Key> {
    intent::key_in(record).map(|key| Key::Claim { key, uid: uid.into() })
}

/// Everything a decision read wakes its key.
pub(crate) fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
    let mut woken = Woken { keys: BTreeSet::new(), cache, local };
    for side in change.sides() {
        match side {
            Object::PersistentVolumeClaim(claim) => woken.claim_changed(claim),
            Object::PersistentVolume(volume) => woken.volume_changed(volume),
            Object::StorageClass(class) => woken.of_class(&class.metadata.name),
            // The last attachment to go lets a volume be deleted.
            Object::VolumeAttachment(attachment) => {
                if let Some(volume) = attachment.volume() {
                    woken.keys.insert(Key::Volume(volume.into()));
                }
            }
            Object::VolumeSnapshot(snapshot) => {
                woken.made_from("VolumeSnapshot", &snapshot.metadata.key());
                woken.begun_from("VolumeSnapshot", &snapshot.metadata.key());
            }
            Object::VolumeSnapshotContent(content) => {
                let held = &content.spec.volume_snapshot_ref;
                woken.made_from("VolumeSnapshot", &ObjectKey::new(held.namespace.as_str(), held.name.as_str()));
            }
            Object::VolumeAttributesClass(class) => {
                let names_it = |claim: &PersistentVolumeClaim| {
                    claim.spec.volume_attributes_class_name.as_deref() == Some(class.metadata.name.as_str())
                };
                woken.unbound(names_it);
            }
            Object::ReferenceGrant(grant) => {
                let concerns = |claim: &PersistentVolumeClaim| {
                    claim.source().is_some_and(|(_, namespace)| namespace == grant.metadata.namespace)
                };
                woken.unbound(concerns);
            }
            // What a node says of itself all the time does not matter; where it is does.
            Object::Node(_) if local.uses_topology() && moved(change) => woken.unbound(|_| true),
            Object::CSINode(_) if local.uses_topology() && registered(change, &local.driver) => woken.unbound(|_| true),
            Object::Lease(_) => {} // Both sides at once, below.
            Object::Node(_)
            | Object::CSINode(_)
            | Object::CSIDriver(_)
            | Object::Pod(_)
            | Object::Secret(_)
            | Object::CSIStorageCapacity(_) => {}
        }
    }
    for (uid, record) in journal::changed(change, local) {
        let Some(key) = key_in(uid, record) else { continue };
        // The last entry to go lets a volume be deleted.
        if let Key::Claim { key, .. } = &key {
            let claim = format!("{key}");
            let volumes = cache.volumes_by_claim(&claim);
            woken.keys.extend(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())));
        }
        woken.keys.insert(key);
    }
    if journal::has_room_again(change, local) {
        woken.unbound(|_| true);
    }
    woken.keys.into_iter().collect()
}

struct Woken<'a> {
    keys: BTreeSet<Key>,
    cache: &'a Cache,
    local: &'a Local,
}

impl Woken<'_> {
    fn claim(&mut self, claim: &PersistentVolumeClaim) {
        if is_asked(claim, self.local) {
            self.keys.insert(key_of(claim));
        }
    }

    /// The claim itself, and those whose volumes are made from its volume.
    fn claim_changed(&mut self, claim: &PersistentVolumeClaim) {
        self.claim(claim);
        if journal::has_entry(&claim.metadata.uid, self.cache, self.local) {
            self.keys.insert(key_of(claim));
        }
        self.made_from("PersistentVolumeClaim", &claim.metadata.key());
        if claim.metadata.has_finalizer(names::CLONE_PROTECTION) {
            self.begun_from("PersistentVolumeClaim", &claim.metadata.key());
        }
    }

    fn made_from(&mut self, kind: &str, source: &ObjectKey) {
        let term = format!("{kind}/{}/{}", source.namespace, source.name);
        self.cache.claims_by_source(&term).for_each(|claim| self.claim(claim));
    }

    /// Claims that are gone and whose volumes were being made from this. It means reading the journal, so it is asked only
    /// where the answer may matter.
    fn begun_from(&mut self, kind: &str, source: &ObjectKey) {
        self.keys.extend(begun_from(kind, source, self.cache, self.local));
    }

    /// Claims of the class, and volumes that say nothing of the secret they are deleted with, because the class does.
    fn of_class(&mut self, class: &str) {
        self.cache.claims_by_class(class).for_each(|claim| self.claim(claim));
        let silent = |volume: &&Arc<PersistentVolume>| {
            is_ours(volume, self.local) && volume.metadata.annotation(names::DELETION_SECRET_NAME).is_none()
        };
        let volumes = self.cache.volumes_by_class(class).filter(silent);
        self.keys.extend(volumes.map(|volume| Key::Volume(volume.metadata.name.clone())));
    }

    /// Claims that have no volume yet.
    fn unbound(&mut self, concerned: impl Fn(&PersistentVolumeClaim) -> bool) {
        let waiting = self.cache.each_claim().filter(|claim| claim.spec.volume_name.is_empty() && concerned(claim));
        waiting.for_each(|claim| self.claim(&claim));
    }

    /// The volume itself, the claim whose volume has, or would have, that name, and claims whose volumes are made from it.
    fn volume_changed(&mut self, volume: &PersistentVolume) {
        let name = &volume.metadata.name;
        if is_ours(volume, self.local) {
            self.keys.insert(Key::Volume(name.clone()));
        }
        let Some(holder) = &volume.spec.claim_ref else { return self.namesakes(name) };
        let key = ObjectKey::new(holder.namespace.as_str(), holder.name.as_str());
        self.made_from("PersistentVolumeClaim", &key);
        if volume.metadata.is_deleting() {
            self.begun_from("PersistentVolumeClaim", &key);
        }
        if let Some(claim) = self.cache.claim(&key) {
            self.claim(claim);
        }
        if journal::has_entry(&holder.uid, self.cache, self.local) {
            self.keys.insert(Key::Claim { key, uid: holder.uid.clone() });
        }
        // A volume named after the whole uid of the claim it is for can have the name of no other claim's volume.
        let whole = self.local.settings.volume_name_uuid_length.is_none();
        if !whole || self.local.volume_name(&holder.uid) != *name {
            self.namesakes(name);
        }
    }

    /// Rare: a volume whose name looks like one of ours, and which is not for the claim it would be named after.
    fn namesakes(&mut self, name: &str) {
        if name.starts_with(self.local.settings.volume_name_prefix.as_str()) {
            let found = self.cache.each_claim().filter(|claim| volume_name(claim, self.cache, self.local) == name);
            found.for_each(|claim| self.claim(&claim));
        }
    }
}

/// The labels of a node changed, or the node came or went.
pub(crate) fn moved(change: &Change) -> bool {
    fn labels(side: Option<&Object>) -> Option<&BTreeMap<String, String>> {
        match side {
            Some(Object::Node(node)) => Some(&node.metadata.labels),
            Some(_) | None => None,
        }
    }
    labels(change.before.as_ref()) != labels(change.after.as_ref())
}

/// What a node says about a driver changed, or the node came or went.
pub(crate) fn registered(change: &Change, driver: &str) -> bool {
    fn entry<'a>(side: Option<&'a Object>, driver: &str) -> Option<Option<&'a CsiNodeDriver>> {
        match side {
            Some(Object::CSINode(node)) => Some(node.spec.drivers.iter().find(|entry| entry.name == driver)),
            Some(_) | None => None,
        }
    }
    entry(change.before.as_ref(), driver) != entry(change.after.as_ref(), driver)
}

/// The provisioner that was asked to make the claim's volume (P5: the older name is read as well).
pub(crate) fn asked(claim: &PersistentVolumeClaim) -> Option<&str> {
    let current = claim.metadata.annotation(names::STORAGE_PROVISIONER);
    current.or(claim.metadata.annotation(names::STORAGE_PROVISIONER_BETA))
}

/// We were asked: by name, or because our driver has taken over from the plugin that was (S4-44).
pub(crate) fn is_asked(claim: &PersistentVolumeClaim, local: &Local) -> bool {
    let taken_over = claim.metadata.migrated_to() == Some(&*local.driver);
    asked(claim).is_some_and(|name| local.is_known(name) || (taken_over && local.answers_to(name)))
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
    let entries = journal::entries(cache, local).filter(|(_, record)| is_it(record));
    entries.filter_map(|(uid, record)| key_in(uid, record)).collect()
}

/// Sidecars 2.10: made by us, taken over by us, or made by hand for our driver (P82).
pub(crate) fn is_ours(volume: &PersistentVolume, local: &Local) -> bool {
    let given = volume.metadata.migrated_to().is_some_and(|name| local.answers_to(name));
    match volume.metadata.annotation(names::PROVISIONED_BY) {
        Some(name) => local.answers_to(name) || given,
        None => given || volume.spec.csi.as_ref().is_some_and(|source| *source.driver == *local.driver),
    }
}
