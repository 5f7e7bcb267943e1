//! Making the filesystem of a mounted volume as large as its claim was promised.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Quantity, names};
use control::{Decision, Secrets, Timestamp, Why};
use csi::NodeRpc;

use crate::Reason;
use crate::action::Action;
use crate::decide::mount::Mounting;
use crate::decide::volume;
use crate::expand::{Expand, ExpandCall};
use crate::growth::{Growth, GrowthPlan, GrowthProgress, Tell};
use crate::memory::Memory;
use crate::record::Record;
use crate::spec::VolumeSpec;
use crate::view::{MountState, User, UserState, VolumeView};

/// The next step of a growth, if one is due. Nothing is asked for before the volume is published here and the driver
/// has staged it in this incarnation; the claim gets the size only when the record says that the filesystem has it.
/// What the filesystem has is told also when the pod that it grew for is gone: the next one may be long in coming.
pub fn decide(now: Timestamp, view: &VolumeView, record: &Record, memory: &Memory) -> Option<Decision<Action, Reason>> {
    let growth = view.growth.as_ref()?;
    let plan = growth.plan()?;
    if record.size.is_some_and(|size| size >= plan.size) {
        return tell(view, growth, plan);
    }
    if memory.expand.grown == Some(plan.size) {
        let action = volume::write_record(view, record, Record { size: Some(plan.size), ..record.clone() });
        let text = format!("recording that the filesystem of volume {} has {}", record.volume, size(plan.size));
        return Some(Decision::Do(action, Why::waiting(Reason::FileSystemResized, text)));
    }
    let (spec, facts) = (view.spec.as_ref()?, view.facts.as_ref()?);
    let rest = |code, text: String| Some(Decision::Rest(Why::waiting(code, text)));
    let users: Vec<&User> = view.users.values().filter(|user| has_it(user)).collect();
    if users.is_empty() {
        return None;
    }
    if let Some(report) = unreported(now, growth, plan, memory) {
        return Some(report);
    }
    // EX-15.
    let Some(user) = users.iter().find(|user| !user.read_only) else {
        let text = format!("volume {} is mounted read-only, so that its filesystem cannot grow", spec.volume);
        return rest(Reason::ResizeReadOnly, text);
    };
    if growth.stuck == Some(plan.size) {
        let text = format!(
            "driver {} cannot grow the filesystem of volume {} while it is in use; delete its pods, and it grows \
             when the next one starts",
            view.driver, spec.volume
        );
        return rest(Reason::ResizeNeedsRestart, text);
    }
    if !facts.can(NodeRpc::ExpandVolume) {
        let text = format!("driver {} cannot grow the filesystem of volume {}", view.driver, spec.volume);
        return rest(Reason::ResizeUnsupported, text);
    }
    if facts.can(NodeRpc::StageUnstageVolume) && !view.staged_by_us {
        return Some(Mounting { view, record, facts, spec, memory }.stage(user));
    }
    Some(ask(view, record, growth, plan, spec, user, memory))
}

/// The volume is published for the pod, and the pod wants it.
fn has_it(user: &User) -> bool {
    user.standing == UserState::Wanted && user.recorded && user.mounted == MountState::Yes
}

fn size(bytes: i64) -> Quantity {
    Quantity::from_bytes(bytes)
}

fn ask(
    view: &VolumeView,
    record: &Record,
    growth: &Growth,
    plan: GrowthPlan,
    spec: &VolumeSpec,
    user: &User,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let act = |step, code, text: String| Decision::Do(Action::Expand(Box::new(step)), Why::waiting(code, text));
    // EX-17.
    if plan.tell == Tell::Progress && growth.progress != GrowthProgress::NodeInProgress {
        let text = format!("recording that the filesystem of claim {} is being grown", growth.claim.object.key);
        return act(Expand::Begin { claim: growth.claim.clone(), size: plan.size }, Reason::RecordingResize, text);
    }
    let secrets = match (&growth.secret, &memory.expand.secrets) {
        (None, _) => Secrets::default(),
        (Some(_), Some(secrets)) => secrets.clone(),
        (Some(secret), None) => {
            let text = format!(
                "reading secret {}/{} to grow the filesystem of volume {}",
                secret.namespace, secret.name, spec.volume
            );
            return act(Expand::ReadSecret { secret: secret.clone(), size: plan.size }, Reason::ReadingSecret, text);
        }
    };
    let call = ExpandCall {
        driver: view.driver.clone(),
        volume: view.name.clone(),
        handle: view.handle.clone(),
        target: user.target.clone(),
        staging: record.staging_path.clone(),
        size: plan.size,
        capability: spec.capability.clone(),
        secrets,
    };
    let text = format!("driver {} grows the filesystem of volume {} to {}", view.driver, spec.volume, size(plan.size));
    act(Expand::Call(call), Reason::FileSystemTooSmall, text)
}

/// The filesystem has the size: the claim may have it too.
fn tell(view: &VolumeView, growth: &Growth, plan: GrowthPlan) -> Option<Decision<Action, Reason>> {
    let progress = match plan.tell {
        Tell::Nothing => return None,
        Tell::Size => false,
        Tell::Progress => true,
    };
    let step =
        Expand::Finish { claim: growth.claim.clone(), size: plan.size, progress, gone: growth.conditions.clone() };
    let text =
        format!("recording that claim {} has {} on node {}", growth.claim.object.key, size(plan.size), view.node);
    Some(Decision::Do(Action::Expand(Box::new(step)), Why::waiting(Reason::FileSystemResized, text)))
}

/// A refusal of the size under way that the claim does not tell yet. A size that the user has given up is infeasible
/// once it was refused, so that the controller can take up the new one. A size that was handed over anew is asked for
/// again, whatever the driver said of it before.
fn unreported(now: Timestamp, growth: &Growth, plan: GrowthPlan, memory: &Memory) -> Option<Decision<Action, Reason>> {
    let failure = memory.expand.failure.as_ref().filter(|failure| failure.size == plan.size)?;
    if plan.tell == Tell::Progress && growth.progress == GrowthProgress::NodePending {
        return None;
    }
    let given_up = growth.sizes.requested != plan.size && growth.stuck != Some(plan.size);
    let infeasible = plan.tell == Tell::Progress && (failure.infeasible || given_up);
    if growth.error.as_ref() == Some(&failure.message) && !infeasible || plan.tell == Tell::Nothing {
        return None;
    }
    let others = growth.conditions.iter().filter(|condition| *condition != names::NODE_RESIZE_ERROR);
    let step = Expand::Report {
        claim: growth.claim.clone(),
        size: plan.size,
        infeasible,
        gone: if infeasible { others.map(String::to_string).collect() } else { Vec::new() },
        message: failure.message.clone(),
        at: now.to_time(),
    };
    let text = format!("saying why the filesystem of claim {} did not grow", growth.claim.object.key);
    Some(Decision::Do(Action::Expand(Box::new(step)), Why::waiting(Reason::ReportingResizeError, text)))
}
