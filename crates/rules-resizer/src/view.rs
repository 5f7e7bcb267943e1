use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{ObjectKey, SecretReference, Seen, Time};
use control::{Capability, Timestamp};

/// What one decision is about: a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub ObjectKey);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}", self.0)
    }
}

/// Everything a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// There is no such claim.
    Gone(ObjectKey),
    /// The claim has no volume yet.
    NotBound(ObjectKey),
    /// The claim's volume is not there.
    VolumeMissing(String),
    /// The claim's volume belongs to another driver, or to another claim.
    NotOurs(String),
    /// A size that is no size; the text says which and what to do.
    Unreadable(String),
    /// A claim and its volume.
    Claim(Box<Bound>),
}

/// A claim, its volume, and what is to be done about them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The claim as it was seen.
    pub claim: Seen,
    /// The volume as it was seen.
    pub volume: Seen,
    /// The volume as the driver knows it.
    pub place: DriverVolume,
    pub grow: Grow,
    pub modify: Modify,
    /// How long something the driver calls impossible is left alone.
    pub slow_millis: u64,
}

/// A volume's size, as it is and as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grow {
    /// Who expands volumes.
    pub by: Expansion,
    /// The size under way is kept in the claim's status.
    pub recovers: bool,
    pub sizes: Sizes,
    /// How far it has come.
    pub progress: ResizeProgress,
    /// The claim's conditions about it.
    pub conditions: Vec<Told>,
    /// The claim says that the last resize left nothing to do for the node.
    pub not_required: bool,
    /// Whether the volume carries, or should get, the size its filesystem had before.
    pub before: BeforeSize,
    /// How the volume is used; the error says why that cannot be told to a driver.
    pub capability: Result<Capability, String>,
    /// What the driver needs to know for it.
    pub secret: Option<SecretReference>,
    /// A pod that uses the claim and has not ended.
    pub user: Option<String>,
}

/// Who expands the volumes of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expansion {
    #[default]
    None,
    /// Its node part alone.
    NodeOnly,
    /// Its controller, and its node part if the controller says so.
    Controller,
}

/// The sizes of a claim and its volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// What the user asks for.
    pub requested: i64,
    /// What the volume has.
    pub volume: i64,
    /// What the claim has.
    pub had: i64,
    /// What the claim says is under way, or was last.
    pub allocated: Option<i64>,
}

/// How far a resize has come, as the claim says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResizeProgress {
    /// It says nothing, or nothing that is known.
    None,
    /// The driver's controller is at work, or may be.
    ControllerInProgress,
    /// The driver's controller will never do it.
    ControllerInfeasible,
    /// It is the node's turn.
    NodePending,
    /// The node is at work.
    NodeInProgress,
    /// The node will never do it.
    NodeInfeasible,
}

/// A condition of the claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Told {
    pub r#type: String,
    /// It is said to be true.
    pub holds: bool,
    pub message: String,
    /// When it became so.
    pub since: Option<Time>,
}

/// The size the filesystem had before a resize, which nodes look for on the volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BeforeSize {
    /// Nodes are not told.
    Unused,
    /// The volume does not carry it; this is what it would say.
    Absent(String),
    /// The volume carries it.
    Present,
}

/// A volume's attributes, as they are and as they should be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Modify {
    /// The driver can.
    pub supported: bool,
    /// The class the user asks for.
    pub wanted: Option<String>,
    /// The class the claim has.
    pub current: Option<String>,
    /// The class the volume has.
    pub volume_class: Option<String>,
    /// What is under way.
    pub status: ModifyState,
    /// What is said of the class asked for.
    pub wanted_class: Class,
    /// What is said of the class under way.
    pub target_class: Class,
    /// The claim's conditions about it.
    pub conditions: Vec<Told>,
    /// What the driver needs to know for it.
    pub secret: Option<SecretReference>,
    /// What the driver is told besides the class's parameters.
    pub extra: BTreeMap<String, String>,
}

/// What the claim says about a change of attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModifyState {
    Nothing,
    /// The class is not there; the target of an earlier change, if there was one.
    Pending(String),
    /// The driver is at work on this class, or may be.
    InProgress(String),
    /// The driver will never do this class.
    Infeasible(String),
}

/// What is known about a class of attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// None is named.
    Unnamed,
    /// There is none of that name.
    Missing(String),
    /// These are its parameters.
    Ready(BTreeMap<String, String>),
}

/// A volume as the driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DriverVolume {
    /// The driver's name.
    pub driver: String,
    /// The volume's handle.
    pub handle: String,
}

/// Since when a condition holds (EX-4): what is true already stays so since then, whatever is said about it now.
pub(crate) fn since(conditions: &[Told], of: &str, now: Timestamp) -> Time {
    let already = told(conditions, of).filter(|told| told.holds).and_then(|told| told.since.clone());
    already.unwrap_or_else(|| now.to_time())
}

/// The condition of a type, if the claim has it.
pub(crate) fn told<'a>(conditions: &'a [Told], of: &str) -> Option<&'a Told> {
    conditions.iter().find(|told| told.r#type == of)
}
