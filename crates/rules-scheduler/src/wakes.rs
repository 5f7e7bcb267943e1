//! Which keys a change concerns.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{
    CSIDriver, CSINode, CSIStorageCapacity, ClaimPhase, Node, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod,
    ResourceList, StorageClass, Taint, VolumeAttachment, names,
};
use control::{Cache, Route, Sides, routes};

use crate::Scheduler;

type Woken<'a> = control::Woken<'a, Scheduler>;

pub(crate) fn keys(cache: &Cache) -> Vec<ObjectKey> {
    cache.pods().map(|pod| pod.metadata.key()).collect()
}

pub(crate) const ROUTES: &[Route<Scheduler>] = routes![
    Pod => both(pod_wakes),
    PersistentVolumeClaim => each(|claim, woken| wake_users(&claim.metadata.key(), woken)),
    PersistentVolume => each(volume_wakes),
    StorageClass => each(|class, woken| wake_class(&class.metadata.name, woken)),
    Node => both(node_wakes),
    CSINode => both(csi_node_wakes),
    CSIDriver => both(driver_wakes),
    CSIStorageCapacity => each(|capacity, woken| wake_class(&capacity.storage_class_name, woken)),
    VolumeAttachment => both(attachment_wakes),
];

fn pod_wakes(pod: Sides<'_, Pod>, woken: &mut Woken<'_>) {
    for side in pod.iter() {
        woken.wake(side.metadata.key());
        // A claim for one pod at a time may be free now.
        let namespace = side.metadata.namespace.as_str();
        side.claim_names().for_each(|claim| wake_users(&ObjectKey::new(namespace, claim), woken));
    }
    // SC-18: what it asked for and its places for volumes are free now.
    let held = |pod: &Pod| !pod.spec.node_name.is_empty() && !pod.is_terminal();
    if pod.before.is_some_and(held) && !pod.after.is_some_and(held) {
        wake_waiting(woken);
    }
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    match &volume.spec.claim_ref {
        Some(holder) => wake_users(&ObjectKey::new(holder.namespace.as_str(), holder.name.as_str()), woken),
        // It is, or was, free for any claim of its class.
        None => wake_class(volume.class(), woken),
    }
}

/// A claim that has its volume does not care what else there is of its class.
fn wake_class(class: &str, woken: &mut Woken<'_>) {
    let claims = woken.cache.claims_by_class(class).filter(|claim| claim.status.phase != ClaimPhase::Bound);
    claims.for_each(|claim| wake_users(&claim.metadata.key(), woken));
}

/// SC-12, SC-18: a driver has come to a node, or the node takes more of its volumes than before, or leaves another
/// in-tree plugin to its driver.
fn csi_node_wakes(node: Sides<'_, CSINode>, woken: &mut Woken<'_>) {
    let plugins = |node: &CSINode| node.metadata.annotation(names::MIGRATED_PLUGINS).map(String::from);
    let bearing = |node: Option<&CSINode>| node.map(|node| (node.spec.drivers.clone(), plugins(node)));
    let [before, after] = [node.before, node.after].map(bearing);
    if before != after {
        wake_waiting(woken);
    }
}

fn driver_wakes(driver: Sides<'_, CSIDriver>, woken: &mut Woken<'_>) {
    let bearing = |driver: &CSIDriver| {
        (driver.spec.storage_capacity.unwrap_or(false), driver.spec.prevent_pod_scheduling_if_missing.unwrap_or(false))
    };
    if driver.before.map(bearing) != driver.after.map(bearing) {
        wake_waiting(woken);
    }
}

/// Only its end makes room.
fn attachment_wakes(attachment: Sides<'_, VolumeAttachment>, woken: &mut Woken<'_>) {
    if attachment.after.is_none() {
        wake_waiting(woken);
    }
}

fn wake_waiting(woken: &mut Woken<'_>) {
    woken.wake_all(woken.cache.pods().filter(|pod| waits(pod)).map(|pod| pod.metadata.key()));
}

/// Nodes report all the time; only what bears on placing a pod counts.
fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    let [before, after] = [node.before, node.after].map(|node| node.map(bearing));
    if before != after {
        wake_waiting(woken);
    }
    // Its pods have somebody to run them, or nobody any more; or it reaches other volumes.
    let labels = |node: Option<&Node>| node.map(|node| node.metadata.labels.clone());
    if labels(node.before) != labels(node.after)
        && let Some(node) = node.after.or(node.before)
    {
        let pods = woken.cache.pods_by_node(&node.metadata.name);
        woken.wake_all(pods.filter(|pod| !pod.is_terminal()).map(|pod| pod.metadata.key()));
    }
}

/// All of a node that bears on placing a pod.
#[derive(PartialEq)]
struct Bearing<'a> {
    open: bool,
    unschedulable: bool,
    taints: &'a [Taint],
    labels: &'a BTreeMap<String, String>,
    allocatable: &'a ResourceList,
}

/// Also of a node that takes no pod whatever the pod says: it is counted and told of.
fn bearing(node: &Node) -> Bearing<'_> {
    Bearing {
        open: node.is_ready() && !node.metadata.is_deleting(),
        unschedulable: node.spec.unschedulable,
        taints: &node.spec.taints,
        labels: &node.metadata.labels,
        allocatable: &node.status.allocatable,
    }
}

fn waits(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty() && !pod.is_terminal()
}

/// Also those that have a node: their claims may have been made again since, and wait to be told that node.
fn wake_users(claim: &ObjectKey, woken: &mut Woken<'_>) {
    let users = woken.cache.pods_by_claim(&claim.to_string());
    woken.wake_all(users.filter(|pod| !pod.is_terminal()).map(|pod| pod.metadata.key()));
}
