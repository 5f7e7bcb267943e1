use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{
    BindingMode, CSINode, CSIStorageCapacity, Node, NodeSelectorTerm, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, StorageClass, VolumeNodeAffinity, names,
};
use control::{Cache, Route, Sides, routes};

use super::{Capacity, CapacityKey, CapacityView};
use crate::build::selected_node;
use crate::topology::{Cluster, Places, term};
use crate::wakes::{is_asked, is_ours, moved, registered};
use crate::{Local, Segments};

type Woken<'a> = control::Woken<'a, Capacity>;

pub(super) fn keys(cache: &Cache, local: &Local) -> Vec<CapacityKey> {
    let ours = cache.capacities().filter(|object| is_managed(object, local));
    let mut keys: Vec<_> = ours.map(|object| CapacityKey::Object(object.metadata.key())).collect();
    let places = places(cache, local);
    for class in cache.classes().filter(|class| is_wanted(class, local)) {
        keys.extend(places.iter().map(|segments| place(&class, segments)));
    }
    keys
}

fn place(class: &StorageClass, segments: &Segments) -> CapacityKey {
    CapacityKey::Place { class: class.metadata.name.clone(), segments: segments.clone() }
}

pub(super) const ROUTES: &[Route<Capacity>] = routes![
    StorageClass => each(class_wakes),
    CSINode => both(csi_node_wakes),
    Node => both(node_wakes),
    PersistentVolume => both(volume_wakes),
    PersistentVolumeClaim => both(claim_wakes),
    CSIStorageCapacity => each(capacity_wakes),
];

fn class_wakes(class: &StorageClass, woken: &mut Woken<'_>) {
    if woken.local.settings.capacity.is_some() {
        let (cache, local) = (woken.cache, woken.local);
        woken.wake_all(places(cache, local).iter().map(|segments| place(class, segments)));
        woken.wake_all(objects(cache, local, |object| object.storage_class_name == class.metadata.name));
    }
}

fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    if moved(&node) {
        let cluster = Cluster { cache: woken.cache, driver: &woken.local.driver };
        let place = |node: &Node| term(&cluster.keys_on(&node.metadata.name)?, &node.metadata.labels);
        node.iter().for_each(|node| wake_place(place(node), woken));
    }
}

fn csi_node_wakes(node: Sides<'_, CSINode>, woken: &mut Woken<'_>) {
    if registered(&node, &woken.local.driver) {
        node.iter().for_each(|node| wake_place(place_of(node, woken.cache, woken.local), woken));
    }
}

/// A volume came or went: there is less or more where it is.
fn volume_wakes(volume: Sides<'_, PersistentVolume>, woken: &mut Woken<'_>) {
    let ((Some(volume), None) | (None, Some(volume))) = (volume.before, volume.after) else { return };
    if is_ours(volume, woken.local) {
        wake_reached(volume.class(), volume.spec.node_affinity.as_ref(), woken);
    }
}

/// A claim lost its node: there was less than was said.
fn claim_wakes(claim: Sides<'_, PersistentVolumeClaim>, woken: &mut Woken<'_>) {
    let (Some(before), Some(after)) = (claim.before, claim.after) else { return };
    if selected_node(before).is_some() && selected_node(after).is_none() {
        for claim in claim.iter().filter(|claim| is_asked(claim, woken.local)) {
            wake_reached(claim.class().unwrap_or_default(), None, woken);
        }
    }
}

fn capacity_wakes(object: &CSIStorageCapacity, woken: &mut Woken<'_>) {
    if is_managed(object, woken.local) {
        woken.wake(CapacityKey::Object(object.metadata.key()));
        let class = object.storage_class_name.clone();
        woken.wake(CapacityKey::Place { class, segments: segments(object).clone() });
    }
}

/// By where the volume is, whatever its class; a volume that says nothing of that counts for its class.
fn wake_reached(class: &str, affinity: Option<&VolumeNodeAffinity>, woken: &mut Woken<'_>) {
    if woken.local.settings.capacity.is_none() {
        return;
    }
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else {
        let of_class = |segments| CapacityKey::Place { class: class.into(), segments };
        return woken.wake_all(places(woken.cache, woken.local).into_iter().map(of_class));
    };
    let segments = |term: &NodeSelectorTerm| -> Option<Segments> {
        term.match_expressions.iter().map(|wanted| Some((wanted.key.clone(), wanted.values.first()?.clone()))).collect()
    };
    required.node_selector_terms.iter().for_each(|term| wake_place(segments(term), woken));
}

/// Everything that is, or is to be, said about a place.
fn wake_place(segments: Option<Segments>, woken: &mut Woken<'_>) {
    let (Some(segments), Some(_)) = (segments, &woken.local.settings.capacity) else { return };
    let (cache, local) = (woken.cache, woken.local);
    woken.wake_all(objects(cache, local, |object| self::segments(object) == &segments));
    let classes = cache.classes().filter(|class| is_wanted(class, local));
    woken.wake_all(classes.map(|class| place(&class, &segments)));
}

/// The place a node is in, as its driver's entry and its labels say.
fn place_of(node: &CSINode, cache: &Cache, local: &Local) -> Option<Segments> {
    let entry = node.spec.drivers.iter().find(|entry| *entry.name == *local.driver)?;
    let labelled = Cluster { cache, driver: &local.driver }.node(&node.metadata.name)?;
    term(entry.topology_keys.as_deref().unwrap_or_default(), &labelled.metadata.labels)
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
    let immediate = class.volume_binding_mode == Some(BindingMode::Immediate);
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
    cache.csi_nodes().filter_map(|node| place_of(&node, cache, local)).collect()
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
        let Some(labelled) = cluster.node(&node.metadata.name) else { return false };
        let labels = &labelled.metadata.labels;
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
                    segments: segments.clone(),
                    published: published(&class.metadata.name, segments, cache, local),
                    local: local.clone(),
                    class,
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
fn published(class: &str, place: &Segments, cache: &Cache, local: &Local) -> Option<Arc<CSIStorageCapacity>> {
    let says_so = |object: &Arc<CSIStorageCapacity>| {
        is_managed(object, local) && object.storage_class_name == class && segments(object) == place
    };
    let namespace = local.settings.capacity.as_ref().map_or("", |capacity| capacity.namespace.as_str());
    let ours = cache.capacity(&ObjectKey::new(namespace, name(class, place, local))).filter(says_so);
    ours.or_else(|| cache.capacities().find(says_so))
}

fn judge(object: Arc<CSIStorageCapacity>, cache: &Cache, local: &Local) -> CapacityView {
    let (class, place) = (&object.storage_class_name, segments(&object));
    let found = cache.class(&ObjectKey::cluster(class.as_str()));
    let wanted = found.is_some_and(|class| is_wanted(&class, local)) && is_place(place, cache, local);
    let first = published(class, place, cache, local).is_some_and(|first| first.metadata.name == object.metadata.name);
    if wanted && first { CapacityView::InPlace } else { CapacityView::Stray(object) }
}
