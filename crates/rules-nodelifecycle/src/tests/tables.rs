//! What is decided on every shape of a view, as tables.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Condition, Kind, Lease, ObjectRef, Seen, Taint, Time, Toleration, names};
use control::{Pulse, Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict_with};
use serde_json::json;

use crate::{Memory, NodeLife, NodeLifecycle, Noticed, PodNode, PodStay, Vanished, View};

const NOW: Timestamp = Timestamp(10_000_000);

fn decide(view: &View, memory: &Memory) -> String {
    verdict_with(&NodeLifecycle::decide(NOW, view, memory), |action| alloc::format!("{action:?}"))
}

fn ago(millis: u64) -> Timestamp {
    Timestamp(NOW.0 - millis)
}

fn pulse(version: &str, since: u64, read: u64, beats: bool) -> Option<Pulse> {
    let (since, read) = (ago(since), ago(read));
    Some(Pulse { version: Some(version.into()), renewed: Some(since.0), lease_millis: 40_000, since, read, beats })
}

fn taint(key: &str, effect: &str, added: Option<u64>) -> Taint {
    let time_added = added.map(|millis| ago(millis).to_time());
    Taint { key: key.into(), value: String::new(), effect: effect.into(), time_added }
}

fn lease() -> Arc<Lease> {
    let metadata = json!({ "name": "a", "namespace": names::NODE_LEASES, "resourceVersion": "1" });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap())
}

fn node(choices: &mut Choices) -> NodeLife {
    let ready = choices.word("ready", &["untold", "True", "False-long-ago", "False-just-now", "Unknown"]);
    let condition = |status: &str, since: u64| Condition {
        r#type: "Ready".into(),
        status: status.into(),
        last_transition_time: Some(ago(since).to_time()),
        ..Condition::default()
    };
    let conditions = match ready {
        "untold" => vec![],
        "False-long-ago" => vec![condition("False", 60_000)],
        "False-just-now" => vec![condition("False", 2_000)],
        status => vec![condition(status, 60_000)],
    };
    let (no_schedule, no_execute) = ("NoSchedule", "NoExecute");
    let others = || taint("mine", no_execute, None);
    let taints = choices.one_of(
        "taints",
        &[
            ("none", vec![]),
            ("mine", vec![others()]),
            ("unreachable:NoSchedule", vec![others(), taint(names::UNREACHABLE_TAINT, no_schedule, Some(1_000))]),
            (
                "unreachable:both",
                vec![
                    taint(names::UNREACHABLE_TAINT, no_schedule, Some(1_000)),
                    taint(names::UNREACHABLE_TAINT, no_execute, Some(1_000)),
                ],
            ),
            ("not-ready:NoExecute", vec![taint(names::NOT_READY_TAINT, no_execute, Some(1_000))]),
        ],
    );
    let node = Seen { object: ObjectRef::cluster(Kind::Node, "a"), uid: "u".into(), version: "1".into() };
    NodeLife { node, lease: Some(lease()), conditions, taints, company: choices.flag("company") }
}

#[test]
fn every_shape_of_a_node() {
    check_table(env!("CARGO_MANIFEST_DIR"), "nodes", |choices| {
        let pulses = [
            ("unseen", None),
            ("of-another-version", pulse("0", 50_000, 0, false)),
            ("seen-lately", pulse("1", 10_000, 10_000, false)),
            ("seen-long-ago", pulse("1", 40_000, 40_000, false)),
            ("seen-long-ago-and-read", pulse("1", 40_000, 0, false)),
            ("read-too-long-ago", pulse("1", 60_000, 6_000, false)),
        ];
        let memory = Memory { pulse: choices.one_of("lease", &pulses), ..Memory::default() };
        decide(&View::Node(node(choices)), &memory)
    });
}

fn pod(node: PodNode, deleting: bool, over: bool, tolerations: Vec<Toleration>) -> View {
    let pod = Seen { object: ObjectRef::namespaced(Kind::Pod, "n", "p"), uid: "u".into(), version: "1".into() };
    View::Pod(PodStay { pod, node, over, deleting, hasty: false, tolerations })
}

fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
    Toleration {
        key: key.into(),
        operator: "Exists".into(),
        effect: "NoExecute".into(),
        toleration_seconds: seconds,
        ..Toleration::default()
    }
}

#[test]
fn every_shape_of_a_pod_on_a_node_with_taints() {
    check_table(env!("CARGO_MANIFEST_DIR"), "taints", |choices| {
        let bad = |added| taint("bad", "NoExecute", added);
        let taints = choices.one_of(
            "taints",
            &[
                ("none", vec![]),
                ("a-minute-old", vec![bad(Some(60_000))]),
                ("undated", vec![bad(None)]),
                ("two", vec![bad(Some(60_000)), taint("worse", "NoExecute", Some(1_000))]),
            ],
        );
        let tolerations = choices.one_of(
            "tolerates",
            &[
                ("nothing", vec![]),
                ("bad-for-ever", vec![tolerates("bad", None)]),
                ("bad-for-30s", vec![tolerates("bad", Some(30))]),
                ("bad-for-90s", vec![tolerates("bad", Some(90))]),
                ("all-for-ever", vec![tolerates("", None)]),
                ("bad-for-90s,worse-for-10s", vec![tolerates("bad", Some(90)), tolerates("worse", Some(10))]),
                ("bad-for-less-than-nothing", vec![tolerates("bad", Some(-1))]),
            ],
        );
        let noticed = |since: u64| Some(Noticed { taints: vec![bad(None)], since: ago(since) });
        let noticed = choices.one_of("noticed", &[("never", None), ("a-minute-ago", noticed(60_000))]);
        let node = PodNode::There { name: "a".into(), ready: false, unheard: true, out_of_service: false, taints };
        let over = choices.flag("over");
        decide(&pod(node, false, over, tolerations), &Memory { noticed, ..Memory::default() })
    });
}

fn remembered(choices: &mut Choices) -> Option<Pulse> {
    let none = |since| Some(Pulse { version: None, renewed: None, ..pulse("", since, 0, false).unwrap() });
    let pulses = [
        ("unread", None),
        ("no-lease", none(0)),
        ("renewed", pulse("1", 10_000, 0, true)),
        ("not-yet-expired", pulse("1", 10_000, 0, false)),
        ("expired", pulse("1", 100_000, 0, false)),
        ("read-long-ago", pulse("1", 400_000, 60_000, false)),
    ];
    choices.one_of("lease", &pulses)
}

#[test]
fn every_shape_of_a_pod_that_is_being_deleted() {
    check_table(env!("CARGO_MANIFEST_DIR"), "endings", |choices| {
        let (ready, unheard) =
            choices.one_of("ready", &[("True", (true, false)), ("False", (false, false)), ("Unknown", (false, true))]);
        let out_of_service = choices.flag("out-of-service");
        let node = PodNode::There { name: "a".into(), ready, unheard, out_of_service, taints: vec![] };
        let memory = Memory { pulse: remembered(choices), ..Memory::default() };
        decide(&pod(node, true, choices.flag("over"), vec![]), &memory)
    });
}

#[test]
fn every_shape_of_a_pod_without_a_node() {
    check_table(env!("CARGO_MANIFEST_DIR"), "orphans", |choices| {
        let node = choices.one_of("node", &[("none", PodNode::None), ("missing", PodNode::Missing("a".into()))]);
        let gone = |since: u64, read: u64| Some(Vanished { since: ago(since), read: ago(read) });
        let read = [
            ("never", None),
            ("just-now", gone(0, 0)),
            ("long-ago", gone(50_000, 50_000)),
            ("long-ago-and-again", gone(50_000, 0)),
            ("too-long-ago", gone(90_000, 6_000)),
        ];
        let memory =
            Memory { vanished: choices.one_of("gone", &read), pulse: remembered(choices), ..Memory::default() };
        decide(&pod(node, choices.flag("deleting"), false, vec![]), &memory)
    });
}

/// A clock that is ahead of ours wrote the taint: it counts from when we noticed it.
#[test]
fn a_taint_of_the_future_is_noticed_first() {
    let added = Some(Time::from_unix_millis(NOW.0 + 60_000));
    let taints = vec![Taint { time_added: added, ..taint("bad", "NoExecute", None) }];
    let node = PodNode::There { name: "a".into(), ready: true, unheard: false, out_of_service: false, taints };
    let view = pod(node, false, false, vec![tolerates("bad", Some(30))]);
    assert!(decide(&view, &Memory::default()).contains("NoteTaints"));
}
