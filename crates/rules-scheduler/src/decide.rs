use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{PersistentVolumeClaim, names};
use control::{Decision, Timestamp, Why};

use crate::filters::{self, binding};
use crate::{Action, ClaimState, Delayed, Memory, NodeObstacle, NodeView, PendingPod, Reason, View};

/// How long pod and claims that were created together may take to find together before users are told that the pod
/// waits. The API gives the time of creation in whole seconds.
const GRACE_MILLIS: u64 = 3_000;
/// So many nodes are named of those that do not take a pod for the same reason.
const NAMED: usize = 3;

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Gone => Decision::Rest(Why::settled(Reason::PodGone, "the pod does not exist")),
        View::Ended(None) => Decision::Rest(Why::settled(Reason::PodEnded, "the pod has ended")),
        View::Ended(Some(failure)) => {
            Decision::Rest(Why::settled(Reason::PodEnded, format!("the pod has failed: {failure}")))
        }
        View::Placed(node) => Decision::Rest(Why::settled(Reason::Placed, format!("the pod is on node {node}"))),
        View::Owed { node, labels, claims } => settle(node, labels, claims),
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
        View::Pending(pending) => match memory.awaits(now, &pending.pod.version) {
            Some((node, until)) => {
                let text = format!("the pod got node {node}, which its watch has not shown yet");
                Decision::Wait(until, Why::waiting(Reason::Placing, text))
            }
            None => tell(now, pending, place(pending)),
        },
    }
}

/// A pod on a node has claims that wait to be told one. The node is the pod's, and each write goes to the claim and the
/// volume as they were seen: whoever else served the claim meanwhile was first.
fn settle(node: &str, labels: &BTreeMap<String, String>, claims: &[(String, Delayed)]) -> Decision<Action, Reason> {
    for (name, delayed) in claims {
        let claim = delayed.claim.clone();
        match binding::settle(delayed, node, labels) {
            Ok(Some(volume)) => {
                let text = format!("claim {name} gets volume {}, which node {node} reaches", volume.metadata.name);
                let act = Action::ReserveVolume { volume: volume.clone(), claim, node: node.into() };
                return Decision::Do(act, Why::waiting(Reason::ReservingVolume, text));
            }
            Ok(None) => {
                let text = format!("claim {name} gets its volume for node {node}, where its pod is already");
                let act = Action::SelectNode { claim, node: node.into() };
                return Decision::Do(act, Why::waiting(Reason::SelectingNode, text));
            }
            Err(binding::NoWay) => {}
        }
    }
    let names: Vec<&str> = claims.iter().map(|(name, _)| name.as_str()).collect();
    let text = format!("the pod is on node {node}, where there is no volume for claims {}", names.join(", "));
    rest(Reason::PlacedWithoutVolume, text)
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
    if pending.nodes.is_empty() {
        return rest(Reason::NoNodes, "no nodes available to schedule pods".into());
    }
    if let Some((code, text)) = obstacle(pending) {
        return rest(code, format!("0/{} nodes are available: {text}", pending.nodes.len()));
    }
    match choose(pending) {
        Ok(node) => prepare_or_bind(pending, node),
        Err(why) => match fixed_elsewhere(pending) {
            Some((code, text)) => rest(code, format!("{} ({text})", why.text)),
            None => Decision::Rest(why),
        },
    }
}

fn rest(code: Reason, text: String) -> Decision<Action, Reason> {
    Decision::Rest(Why::waiting(code, text))
}

/// SC-1, SC-6: what keeps the pod from any node before nodes are looked at, with the reasons of kube-scheduler and in
/// its order: a claim that does not exist, one that is in no state to be used, one that waits to be bound, one whose
/// volume does not exist.
fn obstacle(pending: &PendingPod) -> Option<(Reason, String)> {
    let of_claims = pending.claims.iter().filter_map(|(name, state)| claim_obstacle(name, state));
    let (pod, foreign) = (&pending.pod.object.key, pending.template.as_ref());
    let foreign = foreign.map(|claim| {
        let text = format!("PVC {}/{claim} was not created for pod {pod} (pod is not owner)", pod.namespace);
        (1, Reason::ClaimNotOwned, text)
    });
    let first = foreign.into_iter().chain(of_claims).min_by_key(|(rank, ..)| *rank);
    first.map(|(_, code, text)| (code, text))
}

/// The same of one claim, with its place in that order.
fn claim_obstacle(name: &str, state: &ClaimState) -> Option<(u8, Reason, String)> {
    Some(match state {
        ClaimState::Missing { templated: false } => {
            (0, Reason::ClaimMissing, format!("persistentvolumeclaim \"{name}\" not found"))
        }
        ClaimState::Missing { templated: true } => (
            1,
            Reason::ClaimMissing,
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""),
        ),
        ClaimState::Deleting => {
            (1, Reason::ClaimBeingDeleted, format!("persistentvolumeclaim \"{name}\" is being deleted"))
        }
        ClaimState::Lost(volume) => (
            1,
            Reason::ClaimLost,
            format!("persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""),
        ),
        ClaimState::Unbound => {
            (2, Reason::ClaimUnbound, format!("pod has unbound immediate PersistentVolumeClaims (claim {name})"))
        }
        ClaimState::VolumeUnseen(volume) => {
            (3, Reason::VolumeNotSeen, format!("persistentvolume \"{volume}\" not found (claim {name})"))
        }
        ClaimState::TakenBy(_)
        | ClaimState::AwaitsNode(_)
        | ClaimState::NodeSelected { .. }
        | ClaimState::Reserved { .. }
        | ClaimState::Bound { .. } => return None,
    })
}

/// A volume is being made for a node, and that node must be the pod's. If the node is gone and nothing was begun, the
/// claim is free to go elsewhere; otherwise we wait.
fn fixed_elsewhere(pending: &PendingPod) -> Option<(Reason, String)> {
    let mut fixed: Option<(&str, &str)> = None;
    for (name, state) in &pending.claims {
        let ClaimState::NodeSelected { node, in_the_making: true, .. } = state else { continue };
        match fixed {
            None => fixed = Some((name, node)),
            Some((_, same)) if same == node => {}
            Some((other, elsewhere)) => {
                let text = format!("claim {name} gets its volume for node {node}, claim {other} for node {elsewhere}");
                return Some((Reason::NodesDisagree, text));
            }
        }
    }
    let (name, node) = fixed?;
    let text = match pending.nodes.iter().find(|known| known.name == node) {
        None => format!("claim {name} gets its volume for node {node}, which does not exist"),
        Some(known) => {
            format!("claim {name} gets its volume for node {node}, which {}", known.closed.as_ref()?.clause())
        }
    };
    Some((Reason::SelectedNodeClosed, text))
}

fn choose(pending: &PendingPod) -> Result<&NodeView, Why<Reason>> {
    let mut objections = Vec::new();
    let open = pending.nodes.iter().filter(|node| {
        let objection = filters::objection(pending, node).map(|objection| (node.name.as_str(), objection));
        let open = objection.is_none();
        objections.extend(objection);
        open
    });
    let best = open.min_by_key(|node| rank(pending, node));
    best.ok_or_else(|| nobody(&objections))
}

/// The least one wins: a node that a claim has already, then most storage left, then fewest pods, then by name.
type Rank<'a> = (bool, i64, usize, &'a str);

fn rank<'a>(pending: &PendingPod, node: &'a NodeView) -> Rank<'a> {
    let left = binding::score(&binding::plan(pending, node));
    (!preferred(pending, node), -left, node.pods, &node.name)
}

/// The nodes with one reason, and which of them object because of what.
type Objectors<'a> = (BTreeSet<&'a str>, BTreeMap<&'a NodeObstacle, Vec<&'a str>>);

/// SC-6: why no node takes the pod, in the manner of the scheduler that people know: so many of so many, and why,
/// sorted as texts. Which nodes and which claim is ours to add.
fn nobody(objections: &[(&str, (usize, Vec<NodeObstacle>))]) -> Why<Reason> {
    let furthest = objections.iter().map(|(_, (filter, _))| *filter).max().unwrap_or_default();
    let mut reasons: BTreeMap<String, Objectors<'_>> = BTreeMap::new();
    for (node, (_, obstacles)) in objections {
        for obstacle in obstacles {
            let (nodes, subjects) = reasons.entry(obstacle.reason()).or_default();
            nodes.insert(node);
            subjects.entry(obstacle).or_default().push(node);
        }
    }
    let said = reasons.iter().map(|(reason, (nodes, subjects))| {
        let subjects = subjects.iter().map(|(obstacle, nodes)| {
            let subject = obstacle.subject().map(|subject| format!("{subject}: ")).unwrap_or_default();
            format!("{subject}{}", some(nodes.iter().copied(), ", "))
        });
        format!("{} {reason} ({})", nodes.len(), some(subjects, "; "))
    });
    let mut said: Vec<String> = said.collect();
    said.sort();
    let text = format!("0/{} nodes are available: {}", objections.len(), said.join(", "));
    Why::waiting(filters::code(furthest), text)
}

/// The first few of many.
fn some<T: AsRef<str>>(all: impl Iterator<Item = T>, between: &str) -> String {
    let mut text = String::new();
    for (number, one) in all.take(NAMED + 1).enumerate() {
        let between = if number == 0 { "" } else { between };
        text = format!("{text}{between}{}", if number < NAMED { one.as_ref() } else { "…" });
    }
    text
}

/// A node was selected for one of the claims before: staying with it moves no data and changes no annotation.
fn preferred(pending: &PendingPod, node: &NodeView) -> bool {
    pending.claims.iter().any(|(_, state)| match state {
        ClaimState::Bound { node: selected, .. } => selected.as_ref() == Some(&node.name),
        ClaimState::NodeSelected { node: selected, .. } => *selected == node.name,
        ClaimState::AwaitsNode(_)
        | ClaimState::Reserved { .. }
        | ClaimState::Missing { .. }
        | ClaimState::Deleting
        | ClaimState::Lost(_)
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::VolumeUnseen(_) => false,
    })
}

/// SC-10: gives free volumes to the claims of delayed binding, tells the others the node, waits for all their volumes,
/// then places the pod. Nothing is taken back if it cannot be placed after all: the volumes are the claims', and the
/// next look goes by where they are.
fn prepare_or_bind(pending: &PendingPod, node: &NodeView) -> Decision<Action, Reason> {
    let plan = binding::plan(pending, node);
    if let Some((name, claim, volume)) = plan.reserve.first() {
        let (claim, volume) = ((*claim).clone(), (*volume).clone());
        let text = format!("claim {name} gets volume {}, which node {} reaches", volume.metadata.name, node.name);
        return Decision::Do(
            Action::ReserveVolume { volume, claim, node: node.name.clone() },
            Why::waiting(Reason::ReservingVolume, text),
        );
    }
    let told = |claim: &PersistentVolumeClaim| claim.metadata.annotation(names::SELECTED_NODE) == Some(&node.name);
    let mut untold = pending.claims.iter().filter_map(|(name, _)| plan.make.iter().find(|(made, ..)| made == name));
    if let Some((name, claim, _)) = untold.find(|(_, claim, _)| !told(claim)) {
        return Decision::Do(
            Action::SelectNode { claim: (*claim).clone(), node: node.name.clone() },
            Why::waiting(Reason::SelectingNode, format!("claim {name} gets its volume for node {}", node.name)),
        );
    }
    let waiting: Vec<&str> =
        pending.claims.iter().filter(|(_, state)| awaited(state)).map(|(name, _)| &**name).collect();
    if !waiting.is_empty() {
        let text = format!("waiting for volumes for node {} to be bound to claims {}", node.name, waiting.join(", "));
        return rest(Reason::VolumeForNodeAwaited, text);
    }
    Decision::Do(
        Action::Bind { pod: pending.pod.clone(), node: node.name.clone(), waited: pending.told.is_some() },
        Why::waiting(Reason::Placing, format!("placing the pod on node {}", node.name)),
    )
}

/// The claim will be bound without our doing more.
fn awaited(state: &ClaimState) -> bool {
    match state {
        ClaimState::NodeSelected { .. } | ClaimState::Reserved { .. } | ClaimState::AwaitsNode(_) => true,
        ClaimState::Bound { .. }
        | ClaimState::Missing { .. }
        | ClaimState::Deleting
        | ClaimState::Lost(_)
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::VolumeUnseen(_) => false,
    }
}
