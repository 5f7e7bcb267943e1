use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use api::{Kind, VolumeError};

use crate::act::{Place, PublishRequest, Stamp};

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A VolumeAttachment, by name.
    Attachment(String),
    /// A PersistentVolume, by name: whether its finalizer may go.
    Volume(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Attachment(name) => write!(f, "attachment {name}"),
            Key::Volume(name) => write!(f, "volume {name}"),
        }
    }
}

/// Everything a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum View {
    /// The objects of this kind have not been listed yet, so nothing can be said.
    NotSynced(Kind),
    /// There is no such object.
    Gone(Key),
    /// The attachment is for another driver.
    NotOurs(String),
    /// The driver does not publish: the attachment needs a confirmation and nothing else.
    Trivial {
        /// The attachment as it was seen.
        attachment: Stamp,
        /// It lacks the confirmation and is not on its way out.
        unconfirmed: bool,
        /// Another attachment that is confirmed.
        rival: Option<Rival>,
    },
    /// The attachment should exist.
    Attach(Attach),
    /// The attachment's deletion was asked for.
    Detach(Detach),
    /// A volume, and whether our finalizer must stay on it.
    Volume(VolumeUse),
}

/// An attachment that should exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attach {
    /// The attachment as it was seen.
    pub attachment: Stamp,
    /// The node's name.
    pub node: String,
    /// It carries our finalizer, so the driver may have been asked to publish.
    pub marked: bool,
    /// It gives way to another attachment of the same volume.
    pub gives_way: bool,
    /// Its status says it is attached.
    pub attached: bool,
    /// What its status says went wrong.
    pub error: Option<VolumeError>,
    /// What is to be published.
    pub target: Target,
    /// Another attachment that keeps this one from going on.
    pub rival: Option<Rival>,
}

/// What is to be published, if that can be said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum Target {
    /// Something is missing that may still come.
    Waiting(Obstacle),
    /// It can never be; the text says why and what to do.
    Impossible(String),
    /// All is known.
    Ready {
        /// The volume, to put our finalizer on; `None` if it carries it.
        unmarked_volume: Option<Stamp>,
        /// The node's id is recorded on the attachment.
        recorded: bool,
        /// The request.
        request: PublishRequest,
    },
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The PersistentVolume is not there.
    VolumeMissing(String),
    /// The PersistentVolume is being deleted.
    VolumeLeaving(String),
    /// The driver has not registered on the node, so its id of the node is not known.
    NodeIdUnknown(String),
}

/// Another attachment, for another node, of a volume that may be on one node only. It carries our finalizer or is
/// attached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rival {
    /// Its node.
    pub node: String,
    /// It goes first: it is attached, or comes first by name, and is not on its way out.
    pub goes_first: bool,
}

/// An attachment on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum Detach {
    /// It does not carry our finalizer: there is nothing to undo.
    Unmarked(String),
    /// The volume's handle or the node's id is not known.
    Stuck(Obstacle),
    /// All is known.
    Ready {
        /// The attachment as it was seen.
        attachment: Stamp,
        /// Volume and node as the driver knows them.
        place: Place,
        /// What its status says went wrong.
        error: Option<VolumeError>,
    },
}

/// A volume and our finalizer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VolumeUse {
    /// Our finalizer is not on it.
    Unmarked(String),
    /// It is not on its way out, so the finalizer stays for the next attachment.
    Staying(String),
    /// An attachment names it.
    Attached {
        /// The volume.
        volume: String,
        /// The attachment.
        attachment: String,
    },
    /// It is on its way out and nothing names it.
    Free {
        /// The volume as it was seen.
        volume: Stamp,
        /// Our finalizer.
        finalizer: String,
    },
}

/// What a driver tells about an attachment, for the node's use. It may hold secrets, so it is never printed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context(pub BTreeMap<String, String>);

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.0.len())
    }
}
