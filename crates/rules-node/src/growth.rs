//! What a claim says about the growth of its volume, and whether the node has a part in it (EX-15, EX-16).

use alloc::string::String;
use alloc::vec::Vec;

use api::{AccessMode, PersistentVolume, PersistentVolumeClaim, Quantity, ResourceList, SecretReference, Seen, names};

/// The conditions of a claim that are about its size.
pub(crate) const RESIZE_CONDITIONS: [&str; 4] =
    [names::RESIZING, names::FILE_SYSTEM_RESIZE_PENDING, names::CONTROLLER_RESIZE_ERROR, names::NODE_RESIZE_ERROR];

/// What a claim says about the growth of its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The claim as it was when this was decided.
    pub claim: Seen,
    /// What it has, should have and was promised.
    pub sizes: GrowthSizes,
    /// How far it has come, as the claim says.
    pub progress: GrowthProgress,
    /// Which conditions about its size the claim carries.
    pub conditions: Vec<String>,
    /// What the claim says about a growth that failed on a node.
    pub error: Option<String>,
    /// Several nodes may have the volume mounted, and each grows what it has.
    pub shared: bool,
    /// The claim says that the last growth left nothing to do for nodes.
    pub not_required: bool,
    /// What the driver needs to know for it.
    pub secret: Option<SecretReference>,
    /// The driver refused to grow the filesystem to this size while it is in use here.
    pub stuck: Option<i64>,
}

/// The sizes of a volume that may have grown, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthSizes {
    /// What the user asks for.
    pub requested: i64,
    /// What the volume has.
    pub volume: i64,
    /// What the claim has.
    pub had: i64,
    /// What the claim says is under way, or was last.
    pub allocated: Option<i64>,
    /// What the record says that the filesystem has here.
    pub recorded: Option<i64>,
}

/// How far a growth has come, as the claim says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthProgress {
    /// It says nothing, or nothing that is known.
    None,
    /// It is the controller's turn, or the controller gave up.
    Controllers,
    /// It is the node's turn.
    NodePending,
    /// A node is at work.
    NodeInProgress,
    /// No node will ever do it.
    NodeInfeasible,
}

/// What the node has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthPlan {
    /// The size the filesystem gets.
    pub size: i64,
    /// What the claim is told.
    pub tell: Tell,
}

/// What the claim is told of a growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// That it is under way, and then the size.
    Progress,
    /// The size alone: the claim keeps no progress (EX-20).
    Size,
    /// Nothing: another node has told the size.
    Nothing,
}

impl Growth {
    /// What a claim and its volume say; `None` where a size is missing or cannot be read, which others complain about.
    pub fn of(
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        recorded: Option<i64>,
        stuck: Option<i64>,
    ) -> Option<Growth> {
        let status = &claim.status;
        let bytes = |list: &ResourceList| list.get("storage").map(Quantity::bytes);
        let told = |of: &str| status.conditions.iter().find(|condition| condition.r#type == of);
        let carried = RESIZE_CONDITIONS.into_iter().filter(|of| told(of).is_some());
        Some(Growth {
            claim: Seen::of::<PersistentVolumeClaim>(&claim.metadata),
            sizes: GrowthSizes {
                requested: bytes(&claim.spec.resources.requests)?.ok()?,
                volume: bytes(&volume.spec.capacity)?.ok()?,
                had: bytes(&status.capacity)?.ok()?,
                allocated: bytes(&status.allocated_resources).and_then(Result::ok),
                recorded,
            },
            progress: progress(status.allocated_resource_statuses.get("storage").map_or("", String::as_str)),
            conditions: carried.map(String::from).collect(),
            error: told(names::NODE_RESIZE_ERROR).map(|condition| condition.message.clone()),
            shared: claim.spec.access_modes.contains(&AccessMode::ReadWriteMany),
            not_required: claim.metadata.annotation(names::NODE_EXPANSION_NOT_REQUIRED).is_some(),
            secret: volume.spec.csi.as_ref().and_then(|csi| csi.node_expand_secret_ref.clone()),
            stuck,
        })
    }

    /// What the node has to do, if anything (the table of orchestrator 5.4).
    pub fn plan(&self) -> Option<GrowthPlan> {
        let GrowthSizes { volume, had, allocated, recorded, .. } = self.sizes;
        // KL-35: what is not known here is what the claim says.
        let here = recorded.unwrap_or(had);
        if volume <= had.min(here) {
            return None;
        }
        let recovers = allocated.is_some() || self.progress != GrowthProgress::None;
        let size = allocated.filter(|_| recovers).unwrap_or(volume);
        let plan = |tell| Some(GrowthPlan { size, tell });
        match self.progress {
            GrowthProgress::NodePending | GrowthProgress::NodeInProgress => plan(Tell::Progress),
            GrowthProgress::None if !recovers && had < volume => plan(Tell::Size),
            // Every node that has it mounted must grow what it has; the claim has the size already.
            GrowthProgress::None if had >= size && here < size && self.shared && !self.not_required => {
                plan(Tell::Nothing)
            }
            GrowthProgress::None | GrowthProgress::Controllers | GrowthProgress::NodeInfeasible => None,
        }
    }

    /// A pod that has not started waits for the growth: it should see the size that it was promised. What cannot be
    /// done while the volume is in use holds up nobody (EX-19).
    pub fn holds_up(&self) -> bool {
        self.plan().is_some_and(|plan| self.stuck != Some(plan.size) && !self.is_recorded(plan.size))
    }

    /// The filesystem is known to have this size here.
    pub fn is_recorded(&self, size: i64) -> bool {
        self.sizes.recorded.is_some_and(|recorded| recorded >= size)
    }
}

fn progress(status: &str) -> GrowthProgress {
    match status {
        names::CONTROLLER_RESIZE_IN_PROGRESS | names::CONTROLLER_RESIZE_INFEASIBLE => GrowthProgress::Controllers,
        names::NODE_RESIZE_PENDING => GrowthProgress::NodePending,
        names::NODE_RESIZE_IN_PROGRESS => GrowthProgress::NodeInProgress,
        names::NODE_RESIZE_INFEASIBLE => GrowthProgress::NodeInfeasible,
        _unknown => GrowthProgress::None,
    }
}
