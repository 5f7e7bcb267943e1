//! Whether a node lives, and the taints that say so.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Condition, Taint, names};
use control::{Decision, Pulse, PulseVerdict, Timestamp, Why};

use crate::{Action, Memory, NodeLife, Readiness, Reason};

/// A node that starts says for a moment that it is not ready yet. Nobody is kept away for that.
const GRACE_MILLIS: u64 = 5_000;
/// What upstream says of a node that is not heard of any more.
const UNKNOWN_REASON: &str = "NodeStatusUnknown";
const UNKNOWN_MESSAGE: &str = "Kubelet stopped posting node status.";

pub(crate) fn decide(now: Timestamp, view: &NodeLife, memory: &Memory) -> Decision<Action, Reason> {
    let name = view.node.name();
    let known = memory.pulse.as_ref().filter(|pulse| shows_nothing_new(pulse, view, memory));
    let Some(pulse) = known else {
        let action = Action::NoteLife { node: name.into(), lease: view.lease.clone(), heartbeat: view.heartbeat() };
        return Decision::Do(action, Why::settled(Reason::NodeHeard, format!("node {name} is heard of")));
    };
    match view.readiness() {
        Readiness::Unknown => unheard(now, view),
        readiness @ (Readiness::Ready | Readiness::NotReady(_) | Readiness::Untold) => {
            match Pulse::judge(now, pulse.lease_millis, false, Some(pulse)) {
                PulseVerdict::Look => Decision::Do(
                    Action::ReadLease { node: name.into(), known: pulse.version.clone() },
                    Why::waiting(Reason::CheckingLease, format!("looking whether node {name} renews its Lease")),
                ),
                PulseVerdict::Dead => mark(now, view, pulse),
                PulseVerdict::Later(then) => heard(now, view, readiness, then),
            }
        }
    }
}

/// Neither the Lease nor the node's own word has changed since we first saw them.
fn shows_nothing_new(pulse: &Pulse, view: &NodeLife, memory: &Memory) -> bool {
    let version = view.lease.as_ref().map(|lease| lease.metadata.resource_version.0.as_str());
    pulse.version.as_deref() == version && memory.heartbeat == view.heartbeat()
}

/// All that the node said of itself is not known any more. What it never said nobody would take back when it returns.
fn mark(now: Timestamp, view: &NodeLife, pulse: &Pulse) -> Decision<Action, Reason> {
    let at = now.to_time();
    let mut conditions = view.conditions.clone();
    if view.readiness() == Readiness::Untold {
        conditions.push(Condition { r#type: "Ready".into(), ..Condition::default() });
    }
    for condition in conditions.iter_mut().filter(|condition| condition.status != "Unknown") {
        condition.status = "Unknown".into();
        condition.reason = UNKNOWN_REASON.into();
        condition.message = UNKNOWN_MESSAGE.into();
        condition.last_transition_time = Some(at.clone());
    }
    let text = format!("node {} is said to be Unknown: {}", view.node.name(), pulse.evidence(false));
    let action = Action::MarkUnknown { node: view.node.clone(), conditions };
    Decision::Do(action, Why::waiting(Reason::NodeStatusUnknown, text))
}

fn unheard(now: Timestamp, view: &NodeLife) -> Decision<Action, Reason> {
    let name = view.node.name();
    let silent = format!("node {name} does not renew its Lease: it takes no new pods");
    tainted(now, view, names::UNREACHABLE_TAINT).unwrap_or_else(|| {
        Decision::Rest(match view.company {
            true => Why::waiting(
                Reason::NodeSilent,
                format!("{silent}, and pods leave it when they tolerate that no longer"),
            ),
            false => nobody_else(silent),
        })
    })
}

fn heard(now: Timestamp, view: &NodeLife, readiness: Readiness, then: Timestamp) -> Decision<Action, Reason> {
    let name = view.node.name();
    let alive = || Why::settled(Reason::NodeAlive, format!("node {name} renews its Lease"));
    match readiness {
        Readiness::Untold | Readiness::Unknown => Decision::Wait(then, alive()),
        Readiness::Ready => untainted(view).unwrap_or_else(|| Decision::Wait(then, alive())),
        Readiness::NotReady(since) => {
            let text = format!("node {name} says that it is not ready: it takes no new pods");
            let until = Timestamp(since.unwrap_or_default()).after_millis(GRACE_MILLIS);
            // If the node's clock is ahead, nobody waits for ours.
            if since.is_some_and(|since| since <= now.0) && now < until {
                return Decision::Wait(until.min(then), Why::waiting(Reason::NodeNotReady, text));
            }
            tainted(now, view, names::NOT_READY_TAINT).unwrap_or_else(|| {
                let why = match view.company {
                    true => Why::waiting(
                        Reason::NodeNotReady,
                        format!("{text}, and pods leave it when they tolerate that no longer"),
                    ),
                    false => nobody_else(text),
                };
                Decision::Wait(then, why)
            })
        }
    }
}

fn nobody_else(text: String) -> Why<Reason> {
    Why::waiting(Reason::NoOtherNode, format!("{text}; no other node is ready, so nobody is evicted"))
}

fn is_ours(taint: &Taint) -> bool {
    matches!(taint.key.as_str(), names::UNREACHABLE_TAINT | names::NOT_READY_TAINT)
}

/// The step that is missing until the node has this taint: first for new pods, then for those that are there.
fn tainted(now: Timestamp, view: &NodeLife, key: &str) -> Option<Decision<Action, Reason>> {
    let name = view.node.name();
    let new = |effect: &str| Taint {
        key: key.into(),
        value: String::new(),
        effect: effect.into(),
        time_added: Some(now.to_time()),
    };
    let has = |effect: &str| view.taints.iter().any(|taint| taint.key == key && taint.effect == effect);
    // What we said before, when the node was something else, goes with the first step.
    let mut taints: Vec<Taint> =
        view.taints.iter().filter(|taint| !is_ours(taint) || taint.key == key).cloned().collect();
    let text = if !has("NoSchedule") {
        taints.push(new("NoSchedule"));
        format!("keeping new pods away from node {name}")
    } else if !has("NoExecute") && view.company {
        taints.push(new("NoExecute"));
        format!("evicting pods from node {name} that do not tolerate {key}")
    } else if taints.len() < view.taints.len() {
        format!("node {name} has a taint of the past")
    } else {
        return None;
    };
    let action = Action::SetTaints { node: view.node.clone(), taints, back: false };
    Some(Decision::Do(action, Why::waiting(Reason::Tainting, text)))
}

/// The step that takes our taints away.
fn untainted(view: &NodeLife) -> Option<Decision<Action, Reason>> {
    if !view.taints.iter().any(is_ours) {
        return None;
    }
    let taints = view.taints.iter().filter(|taint| !is_ours(taint)).cloned().collect();
    let back = view.taints.iter().any(|taint| taint.key == names::UNREACHABLE_TAINT);
    let action = Action::SetTaints { node: view.node.clone(), taints, back };
    let text = format!("node {} is heard of and ready: it takes pods again", view.node.name());
    Some(Decision::Do(action, Why::waiting(Reason::Untainting, text)))
}
