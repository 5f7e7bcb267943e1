use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ObjectKey, PersistentVolumeClaim, VolumeNodeAffinity};

/// A pod, as far as placing it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// There is no such pod.
    Gone,
    /// It has ended.
    Ended,
    /// It has a node.
    Placed(String),
    /// It is being deleted and has no node.
    Deleting,
    /// It waits for a node.
    Pending(PendingPod),
}

/// A pod that waits for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPod {
    /// The pod.
    pub pod: ObjectKey,
    /// Its uid.
    pub uid: String,
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
    /// Why it takes no new pods; `None` if it does.
    pub closed: Option<&'static str>,
    /// How many pods it has that have not ended.
    pub pods: usize,
}
