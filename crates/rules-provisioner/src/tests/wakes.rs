//! Who is looked at after a change, and who is not.

use api::{Kind, Object, Value, names};
use control::Cache;
use csi::PluginService;
use prove_lab::{check_wakes, object};
use serde_json::json;

use super::world::local;
use crate::{Local, Provisioner};

/// A claim that asks this provisioner for a volume of the class `fast`, with more in its spec.
fn claim(name: &str, spec: Value) -> Object {
    let annotations = json!({ names::STORAGE_PROVISIONER: "d" });
    let metadata = json!({ "namespace": "n", "name": name, "uid": name, "annotations": annotations });
    let mut body = json!({ "metadata": metadata, "spec": { "storageClassName": "fast" } });
    rules_store::merge_patch(&mut body["spec"], &spec);
    object(Kind::PersistentVolumeClaim, body)
}

fn copy_of(kind: &str, name: &str) -> Value {
    let group = if kind == "VolumeSnapshot" { "snapshot.storage.k8s.io" } else { "" };
    json!({ "dataSource": { "apiGroup": group, "kind": kind, "name": name } })
}

/// A volume of a driver, for a claim.
fn volume(name: &str, driver: &str, phase: &str, holder: &str) -> Object {
    let annotations = json!({ names::PROVISIONED_BY: driver });
    let spec = json!({
        "storageClassName": "fast", "csi": { "driver": driver, "volumeHandle": name },
        "claimRef": { "namespace": "n", "name": holder, "uid": holder },
    });
    let metadata = json!({ "name": name, "annotations": annotations });
    object(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } }))
}

fn named(kind: Kind, name: &str) -> Option<Object> {
    let mut body = json!({ "metadata": { "name": name } });
    match kind {
        Kind::VolumeSnapshot | Kind::Lease => body["metadata"]["namespace"] = "n".into(),
        Kind::StorageClass => body["provisioner"] = "d".into(),
        Kind::VolumeAttributesClass => body["driverName"] = "d".into(),
        _ => {}
    }
    Some(object(kind, body))
}

fn node(zone: &str) -> Option<Object> {
    Some(object(Kind::Node, json!({ "metadata": { "name": "a", "labels": { "zone": zone } } })))
}

fn csi_node(driver: &str, id: &str) -> Option<Object> {
    let drivers = json!([{ "name": driver, "nodeID": id, "topologyKeys": ["zone"] }]);
    Some(object(Kind::CSINode, json!({ "metadata": { "name": "a" }, "spec": { "drivers": drivers } })))
}

fn attachment(volume: &str) -> Option<Object> {
    let spec = json!({ "attacher": "d", "nodeName": "a", "source": { "persistentVolumeName": volume } });
    Some(object(Kind::VolumeAttachment, json!({ "metadata": { "name": "x" }, "spec": spec })))
}

fn content(snapshot: &str) -> Option<Object> {
    let spec = json!({ "driver": "d", "volumeSnapshotRef": { "namespace": "n", "name": snapshot } });
    Some(object(Kind::VolumeSnapshotContent, json!({ "metadata": { "name": "content" }, "spec": spec })))
}

fn grant(namespace: &str) -> Option<Object> {
    Some(object(Kind::ReferenceGrant, json!({ "metadata": { "namespace": namespace, "name": "g" }, "spec": {} })))
}

// Reliability 103: everything a decision reads wakes its key, and only claims without a volume and volumes without a
// claim are looked at because of what concerns all.
#[test]
fn every_change_and_whom_it_wakes() {
    let mut cache = Cache::default();
    let theirs = object(
        Kind::PersistentVolumeClaim,
        json!({
            "metadata": {
                "namespace": "n", "name": "theirs", "uid": "theirs",
                "annotations": { names::STORAGE_PROVISIONER: "e" },
            },
            "spec": { "storageClassName": "fast" },
        }),
    );
    for one in [
        claim("waits", json!({})),
        claim("waits-for-gold", json!({ "volumeAttributesClassName": "gold" })),
        claim("copies-a-claim", copy_of("PersistentVolumeClaim", "bound")),
        claim("copies-a-snapshot", copy_of("VolumeSnapshot", "snap")),
        claim("bound", json!({ "volumeName": "v-bound" })),
        theirs.clone(),
        volume("v-bound", "d", "Bound", "bound"),
        volume("v-released", "d", "Released", "gone"),
        volume("v-theirs", "e", "Released", "gone"),
    ] {
        cache.set(one);
    }
    let capabilities = Local::PLAIN.with(PluginService::VolumeAccessibilityConstraints.into());
    let local = Local { capabilities, ..local() };
    let changes = [
        ("claim", None, Some(claim("waits", json!({})))),
        ("claim-gone", Some(claim("waits", json!({}))), None),
        ("claim-of-another-provisioner", None, Some(theirs)),
        ("claim-that-is-copied", None, Some(claim("bound", json!({ "volumeName": "v-bound" })))),
        ("volume", None, Some(volume("v-released", "d", "Released", "gone"))),
        ("volume-of-a-claim", None, Some(volume("v-bound", "d", "Bound", "bound"))),
        ("volume-for-a-claim-that-waits", None, Some(volume("v-new", "d", "Available", "waits"))),
        ("volume-of-another-driver", None, Some(volume("v-theirs", "e", "Released", "gone"))),
        ("volume-gone", Some(volume("v-released", "d", "Released", "gone")), None),
        ("class", None, named(Kind::StorageClass, "fast")),
        ("class-of-nobody", None, named(Kind::StorageClass, "slow")),
        ("attachment", None, attachment("v-released")),
        ("attachment-gone", attachment("v-released"), None),
        ("node", None, node("east")),
        ("node-moved", node("east"), node("west")),
        ("heartbeat", node("east"), node("east")),
        ("driver-registered", None, csi_node("d", "1")),
        ("driver-with-another-id", csi_node("d", "1"), csi_node("d", "2")),
        ("other-driver-registered", None, csi_node("e", "1")),
        ("driver-says-the-same", csi_node("d", "1"), csi_node("d", "1")),
        ("attributes-class", None, named(Kind::VolumeAttributesClass, "gold")),
        ("attributes-class-of-nobody", None, named(Kind::VolumeAttributesClass, "iron")),
        ("snapshot", None, named(Kind::VolumeSnapshot, "snap")),
        ("snapshot-of-nobody", None, named(Kind::VolumeSnapshot, "other")),
        ("content", None, content("snap")),
        ("content-of-another-snapshot", None, content("other")),
        ("grant", None, grant("n")),
        ("grant-elsewhere", None, grant("m")),
        ("lease-of-others", None, named(Kind::Lease, "lease")),
    ];
    check_wakes::<Provisioner>(env!("CARGO_MANIFEST_DIR"), &cache, &local, &changes);
}
