use alloc::format;
use alloc::string::String;

use control::{Outcome, Refusal, Reply, Secrets, Timestamp};
use csi::{Code, Response};

use crate::action::{Action, Work};

/// What is kept in mind about a claim. Forgetting it costs a repeated call, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The claim this is about. A namesake starts anew.
    pub uid: String,
    /// This incarnation wrote to the claim and was answered, so that no earlier write can change it any more.
    pub owned: bool,
    /// About its volume's size.
    pub grow: GrowMemory,
    /// About its volume's attributes.
    pub modify: ModifyMemory,
}

/// What is kept in mind about a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GrowMemory {
    /// What the driver needs to know, read for the next call and forgotten after it.
    pub secrets: Option<Secrets>,
    /// What the driver did.
    pub grown: Option<Grown>,
    /// This incarnation recorded this size as under way, and no call since has ended unknown.
    pub sure: Option<i64>,
    /// The driver refused this size, and no call for it can have taken effect.
    pub refused: Option<i64>,
    /// The driver, or the node, called this size impossible at this time.
    pub hopeless: Option<(i64, Timestamp)>,
    /// The driver will not do it while the volume is in use.
    pub in_use: bool,
    /// A refusal the claim does not tell yet.
    pub failure: Option<GrowFailure>,
}

/// A volume the driver has grown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grown {
    /// The size that was asked for.
    pub asked: i64,
    /// The size it has.
    pub size: i64,
    /// The node has to do its part.
    pub node_goes_on: bool,
}

/// The driver refused a size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrowFailure {
    pub size: i64,
    /// It will never do it.
    pub infeasible: bool,
    /// In its words.
    pub message: String,
}

/// What is kept in mind about a change of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModifyMemory {
    /// What the driver needs to know, read for the next call and forgotten after it.
    pub secrets: Option<Secrets>,
    /// The driver made the volume one of this class.
    pub modified: Option<String>,
    /// The driver's last word about this class was no.
    pub refused: Option<String>,
    /// The driver called this class impossible at this time.
    pub hopeless: Option<(String, Timestamp)>,
    /// A failure the claim does not tell yet.
    pub failure: Option<ModifyFailure>,
}

/// The driver did not make the volume one of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModifyFailure {
    pub class: String,
    /// It will never do it.
    pub infeasible: bool,
    /// The code in words.
    pub reason: String,
    /// What was said.
    pub message: String,
}

impl Memory {
    /// What is remembered about this claim: nothing, if the memory is about a namesake.
    pub(crate) fn about(&self, uid: &str) -> Memory {
        if self.uid == uid { self.clone() } else { Memory::default() }
    }
}

/// What an action's outcome adds to or takes from memory.
pub(crate) fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
    let known = memory.about(did.claim());
    let uid = did.claim().into();
    let owned = match got {
        Outcome::Done(_) => known.owned || did.writes_claim(),
        Outcome::Refused(_) => known.owned,
        // A write that may still arrive.
        Outcome::Unknown(_) => known.owned && !did.writes_claim(),
    };
    match did.work() {
        Work::Growing => Memory { grow: known.grow.after(now, did, got), uid, owned, ..known },
        Work::Modifying => Memory { modify: known.modify.after(now, did, got), uid, owned, ..known },
    }
}

impl GrowMemory {
    fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> GrowMemory {
        let done = matches!(got, Outcome::Done(_));
        match did {
            Action::Begin(begin) if done => {
                let hopeless = self.hopeless.filter(|(size, _)| *size == begin.size);
                GrowMemory { sure: Some(begin.size), in_use: self.in_use, hopeless, ..GrowMemory::default() }
            }
            Action::ReadSecret { secret, .. } => match Secrets::of(secret, got) {
                Ok(secrets) => GrowMemory { secrets: Some(secrets), ..self },
                Err(_) => self,
            },
            Action::Expand { size, .. } => self.after_expand(now, *size, got),
            Action::AwaitNode { size, again, .. } if done => {
                GrowMemory { hopeless: again.then_some((*size, now)), ..GrowMemory::default() }
            }
            Action::Finish { .. } if done => GrowMemory::default(),
            Action::ReportGrowth(_) if done => GrowMemory { failure: None, ..self },
            // Whether or not the size was recorded: it may be another one than was asked for before.
            Action::Begin(_) => GrowMemory { sure: None, ..self },
            Action::ForgetBefore { .. }
            | Action::Adopt { .. }
            | Action::SetSize { .. }
            | Action::AwaitNode { .. }
            | Action::Finish { .. }
            | Action::ReportGrowth(_)
            | Action::BeginModify { .. }
            | Action::Pend { .. }
            | Action::Modify { .. }
            | Action::SetClass { .. }
            | Action::FinishModify { .. }
            | Action::ReportModify(_)
            | Action::CancelModify { .. } => self,
        }
    }

    fn after_expand(self, now: Timestamp, asked: i64, got: &Outcome) -> GrowMemory {
        let after = GrowMemory { hopeless: self.hopeless, ..GrowMemory::default() };
        match got {
            Outcome::Done(reply) => match grown(asked, reply) {
                Ok(grown) => GrowMemory { grown: Some(grown), ..after },
                Err(_) => after,
            },
            Outcome::Refused(Refusal::Driver(code, message)) => {
                let infeasible = is_infeasible(*code);
                let failure = GrowFailure { size: asked, infeasible, message: said(*code, message) };
                GrowMemory {
                    sure: self.sure,
                    refused: self.sure.filter(|size| *size == asked),
                    hopeless: infeasible.then_some((asked, now)),
                    in_use: *code == Code::FailedPrecondition,
                    failure: Some(failure),
                    ..after
                }
            }
            // It never reached the driver, so nothing new is known.
            Outcome::Refused(_) => GrowMemory { sure: self.sure, refused: self.refused, in_use: self.in_use, ..after },
            // It may have happened: a refusal that follows proves nothing about this one.
            Outcome::Unknown(_) => GrowMemory { in_use: self.in_use, ..after },
        }
    }
}

pub(crate) fn grown(asked: i64, reply: &Reply) -> Result<Grown, String> {
    match reply {
        Reply::Csi(Response::ControllerExpandVolume(answer)) => {
            // Some drivers do not say; they did what they were asked for.
            let size = if answer.capacity_bytes == 0 { asked } else { answer.capacity_bytes };
            if size < asked {
                return Err(format!("the driver says the volume has {size} bytes, {asked} were asked for"));
            }
            Ok(Grown { asked, size, node_goes_on: answer.node_expansion_required })
        }
        Reply::Csi(_) | Reply::Nothing | Reply::Object(_) | Reply::Objects(_) | Reply::Gone | Reply::Host(_) => {
            Err("the driver's answer makes no sense".into())
        }
    }
}

/// The driver's refusals that trying again cannot change (sidecars 7.2).
fn is_infeasible(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::OutOfRange | Code::NotFound)
}

fn said(code: Code, message: &str) -> String {
    format!("the driver refused with {code:?}: {message}")
}

impl ModifyMemory {
    fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> ModifyMemory {
        let done = matches!(got, Outcome::Done(_));
        match did {
            Action::BeginModify { .. } if done => ModifyMemory { hopeless: self.hopeless, ..ModifyMemory::default() },
            Action::ReadSecret { secret, .. } => match Secrets::of(secret, got) {
                Ok(secrets) => ModifyMemory { secrets: Some(secrets), ..self },
                Err(_) => self,
            },
            Action::Modify { class, .. } => self.after_modify(now, class, got),
            Action::FinishModify { .. } if done => ModifyMemory::default(),
            Action::ReportModify(_) if done => ModifyMemory { failure: None, ..self },
            Action::BeginModify { .. }
            | Action::Pend { .. }
            | Action::Adopt { .. }
            | Action::SetClass { .. }
            | Action::FinishModify { .. }
            | Action::CancelModify { .. }
            | Action::ReportModify(_)
            | Action::ForgetBefore { .. }
            | Action::Begin(_)
            | Action::Expand { .. }
            | Action::SetSize { .. }
            | Action::AwaitNode { .. }
            | Action::Finish { .. }
            | Action::ReportGrowth(_) => self,
        }
    }

    fn after_modify(self, now: Timestamp, class: &str, got: &Outcome) -> ModifyMemory {
        let after = ModifyMemory::default();
        let failure = |infeasible, reason: String, message: String| {
            Some(ModifyFailure { class: class.into(), infeasible, reason, message })
        };
        match got {
            Outcome::Done(_) => ModifyMemory { modified: Some(class.into()), ..after },
            Outcome::Refused(Refusal::Driver(code, message)) => {
                let infeasible = *code == Code::InvalidArgument;
                ModifyMemory {
                    refused: Some(class.into()),
                    hopeless: infeasible.then(|| (class.into(), now)),
                    failure: failure(infeasible, format!("{code:?}"), said(*code, message)),
                    ..after
                }
            }
            Outcome::Refused(refusal) => ModifyMemory {
                refused: self.refused,
                failure: failure(false, String::new(), format!("{refusal}")),
                ..after
            },
            Outcome::Unknown(message) => {
                ModifyMemory { failure: failure(false, "Unknown".into(), message.clone()), ..after }
            }
        }
    }
}
