use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use api::{Kind, Object, ObjectKey};

use crate::index::{HandleOf, Index, each_term};
use crate::reads::Reads;
use crate::shelf::Shelf;
use crate::{Fold, Rules};

/// The API objects a process has seen, with the ways rules look them up.
///
/// Fed by watches, and by the answers to our own writes: once a write is answered, no decision sees an older object
/// (reliability 104).
///
/// A large cluster costs little: of most objects only the difference from a sample is kept, and an index holds numbers.
/// Whoever reads an object gets an `Arc` of its own, so nothing that was read stays behind in the cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    places: BTreeMap<Kind, BTreeMap<ObjectKey, u32>>,
    shelf: Shelf,
    /// A way, the hash of a term, and where an object is that may be found so.
    index: BTreeSet<(Index, u32, u32)>,
    /// The newest version each kind's watch has delivered: everything up to here has been seen.
    seen: BTreeMap<Kind, u64>,
    /// Uids of objects that the answer to our own write said are gone, until the watch says so too: news of an earlier
    /// moment must not bring them back (reliability 104).
    gone: BTreeMap<(Kind, ObjectKey), String>,
    reads: Reads,
    /// Under which `driver^handle` a volume without a CSI source is found.
    handle_of: Option<HandleOf>,
}

/// Caches are the same if they hold the same, wherever they hold it.
impl PartialEq for Cache {
    fn eq(&self, other: &Cache) -> bool {
        self.seen == other.seen && self.entries().eq(other.entries())
    }
}

impl Eq for Cache {}

impl Hash for Cache {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries().for_each(|entry| entry.hash(state));
        self.seen.hash(state);
    }
}

/// One object changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// As it was; `None` if it is new.
    pub before: Option<Object>,
    /// As it is; `None` if it is gone.
    pub after: Option<Object>,
}

impl Change {
    /// The newer side, or the older one of an object that is gone.
    pub fn object(&self) -> Option<&Object> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// Both sides, for rules that must consider what an object pointed at before and after.
    pub fn sides(&self) -> impl Iterator<Item = &Object> {
        self.before.iter().chain(self.after.iter())
    }
}

impl Cache {
    /// An empty cache for these rules.
    pub fn of<R: Rules>() -> Cache {
        Cache { handle_of: R::HANDLE_OF, ..Cache::default() }
    }

    /// Finds volumes of in-tree plugins by their translated handles from now on, those that it holds already too
    /// (S4-13).
    pub fn translate(&mut self, handle_of: HandleOf) {
        if self.handle_of.replace(handle_of).is_some() {
            return; // All rules that translate do it alike.
        }
        for (_, place) in self.places.get(&Kind::PersistentVolume).into_iter().flatten() {
            if let Some(volume) = self.shelf.get(*place) {
                each_term(&volume, Some(handle_of), |index, term| {
                    self.index.insert((index, term.hash(), *place));
                });
            }
        }
    }

    /// A watch says the object is now like this.
    pub fn set(&mut self, object: Object) -> Option<Change> {
        let version = object.meta().version();
        let seen = self.seen.entry(object.kind()).or_default();
        *seen = version.max(*seen);
        self.put(object)
    }

    /// A watch says the object is gone, as of this version of it.
    pub fn remove(&mut self, object: &Object) -> Option<Change> {
        let version = object.meta().version();
        let seen = self.seen.entry(object.kind()).or_default();
        *seen = version.max(*seen);
        let id = (object.kind(), object.meta().key());
        if self.gone.get(&id) == Some(&object.meta().uid) {
            self.gone.remove(&id);
        }
        let held = self.held(id.0, &id.1)?;
        if held.meta().version() > version {
            return None; // A namesake created since, known to us from the answer to a write.
        }
        Some(self.take(&id.1, held))
    }

    /// The answer to one of our writes. It counts unless the watch has already gone past it.
    pub fn fold(&mut self, fold: Fold) -> Option<Change> {
        match fold {
            Fold::Set(object) => {
                if object.meta().version() <= self.seen(object.kind()) {
                    None
                } else {
                    self.put(object)
                }
            }
            Fold::Gone { kind, key, uid } => {
                let held = self.held(kind, &key).filter(|held| held.meta().uid == uid)?;
                self.gone.insert((kind, key.clone()), uid);
                Some(self.take(&key, held))
            }
        }
    }

    /// A list at this version: these objects of this kind exist and no others, save those we wrote since.
    pub fn replace(&mut self, kind: Kind, version: u64, objects: Vec<Object>) -> Vec<Change> {
        self.replace_rest(kind, version, objects, BTreeSet::new())
    }

    /// A part of a list that is not complete yet.
    pub fn part(&mut self, objects: Vec<Object>) -> Vec<Change> {
        objects.into_iter().filter_map(|object| self.put(object)).collect()
    }

    /// The last part of a list at this version: of this kind these objects exist, those of the parts before, and no
    /// others, save those we wrote since.
    pub fn replace_rest(
        &mut self,
        kind: Kind,
        version: u64,
        objects: Vec<Object>,
        before: BTreeSet<ObjectKey>,
    ) -> Vec<Change> {
        let mut listed = before;
        listed.extend(objects.iter().map(|object| object.meta().key()));
        let missing = self.ids(kind).filter(|(key, _)| !listed.contains(key));
        let missing = missing.filter_map(|(key, place)| Some((key.clone(), self.shelf.get(*place)?)));
        let gone: Vec<(ObjectKey, Object)> = missing.filter(|(_, held)| held.meta().version() <= version).collect();
        self.gone.retain(|(of, key), _| *of != kind || listed.contains(key));
        let mut changes: Vec<Change> = gone.into_iter().map(|(key, held)| self.take(&key, held)).collect();
        changes.extend(self.part(objects));
        let seen = self.seen.entry(kind).or_default();
        *seen = version.max(*seen);
        changes
    }

    fn put(&mut self, object: Object) -> Option<Change> {
        let id = (object.kind(), object.meta().key());
        if self.gone.get(&id) == Some(&object.meta().uid) {
            return None;
        }
        let (kind, key) = id;
        let held = self.held(kind, &key);
        if held.as_ref().is_some_and(|held| held.meta().version() >= object.meta().version()) {
            return None;
        }
        let before = held.and_then(|held| self.take(&key, held).before);
        let place = self.shelf.put(object.clone());
        each_term(&object, self.handle_of, |index, term| {
            self.index.insert((index, term.hash(), place));
        });
        self.places.entry(kind).or_default().insert(key, place);
        Some(Change { before, after: Some(object) })
    }

    /// Takes out the object with this key, which is `held`: whoever calls has had to unpack it already.
    fn take(&mut self, key: &ObjectKey, held: Object) -> Change {
        if let Some(place) = self.places.get_mut(&held.kind()).and_then(|places| places.remove(key)) {
            self.shelf.free(place);
            each_term(&held, self.handle_of, |index, term| {
                self.index.remove(&(index, term.hash(), place));
            });
        }
        Change { before: Some(held), after: None }
    }

    fn ids(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &u32)> {
        self.places.get(&kind).into_iter().flatten()
    }

    fn entries(&self) -> impl Iterator<Item = (&ObjectKey, Option<Object>)> {
        self.places.values().flatten().map(|(key, place)| (key, self.shelf.get(*place)))
    }

    fn held(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        self.shelf.get(*self.places.get(&kind)?.get(key)?)
    }

    /// The object of a kind and key, if it was seen.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        self.reads.note(kind);
        self.reads.count();
        self.held(kind, key)
    }

    /// Every object of a kind, by key.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = Object> {
        self.reads.note(kind);
        self.ids(kind).filter_map(|(_, place)| self.look(*place))
    }

    /// The key of every object of a kind, which costs nothing: no object is unpacked for it.
    pub fn keys(&self, kind: Kind) -> impl Iterator<Item = &ObjectKey> {
        self.reads.note(kind);
        self.ids(kind).map(|(key, _)| key)
    }

    fn look(&self, place: u32) -> Option<Object> {
        self.reads.count();
        self.shelf.get(place)
    }

    /// Objects an index lists under a term, by key.
    pub fn by(&self, index: Index, term: &str) -> impl Iterator<Item = Object> + use<> {
        self.reads.note(index.kind());
        let hash = api::names::fnv1a_32(term);
        let found = self.index.range((index, hash, 0)..=(index, hash, u32::MAX));
        let objects = found.filter_map(|(_, _, place)| self.look(*place));
        // Another term may have the same hash.
        let mut meant: Vec<Object> = objects.filter(|object| index.lists(object, term, self.handle_of)).collect();
        sort_by_key(&mut meant);
        meant.into_iter()
    }

    /// Objects an index lists under whatever term, by key. Of an index that lists an object once.
    pub(crate) fn under(&self, index: Index) -> Vec<Object> {
        self.reads.note(index.kind());
        let found = self.index.range((index, 0, 0)..=(index, u32::MAX, u32::MAX));
        let mut all: Vec<Object> = found.filter_map(|(_, _, place)| self.look(*place)).collect();
        sort_by_key(&mut all);
        all
    }

    /// How many objects were looked at so far, whoever did: what a decision costs in a large cluster, for tests of it.
    #[cfg(debug_assertions)]
    pub fn looked_at(&self) -> usize {
        self.reads.counted()
    }

    /// The newest version that the watch of a kind has delivered: the cache shows of it all that was written up to
    /// there.
    pub fn seen(&self, kind: Kind) -> u64 {
        self.seen.get(&kind).copied().unwrap_or(0)
    }

    /// Kinds whose first list has arrived.
    pub fn is_synced(&self, kind: Kind) -> bool {
        self.seen.contains_key(&kind)
    }

    /// Lets rules look at the cache, and panics if they read a kind that they do not watch: a change of such an object
    /// would never wake them. Release builds do not check. Nobody else may read this cache meanwhile.
    pub fn checked<R: Rules, T>(&self, look: impl FnOnce(&Cache) -> T) -> T {
        drop(self.reads.take());
        let answer = look(self);
        let unwatched: Vec<Kind> = self.reads.take().filter(|kind| !R::watches().contains(kind)).collect();
        assert!(unwatched.is_empty(), "{} reads {unwatched:?} and has no route for it", R::NAME);
        answer
    }
}

fn sort_by_key(objects: &mut [Object]) {
    objects.sort_by(|one, other| {
        let (one, other) = (one.meta(), other.meta());
        (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Meta, PersistentVolume, ResourceVersion, StorageClass};

    fn class(name: &str, uid: &str, version: u64) -> Object {
        let metadata = Meta {
            uid: uid.into(),
            resource_version: ResourceVersion(alloc::format!("{version}")),
            ..Meta::named(name)
        };
        StorageClass { metadata: metadata.into(), ..StorageClass::default() }.into()
    }

    // Reliability 104, PV-2: no decision sees an object older than our own last write to it, or than one seen before.
    #[test]
    fn an_answer_is_not_undone_by_a_late_watch() {
        let mut cache = Cache::default();
        cache.set(class("a", "1", 5));
        assert!(cache.fold(Fold::Set(class("a", "1", 7))).is_some());
        assert!(cache.set(class("a", "1", 6)).is_none());
        assert_eq!(cache.class(&ObjectKey::cluster("a")).unwrap().metadata.resource_version.number(), Some(7));
    }

    #[test]
    fn an_answer_older_than_the_watch_does_not_bring_back_the_dead() {
        let mut cache = Cache::default();
        cache.set(class("a", "1", 5));
        cache.remove(&class("a", "1", 9));
        assert!(cache.fold(Fold::Set(class("a", "1", 7))).is_none());
        assert!(cache.class(&ObjectKey::cluster("a")).is_none());
    }

    // Reliability 104, 109: what our own write made go is not seen again, so nothing is done about it twice.
    #[test]
    fn late_news_of_an_object_does_not_bring_it_back() {
        let mut cache = Cache::default();
        cache.set(class("a", "1", 5));
        let key = ObjectKey::cluster("a");
        let gone = Fold::Gone { kind: Kind::StorageClass, key: key.clone(), uid: "1".into() };
        assert!(cache.fold(gone).is_some());
        assert!(cache.set(class("a", "1", 6)).is_none());
        assert!(cache.replace(Kind::StorageClass, 6, alloc::vec![class("a", "1", 6)]).is_empty());
        assert!(cache.class(&key).is_none());
        // A namesake is another, before and after the watch has said that the first is gone.
        assert!(cache.set(class("a", "2", 8)).is_some());
        assert!(cache.remove(&class("a", "1", 7)).is_none());
        assert_eq!(cache.class(&key).unwrap().metadata.uid, "2");
        assert!(cache.gone.is_empty());
    }

    #[test]
    fn a_late_removal_spares_a_namesake_created_since() {
        let mut cache = Cache::default();
        cache.set(class("a", "1", 5));
        cache.fold(Fold::Set(class("a", "2", 12)));
        assert!(cache.remove(&class("a", "1", 9)).is_none());
        assert!(cache.class(&ObjectKey::cluster("a")).is_some());
    }

    #[test]
    fn a_list_removes_what_it_does_not_hold_save_our_newer_writes() {
        let mut cache = Cache::default();
        cache.set(class("old", "1", 5));
        cache.fold(Fold::Set(class("new", "2", 20)));
        let changes = cache.replace(Kind::StorageClass, 10, alloc::vec![class("other", "3", 8)]);
        assert_eq!(changes.len(), 2);
        assert!(cache.class(&ObjectKey::cluster("old")).is_none());
        assert!(cache.class(&ObjectKey::cluster("new")).is_some());
        assert!(cache.is_synced(Kind::StorageClass));
    }

    #[test]
    fn a_list_in_parts_removes_what_no_part_holds() {
        let mut cache = Cache::default();
        cache.set(class("old", "1", 5));
        cache.part(alloc::vec![class("first", "2", 6)]);
        assert!(cache.class(&ObjectKey::cluster("old")).is_some(), "the list is not complete yet");
        let before = [ObjectKey::cluster("first")].into();
        cache.replace_rest(Kind::StorageClass, 10, alloc::vec![class("last", "3", 8)], before);
        let names: Vec<String> = cache.classes().map(|class| class.metadata.name.clone()).collect();
        assert_eq!(names, ["first", "last"]);
    }

    #[test]
    fn caches_with_the_same_objects_are_the_same_whatever_happened_before() {
        let (mut one, mut other) = (Cache::default(), Cache::default());
        one.set(class("a", "1", 1));
        one.set(class("b", "2", 2));
        other.set(class("x", "9", 1));
        other.remove(&class("x", "9", 1));
        other.set(class("b", "2", 2));
        assert_ne!(one, other);
        other.set(class("a", "1", 1));
        assert_eq!(one, other);
    }

    #[test]
    fn indexes_follow_changes() {
        let mut cache = Cache::default();
        let volume = |claim: &str, version: u64| -> Object {
            let metadata = Meta { resource_version: ResourceVersion(alloc::format!("{version}")), ..Meta::named("v") };
            let mut volume = PersistentVolume { metadata: metadata.into(), ..Default::default() };
            volume.spec.claim_ref =
                Some(api::ClaimRef { namespace: "n".into(), name: claim.into(), ..Default::default() }.into());
            volume.into()
        };
        cache.set(volume("a", 1));
        cache.set(volume("b", 2));
        assert_eq!(cache.volumes_by_claim("n/a").count(), 0);
        assert_eq!(cache.volumes_by_claim("n/b").count(), 1);
    }

    // S4-13: a volume of an in-tree plugin is found by the handle that its driver knows it by, and only where somebody
    // translates; one that cannot be translated is found by no handle.
    #[test]
    fn volumes_are_found_by_their_translated_handles() {
        let volume = |name: &str, disk: &str, version: u64| -> Object {
            let metadata = Meta { resource_version: ResourceVersion(alloc::format!("{version}")), ..Meta::named(name) };
            let mut volume = PersistentVolume { metadata: metadata.into(), ..Default::default() };
            let disk = api::GcePersistentDisk { pd_name: disk.into(), ..Default::default() };
            volume.spec.in_tree = Some(alloc::boxed::Box::new(api::InTreeSource::GcePersistentDisk(disk)));
            volume.into()
        };
        fn handle_of(volume: &PersistentVolume) -> Option<String> {
            match volume.spec.in_tree.as_deref() {
                Some(api::InTreeSource::GcePersistentDisk(disk)) if !disk.pd_name.is_empty() => {
                    Some(alloc::format!("d^{}", disk.pd_name))
                }
                Some(_) | None => None,
            }
        }
        let found = |cache: &Cache, handle: &str| -> Vec<String> {
            cache.volumes_by_handle(handle).map(|volume| volume.metadata.name.clone()).collect()
        };
        let mut cache = Cache::default();
        cache.set(volume("a", "disk-1", 1));
        assert!(found(&cache, "d^disk-1").is_empty());
        cache.translate(handle_of);
        cache.set(volume("b", "", 2));
        cache.set(volume("c", "disk-1", 3));
        assert_eq!(found(&cache, "d^disk-1"), ["a", "c"]);
        cache.set(volume("a", "disk-2", 4));
        assert_eq!((found(&cache, "d^disk-1"), found(&cache, "d^disk-2")), (["c".into()].into(), ["a".into()].into()));
        cache.remove(&volume("c", "disk-1", 5));
        assert!(found(&cache, "d^disk-1").is_empty());
    }

    // A volume's nodes are found without looking through all of them, whichever list of their status names it.
    #[test]
    fn nodes_are_found_by_the_volumes_they_name() {
        let mut cache = Cache::default();
        let node = |name: &str, version: u64, attached: &[&str], in_use: &[&str]| -> Object {
            let metadata = Meta { resource_version: ResourceVersion(alloc::format!("{version}")), ..Meta::named(name) };
            let mut node = api::Node { metadata, ..Default::default() };
            let attached =
                attached.iter().map(|name| api::AttachedVolume { name: (*name).into(), ..Default::default() });
            node.status.volumes_attached = Some(attached.collect());
            node.status.volumes_in_use = Some(in_use.iter().map(|name| (*name).into()).collect());
            node.into()
        };
        let found = |cache: &Cache, volume: &str| -> Vec<String> {
            cache.nodes_by_volume(volume).map(|node| node.metadata.name.clone()).collect()
        };
        cache.set(node("a", 1, &["v"], &["v", "w"]));
        cache.set(node("b", 2, &[], &["v"]));
        assert_eq!(found(&cache, "v"), ["a", "b"]);
        cache.set(node("a", 3, &["v"], &[]));
        assert_eq!((found(&cache, "v").len(), found(&cache, "w").len()), (2, 0), "one list is enough");
        cache.set(node("a", 4, &[], &[]));
        assert_eq!(found(&cache, "v"), ["b"]);
    }
}
