//! Who is looked at after a change, and who is not.

use api::{Kind, Object, Value};
use control::Cache;
use prove_lab::{check_wakes, object};
use serde_json::json;

use crate::Scheduler;

/// Pod `NAME`, which uses claim `c` of class `late` or none.
fn pod(name: &str, claim: bool, node: &str, phase: &str) -> Object {
    let volumes =
        if claim { json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]) } else { json!([]) };
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    object(
        Kind::Pod,
        json!({ "metadata": metadata, "spec": { "volumes": volumes, "nodeName": node }, "status": { "phase": phase } }),
    )
}

fn node(labels: Value, unschedulable: bool, ready: &str) -> Object {
    let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
    let metadata = json!({ "name": "a", "labels": labels });
    object(Kind::Node, json!({ "metadata": metadata, "spec": { "unschedulable": unschedulable }, "status": status }))
}

#[test]
fn every_change_and_whom_it_wakes() {
    let mut cache = Cache::default();
    let claim =
        json!({ "metadata": { "namespace": "n", "name": "c", "uid": "u" }, "spec": { "storageClassName": "late" } });
    for one in [
        object(Kind::PersistentVolumeClaim, claim.clone()),
        pod("waits-for-the-claim", true, "", "Pending"),
        pod("placed-with-the-claim", true, "a", "Running"),
        pod("ended-with-the-claim", true, "", "Failed"),
        pod("placed-and-ended-with-the-claim", true, "a", "Succeeded"),
        pod("waits-for-no-claim", false, "", "Pending"),
        pod("placed-without-a-claim", false, "a", "Running"),
    ] {
        cache.set(one);
    }
    let volume = |holder: Option<&str>| {
        let holder = holder.map(|name| json!({ "namespace": "n", "name": name }));
        Some(object(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": { "claimRef": holder } })))
    };
    let class =
        |name: &str| Some(object(Kind::StorageClass, json!({ "metadata": { "name": name }, "provisioner": "d" })));
    let plain = || Some(node(json!({}), false, "True"));
    let running = || Some(pod("placed-without-a-claim", false, "a", "Running"));
    // SC-12, SC-18.
    let csi_node = |count: i32| {
        let driver = json!({ "name": "d", "nodeID": "a", "topologyKeys": [], "allocatable": { "count": count } });
        Some(object(Kind::CSINode, json!({ "metadata": { "name": "a" }, "spec": { "drivers": [driver] } })))
    };
    let driver = |says: bool| {
        Some(object(Kind::CSIDriver, json!({ "metadata": { "name": "d" }, "spec": { "storageCapacity": says } })))
    };
    let capacity = |class: &str| {
        let metadata = json!({ "namespace": "n", "name": "x" });
        Some(object(Kind::CSIStorageCapacity, json!({ "metadata": metadata, "storageClassName": class })))
    };
    // SC-12: more is left, or one volume may be larger.
    let left = |capacity: &str, largest: Option<&str>| {
        let metadata = json!({ "namespace": "n", "name": "x" });
        let body = json!({ "metadata": metadata, "storageClassName": "late", "capacity": capacity,
            "maximumVolumeSize": largest });
        Some(object(Kind::CSIStorageCapacity, body))
    };
    // SC-12: volumes of the class may be elsewhere than before.
    let placed = |zone: &str| {
        let expressions = json!([{ "key": "zone", "values": [zone] }]);
        let body = json!({ "metadata": { "name": "late" }, "provisioner": "d",
            "allowedTopologies": [{ "matchLabelExpressions": expressions }] });
        Some(object(Kind::StorageClass, body))
    };
    let attachment = || {
        let spec = json!({ "attacher": "d", "nodeName": "a", "source": { "persistentVolumeName": "v" } });
        Some(object(Kind::VolumeAttachment, json!({ "metadata": { "name": "x" }, "spec": spec })))
    };
    let free = |class: &str| {
        let spec = json!({ "storageClassName": class });
        Some(object(Kind::PersistentVolume, json!({ "metadata": { "name": "f" }, "spec": spec })))
    };
    let sized = || {
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        let status = json!({ "conditions": conditions, "allocatable": { "cpu": "1" } });
        Some(object(Kind::Node, json!({ "metadata": { "name": "a", "labels": {} }, "status": status })))
    };
    let unready = |labels| Some(node(labels, false, "False"));
    let changes = [
        ("claim", None, Some(object(Kind::PersistentVolumeClaim, claim.clone()))),
        ("volume-of-the-claim", None, volume(Some("c"))),
        ("volume-of-another-claim", None, volume(Some("d"))),
        ("volume-of-no-claim", None, volume(None)),
        ("class-of-the-claim", None, class("late")),
        ("class-of-the-claim-for-another-zone", placed("y"), placed("z")),
        ("another-class", None, class("other")),
        ("pod-with-the-claim", None, Some(pod("placed-with-the-claim", true, "a", "Succeeded"))),
        ("pod-without-a-claim", None, Some(pod("placed-without-a-claim", false, "a", "Succeeded"))),
        ("pod-without-a-claim-still-there", running(), running()),
        ("pod-without-a-claim-ended", running(), Some(pod("placed-without-a-claim", false, "a", "Succeeded"))),
        ("pod-without-a-claim-gone", running(), None),
        ("csi-node-new", None, csi_node(1)),
        ("csi-node-takes-more", csi_node(1), csi_node(2)),
        ("csi-node-the-same", csi_node(1), csi_node(1)),
        ("driver-says-what-is-left", driver(false), driver(true)),
        ("driver-the-same", driver(true), driver(true)),
        ("capacity-of-the-class", None, capacity("late")),
        ("capacity-with-more-left", left("1Gi", None), left("2Gi", None)),
        ("capacity-for-larger-volumes", left("9Gi", Some("1Gi")), left("9Gi", Some("2Gi"))),
        ("capacity-of-another-class", None, capacity("other")),
        ("attachment-new", None, attachment()),
        ("attachment-gone", attachment(), None),
        ("free-volume-of-the-class", None, free("late")),
        ("free-volume-of-another-class", None, free("other")),
        ("node-new", None, plain()),
        ("node-larger", plain(), sized()),
        ("node-labelled", plain(), Some(node(json!({ "zone": "z" }), false, "True"))),
        ("node-closed", plain(), Some(node(json!({}), true, "True"))),
        ("node-not-ready", plain(), Some(node(json!({}), false, "False"))),
        ("node-the-same", plain(), plain()),
        ("node-not-ready-the-same", unready(json!({})), unready(json!({}))),
        ("node-not-ready-labelled", unready(json!({})), unready(json!({ "zone": "z" }))),
    ];
    check_wakes::<Scheduler>(env!("CARGO_MANIFEST_DIR"), &cache, &(), &changes);
}
