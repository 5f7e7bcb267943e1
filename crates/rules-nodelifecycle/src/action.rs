use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{Condition, Kind, Lease, Object, ObjectKey, ObjectRef, Seen, Taint, Time, Value, Write, names};
use control::{Attempt, Effect, Lane, News, Outcome, Permission, Reply};
use serde_json::json;

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Keep in mind when a node was heard of, by our own clock.
    NoteLife {
        /// The node's name.
        node: String,
        /// As it was seen.
        lease: Option<Arc<Lease>>,
        /// When the node last spoke for itself, by its own clock.
        heartbeat: Option<Time>,
    },
    /// Read a node's Lease past the cache.
    ReadLease {
        /// The node's name.
        node: String,
        /// The Lease's version as it was last seen.
        known: Option<String>,
    },
    /// Say that nothing is known of a node any more.
    MarkUnknown {
        /// The node as it was seen.
        node: Seen,
        /// All its conditions.
        conditions: Vec<Condition>,
    },
    /// Set the taints of a node.
    SetTaints {
        /// The node as it was seen.
        node: Seen,
        /// All of them.
        taints: Vec<Taint>,
        /// The node is back, after it was not heard of.
        back: bool,
    },
    /// Keep in mind when taints were first seen on the pod's node.
    NoteTaints {
        pod: ObjectKey,
        /// Those that end pods.
        taints: Vec<Taint>,
    },
    /// Delete a pod, with the time it has to end.
    Evict {
        /// The pod as it was seen.
        pod: Seen,
        /// It asks for no time, and gets a second: its node must say that it ended.
        hasty: bool,
        /// Which taint it does not tolerate.
        because: String,
    },
    /// Make sure that a node is really gone.
    CheckNode {
        /// The node's name.
        node: String,
    },
    /// Take a pod away that nobody can end any more.
    Remove {
        /// The pod as it was seen.
        pod: Seen,
        /// What shows that its node is dead or gone.
        evidence: String,
    },
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::NoteLife { .. } => "NoteLife",
            Action::ReadLease { .. } => "ReadLease",
            Action::MarkUnknown { .. } => "MarkUnknown",
            Action::SetTaints { .. } => "SetTaints",
            Action::NoteTaints { .. } => "NoteTaints",
            Action::Evict { .. } => "Evict",
            Action::CheckNode { .. } => "CheckNode",
            Action::Remove { .. } => "Remove",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::NoteLife { .. } | Action::NoteTaints { .. } => Effect::Nothing,
            Action::ReadLease { node, .. } => {
                Effect::Read(ObjectRef::namespaced(Kind::Lease, names::NODE_LEASES, node.clone()))
            }
            // Lists go out whole, under the node's version.
            Action::MarkUnknown { node, conditions } => {
                Effect::Write(node.patch_status(json!({ "status": { "conditions": conditions } })))
            }
            Action::SetTaints { node, taints, .. } => {
                let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
                Effect::Write(node.patch(json!({ "spec": { "taints": taints } })))
            }
            Action::CheckNode { node } => Effect::Read(ObjectRef::cluster(Kind::Node, node.clone())),
            Action::Evict { pod, hasty, .. } => Effect::Write(delete(pod, hasty.then_some(1))),
            Action::Remove { pod, .. } => Effect::Write(delete(pod, Some(0))),
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        match (self, got) {
            (Action::CheckNode { .. }, Outcome::Done(Reply::Gone)) => Attempt::Succeeded,
            // The cache has not seen the node yet. Looking again at once would find the same cache.
            (Action::CheckNode { .. }, Outcome::Done(_)) => Attempt::Outrun("the node is there".into()),
            // The same of a Lease that was renewed.
            (Action::ReadLease { known: Some(known), .. }, Outcome::Done(Reply::Object(Object::Lease(lease))))
                if lease.metadata.resource_version.0 != *known =>
            {
                Attempt::Outrun("the node renews its Lease".into())
            }
            // That there is no Lease is an answer, too.
            (Action::ReadLease { .. }, Outcome::Done(_)) => Attempt::Neutral,
            (_, got) => Attempt::of(got),
        }
    }

    /// What cannot be read or written of a node holds up nothing that is only kept in mind.
    fn lane(&self) -> Lane<'_> {
        match self {
            Action::NoteLife { .. } | Action::NoteTaints { .. } => Lane::numbered(1),
            Action::ReadLease { .. }
            | Action::MarkUnknown { .. }
            | Action::SetTaints { .. }
            | Action::Evict { .. }
            | Action::CheckNode { .. }
            | Action::Remove { .. } => Lane::default(),
        }
    }

    /// With the reasons of upstream. Of a pod that goes it is told before it is gone.
    fn news(&self) -> News {
        let begun = |reason, text| News { begun: Some((reason, text)), ..News::default() };
        let done = |reason, text| News { done: Some((reason, text)), ..News::default() };
        match self {
            Action::MarkUnknown { node, .. } => {
                done("NodeNotReady", format!("Node {} status is now: NodeNotReady", node.name()))
            }
            Action::SetTaints { node, back: true, .. } => {
                done("NodeReady", format!("Node {} status is now: NodeReady", node.name()))
            }
            Action::Evict { pod, because, .. } => {
                begun("TaintManagerEviction", format!("Marking for deletion Pod {}: {because}", pod.object.key))
            }
            Action::Remove { evidence, .. } => begun("DeletionByPodGC", format!("removing the pod: {evidence}")),
            Action::NoteLife { .. }
            | Action::ReadLease { .. }
            | Action::SetTaints { back: false, .. }
            | Action::NoteTaints { .. }
            | Action::CheckNode { .. } => News::default(),
        }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 5] = [
            Permission::new(Kind::Lease, "", "get"),
            Permission::new(Kind::Node, "", "get"),
            Permission::new(Kind::Node, "", "patch"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::Pod, "", "delete"),
        ];
        &ALL
    }
}

/// The very pod, however its status may have changed.
fn delete(pod: &Seen, grace_seconds: Option<u32>) -> Write {
    Write::Delete { target: pod.object.clone(), only_if: pod.same(), grace_seconds }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::NoteLife { node, .. } => write!(f, "NoteLife({node})"),
            Action::ReadLease { node, .. } => write!(f, "ReadLease({node})"),
            Action::MarkUnknown { node, .. } => write!(f, "MarkUnknown({})", node.name()),
            Action::SetTaints { node, taints, .. } => {
                let taints: Vec<String> = taints.iter().map(ToString::to_string).collect();
                write!(f, "SetTaints({}: {})", node.name(), taints.join(", "))
            }
            Action::NoteTaints { pod, .. } => write!(f, "NoteTaints({pod})"),
            Action::Evict { pod, .. } => write!(f, "Evict({})", pod.object.key),
            Action::CheckNode { node } => write!(f, "CheckNode({node})"),
            Action::Remove { pod, .. } => write!(f, "Remove({})", pod.object.key),
        }
    }
}
