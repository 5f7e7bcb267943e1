use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{
    ClaimRef, Conditions, Kind, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim, Precondition, Seen, Time,
    Write, names,
};
use control::{Effect, Lane, News, Permission};
use serde_json::json;

/// The condition of a pod that says whether it has a node.
pub(crate) const SCHEDULED: &str = "PodScheduled";
/// The reason of that condition while it has none.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";
/// The reason of events about what a pod waits for.
pub(crate) const FAILED: &str = "FailedScheduling";

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Tell a claim of delayed binding for which node its volume is needed.
    SelectNode { claim: Arc<PersistentVolumeClaim>, node: String },
    /// Give a free volume to a claim of delayed binding, because the pod's node reaches it. Binding does the rest.
    ReserveVolume {
        /// Free, as it was seen.
        volume: Arc<PersistentVolume>,
        /// For which it is reserved, by uid.
        claim: Arc<PersistentVolumeClaim>,
        /// From which the volume can be reached.
        node: String,
    },
    /// Put a pod on a node.
    Bind {
        pod: Seen,
        node: String,
        /// Users were told that it had to wait.
        waited: bool,
    },
    /// Say in the pod's status why it has no node.
    ReportUnschedulable {
        pod: Seen,
        message: String,
        /// Since when it has none.
        since: Time,
    },
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::SelectNode { .. } => "SelectNode",
            Action::ReserveVolume { .. } => "ReserveVolume",
            Action::Bind { .. } => "Bind",
            Action::ReportUnschedulable { .. } => "ReportUnschedulable",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::SelectNode { claim, node } => {
                let body = json!({ "metadata": { "annotations": { names::SELECTED_NODE: node } } });
                Effect::Write(Write::Patch {
                    target: ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() },
                    subresource: None,
                    patch: Patch::merge(Precondition::unchanged(&claim.metadata), body),
                })
            }
            // SC-10: the claim's uid, so that no namesake gets it; the mark, so that binding may undo what it was for.
            Action::ReserveVolume { volume, claim, .. } => {
                let body = json!({
                    "metadata": { "annotations": { names::BOUND_BY_CONTROLLER: "yes" } },
                    "spec": { "claimRef": ClaimRef::to(&claim.metadata) },
                });
                Effect::Write(Write::Patch {
                    target: ObjectRef { kind: Kind::PersistentVolume, key: volume.metadata.key() },
                    subresource: None,
                    patch: Patch::merge(Precondition::unchanged(&volume.metadata), body),
                })
            }
            Action::Bind { pod, node, .. } => {
                Effect::Write(Write::Bind { target: pod.object.clone(), uid: pod.uid.clone(), node: node.clone() })
            }
            Action::ReportUnschedulable { pod, message, since } => {
                let conditions = Conditions::new().set(SCHEDULED, "False", UNSCHEDULABLE, message, since);
                Effect::Write(pod.merge_status(json!({ "status": { "conditions": conditions.to_json() } })))
            }
        }
    }

    /// A status that cannot be written holds up no pod.
    fn lane(&self) -> Lane<'_> {
        match self {
            Action::SelectNode { .. } | Action::ReserveVolume { .. } | Action::Bind { .. } => Lane::default(),
            Action::ReportUnschedulable { .. } => Lane::numbered(1),
        }
    }

    /// That a pod has its node is news to those who were told that it had none.
    fn news(&self) -> News {
        let done = match self {
            Action::Bind { node, waited: true, .. } => Some(("Scheduled", format!("the pod got node {node}"))),
            Action::Bind { .. }
            | Action::SelectNode { .. }
            | Action::ReserveVolume { .. }
            | Action::ReportUnschedulable { .. } => None,
        };
        News { done, failed: Some(FAILED), ..News::default() }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 4] = [
            Permission::new(Kind::PersistentVolume, "", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::Pod, "binding", "create"),
            Permission::new(Kind::Pod, "status", "patch"),
        ];
        &ALL
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::SelectNode { claim, node } => write!(f, "SelectNode({} for {node})", claim.metadata.key()),
            Action::ReserveVolume { volume, claim, node } => {
                write!(f, "ReserveVolume({} for {} on {node})", volume.metadata.name, claim.metadata.key())
            }
            Action::Bind { pod, node, .. } => write!(f, "Bind({} to {node})", pod.object.key),
            Action::ReportUnschedulable { pod, message, .. } => {
                write!(f, "ReportUnschedulable({}: {message})", pod.object.key)
            }
        }
    }
}
