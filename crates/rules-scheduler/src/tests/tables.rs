//! What is decided on every shape of a view, as tables.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Condition, Kind, ObjectRef, PersistentVolumeClaim, Seen, VolumeNodeAffinity};
use control::{Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict_with};
use serde_json::json;

use crate::{Action, ClaimState, NodeObstacle, NodeView, PendingPod, Scheduler, View};

fn decide(view: &View) -> String {
    // What is said in the status is said in the reason as well.
    verdict_with(&Scheduler::decide(Timestamp(9_000), view, &()), |action| match action {
        Action::ReportUnschedulable { pod, .. } => format!("ReportUnschedulable({})", pod.object.key),
        Action::Bind { waited: true, .. } => format!("{action:?} after it had to wait"),
        Action::Bind { .. } | Action::SelectNode { .. } => format!("{action:?}"),
    })
}

fn claim(name: &str) -> Arc<PersistentVolumeClaim> {
    let body = json!({ "metadata": { "name": name, "namespace": "n", "uid": name } });
    Arc::new(serde_json::from_value(body).unwrap())
}

fn only_on(node: &str) -> Option<VolumeNodeAffinity> {
    let term = json!({ "matchExpressions": [{ "key": "host", "operator": "In", "values": [node] }] });
    Some(serde_json::from_value(json!({ "required": { "nodeSelectorTerms": [term] } })).unwrap())
}

fn node(name: &str, closed: Option<NodeObstacle>, pods: usize) -> NodeView {
    NodeView { name: name.into(), labels: [("host".into(), name.into())].into(), closed, pods }
}

/// One to three nodes: `a` is the emptier one, `c` is closed.
fn nodes(choices: &mut Choices) -> Vec<NodeView> {
    let (a, b, c) = (node("a", None, 1), node("b", None, 2), node("c", Some(NodeObstacle::Cordoned), 0));
    choices.one_of(
        "nodes",
        &[("none", vec![]), ("c-closed", vec![c.clone()]), ("b", vec![b.clone()]), ("a,b,c-closed", vec![a, b, c])],
    )
}

fn state(choices: &mut Choices, name: &str, field: &'static str) -> ClaimState {
    let selected =
        |node: &str, in_the_making| ClaimState::NodeSelected { claim: claim(name), node: node.into(), in_the_making };
    let bound = |affinity, node: Option<&str>| ClaimState::Bound { affinity, node: node.map(String::from) };
    choices.one_of(
        field,
        &[
            ("missing", ClaimState::Missing),
            ("deleting", ClaimState::Deleting),
            ("lost", ClaimState::Lost),
            ("taken", ClaimState::TakenBy("other".into())),
            ("unbound", ClaimState::Unbound),
            ("volume-unseen", ClaimState::VolumeUnseen("v".into())),
            ("awaits-node", ClaimState::AwaitsNode(claim(name))),
            ("selected-b", selected("b", false)),
            ("making-b", selected("b", true)),
            ("making-c", selected("c", true)),
            ("making-gone", selected("gone", true)),
            ("bound", bound(None, None)),
            ("bound-made-for-b", bound(None, Some("b"))),
            ("bound-only-on-b", bound(only_on("b"), None)),
            ("bound-only-on-c", bound(only_on("c"), None)),
        ],
    )
}

fn pending(claims: Vec<(String, ClaimState)>, nodes: Vec<NodeView>, template: bool) -> PendingPod {
    let pod = Seen { object: ObjectRef::namespaced(Kind::Pod, "n", "p"), uid: "u".into(), version: "1".into() };
    let template = template.then(|| "t".into());
    PendingPod { pod, since: Timestamp(5_000), told: None, template, claims, nodes }
}

#[test]
fn every_shape_of_a_pod() {
    check_table(env!("CARGO_MANIFEST_DIR"), "pods", |choices| {
        let pods = ["Gone", "Ended", "Failed", "Placed", "Astray", "Anothers", "Deleting", "Pending"];
        let view = match choices.word("pod", &pods) {
            "Gone" => View::Gone,
            "Ended" => View::Ended(None),
            "Failed" => View::Ended(Some("StartError: no such file".into())),
            "Placed" => View::Placed("a".into()),
            "Astray" => View::Astray { node: "gone".into(), deleting: choices.flag("deleting") },
            "Anothers" => View::Anothers("mine".into()),
            "Deleting" => View::Deleting,
            _pending => {
                let template = choices.flag("template");
                let claims = match choices.flag("claim") {
                    true => vec![("data".into(), state(choices, "data", "data"))],
                    false => vec![],
                };
                View::Pending(pending(claims, nodes(choices), template))
            }
        };
        decide(&view)
    });
}

#[test]
fn every_pair_of_claims() {
    check_table(env!("CARGO_MANIFEST_DIR"), "pairs", |choices| {
        let one = ("one".into(), state(choices, "one", "one"));
        let two = ("two".into(), state(choices, "two", "two"));
        let nodes = vec![node("a", None, 1), node("b", None, 2), node("c", Some(NodeObstacle::Cordoned), 0)];
        decide(&View::Pending(pending(vec![one, two], nodes, false)))
    });
}

/// What is told about a pod that waits, and when.
#[test]
fn every_telling() {
    check_table(env!("CARGO_MANIFEST_DIR"), "tellings", |choices| {
        let state = choices.one_of(
            "claim",
            &[("unbound", ClaimState::Unbound), ("bound", ClaimState::Bound { affinity: None, node: None })],
        );
        let mut pod = pending(vec![("data".into(), state)], vec![node("a", None, 0)], false);
        pod.since =
            Timestamp(choices.one_of("created", &[("long-ago", 0), ("just-now", 8_000), ("in-the-future", 9_001)]));
        let told = |message: &str| Condition { message: message.into(), ..Condition::default() };
        let same = told("waiting for claim data to be bound");
        pod.told = choices
            .one_of("told", &[("nothing", None), ("another", Some(told("something else"))), ("this", Some(same))]);
        decide(&View::Pending(pod))
    });
}

#[test]
fn nodes_are_counted_and_some_are_named() {
    let mut nodes: Vec<NodeView> = (0..5).map(|n| node(&format!("c{n}"), Some(NodeObstacle::Cordoned), 0)).collect();
    nodes.push(node("t", Some(NodeObstacle::Tainted("a=b:NoSchedule".into())), 0));
    nodes.push(node("z", Some(NodeObstacle::NotSelected), 0));
    nodes.push(node("x", None, 0));
    let claims = vec![("data".into(), ClaimState::Bound { affinity: only_on("b"), node: None })];
    let decision = Scheduler::decide(Timestamp(9_000), &View::Pending(pending(claims, nodes, false)), &());
    assert_eq!(
        decision.why().text,
        "0/8 nodes are available: 5 cordoned (c0, c1, c2, …), \
         1 with taint a=b:NoSchedule, which the pod does not tolerate (t), \
         1 not matching the pod's nodeSelector or node affinity (z), \
         1 that cannot reach the volume of claim data (x)"
    );
}
