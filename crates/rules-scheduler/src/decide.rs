use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::{Decision, Timestamp, Why};

use crate::{Action, ClaimState, NodeObstacle, NodeView, PendingPod, Reason, View};

/// How long pod and claims that were created together may take to find together before users are told that the pod
/// waits. The API gives the time of creation in whole seconds.
const GRACE_MILLIS: u64 = 3_000;
/// So many nodes are named of those that do not take a pod for the same reason.
const NAMED: usize = 3;

pub(crate) fn decide(now: Timestamp, view: &View) -> Decision<Action, Reason> {
    match view {
        View::Gone => Decision::Rest(Why::settled(Reason::PodGone, "the pod does not exist")),
        View::Ended(None) => Decision::Rest(Why::settled(Reason::PodEnded, "the pod has ended")),
        View::Ended(Some(failure)) => {
            Decision::Rest(Why::settled(Reason::PodEnded, format!("the pod has failed: {failure}")))
        }
        View::Placed(node) => Decision::Rest(Why::settled(Reason::Placed, format!("the pod is on node {node}"))),
        View::Astray { node, deleting: false } => rest(
            Reason::NodeMissing,
            format!(
                "the pod is on node {node}, which does not exist, so nobody runs it; delete the pod or add the node"
            ),
        ),
        View::Astray { node, deleting: true } => rest(
            Reason::NodeMissing,
            format!("the pod is on node {node}, which does not exist, so nobody ends it; kubectl delete --force does"),
        ),
        View::Anothers(scheduler) => rest(
            Reason::OtherScheduler,
            format!(
                "scheduler {scheduler}, which spec.schedulerName names, is to place the pod; leave it out for this one"
            ),
        ),
        View::Deleting => Decision::Rest(Why::settled(Reason::PodBeingDeleted, "the pod is being deleted")),
        View::Pending(pending) => tell(now, pending, place(pending)),
    }
}

/// What keeps a pod from any node is written into its status, unless it is there or may be over in a moment.
fn tell(now: Timestamp, pending: &PendingPod, plan: Decision<Action, Reason>) -> Decision<Action, Reason> {
    let Decision::Rest(why) = plan else { return plan };
    let told = pending.told.as_ref();
    if told.is_some_and(|told| told.message == why.text) {
        return Decision::Rest(why);
    }
    let until = pending.since.after_millis(GRACE_MILLIS);
    // If the API server's clock is ahead, nobody waits for ours.
    if pending.since <= now && now < until {
        return Decision::Wait(until, why);
    }
    let since = told.and_then(|told| told.last_transition_time.clone()).unwrap_or_else(|| now.to_time());
    let act = Action::ReportUnschedulable { pod: pending.pod.clone(), message: why.text.clone(), since };
    Decision::Do(act, why)
}

fn place(pending: &PendingPod) -> Decision<Action, Reason> {
    if let Some(volume) = &pending.template {
        return rest(
            Reason::TemplateNotSupported,
            format!("volume {volume} makes its claim from a template, which is not supported"),
        );
    }
    if let Some(why) = pending.claims.iter().find_map(|(name, state)| obstacle(name, state)) {
        return Decision::Rest(why);
    }
    if let Some(decision) = fixed_elsewhere(pending) {
        return decision;
    }
    match choose(pending) {
        Err(why) => Decision::Rest(why),
        Ok(node) => select_or_bind(pending, node),
    }
}

fn rest(code: Reason, text: String) -> Decision<Action, Reason> {
    Decision::Rest(Why::waiting(code, text))
}

/// What keeps the pod from any node, as far as one claim goes.
fn obstacle(name: &str, state: &ClaimState) -> Option<Why<Reason>> {
    match state {
        ClaimState::Missing => Some(Why::waiting(Reason::ClaimMissing, format!("claim {name} does not exist"))),
        ClaimState::Deleting => Some(Why::waiting(Reason::ClaimBeingDeleted, format!("claim {name} is being deleted"))),
        ClaimState::Lost => Some(Why::waiting(Reason::ClaimLost, format!("claim {name} has lost its volume"))),
        ClaimState::TakenBy(pod) => Some(Why::waiting(
            Reason::ClaimTaken,
            format!("claim {name} is for one pod at a time and pod {pod} has it"),
        )),
        ClaimState::Unbound => {
            Some(Why::waiting(Reason::ClaimUnbound, format!("waiting for claim {name} to be bound")))
        }
        ClaimState::VolumeUnseen(volume) => {
            Some(Why::waiting(Reason::VolumeNotSeen, format!("waiting for news of volume {volume} of claim {name}")))
        }
        ClaimState::AwaitsNode(_) | ClaimState::NodeSelected { .. } | ClaimState::Bound { .. } => None,
    }
}

/// A volume is being made for a node, and that node must be the pod's. If the node is gone and nothing was begun, the
/// claim is free to go elsewhere; otherwise we wait.
fn fixed_elsewhere(pending: &PendingPod) -> Option<Decision<Action, Reason>> {
    let mut fixed: Option<(&str, &str)> = None;
    for (name, state) in &pending.claims {
        let ClaimState::NodeSelected { node, in_the_making: true, .. } = state else { continue };
        match fixed {
            None => fixed = Some((name, node)),
            Some((_, same)) if same == node => {}
            Some((other, elsewhere)) => {
                let text = format!("claim {name} gets its volume for node {node}, claim {other} for node {elsewhere}");
                return Some(rest(Reason::NodesDisagree, text));
            }
        }
    }
    let (name, node) = fixed?;
    let text = match pending.nodes.iter().find(|known| known.name == node) {
        None => format!("claim {name} gets its volume for node {node}, which does not exist"),
        Some(known) => match &known.closed {
            Some(closed) => format!("claim {name} gets its volume for node {node}, which {}", closed.clause()),
            None => return None,
        },
    };
    Some(rest(Reason::SelectedNodeClosed, text))
}

fn choose(pending: &PendingPod) -> Result<&NodeView, Why<Reason>> {
    if pending.nodes.is_empty() {
        return Err(Why::waiting(Reason::NoNodes, "there are no nodes"));
    }
    let fit = pending.nodes.iter().filter(|node| closed_to(pending, node).is_none());
    let best = fit.min_by_key(|node| (!preferred(pending, node), node.pods, &node.name));
    best.ok_or_else(|| {
        let open = pending.nodes.iter().any(|node| node.closed.is_none());
        let code = if open { Reason::NoNodeReachesVolumes } else { Reason::NoNodeOpen };
        Why::waiting(code, nobody(pending))
    })
}

/// Why no node takes the pod, in the manner of the scheduler that people know: so many of so many, and why.
fn nobody(pending: &PendingPod) -> String {
    let mut groups: BTreeMap<NodeObstacle, Vec<&str>> = BTreeMap::new();
    for node in &pending.nodes {
        groups.entry(closed_to(pending, node).unwrap_or(NodeObstacle::NotReady)).or_default().push(&node.name);
    }
    let said = groups.iter().map(|(obstacle, nodes)| {
        let more = if nodes.len() > NAMED { ", …" } else { "" };
        let names = nodes.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        format!("{} {} ({names}{more})", nodes.len(), obstacle.group())
    });
    format!("0/{} nodes are available: {}", pending.nodes.len(), said.collect::<Vec<_>>().join(", "))
}

/// Why a node does not take the pod; of its volumes those count that exist or are being made.
fn closed_to(pending: &PendingPod, node: &NodeView) -> Option<NodeObstacle> {
    let unreachable = || pending.claims.iter().find(|(_, state)| !reaches(state, node));
    node.closed.clone().or_else(|| unreachable().map(|(claim, _)| NodeObstacle::OutOfReach(claim.clone())))
}

fn reaches(state: &ClaimState, node: &NodeView) -> bool {
    match state {
        ClaimState::Bound { affinity: Some(affinity), .. } => affinity.admits(&node.name, &node.labels),
        ClaimState::NodeSelected { node: selected, in_the_making: true, .. } => *selected == node.name,
        ClaimState::Bound { affinity: None, .. }
        | ClaimState::NodeSelected { in_the_making: false, .. }
        | ClaimState::AwaitsNode(_)
        | ClaimState::Missing
        | ClaimState::Deleting
        | ClaimState::Lost
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::VolumeUnseen(_) => true,
    }
}

/// A node was selected for one of the claims before: staying with it moves no data and changes no annotation.
fn preferred(pending: &PendingPod, node: &NodeView) -> bool {
    pending.claims.iter().any(|(_, state)| match state {
        ClaimState::Bound { node: selected, .. } => selected.as_ref() == Some(&node.name),
        ClaimState::NodeSelected { node: selected, .. } => *selected == node.name,
        ClaimState::AwaitsNode(_)
        | ClaimState::Missing
        | ClaimState::Deleting
        | ClaimState::Lost
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::VolumeUnseen(_) => false,
    })
}

/// Tells every claim of delayed binding the node, waits for their volumes, then places the pod.
fn select_or_bind(pending: &PendingPod, node: &NodeView) -> Decision<Action, Reason> {
    let mut waiting = Vec::new();
    for (name, state) in &pending.claims {
        let claim = match state {
            ClaimState::AwaitsNode(claim) => claim,
            ClaimState::NodeSelected { claim, node: selected, .. } => {
                if *selected == node.name {
                    waiting.push(name.as_str());
                    continue;
                }
                claim
            }
            ClaimState::Bound { .. }
            | ClaimState::Missing
            | ClaimState::Deleting
            | ClaimState::Lost
            | ClaimState::TakenBy(_)
            | ClaimState::Unbound
            | ClaimState::VolumeUnseen(_) => continue,
        };
        return Decision::Do(
            Action::SelectNode { claim: claim.clone(), node: node.name.clone() },
            Why::waiting(Reason::SelectingNode, format!("claim {name} gets its volume for node {}", node.name)),
        );
    }
    if !waiting.is_empty() {
        let text = format!("waiting for volumes for node {} to be bound to claims {}", node.name, waiting.join(", "));
        return rest(Reason::VolumeForNodeAwaited, text);
    }
    Decision::Do(
        Action::Bind { pod: pending.pod.clone(), node: node.name.clone(), waited: pending.told.is_some() },
        Why::waiting(Reason::Placing, format!("placing the pod on node {}", node.name)),
    )
}
