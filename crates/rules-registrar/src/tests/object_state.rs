use alloc::string::String;

use api::{Kind, Object, ObjectKey};
use control::Cache;
use serde_json::{Value, json};

use crate::{ObjectState, namespace_state, object_state};

fn cluster(drivers: &Value) -> Cache {
    let mut cache = Cache::default();
    let default = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let objects = [
        (Kind::CSINode, json!({ "metadata": { "name": "a" }, "spec": { "drivers": drivers } })),
        (Kind::Node, json!({ "metadata": { "name": "a" }, "status": { "conditions": ready } })),
        (
            Kind::Node,
            json!({ "metadata": { "name": "off" }, "spec": { "unschedulable": true },
            "status": { "conditions": ready } }),
        ),
        (Kind::Node, json!({ "metadata": { "name": "new" } })),
        (
            Kind::Node,
            json!({ "metadata": { "name": "ill" }, "status": { "conditions": [
            { "type": "DiskPressure", "status": "False", "message": "there is room" },
            { "type": "Ready", "status": "False", "message": "the disk is gone" },
        ] } }),
        ),
        (
            Kind::Node,
            json!({ "metadata": { "name": "mute" }, "status": { "conditions": [
            { "type": "Ready", "status": "False", "message": "" },
        ] } }),
        ),
        (Kind::VolumeAttributesClass, json!({ "metadata": { "name": "gold" }, "driverName": "d" })),
        (Kind::VolumeSnapshotContent, json!({ "metadata": { "name": "sc" }, "status": { "readyToUse": true } })),
        (Kind::CSIDriver, json!({ "metadata": { "name": "d" } })),
        (Kind::StorageClass, json!({ "metadata": { "name": "fast", "annotations": default }, "provisioner": "d" })),
        (
            Kind::StorageClass,
            json!({ "metadata": { "name": "late" }, "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain", "allowVolumeExpansion": true }),
        ),
        (
            Kind::VolumeSnapshot,
            json!({ "metadata": { "namespace": "n", "name": "s" },
            "spec": { "source": { "persistentVolumeClaimName": "data" } } }),
        ),
        (Kind::Pod, json!({ "metadata": { "namespace": "n", "name": "p" } })),
    ];
    for (kind, json) in objects {
        cache.set(Object::from_json(kind, json).unwrap());
    }
    cache
}

fn told(cache: &Cache, kind: Kind, key: &ObjectKey) -> (bool, String) {
    let ObjectState { settled, text } = object_state(&cache.get(kind, key).unwrap(), cache).unwrap();
    (settled, text)
}

#[test]
fn classes_drivers_and_nodes_say_what_is_registered() {
    let topology = json!([{ "name": "d", "nodeID": "a", "topologyKeys": ["d/node"] }]);
    for (drivers, kind, name, settled, text) in [
        (
            &topology,
            Kind::StorageClass,
            "fast",
            true,
            "driver d makes its volumes as soon as a claim asks, also for claims \
            that name no class; they cannot grow, and the policy when a claim goes is Delete",
        ),
        (
            &topology,
            Kind::StorageClass,
            "late",
            true,
            "driver d makes its volumes when the first pod that uses the claim \
            has a node; they can grow, and the policy when a claim goes is Retain",
        ),
        (
            &json!([]),
            Kind::StorageClass,
            "fast",
            false,
            "its driver d is registered on no node, so nothing makes its volumes",
        ),
        (
            &topology,
            Kind::CSIDriver,
            "d",
            true,
            "the driver is registered on node a; volumes are attached before they are \
            mounted",
        ),
        (
            &json!([]),
            Kind::CSIDriver,
            "d",
            false,
            "the driver is registered on no node; start it beside a node agent that \
            finds its registration socket",
        ),
        (&topology, Kind::CSINode, "a", true, "registered on the node: d with topology d/node"),
        (&json!([]), Kind::CSINode, "a", false, "no driver is registered on the node"),
        (&topology, Kind::Node, "a", true, "the node is ready and takes pods; drivers: d with topology d/node"),
        (
            &topology,
            Kind::Node,
            "off",
            true,
            "the node is ready and is cordoned and takes no new pods (kubectl uncordon \
            opens it); drivers: no driver is registered",
        ),
        (&topology, Kind::Node, "new", false, "the node is not ready: its agent has not said so"),
        (&topology, Kind::Node, "mute", false, "the node is not ready: its agent has not said so"),
        (&topology, Kind::Node, "ill", false, "the node is not ready: the disk is gone"),
        (
            &json!([{ "name": "d", "nodeID": "a", "topologyKeys": [] }]),
            Kind::CSINode,
            "a",
            true,
            "registered on the node: d",
        ),
        (
            &topology,
            Kind::VolumeAttributesClass,
            "gold",
            true,
            "it holds parameters that the resizer of driver d gives to volumes whose claims name it",
        ),
        (&topology, Kind::VolumeSnapshotContent, "sc", true, "the snapshot is ready to use"),
    ] {
        assert_eq!(told(&cluster(drivers), kind, &ObjectKey::cluster(name)), (settled, text.into()));
    }
}

#[test]
fn a_snapshot_waits_for_a_controller_that_is_not_here() {
    let (settled, text) = told(&cluster(&json!([])), Kind::VolumeSnapshot, &ObjectKey::new("n", "s"));
    assert!(!settled && text.contains("nothing here takes snapshots of claim data"), "{text}");
}

#[test]
fn a_namespace_that_goes_names_what_keeps_it() {
    let cache = cluster(&json!([]));
    assert!(namespace_state("n", false, &cache).settled);
    let going = namespace_state("n", true, &cache);
    assert!(
        !going.settled && going.text.contains("still holds 1 pods and claims; explain pod/p -n n"),
        "{}",
        going.text
    );
    assert!(!namespace_state("empty", true, &cache).settled);
}

#[test]
fn kinds_that_have_rules_of_their_own_are_left_to_them() {
    let cache = cluster(&json!([]));
    assert_eq!(object_state(&cache.get(Kind::Pod, &ObjectKey::new("n", "p")).unwrap(), &cache), None);
}
