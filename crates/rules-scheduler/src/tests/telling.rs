//! Who hears of a pod that waits, where and when.

use api::{Kind, ObjectKey, Value};
use control::{Action as _, Decision, EventType, Lane, Narrate, Rules, Timestamp, Why};
use serde_json::json;

use super::scene::Scene;
use crate::{Action, Memory, Reason, Scheduler};

fn told(why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    Scheduler::rest_event(&ObjectKey::new("n", "p"), why)
}

#[test]
fn a_pod_that_waits_is_told_of_in_an_event() {
    assert_eq!(told(&Why::waiting(Reason::NoNodes, "")), Some((EventType::Warning, "FailedScheduling")));
    assert_eq!(told(&Why::settled(Reason::Placed, "")), None);
    assert_eq!(told(&Why::waiting(Reason::OtherScheduler, "")), None, "that one tells it");
}

// A node that registers again, and its pods before it.
#[test]
fn a_node_that_is_missing_is_told_of_when_it_stays_away() {
    assert_eq!(Scheduler::patience(&Why::waiting(Reason::NodeMissing, "")), 2_000);
    assert_eq!(Scheduler::patience(&Why::waiting(Reason::NoNodes, "")), 0);
}

/// What is done about pod `p` with this condition, when it is old enough to be told.
fn report(condition: Value) -> Option<Action> {
    let status = json!({ "phase": "Pending", "conditions": [condition] });
    let scene = Scene::default().with(Kind::Pod, json!({ "metadata": { "name": "p" }, "status": status }));
    let view = Scheduler::view(&ObjectKey::new("n", "p"), &scene.cache, &());
    match Scheduler::decide(Timestamp(9_000), &view, &Memory::default()) {
        Decision::Do(action, _) => Some(action),
        _ => None,
    }
}

#[test]
fn only_our_own_condition_says_that_users_were_told() {
    let message = "no nodes available to schedule pods";
    let condition = |kind: &str, status: &str, reason: &str| {
        report(json!({ "type": kind, "status": status, "reason": reason, "message": message }))
    };
    assert_eq!(condition("PodScheduled", "False", "Unschedulable"), None);
    let unlike = [
        ("Ready", "False", "Unschedulable"),
        ("PodScheduled", "True", "Unschedulable"),
        ("PodScheduled", "False", "SchedulingGated"),
    ];
    for (kind, status, reason) in unlike {
        let action = condition(kind, status, reason).unwrap();
        assert_eq!(action.name(), "ReportUnschedulable", "{kind} {status} {reason}");
        assert_eq!(action.lane(), Lane::numbered(1), "it holds up no other pod");
        assert_eq!(action.news().failed, Some("FailedScheduling"));
    }
}
