use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use control::host::Op;
use control::{Action as _, Decision, Effect};
use serde_json::json;

use prove_lab::Fault;

use super::world::World;
use crate::{Action, Key};

fn running(spec: api::Value) -> World {
    let mut world = World::new();
    world.pod_with("a", spec);
    world.settle();
    world
}

#[test]
fn an_exit_status_becomes_the_phase() {
    for (code, phase) in [(0, "Succeeded"), (3, "Failed")] {
        let mut world = running(json!({}));
        world.exit("a", code);
        world.settle();
        let status = world.status("a");
        assert_eq!(status["phase"], phase);
        assert_eq!(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], code);
        assert!(world.machine.published.is_empty(), "a terminal pod's volumes go");
        assert_eq!(world.machine.processes.len(), 1, "its log stays");
        assert!(world.why(&World::pod_key("a")).settled);
    }
}

#[test]
fn status_is_written_only_when_it_changes() {
    let mut world = running(json!({}));
    let version = world.get(Kind::Pod, "a").unwrap()["metadata"]["resourceVersion"].clone();
    world.forget();
    world.settle();
    assert_eq!(world.get(Kind::Pod, "a").unwrap()["metadata"]["resourceVersion"], version);
    let ready = world.status("a")["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    assert!(ready);
    assert!(world.status("a")["startTime"].is_string());
}

// Reliability 41.
// KL-53.
#[test]
fn a_process_waits_for_every_volume() {
    let mut world = World::new();
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } },
                         { "name": "w", "persistentVolumeClaim": { "claimName": "missing" } }]);
    let mounts = json!([{ "name": "v", "mountPath": "/v" }, { "name": "w", "mountPath": "/w" }]);
    let containers = json!([{ "name": "c", "image": "i", "command": ["/bin/true"], "volumeMounts": mounts }]);
    world.pod_with("a", json!({ "volumes": volumes, "containers": containers }));
    world.settle();
    assert!(world.machine.processes.is_empty());
    let why = world.why(&World::pod_key("a"));
    assert_eq!(why.code, "VolumesNotReady");
    assert!(why.text.contains("missing"), "{why}");
    assert_eq!(world.status("a")["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
}

#[test]
fn the_process_gets_its_command_environment_and_mounts() {
    let mut world = World::new();
    let container = json!([{ "name": "c", "image": "i", "command": ["sh"], "args": ["-c", "true"], "workingDir": "/data",
        "env": [{ "name": "A", "value": "1" }], "volumeMounts": [{ "name": "v", "mountPath": "/data", "readOnly": true }] }]);
    world.pod_with("a", json!({ "containers": container }));
    let key = World::pod_key("a");
    while !matches!(world.decide(&key), Decision::Do(Action::Start { .. }, _)) {
        world.step(&key);
        world.step(&World::volume_key());
    }
    let Decision::Do(action, _) = world.decide(&key) else { panic!("starts") };
    let Effect::Host(Op::StartProcess(process)) = action.effect() else { panic!("a process") };
    assert_eq!(process.command, ["sh", "-c", "true"]);
    assert_eq!(process.working_dir, "/data");
    assert_eq!(process.environment["A"], "1");
    assert_eq!(process.environment["HOSTNAME"], "a");
    assert!(process.environment["PATH"].contains("/bin"));
    let mount = &process.mounts[0];
    assert_eq!((mount.target.as_str(), mount.read_only), ("/data", true));
    assert!(mount.source.starts_with("/r/pods/uid-") && mount.source.ends_with("/volumes/kubernetes.io~csi/pv1/mount"));
}

#[test]
fn what_cannot_be_run_says_so() {
    let container = |extra: api::Value| {
        let mut container = json!({ "name": "c", "image": "i", "command": ["x"] });
        for (key, value) in extra.as_object().unwrap() {
            container[key] = value.clone();
        }
        json!([container])
    };
    for (spec, reason, phase) in [
        (json!({ "containers": container(json!({ "command": null })) }), "CommandMissing", "Failed"),
        (json!({ "volumes": [{ "name": "v", "nfs": { "server": "s" } }] }), "VolumeKindNotSupported", "Pending"),
        (json!({ "initContainers": [{ "name": "i", "image": "i" }] }), "CommandMissing", "Failed"),
        (
            json!({ "containers": container(json!({ "env": [{ "name": "E", "valueFrom": { "resourceFieldRef": { "containerName": "x", "resource": "limits.cpu" } } }] })) }),
            "CreateContainerConfigError",
            "Pending",
        ),
        (
            json!({ "containers": container(json!({ "volumeMounts": [{ "name": "v", "mountPath": "/d", "subPathExpr": "$(X)" }] })) }),
            "CreateContainerConfigError",
            "Pending",
        ),
    ] {
        let world = running(spec);
        let status = world.status("a");
        assert_eq!(status["phase"], phase, "{status}");
        assert_eq!(status["reason"], reason);
        assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], reason);
        assert!(!status["message"].as_str().unwrap().is_empty());
        assert!(world.machine.processes.is_empty());
    }
}

#[test]
fn a_command_that_cannot_be_started_fails_the_pod_with_the_sentence() {
    let containers = json!([{ "name": "c", "image": "i", "command": ["/missing"] }]);
    let world = running(json!({ "containers": containers, "restartPolicy": "Always" }));
    assert_eq!(world.status("a")["phase"], "Failed");
    assert_eq!(world.status("a")["message"], "/missing does not exist on this machine");
}

#[test]
fn an_empty_dir_is_a_directory_of_the_pod() {
    let volumes = json!([{ "name": "v", "emptyDir": {} }]);
    let mut world = running(json!({ "volumes": volumes }));
    assert_eq!(world.status("a")["phase"], "Running");
    assert!(world.machine.dirs.iter().any(|dir| dir.ends_with("/volumes/kubernetes.io~empty-dir/v")));
    // H9: what the pod left in it goes too.
    let left = world.machine.dirs.iter().find(|dir| dir.ends_with("/v")).unwrap().clone() + "/left";
    world.machine.dirs.insert(left);
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.dirs.is_empty(), "{:?}", world.machine.dirs);
}

#[test]
fn restarts_follow_the_policy_with_growing_pauses() {
    let mut world = running(json!({ "restartPolicy": "Always" }));
    for restarts in 1..=3u64 {
        world.exit("a", 0);
        world.settle();
        if restarts > 1 {
            let status = world.status("a");
            assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "CrashLoopBackOff");
            assert_eq!(status["phase"], "Running");
            let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
            assert!(until.0 - world.now.0 <= 10_000 * (restarts - 1));
            world.now = until;
            world.settle();
        }
        assert_eq!(world.status("a")["containerStatuses"][0]["restartCount"], restarts);
    }
    assert_eq!(world.machine.processes.len(), 2, "the latest two keep their logs");
    let mut failing = running(json!({ "restartPolicy": "OnFailure" }));
    failing.exit("a", 1);
    failing.settle();
    assert_eq!(failing.status("a")["containerStatuses"][0]["restartCount"], 1);
    failing.exit("a", 0);
    failing.settle();
    assert_eq!(failing.status("a")["phase"], "Succeeded");
}

#[test]
fn every_container_is_a_process() {
    let one = |name: &str| json!({ "name": name, "image": "i", "command": ["x"] });
    let mut world = running(json!({ "containers": [one("c"), one("d")], "volumes": [] }));
    assert_eq!(world.machine.processes.len(), 2);
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.processes.is_empty());
}

// Reliability 42: a pod missing from a stale cache after a restart is not gone.
// KL-27.
#[test]
fn a_pod_the_cache_does_not_show_is_asked_for_before_anything_is_taken_from_it() {
    let mut world = running(json!({}));
    world.crash("life-2");
    let pod = world.cache.pod(&api::ObjectKey::new("ns", "a")).unwrap().clone();
    world.cache.remove(&api::Object::Pod(pod));
    let key = World::pod_key("a");
    assert_eq!(world.step(&key), Some("ReadPod"));
    assert_eq!(world.why(&key).code, "CacheBehind");
    assert_eq!(world.step(&key), None);
    world.thaw();
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(world.status("a")["phase"], "Running");
}

// KL-54.
#[test]
fn a_pod_deleted_by_force_is_stopped_and_taken_down() {
    let mut world = running(json!({}));
    world.force_delete_pod("a");
    let done = world.settle();
    assert!(done.iter().position(|n| n == "Stop") < done.iter().position(|n| n == "Unpublish"));
    assert!(world.machine.processes.is_empty() && world.machine.staged.is_empty());
    assert!(!world.node_lists("volumesInUse"));
}

#[test]
fn a_namesake_of_a_force_deleted_pod_runs_beside_its_remains() {
    let mut world = running(json!({}));
    world.force_delete_pod("a");
    world.pod("a");
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running");
    assert_eq!(world.machine.processes.len(), 1);
    assert_eq!(world.machine.published.len(), 1);
}

// Reliability 43: a start that was never answered may have happened.
// KL-36.
#[test]
fn a_start_without_an_answer_is_stopped_before_the_volumes_go() {
    let mut world = World::new();
    world.pod("a");
    world.faults.insert("Start", Fault::RequestLost);
    while world.log.last().copied() != Some("Start") {
        world.step(&World::volume_key());
        world.step(&World::pod_key("a"));
    }
    world.delete_pod("a");
    let done = world.settle();
    assert!(done.iter().any(|n| n == "Stop"), "{done:?}");
    assert!(done.iter().position(|n| n == "Stop") < done.iter().position(|n| n == "Unpublish"));
}

#[test]
fn somebody_elses_terminal_phase_ends_the_process_first() {
    let mut world = running(json!({}));
    world.patch_status(Kind::Pod, "a", json!({ "phase": "Failed" }));
    let done = world.settle();
    assert!(done.iter().position(|n| n == "Stop") < done.iter().position(|n| n == "Unpublish"));
}

#[test]
fn a_pod_of_another_node_is_nobodys_business_here() {
    let mut world = World::new();
    world.pod_with("a", json!({ "nodeName": "m" }));
    assert_eq!(world.settle(), Vec::<String>::new());
    assert!(world.why(&Key::Pod(api::ObjectKey::new("ns", "a"))).settled);
}
