//! What is decided on every shape of a view, as tables.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{ObjectKey, PersistentVolumeClaim, VolumeNodeAffinity};
use control::{Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict_with};
use serde_json::json;

use crate::{ClaimState, NodeView, PendingPod, Scheduler, View};

fn decide(view: &View) -> String {
    verdict_with(&Scheduler::decide(Timestamp(0), view, &()), |action| format!("{action:?}"))
}

fn claim(name: &str) -> Arc<PersistentVolumeClaim> {
    let body = json!({ "metadata": { "name": name, "namespace": "n", "uid": name } });
    Arc::new(serde_json::from_value(body).unwrap())
}

fn only_on(node: &str) -> Option<VolumeNodeAffinity> {
    let term = json!({ "matchExpressions": [{ "key": "host", "operator": "In", "values": [node] }] });
    Some(serde_json::from_value(json!({ "required": { "nodeSelectorTerms": [term] } })).unwrap())
}

fn node(name: &str, closed: Option<&'static str>, pods: usize) -> NodeView {
    NodeView { name: name.into(), labels: [("host".into(), name.into())].into(), closed, pods }
}

/// One to three nodes: `a` is the emptier one, `c` is closed.
fn nodes(choices: &mut Choices) -> Vec<NodeView> {
    let (a, b, c) = (node("a", None, 1), node("b", None, 2), node("c", Some("is cordoned"), 0));
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

fn pending(claims: Vec<(String, ClaimState)>, nodes: Vec<NodeView>, template: bool) -> View {
    let pod = ObjectKey::new("n", "p");
    View::Pending(PendingPod { pod, uid: "u".into(), template: template.then(|| "t".into()), claims, nodes })
}

#[test]
fn every_shape_of_a_pod() {
    check_table(env!("CARGO_MANIFEST_DIR"), "pods", |choices| {
        let view = match choices.word("pod", &["Gone", "Ended", "Placed", "Deleting", "Pending"]) {
            "Gone" => View::Gone,
            "Ended" => View::Ended,
            "Placed" => View::Placed("a".into()),
            "Deleting" => View::Deleting,
            _pending => {
                let template = choices.flag("template");
                let claims = match choices.flag("claim") {
                    true => vec![("data".into(), state(choices, "data", "data"))],
                    false => vec![],
                };
                pending(claims, nodes(choices), template)
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
        let nodes = vec![node("a", None, 1), node("b", None, 2), node("c", Some("is cordoned"), 0)];
        decide(&pending(vec![one, two], nodes, false))
    });
}
