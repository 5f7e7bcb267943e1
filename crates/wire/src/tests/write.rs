use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use api::{Kind, Object, PersistentVolume, Value};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::{bytes, kinds, number};
use crate::{
    MAGIC, Reader, Type, canonical_time, encode, encode_event, encode_list, envelope, event, example, list, message,
};

/// What is read back of an object that was written.
fn back(kind: Kind, object: &Value) -> Value {
    let written = encode(kind, object).unwrap();
    let envelope = envelope(&written).unwrap();
    assert_eq!((envelope.api_version, envelope.kind), (kind.api_version(), kind.name()));
    let mut read = Value::deserialize(Reader::answer(message(kind).unwrap(), envelope.raw)).unwrap();
    read["apiVersion"] = envelope.api_version.into();
    read["kind"] = envelope.kind.into();
    read
}

fn volume(spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v" }, "spec": spec })
}

fn secret(name: &str) -> Value {
    json!({ "name": name, "namespace": "n" })
}

#[test]
fn an_object_is_written_field_by_field() {
    let object = volume(json!({
        "capacity": { "storage": "1Gi" }, "storageClassName": "", "csi": { "driver": "d", "readOnly": true },
    }));
    let of = [bytes(1, b"v1"), bytes(2, b"PersistentVolume")].concat();
    let capacity = [bytes(1, b"storage"), bytes(2, &bytes(1, b"1Gi"))].concat();
    let csi = bytes(22, &[bytes(1, b"d"), number(3, 1)].concat());
    let spec = [bytes(1, &capacity), bytes(6, b""), bytes(2, &csi)].concat();
    let raw = [bytes(1, &bytes(1, b"v")), bytes(2, &spec)].concat();
    let wanted = [MAGIC.to_vec(), bytes(1, &of), bytes(2, &raw)].concat();
    assert_eq!(encode(Kind::PersistentVolume, &object).unwrap(), wanted);
}

#[test]
fn what_is_written_reads_back_as_it_was() {
    let csi = json!({
        "driver": "d", "volumeHandle": "h", "readOnly": true, "fsType": "ext4", "volumeAttributes": { "a": "", "b": "c" },
        "controllerPublishSecretRef": secret("1"), "nodeStageSecretRef": secret("2"), "nodePublishSecretRef": secret("3"),
        "controllerExpandSecretRef": secret("4"), "nodeExpandSecretRef": secret("5"),
    });
    let requirement = json!({ "key": "zone", "operator": "In", "values": ["a", "b"] });
    let spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "csi": csi, "mountOptions": ["ro", "sync"],
        "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "n", "uid": "u" },
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "s", "volumeMode": "Block",
        "volumeAttributesClassName": "",
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [requirement] }, {}] } },
    });
    let metadata = json!({
        "name": "o", "namespace": "n", "labels": { "l": "1" }, "annotations": { "a/b": "x".repeat(20_000) },
        "finalizers": ["f"], "deletionGracePeriodSeconds": -1, "resourceVersion": "7", "uid": "u",
        "ownerReferences": [{ "apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": false }],
    });
    let attached = json!({
        "attached": true, "attachmentMetadata": { "a": "b" },
        "attachError": { "message": "m", "time": "2027-01-15T08:00:00Z", "errorCode": 0 }, "detachError": {},
    });
    let lease = json!({
        "holderIdentity": "", "leaseDurationSeconds": 15, "acquireTime": "2027-01-15T08:00:00.000001Z",
        "renewTime": "2027-01-15T08:00:00.999999Z", "leaseTransitions": 0,
    });
    let claim = json!({
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" }, "limits": { "storage": "2Gi" } },
        "storageClassName": "", "volumeName": "v", "selector": { "matchLabels": { "a": "b" }, "matchExpressions": [requirement] },
        "dataSource": { "apiGroup": "g", "kind": "k", "name": "n" },
        "dataSourceRef": { "apiGroup": "g", "kind": "k", "name": "n", "namespace": "m" },
    });
    let object = |kind: Kind, spec: &Value, status: Option<&Value>| {
        let mut object =
            json!({ "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": spec });
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        (kind, object)
    };
    let inline = json!({ "attacher": "d", "nodeName": "n", "source": { "inlineVolumeSpec": spec } });
    for (kind, object) in [
        object(Kind::PersistentVolume, &spec, None),
        object(Kind::VolumeAttachment, &inline, Some(&attached)),
        object(Kind::Lease, &lease, None),
        object(Kind::PersistentVolumeClaim, &claim, None),
    ] {
        assert_eq!(back(kind, &object), object);
    }
}

#[test]
fn every_in_tree_source_reads_back_as_it_was() {
    for source in [
        json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "ext4", "partition": -1, "readOnly": true } }),
        json!({ "gcePersistentDisk": { "pdName": "d", "partition": i32::MAX } }),
        json!({ "azureDisk": { "diskName": "d", "diskURI": "u", "cachingMode": "", "readOnly": false, "kind": "Managed" } }),
        json!({ "azureFile": { "secretName": "s", "secretNamespace": "n", "shareName": "x" } }),
        json!({ "cinder": { "volumeID": "c", "secretRef": secret("s") } }),
        json!({ "vsphereVolume": { "volumePath": "p", "storagePolicyName": "gold", "storagePolicyID": "7" } }),
        json!({ "portworxVolume": { "volumeID": "p", "fsType": "xfs", "readOnly": true } }),
        json!({ "rbd": { "monitors": ["a:1", "b:1"], "image": "i", "pool": "p", "user": "u", "keyring": "k" } }),
        // The API refuses two sources; whoever reads them must be able to tell.
        json!({ "cinder": { "volumeID": "c" }, "rbd": { "image": "i" } }),
    ] {
        let object = volume(source);
        assert_eq!(back(Kind::PersistentVolume, &object), object);
    }
}

#[test]
fn what_the_bytes_would_not_say_is_not_written() {
    for spec in [
        json!({ "inventedDisk": { "path": "/" } }),
        json!({ "csi": { "driver": "d", "invented": 1 } }),
        json!({ "persistentVolumeSource": {} }),
        json!({ "": {} }),
        json!({ "storageClassName": 7 }),
        json!({ "capacity": { "storage": 7 } }),
        json!({ "capacity": { "storage": "" } }),
        json!({ "accessModes": [null] }),
        json!({ "csi": { "readOnly": "true" } }),
        json!({ "csi": { "volumeAttributes": { "a": null } } }),
        json!({ "awsElasticBlockStore": { "partition": 1_i64 << 40 } }),
        json!({ "awsElasticBlockStore": { "partition": 1.5 } }),
        json!([]),
    ] {
        assert_eq!(encode(Kind::PersistentVolume, &volume(spec.clone())), None, "{spec}");
    }
    let mut managed = volume(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    assert_eq!(encode(Kind::PersistentVolume, &managed), None);
    for time in ["2027-01-15T08:00:00.0000001Z", "2027-01-15 08:00:00Z", "2027-01-15T08:00:00", "soon", ""] {
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": { "renewTime": time } });
        assert_eq!(encode(Kind::Lease, &lease), None, "{time}");
    }
    // Another kind than is said, and one that has no table.
    assert_eq!(encode(Kind::PersistentVolumeClaim, &volume(json!({}))), None);
    let grant = json!({ "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant" });
    assert_eq!(encode(Kind::ReferenceGrant, &grant), None);
    assert_eq!(encode(Kind::PersistentVolume, &json!({ "metadata": {} })), None);
}

#[test]
fn null_means_not_set() {
    let object = volume(json!({ "claimRef": null, "csi": null, "volumeMode": null, "capacity": null }));
    let read = back(Kind::PersistentVolume, &object);
    assert_eq!(read.get("spec"), None);
}

#[test]
fn lengths_of_every_size_are_right() {
    for length in [0, 1, 127, 128, 129, 16_382, 16_383, 16_384, 16_385, 2_097_152] {
        let object = volume(json!({ "csi": { "driver": "d".repeat(length), "volumeHandle": "h" } }));
        let wanted = Object::from_json(Kind::PersistentVolume, object.clone()).unwrap();
        let written = encode(Kind::PersistentVolume, &object).unwrap();
        let raw = envelope(&written).unwrap().raw;
        let read =
            PersistentVolume::deserialize(Reader::answer(message(Kind::PersistentVolume).unwrap(), raw)).unwrap();
        assert!(Object::from(read) == wanted, "{length}");
    }
}

proptest! {
    #[test]
    fn any_texts_read_back_as_they_were(
        texts in proptest::collection::btree_map(".{0,40}", ".{0,200}", 1..8),
        modes in proptest::collection::vec(".{0,10}", 1..5),
    ) {
        let texts: BTreeMap<String, String> = texts;
        let modes: Vec<String> = modes;
        let object = volume(json!({ "accessModes": modes, "csi": { "driver": "d", "volumeAttributes": texts } }));
        prop_assert_eq!(back(Kind::PersistentVolume, &object), object);
    }
}

#[test]
fn a_usual_volume_is_smaller_than_its_json() {
    let attributes: BTreeMap<String, String> = vec![("storage.kubernetes.io/csiProvisionerIdentity", "1-2-d")]
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let object = volume(json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
        "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "n", "uid": "u" },
        "csi": { "driver": "d", "volumeHandle": "h", "volumeAttributes": attributes },
    }));
    assert!(encode(Kind::PersistentVolume, &object).unwrap().len() < format!("{object}").len());
}

#[test]
fn every_field_of_every_kind_reads_back_as_it_was() {
    for kind in kinds() {
        let mut object = example(message(kind).unwrap());
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.name().into();
        assert_eq!(back(kind, &object), object, "{kind}");
    }
}

#[test]
fn a_time_is_written_however_it_was_said() {
    for (said, meant) in [
        ("2027-01-15T08:00:00Z", "2027-01-15T08:00:00.000000Z"),
        ("2027-01-15T08:00:00.001Z", "2027-01-15T08:00:00.001000Z"),
        ("2027-01-15T09:30:00.5+01:30", "2027-01-15T08:00:00.500000Z"),
        ("2027-01-14T23:00:00-09:00", "2027-01-15T08:00:00.000000Z"),
    ] {
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": { "renewTime": said } });
        assert_eq!(back(Kind::Lease, &lease)["spec"]["renewTime"], meant, "{said}");
        assert_eq!(canonical_time(Type::MicroTime, said).unwrap(), meant);
    }
    assert_eq!(canonical_time(Type::Time, "2027-01-15T08:00:00.9Z").unwrap(), "2027-01-15T08:00:00Z");
    for nonsense in
        ["soon", "2027-01-15", "2027-01-15T08:00:00", "2027-01-15T08:00:00+1:00", "", "é", "2027-01-15T08:00:00.Z"]
    {
        assert_eq!(canonical_time(Type::Time, nonsense), None, "{nonsense}");
    }
}

#[test]
fn lists_and_events_are_written_as_they_are_read() {
    let objects = [volume(json!({ "storageClassName": "a" })), volume(json!({ "storageClassName": "b" }))];
    let table = message(Kind::PersistentVolume).unwrap();
    let metadata = json!({ "resourceVersion": "7" });
    let written = encode_list(table, Kind::PersistentVolume, &metadata, objects.iter()).unwrap();
    let envelope = envelope(&written).unwrap();
    assert_eq!((envelope.api_version, envelope.kind), ("v1", "PersistentVolumeList"));
    let (metadata, items) = list(envelope.raw).unwrap();
    assert_eq!(metadata, bytes(2, b"7"));
    let read = Value::deserialize(Reader::answer(table, items[1])).unwrap();
    assert_eq!(read["spec"], json!({ "storageClassName": "b" }));
    let frame = encode_event("ADDED", &written);
    let (length, rest) = frame.split_at(4);
    assert_eq!(length, u32::try_from(rest.len()).unwrap().to_be_bytes());
    assert_eq!(event(rest).unwrap(), ("ADDED", &written[..]));
}
