//! Each fact, word and memory by itself.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Lease, Object, ObjectKey, ObjectRef, Seen, Taint, Time, Toleration, Value, names};
use control::{Action as _, Attempt, Cache, Decision, Lane, News, Outcome, Reply, Rules, Timestamp};
use prove_lab::object;
use serde_json::json;

use crate::stay::{Stay, stay};
use crate::{Action, Key, Memory, NodeLife, NodeLifecycle, PodNode, PodStay, Vanished, View};

const NOW: Timestamp = Timestamp(10_000_000);

fn seen(target: ObjectRef) -> Seen {
    Seen { object: target, uid: "u".into(), version: "1".into() }
}

fn node_seen() -> Seen {
    seen(ObjectRef::cluster(Kind::Node, "a"))
}

fn pod_seen() -> Seen {
    seen(ObjectRef::namespaced(Kind::Pod, "n", "p"))
}

fn lease(version: &str) -> Arc<Lease> {
    let metadata = json!({ "name": "a", "namespace": names::NODE_LEASES, "resourceVersion": version });
    let spec = json!({ "holderIdentity": "a", "leaseDurationSeconds": 40 });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint {
        key: key.into(),
        effect: effect.into(),
        time_added: Some(Timestamp(9_000_000).to_time()),
        ..Taint::default()
    }
}

/// Node `a`, which said this of itself at that time.
fn node(conditions: Value, taints: Vec<Taint>) -> NodeLife {
    let conditions = serde_json::from_value(conditions).unwrap();
    NodeLife { node: node_seen(), lease: Some(lease("1")), conditions, taints, company: true }
}

fn ready(status: &str, heartbeat: &str) -> Value {
    json!([{ "type": "Ready", "status": status, "lastHeartbeatTime": heartbeat }])
}

const EARLY: &str = "2030-01-01T00:00:00Z";
const LATE: &str = "2030-01-01T00:05:00Z";

/// What is kept in mind after the node was heard of, so long ago.
fn heard(node: &NodeLife, millis: u64) -> Memory {
    let did = Action::NoteLife { node: "a".into(), lease: node.lease.clone(), heartbeat: node.heartbeat() };
    NodeLifecycle::remember(Timestamp(NOW.0 - millis), Memory::default(), &did, &Outcome::Done(Reply::Nothing))
}

fn decide(node: &NodeLife, memory: &Memory) -> Decision<Action, crate::Reason> {
    NodeLifecycle::decide(NOW, &View::Node(node.clone()), memory)
}

// A node without a Lease that is renewed still lives while it speaks for itself.
#[test]
fn what_a_node_says_of_itself_is_a_sign_of_life() {
    let memory = heard(&node(ready("True", EARLY), vec![]), 1_000);
    assert_eq!(memory.heartbeat, Some(Time(EARLY.into())));
    let again = decide(&node(ready("True", EARLY), vec![]), &memory);
    assert!(matches!(again, Decision::Wait(..)), "{}", again.why());
    let later = decide(&node(ready("True", LATE), vec![]), &memory);
    assert!(matches!(later, Decision::Do(Action::NoteLife { .. }, _)), "{}", later.why());
}

// What a node never said of itself is said for it, under the name that everybody looks for.
#[test]
fn a_node_that_never_spoke_is_said_to_be_not_ready() {
    let silent = node(json!([]), vec![]);
    let mut memory = heard(&silent, 50_000);
    let did = Action::ReadLease { node: "a".into(), known: Some("1".into()) };
    let found = Outcome::Done(Reply::Object(Object::Lease(lease("1"))));
    memory = NodeLifecycle::remember(NOW, memory, &did, &found);
    let Decision::Do(Action::MarkUnknown { conditions, .. }, _) = decide(&silent, &memory) else { panic!() };
    let said: Vec<(&str, &str)> = conditions.iter().map(|one| (one.r#type.as_str(), one.status.as_str())).collect();
    assert_eq!(said, [("Ready", "Unknown")]);
}

#[test]
fn a_taint_of_what_the_node_was_before_goes() {
    let taints = vec![
        taint(names::UNREACHABLE_TAINT, "NoSchedule"),
        taint(names::UNREACHABLE_TAINT, "NoExecute"),
        taint(names::NOT_READY_TAINT, "NoSchedule"),
    ];
    let view = node(ready("Unknown", EARLY), taints);
    let Decision::Do(Action::SetTaints { taints, back, .. }, _) = decide(&view, &heard(&view, 1_000)) else { panic!() };
    assert!(taints.iter().all(|taint| taint.key == names::UNREACHABLE_TAINT) && taints.len() == 2 && !back);
}

#[test]
fn a_node_is_back_only_if_it_was_not_heard_of() {
    for (key, is_back) in [(names::UNREACHABLE_TAINT, true), (names::NOT_READY_TAINT, false)] {
        let view = node(ready("True", EARLY), vec![taint(key, "NoSchedule"), taint("mine", "NoSchedule")]);
        let decision = decide(&view, &heard(&view, 1_000));
        let Decision::Do(action @ Action::SetTaints { back, .. }, _) = decision else { panic!("{}", decision.why()) };
        assert_eq!(back, is_back, "{key}");
        assert_eq!(action.news().done.is_some(), is_back);
    }
}

// Another condition that is Unknown says nothing of whether the node is heard of.
#[test]
fn a_node_is_not_heard_of_when_its_readiness_is_unknown() {
    let unheard = |conditions: Value| {
        let mut cache = Cache::default();
        let metadata = json!({ "name": "a", "uid": "u" });
        cache.set(object(Kind::Node, json!({ "metadata": metadata, "status": { "conditions": conditions } })));
        let metadata = json!({ "namespace": "n", "name": "p", "uid": "u" });
        cache.set(object(Kind::Pod, json!({ "metadata": metadata, "spec": { "nodeName": "a" } })));
        match NodeLifecycle::view(&Key::Pod(ObjectKey::new("n", "p")), &cache, &()) {
            View::Pod(PodStay { node: PodNode::There { unheard, .. }, .. }) => unheard,
            other => panic!("{other:?}"),
        }
    };
    assert!(unheard(ready("Unknown", EARLY)));
    assert!(!unheard(ready("False", EARLY)));
    assert!(!unheard(json!([{ "type": "DiskPressure", "status": "Unknown" }, { "type": "Ready", "status": "False" }])));
}

// What was read is good for as long as that, and no longer.
#[test]
fn a_read_of_five_seconds_ago_still_shows_that_the_node_is_gone() {
    let decide = |read: u64| {
        let vanished = Vanished { since: Timestamp(NOW.0 - 90_000), read: Timestamp(NOW.0 - read) };
        let node = PodNode::Missing("a".into());
        let pod = PodStay { pod: pod_seen(), node, over: false, deleting: false, hasty: false, tolerations: vec![] };
        let memory = Memory { vanished: Some(vanished), ..Memory::default() };
        match NodeLifecycle::decide(NOW, &View::Pod(pod), &memory) {
            Decision::Do(action, _) => action.name(),
            other => panic!("{}", other.why()),
        }
    };
    assert_eq!(decide(5_000), "ReadLease");
    assert_eq!(decide(5_001), "CheckNode");
}

#[test]
fn the_taint_that_leaves_the_least_time_decides() {
    let tolerates = |key: &str, seconds: i64| Toleration {
        key: key.into(),
        operator: "Exists".into(),
        toleration_seconds: Some(seconds),
        ..Toleration::default()
    };
    let taints = [taint("one", "NoExecute"), taint("two", "NoExecute")];
    let until = |one: i64, two: i64| match stay(NOW, &taints, &[tolerates("one", one), tolerates("two", two)], None) {
        Stay::Until(until, taint) => (until.0, taint.key.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(until(30, 60), (9_030_000, "one".into()));
    assert_eq!(until(60, 30), (9_030_000, "two".into()));
    assert_eq!(until(30, 30), (9_030_000, "one".into()), "the first of two that leave the same");
}

#[test]
fn a_lease_that_was_renewed_meanwhile_is_read_again_later() {
    let read = |known: &str, found: &str| {
        let action = Action::ReadLease { node: "a".into(), known: Some(known.into()) };
        action.attempt(&Outcome::Done(Reply::Object(Object::Lease(lease(found)))))
    };
    assert_eq!(read("1", "1"), Attempt::Neutral);
    assert!(matches!(read("1", "2"), Attempt::Outrun(_)));
}

// The reasons are those of upstream.
#[test]
fn what_is_told_of_each_action() {
    let told = |action: &Action| {
        let News { begun, done, .. } = action.news();
        (begun.map(|(reason, _)| reason), done.map(|(reason, _)| reason))
    };
    let mark = Action::MarkUnknown { node: node_seen(), conditions: vec![] };
    let evict = Action::Evict { pod: pod_seen(), hasty: false, because: "x".into() };
    let remove = Action::Remove { pod: pod_seen(), evidence: "x".into() };
    let check = Action::CheckNode { node: "a".into() };
    assert_eq!(told(&mark), (None, Some("NodeNotReady")));
    assert_eq!(told(&evict), (Some("TaintManagerEviction"), None));
    assert_eq!(told(&remove), (Some("DeletionByPodGC"), None));
    assert_eq!(told(&check), (None, None));
    // What is only kept in mind is held up by nothing.
    let note = Action::NoteTaints { pod: ObjectKey::new("n", "p"), taints: vec![] };
    assert_eq!((note.lane(), check.lane()), (Lane::numbered(1), Lane::default()));
}
