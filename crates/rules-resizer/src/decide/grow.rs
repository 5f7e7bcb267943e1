//! A volume's size. Every step is decided from the objects; memory only saves the driver's answer a repetition.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::{Decision, Timestamp, Why};

use api::names;

use crate::Reason;
use crate::action::{Action, Begin, GrowthReport, Work};
use crate::decide::settled;
use crate::decide::target::{ResizeTarget, target, target_without_recovery};
use crate::memory::{GrowFailure, GrowMemory, Grown};
use crate::view::{BeforeSize, Bound, Expansion, Grow, ResizeProgress, since, told};

pub(crate) fn decide(now: Timestamp, bound: &Bound, memory: &GrowMemory) -> Decision<Action, Reason> {
    unreported(now, bound, memory).unwrap_or_else(|| next_step(now, bound, memory))
}

fn next_step(now: Timestamp, bound: &Bound, memory: &GrowMemory) -> Decision<Action, Reason> {
    let (grow, claim) = (&bound.grow, &bound.claim.object.key);
    let sizes = &grow.sizes;
    if grow.before == BeforeSize::Present && sizes.had >= sizes.volume {
        let text = format!("the node has resized the filesystem of volume {}", bound.volume.name());
        let act = Action::ForgetBefore { claim: bound.claim.uid.clone(), volume: bound.volume.clone() };
        return Decision::Do(act, Why::waiting(Reason::FileSystemResized, text));
    }
    if sizes.requested <= sizes.had {
        return settled(Reason::SizeAsRequested, format!("claim {claim} has the size it asks for"));
    }
    if grow.by == Expansion::None {
        let text = format!("driver {} cannot resize the volume of claim {claim}", bound.place.driver);
        return Decision::Rest(Why::waiting(Reason::ResizeUnsupported, text));
    }
    match next_target(grow, memory) {
        ResizeTarget::NodesTurn => {
            let text = format!("waiting for the node to resize the filesystem of claim {claim}");
            Decision::Rest(Why::waiting(Reason::FileSystemResizeRequired, text))
        }
        ResizeTarget::Size(size) => towards(now, bound, memory, size),
    }
}

fn next_target(grow: &Grow, memory: &GrowMemory) -> ResizeTarget {
    let pending = told(&grow.conditions, names::FILE_SYSTEM_RESIZE_PENDING).is_some_and(|told| told.holds);
    if !grow.recovers {
        return target_without_recovery(&grow.sizes, pending);
    }
    let refused = memory.refused.is_some() && memory.refused == grow.sizes.allocated;
    target(&grow.sizes, grow.progress, grow.by, refused, pending)
}

/// Record the size, ask the driver, record what it did.
fn towards(now: Timestamp, bound: &Bound, memory: &GrowMemory, size: i64) -> Decision<Action, Reason> {
    let grow = &bound.grow;
    if let Some(grown) = memory.grown.as_ref().filter(|grown| grown.asked == size) {
        return record(now, bound, grown);
    }
    if let Some(wait) = hopeless(now, bound, memory, size) {
        return wait;
    }
    match grow.by {
        // No call is made, so there is nothing whose size must be known beforehand.
        Expansion::NodeOnly | Expansion::None => {
            record(now, bound, &Grown { asked: size, size: size.max(grow.sizes.volume), node_goes_on: true })
        }
        Expansion::Controller if !is_begun(grow, size) => begin(now, bound, size),
        Expansion::Controller => ask(bound, memory, size),
    }
}

/// What was called impossible is left alone for a while, unless something else is asked for.
fn hopeless(now: Timestamp, bound: &Bound, memory: &GrowMemory, size: i64) -> Option<Decision<Action, Reason>> {
    let (_, since) = memory.hopeless.filter(|(hopeless, _)| *hopeless == size)?;
    let until = since.after_millis(bound.slow_millis);
    let claim = &bound.claim.object.key;
    let text =
        format!("the volume of claim {claim} cannot have {size} bytes; ask for less, or wait for another attempt");
    (bound.grow.sizes.allocated == Some(size) && now < until)
        .then(|| Decision::Wait(until, Why::waiting(Reason::ResizeInfeasible, text)))
}

/// Reliability 57: the size is on record before the driver hears of it. A record that is there is not written again, unless
/// it calls the size infeasible, which the next call may prove wrong without our hearing of it.
fn is_begun(grow: &Grow, size: i64) -> bool {
    let open = match grow.progress {
        ResizeProgress::None | ResizeProgress::ControllerInfeasible => false,
        ResizeProgress::ControllerInProgress
        | ResizeProgress::NodePending
        | ResizeProgress::NodeInProgress
        | ResizeProgress::NodeInfeasible => true,
    };
    match grow.recovers {
        true => grow.sizes.allocated == Some(size) && open,
        false => told(&grow.conditions, names::RESIZING).is_some_and(|told| told.holds),
    }
}

fn begin(now: Timestamp, bound: &Bound, size: i64) -> Decision<Action, Reason> {
    let grow = &bound.grow;
    let act = Action::Begin(Begin {
        claim: bound.claim.clone(),
        size,
        recovers: grow.recovers,
        gone: other_conditions(grow, names::RESIZING),
        forget_not_required: grow.not_required,
        at: since(&grow.conditions, names::RESIZING, now),
    });
    Decision::Do(
        act,
        Why::waiting(
            Reason::RecordingResize,
            format!("recording that claim {} grows to {size} bytes", bound.claim.object.key),
        ),
    )
}

fn other_conditions(grow: &Grow, kept: &str) -> Vec<String> {
    grow.conditions.iter().filter(|told| told.r#type != kept).map(|told| told.r#type.clone()).collect()
}

fn ask(bound: &Bound, memory: &GrowMemory, size: i64) -> Decision<Action, Reason> {
    let grow = &bound.grow;
    let (claim, handle) = (&bound.claim, &bound.place.handle);
    if let (true, Some(pod)) = (memory.in_use, &grow.user) {
        let text = format!("the driver resizes volume {handle} only while nobody uses it, and pod {pod} does");
        return Decision::Rest(Why::waiting(Reason::VolumeInUse, text));
    }
    let capability = match &grow.capability {
        Ok(capability) => capability.clone(),
        Err(problem) => return Decision::Rest(Why::waiting(Reason::VolumeUnusable, problem.clone())),
    };
    let secrets = match (&grow.secret, &memory.secrets) {
        (None, _) => control::Secrets::default(),
        (Some(_), Some(secrets)) => secrets.clone(),
        (Some(secret), None) => {
            let text = format!("reading secret {}/{} to resize volume {handle}", secret.namespace, secret.name);
            let act = Action::ReadSecret { claim: claim.uid.clone(), of: Work::Growing, secret: secret.clone() };
            return Decision::Do(act, Why::waiting(Reason::ReadingSecret, text));
        }
    };
    let act = Action::Expand { claim: claim.uid.clone(), place: bound.place.clone(), size, capability, secrets };
    Decision::Do(
        act,
        Why::waiting(Reason::Resizing, format!("asking the driver to resize volume {handle} to {size} bytes")),
    )
}

/// Reliability 55 and 56: the volume first, then the claim; and the claim's size only when nothing is left to do.
fn record(now: Timestamp, bound: &Bound, grown: &Grown) -> Decision<Action, Reason> {
    let grow = &bound.grow;
    let (claim, volume) = (&bound.claim, &bound.volume);
    if grow.sizes.volume < grown.size {
        let before = match &grow.before {
            BeforeSize::Absent(size) if grown.node_goes_on => Some(size.to_string()),
            BeforeSize::Absent(_) | BeforeSize::Unused | BeforeSize::Present => None,
        };
        let act = Action::SetSize { claim: claim.uid.clone(), volume: volume.clone(), size: grown.size, before };
        let text = format!("recording that volume {} has {} bytes", volume.name(), grown.size);
        return Decision::Do(act, Why::waiting(Reason::RecordingVolumeSize, text));
    }
    if grown.node_goes_on {
        let again = grow.progress == ResizeProgress::NodeInfeasible;
        let size = match grow.by {
            Expansion::Controller => grown.asked,
            Expansion::NodeOnly | Expansion::None => grown.size,
        };
        let at = since(&grow.conditions, names::FILE_SYSTEM_RESIZE_PENDING, now);
        let act = Action::AwaitNode { claim: claim.clone(), size, recovers: grow.recovers, again, at };
        let text = format!("handing the resize of claim {} over to the node", claim.object.key);
        return Decision::Do(act, Why::waiting(Reason::FileSystemResizeRequired, text));
    }
    let gone = other_conditions(grow, "");
    let act = Action::Finish { claim: claim.clone(), size: grown.size, gone, recovers: grow.recovers };
    let text = format!("recording that claim {} has {} bytes", claim.object.key, grown.size);
    Decision::Do(act, Why::waiting(Reason::VolumeResizeSuccessful, text))
}

/// A refusal of the size under way that the claim does not tell yet.
fn unreported(now: Timestamp, bound: &Bound, memory: &GrowMemory) -> Option<Decision<Action, Reason>> {
    let grow = &bound.grow;
    let failure = memory.failure.as_ref()?;
    if grow.recovers && grow.sizes.allocated != Some(failure.size) || is_told(grow, failure) {
        return None;
    }
    let act = Action::ReportGrowth(GrowthReport {
        claim: bound.claim.clone(),
        infeasible: failure.infeasible && grow.recovers,
        message: failure.message.clone(),
        at: since(&grow.conditions, names::CONTROLLER_RESIZE_ERROR, now),
    });
    let text = format!("claim {}: {}", bound.claim.object.key, failure.message);
    Some(Decision::Do(act, Why::waiting(Reason::VolumeResizeFailed, text)))
}

fn is_told(grow: &Grow, failure: &GrowFailure) -> bool {
    let condition = told(&grow.conditions, names::CONTROLLER_RESIZE_ERROR);
    let words = condition.is_some_and(|told| told.holds && told.message == failure.message);
    words && (!failure.infeasible || !grow.recovers || grow.progress == ResizeProgress::ControllerInfeasible)
}
