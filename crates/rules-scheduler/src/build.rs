//! From the cache to a view.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::names;
use api::{ClaimPhase, Meta, Node, ObjectKey, PersistentVolumeClaim, Pod, PodPhase, Seen, Taint};
use control::{Cache, Timestamp};

use crate::action::{SCHEDULED, UNSCHEDULABLE};
use crate::{ClaimState, NodeObstacle, NodeView, PendingPod, View};

/// The name by which pods ask for this scheduler; a pod that names none does, too.
const OUR_NAME: &str = "default-scheduler";
/// The taint of a cordoned node.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

pub(crate) fn view(key: &ObjectKey, cache: &Cache) -> View {
    let Some(pod) = cache.pod(key) else { return View::Gone };
    if pod.is_terminal() {
        return View::Ended(failure(&pod));
    }
    let (node, deleting) = (&pod.spec.node_name, pod.metadata.is_deleting());
    if !node.is_empty() {
        return match cache.node(&ObjectKey::cluster(node.as_str())) {
            Some(_) => View::Placed(node.clone()),
            None => View::Astray { node: node.clone(), deleting },
        };
    }
    if deleting {
        return View::Deleting;
    }
    if !matches!(pod.spec.scheduler_name.as_str(), "" | OUR_NAME) {
        return View::Anothers(pod.spec.scheduler_name.clone());
    }
    let template = pod.spec.volumes.iter().find(|volume| volume.ephemeral.is_some());
    let mut conditions = pod.status.conditions.iter();
    let told =
        conditions.find(|told| told.r#type == SCHEDULED && told.status == "False" && told.reason == UNSCHEDULABLE);
    View::Pending(PendingPod {
        pod: Seen::of::<Pod>(&pod.metadata),
        since: since(&pod, cache),
        told: told.cloned(),
        template: template.map(|volume| volume.name.clone()),
        claims: claims(&pod, cache),
        nodes: cache.nodes().map(|node| node_view(&node, &pod, cache)).collect(),
    })
}

/// Why a pod that has ended did not succeed, as far as its status says.
fn failure(pod: &Pod) -> Option<String> {
    let status = &pod.status;
    if status.phase != PodPhase::Failed {
        return None;
    }
    let said = |reason: &str, message: &str| match (reason, message) {
        ("", "") => None,
        (one, "") | ("", one) => Some(one.to_string()),
        (reason, message) => Some(format!("{reason}: {message}")),
    };
    said(&status.reason, &status.message).or_else(|| {
        let ended = |container: &api::ContainerStatus| {
            let ended = container.state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
            let text = format!("container {} ended with exit code {}", container.name, ended.exit_code);
            Some(if ended.message.is_empty() { text } else { format!("{text}: {}", ended.message) })
        };
        status.container_statuses.iter().find_map(ended)
    })
}

/// When the youngest of the pod and its claims was created: what is created together finds together in a moment.
fn since(pod: &Pod, cache: &Cache) -> Timestamp {
    let created = |meta: &Meta| meta.creation_timestamp.as_ref().and_then(api::Time::unix_millis).unwrap_or(0);
    let namespace = pod.metadata.namespace.as_str();
    let claims = pod.claim_names().filter_map(|name| cache.claim(&ObjectKey::new(namespace, name)));
    Timestamp(claims.map(|claim| created(&claim.metadata)).fold(created(&pod.metadata), u64::max))
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

fn node_view(node: &Node, pod: &Pod, cache: &Cache) -> NodeView {
    NodeView {
        name: node.metadata.name.clone(),
        labels: node.metadata.labels.clone(),
        closed: closed(node, pod),
        pods: cache.pods_by_node(&node.metadata.name).filter(|pod| !pod.is_terminal()).count(),
    }
}

fn closed(node: &Node, pod: &Pod) -> Option<NodeObstacle> {
    let tolerated = |taint: &Taint| pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint));
    // Upstream marks a cordoned node with this taint as well, and pods that tolerate it are for such nodes.
    let cordon = Taint { key: UNSCHEDULABLE_TAINT.into(), effect: "NoSchedule".into(), ..Taint::default() };
    if node.metadata.is_deleting() {
        return Some(NodeObstacle::Deleting);
    }
    if !node.is_ready() {
        return Some(NodeObstacle::NotReady);
    }
    if node.spec.unschedulable && !tolerated(&cordon) {
        return Some(NodeObstacle::Cordoned);
    }
    if let Some(taint) = node.spec.taints.iter().find(|taint| taint.closes() && !tolerated(taint)) {
        return Some(NodeObstacle::Tainted(taint.to_string()));
    }
    let (name, labels) = (&node.metadata.name, &node.metadata.labels);
    let selected = pod.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        && pod.spec.affinity.as_ref().is_none_or(|affinity| affinity.admits(name, labels));
    (!selected).then_some(NodeObstacle::NotSelected)
}
