//! Objects with every field that is read.

use api::Value;
use serde_json::json;

const TIME: &str = "2027-01-15T08:00:00Z";

fn secret(name: &str) -> Value {
    json!({ "name": name, "namespace": "default" })
}

/// A CSI source with everything.
pub fn csi() -> Value {
    json!({
        "driver": "some.driver.test", "volumeHandle": "h", "readOnly": true, "fsType": "ext4",
        "volumeAttributes": { "a": "b", "empty": "" },
        "controllerPublishSecretRef": secret("one"), "nodeStageSecretRef": secret("two"),
        "nodePublishSecretRef": secret("three"), "controllerExpandSecretRef": secret("four"),
        "nodeExpandSecretRef": secret("five"),
    })
}

/// A volume of this source.
pub fn volume(name: &str, source: Value) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] },
    });
    merge(&mut volume["spec"], source);
    volume
}

fn merge(into: &mut Value, from: Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// Every object, and the status it gets afterwards.
pub fn all() -> Vec<(Value, Option<Value>)> {
    let mut all = volumes();
    all.extend(claims());
    all.extend(attachments());
    all.push((lease(), None));
    all
}

fn volumes() -> Vec<(Value, Option<Value>)> {
    let requirement = json!({ "key": "zone", "operator": "In", "values": ["a", "b"] });
    let by_name = json!({ "key": "metadata.name", "operator": "In", "values": ["n"] });
    let mut full = volume("full", json!({ "csi": csi() }));
    merge(
        &mut full["spec"],
        json!({
            "capacity": { "storage": "1500M" }, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "mountOptions": ["ro", "sync"],
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "class", "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "default", "uid": "u",
                "resourceVersion": "7",
            },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [
                { "matchExpressions": [requirement, { "key": "disk", "operator": "Exists" }] }, { "matchFields": [by_name] },
            ] } },
        }),
    );
    merge(
        &mut full["metadata"],
        json!({
            "labels": { "a": "b", "empty": "" }, "annotations": { "some/note": "\u{1f6a2} \"quoted\"\n", "empty": "" },
            "finalizers": ["test/one", "test/two"],
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": false, "blockOwnerDeletion": true },
                { "apiVersion": "v1", "kind": "Node", "name": "m", "uid": "2", "controller": true },
            ],
        }),
    );
    let mut volumes = vec![(full, Some(json!({ "phase": "Failed", "message": "m", "reason": "r" })))];
    for source in [
        json!({ "csi": { "driver": "some.driver.test", "volumeHandle": "least" } }),
        json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "ext4", "partition": 1, "readOnly": true } }),
        json!({ "gcePersistentDisk": { "pdName": "d" } }),
        json!({ "azureDisk": { "diskName": "d", "diskURI": "https://a/b.vhd", "readOnly": false, "fsType": "", "kind": "Shared" } }),
        json!({ "azureDisk": {
            "diskName": "d", "diskURI": "/subscriptions/s/d", "kind": "Managed", "cachingMode": "None",
        } }),
        json!({ "azureFile": { "secretName": "s", "secretNamespace": "n", "shareName": "x" } }),
        json!({ "azureFile": { "secretName": "s", "shareName": "x", "readOnly": true } }),
        json!({ "cinder": { "volumeID": "c", "fsType": "xfs", "secretRef": secret("s") } }),
        json!({ "vsphereVolume": { "volumePath": "p", "storagePolicyName": "gold", "storagePolicyID": "7" } }),
        json!({ "portworxVolume": { "volumeID": "p", "fsType": "xfs", "readOnly": true } }),
        json!({ "rbd": {
            "monitors": ["a:1", "b:1"], "image": "i", "pool": "p", "user": "u", "keyring": "k", "secretRef": secret("s"),
        } }),
        json!({ "hostPath": { "path": "/nowhere" } }),
    ] {
        volumes.push((volume(&format!("v{}", volumes.len()), source), None));
    }
    volumes
}

fn claim(name: &str, spec: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name, "namespace": "default" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    merge(&mut claim["spec"], spec);
    claim
}

fn claims() -> Vec<(Value, Option<Value>)> {
    let snapshot = json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s" });
    let full = claim(
        "full",
        json!({
            "resources": { "requests": { "storage": "1Gi" }, "limits": { "storage": "2Gi" } }, "storageClassName": "class",
            "volumeMode": "Block", "dataSource": snapshot, "dataSourceRef": snapshot, "volumeAttributesClassName": "gold",
            "selector": {
                "matchLabels": { "a": "b" },
                "matchExpressions": [
                    { "key": "c", "operator": "NotIn", "values": ["d", "e"] }, { "key": "f", "operator": "Exists" },
                ],
            },
        }),
    );
    let status = json!({
        "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "allocatedResources": { "storage": "1536Mi" },
        "allocatedResourceStatuses": { "storage": "ControllerResizeInProgress" },
        "conditions": [
            { "type": "Resizing", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": TIME },
            { "type": "FileSystemResizePending", "status": "False", "lastProbeTime": TIME },
        ],
        "currentVolumeAttributesClassName": "silver",
        "modifyVolumeStatus": { "status": "Pending", "targetVolumeAttributesClassName": "gold" },
    });
    let clone =
        json!({ "dataSource": { "kind": "PersistentVolumeClaim", "name": "full" }, "storageClassName": "class" });
    vec![
        (full, Some(status)),
        // No class at all, and none said; nothing selects nothing.
        (claim("classless", json!({ "storageClassName": "", "volumeName": "v" })), Some(json!({ "phase": "Lost" }))),
        (claim("least", json!({})), None),
        (claim("cloned", clone), None),
        (claim("selecting", json!({ "selector": {} })), None),
    ]
}

fn attachments() -> Vec<(Value, Option<Value>)> {
    let attachment = |name: &str, source: Value| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": name },
            "spec": { "attacher": "some.driver.test", "nodeName": "n", "source": source },
        })
    };
    let inline = json!({ "accessModes": ["ReadWriteOnce"], "mountOptions": ["ro"], "csi": csi() });
    let failed = json!({
        "attached": false, "attachError": { "message": "no room", "time": TIME, "errorCode": 8 },
        "detachError": { "message": "still there", "time": TIME },
    });
    vec![
        (
            attachment("named", json!({ "persistentVolumeName": "full" })),
            Some(json!({ "attached": true, "attachmentMetadata": { "device": "/dev/x", "empty": "" } })),
        ),
        (attachment("inline", json!({ "inlineVolumeSpec": inline })), Some(failed)),
    ]
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "lead", "namespace": "default", "annotations": { "note": "n" }, "labels": { "a": "b" } },
        "spec": {
            "holderIdentity": "somebody", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2027-01-15T08:00:00.000001Z", "renewTime": "2027-01-15T08:00:00.120000Z",
        },
    })
}
