//! What is decided on every shape of a view, as tables.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Condition, Kind, ObjectRef, PersistentVolume, PersistentVolumeClaim, Seen, VolumeNodeAffinity};
use control::{Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict_with};
use serde_json::json;

use crate::{
    Action, ClaimState, Delayed, DriverRoom, Making, Memory, NodeObstacle, NodeView, PendingPod, Reach, Scheduler, View,
};

fn decide(view: &View) -> String {
    // What is said in the status is said in the reason as well.
    verdict_with(&Scheduler::decide(Timestamp(9_000), view, &Memory::default()), |action| match action {
        Action::ReportUnschedulable { pod, .. } => format!("ReportUnschedulable({})", pod.object.key),
        Action::Bind { waited: true, .. } => format!("{action:?} after it had to wait"),
        Action::Bind { .. } | Action::SelectNode { .. } | Action::ReserveVolume { .. } => format!("{action:?}"),
    })
}

fn claim(name: &str) -> Arc<PersistentVolumeClaim> {
    let body = json!({ "metadata": { "name": name, "namespace": "n", "uid": name } });
    Arc::new(serde_json::from_value(body).unwrap())
}

/// A claim of delayed binding whose class makes volumes anywhere.
fn delayed(name: &str) -> Delayed {
    Delayed { claim: claim(name), free: vec![], making: Making::For { allowed: vec![], capacity: None } }
}

/// A free volume that one node reaches.
fn free(name: &str, node: &str) -> Arc<PersistentVolume> {
    let body = json!({ "metadata": { "name": name }, "spec": { "nodeAffinity": only_on(node) } });
    Arc::new(serde_json::from_value(body).unwrap())
}

fn only_on(node: &str) -> Option<VolumeNodeAffinity> {
    let term = json!({ "matchExpressions": [{ "key": "host", "operator": "In", "values": [node] }] });
    Some(serde_json::from_value(json!({ "required": { "nodeSelectorTerms": [term] } })).unwrap())
}

fn node(name: &str, closed: Option<NodeObstacle>, pods: usize) -> NodeView {
    NodeView {
        left_to_drivers: vec![],
        name: name.into(),
        labels: [("host".into(), name.into())].into(),
        closed,
        lacks: vec![],
        drivers: vec![],
        pods,
    }
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
    let selected = |node: &str, in_the_making| ClaimState::NodeSelected {
        delayed: delayed(name),
        node: node.into(),
        in_the_making,
    };
    let reach = |affinity| Reach { affinity, ..Reach::default() };
    let bound =
        |affinity, node: Option<&str>| ClaimState::Bound { reach: reach(affinity), node: node.map(String::from) };
    choices.one_of(
        field,
        &[
            ("missing", ClaimState::Missing { templated: false }),
            ("deleting", ClaimState::Deleting),
            ("lost", ClaimState::Lost("v".into())),
            ("taken", ClaimState::TakenBy("other".into())),
            ("unbound", ClaimState::Unbound),
            ("volume-unseen", ClaimState::VolumeUnseen("v".into())),
            ("awaits-node", ClaimState::AwaitsNode(delayed(name))),
            ("free-on-b", ClaimState::AwaitsNode(Delayed { free: vec![free("f", "b")], ..delayed(name) })),
            (
                "free-on-b-or-never",
                ClaimState::AwaitsNode(Delayed { free: vec![free("f", "b")], making: Making::Never, ..delayed(name) }),
            ),
            ("never", ClaimState::AwaitsNode(Delayed { making: Making::Never, ..delayed(name) })),
            ("reserved-on-b", ClaimState::Reserved { volume: "f".into(), reach: reach(only_on("b")) }),
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
        let pods = ["Gone", "Ended", "Failed", "Placed", "Owed", "Astray", "Anothers", "Deleting", "Pending"];
        let view = match choices.word("pod", &pods) {
            "Gone" => View::Gone,
            "Ended" => View::Ended(None),
            "Failed" => View::Ended(Some("StartError: no such file".into())),
            "Placed" => View::Placed("a".into()),
            "Owed" => {
                let free = |node| Delayed { free: vec![free("f", node)], ..delayed("one") };
                let never = Delayed { making: Making::Never, ..delayed("one") };
                let term = json!([{ "matchLabelExpressions": [{ "key": "host", "values": ["b"] }] }]);
                let allowed = serde_json::from_value(term).unwrap();
                let one = choices.one_of(
                    "one",
                    &[
                        ("make", delayed("one")),
                        ("make-on-b", Delayed { making: Making::For { allowed, capacity: None }, ..delayed("one") }),
                        ("free-here", free("a")),
                        ("free-on-b", free("b")),
                        ("free-on-b-or-never", Delayed { making: Making::Never, ..free("b") }),
                        ("never", never),
                    ],
                );
                let mut claims = vec![("one".into(), one)];
                if choices.flag("two") {
                    claims.push(("two".into(), delayed("two")));
                }
                View::Owed { node: "a".into(), labels: [("host".into(), "a".into())].into(), claims }
            }
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
            &[("unbound", ClaimState::Unbound), ("bound", ClaimState::Bound { reach: Reach::default(), node: None })],
        );
        let mut pod = pending(vec![("data".into(), state)], vec![node("a", None, 0)], false);
        pod.since =
            Timestamp(choices.one_of("created", &[("long-ago", 0), ("just-now", 8_000), ("in-the-future", 9_001)]));
        let told = |message: &str| Condition { message: message.into(), ..Condition::default() };
        let same = told("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims (claim data)");
        pod.told = choices
            .one_of("told", &[("nothing", None), ("another", Some(told("something else"))), ("this", Some(same))]);
        decide(&View::Pending(pod))
    });
}

/// Each filter alone and with the others, on one node: the first that objects decides what is said.
#[test]
fn every_filter() {
    check_table(env!("CARGO_MANIFEST_DIR"), "filters", |choices| {
        let mut only = node("a", choices.flag("closed").then_some(NodeObstacle::Cordoned), 0);
        only.labels.insert(api::names::ZONE.into(), "here".into());
        only.lacks = choices.one_of("lacks", &[("nothing", vec![]), ("pods,cpu", vec!["pods".into(), "cpu".into()])]);
        let room = |absent, limit, new| DriverRoom { driver: "d".into(), absent, limit, used: 2, new };
        only.drivers = choices.one_of(
            "driver",
            &[
                ("unlimited", vec![room(false, None, 1)]),
                ("absent", vec![room(true, None, 1)]),
                ("room", vec![room(false, Some(3), 1)]),
                ("full", vec![room(false, Some(2), 1)]),
                ("full-nothing-new", vec![room(false, Some(2), 0)]),
            ],
        );
        let bound = |affinity, zone: &str| {
            let zones = vec![(api::names::ZONE.into(), [zone.into()].into())];
            ClaimState::Bound { reach: Reach { affinity, zones, ..Reach::default() }, node: None }
        };
        let state = choices.one_of(
            "volume",
            &[
                ("here", bound(None, "here")),
                ("elsewhere", bound(only_on("b"), "here")),
                ("other-zone", bound(None, "there")),
                ("neither", ClaimState::AwaitsNode(Delayed { making: Making::Never, ..delayed("data") })),
            ],
        );
        let view = View::Pending(pending(vec![("data".into(), state)], vec![only], false));
        let decision = Scheduler::decide(Timestamp(9_000), &view, &Memory::default());
        format!("{:?}: {}", decision.why().code, decision.why().text)
    });
}

#[test]
fn sc_6_nodes_are_counted_and_some_are_named() {
    let mut nodes: Vec<NodeView> = (0..5).map(|n| node(&format!("c{n}"), Some(NodeObstacle::Cordoned), 0)).collect();
    nodes.push(node("t", Some(NodeObstacle::Tainted { key: "a".into(), value: "b".into() }), 0));
    nodes.push(node("z", Some(NodeObstacle::NotSelected), 0));
    nodes.push(node("x", None, 0));
    let reach = Reach { affinity: only_on("b"), ..Reach::default() };
    let claims = vec![("data".into(), ClaimState::Bound { reach, node: None })];
    let decision =
        Scheduler::decide(Timestamp(9_000), &View::Pending(pending(claims, nodes, false)), &Memory::default());
    let three = (0..3).map(|n| node(&format!("c{n}"), Some(NodeObstacle::Cordoned), 0)).collect();
    let few = Scheduler::decide(Timestamp(9_000), &View::Pending(pending(vec![], three, false)), &Memory::default());
    assert_eq!(few.why().text, "0/3 nodes are available: 3 node(s) were unschedulable (c0, c1, c2)");
    assert_eq!(
        decision.why().text,
        "0/8 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity (claim data: x), \
         1 node(s) didn't match Pod's node affinity/selector (z), \
         1 node(s) had untolerated taint(s) (taint {a: b}: t), \
         5 node(s) were unschedulable (c0, c1, c2, …)"
    );
}
