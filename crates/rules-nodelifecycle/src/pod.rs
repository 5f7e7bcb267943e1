//! Whether a pod may stay where it is.

use alloc::format;
use alloc::string::String;

use api::{Taint, names};
use control::{Decision, Pulse, PulseVerdict, Timestamp, Why};

use crate::stay::{Stay, stay};
use crate::{Action, Memory, PodNode, PodStay, Reason};

/// For so long a node that is gone may come back before its pods are removed: as long as a Lease, as upstream waits.
const QUARANTINE_MILLIS: u64 = 40_000;
/// What was read earlier than this is read again before a pod is removed.
const FRESH_MILLIS: u64 = 5_000;

pub(crate) fn decide(now: Timestamp, view: &PodStay, memory: &Memory) -> Decision<Action, Reason> {
    match &view.node {
        PodNode::None => Decision::Rest(Why::settled(Reason::NotPlaced, "the pod has no node yet")),
        PodNode::Missing(node) => orphan(now, view, node, memory),
        PodNode::There { .. } if view.deleting => ending(now, view, memory),
        PodNode::There { name, taints, .. } => running(now, view, name, taints, memory),
    }
}

/// Taints may end it. Of a pod that has ended the object goes: nobody looks after it on that node.
fn running(now: Timestamp, view: &PodStay, node: &str, taints: &[Taint], memory: &Memory) -> Decision<Action, Reason> {
    match stay(now, taints, &view.tolerations, memory.noticed.as_ref()) {
        Stay::Forever if view.over => {
            let text = format!("the pod has ended, and no taint of node {node} takes it away");
            Decision::Rest(Why::settled(Reason::PodEnded, text))
        }
        Stay::Forever => Decision::Rest(Why::settled(Reason::MayStay, format!("no taint of node {node} ends the pod"))),
        Stay::No(taint) => evict(view, format!("node {node} has the taint {taint}, which the pod does not tolerate")),
        Stay::Until(until, taint) if now >= until => {
            evict(view, format!("node {node} has the taint {taint}, which the pod no longer tolerates"))
        }
        Stay::Until(until, taint) => Decision::Wait(
            until,
            Why::waiting(
                Reason::Tolerating,
                format!("the pod is deleted if node {node} still has the taint {taint} when the pod's time is up"),
            ),
        ),
        Stay::Unnoticed(taint) => Decision::Do(
            Action::NoteTaints { pod: view.pod.object.key.clone(), taints: taints.to_vec() },
            Why::settled(Reason::TaintNoticed, format!("the pod tolerates the taint {taint} for a while from now on")),
        ),
    }
}

fn evict(view: &PodStay, text: String) -> Decision<Action, Reason> {
    let action = Action::Evict { pod: view.pod.clone(), hasty: view.hasty, because: text.clone() };
    Decision::Do(action, Why::waiting(Reason::TaintManagerEviction, text))
}

/// Its deletion was asked for: its node must say that it ended, unless the node is out of service and dead.
fn ending(now: Timestamp, view: &PodStay, memory: &Memory) -> Decision<Action, Reason> {
    let PodNode::There { name, ready, unheard, out_of_service, .. } = &view.node else {
        return Decision::Rest(Why::settled(Reason::NotPlaced, "the pod has no node"));
    };
    if *ready || !(*unheard || *out_of_service) {
        let text = format!("the pod is being deleted, and node {name} ends it");
        return Decision::Rest(Why::settled(Reason::PodBeingDeleted, text));
    }
    if !out_of_service {
        let text = format!(
            "the pod is being deleted, and only node {name}, of which nothing is heard, can say that it ended; if that \
             node is shut down, `kubectl taint node {name} {}=nodeshutdown:NoExecute` says so",
            names::OUT_OF_SERVICE_TAINT
        );
        return Decision::Rest(Why::waiting(Reason::NodeSilent, text));
    }
    let said = format!("node {name} has the taint {}", names::OUT_OF_SERVICE_TAINT);
    remove_if_dead(now, view, name, *unheard, &said, memory)
}

/// Its node is not there: neither in the cache, nor, after a while, for a read past it.
fn orphan(now: Timestamp, view: &PodStay, node: &str, memory: &Memory) -> Decision<Action, Reason> {
    let check = || {
        let text = format!("making sure that node {node} is gone");
        Decision::Do(Action::CheckNode { node: node.into() }, Why::waiting(Reason::CheckingNode, text))
    };
    let Some(vanished) = memory.vanished else { return check() };
    let until = vanished.since.after_millis(QUARANTINE_MILLIS);
    if now < until {
        let text =
            format!("node {node} does not exist, so nobody runs the pod; it is removed unless the node comes back");
        return Decision::Wait(until, Why::waiting(Reason::NodeGone, text));
    }
    if vanished.read < until || now > vanished.read.after_millis(FRESH_MILLIS) {
        return check();
    }
    // An agent that lives makes its Lease anew before it makes its Node anew, or soon after.
    remove_if_dead(now, view, node, true, &format!("node {node} does not exist"), memory)
}

fn remove_if_dead(
    now: Timestamp,
    view: &PodStay,
    node: &str,
    unheard: bool,
    said: &str,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let pulse = memory.pulse.as_ref();
    match Pulse::judge(now, 0, unheard, pulse) {
        PulseVerdict::Look => Decision::Do(
            Action::ReadLease { node: node.into(), known: pulse.and_then(|pulse| pulse.version.clone()) },
            Why::waiting(Reason::CheckingLease, format!("looking whether node {node} renews its Lease")),
        ),
        PulseVerdict::Later(then) if pulse.is_some_and(|pulse| pulse.beats) => Decision::Wait(
            then,
            Why::waiting(
                Reason::NodeLives,
                format!("{said}, but renews its Lease, so it lives, and only it can say that the pod ended"),
            ),
        ),
        PulseVerdict::Later(then) => Decision::Wait(
            then,
            Why::waiting(Reason::AwaitingLease, format!("{said}; the pod is removed unless it renews its Lease")),
        ),
        PulseVerdict::Dead => {
            // Nobody says anything of a node that is gone.
            let unheard = unheard && !matches!(view.node, PodNode::Missing(_));
            let evidence = pulse.map(|pulse| pulse.evidence(unheard)).unwrap_or_default();
            let text = format!("removing the pod: {said}; {evidence}");
            let action = Action::Remove { pod: view.pod.clone(), evidence: format!("{said}; {evidence}") };
            Decision::Do(action, Why::waiting(Reason::DeletionByPodGC, text))
        }
    }
}
