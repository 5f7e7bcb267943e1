use alloc::format;
use alloc::string::String;

/// Why a node does not take a pod, in the order in which the filters ask.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeObstacle {
    /// It takes no new pods.
    Cordoned,
    /// It has a taint that the pod does not tolerate.
    Tainted {
        /// The taint's key.
        key: String,
        /// What it is set to; empty for a taint without one.
        value: String,
    },
    /// The pod's nodeSelector or node affinity asks for another.
    NotSelected,
    /// It is being deleted.
    Deleting,
    /// It is not ready.
    NotReady,
    /// It has not enough left of this resource.
    Lacks(String),
    /// A claim is for one pod at a time, and another pod has it, on whichever node (SC-19).
    ClaimTaken {
        claim: String,
        /// Who has it.
        pod: String,
    },
    /// It has not this driver, which asks that pods wait for it (SC-17).
    DriverAbsent(String),
    /// It takes no more volumes of this driver (SC-16).
    LimitReached(String),
    /// It cannot reach the volume of this claim.
    OutOfReach(String),
    /// There is no free volume for this claim, and none can be made there.
    NoVolume(String),
    /// The driver has not the room for a volume for this claim.
    NoSpace(String),
    /// The volume of this claim is in another zone.
    OtherZone(String),
}

impl NodeObstacle {
    /// A clause about the node.
    pub(crate) fn clause(&self) -> String {
        match self {
            NodeObstacle::Deleting => "is being deleted".into(),
            NodeObstacle::NotReady => "is not ready".into(),
            NodeObstacle::Cordoned => "is cordoned".into(),
            NodeObstacle::Tainted { key, value } => {
                format!("has taint {{{key}: {value}}}, which the pod does not tolerate")
            }
            NodeObstacle::NotSelected => "does not match the pod's nodeSelector or node affinity".into(),
            NodeObstacle::Lacks(resource) => format!("has not enough {resource} left"),
            NodeObstacle::ClaimTaken { claim, pod } => format!("waits for pod {pod}, which has claim {claim} alone"),
            NodeObstacle::DriverAbsent(driver) => format!("does not have driver {driver}"),
            NodeObstacle::LimitReached(driver) => format!("takes no more volumes of driver {driver}"),
            NodeObstacle::OutOfReach(claim) => format!("cannot reach the volume of claim {claim}"),
            NodeObstacle::NoVolume(claim) => format!("has no volume for claim {claim}"),
            NodeObstacle::NoSpace(claim) => format!("has no room for a volume for claim {claim}"),
            NodeObstacle::OtherZone(claim) => format!("is not in the zone of the volume of claim {claim}"),
        }
    }

    /// SC-6: the reason that kube-scheduler gives, which people and programs look for.
    pub(crate) fn reason(&self) -> String {
        match self {
            NodeObstacle::Deleting => "node(s) were being deleted".into(),
            NodeObstacle::NotReady => "node(s) were not ready".into(),
            NodeObstacle::Cordoned => "node(s) were unschedulable".into(),
            NodeObstacle::Tainted { .. } => "node(s) had untolerated taint(s)".into(),
            NodeObstacle::NotSelected => "node(s) didn't match Pod's node affinity/selector".into(),
            NodeObstacle::Lacks(resource) if resource == "pods" => "Too many pods".into(),
            NodeObstacle::Lacks(resource) => format!("Insufficient {resource}"),
            NodeObstacle::ClaimTaken { .. } => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod \
                                                access mode already in-use by another pod"
                    .into()
            }
            NodeObstacle::DriverAbsent(driver) => format!("{driver} CSI driver is not installed on the node"),
            NodeObstacle::LimitReached(_) => "node(s) exceed max volume count".into(),
            NodeObstacle::OutOfReach(_) => "node(s) didn't match PersistentVolume's node affinity".into(),
            NodeObstacle::NoVolume(_) => "node(s) didn't find available persistent volumes to bind".into(),
            NodeObstacle::NoSpace(_) => "node(s) did not have enough free storage".into(),
            NodeObstacle::OtherZone(_) => "node(s) had no available volume zone".into(),
        }
    }

    /// What of the node or of the pod it is about, where the reason does not say so.
    pub(crate) fn subject(&self) -> Option<String> {
        match self {
            NodeObstacle::Tainted { key, value } => Some(format!("taint {{{key}: {value}}}")),
            NodeObstacle::ClaimTaken { claim, pod } => Some(format!("claim {claim}; delete pod {pod} to free it")),
            NodeObstacle::LimitReached(driver) => Some(format!("driver {driver}")),
            NodeObstacle::OutOfReach(claim)
            | NodeObstacle::NoVolume(claim)
            | NodeObstacle::NoSpace(claim)
            | NodeObstacle::OtherZone(claim) => Some(format!("claim {claim}")),
            NodeObstacle::Deleting
            | NodeObstacle::NotReady
            | NodeObstacle::Cordoned
            | NodeObstacle::NotSelected
            | NodeObstacle::Lacks(_)
            | NodeObstacle::DriverAbsent(_) => None,
        }
    }
}
