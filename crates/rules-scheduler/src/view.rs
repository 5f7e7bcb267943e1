use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Condition, PersistentVolumeClaim, Seen, VolumeNodeAffinity};
use control::Timestamp;

/// A pod, as far as placing it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum View {
    /// There is no such pod.
    Gone,
    /// It has ended; if it failed, why.
    Ended(Option<String>),
    /// It has a node.
    Placed(String),
    /// It has a node that does not exist.
    Astray {
        /// The node.
        node: String,
        /// Its deletion was asked for.
        deleting: bool,
    },
    /// Another scheduler is to place it.
    Anothers(String),
    /// It is being deleted and has no node.
    Deleting,
    /// It waits for a node.
    Pending(PendingPod),
}

/// A pod that waits for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPod {
    /// The pod as it was seen.
    pub pod: Seen,
    /// When the youngest of the pod and its claims was created.
    pub since: Timestamp,
    /// Its condition that says why it has no node.
    pub told: Option<Condition>,
    /// A volume of the pod whose claim is made from a template, which is not supported.
    pub template: Option<String>,
    /// Its claims, in the pod's order.
    pub claims: Vec<(String, ClaimState)>,
    /// Every node, by name.
    pub nodes: Vec<NodeView>,
}

/// A claim, as far as placing its pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// It does not exist.
    Missing,
    /// It is being deleted.
    Deleting,
    /// Its volume vanished.
    Lost,
    /// Only one pod may use it, and this one does.
    TakenBy(String),
    /// It is to be bound without regard to nodes, and is not yet.
    Unbound,
    /// It waits for a node to be selected.
    AwaitsNode(Arc<PersistentVolumeClaim>),
    /// A node is selected and its volume is not there yet.
    NodeSelected {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The node.
        node: String,
        /// Somebody may be making a volume for that node already.
        in_the_making: bool,
    },
    /// It is bound to a volume we cannot see yet.
    VolumeUnseen(String),
    /// It is bound.
    Bound {
        /// Which nodes can reach the volume; `None` means all.
        affinity: Option<VolumeNodeAffinity>,
        /// The node it was made for, if for one.
        node: Option<String>,
    },
}

/// A node, as far as placing a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: alloc::collections::BTreeMap<String, String>,
    /// Why it does not take the pod; `None` if it does.
    pub closed: Option<NodeObstacle>,
    /// How many pods it has that have not ended.
    pub pods: usize,
}

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeObstacle {
    /// It is being deleted.
    Deleting,
    /// It is not ready.
    NotReady,
    /// It takes no new pods.
    Cordoned,
    /// It has a taint that the pod does not tolerate.
    Tainted(String),
    /// The pod's nodeSelector or node affinity asks for another.
    NotSelected,
    /// It cannot reach the volume of this claim.
    OutOfReach(String),
}

impl NodeObstacle {
    /// A clause about the node.
    pub(crate) fn clause(&self) -> String {
        match self {
            NodeObstacle::Deleting => "is being deleted".into(),
            NodeObstacle::NotReady => "is not ready".into(),
            NodeObstacle::Cordoned => "is cordoned".into(),
            NodeObstacle::Tainted(taint) => format!("has taint {taint}, which the pod does not tolerate"),
            NodeObstacle::NotSelected => "does not match the pod's nodeSelector or node affinity".into(),
            NodeObstacle::OutOfReach(claim) => format!("cannot reach the volume of claim {claim}"),
        }
    }

    /// The same about so many nodes, after their number.
    pub(crate) fn group(&self) -> String {
        match self {
            NodeObstacle::Deleting => "being deleted".into(),
            NodeObstacle::NotReady => "not ready".into(),
            NodeObstacle::Cordoned => "cordoned".into(),
            NodeObstacle::Tainted(taint) => format!("with taint {taint}, which the pod does not tolerate"),
            NodeObstacle::NotSelected => "not matching the pod's nodeSelector or node affinity".into(),
            NodeObstacle::OutOfReach(claim) => format!("that cannot reach the volume of claim {claim}"),
        }
    }
}
