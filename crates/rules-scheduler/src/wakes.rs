//! Which keys a change concerns.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Node, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Taint};
use control::{Cache, Route, Sides, routes};

use crate::Scheduler;

type Woken<'a> = control::Woken<'a, Scheduler>;

pub(crate) fn keys(cache: &Cache) -> Vec<ObjectKey> {
    cache.pods().map(|pod| pod.metadata.key()).collect()
}

pub(crate) const ROUTES: &[Route<Scheduler>] = routes![
    Pod => each(pod_wakes),
    PersistentVolumeClaim => each(|claim, woken| wake_users(&claim.metadata.key(), woken)),
    PersistentVolume => each(volume_wakes),
    StorageClass => each(class_wakes),
    Node => both(node_wakes),
];

fn pod_wakes(pod: &Pod, woken: &mut Woken<'_>) {
    woken.wake(pod.metadata.key());
    // A claim for one pod at a time may be free now.
    let namespace = pod.metadata.namespace.as_str();
    pod.claim_names().for_each(|claim| wake_users(&ObjectKey::new(namespace, claim), woken));
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_>) {
    if let Some(holder) = &volume.spec.claim_ref {
        wake_users(&ObjectKey::new(holder.namespace.as_str(), holder.name.as_str()), woken);
    }
}

fn class_wakes(class: &StorageClass, woken: &mut Woken<'_>) {
    let claims = woken.cache.claims_by_class(&class.metadata.name);
    claims.for_each(|claim| wake_users(&claim.metadata.key(), woken));
}

/// Nodes report all the time; only what bears on placing a pod counts.
fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    let [before, after] = [node.before, node.after].map(|node| node.map(bearing));
    if before != after {
        woken.wake_all(woken.cache.pods().filter(|pod| waits(pod)).map(|pod| pod.metadata.key()));
    }
    // Its pods have somebody to run them, or nobody any more.
    if let (Some(node), None) | (None, Some(node)) = (node.before, node.after) {
        let pods = woken.cache.pods_by_node(&node.metadata.name);
        woken.wake_all(pods.filter(|pod| !pod.is_terminal()).map(|pod| pod.metadata.key()));
    }
}

/// All of a node that bears on placing a pod; `None` while it takes none whatever the pod says.
fn bearing(node: &Node) -> Option<(bool, &[Taint], &BTreeMap<String, String>)> {
    let open = node.is_ready() && !node.metadata.is_deleting();
    open.then_some((node.spec.unschedulable, &node.spec.taints, &node.metadata.labels))
}

fn waits(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty() && !pod.is_terminal()
}

fn wake_users(claim: &ObjectKey, woken: &mut Woken<'_>) {
    let users = woken.cache.pods_by_claim(&claim.to_string());
    woken.wake_all(users.filter(|pod| waits(pod)).map(|pod| pod.metadata.key()));
}
