use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use api::{SecretReference, Seen, VolumeError};

use crate::action::{PublishRequest, VolumeOnNode};

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A VolumeAttachment, by name.
    Attachment(String),
    /// A PersistentVolume, by name: whether its finalizer may go.
    Volume(String),
    /// What the driver of this name lists as published.
    Listing(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Attachment(name) => write!(f, "attachment {name}"),
            Key::Volume(name) => write!(f, "volume {name}"),
            Key::Listing(driver) => write!(f, "volumes listed by {driver}"),
        }
    }
}

/// Everything a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum View {
    /// There is no such object.
    Gone(Key),
    /// The attachment is for another driver.
    NotOurs(String),
    /// The driver does not publish: the attachment needs a confirmation and nothing else.
    Trivial {
        /// The attachment as it was seen.
        attachment: Seen,
        /// It lacks the confirmation and is not on its way out.
        unconfirmed: bool,
        /// Another attachment that is confirmed.
        rival: Option<RivalAttachment>,
    },
    /// The attachment should exist.
    Attach(Attach),
    /// The attachment's deletion was asked for.
    Detach(Detach),
    /// A volume, and whether our finalizer must stay on it.
    Volume(VolumeUse),
    /// What the driver lists.
    Listing(ListingView),
}

/// What the driver lists as published.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListingView {
    /// The driver does not list it, or nobody wants to know.
    Off,
    /// It is listed page by page.
    On {
        /// The driver's name.
        driver: String,
        /// The page to ask for; empty for the first.
        token: String,
        /// The longest page; 0 leaves it to the driver.
        max_entries: i32,
        every_millis: u64,
    },
}

/// What the driver's last list says about an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listed {
    /// There is no list.
    Unknown,
    /// It is published.
    Published,
    /// It is not.
    Unpublished,
}

/// An attachment that should exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attach {
    /// The attachment as it was seen.
    pub attachment: Seen,
    /// The node's name.
    pub node: String,
    /// It carries our finalizer, so the driver may have been asked to publish.
    pub marked: bool,
    /// It gives way to another attachment of the same volume.
    pub gives_way: bool,
    /// Its status says it is attached, and what the driver told then.
    pub attached: Option<PublishContext>,
    /// What the driver lists.
    pub listed: Listed,
    /// What its status says went wrong.
    pub error: Option<VolumeError>,
    /// What is to be published.
    pub target: PublishTarget,
    /// Another attachment that keeps this one from going on.
    pub rival: Option<RivalAttachment>,
    /// An in-tree volume that lost our finalizer while this attachment came about, and the finalizer.
    pub unheld_volume: Option<(Seen, String)>,
}

/// What is to be published, if that can be said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum PublishTarget {
    /// Something is missing that may still come.
    Waiting(AttachObstacle),
    /// It can never be; the text says why and what to do.
    Impossible(String),
    /// All is known.
    Ready {
        /// The volume, to put our finalizer on; `None` if it carries it.
        unmarked_volume: Option<Seen>,
        /// The node's id is recorded on the attachment.
        recorded: bool,
        /// The request, but for what is secret.
        request: PublishRequest,
        /// Where that is to be read.
        secret: Option<SecretReference>,
    },
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttachObstacle {
    /// The PersistentVolume is not there.
    VolumeMissing(String),
    /// The PersistentVolume is being deleted.
    VolumeLeaving(String),
    /// The PersistentVolume is an in-tree one that cannot be put in CSI's terms; the text says why.
    VolumeUnreadable(String),
    /// The driver has not registered on the node, so its id of the node is not known.
    NodeIdUnknown(String),
}

/// Another attachment, for another node, of a volume that may be on one node only. It carries our finalizer or is
/// attached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RivalAttachment {
    pub node: String,
    /// It goes first: it is attached, or comes first by name, and is not on its way out.
    pub goes_first: bool,
}

/// An attachment on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum Detach {
    /// It does not carry our finalizer: there is nothing to undo.
    Unmarked {
        /// The attachment as it was seen.
        attachment: Seen,
        /// Its status still says that it is attached.
        attached: bool,
    },
    /// The volume's handle or the node's id is not known.
    Stuck {
        /// The attachment as it was seen.
        attachment: Seen,
        /// What is missing.
        obstacle: AttachObstacle,
        /// What its status says went wrong.
        error: Option<VolumeError>,
    },
    /// All is known.
    Ready {
        /// The attachment as it was seen.
        attachment: Seen,
        /// Volume and node as the driver knows them.
        place: VolumeOnNode,
        /// It carries our finalizer; if not, only the driver's list says that there is something to undo.
        marked: bool,
        /// Where to read what is secret.
        secret: Option<SecretReference>,
        /// What its status says went wrong.
        error: Option<VolumeError>,
    },
}

/// A volume and our finalizer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VolumeUse {
    /// Our finalizer is not on it.
    Unmarked(String),
    /// It is not on its way out, so that the finalizer stays for the next attachment.
    Staying(String),
    /// It is on its way out, and the provisioner beside us lets go of it for both.
    Provisioners(String),
    /// An attachment names it.
    Attached { volume: String, attachment: String },
    /// Nothing names it, and it is on its way out or given back to its in-tree plugin.
    Free {
        /// The volume as it was seen.
        volume: Seen,
        finalizer: String,
        /// It is on its way out.
        leaving: bool,
    },
}

/// What a driver tells about an attachment, for the node's use. It may hold secrets, so it is never printed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublishContext(pub BTreeMap<String, String>);

impl fmt::Debug for PublishContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.0.len())
    }
}
