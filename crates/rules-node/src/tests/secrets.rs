//! Secrets of the node's calls: read for the one call, told to the driver, and to nobody else.

use alloc::format;

use api::Kind;
use csi::Call;
use serde_json::json;

use super::world::World;

fn world() -> World {
    let mut world = World::new();
    world.volume_with(|spec| {
        spec["csi"]["nodeStageSecretRef"] = json!({ "name": "stage", "namespace": "ns" });
        spec["csi"]["nodePublishSecretRef"] = json!({ "name": "publish", "namespace": "ns" });
    });
    world
}

fn secret(world: &mut World, name: &str) {
    // "canary" and "two", encoded.
    world.create(Kind::Secret, json!({ "metadata": { "name": name }, "data": { "k": "Y2FuYXJ5", "l": "dHdv" } }));
}

// KL-80, S0-84, S0-85, S0-89, S0-90: all entries as text, each secret in its own call, and neither on the way back.
#[test]
fn kl_80_each_call_takes_its_own_secret_along() {
    let mut world = world();
    secret(&mut world, "stage");
    secret(&mut world, "publish");
    world.pod("a");
    let calls = world.calls();
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    for secrets in [&stage.secrets, &publish.secrets] {
        assert_eq!((secrets["k"].as_str(), secrets["l"].as_str(), secrets.len()), ("canary", "two", 2));
    }
    let done: alloc::vec::Vec<&str> = world.log.iter().copied().filter(|name| *name == "ReadSecret").collect();
    assert_eq!(done.len(), 2, "one read for each call");
    for (key, memory, ..) in world.engine.remembered() {
        assert!(!format!("{memory:?}").contains("canary"), "{key}");
        assert_eq!(memory.secrets, None, "{key}");
    }
    for bytes in world.machine.files.values() {
        assert!(!alloc::string::String::from_utf8_lossy(bytes).contains("canary"));
    }
}

// KL-64: a secret that is missing keeps the volume waiting, and is read again.
#[test]
fn kl_64_a_missing_secret_is_named_and_waited_for() {
    let mut world = world();
    secret(&mut world, "publish");
    world.pod("a");
    let calls = world.calls();
    assert!(calls.is_empty(), "{calls:?}");
    assert!(world.machine.staged.is_empty());
    secret(&mut world, "stage");
    world.pass(200_000);
    assert_eq!(world.calls().len(), 2);
    assert_eq!(world.status("a")["phase"], "Running");
}

// What an action prints holds nothing secret.
#[test]
fn nothing_secret_is_printed() {
    let secrets = control::Secrets([("k".into(), "canary".into())].into());
    let memory = crate::Memory { secrets: Some(("p".into(), secrets.clone())), ..crate::Memory::default() };
    let stage = crate::Action::Stage {
        driver: "d".into(),
        handle: "h".into(),
        path: "/p".into(),
        spec: crate::VolumeSpec::default(),
        mount_group: None,
        secrets,
    };
    assert!(!format!("{memory:?} {stage:?} {:?}", control::Action::effect(&stage)).contains("canary"));
}
