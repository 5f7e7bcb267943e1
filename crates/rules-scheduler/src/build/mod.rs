//! From the cache to a view.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Meta, ObjectKey, Pod, PodPhase, Seen};
use control::{Cache, Timestamp};

use crate::action::{SCHEDULED, UNSCHEDULABLE};
use crate::{ClaimState, Delayed, PendingPod, View};

mod claims;
mod limits;
mod nodes;
mod resources;

/// The name by which pods ask for this scheduler.
const OUR_NAME: &str = "default-scheduler";

pub(crate) fn view(key: &ObjectKey, cache: &Cache) -> View {
    let Some(pod) = cache.pod(key) else { return View::Gone };
    if pod.is_terminal() {
        return View::Ended(failure(&pod));
    }
    let (node, deleting) = (&pod.spec.node_name, pod.metadata.is_deleting());
    if !node.is_empty() {
        let Some(known) = cache.node(&ObjectKey::cluster(node.as_str())) else {
            return View::Astray { node: node.clone(), deleting };
        };
        let owed = if deleting { Vec::new() } else { owed(&pod, cache) };
        return match owed.is_empty() {
            true => View::Placed(node.clone()),
            false => View::Owed { node: node.clone(), labels: known.metadata.labels.clone(), claims: owed },
        };
    }
    if deleting {
        return View::Deleting;
    }
    if !is_ours(&pod) {
        return View::Anothers(pod.spec.scheduler_name.clone());
    }
    let templates = pod.spec.volumes.iter().filter(|volume| volume.ephemeral.is_some());
    let mut made = templates.map(|volume| pod.ephemeral_claim(&volume.name));
    let template = made.find(|claim| is_foreign(&pod, claim, cache));
    let mut conditions = pod.status.conditions.iter();
    let told =
        conditions.find(|told| told.r#type == SCHEDULED && told.status == "False" && told.reason == UNSCHEDULABLE);
    View::Pending(PendingPod {
        pod: Seen::of::<Pod>(&pod.metadata),
        since: since(&pod, cache),
        told: told.cloned(),
        template,
        claims: claims::claims(&pod, cache),
        nodes: nodes::nodes(&pod, cache),
    })
}

/// A pod that names no scheduler is ours, too.
fn is_ours(pod: &Pod) -> bool {
    matches!(pod.spec.scheduler_name.as_str(), "" | OUR_NAME)
}

/// KL-31: a claim of another that has the name of one made from a template is not used.
fn is_foreign(pod: &Pod, claim: &str, cache: &Cache) -> bool {
    let claim = cache.claim(&ObjectKey::new(pod.metadata.namespace.as_str(), claim));
    claim.is_some_and(|claim| !claim.metadata.is_controlled_by(&pod.metadata.uid))
}

/// The claims of a pod on a node that wait to be told one, and that nobody else will tell. A claim that was deleted and
/// made again while its pod was being placed is one, and so is that of a pod whose maker named the node.
fn owed(pod: &Pod, cache: &Cache) -> Vec<(String, Delayed)> {
    if !is_ours(pod) {
        return Vec::new();
    }
    let foreign = |name: &str| pod.templates_claim(name) && is_foreign(pod, name, cache);
    let mut owed = Vec::new();
    for (name, state) in claims::unbound_claims(pod, cache) {
        if let ClaimState::AwaitsNode(delayed) = state
            && !foreign(&name)
        {
            owed.push((name, delayed));
        }
    }
    owed
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
