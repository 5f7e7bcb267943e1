use alloc::vec::Vec;

use api::{Kind, Object};
use control::{Change, Rules};
use prove_lab::check_wakes;
use serde_json::{Value, json};

use super::world::*;
use crate::{AttachDetach, Key};

fn object(world: &World, kind: Kind, name: &str) -> Object {
    Object::from_json(kind, world.json(kind, name)).unwrap()
}

fn woken(world: &World, before: Option<Object>, after: Option<Object>) -> Vec<Key> {
    AttachDetach::wakes(&Change { before, after }, &world.cache, &Default::default())
}

// AD-7: and a pod without a node wakes nobody, and wants nothing.
#[test]
fn a_pod_wakes_its_volume_on_its_node_coming_and_going() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    let pod = object(&world, Kind::Pod, "p");
    assert_eq!(woken(&world, None, Some(pod.clone())), [on("a")]);
    world.delete(Kind::Pod, "p");
    world.sync();
    assert_eq!(woken(&world, Some(pod), None), [on("a")]);
    world.make("pod q claim=c");
    world.sync();
    assert!(woken(&world, None, Some(object(&world, Kind::Pod, "q"))).is_empty());
    assert!(AttachDetach::keys(&world.cache, &crate::Local::default()).is_empty());
}

// AD-11, AD-13: a claim that is bound later among them, so that nothing has to be looked at every three minutes.
#[test]
fn every_object_a_decision_reads_wakes_it() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.pod("q", "b");
    world.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": true } }));
    world.run(&on("a"));
    let both = [on("a"), on("b")];
    for (kind, name) in [
        (Kind::PersistentVolumeClaim, "c"),
        (Kind::PersistentVolume, "v"),
        (Kind::CSIDriver, DRIVER),
        (Kind::VolumeAttachment, attachment_name("a").as_str()),
        (Kind::Pod, "p"), // The other node waits for this one.
        (Kind::Node, "a"),
    ] {
        let object = object(&world, kind, name);
        assert_eq!(woken(&world, None, Some(object.clone())), both, "new {kind}");
        assert_eq!(woken(&world, Some(object), None), both, "gone {kind}");
    }
    assert_eq!(AttachDetach::keys(&world.cache, &Default::default()), both);
}

// AD-5.
#[test]
fn a_heartbeat_wakes_nobody_but_a_report_does() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.sync();
    let before = object(&world, Kind::Node, "b");
    world.patch_status(Kind::Node, "b", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    world.sync();
    let beat = object(&world, Kind::Node, "b");
    assert!(woken(&world, Some(before), Some(beat.clone())).is_empty());
    world.in_use("b", true);
    world.sync();
    let used = object(&world, Kind::Node, "b");
    assert_eq!(woken(&world, Some(beat), Some(used)), [on("a"), on("b")]);
}

// `explain` tells of a volume on a node only where it was asked about both.
#[test]
fn a_volume_on_a_node_is_about_both_and_their_attachment() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let about = |world: &World, node: &str| AttachDetach::about(&on(node), &world.cache, &Default::default());
    let kinds = |about: Vec<api::ObjectRef>| about.iter().map(|one| one.kind).collect::<Vec<_>>();
    world.pod("p", "a");
    world.run_forgetful(&on("a"));
    let both = [Kind::PersistentVolume, Kind::Node];
    assert_eq!(kinds(about(&world, "a")), [both[0], both[1], Kind::VolumeAttachment]);
    assert_eq!(kinds(about(&world, "b")), both);
}

fn merge(body: &mut Value, change: Value) {
    match (body, change) {
        (Value::Object(body), Value::Object(change)) => {
            change.into_iter().for_each(|(key, value)| merge(body.entry(key).or_insert(Value::Null), value));
        }
        (body, change) => *body = change,
    }
}

/// The object of the world, changed.
fn changed(world: &World, kind: Kind, name: &str, change: Value) -> Option<Object> {
    let mut body = world.json(kind, name);
    merge(&mut body, change);
    Some(prove_lab::object(kind, body))
}

// AD-5, AD-7, AD-11: volume `v` of claim `c` is attached to node `a`, and another pod waits for it on `b`.
#[test]
fn every_change_and_whom_it_wakes() {
    let mut world = World::attached();
    world.pod("q", "b");
    world.sync();
    let of = |kind: Kind, name: &str| Some(object(&world, kind, name));
    let attachment = attachment_name("a");
    let new = |kind: Kind, body: Value| Some(prove_lab::object(kind, body));
    let pod = |node: &str, claim: &str| {
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
        let spec = json!({ "nodeName": node, "volumes": volumes });
        new(Kind::Pod, json!({ "metadata": { "namespace": "n", "name": "r", "uid": "r" }, "spec": spec }))
    };
    let driver = |attaches: bool| {
        new(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": attaches } }))
    };
    let csi_node = |plugins: &str| {
        let annotations = json!({ api::names::MIGRATED_PLUGINS: plugins });
        new(
            Kind::CSINode,
            json!({ "metadata": { "name": "a", "annotations": annotations }, "spec": { "drivers": [] } }),
        )
    };
    let class = |after: &str| {
        let annotations = json!({ api::names::FORCE_DETACH_AFTER: after });
        new(
            Kind::StorageClass,
            json!({ "metadata": { "name": "fast", "annotations": annotations }, "provisioner": "d" }),
        )
    };
    let taints = json!([{ "key": api::names::OUT_OF_SERVICE_TAINT, "effect": "NoExecute" }]);
    let beat = json!({ "status": { "conditions": [{ "type": "MemoryPressure", "status": "False" }] } });
    let elsewhere = json!({ "metadata": { "name": "w" }, "spec": { "claimRef": null } });
    let changes = [
        ("pod", of(Kind::Pod, "p"), of(Kind::Pod, "p")),
        ("pod-gone", of(Kind::Pod, "q"), None),
        ("pod-without-a-node", None, pod("", "c")),
        ("pod-on-a-third-node", None, pod("d", "c")),
        ("pod-of-another-claim", None, pod("a", "other")),
        ("claim", None, of(Kind::PersistentVolumeClaim, "c")),
        ("claim-gone", of(Kind::PersistentVolumeClaim, "c"), None),
        ("volume", None, of(Kind::PersistentVolume, "v")),
        ("volume-gone", of(Kind::PersistentVolume, "v"), None),
        ("volume-of-nobody", None, changed(&world, Kind::PersistentVolume, "v", elsewhere)),
        ("attachment", None, of(Kind::VolumeAttachment, &attachment)),
        ("attachment-gone", of(Kind::VolumeAttachment, &attachment), None),
        ("node", None, of(Kind::Node, "a")),
        ("node-without-pods", None, changed(&world, Kind::Node, "b", json!({ "metadata": { "name": "z" } }))),
        ("node-gone", of(Kind::Node, "a"), None),
        ("heartbeat", of(Kind::Node, "a"), changed(&world, Kind::Node, "a", beat)),
        (
            "report",
            of(Kind::Node, "b"),
            changed(&world, Kind::Node, "b", json!({ "status": { "volumesInUse": [unique_name()] } })),
        ),
        (
            "out-of-service",
            of(Kind::Node, "a"),
            changed(&world, Kind::Node, "a", json!({ "spec": { "taints": taints } })),
        ),
        ("driver", None, driver(true)),
        ("driver-that-no-longer-attaches", driver(true), driver(false)),
        ("driver-that-says-the-same", driver(true), driver(true)),
        ("csi-node", None, csi_node("")),
        ("csi-node-that-leaves-a-plugin-to-its-driver", csi_node(""), csi_node("kubernetes.io/gce-pd")),
        ("csi-node-that-says-the-same", csi_node(""), csi_node("")),
        ("class", None, class("5m")),
        ("class-that-says-the-same", class("5m"), class("5m")),
    ];
    check_wakes::<AttachDetach>(env!("CARGO_MANIFEST_DIR"), &world.cache, &Default::default(), &changes);
}
