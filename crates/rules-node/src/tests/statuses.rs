//! How a pod and its containers fare, in the words of their status: each fact by itself.

use alloc::vec::Vec;

use api::{PodStatus, Precondition, Time, Value};
use control::host::ProcessState;
use control::{Action as _, Timestamp};
use serde_json::json;

use super::plain::{RUNS, cache, container, exited, local, pod_of, pod_view, process};
use crate::checks::{CheckKind, Checked};
use crate::lives::{self, ContainerPlan};
use crate::{Action, ContainerView, Local, container_status, status};

const NOW: Timestamp = Timestamp(1_000_000_000);

/// What a pod with this spec, and this said of it before, has for a status when its processes are these.
fn status_of(more: &Value, local: &Local) -> Value {
    let pod = pod_of(more.clone());
    let view = pod_view(&cache([super::plain::pod(more.clone())]), local);
    let lives = lives::of(NOW, &view, &pod);
    status::to_json(&status::of(NOW, &view, &pod, status::blocked(&view, &pod).as_ref(), &lives))
}

fn with_processes(processes: &[(&str, ProcessState)]) -> Local {
    let mut local = local();
    processes.iter().for_each(|(name, state)| process(&mut local, name, 0, state.clone()));
    local
}

fn condition<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == name).unwrap()
}

fn seen(latest: Option<(u32, ProcessState)>) -> ContainerView {
    ContainerView {
        latest: latest.map(|(restarts, state)| (restarts, "p".into(), state)),
        earlier: Vec::new(),
        started: true,
        ready: true,
        unwell: None,
        pre_stop: None,
    }
}

/// What is said of container `c` after what the pod's status says of its containers.
fn told(before: Value, seen: &ContainerView) -> Value {
    let pod = pod_of(json!({ "status": { "containerStatuses": before } }));
    let all = &pod.status.container_statuses;
    let plan = ContainerPlan::Ended;
    container_status::to_json(&container_status::of(&pod, all, &pod.spec.containers[0], seen, plan, None))
}

#[test]
fn each_end_of_a_process_has_kubelets_exit_code_reason_and_times() {
    let time = |millis| Time::from_unix_millis(millis).0;
    let exited = |code, since_millis, out_of_memory| ProcessState::Exited {
        code,
        since_millis,
        at_millis: 9_000,
        out_of_memory,
    };
    for (state, said) in [
        (
            exited(0, 5_000, false),
            json!({ "exitCode": 0, "reason": "Completed", "startedAt": time(5_000), "finishedAt": time(9_000) }),
        ),
        // Since when it ran is not known.
        (exited(3, 0, false), json!({ "exitCode": 3, "reason": "Error", "finishedAt": time(9_000) })),
        (exited(137, 0, true), json!({ "exitCode": 137, "reason": "OOMKilled", "finishedAt": time(9_000) })),
        (
            ProcessState::NotStarted("/x does not exist".into()),
            json!({ "exitCode": 128, "reason": "StartError", "message": "/x does not exist" }),
        ),
        (
            ProcessState::Lost,
            json!({ "exitCode": 137, "reason": "ContainerStatusUnknown",
                    "message": "the process is gone and nobody saw it end; the machine may have been restarted" }),
        ),
    ] {
        let told = told(json!([]), &seen(Some((0, state.clone()))));
        assert_eq!(told["state"]["terminated"], said, "{state:?}");
    }
    let unsure = told(json!([]), &seen(Some((0, ProcessState::Running { since_millis: 0 }))));
    assert_eq!(unsure["state"]["running"], json!({}), "it may run, and nobody knows since when");
}

#[test]
fn the_run_before_one_that_the_machine_remembers_alone_is_as_the_status_told_it() {
    let ended = |code: i32| json!({ "terminated": { "exitCode": code, "reason": "Error" } });
    let running = json!({ "running": {} });
    let of = |name: &str, restarts: i32, state: &Value, last: &Value| {
        let (name, restarts) = (json!(name), json!(restarts));
        json!({ "name": name, "restartCount": restarts, "state": state, "lastState": last })
    };
    let before = |all: Value| told(all, &seen(Some((2, RUNS))))["lastState"]["terminated"].clone();
    for (what, all, exit_code, reason) in [
        ("of the same run", json!([of("c", 2, &running, &ended(7))]), 7, "Error"),
        ("of the run before", json!([of("c", 1, &ended(5), &ended(7))]), 5, "Error"),
        ("that it ran last", json!([of("c", 1, &running, &ended(7))]), 137, "ContainerStatusUnknown"),
        ("nothing", json!([]), 137, "ContainerStatusUnknown"),
        ("of another container", json!([of("d", 2, &running, &ended(7))]), 137, "ContainerStatusUnknown"),
        ("of another one first", json!([of("d", 2, &running, &ended(8)), of("c", 2, &running, &ended(7))]), 7, "Error"),
    ] {
        let last = before(all);
        assert_eq!((&last["exitCode"], &last["reason"]), (&json!(exit_code), &json!(reason)), "{what}");
    }
    let first = told(json!([of("c", 0, &running, &ended(7))]), &seen(Some((0, RUNS))));
    assert_eq!(first["lastState"], json!({}), "nothing ran before the first");
}

#[test]
fn an_init_container_is_ready_when_it_has_done_its_part_and_a_sidecar_while_it_runs() {
    for (policy, state, ready, started) in [
        ("", RUNS, false, false),
        ("", exited(0), true, false),
        ("", exited(1), false, false),
        ("Always", RUNS, true, true),
        ("Always", exited(0), false, false),
    ] {
        let pod = pod_of(json!({ "spec": { "initContainers": [container("i", json!({ "restartPolicy": policy }))] } }));
        let (one, plan) = (&pod.spec.init_containers[0], ContainerPlan::Ended);
        let told = container_status::of_init(&pod, one, &seen(Some((0, state.clone()))), plan, None);
        assert_eq!((told.ready, told.started), (ready, started), "{policy} {state:?}");
    }
}

#[test]
fn only_a_container_that_keeps_ending_is_told_to_back_off() {
    let done = |list: &str, reason: &str| {
        let waiting = json!({ "name": "c", "state": { "waiting": { "reason": reason, "message": "back-off 10s" } } });
        let status: PodStatus = serde_json::from_value(json!({ list: [waiting] })).unwrap();
        let (pod, only_if) = (api::ObjectKey::new("ns", "a"), Precondition::default());
        Action::SetStatus { pod, only_if, status }.news().done
    };
    for list in ["containerStatuses", "initContainerStatuses"] {
        assert_eq!(done(list, "CrashLoopBackOff"), Some(("BackOff", "back-off 10s".into())));
        assert_eq!(done(list, "ContainerCreating"), None);
    }
}

#[test]
fn a_condition_names_who_is_not_ready_now_and_keeps_the_time_since_when() {
    let probe = json!({ "readinessProbe": { "exec": { "command": ["x"] } } });
    let since = "2001-01-01T00:00:00Z";
    let before = json!({ "type": "ContainersReady", "status": "False", "reason": "ContainersNotReady",
        "message": "not ready: c, d", "lastTransitionTime": since });
    let pod = json!({ "spec": { "volumes": [], "containers": [container("c", probe.clone()), container("d", probe)] },
        "status": { "conditions": [before] } });
    let mut local = with_processes(&[("c", RUNS), ("d", RUNS)]);
    let now = |local: &Local| condition(&status_of(&pod, local), "ContainersReady").clone();
    assert_eq!(now(&local), before, "nothing has changed");
    let well = Checked { passed: Some(true), ..Checked::default() };
    local.checks.insert(("u_ns_a_c_0".into(), CheckKind::Readiness), well.clone());
    let told = now(&local);
    assert_eq!((&told["message"], &told["lastTransitionTime"]), (&json!("not ready: d"), &json!(since)));
    local.checks.insert(("u_ns_a_d_0".into(), CheckKind::Readiness), well);
    let told = now(&local);
    assert_eq!((&told["status"], &told["message"]), (&json!("True"), &Value::Null));
    assert_eq!(told["lastTransitionTime"], NOW.to_time().0);
}

#[test]
fn a_condition_names_the_init_containers_that_are_not_done() {
    let init = ["i", "j", "k"].map(|name| container(name, json!({})));
    let pod = json!({ "spec": { "volumes": [], "initContainers": init } });
    let local = with_processes(&[("i", exited(0)), ("j", RUNS)]);
    assert_eq!(condition(&status_of(&pod, &local), "Initialized")["message"], "not done: j, k");
}

// Whatever the pod has come to, its last word is said when nothing of it runs any more.
#[test]
fn a_pod_has_ended_when_nothing_of_it_runs_any_more() {
    let sidecar = container("s", json!({ "restartPolicy": "Always" }));
    let both = [container("c", json!({})), container("d", json!({}))];
    let pod = |more: Value| {
        let mut body = json!({ "spec": { "volumes": [], "initContainers": [sidecar], "containers": both } });
        super::plain::merge(&mut body, &more);
        body
    };
    let plain = pod(json!({}));
    let late =
        pod(json!({ "spec": { "activeDeadlineSeconds": 1 }, "status": { "startTime": "1970-01-01T00:00:09Z" } }));
    let not_started = || ProcessState::NotStarted("no".into());
    for (what, body, [s, c, d], phase) in [
        ("all done, the sidecar runs", &plain, [RUNS, exited(0), exited(0)], "Running"),
        ("all done", &plain, [exited(0), exited(0), exited(0)], "Succeeded"),
        ("one failed", &plain, [exited(0), exited(0), exited(1)], "Failed"),
        ("one cannot be started, one runs", &plain, [exited(0), RUNS, not_started()], "Running"),
        ("one cannot be started", &plain, [exited(0), exited(0), not_started()], "Failed"),
        ("its time is over, one runs", &late, [exited(0), RUNS, exited(0)], "Running"),
        ("its time is over", &late, [exited(0), exited(0), exited(0)], "Failed"),
    ] {
        let told = status_of(body, &with_processes(&[("s", s), ("c", c), ("d", d)]));
        assert_eq!(told["phase"], phase, "{what}");
    }
}

#[test]
fn what_a_container_may_not_have_is_told() {
    let mounting = |name: &str, more: Value| {
        let mut mount = json!({ "name": name, "mountPath": "/v" });
        super::plain::merge(&mut mount, &more);
        json!({ "volumeMounts": [mount] })
    };
    let both_ways = || mounting("v", json!({ "mountPropagation": "Bidirectional" }));
    let with = |mut one: Value, more: Value| {
        super::plain::merge(&mut one, &more);
        one
    };
    let privileged = |yes: bool| json!({ "securityContext": { "privileged": yes } });
    let device = json!({ "volumeDevices": [{ "name": "x", "devicePath": "/dev/x" }] });
    for (one, said) in [
        (mounting("v", json!({})), None),
        (mounting("x", json!({})), Some("container c mounts volume x, which the pod does not have")),
        (device, Some("container c mounts volume x, which the pod does not have")),
        (both_ways(), Some("container c is not privileged, so /v cannot have Bidirectional propagation")),
        (with(both_ways(), privileged(false)), Some("container c is not privileged, so /v cannot")),
        (with(both_ways(), privileged(true)), None),
        (with(mounting("v", json!({})), privileged(false)), None),
        (json!({ "securityContext": { "runAsNonRoot": true } }), Some("has runAsNonRoot and would run as root")),
    ] {
        let body = json!({ "spec": { "volumes": [{ "name": "v", "emptyDir": {} }],
            "containers": [container("c", one.clone())] } });
        let view = pod_view(&cache([super::plain::pod(body.clone())]), &local());
        let blocked = status::blocked(&view, &pod_of(body)).map(|blocked| blocked.message);
        match (&blocked, said) {
            (Some(message), Some(said)) => assert!(message.contains(said), "{one}: {message}"),
            (blocked, said) => assert!(blocked.is_none() && said.is_none(), "{one}: {blocked:?}"),
        }
    }
}

/// What is to happen with the containers of a pod, the first ones first.
fn plans(more: Value, local: &Local, now: Timestamp) -> (Vec<ContainerPlan>, Option<lives::Over>) {
    let view = pod_view(&cache([super::plain::pod(more.clone())]), local);
    let lives = lives::of(now, &view, &pod_of(more));
    (lives.plans().collect(), lives.over)
}

#[test]
fn a_pod_is_over_at_its_deadline_and_not_before() {
    let pod = json!({ "spec": { "volumes": [], "activeDeadlineSeconds": 60 },
        "status": { "startTime": Time::from_unix_millis(1_000_000).0 } });
    let local = with_processes(&[("c", RUNS)]);
    for (millis, over) in [(0, false), (59_999, false), (60_000, true), (60_001, true)] {
        let found = plans(pod.clone(), &local, Timestamp(1_000_000 + millis)).1;
        assert_eq!(found, over.then_some(lives::Over::DeadlineExceeded), "{millis}");
    }
}

// The machine was switched off: what ran before is known by the pod's status alone.
#[test]
fn after_a_reboot_an_init_container_runs_again_only_if_it_had_not_done_its_part() {
    let init = [container("i", json!({})), container("j", json!({}))];
    let done = |name: &str, code: i32| {
        let ended = json!({ "terminated": { "exitCode": code, "reason": "x" } });
        json!({ "name": name, "restartCount": 0, "state": ended })
    };
    for (told, first) in [
        (json!([done("i", 0)]), ContainerPlan::Ended),
        (json!([done("i", 3)]), ContainerPlan::Start(1)),
        (json!([done("j", 0)]), ContainerPlan::Start(0)),
        (json!([done("j", 3), done("i", 0)]), ContainerPlan::Ended),
        (json!([]), ContainerPlan::Start(0)),
    ] {
        let pod = json!({ "spec": { "volumes": [], "restartPolicy": "Always", "initContainers": init },
            "status": { "initContainerStatuses": told } });
        assert_eq!(plans(pod, &local(), NOW).0[0], first, "{told}");
    }
}

// A container that was started once waits for no init container again, whoever knows that it was: machine or status.
#[test]
fn a_container_that_ran_goes_on_while_its_sidecar_starts_anew() {
    let probe = json!({ "restartPolicy": "Always", "startupProbe": { "exec": { "command": ["x"] } } });
    let told = json!([{ "name": "c", "restartCount": 0, "state": { "running": {} } }]);
    for (what, told, local, main) in [
        ("nobody", json!([]), with_processes(&[("s", RUNS)]), ContainerPlan::Waits),
        ("the machine", json!([]), with_processes(&[("s", RUNS), ("c", RUNS)]), ContainerPlan::Runs),
        ("the status", told, with_processes(&[("s", RUNS)]), ContainerPlan::Start(1)),
    ] {
        let pod = json!({ "spec": { "volumes": [], "restartPolicy": "Always",
            "initContainers": [container("s", probe.clone())] }, "status": { "containerStatuses": told } });
        assert_eq!(plans(pod, &local, NOW).0, [ContainerPlan::Runs, main], "{what} knows");
    }
}

#[test]
fn a_container_that_the_machine_forgot_is_counted_on_from_what_the_status_told() {
    let of = |restarts: i32, state: Value| json!([{ "name": "c", "restartCount": restarts, "state": state }]);
    for (told, plan) in [
        (of(0, json!({ "waiting": { "reason": "ContainerCreating" } })), ContainerPlan::Start(0)),
        (of(2, json!({ "waiting": { "reason": "CrashLoopBackOff" } })), ContainerPlan::Start(3)),
        (of(0, json!({ "running": {} })), ContainerPlan::Start(1)),
        (of(0, json!({ "terminated": { "exitCode": 1 } })), ContainerPlan::Start(1)),
    ] {
        let pod =
            json!({ "spec": { "volumes": [], "restartPolicy": "Always" }, "status": { "containerStatuses": told } });
        assert_eq!(plans(pod, &local(), NOW).0, [plan], "{told}");
    }
}
