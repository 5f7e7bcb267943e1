//! From the cache to a view.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::names;
use api::{ClaimPhase, Node, ObjectKey, PersistentVolumeClaim, Pod};
use control::Cache;

use crate::{ClaimState, NodeView, PendingPod, View};

pub(crate) fn view(key: &ObjectKey, cache: &Cache) -> View {
    let Some(pod) = cache.pod(key) else { return View::Gone };
    if pod.is_terminal() {
        return View::Ended;
    }
    if !pod.spec.node_name.is_empty() {
        return View::Placed(pod.spec.node_name.clone());
    }
    if pod.metadata.is_deleting() {
        return View::Deleting;
    }
    let template = pod.spec.volumes.iter().find(|volume| volume.ephemeral.is_some());
    View::Pending(PendingPod {
        pod: key.clone(),
        uid: pod.metadata.uid.clone(),
        template: template.map(|volume| volume.name.clone()),
        claims: claims(&pod, cache),
        nodes: cache.nodes().map(|node| node_view(&node, cache)).collect(),
    })
}

fn claims(pod: &Pod, cache: &Cache) -> Vec<(String, ClaimState)> {
    let mut seen = BTreeSet::new();
    let names = pod.claim_names().filter(|name| seen.insert(*name)).collect::<Vec<_>>();
    names.into_iter().map(|name| (name.into(), claim_state(pod, name, cache))).collect()
}

fn claim_state(pod: &Pod, name: &str, cache: &Cache) -> ClaimState {
    let key = ObjectKey::new(pod.metadata.namespace.as_str(), name);
    let Some(claim) = cache.claim(&key) else { return ClaimState::Missing };
    if claim.metadata.is_deleting() {
        return ClaimState::Deleting;
    }
    if let Some(other) = sole_user(pod, &claim, cache) {
        return ClaimState::TakenBy(other);
    }
    let node = claim.metadata.annotation(names::SELECTED_NODE).filter(|node| !node.is_empty());
    match claim.status.phase {
        ClaimPhase::Bound => bound(&claim, node, cache),
        ClaimPhase::Lost => ClaimState::Lost,
        ClaimPhase::Pending | ClaimPhase::Other(_) => unbound(&claim, node, cache),
    }
}

/// The other pod that holds a claim which only one pod may use.
fn sole_user(pod: &Pod, claim: &PersistentVolumeClaim, cache: &Cache) -> Option<String> {
    if !claim.spec.access_modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        return None;
    }
    let term = claim.metadata.key().to_string();
    let mut users = cache.pods_by_claim(&term);
    let holds = |other: &Arc<Pod>| {
        other.metadata.uid != pod.metadata.uid && !other.is_terminal() && !other.spec.node_name.is_empty()
    };
    users.find(holds).map(|other| other.metadata.name.clone())
}

fn bound(claim: &PersistentVolumeClaim, node: Option<&str>, cache: &Cache) -> ClaimState {
    let name = &claim.spec.volume_name;
    match cache.volume(&ObjectKey::cluster(name.as_str())) {
        None => ClaimState::VolumeUnseen(name.clone()),
        Some(volume) => ClaimState::Bound { affinity: volume.spec.node_affinity.clone(), node: node.map(String::from) },
    }
}

fn unbound(claim: &Arc<PersistentVolumeClaim>, node: Option<&str>, cache: &Cache) -> ClaimState {
    let class = cache.class(&ObjectKey::cluster(claim.class().unwrap_or("")));
    // PV-43: a claim that names its volume is bound without waiting for a pod.
    if !claim.spec.volume_name.is_empty() || !class.is_some_and(|class| class.waits_for_consumer()) {
        return ClaimState::Unbound;
    }
    match node {
        None => ClaimState::AwaitsNode(claim.clone()),
        Some(node) => ClaimState::NodeSelected {
            claim: claim.clone(),
            node: node.into(),
            in_the_making: claim.metadata.annotation(names::STORAGE_PROVISIONER).is_some(),
        },
    }
}

fn node_view(node: &Node, cache: &Cache) -> NodeView {
    NodeView {
        name: node.metadata.name.clone(),
        labels: node.metadata.labels.clone(),
        closed: closed(node),
        pods: cache.pods_by_node(&node.metadata.name).filter(|pod| !pod.is_terminal()).count(),
    }
}

pub(crate) fn closed(node: &Node) -> Option<&'static str> {
    if node.metadata.is_deleting() {
        Some("is being deleted")
    } else if !node.is_ready() {
        Some("is not ready")
    } else if node.spec.unschedulable {
        Some("is cordoned")
    } else if node.spec.taints.iter().any(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")) {
        Some("is tainted")
    } else {
        None
    }
}
