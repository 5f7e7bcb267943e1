//! When a container is probed and its hooks are run.

use alloc::format;

use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::{Action, Check};
use crate::checks::{CheckKind, CheckSpec, CheckView};

/// The next step for a probe or hook.
pub fn decide(now: Timestamp, view: &CheckView) -> Decision<Action, Reason> {
    let text = format!("{} of container {}", view.key.kind.name(), view.key.container);
    let idle = || Decision::Rest(Why::settled(Reason::NothingToCheck, format!("the {text} has nothing to do now")));
    let (Some(spec), Some((process, since))) = (&view.spec, &view.process) else { return idle() };
    let passed = view.last.as_ref().and_then(|last| last.passed);
    let due = match (view.key.kind, &view.last) {
        (CheckKind::PostStart, None) if !view.ending => *since,
        (CheckKind::PreStop, None) if view.ending => *since,
        (CheckKind::PostStart | CheckKind::PreStop, _) => return idle(),
        // What is about to end is not asked how it is, and what failed is about to end.
        (CheckKind::Startup | CheckKind::Liveness | CheckKind::Readiness, _) if view.ending => return idle(),
        (CheckKind::Startup, _) if passed.is_some() => return idle(),
        (CheckKind::Liveness, _) if passed == Some(false) => return idle(),
        (CheckKind::Liveness | CheckKind::Readiness, _) if !view.started => return idle(),
        (CheckKind::Startup | CheckKind::Liveness | CheckKind::Readiness, last) => next(spec, *since, last.as_ref()),
    };
    if now < due {
        return Decision::Wait(due, Why::settled(Reason::CheckedLater, format!("the {text} is due later")));
    }
    let check = Check {
        process: process.clone(),
        kind: view.key.kind,
        handler: spec.handler.clone(),
        timeout_millis: spec.timeout_millis,
        limits: spec.limits,
        at_millis: now.0,
    };
    Decision::Do(Action::Check(check), Why::waiting(Reason::CheckDue, text))
}

fn next(spec: &CheckSpec, since: Timestamp, last: Option<&crate::checks::Checked>) -> Timestamp {
    match last {
        None => since.after_millis(spec.delay_millis),
        Some(last) => Timestamp(last.at_millis).after_millis(spec.period_millis),
    }
}
