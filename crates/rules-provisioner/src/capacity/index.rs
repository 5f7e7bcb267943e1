use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CSINode, CSIStorageCapacity, NodeSelectorTerm, Object, ObjectKey, StorageClass, VolumeNodeAffinity, names};
use control::{Cache, Change};

use super::{CapacityKey, CapacityView};
use crate::build::selected_node;
use crate::topology::{Cluster, Places, term};
use crate::wakes::{is_asked, is_ours, moved, registered};
use crate::{Local, Segments};

pub(super) fn keys(cache: &Cache, local: &Local) -> Vec<CapacityKey> {
    let ours = cache.capacities().filter(|object| is_managed(object, local));
    let mut keys: Vec<_> = ours.map(|object| CapacityKey::Object(object.metadata.key())).collect();
    let places = places(cache, local);
    for class in cache.classes().filter(|class| is_wanted(class, local)) {
        keys.extend(places.iter().map(|segments| place(class, segments)));
    }
    keys
}

fn place(class: &StorageClass, segments: &Segments) -> CapacityKey {
    CapacityKey::Place { class: class.metadata.name.clone(), segments: segments.clone() }
}

pub(super) fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<CapacityKey> {
    if local.settings.capacity.is_none() {
        return Vec::new();
    }
    let mut woken = BTreeSet::new();
    for side in change.sides() {
        match side {
            Object::StorageClass(class) => {
                woken.extend(places(cache, local).iter().map(|segments| place(class, segments)));
                woken.extend(objects(cache, local, |object| object.storage_class_name == class.metadata.name));
            }
            Object::Node(_) if moved(change) => woken.extend(in_place(place_of(side, cache, local), cache, local)),
            Object::CSINode(_) if registered(change, &local.driver) => {
                woken.extend(in_place(place_of(side, cache, local), cache, local));
            }
            // A volume came or went: there is less or more where it is.
            Object::PersistentVolume(volume) if is_ours(volume, local) && came_or_went(change) => {
                let affinity = volume.spec.node_affinity.as_ref();
                woken.extend(reached(volume.class(), affinity, cache, local));
            }
            // A claim lost its node: there was less than was said.
            Object::PersistentVolumeClaim(claim) if lost_its_node(change) && is_asked(claim, local) => {
                woken.extend(reached(claim.class().unwrap_or_default(), None, cache, local));
            }
            Object::CSIStorageCapacity(object) if is_managed(object, local) => {
                woken.insert(CapacityKey::Object(object.metadata.key()));
                let class = object.storage_class_name.clone();
                woken.insert(CapacityKey::Place { class, segments: segments(object).clone() });
            }
            Object::Node(_)
            | Object::CSINode(_)
            | Object::PersistentVolume(_)
            | Object::CSIStorageCapacity(_)
            | Object::PersistentVolumeClaim(_)
            | Object::VolumeAttachment(_)
            | Object::CSIDriver(_)
            | Object::Pod(_)
            | Object::Secret(_)
            | Object::VolumeAttributesClass(_)
            | Object::VolumeSnapshot(_)
            | Object::VolumeSnapshotContent(_)
            | Object::ReferenceGrant(_)
            | Object::Lease(_) => {}
        }
    }
    woken.into_iter().collect()
}

fn lost_its_node(change: &Change) -> bool {
    let node = |side: &Option<Object>| match side {
        Some(Object::PersistentVolumeClaim(claim)) => selected_node(claim).is_some(),
        Some(_) | None => false,
    };
    node(&change.before) && change.after.is_some() && !node(&change.after)
}

fn came_or_went(change: &Change) -> bool {
    change.before.is_none() != change.after.is_none()
}

/// By where the volume is, whatever its class; a volume that says nothing of that counts for its class.
fn reached(class: &str, affinity: Option<&VolumeNodeAffinity>, cache: &Cache, local: &Local) -> Vec<CapacityKey> {
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else {
        let of_class = |segments| CapacityKey::Place { class: class.into(), segments };
        return places(cache, local).into_iter().map(of_class).collect();
    };
    let segments = |term: &NodeSelectorTerm| -> Option<Segments> {
        term.match_expressions.iter().map(|wanted| Some((wanted.key.clone(), wanted.values.first()?.clone()))).collect()
    };
    required.node_selector_terms.iter().flat_map(|term| in_place(segments(term), cache, local)).collect()
}

/// Everything that is, or is to be, said about a place.
fn in_place(segments: Option<Segments>, cache: &Cache, local: &Local) -> Vec<CapacityKey> {
    let Some(segments) = segments else { return Vec::new() };
    let mut keys = objects(cache, local, |object| self::segments(object) == &segments);
    keys.extend(cache.classes().filter(|class| is_wanted(class, local)).map(|class| place(class, &segments)));
    keys
}

/// The place a node is in, or was in, as one side of a change and the cache say.
fn place_of(side: &Object, cache: &Cache, local: &Local) -> Option<Segments> {
    let cluster = Cluster { cache, driver: &local.driver };
    match side {
        Object::Node(node) => term(&cluster.keys_on(&node.metadata.name)?, &node.metadata.labels),
        Object::CSINode(node) => {
            let entry = node.spec.drivers.iter().find(|entry| *entry.name == *local.driver)?;
            term(entry.topology_keys.as_deref().unwrap_or_default(), cluster.labels(&node.metadata.name)?)
        }
        Object::PersistentVolumeClaim(_)
        | Object::PersistentVolume(_)
        | Object::StorageClass(_)
        | Object::VolumeAttachment(_)
        | Object::CSIDriver(_)
        | Object::Pod(_)
        | Object::Secret(_)
        | Object::VolumeAttributesClass(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeSnapshot(_)
        | Object::VolumeSnapshotContent(_)
        | Object::ReferenceGrant(_)
        | Object::Lease(_) => None,
    }
}

fn objects(cache: &Cache, local: &Local, concerned: impl Fn(&CSIStorageCapacity) -> bool) -> Vec<CapacityKey> {
    let found = cache.capacities().filter(|object| is_managed(object, local) && concerned(object));
    found.map(|object| CapacityKey::Object(object.metadata.key())).collect()
}

pub(super) fn segments(object: &CSIStorageCapacity) -> &Segments {
    const NOWHERE: &Segments = &Segments::new();
    object.node_topology.as_ref().map_or(NOWHERE, |selector| &selector.match_labels)
}

/// P86: the labels by which we know our objects again.
pub(crate) fn labels(local: &Local) -> Segments {
    let node = local.settings.node.as_ref().map(|node| node.name.as_str());
    [
        (names::CAPACITY_DRIVER.into(), local.driver.to_string()),
        (names::CAPACITY_MANAGER.into(), names::capacity_manager(node)),
    ]
    .into()
}

pub(super) fn is_managed(object: &CSIStorageCapacity, local: &Local) -> bool {
    let Some(capacity) = &local.settings.capacity else { return false };
    object.metadata.namespace == capacity.namespace
        && labels(local).iter().all(|(key, value)| object.metadata.labels.get(key) == Some(value))
}

/// Classes of this driver; those that wait for no pod only if asked for. A class that does not say counts as one that
/// waits.
fn is_wanted(class: &StorageClass, local: &Local) -> bool {
    let Some(capacity) = &local.settings.capacity else { return false };
    let immediate = class.volume_binding_mode.as_deref() == Some("Immediate");
    local.is_known(&class.provisioner) && (capacity.immediate || !immediate)
}

/// Every place there is, once. A node that lacks a label its driver names is in none; a driver whose volumes can be
/// reached from everywhere has one place, everywhere.
fn places(cache: &Cache, local: &Local) -> BTreeSet<Segments> {
    if !local.uses_topology() {
        return [Segments::new()].into();
    }
    if let Some(own) = &local.settings.node {
        return [own.segments.clone()].into();
    }
    let place = |node: &Arc<CSINode>| place_of(&Object::CSINode(Arc::clone(node)), cache, local);
    cache.csi_nodes().filter_map(place).collect()
}

/// Whether some node is in this place: asked for every place, so without listing them all.
fn is_place(segments: &Segments, cache: &Cache, local: &Local) -> bool {
    if !local.uses_topology() {
        return segments.is_empty();
    }
    if let Some(own) = &local.settings.node {
        return own.segments == *segments;
    }
    let cluster = Cluster { cache, driver: &local.driver };
    cache.csi_nodes().any(|node| {
        let entry = node.spec.drivers.iter().find(|entry| *entry.name == *local.driver);
        let Some(keys) = entry.map(|entry| entry.topology_keys.as_deref().unwrap_or_default()) else { return false };
        let Some(labels) = cluster.labels(&node.metadata.name) else { return false };
        keys.len() == segments.len()
            && keys.iter().all(|key| segments.get(key).is_some_and(|value| labels.get(key) == Some(value)))
    })
}

pub(super) fn view(key: &CapacityKey, cache: &Cache, local: &Local) -> CapacityView {
    match key {
        CapacityKey::Place { class, segments } => {
            let found = cache.class(&ObjectKey::cluster(class.as_str()));
            match found.filter(|class| is_wanted(class, local) && is_place(segments, cache, local)) {
                None => CapacityView::Unwanted,
                Some(class) => CapacityView::Wanted {
                    class: Arc::clone(class),
                    segments: segments.clone(),
                    published: published(&class.metadata.name, segments, cache, local).map(Arc::clone),
                    local: local.clone(),
                },
            }
        }
        CapacityKey::Object(key) => match cache.capacity(key).filter(|object| is_managed(object, local)) {
            None => CapacityView::Unwanted,
            Some(object) => judge(object, cache, local),
        },
    }
}

/// The name of the object we make for a class and place. Upstream lets the server make one up; a name that follows from
/// what the object says cannot be made twice.
pub(super) fn name(class: &str, place: &Segments, local: &Local) -> String {
    let hash = names::staging_hash(&format!("{:?}/{class}/{place:?}", labels(local)));
    format!("csisc-{}", &hash[..20])
}

/// Of several objects that say the same, the one we would make counts, or else the first by name.
fn published<'a>(
    class: &str,
    place: &Segments,
    cache: &'a Cache,
    local: &Local,
) -> Option<&'a Arc<CSIStorageCapacity>> {
    let says_so = |object: &&Arc<CSIStorageCapacity>| {
        is_managed(object, local) && object.storage_class_name == class && segments(object) == place
    };
    let namespace = local.settings.capacity.as_ref().map_or("", |capacity| capacity.namespace.as_str());
    let ours = cache.capacity(&ObjectKey::new(namespace, name(class, place, local))).filter(says_so);
    ours.or_else(|| cache.capacities().find(|object| says_so(object)))
}

fn judge(object: &Arc<CSIStorageCapacity>, cache: &Cache, local: &Local) -> CapacityView {
    let (class, place) = (&object.storage_class_name, segments(object));
    let found = cache.class(&ObjectKey::cluster(class.as_str()));
    let wanted = found.is_some_and(|class| is_wanted(class, local)) && is_place(place, cache, local);
    let first = published(class, place, cache, local).is_some_and(|first| first.metadata.name == object.metadata.name);
    if wanted && first { CapacityView::InPlace } else { CapacityView::Stray(Arc::clone(object)) }
}
