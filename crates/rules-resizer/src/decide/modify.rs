//! A volume's attributes (sidecars 4.5). The class under way is on record before the driver hears of it, and stays the one
//! until the driver's answer is known.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::names;
use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::{Action, ModifyReport, Work};
use crate::decide::settled;
use crate::memory::ModifyMemory;
use crate::view::{Bound, Class, ModifyState, told};

pub(crate) fn decide(now: Timestamp, bound: &Bound, memory: &ModifyMemory) -> Decision<Action, Reason> {
    if !bound.modify.supported {
        return settled(Reason::ModifyUnsupported, format!("driver {} changes no attributes", bound.place.driver));
    }
    unreported(now, bound, memory).unwrap_or_else(|| next_step(now, bound, memory))
}

fn next_step(now: Timestamp, bound: &Bound, memory: &ModifyMemory) -> Decision<Action, Reason> {
    let (modify, claim) = (&bound.modify, &bound.claim.object.key);
    match (&modify.status, &modify.wanted) {
        (ModifyState::Nothing, wanted) if *wanted == modify.current => {
            settled(Reason::AttributesAsRequested, format!("claim {claim} has the attributes it asks for"))
        }
        (ModifyState::Nothing | ModifyState::Pending(_) | ModifyState::Infeasible(_), None) => roll_back(bound),
        (ModifyState::InProgress(class), None) => go_on(bound, memory, class),
        // Reliability 61: what may have happened is repeated before anything else is tried.
        (ModifyState::InProgress(class), Some(_)) if memory.refused.as_ref() != Some(class) => {
            go_on(bound, memory, class)
        }
        (
            ModifyState::Nothing | ModifyState::Pending(_) | ModifyState::InProgress(_) | ModifyState::Infeasible(_),
            Some(wanted),
        ) => turn_to(now, bound, memory, wanted),
    }
}

/// Nothing is asked for any more and nothing is under way.
fn roll_back(bound: &Bound) -> Decision<Action, Reason> {
    let text = format!("claim {} asks for no attributes any more", bound.claim.object.key);
    match told(&bound.modify.conditions, names::MODIFYING_VOLUME) {
        Some(_) => Decision::Do(
            Action::CancelModify { claim: bound.claim.clone() },
            Why::waiting(Reason::VolumeModifyCanceled, text),
        ),
        None => settled(Reason::VolumeModifyCanceled, text),
    }
}

/// Towards the class under way.
fn go_on(bound: &Bound, memory: &ModifyMemory, class: &str) -> Decision<Action, Reason> {
    match &bound.modify.target_class {
        Class::Ready(parameters) => carry_out(bound, memory, class, parameters),
        missing @ (Class::Unnamed | Class::Missing(_)) => {
            Decision::Rest(Why::waiting(Reason::AttributesClassMissing, missing.problem()))
        }
    }
}

/// Towards the class asked for, with nothing uncertain behind.
fn turn_to(now: Timestamp, bound: &Bound, memory: &ModifyMemory, class: &str) -> Decision<Action, Reason> {
    let modify = &bound.modify;
    let parameters = match &modify.wanted_class {
        Class::Ready(parameters) => parameters,
        missing @ (Class::Unnamed | Class::Missing(_)) => return pend(bound, missing),
    };
    if let Some((hopeless, since)) = &memory.hopeless
        && hopeless == class
        && now < since.after_millis(bound.slow_millis)
    {
        let text =
            format!("the volume of claim {} cannot have class {class}; choose another one", bound.claim.object.key);
        return Decision::Wait(since.after_millis(bound.slow_millis), Why::waiting(Reason::ModifyInfeasible, text));
    }
    if modify.status != ModifyState::InProgress(class.into()) {
        let act = Action::BeginModify { claim: bound.claim.clone(), class: class.into(), at: now.to_time() };
        let text = format!("recording that claim {} gets attributes class {class}", bound.claim.object.key);
        return Decision::Do(act, Why::waiting(Reason::RecordingModify, text));
    }
    carry_out(bound, memory, class, parameters)
}

fn pend(bound: &Bound, class: &Class) -> Decision<Action, Reason> {
    let why = Why::waiting(Reason::AttributesClassMissing, class.problem());
    let target = match &bound.modify.status {
        ModifyState::Pending(_) => return Decision::Rest(why),
        ModifyState::Nothing => String::new(),
        ModifyState::InProgress(target) | ModifyState::Infeasible(target) => target.clone(),
    };
    Decision::Do(Action::Pend { claim: bound.claim.clone(), target }, why)
}

/// Ask the driver, record what it did: the volume first, then the claim.
fn carry_out(
    bound: &Bound,
    memory: &ModifyMemory,
    class: &str,
    parameters: &BTreeMap<String, String>,
) -> Decision<Action, Reason> {
    let (modify, claim, handle) = (&bound.modify, &bound.claim, &bound.place.handle);
    if memory.modified.as_deref() == Some(class) {
        return record(bound, class);
    }
    let secrets = match (&modify.secret, &memory.secrets) {
        (None, _) => control::Secrets::default(),
        (Some(_), Some(secrets)) => secrets.clone(),
        (Some(secret), None) => {
            let text = format!("reading secret {}/{} to modify volume {handle}", secret.namespace, secret.name);
            let act = Action::ReadSecret { claim: claim.uid.clone(), of: Work::Modifying, secret: secret.clone() };
            return Decision::Do(act, Why::waiting(Reason::ReadingSecret, text));
        }
    };
    let mut parameters = parameters.clone();
    parameters.extend(modify.extra.clone());
    let act = Action::Modify {
        claim: claim.uid.clone(),
        place: bound.place.clone(),
        class: class.into(),
        parameters,
        secrets,
    };
    let text = format!("asking the driver to give volume {handle} the attributes of class {class}");
    Decision::Do(act, Why::waiting(Reason::VolumeModify, text))
}

fn record(bound: &Bound, class: &str) -> Decision<Action, Reason> {
    let (claim, volume) = (&bound.claim, &bound.volume);
    if bound.modify.volume_class.as_deref() != Some(class) {
        let act = Action::SetClass { claim: claim.uid.clone(), volume: volume.clone(), class: class.into() };
        let text = format!("recording that volume {} has class {class}", volume.name());
        return Decision::Do(act, Why::waiting(Reason::RecordingVolumeClass, text));
    }
    let gone: Vec<String> = bound.modify.conditions.iter().map(|told| told.r#type.clone()).collect();
    let act = Action::FinishModify { claim: claim.clone(), class: class.into(), gone };
    let text = format!("recording that claim {} has attributes class {class}", claim.object.key);
    Decision::Do(act, Why::waiting(Reason::VolumeModifySuccessful, text))
}

/// A failure of the class under way that the claim does not tell yet.
fn unreported(now: Timestamp, bound: &Bound, memory: &ModifyMemory) -> Option<Decision<Action, Reason>> {
    let failure = memory.failure.as_ref()?;
    let modify = &bound.modify;
    let under_way = modify.status == ModifyState::InProgress(failure.class.clone());
    let told = told(&modify.conditions, names::MODIFY_VOLUME_ERROR);
    let same_words = told.is_some_and(|told| told.holds && told.message == failure.message);
    if !under_way || same_words && !failure.infeasible {
        return None;
    }
    let act = Action::ReportModify(ModifyReport {
        claim: bound.claim.clone(),
        class: failure.class.clone(),
        infeasible: failure.infeasible,
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        at: now.to_time(),
    });
    let text = format!("claim {}: {}", bound.claim.object.key, failure.message);
    Some(Decision::Do(act, Why::waiting(Reason::VolumeModifyFailed, text)))
}

impl Class {
    fn problem(&self) -> String {
        match self {
            Class::Unnamed => "the claim names no attributes class".into(),
            Class::Missing(name) => format!("attributes class {name} does not exist; create it or name another one"),
            Class::Ready(_) => "the attributes class is there".into(),
        }
    }
}
