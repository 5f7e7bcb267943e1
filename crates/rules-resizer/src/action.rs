use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, SecretReference, Seen, Time};
use control::{Attempt, Capability, Effect, Lane, Outcome, Permission, Secrets};
use csi::{Call, v1};

use crate::memory::grown;
use crate::patch;
use crate::view::DriverVolume;

/// Everything the resizer does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Take the size from before the resize off the volume.
    ForgetBefore {
        /// The claim's uid.
        claim: String,
        /// The volume as it was seen.
        volume: Seen,
    },
    /// Make sure that no write of an earlier incarnation changes the claim any more.
    Adopt {
        /// The claim as it was seen.
        claim: Seen,
        /// What is gone on with.
        of: Work,
    },
    /// Record the size under way in the claim.
    Begin(Begin),
    /// Read what a driver needs to know.
    ReadSecret {
        /// The claim's uid.
        claim: String,
        of: Work,
        secret: SecretReference,
    },
    /// Ask the driver to grow the volume.
    Expand {
        /// The claim's uid.
        claim: String,
        place: DriverVolume,
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
        volume: Seen,
        /// The new size.
        size: i64,
        /// What its filesystem had before, for the node.
        before: Option<String>,
    },
    /// Hand over to the node.
    AwaitNode {
        /// The claim as it was seen.
        claim: Seen,
        /// The size under way.
        size: i64,
        /// It is recorded in the claim.
        recovers: bool,
        /// The node has failed for good before.
        again: bool,
        at: Time,
    },
    /// Record the new size in the claim: nothing is left to do.
    Finish {
        /// The claim as it was seen.
        claim: Seen,
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
        claim: Seen,
        class: String,
        at: Time,
    },
    /// Say that the class is not there.
    Pend {
        /// The claim as it was seen.
        claim: Seen,
        /// The class of an earlier change, which stays.
        target: String,
    },
    /// Ask the driver to change the volume's attributes.
    Modify {
        /// The claim's uid.
        claim: String,
        place: DriverVolume,
        class: String,
        parameters: BTreeMap<String, String>,
        /// What the driver needs to know.
        secrets: Secrets,
    },
    /// Record the new class in the volume.
    SetClass {
        /// The claim's uid.
        claim: String,
        /// The volume as it was seen.
        volume: Seen,
        class: String,
    },
    /// Record the new class in the claim: nothing is left to do.
    FinishModify {
        /// The claim as it was seen.
        claim: Seen,
        class: String,
        /// Conditions that go.
        gone: Vec<String>,
    },
    /// Say why the attributes did not change.
    ReportModify(ModifyReport),
    /// Take back the claim's word that its attributes are being changed.
    CancelModify {
        /// The claim as it was seen.
        claim: Seen,
    },
}

/// The size under way, to be recorded before the driver is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Begin {
    /// The claim as it was seen.
    pub claim: Seen,
    pub size: i64,
    /// The size and its progress are kept in the claim's status.
    pub recovers: bool,
    /// Conditions of an earlier resize, which go.
    pub gone: Vec<String>,
    /// The word about the node's part of an earlier resize goes.
    pub forget_not_required: bool,
    pub at: Time,
}

/// Why a volume did not grow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrowthReport {
    /// The claim as it was seen.
    pub claim: Seen,
    /// The driver will never do it, and the claim says so where it keeps the size under way.
    pub infeasible: bool,
    /// What the driver said.
    pub message: String,
    pub at: Time,
}

/// Why attributes did not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModifyReport {
    /// The claim as it was seen.
    pub claim: Seen,
    pub class: String,
    /// The driver will never do it.
    pub infeasible: bool,
    /// The driver's code in words.
    pub reason: String,
    /// What the driver said.
    pub message: String,
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

impl Action {
    /// The uid of the claim it is for.
    pub fn claim(&self) -> &str {
        match self {
            Action::ForgetBefore { claim, .. }
            | Action::ReadSecret { claim, .. }
            | Action::Expand { claim, .. }
            | Action::SetSize { claim, .. }
            | Action::Modify { claim, .. }
            | Action::SetClass { claim, .. } => claim,
            Action::AwaitNode { claim, .. }
            | Action::Finish { claim, .. }
            | Action::BeginModify { claim, .. }
            | Action::Pend { claim, .. }
            | Action::FinishModify { claim, .. }
            | Action::CancelModify { claim }
            | Action::Adopt { claim, .. } => &claim.uid,
            Action::Begin(begin) => &begin.claim.uid,
            Action::ReportGrowth(report) => &report.claim.uid,
            Action::ReportModify(report) => &report.claim.uid,
        }
    }

    /// Which of the two it is part of.
    pub fn work(&self) -> Work {
        match self {
            Action::ForgetBefore { .. }
            | Action::Begin(_)
            | Action::Expand { .. }
            | Action::SetSize { .. }
            | Action::AwaitNode { .. }
            | Action::Finish { .. }
            | Action::ReportGrowth(_) => Work::Growing,
            Action::BeginModify { .. }
            | Action::Pend { .. }
            | Action::Modify { .. }
            | Action::SetClass { .. }
            | Action::FinishModify { .. }
            | Action::ReportModify(_)
            | Action::CancelModify { .. } => Work::Modifying,
            Action::ReadSecret { of, .. } | Action::Adopt { of, .. } => *of,
        }
    }

    /// It writes to the claim.
    pub fn writes_claim(&self) -> bool {
        match self {
            Action::Adopt { .. }
            | Action::Begin(_)
            | Action::AwaitNode { .. }
            | Action::Finish { .. }
            | Action::ReportGrowth(_)
            | Action::BeginModify { .. }
            | Action::Pend { .. }
            | Action::FinishModify { .. }
            | Action::ReportModify(_)
            | Action::CancelModify { .. } => true,
            Action::ForgetBefore { .. }
            | Action::ReadSecret { .. }
            | Action::Expand { .. }
            | Action::SetSize { .. }
            | Action::Modify { .. }
            | Action::SetClass { .. } => false,
        }
    }
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::ForgetBefore { .. } => "ForgetPreResizeCapacity",
            Action::Adopt { .. } => "AdoptResize",
            Action::Begin(_) => "BeginResize",
            Action::ReadSecret { .. } => "ReadSecret",
            Action::Expand { .. } => "ControllerExpandVolume",
            Action::SetSize { .. } => "SetVolumeSize",
            Action::AwaitNode { .. } => "AwaitNodeResize",
            Action::Finish { .. } => "FinishResize",
            Action::ReportGrowth(_) => "ReportResizeError",
            Action::BeginModify { .. } => "BeginModify",
            Action::Pend { .. } => "PendModify",
            Action::Modify { .. } => "ControllerModifyVolume",
            Action::SetClass { .. } => "SetVolumeAttributesClass",
            Action::FinishModify { .. } => "FinishModify",
            Action::ReportModify(_) => "ReportModifyError",
            Action::CancelModify { .. } => "CancelModify",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::ForgetBefore { volume, .. } => patch::forget_before(volume),
            Action::Adopt { claim, .. } => patch::adopt(claim),
            Action::Begin(begin) => patch::begin(begin),
            Action::ReadSecret { secret, .. } => Secrets::read(secret),
            Action::Expand { place, size, capability, secrets, .. } => expand(place, *size, capability, secrets),
            Action::SetSize { volume, size, before, .. } => patch::set_size(volume, *size, before.as_deref()),
            Action::AwaitNode { claim, size, recovers, at, .. } => patch::await_node(claim, *size, *recovers, at),
            Action::Finish { claim, size, gone, recovers } => patch::finish(claim, *size, gone, *recovers),
            Action::ReportGrowth(report) => patch::report_growth(report),
            Action::BeginModify { claim, class, at } => patch::begin_modify(claim, class, at),
            Action::Pend { claim, target } => patch::pend(claim, target),
            Action::Modify { place, parameters, secrets, .. } => modify(place, parameters, secrets),
            Action::SetClass { volume, class, .. } => patch::set_class(volume, class),
            Action::FinishModify { claim, class, gone } => patch::finish_modify(claim, class, gone),
            Action::ReportModify(report) => patch::report_modify(report),
            Action::CancelModify { claim } => patch::cancel_modify(claim),
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        match (self, got) {
            (Action::ReadSecret { secret, .. }, got) => Secrets::attempt(secret, got),
            (Action::Expand { size, .. }, Outcome::Done(reply)) => {
                grown(*size, reply).map_or_else(Attempt::Failed, |_| Attempt::Succeeded)
            }
            (_, got) => Attempt::of(got),
        }
    }

    /// Growing and modifying do not wait for each other's failures, nor does telling of one wait for its end. A size or
    /// class that the user asks for next does not wait for what failed before it.
    fn lane(&self) -> Lane<'_> {
        let uid = self.claim();
        let (number, subject) = match self {
            Action::ReportGrowth(_) => (2, format!("{uid}/")),
            Action::ReportModify(_) => (3, format!("{uid}/")),
            Action::Begin(Begin { size, .. }) | Action::Expand { size, .. } => (0, format!("{uid}/{size}/")),
            Action::BeginModify { class, .. } | Action::Modify { class, .. } => (1, format!("{uid}/{class}/")),
            _ if self.work() == Work::Growing => (0, format!("{uid}/")),
            _ => (1, format!("{uid}/")),
        };
        Lane { number, subject: subject.into() }
    }

    fn news(&self) -> control::News {
        crate::news::news(self)
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 3] = [
            Permission::new(Kind::PersistentVolume, "", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "status", "patch"),
            Permission::new(Kind::Secret, "", "get"),
        ];
        &ALL
    }
}

fn expand(place: &DriverVolume, size: i64, capability: &Capability, secrets: &Secrets) -> Effect {
    let call = Call::ControllerExpandVolume(v1::ControllerExpandVolumeRequest {
        volume_id: place.handle.clone(),
        capacity_range: Some(v1::CapacityRange { required_bytes: size, limit_bytes: 0 }),
        secrets: secrets.0.clone(),
        volume_capability: Some(capability.to_csi()),
    });
    Effect::call_driver(place.driver.as_str(), call)
}

fn modify(place: &DriverVolume, parameters: &BTreeMap<String, String>, secrets: &Secrets) -> Effect {
    let call = Call::ControllerModifyVolume(v1::ControllerModifyVolumeRequest {
        volume_id: place.handle.clone(),
        secrets: secrets.0.clone(),
        mutable_parameters: parameters.clone(),
    });
    Effect::call_driver(place.driver.as_str(), call)
}
