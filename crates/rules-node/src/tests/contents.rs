//! What the node itself puts into pods: config maps, secrets, fields, variables, places of the machine.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Value};
use control::host::{Op, Process, Propagation, Usage};
use control::{Action as _, Decision, Effect, Narrate as _};
use prove_lab::Fault;
use serde_json::json;

use super::world::World;
use crate::{Action, Node};

fn config_map(world: &mut World, name: &str, data: Value) {
    world.create(Kind::ConfigMap, json!({ "metadata": { "name": name }, "data": data }));
}

fn secret(world: &mut World, name: &str, data: Value) {
    world.create(Kind::Secret, json!({ "metadata": { "name": name }, "stringData": data }));
}

/// A pod whose volume `v` is this one.
fn with_volume(world: &mut World, volume: Value) {
    let mut whole = volume;
    whole["name"] = "v".into();
    world.pod_with("a", json!({ "volumes": [whole] }));
}

/// A pod whose container says this.
fn with_container(world: &mut World, container: Value) {
    let mut whole = json!({ "name": "c", "image": "i", "command": ["/bin/true"] });
    for (key, value) in container.as_object().unwrap() {
        whole[key] = value.clone();
    }
    world.pod_with("a", json!({ "containers": [whole] }));
}

/// The namespace lets pods do anything to the machine.
fn privileged(world: &mut World) {
    let labels = json!({ "pod-security.kubernetes.io/enforce": "privileged" });
    world.patch(Kind::Namespace, "ns", json!({ "metadata": { "labels": labels } }));
}

/// Takes so many steps for the pod, or as many as there are.
fn steps(world: &mut World, most: u32) {
    for _ in 0..most {
        let _ = world.step(&World::pod_key("a"));
    }
}

/// What a volume shows, by the end of the path.
fn shown(world: &World, end: &str) -> Option<String> {
    let found = world.machine.files.iter().find(|(path, _)| path.ends_with(end));
    found.map(|(_, bytes)| String::from_utf8(bytes.clone()).unwrap())
}

fn waits_for(world: &World) -> (Value, Value) {
    let waiting = &world.status("a")["containerStatuses"][0]["state"]["waiting"];
    (waiting["reason"].clone(), waiting["message"].clone())
}

fn runs(world: &World) -> bool {
    world.status("a")["phase"] == "Running"
}

/// The process that the pod's container is started with.
fn started(world: &mut World) -> Process {
    let key = World::pod_key("a");
    for _ in 0..100 {
        if let Decision::Do(action @ Action::Start { .. }, _) = world.decide(&key) {
            let Effect::Host(Op::StartProcess(process)) = action.effect() else { panic!("a process") };
            return process;
        }
        world.step(&key);
        world.step(&World::volume_key());
    }
    panic!("never started: {:?}", world.why(&key));
}

#[test]
fn a_config_map_is_shown_on_disk_and_followed() {
    let mut world = World::new();
    config_map(&mut world, "app", json!({ "colour": "red", "size": "1" }));
    with_volume(&mut world, json!({ "configMap": { "name": "app" } }));
    world.settle();
    assert!(runs(&world));
    assert_eq!(shown(&world, "/volumes/kubernetes.io~configmap/v/colour").as_deref(), Some("red"));
    assert!(world.machine.memory.is_empty(), "a config map is on the disk");
    world.patch(Kind::ConfigMap, "app", json!({ "data": { "colour": "blue", "size": null } }));
    world.settle();
    assert_eq!(shown(&world, "/v/colour").as_deref(), Some("red"), "it is read again after a while");
    world.after_millis(31_000);
    assert_eq!((shown(&world, "/v/colour").as_deref(), shown(&world, "/v/size")), (Some("blue"), None));
    // What nobody changed is not written again.
    let before = world.log.len();
    world.after_millis(31_000);
    let done: Vec<String> = world.log[before..].iter().map(ToString::to_string).collect();
    assert!(done.iter().all(|step| step.contains("ReadSource")), "{done:?}");
}

#[test]
fn a_secret_is_in_memory_and_goes_with_the_pod() {
    let mut world = World::new();
    secret(&mut world, "key", json!({ "password": "canary" }));
    with_volume(&mut world, json!({ "secret": { "secretName": "key", "defaultMode": 0o400 } }));
    world.settle();
    assert!(runs(&world));
    let place = world.machine.memory.iter().next().unwrap().clone();
    assert!(place.ends_with("/volumes/kubernetes.io~secret/v"), "{place}");
    assert_eq!(shown(&world, "/v/password").as_deref(), Some("canary"));
    let printed = format!("{:?} {:?}", world.engine.memory(&World::pod_key("a")), world.log);
    assert!(!printed.contains("canary") && !printed.contains("99, 97, 110"), "{printed}");
    world.delete_pod("a");
    world.settle();
    assert!(world.get(Kind::Pod, "a").is_none());
    assert!(world.machine.memory.is_empty() && shown(&world, "password").is_none());
    assert!(world.machine.dirs.is_empty(), "{:?}", world.machine.dirs);
    let kept = format!("{:?}", world.engine.memory(&World::pod_key("a")));
    assert!(!kept.contains("key"), "nothing of it is remembered: {kept}");
}

#[test]
fn items_modes_and_several_sources_make_one_volume() {
    let mut world = World::new();
    config_map(&mut world, "app", json!({ "a": "1", "b": "2" }));
    secret(&mut world, "key", json!({ "p": "3" }));
    let sources = json!([
        { "configMap": { "name": "app", "items": [{ "key": "a", "path": "conf/a", "mode": 0o600 }] } },
        { "secret": { "name": "key" } },
        { "downwardAPI": { "items": [
            { "path": "name", "fieldRef": { "fieldPath": "metadata.name" } },
            { "path": "cpu", "resourceFieldRef": { "containerName": "c", "resource": "requests.cpu" } }] } },
        { "secret": { "name": "none", "optional": true } },
    ]);
    with_volume(&mut world, json!({ "projected": { "sources": sources, "defaultMode": 0o440 } }));
    let key = World::pod_key("a");
    let files = loop {
        match world.decide(&key) {
            Decision::Do(Action::ShowFiles { files, .. }, _) => break files,
            _other => assert!(world.step(&key).is_some(), "{:?}", world.why(&key)),
        }
    };
    let told: Vec<(&str, u32, &[u8])> = files.iter().map(|(n, f)| (n.as_str(), f.mode, &*f.bytes.0)).collect();
    assert_eq!(told, [("conf/a", 0o600, &b"1"[..]), ("cpu", 0o440, b"0"), ("name", 0o440, b"a"), ("p", 0o440, b"3")]);
    world.settle();
    assert!(runs(&world));
    assert!(world.machine.memory.iter().any(|place| place.ends_with("kubernetes.io~projected/v")));
}

#[test]
fn a_missing_source_is_told_and_waited_for() {
    for (volume, made, said) in [
        (json!({ "configMap": { "name": "app" } }), json!({ "k": "1" }), "configmap \"app\" not found"),
        (
            json!({ "configMap": { "name": "app", "items": [{ "key": "k", "path": "k" }] } }),
            json!({ "other": "1" }),
            "configmap \"app\" not found",
        ),
    ] {
        let mut world = World::new();
        with_volume(&mut world, volume);
        let key = World::pod_key("a");
        steps(&mut world, 20);
        assert!(world.machine.processes.is_empty());
        assert_eq!(waits_for(&world).0, "ContainerCreating");
        let told = world.why(&key);
        assert!(told.text.contains("MountVolume.SetUp failed for volume \"v\"") && told.text.contains(said), "{told}");
        config_map(&mut world, "app", made.clone());
        if made.get("k").is_none() {
            world.now = world.now.after_millis(120_000);
            steps(&mut world, 20);
            let told = world.why(&key);
            assert!(told.text.contains("configmap references non-existent config key: k"), "{told}");
            world.patch(Kind::ConfigMap, "app", json!({ "data": { "k": "1" } }));
        }
        world.after_millis(120_000);
        assert!(runs(&world), "{}", world.status("a"));
        assert_eq!(shown(&world, "/v/k").as_deref(), Some("1"));
    }
}

#[test]
fn a_missing_source_fails_as_kubelet_says_it() {
    let mut world = World::new();
    with_volume(&mut world, json!({ "secret": { "secretName": "key" } }));
    let key = World::pod_key("a");
    let action = loop {
        match world.decide(&key) {
            Decision::Do(action @ Action::ReadSource { .. }, _) => break action,
            _other => assert!(world.step(&key).is_some()),
        }
    };
    assert_eq!(action.news().failed, Some("FailedMount"));
    let gone = control::Outcome::Done(control::Reply::Gone);
    assert_eq!(action.attempt(&gone).failure(), Some("secret \"key\" not found"));
}

#[test]
fn what_is_optional_is_done_without_and_taken_when_it_comes() {
    let mut world = World::new();
    with_volume(&mut world, json!({ "configMap": { "name": "app", "optional": true } }));
    world.settle();
    assert!(runs(&world));
    config_map(&mut world, "app", json!({ "k": "1" }));
    world.after_millis(31_000);
    assert_eq!(shown(&world, "/v/k").as_deref(), Some("1"));
    world.delete(Kind::ConfigMap, "app");
    world.after_millis(31_000);
    assert_eq!(shown(&world, "/v/k"), None, "it is gone, and the pod does without");
}

#[test]
fn what_runs_goes_on_when_its_source_is_gone() {
    let mut world = World::new();
    config_map(&mut world, "app", json!({ "k": "1" }));
    with_volume(&mut world, json!({ "configMap": { "name": "app" } }));
    world.settle();
    world.delete(Kind::ConfigMap, "app");
    world.now = world.now.after_millis(31_000);
    steps(&mut world, 20);
    assert_eq!(shown(&world, "/v/k").as_deref(), Some("1"));
    assert!(runs(&world));
}

#[test]
fn a_crash_between_any_two_steps_loses_nothing_and_leaves_nothing() {
    for taken in 0..12 {
        let mut world = World::new();
        secret(&mut world, "key", json!({ "p": "1" }));
        with_volume(&mut world, json!({ "secret": { "secretName": "key" } }));
        steps(&mut world, taken);
        world.crash("life-2");
        world.settle();
        assert!(runs(&world), "after {taken} steps");
        assert_eq!((shown(&world, "/v/p").as_deref(), world.machine.memory.len()), (Some("1"), 1));
        world.delete_pod("a");
        world.settle();
        assert!(world.machine.memory.is_empty() && world.machine.dirs.is_empty(), "after {taken} steps");
    }
}

#[test]
fn an_unanswered_mount_is_found_again_or_taken_away() {
    for deleted in [false, true] {
        let mut world = World::new();
        secret(&mut world, "key", json!({ "p": "1" }));
        with_volume(&mut world, json!({ "secret": { "secretName": "key" } }));
        world.faults.insert("MountMemory", Fault::AnswerLost);
        steps(&mut world, 8);
        if deleted {
            world.delete_pod("a");
        }
        world.settle();
        assert_eq!(world.machine.memory.len(), usize::from(!deleted));
    }
}

#[test]
fn variables_come_from_fields_config_maps_and_secrets() {
    let mut world = World::new();
    config_map(&mut world, "app", json!({ "K": "map", "SAME": "from" }));
    secret(&mut world, "key", json!({ "P": "secret" }));
    world.patch_status(
        Kind::Node,
        "n",
        json!({ "addresses": [{ "type": "InternalIP", "address": "10.0.0.7" }],
        "allocatable": { "cpu": "4", "memory": "8Gi" } }),
    );
    let from = |source: &str, inner: Value| json!({ "valueFrom": { source: inner } });
    let mut env = Vec::new();
    let mut add = |name: &str, mut variable: Value| {
        variable["name"] = name.into();
        env.push(variable);
    };
    add("NODE", from("fieldRef", json!({ "fieldPath": "spec.nodeName" })));
    add("HOST_IP", from("fieldRef", json!({ "fieldPath": "status.hostIP" })));
    add("POD_IP", from("fieldRef", json!({ "fieldPath": "status.podIP" })));
    add("LABEL", from("fieldRef", json!({ "fieldPath": "metadata.labels['none']" })));
    add("CPU", from("resourceFieldRef", json!({ "resource": "limits.cpu" })));
    add("MEM", from("resourceFieldRef", json!({ "resource": "limits.memory", "divisor": "1Mi" })));
    add("ONE", from("configMapKeyRef", json!({ "name": "app", "key": "K" })));
    add("TWO", from("secretKeyRef", json!({ "name": "key", "key": "P" })));
    add("NONE", from("secretKeyRef", json!({ "name": "gone", "key": "P", "optional": true })));
    add("SAME", json!({ "value": "own" }));
    add("BOTH", json!({ "value": "$(ONE)-$(TWO)-$(X_P)-$(LATER)-$$(ONE)" }));
    add("LATER", json!({ "value": "x" }));
    let container = json!({ "env": env, "command": ["run", "$(TWO)", "$(NOT)"], "args": ["$(BOTH)"],
        "resources": { "limits": { "cpu": "1500m" } },
        "envFrom": [{ "configMapRef": { "name": "app" } }, { "prefix": "X_", "secretRef": { "name": "key" } },
                    { "configMapRef": { "name": "gone", "optional": true } }] });
    with_container(&mut world, container);
    let process = started(&mut world);
    for (name, value) in [
        ("NODE", "n"),
        ("HOST_IP", "10.0.0.7"),
        ("POD_IP", "127.0.0.1"),
        ("LABEL", ""),
        ("CPU", "2"),
        ("MEM", "8192"),
        ("ONE", "map"),
        ("TWO", "secret"),
        ("K", "map"),
        ("X_P", "secret"),
        ("SAME", "own"),
        ("BOTH", "map-secret-secret-$(LATER)-$(ONE)"),
        ("LATER", "x"),
    ] {
        assert_eq!(process.environment.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!process.environment.contains_key("NONE"));
    assert_eq!(process.command, ["run", "secret", "$(NOT)", "map-secret-secret-$(LATER)-$(ONE)"]);
    assert!(process.confidential && !format!("{process:?}").contains("secret\""), "{process:?}");
}

#[test]
fn a_variable_that_cannot_be_had_is_told_and_waited_for() {
    for (from, said) in [
        (json!({ "configMapKeyRef": { "name": "gone", "key": "K" } }), "configmap \"gone\" not found"),
        (json!({ "secretKeyRef": { "name": "gone", "key": "K" } }), "secret \"gone\" not found"),
        (json!({ "configMapKeyRef": { "name": "app", "key": "K" } }), "couldn't find key K in ConfigMap ns/app"),
    ] {
        let mut world = World::new();
        config_map(&mut world, "app", json!({ "other": "1" }));
        with_container(&mut world, json!({ "env": [{ "name": "E", "valueFrom": from }] }));
        steps(&mut world, 30);
        assert_eq!(waits_for(&world), ("CreateContainerConfigError".into(), said.into()));
        assert_eq!(world.status("a")["phase"], "Pending");
        assert!(world.machine.processes.is_empty());
        match said.contains("gone") {
            true if said.contains("secret") => secret(&mut world, "gone", json!({ "K": "1" })),
            true => config_map(&mut world, "gone", json!({ "K": "1" })),
            false => world.patch(Kind::ConfigMap, "app", json!({ "data": { "K": "1" } })),
        }
        world.after_millis(120_000);
        assert!(runs(&world), "{}", world.status("a"));
    }
}

#[test]
fn annotations_are_shown_and_followed() {
    let mut world = World::new();
    let items = json!([{ "path": "notes", "fieldRef": { "fieldPath": "metadata.annotations" } }]);
    with_volume(&mut world, json!({ "downwardAPI": { "items": items } }));
    world.patch(Kind::Pod, "a", json!({ "metadata": { "annotations": { "b": "say \"hi\"\n", "a": "1" } } }));
    world.settle();
    assert_eq!(shown(&world, "/v/notes").as_deref(), Some("a=\"1\"\nb=\"say \\\"hi\\\"\\n\""));
    world.patch(Kind::Pod, "a", json!({ "metadata": { "annotations": { "a": "2", "b": null } } }));
    world.settle();
    assert_eq!(shown(&world, "/v/notes").as_deref(), Some("a=\"2\""));
}

#[test]
fn an_empty_dir_in_memory_has_the_least_of_its_limits() {
    let mut world = World::new();
    with_volume(&mut world, json!({ "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } }));
    let key = World::pod_key("a");
    let bytes = loop {
        match world.decide(&key) {
            Decision::Do(Action::MountMemory { bytes, mode, .. }, _) => break (bytes, mode),
            _other => assert!(world.step(&key).is_some(), "{:?}", world.why(&key)),
        }
    };
    assert_eq!(bytes, (Some(1 << 20), 0o777));
    world.settle();
    assert!(runs(&world) && world.machine.memory.len() == 1);
    world.force_delete_pod("a");
    world.settle();
    assert!(world.machine.memory.is_empty() && world.machine.dirs.is_empty(), "{:?}", world.machine.dirs);
}

#[test]
fn a_directory_that_outgrows_its_limit_has_its_pod_evicted() {
    let mut world = World::new();
    with_volume(&mut world, json!({ "emptyDir": { "sizeLimit": "1Mi" } }));
    world.settle();
    assert!(runs(&world));
    world.machine.usage = Usage { bytes_used: 1 << 20, ..Usage::default() };
    world.after_millis(11_000);
    assert!(runs(&world), "as much as the limit is allowed");
    world.machine.usage = Usage { bytes_used: (1 << 20) + 1, ..Usage::default() };
    world.after_millis(11_000);
    let status = world.status("a");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Evicted")));
    assert_eq!(status["message"], "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\".");
    assert!(world.machine.processes.keys().all(|name| !world.machine.runs(name)));
}

#[test]
fn a_place_of_the_machine_is_looked_at_before_it_is_given() {
    let mut world = World::new();
    privileged(&mut world);
    with_volume(&mut world, json!({ "hostPath": { "path": "/srv/x", "type": "DirectoryOrCreate" } }));
    let process = started(&mut world);
    assert!(world.machine.dirs.contains("/srv/x"));
    let mount = &process.mounts[0];
    assert_eq!((mount.source.as_str(), mount.of_machine, mount.propagation), ("/srv/x", true, Propagation::None));
    world.settle();
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.dirs.contains("/srv/x"), "it is not the pod's to remove");
}

#[test]
fn parts_of_volumes_and_propagation_reach_the_process() {
    let mut world = World::new();
    let container = json!({ "env": [{ "name": "WHO", "value": "me" }], "volumeMounts": [
        { "name": "v", "mountPath": "/one", "subPath": "a/b" },
        { "name": "v", "mountPath": "/two", "subPathExpr": "$(WHO)/x", "mountPropagation": "HostToContainer" }] });
    with_container(&mut world, container);
    let process = started(&mut world);
    let told: Vec<_> = process.mounts.iter().map(|m| (m.sub_path.as_str(), m.propagation)).collect();
    assert_eq!(told, [("a/b", Propagation::None), ("me/x", Propagation::HostToContainer)]);
    // No variable leads out of the volume.
    for (value, said) in [("../x", "no relative path"), ("/etc", "no relative path")] {
        let mut world = World::new();
        let container = json!({ "env": [{ "name": "WHO", "value": value }],
            "volumeMounts": [{ "name": "v", "mountPath": "/two", "subPathExpr": "$(WHO)" }] });
        with_container(&mut world, container);
        world.settle();
        let (reason, message) = waits_for(&world);
        assert_eq!(reason, "CreateContainerConfigError");
        assert!(message.as_str().unwrap().contains(said), "{message}");
    }
}

#[test]
fn what_lacks_an_entry_is_worth_an_event() {
    let why = control::Why::waiting(crate::Reason::VolumeContentsMissing, "x");
    let event = Node::rest_event(&World::pod_key("a"), &why).map(|(_, reason)| reason);
    assert_eq!(event, Some("FailedMount"));
}
