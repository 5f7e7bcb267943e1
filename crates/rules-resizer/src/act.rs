use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, SecretReference, Time};
use control::{Action, Capability, Effect, Outcome, Permission, Secrets};
use csi::{Call, v1};

use crate::patch;
use crate::view::{Place, Stamp};

/// Everything the resizer does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Take the size from before the resize off the volume.
    ForgetBefore {
        /// The claim's uid.
        claim: String,
        /// The volume as it was seen.
        volume: Stamp,
    },
    /// Make sure that no write of an earlier life changes the claim any more.
    Adopt {
        /// The claim as it was seen.
        claim: Stamp,
        /// What is gone on with.
        of: Work,
    },
    /// Record the size under way in the claim.
    Begin(Begin),
    /// Read what a driver needs to know.
    ReadSecret {
        /// The claim's uid.
        claim: String,
        /// What for.
        of: Work,
        /// Which.
        secret: SecretReference,
    },
    /// Ask the driver to grow the volume.
    Expand {
        /// The claim's uid.
        claim: String,
        /// The volume.
        place: Place,
        /// To at least so many bytes.
        size: i64,
        /// How the volume is used.
        capability: Capability,
        /// What the driver needs to know.
        secrets: Secrets,
    },
    /// Record the new size in the volume.
    SetSize {
        /// The claim's uid.
        claim: String,
        /// The volume as it was seen.
        volume: Stamp,
        /// The new size.
        size: i64,
        /// What its filesystem had before, for the node.
        before: Option<String>,
    },
    /// Hand over to the node.
    AwaitNode {
        /// The claim as it was seen.
        claim: Stamp,
        /// The size under way.
        size: i64,
        /// It is recorded in the claim.
        recovers: bool,
        /// The node has failed for good before.
        again: bool,
        /// When.
        at: Time,
    },
    /// Record the new size in the claim: nothing is left to do.
    Finish {
        /// The claim as it was seen.
        claim: Stamp,
        /// The new size.
        size: i64,
        /// Conditions that go.
        gone: Vec<String>,
        /// The record of the size under way is kept.
        recovers: bool,
    },
    /// Say why the volume did not grow.
    ReportGrowth(GrowthReport),
    /// Record the class under way in the claim.
    BeginModify {
        /// The claim as it was seen.
        claim: Stamp,
        /// The class.
        class: String,
        /// When.
        at: Time,
    },
    /// Say that the class is not there.
    Pend {
        /// The claim as it was seen.
        claim: Stamp,
        /// The class of an earlier change, which stays.
        target: String,
    },
    /// Ask the driver to change the volume's attributes.
    Modify {
        /// The claim's uid.
        claim: String,
        /// The volume.
        place: Place,
        /// The class.
        class: String,
        /// Its parameters.
        parameters: BTreeMap<String, String>,
        /// What the driver needs to know.
        secrets: Secrets,
    },
    /// Record the new class in the volume.
    SetClass {
        /// The claim's uid.
        claim: String,
        /// The volume as it was seen.
        volume: Stamp,
        /// The class.
        class: String,
    },
    /// Record the new class in the claim: nothing is left to do.
    FinishModify {
        /// The claim as it was seen.
        claim: Stamp,
        /// The class.
        class: String,
        /// Conditions that go.
        gone: Vec<String>,
    },
    /// Say why the attributes did not change.
    ReportModify(ModifyReport),
    /// Take back the claim's word that its attributes are being changed.
    CancelModify {
        /// The claim as it was seen.
        claim: Stamp,
    },
}

/// The size under way, to be recorded before the driver is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Begin {
    /// The claim as it was seen.
    pub claim: Stamp,
    /// The size.
    pub size: i64,
    /// The size and its progress are kept in the claim's status.
    pub recovers: bool,
    /// Conditions of an earlier resize, which go.
    pub gone: Vec<String>,
    /// The word about the node's part of an earlier resize goes.
    pub forget_not_required: bool,
    /// When.
    pub at: Time,
}

/// Why a volume did not grow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrowthReport {
    /// The claim as it was seen.
    pub claim: Stamp,
    /// The driver will never do it, and the claim says so where it keeps the size under way.
    pub infeasible: bool,
    /// What the driver said.
    pub message: String,
    /// When.
    pub at: Time,
}

/// Why attributes did not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModifyReport {
    /// The claim as it was seen.
    pub claim: Stamp,
    /// The class.
    pub class: String,
    /// The driver will never do it.
    pub infeasible: bool,
    /// The driver's code in words.
    pub reason: String,
    /// What the driver said.
    pub message: String,
    /// When.
    pub at: Time,
}

/// The two things the resizer does for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Its volume grows.
    Growing,
    /// Its volume's attributes change.
    Modifying,
}

impl Act {
    /// The uid of the claim it is for.
    pub fn claim(&self) -> &str {
        match self {
            Act::ForgetBefore { claim, .. }
            | Act::ReadSecret { claim, .. }
            | Act::Expand { claim, .. }
            | Act::SetSize { claim, .. }
            | Act::Modify { claim, .. }
            | Act::SetClass { claim, .. } => claim,
            Act::AwaitNode { claim, .. }
            | Act::Finish { claim, .. }
            | Act::BeginModify { claim, .. }
            | Act::Pend { claim, .. }
            | Act::FinishModify { claim, .. }
            | Act::CancelModify { claim }
            | Act::Adopt { claim, .. } => &claim.uid,
            Act::Begin(begin) => &begin.claim.uid,
            Act::ReportGrowth(report) => &report.claim.uid,
            Act::ReportModify(report) => &report.claim.uid,
        }
    }

    /// Which of the two it is part of.
    pub fn work(&self) -> Work {
        match self {
            Act::ForgetBefore { .. }
            | Act::Begin(_)
            | Act::Expand { .. }
            | Act::SetSize { .. }
            | Act::AwaitNode { .. }
            | Act::Finish { .. }
            | Act::ReportGrowth(_) => Work::Growing,
            Act::BeginModify { .. }
            | Act::Pend { .. }
            | Act::Modify { .. }
            | Act::SetClass { .. }
            | Act::FinishModify { .. }
            | Act::ReportModify(_)
            | Act::CancelModify { .. } => Work::Modifying,
            Act::ReadSecret { of, .. } | Act::Adopt { of, .. } => *of,
        }
    }

    /// It writes to the claim.
    pub fn writes_claim(&self) -> bool {
        match self {
            Act::Adopt { .. }
            | Act::Begin(_)
            | Act::AwaitNode { .. }
            | Act::Finish { .. }
            | Act::ReportGrowth(_)
            | Act::BeginModify { .. }
            | Act::Pend { .. }
            | Act::FinishModify { .. }
            | Act::ReportModify(_)
            | Act::CancelModify { .. } => true,
            Act::ForgetBefore { .. }
            | Act::ReadSecret { .. }
            | Act::Expand { .. }
            | Act::SetSize { .. }
            | Act::Modify { .. }
            | Act::SetClass { .. } => false,
        }
    }
}

impl Action for Act {
    fn name(&self) -> &'static str {
        match self {
            Act::ForgetBefore { .. } => "ForgetPreResizeCapacity",
            Act::Adopt { .. } => "AdoptResize",
            Act::Begin(_) => "BeginResize",
            Act::ReadSecret { .. } => "ReadSecret",
            Act::Expand { .. } => "ControllerExpandVolume",
            Act::SetSize { .. } => "SetVolumeSize",
            Act::AwaitNode { .. } => "AwaitNodeResize",
            Act::Finish { .. } => "FinishResize",
            Act::ReportGrowth(_) => "ReportResizeError",
            Act::BeginModify { .. } => "BeginModify",
            Act::Pend { .. } => "PendModify",
            Act::Modify { .. } => "ControllerModifyVolume",
            Act::SetClass { .. } => "SetVolumeAttributesClass",
            Act::FinishModify { .. } => "FinishModify",
            Act::ReportModify(_) => "ReportModifyError",
            Act::CancelModify { .. } => "CancelModify",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Act::ForgetBefore { volume, .. } => patch::forget_before(volume),
            Act::Adopt { claim, .. } => patch::adopt(claim),
            Act::Begin(begin) => patch::begin(begin),
            Act::ReadSecret { secret, .. } => Secrets::read(secret),
            Act::Expand { place, size, capability, secrets, .. } => expand(place, *size, capability, secrets),
            Act::SetSize { volume, size, before, .. } => patch::set_size(volume, *size, before.as_deref()),
            Act::AwaitNode { claim, size, recovers, at, .. } => patch::await_node(claim, *size, *recovers, at),
            Act::Finish { claim, size, gone, recovers } => patch::finish(claim, *size, gone, *recovers),
            Act::ReportGrowth(report) => patch::report_growth(report),
            Act::BeginModify { claim, class, at } => patch::begin_modify(claim, class, at),
            Act::Pend { claim, target } => patch::pend(claim, target),
            Act::Modify { place, parameters, secrets, .. } => modify(place, parameters, secrets),
            Act::SetClass { volume, class, .. } => patch::set_class(volume, class),
            Act::FinishModify { claim, class, gone } => patch::finish_modify(claim, class, gone),
            Act::ReportModify(report) => patch::report_modify(report),
            Act::CancelModify { claim } => patch::cancel_modify(claim),
        }
    }

    fn failure(&self, got: &Outcome) -> Option<String> {
        if let Act::ReadSecret { secret, .. } = self {
            return Secrets::of(secret, got).err();
        }
        got.failure()
    }

    fn news(&self) -> control::News {
        crate::news::news(self)
    }

    fn permissions() -> &'static [Permission] {
        const RIGHTS: [Permission; 3] = [
            Permission { kind: Kind::PersistentVolume, subresource: "", verb: "patch" },
            Permission { kind: Kind::PersistentVolumeClaim, subresource: "status", verb: "patch" },
            Permission { kind: Kind::Secret, subresource: "", verb: "get" },
        ];
        &RIGHTS
    }
}

fn expand(place: &Place, size: i64, capability: &Capability, secrets: &Secrets) -> Effect {
    let call = Call::ControllerExpandVolume(v1::ControllerExpandVolumeRequest {
        volume_id: place.handle.clone(),
        capacity_range: Some(v1::CapacityRange { required_bytes: size, limit_bytes: 0 }),
        secrets: secrets.0.clone(),
        volume_capability: Some(capability.to_csi()),
    });
    Effect::Call { socket: place.socket.clone(), call }
}

fn modify(place: &Place, parameters: &BTreeMap<String, String>, secrets: &Secrets) -> Effect {
    let call = Call::ControllerModifyVolume(v1::ControllerModifyVolumeRequest {
        volume_id: place.handle.clone(),
        secrets: secrets.0.clone(),
        mutable_parameters: parameters.clone(),
    });
    Effect::Call { socket: place.socket.clone(), call }
}
