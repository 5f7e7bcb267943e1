//! Init containers, sidecars, deadlines and the order in which containers end.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::Value;
use control::Decision;
use serde_json::json;

use super::world::World;
use crate::ProcessName;

fn container(name: &str) -> Value {
    json!({ "name": name, "image": "i", "command": ["x"] })
}

fn sidecar(name: &str) -> Value {
    json!({ "name": name, "image": "i", "command": ["x"], "restartPolicy": "Always" })
}

fn world(spec: Value) -> World {
    let mut whole = json!({ "volumes": [], "containers": [container("c")] });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut world = World::new();
    world.pod_with("a", whole);
    world.settle();
    world
}

/// The containers of pod `a` that run, with how often each was started before.
fn running(world: &World) -> Vec<String> {
    let runs = |name: &&String| world.machine.runs(name);
    let names = world.machine.processes.keys().filter(runs).filter_map(|name| ProcessName::parse(name));
    names.map(|name| format!("{}:{}", name.container, name.restart)).collect()
}

/// A container's latest process ends by itself.
fn exit(world: &mut World, container: &str, code: i32) {
    let now = world.now.0;
    let of_container = |name: &&String| ProcessName::parse(name).unwrap().container == container;
    let name = world.machine.processes.keys().rfind(of_container).unwrap().clone();
    world.machine.end(&name, code, now);
    world.watch_processes();
    world.settle();
}

fn condition(world: &World, name: &str) -> (String, String) {
    let status = world.status("a");
    let found = status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == name).unwrap().clone();
    (found["status"].as_str().unwrap().into(), found["reason"].as_str().unwrap_or_default().to_string())
}

fn init_state(world: &World, at: usize) -> Value {
    world.status("a")["initContainerStatuses"][at]["state"].clone()
}

#[test]
fn init_containers_run_one_after_the_other_before_the_containers() {
    let mut world = world(json!({ "initContainers": [container("i"), container("j")] }));
    assert_eq!(running(&world), ["i:0"]);
    assert_eq!(world.status("a")["phase"], "Pending");
    assert_eq!(condition(&world, "Initialized"), ("False".into(), "ContainersNotInitialized".into()));
    assert_eq!(world.status("a")["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(init_state(&world, 1)["waiting"]["reason"], "PodInitializing");
    assert_eq!(world.why(&World::pod_key("a")).code, "PodInitializing");
    exit(&mut world, "i", 0);
    assert_eq!(running(&world), ["j:0"]);
    assert_eq!(init_state(&world, 0)["terminated"]["reason"], "Completed");
    exit(&mut world, "j", 0);
    assert_eq!(running(&world), ["c:0"]);
    assert_eq!(world.status("a")["phase"], "Running");
    assert_eq!(condition(&world, "Initialized"), ("True".into(), String::new()));
    assert_eq!(world.status("a")["initContainerStatuses"][1]["ready"], true);
    // An init container that has done its part is not run again with the containers.
    exit(&mut world, "c", 0);
    assert_eq!(world.status("a")["phase"], "Succeeded");
    assert!(running(&world).is_empty());
}

#[test]
fn an_init_container_that_fails_is_tried_again_unless_the_pod_never_restarts() {
    let mut world = world(json!({ "initContainers": [container("i")], "restartPolicy": "Always" }));
    exit(&mut world, "i", 3);
    assert_eq!(running(&world), ["i:1"], "the first restart is at once");
    exit(&mut world, "i", 3);
    assert_eq!(running(&world), [""; 0]);
    assert_eq!(init_state(&world, 0)["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(world.status("a")["phase"], "Pending");
    let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
    world.now = until;
    world.settle();
    assert_eq!(running(&world), ["i:2"]);
    exit(&mut world, "i", 0);
    assert_eq!(running(&world), ["c:0"]);

    let mut never = self::world(json!({ "initContainers": [sidecar("s"), container("i")] }));
    assert_eq!(running(&never), ["i:0", "s:0"]);
    exit(&mut never, "i", 3);
    assert!(running(&never).is_empty(), "its sidecar ends too");
    assert_eq!(never.status("a")["phase"], "Failed");
    assert_eq!(never.status("a")["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(condition(&never, "Ready"), ("False".into(), "PodFailed".into()));
}

#[test]
fn a_restart_of_the_agent_does_not_run_init_containers_again() {
    let mut world = world(json!({ "initContainers": [container("i"), sidecar("s")], "restartPolicy": "Always" }));
    exit(&mut world, "i", 0);
    assert_eq!(running(&world), ["c:0", "s:0"]);
    world.crash("life-2");
    world.settle();
    exit(&mut world, "c", 1);
    assert_eq!(running(&world), ["c:1", "s:0"]);
}

#[test]
fn a_sidecar_is_started_again_and_ends_when_the_containers_have() {
    let mut world = world(json!({ "initContainers": [sidecar("s"), sidecar("t")] }));
    assert_eq!(running(&world), ["c:0", "s:0", "t:0"]);
    exit(&mut world, "s", 0);
    assert_eq!(running(&world), ["c:0", "s:1", "t:0"]);
    assert_eq!(world.status("a")["phase"], "Running");
    let from = world.log.len();
    exit(&mut world, "c", 0);
    assert!(running(&world).is_empty());
    assert_eq!(world.log[from..].iter().filter(|name| **name == "Ask").count(), 2);
    assert_eq!(world.status("a")["phase"], "Succeeded");
    assert_eq!(condition(&world, "ContainersReady"), ("False".into(), "PodCompleted".into()));
}

/// The names of the processes asked or made to end, in order, one step at a time.
fn endings(world: &mut World) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..40 {
        if let Decision::Do(crate::Action::Ask { name, .. } | crate::Action::Stop { name, .. }, _) =
            world.decide(&World::pod_key("a"))
        {
            found.push(ProcessName::parse(&name).unwrap().container);
        }
        if world.step(&World::pod_key("a")).is_none() {
            break;
        }
    }
    found
}

#[test]
fn sidecars_end_last_and_the_last_one_first() {
    let mut world = world(json!({ "initContainers": [sidecar("s"), sidecar("t")],
                                  "containers": [container("c"), container("d")] }));
    world.delete_pod("a");
    assert_eq!(endings(&mut world), ["c", "d", "t", "s"]);
}

// KL-101: what does not end in its grace is made to; a shorter grace counts at once.
#[test]
fn all_containers_are_asked_at_the_same_time_and_made_to_end_when_the_grace_is_over() {
    let mut world = world(json!({ "containers": [container("c"), container("d")] }));
    world.machine.deaf = true;
    world.delete_pod("a");
    assert_eq!(endings(&mut world), ["c", "d"]);
    assert_eq!(running(&world), ["c:0", "d:0"]);
    let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
    assert!(until.0.abs_diff(world.now.0 + 30_000) < 1_000);
    world.delete_within(api::Kind::Pod, "a", 5);
    let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
    assert!(until.0.abs_diff(world.now.0 + 5_000) < 1_000);
    world.now = until;
    assert_eq!(endings(&mut world), ["c", "d"]);
    assert!(running(&world).is_empty());
}

#[test]
fn a_pod_is_ended_when_its_deadline_has_passed() {
    // Waiting for the moment is part of coming to rest here.
    let world = world(json!({ "activeDeadlineSeconds": 60, "restartPolicy": "Always" }));
    assert_eq!(world.log.iter().filter(|name| **name == "Ask").count(), 1);
    assert!(running(&world).is_empty());
    let status = world.status("a");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("DeadlineExceeded")));
}

#[test]
fn a_pod_is_ready_when_others_say_so_too() {
    let mut world = world(json!({ "readinessGates": [{ "conditionType": "example.com/open" }] }));
    assert_eq!(condition(&world, "ContainersReady").0, "True");
    assert_eq!(condition(&world, "Ready"), ("False".into(), "ReadinessGatesNotReady".into()));
    let mut conditions = world.status("a")["conditions"].clone();
    conditions.as_array_mut().unwrap().push(json!({ "type": "example.com/open", "status": "True" }));
    world.patch_status(api::Kind::Pod, "a", json!({ "conditions": conditions }));
    world.settle();
    assert_eq!(condition(&world, "Ready"), ("True".into(), String::new()));
}

#[test]
fn one_container_that_cannot_be_started_ends_the_others() {
    let missing = json!({ "name": "d", "image": "i", "command": ["/missing"] });
    let world = world(json!({ "containers": [container("c"), missing] }));
    assert!(running(&world).is_empty());
    assert_eq!(world.status("a")["phase"], "Failed");
    assert_eq!(world.status("a")["reason"], "StartError");
}
