//! Volumes in a pod's own spec, and what drivers are told of pods.

use alloc::collections::BTreeMap;
use alloc::string::String;

use api::{Kind, Value, names};
use csi::Call;
use csi::v1::NodePublishVolumeRequest;
use serde_json::json;

use super::world::{DRIVER, World};

fn offered() -> Value {
    json!({ "attachRequired": true, "podInfoOnMount": true, "volumeLifecycleModes": ["Ephemeral"] })
}

fn inline(csi: Value) -> Value {
    let mut source = json!({ "driver": DRIVER });
    for (key, value) in csi.as_object().unwrap() {
        source[key] = value.clone();
    }
    json!({ "volumes": [{ "name": "v", "csi": source }] })
}

fn published(world: &mut World) -> NodePublishVolumeRequest {
    let mut calls = world.calls();
    match (calls.pop(), calls.is_empty()) {
        (Some(Call::NodePublishVolume(request)), true) => request,
        other => panic!("{other:?} {}", world.why(&World::pod_key("a"))),
    }
}

// KL-103, KL-71, KL-78: published alone, under kubelet's handle, with no attachment, staging or report.
#[test]
fn kl_103_an_inline_volume_is_only_published() {
    let mut world = World::new();
    world.driver(offered());
    world.pod_with("a", inline(json!({ "fsType": "xfs", "readOnly": true, "volumeAttributes": { "size": "1Gi" } })));
    let uid = world.uid("a");
    let request = published(&mut world);
    assert_eq!(request.volume_id, names::inline_volume_handle(&uid, "v"));
    assert_eq!(request.target_path, alloc::format!("/r/pods/{uid}/volumes/kubernetes.io~csi/v/mount"));
    assert!(request.readonly && request.staging_target_path.is_empty() && request.publish_context.is_empty());
    assert_eq!(request.volume_context["size"], "1Gi");
    assert_eq!(request.volume_context["csi.storage.k8s.io/ephemeral"], "true");
    let capability = request.volume_capability.unwrap();
    assert_eq!(capability.access_mode.unwrap().mode, 1);
    assert_eq!(world.status("a")["phase"], "Running");
    assert_eq!(world.get(Kind::Node, "n").unwrap()["status"]["volumesInUse"], Value::Null);
    let record = world.local().records.values().next().unwrap().clone();
    assert_eq!((record.lifecycle.as_str(), record.volume.as_str()), ("Ephemeral", "v"));
}

// KL-103: it goes with its pod, also after a restart, and leaves nothing.
#[test]
fn kl_103_an_inline_volume_goes_with_its_pod() {
    for restart in [false, true] {
        let mut world = World::new();
        world.driver(offered());
        world.pod_with("a", inline(json!({})));
        published(&mut world);
        if restart {
            world.crash("life-2");
            assert!(world.calls().is_empty(), "a restart at rest does nothing");
        }
        world.delete_pod("a");
        let calls = world.calls();
        assert!(matches!(&calls[..], [Call::NodeUnpublishVolume(_)]), "{calls:?}");
        assert!(world.get(Kind::Pod, "a").is_none());
        assert!(world.machine.dirs.is_empty() && world.machine.files.is_empty(), "left: {:?}", world.machine.dirs);
        assert!(world.local().records.is_empty());
    }
}

// KL-70: without an object, or without the mode, pods cannot ask for volumes themselves.
#[test]
fn kl_70_an_inline_volume_must_be_offered() {
    for (driver, told) in
        [(None, "no CSIDriver object"), (Some(json!({ "attachRequired": true })), "does not list Ephemeral")]
    {
        let mut world = World::new();
        if let Some(spec) = driver {
            world.driver(spec);
        }
        world.pod_with("a", inline(json!({})));
        assert!(world.calls().is_empty());
        let handle = names::inline_volume_handle(&world.uid("a"), "v");
        let why = world.why(&crate::Key::Volume(names::unique_volume_name(DRIVER, &handle)));
        assert!(why.code == "VolumeNotSupported" && why.text.contains(told), "{why}");
    }
}

// KL-80: the secret is in the pod's namespace.
#[test]
fn kl_80_an_inline_volume_takes_a_secret_of_its_namespace() {
    let mut world = World::new();
    world.driver(offered());
    world.create(Kind::Secret, json!({ "metadata": { "name": "s" }, "data": { "k": "Y2FuYXJ5" } }));
    world.pod_with("a", inline(json!({ "nodePublishSecretRef": { "name": "s" } })));
    assert_eq!(published(&mut world).secrets["k"], "canary");
}

// S1-1, S1-2, S1-3, S1-4, S1-12, KL-78: each door gives its own keys, both doors give both, none gives none; other
// attributes stay, and keys of the same name are overwritten.
#[test]
fn s1_each_door_tells_of_the_pod_under_its_own_keys() {
    for (object, registrar) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = World::new();
        world.volume_with(|spec| {
            spec["csi"]["volumeAttributes"] = json!({ "made": "here", "csi.kubernetes.io/pod.name": "forged",
                                                      "csi.storage.k8s.io/pod.name": "forged" });
        });
        world.driver(json!({ "attachRequired": true, "podInfoOnMount": object }));
        world.driver_can(|facts| facts.wants_pod = registrar);
        world.pod_with("a", json!({ "serviceAccountName": "robot" }));
        let uid = world.uid("a");
        let calls = world.calls();
        let Some(Call::NodePublishVolume(request)) = calls.last() else { panic!("{calls:?}") };
        let mut wanted: BTreeMap<String, String> = [("made", "here")].map(|(k, v)| (k.into(), v.into())).into();
        for (family, asked) in [("csi.storage.k8s.io", object), ("csi.kubernetes.io", registrar)] {
            let told =
                [("pod.name", "a"), ("pod.namespace", "ns"), ("pod.uid", &uid), ("serviceAccount.name", "robot")];
            match asked {
                true => wanted.extend(told.map(|(key, value)| (alloc::format!("{family}/{key}"), value.into()))),
                false => drop(wanted.insert(alloc::format!("{family}/pod.name"), "forged".into())),
            }
        }
        if object {
            wanted.insert("csi.storage.k8s.io/ephemeral".into(), "false".into());
        }
        assert_eq!(request.volume_context, wanted);
        let Call::NodeStageVolume(stage) = &calls[0] else { panic!("{calls:?}") };
        assert_eq!(stage.volume_context.len(), 3, "staging is for every pod");
    }
}
