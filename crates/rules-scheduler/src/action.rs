use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Precondition, Write, names};
use control::{Effect, Permission};
use serde_json::json;

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Tell a claim of delayed binding for which node its volume is needed.
    SelectNode {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The node.
        node: String,
    },
    /// Put a pod on a node.
    Bind {
        /// The pod.
        pod: ObjectKey,
        /// Its uid.
        uid: String,
        /// The node.
        node: String,
    },
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::SelectNode { .. } => "SelectNode",
            Action::Bind { .. } => "Bind",
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
            Action::Bind { pod, uid, node } => Effect::Write(Write::Bind {
                target: ObjectRef { kind: Kind::Pod, key: pod.clone() },
                uid: uid.clone(),
                node: node.clone(),
            }),
        }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 2] = [
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::Pod, "binding", "create"),
        ];
        &ALL
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::SelectNode { claim, node } => write!(f, "SelectNode({} for {node})", claim.metadata.key()),
            Action::Bind { pod, node, .. } => write!(f, "Bind({pod} to {node})"),
        }
    }
}
