//! When probes and hooks are run, and what is taken for what they say: each fact by itself.

use alloc::boxed::Box;

use api::{ObjectKey, Value};
use control::host::Handler;
use control::{Decision, Rules as _, Timestamp};
use serde_json::json;

use super::plain::{container, local, pod_of};
use crate::checks::{self, CheckKind, CheckSpec};
use crate::{Action, CheckKey, CheckView, Checked, Memory, Node, View};

#[test]
fn what_a_probe_does_not_say_is_as_kubelet_has_it() {
    let of = |probe: Value| {
        let mut whole = json!({ "exec": { "command": ["x"] } });
        super::plain::merge(&mut whole, &probe);
        let pod = pod_of(json!({ "spec": { "containers": [container("c", json!({ "livenessProbe": whole }))] } }));
        checks::spec(&pod, &pod.spec.containers[0], CheckKind::Liveness).unwrap()
    };
    let usual = CheckSpec {
        handler: Ok(Handler::Exec { command: alloc::vec!["x".into()] }),
        timeout_millis: 1_000,
        delay_millis: 0,
        period_millis: 10_000,
        limits: (1, 3),
        grace_seconds: None,
    };
    assert_eq!(of(json!({})), usual);
    let zero = json!({ "timeoutSeconds": 0, "periodSeconds": 0, "successThreshold": 0, "failureThreshold": 0 });
    assert_eq!(of(zero), usual, "zero says nothing");
    let own = json!({ "timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 4, "failureThreshold": 5,
        "initialDelaySeconds": 6, "terminationGracePeriodSeconds": 7 });
    let said = CheckSpec {
        timeout_millis: 2_000,
        delay_millis: 6_000,
        period_millis: 3_000,
        limits: (4, 5),
        grace_seconds: Some(7),
        ..usual
    };
    assert_eq!(of(own), said);
}

#[test]
fn a_port_is_a_number_of_a_port_or_a_name_that_the_container_gives_one() {
    for (port, number) in [
        (json!(80), Some(80)),
        (json!("80"), Some(80)),
        (json!("web"), Some(8080)),
        (json!(65535), Some(65535)),
        (json!(65536), None),
        (json!(0), None),
        (json!("0"), None),
        (json!(-1), None),
        (json!("other"), None),
    ] {
        let ports = json!([{ "name": "web", "containerPort": 8080 }]);
        let more = json!({ "ports": ports, "livenessProbe": { "tcpSocket": { "port": port } } });
        let pod = pod_of(json!({ "spec": { "containers": [container("c", more)] } }));
        let found = checks::spec(&pod, &pod.spec.containers[0], CheckKind::Liveness).unwrap().handler;
        match (found, number) {
            (Ok(Handler::TcpSocket { port, .. }), number) => assert_eq!(Some(port), number),
            (Err(wrong), None) => assert!(wrong.contains("container c has no port"), "{wrong}"),
            other => panic!("{port}: {other:?}"),
        }
    }
}

// After a restart of the agent nothing was answered yet, and only what the status told of this very run counts.
#[test]
fn until_a_probe_answers_a_container_is_as_the_status_told_this_run_of_it() {
    let of = |name: &str, restarts: i32, state: &str| {
        let state = json!({ state: {} });
        json!({ "name": name, "restartCount": restarts, "ready": true, "started": true, "state": state })
    };
    for (what, told, ready) in [
        ("this run", json!([of("c", 1, "running")]), true),
        ("an earlier run", json!([of("c", 0, "running")]), false),
        ("the end of this run", json!([of("c", 1, "terminated")]), false),
        ("another container", json!([of("d", 1, "running")]), false),
        ("nothing", json!([]), false),
    ] {
        let probe = json!({ "exec": { "command": ["x"] } });
        let one = container("c", json!({ "readinessProbe": probe, "startupProbe": probe }));
        let pod = pod_of(json!({ "spec": { "containers": [one] }, "status": { "containerStatuses": told } }));
        let health = checks::health(&pod, &pod.spec.containers[0], Some((1, "u_ns_a_c_1")), &local());
        assert_eq!((health.started, health.ready), (ready, ready), "{what} was told");
    }
}

const SINCE: Timestamp = Timestamp(50_000);

fn spec() -> CheckSpec {
    CheckSpec {
        handler: Ok(Handler::Sleep { millis: 0 }),
        timeout_millis: 1_000,
        delay_millis: 4_000,
        period_millis: 10_000,
        limits: (1, 1),
        grace_seconds: None,
    }
}

fn view(kind: CheckKind, last: Option<Checked>, started: bool, ending: bool) -> CheckView {
    let key = CheckKey { pod: ObjectKey::new("ns", "a"), container: "c".into(), kind };
    CheckView { key, spec: Some(spec()), process: Some(("p".into(), SINCE)), last, started, ending }
}

fn decide(now: Timestamp, view: CheckView) -> Decision<Action, crate::Reason> {
    Node::decide(now, &View::Check(Box::new(view)), &Memory::default())
}

/// What is known of a probe that was begun long ago.
fn said(passed: Option<bool>) -> Option<Checked> {
    Some(Checked { at_millis: SINCE.0, passed, ..Checked::default() })
}

#[test]
fn a_probe_or_hook_is_run_while_its_answer_matters() {
    use CheckKind::{Liveness, PostStart, PreStop, Readiness, Startup};
    const STARTING: (bool, bool) = (false, false);
    const STARTED: (bool, bool) = (true, false);
    const ENDING: (bool, bool) = (true, true);
    for (kind, last, (started, ending), runs) in [
        (PostStart, None, STARTING, true),
        (PostStart, None, ENDING, false),
        (PostStart, said(None), STARTING, false),
        (PreStop, None, STARTED, false),
        (PreStop, None, ENDING, true),
        (PreStop, said(Some(true)), ENDING, false),
        (Startup, None, STARTING, true),
        (Startup, said(None), STARTING, true),
        (Startup, said(Some(true)), STARTING, false),
        (Startup, said(Some(false)), STARTING, false),
        (Startup, None, ENDING, false),
        (Liveness, None, STARTING, false),
        (Liveness, None, STARTED, true),
        (Liveness, said(Some(true)), STARTED, true),
        (Liveness, said(Some(false)), STARTED, false),
        (Liveness, said(Some(true)), ENDING, false),
        (Readiness, None, STARTING, false),
        (Readiness, said(Some(true)), STARTED, true),
        (Readiness, said(Some(false)), STARTED, true),
        (Readiness, said(Some(true)), ENDING, false),
    ] {
        let decision = decide(Timestamp(1_000_000), view(kind, last.clone(), started, ending));
        let right = match &decision {
            Decision::Do(Action::Check(check), _) => runs && check.kind == kind,
            Decision::Rest(why) => !runs && why.settled,
            _other => false,
        };
        assert!(right, "{kind:?} {last:?} started {started} ending {ending}: {decision:?}");
    }
}

#[test]
fn a_probe_is_run_after_its_delay_and_then_from_period_to_period() {
    let first = SINCE.after_millis(4_000);
    let next = first.after_millis(10_000);
    let last = Checked { at_millis: first.0, passed: Some(true), ..Checked::default() };
    for (last, due) in [(None, first), (Some(last), next)] {
        let at = |millis: u64| decide(Timestamp(millis), view(CheckKind::Readiness, last.clone(), true, false));
        assert!(matches!(at(due.0 - 1), Decision::Wait(until, why) if until == due && why.settled), "{due:?}");
        assert!(matches!(at(due.0), Decision::Do(Action::Check(check), _) if check.at_millis == due.0), "{due:?}");
    }
}
