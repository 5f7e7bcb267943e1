use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ObjectKey, Pod, Quantity, ResourceVersion};
use control::host::{HostPathKind, ProcessState};

use crate::checks::CheckView;
use crate::group::GroupChange;
use crate::growth::Growth;
use crate::health::VolumeAilments;
use crate::local::DriverFacts;
use crate::orphans::{OrphanView, OrphansView};
use crate::paths::Paths;
use crate::record::Record;
use crate::spec::VolumeSpec;

/// What a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// A volume on this node.
    Volume(Box<VolumeView>),
    /// A pod of this node, and what may be left of earlier ones of its name.
    Pod(Box<PodView>),
    /// A probe or hook of a container.
    Check(Box<CheckView>),
    /// Directories of pods that nothing else remembers.
    Orphans(Box<OrphansView>),
    /// The directory of a pod that is gone.
    Orphan(Box<OrphanView>),
}

/// A volume on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeView {
    /// The node's name.
    pub node: String,
    /// This incarnation of the agent.
    pub incarnation: String,
    /// The volume's unique name.
    pub name: String,
    pub driver: String,
    /// The driver's name for it.
    pub handle: String,
    /// Where it is on this machine.
    pub paths: Paths,
    /// The Node object.
    pub node_side: NodeSide,
    /// The volume as the driver is told, if a pod wants it.
    pub spec: Option<VolumeSpec>,
    /// Its attachment to this node.
    pub attachment: AttachmentState,
    /// The driver, if it is registered.
    pub facts: Option<DriverFacts>,
    /// The record on disk.
    pub record: RecordSide,
    /// One may be there although none is known: its writing was never answered.
    pub maybe_recorded: bool,
    /// It is in a pod's own spec: nothing is attached, reported or staged.
    pub ephemeral: bool,
    /// Something is mounted at the staging path. Of a raw device nothing need be mounted there, so for one it means
    /// that this incarnation had the driver stage it.
    pub staged: MountState,
    /// This incarnation had the driver put it there.
    pub staged_by_us: bool,
    /// Pods that want it or may have it, by uid.
    pub users: BTreeMap<String, User>,
    /// Why the volume cannot be reached from this node, by its own node affinity.
    pub out_of_reach: Option<String>,
    /// Why the node should be drained: who serves the plugin's volumes was switched while this one was mounted.
    pub undrained: Option<String>,
    /// A mount of this volume that no record explains.
    pub stray: Option<String>,
    /// What its claim says about growth.
    pub growth: Option<Growth>,
    /// The Node version for which an unanswered clearing from `volumesInUse` may still land.
    pub clearing: Option<u64>,
}

/// Whether something is mounted at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountState {
    /// The mount table lists it.
    Yes,
    /// The mount table does not list it.
    No,
}

impl MountState {
    /// Reads a test of the mount table.
    pub fn from(listed: bool) -> MountState {
        if listed { MountState::Yes } else { MountState::No }
    }
}

/// The Node object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSide {
    Missing,
    /// It does not carry this incarnation of the agent.
    NotYet,
    /// It carries this incarnation.
    Ours(OnNode),
}

/// What the Node object says about a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnNode {
    /// The object's version.
    pub version: ResourceVersion,
    /// The whole list of volumes in use.
    pub in_use: Option<Vec<String>>,
    /// This volume is in it.
    pub listed: bool,
    /// This volume is reported attached.
    pub attached: bool,
}

/// A volume's attachment to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachmentState {
    /// The driver needs none.
    NotNeeded,
    /// There is none, or it is not attached yet. The clause says which.
    Waiting(String),
    Attached,
}

/// A volume's record.
#[allow(clippy::large_enum_variant, reason = "a view is made for one decision and not kept")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordSide {
    Missing,
    /// There is one that cannot be read.
    Unreadable,
    Present(Record),
}

/// A pod that wants a volume or may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub pod: ObjectKey,
    /// Its service account.
    pub service_account: String,
    /// Where it is, or is to be, published.
    pub target: String,
    pub read_only: bool,
    /// What the pod is to the volume.
    pub standing: UserState,
    /// Something is mounted at the target.
    pub mounted: MountState,
    /// The record lists the target.
    pub recorded: bool,
    /// The group the driver is to mount it for.
    pub mount_group: Option<u32>,
    /// Its files are given to the pod's group once it is published.
    pub group: Option<GroupChange>,
    /// That was done.
    pub grouped: bool,
    /// It was mounted there and is no longer, without our asking.
    pub vanished: bool,
    /// What its driver said last of its health there.
    pub health: Option<VolumeAilments>,
    /// It was unwell and is well again, which is not told yet.
    pub recovered: bool,
}

/// What a pod is to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserState {
    /// It is alive and its claim is bound to the volume.
    Wanted,
    /// It does not want the volume, but it may still run.
    Kept,
    /// It has ended and will not run again.
    Sealed,
}

/// A pod of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    pub key: ObjectKey,
    /// The directory everything is under.
    pub root: String,
    /// The object, if there is one and it is on this node.
    pub pod: Option<Arc<Pod>>,
    /// It has ended and will not run again.
    pub sealed: bool,
    /// A record lists a publish for it.
    pub recorded: bool,
    /// Its init containers, in order.
    pub init: Vec<ContainerView>,
    /// Its containers, in order.
    pub containers: Vec<ContainerView>,
    /// Its volumes by name: those that some container uses.
    pub volumes: BTreeMap<String, PodVolumeView>,
    /// Groups that its volumes add to every process.
    pub volume_groups: Vec<u32>,
    /// What is mounted in the volumes that this agent makes itself.
    pub own_mounts: Vec<String>,
    /// What its containers can be told of the node.
    pub node: ToldOfNode,
    /// What is left of pods that had this name, or of this one if it is gone.
    pub remains: Vec<Remains>,
}

/// What containers can be told of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldOfNode {
    /// Where it is reached.
    pub address: String,
    /// What it has for pods.
    pub allocatable: BTreeMap<String, Quantity>,
}

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    /// Its latest process: how often it was started before, its name, how it fares.
    pub latest: Option<(u32, String, ProcessState)>,
    /// Its earlier processes, oldest first: their names and how they ended.
    pub earlier: Vec<(String, ProcessState)>,
    /// Its latest process has started, as far as probes say.
    pub started: bool,
    /// Its latest process is ready, as far as probes say.
    pub ready: bool,
    /// Its latest process is to be ended and started again: what is wrong, and how long it may take.
    pub unwell: Option<(String, Option<i64>)>,
    /// Whether the hook before its end is over, if it has one.
    pub pre_stop: Option<bool>,
}

impl ContainerView {
    /// It runs, or may.
    pub fn runs(&self) -> bool {
        matches!(self.latest, Some((_, _, ProcessState::Running { .. })))
    }

    /// It runs, and whoever comes after it may go ahead.
    pub fn is_started(&self) -> bool {
        self.runs() && self.started
    }

    /// It runs and does its work.
    pub fn is_ready(&self) -> bool {
        self.runs() && self.ready
    }
}

/// One volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodVolumeView {
    /// It is mounted here.
    Ready { path: String, read_only: bool },
    /// A raw device is here.
    Device {
        /// Where its driver published it.
        path: String,
        /// It may only be read.
        read_only: bool,
    },
    /// It is not there yet. The clause says why.
    Waiting(String),
    /// It cannot be had here. The clause says why.
    Impossible(String),
    /// An ordinary directory.
    Directory(String),
    /// A directory that this agent makes in memory, fills, or both.
    Own(OwnVolume),
    /// A place of the machine.
    HostPath {
        /// Where it is on the machine.
        path: String,
        /// What must be there.
        kind: HostPathKind,
    },
    /// A kind of volume that cannot be had here yet.
    Unsupported,
}

/// A volume that this agent makes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnVolume {
    /// Where it is made.
    pub path: String,
    /// It is in memory; otherwise on the machine's disk.
    pub memory: Option<MemoryVolume>,
    /// Something is mounted there.
    pub mounted: MountState,
    /// It shows files that the pod names, which no container may change.
    pub filled: bool,
}

/// A filesystem in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryVolume {
    /// How many bytes it may hold.
    pub bytes: Option<u64>,
    /// The mode of its root.
    pub mode: u32,
}

/// What is left of a pod whose object is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The pod's uid.
    pub uid: String,
    /// It will not run again.
    pub sealed: bool,
    /// A record lists a publish for it.
    pub recorded: bool,
    pub processes: Vec<(String, ProcessState)>,
    /// What is mounted in the volumes that this agent made itself.
    pub own_mounts: Vec<String>,
}
