use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ObjectKey, Pod, ResourceVersion};
use control::host::ProcessState;

use crate::local::DriverFacts;
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
    /// Its driver.
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
    /// Something is mounted at the staging path.
    pub staged: MountState,
    /// This incarnation had the driver put it there.
    pub staged_by_us: bool,
    /// Pods that want it or may have it, by uid.
    pub users: BTreeMap<String, User>,
    /// A mount of this volume that no record explains.
    pub stray: Option<String>,
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
    /// Not there.
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
    /// Attached.
    Attached,
}

/// A volume's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordSide {
    /// None.
    Missing,
    /// There is one that cannot be read.
    Unreadable,
    /// This one.
    Present(Record),
}

/// A pod that wants a volume or may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The pod.
    pub pod: ObjectKey,
    /// Its service account.
    pub service_account: String,
    /// Where it is, or is to be, published.
    pub target: String,
    /// Read-only there.
    pub read_only: bool,
    /// What the pod is to the volume.
    pub standing: UserState,
    /// Something is mounted at the target.
    pub mounted: MountState,
    /// The record lists the target.
    pub recorded: bool,
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
    /// The pod.
    pub key: ObjectKey,
    /// The directory everything is under.
    pub root: String,
    /// The object, if there is one and it is on this node.
    pub pod: Option<Arc<Pod>>,
    /// It has ended and will not run again.
    pub sealed: bool,
    /// A record lists a publish for it.
    pub recorded: bool,
    /// Its containers, in order.
    pub containers: Vec<ContainerView>,
    /// Its volumes by name.
    pub volumes: BTreeMap<String, PodVolumeView>,
    /// What is left of pods that had this name, or of this one if it is gone.
    pub remains: Vec<Remains>,
}

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    /// Its latest process: how often it was started before, its name, how it fares.
    pub latest: Option<(u32, String, ProcessState)>,
    /// Its earlier processes, oldest first: their names and how they ended.
    pub earlier: Vec<(String, ProcessState)>,
}

/// One volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodVolumeView {
    /// It is mounted here.
    Ready {
        /// Where.
        path: String,
        /// Read-only there.
        read_only: bool,
    },
    /// It is not there yet. The clause says why.
    Waiting(String),
    /// It cannot be had here. The clause says why.
    Impossible(String),
    /// An ordinary directory.
    Directory(String),
    /// A kind of volume that cannot be had here yet.
    Unsupported,
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
    /// Its processes.
    pub processes: Vec<(String, ProcessState)>,
}
