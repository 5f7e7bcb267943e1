//! What a node must be for a pod, as a table of filters in kube-scheduler's order. The first that objects is the one
//! that is told.

use alloc::vec::Vec;

use crate::{ClaimState, NodeObstacle, NodeView, PendingPod, Reason};

pub(crate) mod binding;
mod limits;
mod zone;

/// What a filter holds against a node, if anything.
type Filter = fn(&PendingPod, &NodeView) -> Vec<NodeObstacle>;

/// The filters, each with what is said of a pod that no node takes and that came no further than this one.
const FILTERS: [(Filter, Reason); 6] = [
    (open, Reason::NoNodeOpen),
    (room, Reason::NoNodeHasRoom),
    (untaken, Reason::ClaimTaken),
    (limits::filter, Reason::NoNodeAttachesMore),
    (binding::filter, Reason::NoNodeReachesVolumes),
    (zone::filter, Reason::NoNodeReachesVolumes),
];

/// Why a node does not take the pod, and which filter says so; nothing if it does.
pub(crate) fn objection(pod: &PendingPod, node: &NodeView) -> Option<(usize, Vec<NodeObstacle>)> {
    let mut asked = FILTERS.iter().map(|(filter, _)| filter(pod, node)).enumerate();
    asked.find(|(_, obstacles)| !obstacles.is_empty())
}

/// What is said of a pod that came no further than this filter on any node.
pub(crate) fn code(filter: usize) -> Reason {
    FILTERS.get(filter).map_or(Reason::NoNodeOpen, |(_, code)| *code)
}

/// It is ready and not cordoned, the pod tolerates its taints and accepts its labels.
fn open(_pod: &PendingPod, node: &NodeView) -> Vec<NodeObstacle> {
    node.closed.iter().cloned().collect()
}

/// It has what the pod's containers ask for, and one place more.
fn room(_pod: &PendingPod, node: &NodeView) -> Vec<NodeObstacle> {
    node.lacks.iter().cloned().map(NodeObstacle::Lacks).collect()
}

/// SC-19: no other pod has a claim that is for one pod at a time. The node does not matter.
fn untaken(pod: &PendingPod, _node: &NodeView) -> Vec<NodeObstacle> {
    let taken = pod.claims.iter().filter_map(|(claim, state)| {
        let ClaimState::TakenBy(other) = state else { return None };
        Some(NodeObstacle::ClaimTaken { claim: claim.clone(), pod: other.clone() })
    });
    taken.collect()
}
