use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{PersistentVolume, PersistentVolumeClaim};

use crate::{Local, Obstacle, Request, Terms};

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
    ClassOfAnother {
        /// The class.
        class: String,
        /// Its provisioner.
        provisioner: String,
    },
    /// It is ours to care for.
    Ours(Work),
}

/// A claim that is ours to care for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// The driver.
    pub local: Local,
    /// The claim carries our intent.
    pub intent: bool,
    /// Whether a volume is wanted.
    pub course: Course,
    /// What has the name the volume would get.
    pub slot: Slot,
    /// What the class offers.
    pub offer: Offer,
}

/// Whether a volume is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Yes.
    Provide,
    /// Not yet: the class waits for a node to be selected.
    AwaitNode,
    /// No: the claim is being deleted.
    Deleted,
    /// No: the claim has this volume.
    Bound(String),
}

/// What has the name the volume would get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing.
    Empty,
    /// The volume made for this very claim.
    Filled,
    /// A volume that is not for this claim; the text says for whom.
    Taken(String),
}

/// What the class offers, in the light of what was recorded with the intent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "views are made one at a time and looked at once")]
pub enum Offer {
    /// The class is there, and is the one the intent was recorded under if there is an intent.
    Standing(Terms),
    /// The class is there and cannot be used for this claim.
    Unfit(Obstacle),
    /// The class is not there, or is another one of that name. What was recorded with the intent, if it can be read,
    /// is enough to find out what the driver made.
    Withdrawn {
        /// The class.
        class: String,
        /// Another class has its name now.
        replaced: bool,
        /// The request as it was.
        recorded: Option<Request>,
    },
}

/// A volume, as far as deleting it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeView {
    /// There is no such volume.
    Gone,
    /// It is none of ours.
    NotOurs,
    /// It is ours.
    Ours {
        /// The volume.
        volume: Arc<PersistentVolume>,
        /// The driver.
        local: Local,
        /// Attachments that refer to it.
        attachments: Vec<String>,
    },
}
