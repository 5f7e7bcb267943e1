//! The actions that make a filesystem grow, what they leave in mind, and what they say (EX-17 to EX-21).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Quantity, SecretReference, Seen, Time, Value, names};
use control::{Attempt, Capability, Effect, Lane, News, Outcome, Refusal, Secrets};
use csi::{Call, Code, v1};
use serde_json::json;

use crate::local::Local;

/// One step of a growth.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expand {
    /// Say in the claim that a node is at work on it.
    Begin {
        /// The claim as it was when this was decided.
        claim: Seen,
        /// How many bytes the filesystem grows to.
        size: i64,
    },
    /// Read what the driver needs to know.
    ReadSecret {
        /// Where it is.
        secret: SecretReference,
        /// The size that is asked for with it.
        size: i64,
    },
    /// NodeExpandVolume.
    Call(ExpandCall),
    /// Say in the claim what size it has: the filesystem has it.
    Finish {
        /// The claim as it was when this was decided.
        claim: Seen,
        /// How many bytes the filesystem grows to.
        size: i64,
        /// The claim keeps the progress of a growth, which goes.
        progress: bool,
        /// Conditions that go.
        gone: Vec<String>,
    },
    /// Say in the claim why the filesystem did not grow.
    Report {
        /// The claim as it was when this was decided.
        claim: Seen,
        /// How many bytes the filesystem grows to.
        size: i64,
        /// No node will ever do it.
        infeasible: bool,
        /// Conditions that go.
        gone: Vec<String>,
        /// What the driver said.
        message: String,
        /// When it said so.
        at: Time,
    },
}

/// What NodeExpandVolume is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpandCall {
    /// The name of the driver that is asked.
    pub driver: String,
    /// The volume's unique name.
    pub volume: String,
    /// The driver's name for the volume.
    pub handle: String,
    /// Where it is published.
    pub target: String,
    /// Where it is staged.
    pub staging: Option<String>,
    /// How many bytes the filesystem grows to.
    pub size: i64,
    /// How it is used.
    pub capability: Capability,
    /// What the driver needs to know.
    pub secrets: Secrets,
}

/// What is kept in mind about a growth. Forgetting it costs a repeated call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExpandMemory {
    /// What the driver needs to know, read for the next call and forgotten after it.
    pub secrets: Option<Secrets>,
    /// The driver gave the filesystem this size.
    pub grown: Option<i64>,
    /// The driver's last refusal.
    pub failure: Option<ExpandFailure>,
}

/// The driver refused a size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpandFailure {
    /// How many bytes the filesystem grows to.
    pub size: i64,
    /// What the driver said.
    pub message: String,
    /// Trying again cannot change it.
    pub infeasible: bool,
}

impl Expand {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Expand::Begin { .. } => "BeginExpand",
            Expand::ReadSecret { .. } => "ReadExpandSecret",
            Expand::Call(_) => "Expand",
            Expand::Finish { .. } => "FinishExpand",
            Expand::Report { .. } => "ReportExpandError",
        }
    }

    pub(crate) fn effect(&self) -> Effect {
        match self {
            Expand::Begin { claim, .. } => {
                let status = json!({ "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_IN_PROGRESS } });
                write(claim, status)
            }
            Expand::ReadSecret { secret, .. } => Secrets::read(secret),
            Expand::Call(call) => call.effect(),
            Expand::Finish { claim, size, progress, gone } => {
                let conditions: Vec<Value> = without(gone).collect();
                let mut status =
                    json!({ "capacity": { "storage": Quantity::from_bytes(*size).0 }, "conditions": conditions });
                if *progress {
                    status["allocatedResourceStatuses"] = json!({ "storage": null });
                }
                write(claim, status)
            }
            Expand::Report { claim, infeasible, gone, message, at, .. } => {
                let told = json!({ "type": names::NODE_RESIZE_ERROR, "status": "True", "message": message,
                    "lastTransitionTime": at.0 });
                let conditions: Vec<Value> = without(gone).chain([told]).collect();
                let mut status = json!({ "conditions": conditions });
                if *infeasible {
                    status["allocatedResourceStatuses"] = json!({ "storage": names::NODE_RESIZE_INFEASIBLE });
                }
                write(claim, status)
            }
        }
    }

    pub(crate) fn attempt(&self, got: &Outcome) -> Attempt {
        match self {
            Expand::ReadSecret { secret, .. } => Secrets::attempt(secret, got),
            Expand::Begin { .. } | Expand::Call(_) | Expand::Finish { .. } | Expand::Report { .. } => Attempt::of(got),
        }
    }

    /// A growth that fails holds up no mount, and telling of it does not wait for its end. Another size does not wait
    /// for what failed before it.
    pub(crate) fn lane(&self) -> Lane<'_> {
        let (number, size) = match self {
            Expand::Begin { size, .. } | Expand::ReadSecret { size, .. } | Expand::Call(ExpandCall { size, .. }) => {
                (1, size)
            }
            Expand::Finish { size, .. } | Expand::Report { size, .. } => (2, size),
        };
        Lane { number, subject: format!("{size}/").into() }
    }

    pub(crate) fn news(&self) -> News {
        let done = match self {
            Expand::Call(call) => {
                let text = format!("the filesystem has {}", Quantity::from_bytes(call.size));
                Some(("FileSystemResizeSuccessful", text))
            }
            Expand::Begin { .. } | Expand::ReadSecret { .. } | Expand::Finish { .. } | Expand::Report { .. } => None,
        };
        News { done, failed: Some("FileSystemResizeFailed"), ..News::default() }
    }
}

impl ExpandCall {
    /// EX-18.
    fn effect(&self) -> Effect {
        let call = Call::NodeExpandVolume(v1::NodeExpandVolumeRequest {
            volume_id: self.handle.clone(),
            volume_path: self.target.clone(),
            capacity_range: Some(v1::CapacityRange { required_bytes: self.size, limit_bytes: 0 }),
            staging_target_path: self.staging.clone().unwrap_or_default(),
            volume_capability: Some(self.capability.to_csi()),
            secrets: self.secrets.0.clone(),
        });
        Effect::call_driver(self.driver.as_str(), call)
    }
}

/// A change of the claim's status as it was seen, unchanged since: conditions merge by type.
fn write(claim: &Seen, status: Value) -> Effect {
    Effect::Write(claim.merge_status(json!({ "status": status })))
}

fn without(gone: &[String]) -> impl Iterator<Item = Value> {
    gone.iter().map(|condition| json!({ "type": condition, "$patch": "delete" }))
}

impl ExpandMemory {
    pub(crate) fn after(self, did: &Expand, got: &Outcome) -> ExpandMemory {
        match did {
            Expand::ReadSecret { secret, .. } => match Secrets::of(secret, got) {
                Ok(secrets) => ExpandMemory { secrets: Some(secrets), ..self },
                Err(_) => self,
            },
            Expand::Call(call) => self.after_call(call.size, got),
            Expand::Finish { .. } if matches!(got, Outcome::Done(_)) => ExpandMemory::default(),
            // An attempt begins, and what was said of an earlier one counts no more: the driver may be well again.
            Expand::Begin { .. } => ExpandMemory { failure: None, ..self },
            // The size is given up until somebody hands it over anew.
            Expand::Report { infeasible: true, .. } if matches!(got, Outcome::Done(_)) => {
                ExpandMemory { failure: None, ..self }
            }
            Expand::Finish { .. } | Expand::Report { .. } => self,
        }
    }

    fn after_call(self, size: i64, got: &Outcome) -> ExpandMemory {
        match got {
            Outcome::Done(_) => ExpandMemory { grown: Some(size), ..ExpandMemory::default() },
            Outcome::Refused(Refusal::Driver(code, message)) => {
                let failure = ExpandFailure { size, message: said(*code, message), infeasible: is_infeasible(*code) };
                ExpandMemory { failure: Some(failure), ..ExpandMemory::default() }
            }
            // It never reached the driver, or nobody knows: what was known stays.
            Outcome::Refused(_) | Outcome::Unknown(_) => ExpandMemory { secrets: None, ..self },
        }
    }
}

/// The driver's refusals that trying again cannot change (EX-19).
fn is_infeasible(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::OutOfRange | Code::NotFound)
}

fn said(code: Code, message: &str) -> String {
    format!("the driver refused with {code:?}: {message}")
}

/// EX-19: what the driver cannot do while the volume is in use is not asked for again before the volume is put here
/// anew.
pub(crate) fn learn(local: &mut Local, did: &Expand, got: &Outcome) {
    if let (Expand::Call(call), Outcome::Refused(Refusal::Driver(Code::FailedPrecondition, _))) = (did, got) {
        local.stuck.insert(call.volume.clone(), call.size);
    }
}
