use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::fit::Fit;
use api::{ObjectKey, PersistentVolume, PersistentVolumeClaim};

use crate::MigrationMark;
use crate::ephemeral::TemplatePod;

/// Everything one decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// About a claim.
    Claim(ClaimView),
    /// About a volume.
    Volume(VolumeView),
    /// About a pod that makes claims from templates.
    Pod(TemplatePod),
}

/// A claim, or its absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimView {
    /// There is no such claim.
    Gone,
    /// It is there.
    Here(ClaimFacts),
}

/// A claim and what surrounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimFacts {
    pub claim: Arc<PersistentVolumeClaim>,
    /// Some pod that has not ended uses it; `None` where claims do not say so.
    pub used: Option<bool>,
    /// Names of the pods on nodes that use it, which hold it back when it is being deleted.
    pub holders: Vec<String>,
    /// What it is to say about the driver that has taken over its provisioner.
    pub mark: MigrationMark,
    /// Who grows the volume it names, and whether the claim has to say so: the driver that has taken over an in-tree
    /// plugin, or that plugin.
    pub grown_by: Option<(String, bool)>,
    /// How far its binding has come.
    pub standing: BindingState,
}

/// How far a claim's binding has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingState {
    /// It names no volume; this is what can be done about it.
    Unbound(Prospect),
    /// A user wrote a volume's name into it; the binding is not complete.
    Named(NamedVolume),
    /// The binding was completed once.
    Completed(NamedVolume),
}

/// What can be done for a claim that names no volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// A volume refers to the claim already.
    Reserved(Candidate),
    /// This free volume is the best fit.
    Free(Arc<PersistentVolume>),
    /// The requested size cannot be read; the text says why.
    BadRequest(String),
    /// It names no class, and this one is the default.
    DefaultClass(String),
    /// It has no class and there is no default, or it wants none.
    NoClass,
    /// Its class does not exist.
    ClassMissing(String),
    /// Volumes of its class are made by hand.
    MadeByHand(String),
    /// Its class names a provisioner that was part of Kubernetes and has no driver here.
    InTree {
        class: String,
        /// The provisioner it names.
        provisioner: String,
    },
    /// The class waits for a pod to be placed; these pods use the claim and have no node yet.
    AwaitsConsumer { class: String, pods: Vec<String> },
    /// A volume should be made by this provisioner.
    Provision { class: String, provisioner: String },
}

/// The volume a claim names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedVolume {
    /// The claim is marked as bound and names none.
    Nameless,
    /// No volume of that name is known.
    Missing(String),
    /// The volume refers to no claim.
    Free(Candidate),
    /// The volume refers to this claim, by uid, or by name alone.
    Ours(Candidate),
    /// The volume refers to another claim.
    Foreign {
        volume: String,
        /// The claim it refers to.
        holder: String,
    },
}

/// A volume and whether the claim may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub volume: Arc<PersistentVolume>,
    /// Whether it suits the claim.
    pub fit: Fit,
}

/// A volume, or its absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeView {
    /// There is no such volume.
    Gone,
    /// It is there.
    Here(VolumeFacts),
}

/// A volume and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFacts {
    pub volume: Arc<PersistentVolume>,
    /// Whose it is.
    pub holder: VolumeOwner,
    /// What it is to say about the driver that has taken over its plugin.
    pub mark: MigrationMark,
    /// Its in-tree plugin is there, and deletes it.
    pub served: bool,
    /// Pods of its claim that have not ended, though the claim is gone: what they use is not to be scrubbed.
    pub pods: Vec<String>,
}

/// Whose a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeOwner {
    Nobody,
    /// A user reserved it for a claim of this name.
    Reserved(ObjectKey),
    /// It refers to a claim that the cache does not hold (or holds only a namesake of).
    Unseen {
        /// Where the claim should be.
        claim: ObjectKey,
        uid: String,
    },
    /// Its claim has not named a volume yet.
    Unbound(ObjectKey),
    /// Its claim has not named a volume yet, and one is a filesystem, the other a raw device.
    Mismatched(ObjectKey),
    /// Its claim names it.
    Bound(ObjectKey),
    /// Its claim names another volume.
    Elsewhere {
        claim: ObjectKey,
        /// The volume the claim names.
        volume: String,
    },
}
