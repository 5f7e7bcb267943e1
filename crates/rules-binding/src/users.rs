//! Which pods use a claim, and which of them hold it back when it is being deleted.

use api::{PersistentVolumeClaim, Pod};

/// PV-57: the pod has not ended and names the claim, or the claim was made for it.
pub(crate) fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    !pod.is_terminal() && is_its_own(pod, &claim.metadata.name, made_for(claim))
}

/// PV-55: the pod has a node, where the claim's volume may be mounted. One that has ended counts until it is deleted,
/// unless the claim was made for it and the node has let it go. One without a node cannot get one any more: schedulers
/// and nodes refuse a claim that is being deleted.
pub(crate) fn holds(pod: &Pod, claim: &str, made_for: Option<&str>) -> bool {
    let ends_now = pod.metadata.is_deleting() && pod.metadata.deletion_grace_period_seconds == Some(0);
    !pod.spec.node_name.is_empty()
        && pod.claim_names().any(|name| name == claim)
        && is_its_own(pod, claim, made_for)
        && !(ends_now && pod.templates_claim(claim))
}

/// A claim that a pod would make from a template is the pod's only if it was made for it.
fn is_its_own(pod: &Pod, claim: &str, made_for: Option<&str>) -> bool {
    !pod.templates_claim(claim) || made_for == Some(pod.metadata.uid.as_str())
}

/// The uid of the pod that the claim was made for from a template.
pub(crate) fn made_for(claim: &PersistentVolumeClaim) -> Option<&str> {
    let controller = claim.metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
    controller.map(|owner| owner.uid.as_str())
}
