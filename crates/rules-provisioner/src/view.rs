use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{PersistentVolume, PersistentVolumeClaim, SecretReference};
use control::Timestamp;

use crate::{InTree, IntentLocation, JournalView, Local, Obstacle, SourceProtection, Terms};

/// Everything one decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time and looked at once")]
pub enum View {
    /// About a claim.
    Claim(ClaimView),
    /// About a volume.
    Volume(VolumeView),
}

/// A claim, as far as making its volume goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time and looked at once")]
pub enum ClaimView {
    /// There is no such claim.
    Gone,
    /// Nobody has been asked to make its volume.
    NobodyAsked,
    /// Somebody else was asked.
    AnotherAsked(String),
    /// We were asked, but the class names another provisioner, and we have begun nothing.
    ClassOfAnother { class: String, provisioner: String },
    /// It has this volume, and nothing of ours is left on it.
    Bound(String),
    /// The provisioner of this node makes it.
    OnAnotherNode(String),
    /// A PersistentVolume accounts for its volume, so that nothing else about it matters any more.
    Recorded {
        claim: Arc<PersistentVolumeClaim>,
        /// What is left of our intent.
        intent: Option<IntentLocation>,
        /// When it was recorded.
        since: Timestamp,
    },
    /// It is ours to care for.
    Ours(Provision),
}

/// A claim that is ours to care for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    pub claim: Arc<PersistentVolumeClaim>,
    pub local: Local,
    /// This process recorded a volume for the claim lately.
    pub recently_provisioned: bool,
    /// The name of the claim's volume.
    pub name: String,
    /// Where our intent is, if there is one.
    pub intent: Option<IntentLocation>,
    /// The journal, as far as this claim goes.
    pub page: Arc<JournalView>,
    /// The journal has no room for another entry.
    pub journal_full: bool,
    /// Whether a volume is wanted.
    pub goal: Goal,
    /// What has the name the volume would get.
    pub name_slot: NameSlot,
    /// What the class offers.
    pub offer: ClassTerms,
    /// Whether what the volume is made from carries our finalizer.
    pub source_protection: SourceProtection,
    /// The class is one of the in-tree plugin our driver has taken over.
    pub in_tree: Option<InTree>,
}

/// Whether a volume is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    Provide,
    /// Not yet: the class waits for a node to be selected.
    AwaitNode,
    /// Yes, by whichever node takes the claim first. This one may try from this moment on.
    Contest {
        /// The earliest moment of a first try.
        from: Timestamp,
    },
    /// No: the claim is being deleted.
    Deleted,
    /// No: the claim has this volume.
    Bound(String),
}

/// What has the name the volume would get, if that is not the volume made for this very claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameSlot {
    Empty,
    /// A volume that is not for this claim; the text says for whom.
    Taken(String),
}

/// What the class offers, in the light of what was recorded with the intent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time and looked at once")]
pub enum ClassTerms {
    /// The class is there, and so is all it needs. If there is an intent, these are the terms it was recorded with.
    Standing(Terms),
    /// There is an intent, recorded with these terms. What would be recorded now is something else, or nothing at all.
    Changed(Terms),
    /// There is no intent, and the class cannot be used for this claim.
    Unfit(Obstacle),
    /// There is no intent, and the selected node cannot have the volume.
    Misplaced(String),
    /// The class is not there, or is another one of that name. What was recorded with the intent, if it can be read,
    /// is enough to find out what the driver made.
    Withdrawn {
        class: String,
        /// Another class has its name now.
        replaced: bool,
        /// The terms as they were.
        recorded: Option<Terms>,
    },
}

/// A volume, as far as deleting it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeView {
    /// There is no such volume.
    Gone,
    /// It is none of ours.
    NotOurs,
    /// It is the business of another node.
    OnAnotherNode,
    /// It is ours.
    Ours {
        volume: Arc<PersistentVolume>,
        local: Local,
        /// Attachments that refer to it.
        attachments: Vec<String>,
        /// The secret DeleteVolume needs.
        secret: Result<Option<SecretReference>, Obstacle>,
    },
}
