use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{
    CSIStorageCapacity, Condition, PersistentVolume, PersistentVolumeClaim, Seen, TopologySelectorTerm,
    VolumeNodeAffinity,
};
use control::Timestamp;
use rules_translate::Plugin;

use crate::NodeObstacle;

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
    /// It has a node, and claims of delayed binding that nobody has told it.
    Owed {
        /// Where the pod is, and stays.
        node: String,
        /// What volumes can be reached from there goes by these.
        labels: BTreeMap<String, String>,
        /// In the pod's order, with what each can get.
        claims: Vec<(String, Delayed)>,
    },
    /// It has a node that does not exist.
    Astray {
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
    /// The claim of a volume of the pod that would be made from a template, had not somebody else one of its name.
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
    Missing {
        /// It will be made from a template of the pod.
        templated: bool,
    },
    /// It is being deleted.
    Deleting,
    /// The volume that it is bound to vanished.
    Lost(String),
    /// Only one pod may use it, and this one does.
    TakenBy(String),
    /// It is to be bound without regard to nodes, and is not yet.
    Unbound,
    /// It waits for a node to be selected.
    AwaitsNode(Delayed),
    /// A node is selected and its volume is not there yet.
    NodeSelected {
        /// What it can get there.
        delayed: Delayed,
        node: String,
        /// Somebody may be making a volume for that node already.
        in_the_making: bool,
    },
    /// A volume is reserved for it, and the binding is not complete.
    Reserved {
        /// The one that refers to the claim.
        volume: String,
        /// Where it can be used.
        reach: Reach,
    },
    /// It is bound to a volume we cannot see yet.
    VolumeUnseen(String),
    /// It is bound.
    Bound {
        /// Where its volume can be used.
        reach: Reach,
        /// The node it was made for, if for one.
        node: Option<String>,
    },
}

/// Where a volume can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The nodes that reach it; `None` means all.
    pub affinity: Option<VolumeNodeAffinity>,
    /// The same of a volume of an in-tree plugin, on nodes that leave the plugin to its driver (SC-13).
    pub translated: Option<(Plugin, Option<VolumeNodeAffinity>)>,
    /// Its zone and region labels, with the values of which a node must have one (SC-21).
    pub zones: Vec<(String, BTreeSet<String>)>,
}

/// A claim of delayed binding without a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delayed {
    /// As it was seen.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Volumes that belong to nobody and suit it, the best first, wherever they are.
    pub free: Vec<Arc<PersistentVolume>>,
    /// How its class makes one.
    pub making: Making,
}

/// How a class makes volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Making {
    /// It makes none.
    Never,
    /// A provisioner makes them.
    For {
        /// Where it may.
        allowed: Vec<TopologySelectorTerm>,
        /// What its driver says it has left; `None` if it does not say.
        capacity: Option<Vec<Arc<CSIStorageCapacity>>>,
    },
}

/// A node, as far as placing a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Why it takes no such pod, whatever the pod's volumes and needs; `None` if it does.
    pub closed: Option<NodeObstacle>,
    /// Resources of which it has less left than the pod asks for.
    pub lacks: Vec<String>,
    /// The drivers of the pod's volumes there.
    pub drivers: Vec<DriverRoom>,
    /// The in-tree plugins whose volumes it leaves to CSI drivers.
    pub left_to_drivers: Vec<Plugin>,
    /// How many pods it has that have not ended.
    pub pods: usize,
}

/// A driver of the pod's volumes on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverRoom {
    /// As CSINode and CSIDriver call it.
    pub driver: String,
    /// The node does not have it, and its CSIDriver object says that pods wait for that (SC-17).
    pub absent: bool,
    /// How many of its volumes the node takes; `None` for any number.
    pub limit: Option<usize>,
    /// How many it has.
    pub used: usize,
    /// How many the pod would add.
    pub new: usize,
}
