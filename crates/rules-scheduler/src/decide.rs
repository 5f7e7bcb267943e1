use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::{Decision, Why};

use crate::{Action, ClaimState, NodeView, PendingPod, Reason, View};

pub(crate) fn decide(view: &View) -> Decision<Action, Reason> {
    match view {
        View::Gone => Decision::Rest(Why::settled(Reason::PodGone, "the pod does not exist")),
        View::Ended => Decision::Rest(Why::settled(Reason::PodEnded, "the pod has ended")),
        View::Placed(node) => Decision::Rest(Why::settled(Reason::Placed, format!("the pod is on node {node}"))),
        View::Deleting => Decision::Rest(Why::settled(Reason::PodBeingDeleted, "the pod is being deleted")),
        View::Pending(pending) => place(pending),
    }
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
        Some(known) => match known.closed {
            Some(closed) => format!("claim {name} gets its volume for node {node}, which {closed}"),
            None => return None,
        },
    };
    Some(rest(Reason::SelectedNodeClosed, text))
}

fn choose(pending: &PendingPod) -> Result<&NodeView, Why<Reason>> {
    if pending.nodes.is_empty() {
        return Err(Why::waiting(Reason::NoNodes, "there are no nodes"));
    }
    let open: Vec<&NodeView> = pending.nodes.iter().filter(|node| node.closed.is_none()).collect();
    if open.is_empty() {
        let closed = pending.nodes.iter().map(|node| format!("{} {}", node.name, node.closed.unwrap_or("is open")));
        let closed = closed.collect::<Vec<_>>().join(", ");
        return Err(Why::waiting(Reason::NoNodeOpen, format!("no node takes pods: {closed}")));
    }
    let reachable = open.into_iter().filter(|node| reaches_all(pending, node));
    let best = reachable.min_by_key(|node| (!preferred(pending, node), node.pods, &node.name));
    best.ok_or_else(|| Why::waiting(Reason::NoNodeReachesVolumes, "no open node can reach all volumes of the pod"))
}

/// Whether the volumes that exist, or are being made, can be reached from a node.
fn reaches_all(pending: &PendingPod, node: &NodeView) -> bool {
    pending.claims.iter().all(|(_, state)| match state {
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
    })
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
        Action::Bind { pod: pending.pod.clone(), uid: pending.uid.clone(), node: node.name.clone() },
        Why::waiting(Reason::Placing, format!("placing the pod on node {}", node.name)),
    )
}
