//! SC-3 to SC-5: each volume of the pod can be reached from the node, found free there, or made there.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm, fit};

use crate::{ClaimState, Delayed, Making, NodeObstacle, NodeView, PendingPod};

/// What would be done for the claims of delayed binding if the pod went to a node.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    /// Free volumes, each with the claim it would be reserved for.
    pub(crate) reserve: Vec<(&'a str, &'a Arc<PersistentVolumeClaim>, &'a Arc<PersistentVolume>)>,
    /// Claims for which a volume would be made; with what the driver has left there, if it says.
    pub(crate) make: Vec<(&'a str, &'a Arc<PersistentVolumeClaim>, Option<i64>)>,
    /// What is wrong with the node.
    obstacles: Vec<NodeObstacle>,
}

pub(super) fn filter(pod: &PendingPod, node: &NodeView) -> Vec<NodeObstacle> {
    let out_of_reach = pod.claims.iter().find_map(|(claim, state)| unreachable(claim, state, node));
    let mut found = plan(pod, node).obstacles;
    found.extend(out_of_reach);
    found.sort();
    found.dedup();
    found
}

/// A volume that exists, or is in the making, is not for this node.
fn unreachable(claim: &str, state: &ClaimState, node: &NodeView) -> Option<NodeObstacle> {
    match state {
        ClaimState::Bound { reach, .. } | ClaimState::Reserved { reach, .. } => {
            let affinity = match &reach.translated {
                Some((plugin, affinity)) if node.left_to_drivers.contains(plugin) => affinity,
                Some(_) | None => &reach.affinity,
            };
            let admits = affinity.as_ref().is_none_or(|affinity| affinity.admits(&node.name, &node.labels));
            (!admits).then(|| NodeObstacle::OutOfReach(claim.into()))
        }
        ClaimState::NodeSelected { node: selected, in_the_making: true, .. } => {
            (*selected != node.name).then(|| NodeObstacle::NoVolume(claim.into()))
        }
        ClaimState::NodeSelected { in_the_making: false, .. }
        | ClaimState::AwaitsNode(_)
        | ClaimState::Missing { .. }
        | ClaimState::Deleting
        | ClaimState::Lost(_)
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::VolumeUnseen(_) => None,
    }
}

/// The smallest claim chooses first among the free volumes that the node reaches; what is left is made.
pub(crate) fn plan<'a>(pod: &'a PendingPod, node: &NodeView) -> Plan<'a> {
    let mut open: Vec<(&str, &Delayed)> = pod.claims.iter().filter_map(|(name, state)| open(name, state)).collect();
    open.sort_by_key(|(_, delayed)| fit::requested(&delayed.claim).unwrap_or(i64::MAX));
    let (mut plan, mut taken) = (Plan::default(), BTreeSet::new());
    for (name, delayed) in open {
        let reached = |volume: &&Arc<PersistentVolume>| {
            let affinity = volume.spec.node_affinity.as_ref();
            affinity.is_none_or(|affinity| affinity.admits(&node.name, &node.labels))
        };
        let mut free = delayed.free.iter().filter(|volume| !taken.contains(&volume.metadata.name));
        match (free.find(reached), &delayed.making) {
            (Some(volume), _) => {
                taken.insert(&volume.metadata.name);
                plan.reserve.push((name, &delayed.claim, volume));
            }
            (None, Making::Never) => plan.obstacles.push(NodeObstacle::NoVolume(name.into())),
            (None, Making::For { allowed, capacity }) => {
                match made(&delayed.claim, allowed, capacity.as_deref(), &node.labels) {
                    Ok(left) => plan.make.push((name, &delayed.claim, left)),
                    Err(Unmakeable::Elsewhere) => plan.obstacles.push(NodeObstacle::NoVolume(name.into())),
                    Err(Unmakeable::TooBig) => plan.obstacles.push(NodeObstacle::NoSpace(name.into())),
                }
            }
        }
    }
    plan
}

/// What a claim of a pod gets on the node that the pod has already: a free volume there, or `None` if one is to be
/// made. How much the driver has left there does not matter, because the pod goes nowhere else.
pub(crate) fn settle<'a>(
    delayed: &'a Delayed,
    node: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Option<&'a Arc<PersistentVolume>>, NoWay> {
    let reached = |volume: &&Arc<PersistentVolume>| {
        let affinity = volume.spec.node_affinity.as_ref();
        affinity.is_none_or(|affinity| affinity.admits(node, labels))
    };
    match (delayed.free.iter().find(reached), &delayed.making) {
        (Some(volume), _) => Ok(Some(volume)),
        (None, Making::For { allowed, .. }) if TopologySelectorTerm::allow(allowed, labels) => Ok(None),
        (None, Making::For { .. } | Making::Never) => Err(NoWay),
    }
}

/// There is no volume for the claim on that node, and none can be made.
pub(crate) struct NoWay;

/// The claim has no volume, and nothing was begun.
fn open<'a>(name: &'a str, state: &'a ClaimState) -> Option<(&'a str, &'a Delayed)> {
    match state {
        ClaimState::AwaitsNode(delayed) | ClaimState::NodeSelected { delayed, in_the_making: false, .. } => {
            Some((name, delayed))
        }
        ClaimState::NodeSelected { in_the_making: true, .. }
        | ClaimState::Missing { .. }
        | ClaimState::Deleting
        | ClaimState::Lost(_)
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::Reserved { .. }
        | ClaimState::VolumeUnseen(_)
        | ClaimState::Bound { .. } => None,
    }
}

/// Why a volume cannot be made for a node.
enum Unmakeable {
    /// The class allows none there.
    Elsewhere,
    /// The driver has not the room there.
    TooBig,
}

/// Whether a volume can be made for a node with these labels, and what the driver has left there, if it says. Each
/// claim is looked at alone: two that fit one by one may not fit together, which the driver says when it comes to that.
fn made(
    claim: &PersistentVolumeClaim,
    allowed: &[TopologySelectorTerm],
    capacity: Option<&[Arc<CSIStorageCapacity>]>,
    labels: &BTreeMap<String, String>,
) -> Result<Option<i64>, Unmakeable> {
    if !TopologySelectorTerm::allow(allowed, labels) {
        return Err(Unmakeable::Elsewhere);
    }
    // A request that cannot be read is told by binding.
    let (Some(said), Ok(size @ 1..)) = (capacity, fit::requested(claim)) else { return Ok(None) };
    let there = said.iter().filter(|one| one.node_topology.as_ref().is_some_and(|places| places.selects(labels)));
    let bytes = |one: &Option<api::Quantity>| one.as_ref().and_then(|size| size.bytes().ok());
    let enough = there.filter(|one| bytes(&one.maximum_volume_size).or(bytes(&one.capacity)).unwrap_or(0) >= size);
    let left = enough.map(|one| bytes(&one.capacity).or(bytes(&one.maximum_volume_size)).unwrap_or(0));
    left.max().map(Some).ok_or(Unmakeable::TooBig)
}

/// SC-8: of 100, more where more is left. Requested against what there is, by class, and the mean over classes; nothing
/// known is 0.
pub(crate) fn score(plan: &Plan<'_>) -> i64 {
    let mut classes: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut add = |claim: &PersistentVolumeClaim, there: i64, sum: bool| {
        let entry = classes.entry(claim.class().unwrap_or("").into()).or_default();
        entry.0 = entry.0.saturating_add(fit::requested(claim).unwrap_or(0));
        entry.1 = if sum { entry.1.saturating_add(there) } else { entry.1.max(there) };
    };
    for (_, claim, volume) in &plan.reserve {
        add(claim, fit::capacity(volume).unwrap_or(0), true);
    }
    if plan.reserve.is_empty() {
        for (_, claim, left) in &plan.make {
            left.iter().for_each(|left| add(claim, *left, false));
        }
    }
    let scores = classes.values().map(|(requested, there)| match there {
        ..=0 => 0,
        there => 100 - (i128::from(*requested) * 100 / i128::from(*there)).clamp(0, 100) as i64,
    });
    let count = i64::try_from(classes.len()).unwrap_or(1).max(1);
    scores.sum::<i64>() / count
}
