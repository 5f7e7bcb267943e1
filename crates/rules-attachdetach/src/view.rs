use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{AttachedVolume, AttachmentSource, ObjectKey, Seen};
use rules_translate::Plugin;

use crate::ForcePolicy;

/// One volume on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The PersistentVolume's name; of a volume that a pod holds itself, and of one that is gone and reported all the
    /// same, the name in the node's status.
    pub volume: String,
    /// The node's name.
    pub node: String,
}

impl Key {
    /// The key of a volume on a node.
    pub fn new(volume: impl Into<String>, node: impl Into<String>) -> Key {
        Key { volume: volume.into(), node: node.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.volume, self.node)
    }
}

/// Everything a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time, never collected")]
pub enum View {
    /// The PersistentVolume is not there, and nothing else tells the driver's name for the volume.
    VolumeMissing {
        /// The volume and node asked about.
        key: Key,
        /// An attachment that still names the volume, if there is one.
        attachment: Option<String>,
    },
    /// A node reports a volume that somebody else cares for: the volume of this name, or the maker of this attachment.
    Known {
        /// The report and the node.
        key: Key,
        /// The volume or attachment.
        by: String,
    },
    /// The volume does not belong to a CSI driver.
    NotCsi(Key),
    /// The volume cannot be attached as it is written.
    Unattachable {
        /// The volume and the node.
        key: Key,
        /// What is wrong, and what to do.
        problem: String,
        /// A pod on the node waits for it.
        wanted: bool,
    },
    /// No CSI driver can tell the volume's name, and on this node it need not.
    ServedByPlugin(Key, Plugin),
    /// The volume and the node, as far as they concern each other.
    Pair(Pair),
}

/// A CSI volume and a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The volume and the node.
    pub key: Key,
    /// The driver's name.
    pub driver: String,
    /// The name under which nodes report the volume.
    pub unique_name: String,
    /// The name under which nodes report it that their in-tree plugin serves it on.
    pub plugin_name: Option<String>,
    /// The plugin, where plugin and driver serve side by side, and the uid of the pod that wants the volume: the node
    /// decides between the two, and has to be asked itself.
    pub asks: Option<(Plugin, String)>,
    /// What an attachment says of the volume.
    pub source: AttachmentSource,
    /// The name the attachment has or should have.
    pub attachment_name: String,
    /// Whether the volume should be attached here.
    pub want: Want,
    /// The node, if it exists.
    pub node: Option<NodeFacts>,
    /// Every attachment of this volume to this node; normally at most one, of the name above.
    pub attachments: Vec<Attachment>,
    /// Why the volume may not come here yet. Only looked for when an attachment would have to be made or reported.
    pub rival: Option<Rival>,
    /// The pods that use the volume where that is.
    pub rival_pods: Vec<String>,
    /// A CSIDriver object says what the driver needs.
    pub driver_known: bool,
    /// Whether the volume may be taken from the node without the node's word.
    pub force: ForcePolicy,
}

/// Whether a volume should be attached to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// This pod uses it.
    Wanted(ObjectKey),
    /// This pod uses it, and the node expects the driver that has taken over this plugin, whose migration is off here.
    Disputed(ObjectKey, Plugin),
    /// It should not.
    Unwanted(Unwanted),
}

/// Why a volume should not be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unwanted {
    /// No pod on the node uses it.
    NoPod,
    /// The driver says its volumes need no attachment.
    NoAttachRequired,
    /// The node object was deleted.
    NodeGone,
    /// The volume does not exist any more.
    VolumeGone,
    /// This in-tree plugin serves it on the node.
    ServedByPlugin(Plugin),
}

/// What matters about a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeFacts {
    /// The node as it was seen.
    pub seen: Seen,
    /// Its attachments are this controller's business.
    pub managed: bool,
    /// All that is reported as attached to it.
    pub reported: Vec<AttachedVolume>,
    /// All that it reports as in use.
    pub used: Vec<String>,
    /// The node reports this volume as in use, under whichever name.
    pub in_use: bool,
    /// The node reports it under its in-tree plugin's name.
    pub held_by_plugin: bool,
    /// Its condition Ready is Unknown: somebody has noticed that it is not heard of any more.
    pub unheard: bool,
}

/// One attachment of the volume to the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attachment {
    /// The attachment as it was seen.
    pub seen: Seen,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// The attacher says the volume is attached.
    pub attached: bool,
    /// What the attacher says went wrong: with attaching, or with detaching once that was asked for.
    pub error: Option<String>,
}

/// Who stands in the way of a volume that may be on one node only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rival {
    /// Another node has an attachment, in whatever state.
    Attachment {
        node: String,
        /// The attachment is on its way out.
        deleting: bool,
        /// What the attacher says keeps it.
        error: Option<String>,
    },
    /// Another node may have the volume mounted.
    Holder {
        node: String,
        /// How we know.
        holder: HolderEvidence,
    },
    /// Another node wants the volume as well and comes first by name.
    Earlier { node: String },
}

impl Rival {
    /// The node that stands in the way.
    pub fn node(&self) -> &str {
        match self {
            Rival::Attachment { node, .. } | Rival::Holder { node, .. } | Rival::Earlier { node } => node,
        }
    }
}

/// How we know that a node may have a volume mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HolderEvidence {
    /// Its status still reports the volume as attached.
    Reported,
    /// It says it uses the volume, and is not merely waiting for it.
    InUse,
}

impl Pair {
    /// The node's status reports the volume as attached.
    pub fn is_reported(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.reported.iter().any(|volume| volume.name == self.unique_name))
    }

    /// The names under which a node may report the volume.
    pub fn names(&self) -> Vec<String> {
        self.plugin_name.iter().chain([&self.unique_name]).cloned().collect()
    }

    /// The attachment that carries the proper name.
    pub fn proper(&self) -> Option<&Attachment> {
        self.attachments.iter().find(|attachment| attachment.seen.name() == self.attachment_name)
    }
}
