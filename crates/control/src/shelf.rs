use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use api::{Kind, Object};

/// Where a cache keeps its objects. Those that changed lately are kept as they are. The others of the kinds there are
/// many of, in a large cluster nearly all, are kept packed: as the little in which they differ from a sample of their
/// kind. Whoever looks at a packed object gets it unpacked, as it was; the shelf keeps only the packed form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots in the order they were filled, so that the oldest are packed first.
    warm: VecDeque<u32>,
    samples: BTreeMap<Kind, Box<[u8]>>,
}

#[derive(Clone, Debug)]
enum Slot {
    Empty,
    Warm(Object),
    Packed(Kind, Box<[u8]>),
}

/// So many objects of packed kinds are kept as they are.
const WARM: usize = 1024;

/// A cluster has many objects of the kind, and rules look at a few of them at a time. Rules walk through all nodes and
/// classes, and read a driver's journal for each claim: those kinds are never packed.
fn is_packed(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::PersistentVolumeClaim
            | Kind::PersistentVolume
            | Kind::VolumeAttachment
            | Kind::Pod
            | Kind::VolumeSnapshot
            | Kind::VolumeSnapshotContent
    )
}

impl Shelf {
    /// Keeps an object, and says where.
    pub(crate) fn put(&mut self, object: Object) -> u32 {
        self.make_room();
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.slots.push(Slot::Empty);
                // A process with so many objects has run out of memory long before.
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if is_packed(object.kind()) {
            self.warm.push_back(place);
        }
        self.slots[place as usize] = Slot::Warm(object);
        place
    }

    /// Forgets an object.
    pub(crate) fn free(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            *slot = Slot::Empty;
            self.free.push(place);
        }
    }

    /// The object at a place, decoded.
    pub(crate) fn get(&self, place: u32) -> Option<Object> {
        match self.slots.get(place as usize)? {
            Slot::Warm(object) => Some(object.clone()),
            Slot::Packed(kind, bytes) => self.unpack(*kind, bytes),
            Slot::Empty => None,
        }
    }

    /// Packs the oldest half when too many are warm.
    fn make_room(&mut self) {
        if self.warm.len() < WARM {
            return;
        }
        let oldest: Vec<u32> = self.warm.drain(..WARM / 2).collect();
        // What was put there again since, because it changed, is not as old as it looks.
        let newer: BTreeSet<u32> = self.warm.iter().copied().collect();
        for place in oldest.into_iter().filter(|place| !newer.contains(place)) {
            let object = match &self.slots[place as usize] {
                // Another kind may have the slot by now.
                Slot::Warm(object) if is_packed(object.kind()) => object.clone(),
                Slot::Warm(_) | Slot::Packed(..) | Slot::Empty => continue,
            };
            if let Some(bytes) = self.pack(&object) {
                self.slots[place as usize] = Slot::Packed(object.kind(), bytes);
            }
        }
    }

    /// The object in little room; nothing if it would not come back exactly as it is.
    fn pack(&mut self, object: &Object) -> Option<Box<[u8]>> {
        let (kind, json) = (object.kind(), object.to_bytes());
        let sample = self.samples.entry(kind).or_insert_with(|| json.clone().into_boxed_slice());
        let bytes = lz4_flex::block::compress_prepend_size_with_dict(&json, sample).into_boxed_slice();
        (self.unpack(kind, &bytes)? == *object).then_some(bytes)
    }

    fn unpack(&self, kind: Kind, bytes: &[u8]) -> Option<Object> {
        let json = lz4_flex::block::decompress_size_prepended_with_dict(bytes, self.samples.get(&kind)?).ok()?;
        Object::from_slice(kind, &json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use api::{Meta, PersistentVolume, StorageClass};

    fn volume(number: usize) -> Object {
        let metadata = Meta { uid: format!("{number}"), ..Meta::named(format!("volume-{number}")) };
        let mut volume = PersistentVolume { metadata: metadata.into(), ..Default::default() };
        volume.spec.storage_class_name = "fast".into();
        volume.into()
    }

    #[test]
    fn every_object_comes_back_as_it_was_packed_or_not() {
        let mut shelf = Shelf::default();
        let places: Vec<u32> = (0..5000).map(|number| shelf.put(volume(number))).collect();
        assert!(shelf.slots.iter().filter(|slot| matches!(slot, Slot::Packed(..))).count() > 3000);
        for (number, place) in places.iter().enumerate() {
            assert_eq!(shelf.get(*place), Some(volume(number)));
            shelf.free(*place);
            assert_eq!(shelf.get(*place), None);
        }
    }

    #[test]
    fn what_changes_all_the_time_is_kept_as_it_is() {
        let mut shelf = Shelf::default();
        let mut busy = shelf.put(volume(0));
        for number in 1..5000 {
            shelf.put(volume(number));
            if number % 100 == 0 {
                shelf.free(busy);
                busy = shelf.put(volume(0));
            }
            assert!(matches!(&shelf.slots[busy as usize], Slot::Warm(_)), "{number}");
        }
    }

    #[test]
    fn what_rules_walk_through_is_never_packed() {
        let mut shelf = Shelf::default();
        let class: Object = StorageClass { metadata: Meta::named("c").into(), ..Default::default() }.into();
        for _ in 0..3000 {
            shelf.put(class.clone());
        }
        assert!(shelf.slots.iter().all(|slot| matches!(slot, Slot::Warm(_))) && shelf.warm.is_empty());
    }

    #[test]
    fn kinds_are_not_confused_and_places_are_used_again() {
        let mut shelf = Shelf::default();
        let first = shelf.put(volume(1));
        shelf.free(first);
        let class: Object = StorageClass { metadata: Meta::named("c").into(), ..Default::default() }.into();
        assert_eq!(shelf.put(class.clone()), first);
        for number in 0..3000 {
            shelf.put(volume(number));
        }
        assert_eq!(shelf.get(first), Some(class));
    }
}
