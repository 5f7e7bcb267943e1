//! What users are told: the run before in a container's status, and events about what keeps a pod from running.

use alloc::string::String;

use api::{Kind, Value};
use control::{Action as _, Decision, EventType, Narrate as _, Rules as _, Why};
use serde_json::json;

use super::world::World;
use crate::{Key, Memory, Node, Reason};

fn container(world: &World) -> Value {
    world.status("a")["containerStatuses"][0].clone()
}

/// `lastState` is how the run before ended, as kubelet has it, also over a new life of the agent.
#[test]
fn the_run_before_is_told() {
    let mut world = World::new();
    world.pod_with("a", json!({ "restartPolicy": "Always" }));
    world.settle();
    assert_eq!(container(&world)["lastState"], json!({}), "nothing ran before");
    world.exit("a", 3);
    world.settle();
    let told = container(&world);
    assert_eq!((&told["restartCount"], told["state"]["running"].is_object()), (&json!(1), true));
    let ended = &told["lastState"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(3), &json!("Error")));
    assert!(ended["finishedAt"].is_string(), "{ended}");

    world.exit("a", 0);
    world.settle();
    let told = container(&world);
    assert_eq!(told["state"]["waiting"]["reason"], "CrashLoopBackOff");
    let message = told["state"]["waiting"]["message"].as_str().unwrap();
    assert_eq!(message, "back-off 10s before restarting container c, which ended with exit code 0");
    assert_eq!(told["lastState"]["terminated"]["exitCode"], 0, "the latest run, while there is no other");
    assert_eq!(told["restartCount"], 1);

    world.crash("life-2");
    world.settle();
    assert_eq!(container(&world), told, "a new life of the agent says the same");
    let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
    world.now = until;
    world.settle();
    let told = container(&world);
    assert_eq!((&told["restartCount"], &told["lastState"]["terminated"]["exitCode"]), (&json!(2), &json!(0)));
}

/// The machine went down and has no trace of what ran.
#[test]
fn a_run_that_left_no_trace_is_told_as_lost() {
    let mut world = World::new();
    world.pod_with("a", json!({ "restartPolicy": "Always" }));
    world.settle();
    world.machine.processes.clear();
    world.crash("life-2");
    world.settle();
    let told = container(&world);
    assert_eq!(told["restartCount"], 1);
    assert_eq!(told["lastState"]["terminated"]["reason"], "ContainerStatusUnknown");
    assert!(told["state"]["running"].is_object());
    world.crash("life-3");
    world.settle();
    assert_eq!(container(&world), told, "and stays so");
}

fn rest(world: &World, key: &Key) -> Why<Reason> {
    let view = Node::view(key, &world.cache, world.local());
    match Node::decide(world.now, &view, &Memory::default()) {
        Decision::Rest(why) => why,
        other => panic!("{key} does not rest: {other:?}"),
    }
}

fn event(world: &World, key: &Key) -> (EventType, &'static str, String) {
    let why = rest(world, key);
    let (tone, reason) = Node::rest_event(key, &why).unwrap_or_else(|| panic!("nothing is said of {why}"));
    (tone, reason, why.text)
}

/// newuser.md 3: pods in ContainerCreating say why, where people look.
#[test]
fn what_keeps_a_pod_from_its_volume_is_an_event() {
    let with = |source: Value, mode: &str| {
        let mut world = World::new();
        let (modes, size) = (json!(["ReadWriteOnce"]), json!({ "storage": "1Gi" }));
        let spec = json!({ "accessModes": modes, "volumeName": "pv2", "storageClassName": "", "volumeMode": mode,
                           "resources": { "requests": size } });
        world.create(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "other" }, "spec": spec }));
        let uid = world.get(Kind::PersistentVolumeClaim, "other").unwrap()["metadata"]["uid"].clone();
        let mut spec = json!({ "accessModes": modes, "capacity": size, "volumeMode": mode,
                               "claimRef": { "namespace": "ns", "name": "other", "uid": uid } });
        spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "pv2" }, "spec": spec }));
        let claim = json!({ "claimName": "other" });
        world.pod_with("a", json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": claim }] }));
        world.settle();
        world
    };
    let raw = with(json!({ "csi": { "driver": "d.example", "volumeHandle": "h2" } }), "Block");
    let (tone, reason, text) = event(&raw, &World::pod_key("a"));
    assert_eq!((tone, reason), (EventType::Warning, "FailedMount"));
    assert!(text.contains("volumeMode Block"), "{text}");

    let foreign = with(json!({ "hostPath": { "path": "/x" } }), "Filesystem");
    let (_, reason, text) = event(&foreign, &World::pod_key("a"));
    assert_eq!(reason, "FailedMount");
    assert!(text.contains("not of a CSI driver"), "{text}");

    let mut missing = World::new();
    missing.update_local(|local| local.drivers.clear());
    missing.pod("a");
    missing.settle();
    let (_, reason, text) = event(&missing, &World::volume_key());
    assert_eq!(reason, "FailedMount");
    assert!(text.contains("is not registered"), "{text}");
}

// KL-50: a pod that named its node itself gets no volume that cannot be reached from there; one that has it keeps it.
#[test]
fn kl_50_a_volume_out_of_reach_is_not_mounted_and_told() {
    let zone = |zone: &str| {
        let term = json!({ "matchExpressions": [{ "key": "zone", "operator": "In", "values": [zone] }] });
        json!({ "required": { "nodeSelectorTerms": [term] } })
    };
    let mut world = World::new();
    world.patch(Kind::Node, "n", json!({ "metadata": { "labels": { "zone": "here" } } }));
    world.volume_with(|spec| spec["nodeAffinity"] = zone("elsewhere"));
    world.pod("a");
    world.settle();
    assert!(world.machine.staged.is_empty() && world.local().records.is_empty(), "nothing is done about it");
    let (tone, reason, text) = event(&world, &World::volume_key());
    assert_eq!((tone, reason), (EventType::Warning, "FailedMount"));
    assert!(text.contains("NodeAffinity") && text.contains("cannot be reached from node n"), "{text}");
    world.patch(Kind::Node, "n", json!({ "metadata": { "labels": { "zone": "elsewhere" } } }));
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running", "the node's labels count as they are now");
    world.patch(Kind::Node, "n", json!({ "metadata": { "labels": { "zone": "here" } } }));
    world.settle();
    assert_eq!(rest(&world, &World::volume_key()).code, Reason::Mounted, "what is mounted stays");
}

// KL-85: after 30 seconds, and every minute, by the words of the action.
#[test]
fn kl_85_a_slow_change_of_group_has_words_for_users() {
    let change = crate::GroupChange { group: 2000, only_if_root_differs: false };
    let news = crate::Action::SetGroup { target: "/r/x".into(), change }.news();
    let (reason, text) = news.slow.unwrap();
    assert_eq!((reason, news.failed), ("VolumePermissionChangeInProgress", Some("FailedMount")));
    assert!(text.contains("/r/x") && text.contains("2000"), "{text}");
}

#[test]
fn a_pod_that_cannot_run_is_an_event_and_one_that_runs_is_none() {
    let mut world = World::new();
    world.pod_with("a", json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [] }));
    world.settle();
    let (_, reason, text) = event(&world, &World::pod_key("a"));
    assert_eq!(reason, "Failed");
    assert!(text.contains("no command"), "{text}");

    let mut fine = World::new();
    fine.pod("a");
    fine.settle();
    for key in [World::pod_key("a"), World::volume_key()] {
        let why = rest(&fine, &key);
        assert_eq!(Node::rest_event(&key, &why), None, "{why}");
    }
}

/// Kubelet's reasons where a step fails, and `BackOff` where a container is held back.
#[test]
fn failed_steps_have_the_reasons_of_kubelet() {
    let mut world = World::new();
    world.pod_with("a", json!({ "restartPolicy": "Always" }));
    let mut reasons = alloc::collections::BTreeSet::new();
    let mut held_back = alloc::vec::Vec::new();
    for round in 0..200 {
        for key in [World::volume_key(), World::pod_key("a")] {
            if let Decision::Do(action, _) = world.decide(&key) {
                let news = action.news();
                assert!(news.begun.is_none());
                held_back.extend(news.done);
                reasons.extend(news.failed.map(|failed| (action.name(), failed)));
            }
            world.step(&key);
        }
        if [100, 150].contains(&round) {
            world.exit("a", 1);
        }
    }
    for expected in [("Stage", "FailedMount"), ("Publish", "FailedMount"), ("Start", "Failed")] {
        assert!(reasons.contains(&expected), "{reasons:?}");
    }
    assert_eq!(held_back.len(), 1, "{held_back:?}");
    assert_eq!(held_back[0].0, "BackOff");
}
