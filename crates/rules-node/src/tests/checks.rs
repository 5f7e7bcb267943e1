//! Probes and hooks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Value};
use control::host::Handler;
use control::{Action as _, Decision};
use serde_json::json;

use super::world::World;
use crate::checks::{CheckKind, Checked, spec};
use crate::{Action, Key, ProcessName};

fn world(container: Value) -> World {
    let mut whole = json!({ "name": "c", "image": "i", "command": ["x"] });
    whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    let mut world = World::new();
    world.pod_with("a", json!({ "volumes": [], "restartPolicy": "Always", "containers": [whole] }));
    world
}

/// Lets so much time pass, in steps of a second, with everything done that is due.
fn pass(world: &mut World, seconds: u64) -> Vec<&'static str> {
    let from = world.log.len();
    for _ in 0..=seconds {
        for _ in 0..50 {
            let keys = <crate::Node as control::Rules>::keys(&world.cache, world.local());
            if keys.iter().filter(|key| world.step(key).is_some()).count() == 0 {
                break;
            }
        }
        world.now = world.now.after_millis(1_000);
    }
    world.log[from..].to_vec()
}

fn status(world: &World) -> Value {
    world.status("a")["containerStatuses"][0].clone()
}

fn count(log: &[&str], name: &str) -> usize {
    log.iter().filter(|done| **done == name).count()
}

fn exec(extra: Value) -> Value {
    let mut probe = json!({ "exec": { "command": ["true"] }, "periodSeconds": 2, "failureThreshold": 2 });
    probe.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    probe
}

#[test]
fn readiness_follows_the_answers_and_restarts_nothing() {
    let mut world =
        world(json!({ "readinessProbe": exec(json!({ "initialDelaySeconds": 3, "successThreshold": 2 })) }));
    pass(&mut world, 2);
    assert_eq!((&status(&world)["ready"], &status(&world)["started"]), (&json!(false), &json!(true)));
    pass(&mut world, 6);
    assert_eq!(status(&world)["ready"], true);
    world.machine.unwell = true;
    pass(&mut world, 6);
    assert_eq!((&status(&world)["ready"], &status(&world)["restartCount"]), (&json!(false), &json!(0)));
    world.machine.unwell = false;
    pass(&mut world, 6);
    assert_eq!(status(&world)["ready"], true);
}

#[test]
fn a_container_that_does_not_live_is_ended_and_started_again() {
    let mut world = world(json!({ "livenessProbe": exec(json!({})) }));
    let log = pass(&mut world, 10);
    assert!((4..=6).contains(&count(&log, "Check")), "{log:?}");
    world.machine.unwell = true;
    // One bad answer is not enough.
    pass(&mut world, 1);
    assert_eq!(status(&world)["restartCount"], 0);
    let log = pass(&mut world, 2);
    assert_eq!(count(&log, "Ask"), 1, "{log:?}");
    world.machine.unwell = false;
    pass(&mut world, 12);
    assert_eq!((&status(&world)["restartCount"], &status(&world)["ready"]), (&json!(1), &json!(true)));
    assert_eq!(status(&world)["lastState"]["terminated"]["exitCode"], 143);
}

#[test]
fn other_probes_wait_for_the_startup_probe() {
    let mut world =
        world(json!({ "startupProbe": exec(json!({ "failureThreshold": 100 })), "livenessProbe": exec(json!({})) }));
    world.machine.unwell = true;
    pass(&mut world, 20);
    assert_eq!((&status(&world)["started"], &status(&world)["restartCount"]), (&json!(false), &json!(0)));
    assert!(!world.local().checks.keys().any(|(_, kind)| *kind == CheckKind::Liveness));
    world.machine.unwell = false;
    pass(&mut world, 4);
    assert_eq!((&status(&world)["started"], &status(&world)["ready"]), (&json!(true), &json!(true)));
    world.machine.unwell = true;
    pass(&mut world, 6);
    assert_eq!(status(&world)["restartCount"], 1);
}

#[test]
fn a_restarted_agent_takes_what_the_status_told_until_it_knows_better() {
    let mut world = world(json!({ "startupProbe": exec(json!({})), "readinessProbe": exec(json!({})) }));
    pass(&mut world, 6);
    assert_eq!(status(&world)["ready"], true);
    world.crash("life-2");
    let log = pass(&mut world, 6);
    assert_eq!(count(&log, "SetStatus"), 0, "{log:?}");
}

#[test]
fn the_hook_before_the_end_comes_before_the_signal_and_within_the_grace() {
    let hooks = json!({ "lifecycle": { "preStop": { "sleep": { "seconds": 3 } } } });
    let mut world = world(hooks);
    pass(&mut world, 1);
    world.delete_pod("a");
    let log = pass(&mut world, 3);
    let at = |name: &str| log.iter().position(|done| *done == name);
    assert!(at("BeginEnd") < at("Check") && at("Check") < at("Ask"), "{log:?}");
    assert!(world.get(Kind::Pod, "a").is_none());

    // A hook that does not end is not waited for longer than the grace.
    let mut world = self::world(json!({ "lifecycle": { "preStop": { "exec": { "command": ["hang"] } } } }));
    pass(&mut world, 1);
    world.delete_pod("a");
    let key = World::pod_key("a");
    assert_eq!(world.step(&key), Some("BeginEnd"));
    let Decision::Wait(until, _) = world.decide(&key) else { panic!("waits for the hook") };
    assert!(until.0.abs_diff(world.now.0 + 30_000) < 1_001);
    world.now = until;
    assert_eq!(world.step(&key), Some("Stop"));
}

#[test]
fn a_hook_after_the_start_that_fails_ends_the_container() {
    let mut world = world(json!({ "lifecycle": { "postStart": { "exec": { "command": ["x"] } } } }));
    world.machine.unwell = true;
    pass(&mut world, 2);
    assert!(status(&world)["restartCount"].as_i64().unwrap() >= 1);
    world.machine.unwell = false;
    pass(&mut world, 30);
    assert_eq!(status(&world)["ready"], true);
}

#[test]
fn events_have_the_reasons_that_kubelet_gives() {
    let mut world = world(json!({ "livenessProbe": exec(json!({})) }));
    world.machine.unwell = true;
    pass(&mut world, 1);
    let key = <crate::Node as control::Rules>::keys(&world.cache, world.local());
    let key = key.into_iter().find(|key| matches!(key, Key::Check(_))).unwrap();
    let Decision::Do(check, why) = world.decide(&key) else { panic!("is due") };
    assert_eq!((check.news().failed, why.text.as_str()), (Some("Unhealthy"), "liveness probe of container c"));
    world.step(&key);
    let Decision::Do(ask @ Action::Ask { .. }, _) = world.decide(&World::pod_key("a")) else { panic!("is ended") };
    let told = "container c is ended: its liveness probe failed: no answer";
    assert_eq!(ask.news().done, Some(("Killing", told.to_string())));
    assert!(ProcessName::parse(&format!("{}_ns_a_c_0", "u")).is_some());
}

#[test]
fn answers_count_in_rows() {
    let mut checked = Checked::default();
    for (answer, passed) in
        [(true, None), (true, Some(true)), (false, Some(true)), (true, Some(true)), (false, Some(true))]
    {
        checked.count(1, (2, 2), if answer { Ok(()) } else { Err("no".into()) });
        assert_eq!(checked.passed, passed);
    }
    checked.count(1, (2, 2), Err("no".into()));
    assert_eq!((checked.passed, checked.why.as_str()), (Some(false), "no"));
}

#[test]
fn ports_have_numbers_or_names() {
    let pod = json!({ "spec": { "containers": [{ "name": "c", "ports": [{ "name": "web", "containerPort": 8080 }],
        "livenessProbe": { "httpGet": { "port": "web" } }, "readinessProbe": { "tcpSocket": { "port": 99 } },
        "startupProbe": { "tcpSocket": { "port": "none" } } }] } });
    let pod: api::Pod = serde_json::from_value(pod).unwrap();
    let of = |kind| spec(&pod, &pod.spec.containers[0], kind).unwrap().handler;
    let get = Handler::HttpGet { host: String::new(), port: 8080, path: "/".into(), headers: Vec::new() };
    assert_eq!(of(CheckKind::Liveness), Ok(get));
    assert_eq!(of(CheckKind::Readiness), Ok(Handler::TcpSocket { host: String::new(), port: 99 }));
    assert!(of(CheckKind::Startup).is_err());
}
