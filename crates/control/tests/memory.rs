//! What an object costs in the cache of a large cluster, by what the process takes from the machine for it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use api::{Kind, Object};
use control::Cache;
use serde_json::json;

const OBJECTS: usize = 20_000;

/// Bytes of this process that are in memory and belong to no file.
fn anonymous() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

fn uid(number: usize) -> String {
    // Scattered as real ones are, so that nothing is alike by accident.
    let scattered = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let more = scattered.rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        scattered >> 32,
        scattered & 0xffff,
        more & 0xfff,
        more >> 52,
        more >> 16
    )
}

fn meta(name: &str, number: usize) -> serde_json::Value {
    json!({ "name": name, "uid": uid(number), "resourceVersion": (100_000 + 7 * number).to_string(),
        "creationTimestamp": format!("2026-01-{:02}T{:02}:{:02}:{:02}Z", 1 + number % 28, number % 24, number % 60, number % 59),
        "managedFields": [{ "manager": "csi-provisioner", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": { "f:accessModes": {}, "f:capacity": {}, "f:claimRef": {}, "f:csi": {} } } }] })
}

fn volume(number: usize) -> (Kind, serde_json::Value) {
    let name = format!("pvc-{}", uid(OBJECTS + number));
    let mut metadata = meta(&name, number);
    metadata["annotations"] = json!({ "pv.kubernetes.io/provisioned-by": "ebs.csi.example.com",
        "volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "" });
    metadata["finalizers"] = json!([
        "external-provisioner.volume.kubernetes.io/finalizer",
        "kubernetes.io/pv-protection",
        "external-attacher/ebs-csi-example-com"
    ]);
    let zone = format!("eu-central-1{}", ["a", "b", "c"][number % 3]);
    let spec = json!({ "capacity": { "storage": format!("{}Gi", 10 + number % 7) }, "accessModes": ["ReadWriteOnce"],
        "claimRef": { "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": format!("team-{}", number % 50),
            "name": format!("data-web-{number}"), "uid": uid(OBJECTS + number), "resourceVersion": (90_000 + 5 * number).to_string() },
        "csi": { "driver": "ebs.csi.example.com", "volumeHandle": format!("vol-0{:016x}", (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            "fsType": "ext4", "volumeAttributes": { "storage.kubernetes.io/csiProvisionerIdentity": "1763251200000-4711-ebs.csi.example.com" } },
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast", "volumeMode": "Filesystem",
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
            { "key": "topology.ebs.csi.example.com/zone", "operator": "In", "values": [zone] }] }] } } });
    (Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Bound" } }))
}

fn claim(number: usize) -> (Kind, serde_json::Value) {
    let mut metadata = meta(&format!("data-web-{number}"), OBJECTS + number);
    metadata["namespace"] = json!(format!("team-{}", number % 50));
    metadata["labels"] =
        json!({ "app.kubernetes.io/name": "web", "app.kubernetes.io/instance": format!("web-{}", number % 50) });
    metadata["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.kubernetes.io/storage-provisioner": "ebs.csi.example.com", "volume.beta.kubernetes.io/storage-provisioner": "ebs.csi.example.com" });
    metadata["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } },
        "storageClassName": "fast", "volumeMode": "Filesystem", "volumeName": format!("pvc-{}", uid(OBJECTS + number)) });
    let status = json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "10Gi" } });
    (Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": spec, "status": status }))
}

fn attachment(number: usize) -> (Kind, serde_json::Value) {
    let mut metadata =
        meta(&format!("csi-{}", uid(2 * OBJECTS + number).repeat(2).replace('-', "")), 3 * OBJECTS + number);
    metadata["annotations"] = json!({ "csi.alpha.kubernetes.io/node-id": format!("i-0{:016x}", number % 300) });
    metadata["finalizers"] = json!(["external-attacher/ebs-csi-example-com"]);
    let spec = json!({ "attacher": "ebs.csi.example.com", "nodeName": format!("ip-10-0-{}-{}.example.internal", number % 300 / 16, number % 16),
        "source": { "persistentVolumeName": format!("pvc-{}", uid(OBJECTS + number)) } });
    let status =
        json!({ "attached": true, "attachmentMetadata": { "devicePath": format!("/dev/xvd{}", number % 26) } });
    (Kind::VolumeAttachment, json!({ "metadata": metadata, "spec": spec, "status": status }))
}

/// Bytes for one of many; the objects are read from JSON one by one, as a watch does.
fn cost(cache: &mut Cache, make: fn(usize) -> (Kind, serde_json::Value)) -> usize {
    let before = anonymous();
    for number in 0..OBJECTS {
        let (kind, json) = make(number);
        cache.set(Object::from_slice(kind, json.to_string().as_bytes()).unwrap());
    }
    (anonymous() - before) / OBJECTS
}

// One test, so that nothing else takes memory meanwhile.
#[test]
fn a_typical_volume_costs_less_than_a_kilobyte() {
    let mut cache = Cache::default();
    let [volume, claim, attachment] = [volume, claim, attachment].map(|make| cost(&mut cache, make));
    #[allow(clippy::print_stdout, reason = "the figures are what the test is for")]
    {
        println!(
            "bytes each, of {OBJECTS}: PersistentVolume {volume}, PersistentVolumeClaim {claim}, VolumeAttachment {attachment}"
        );
    }
    for (name, bytes) in [("volume", volume), ("claim", claim), ("attachment", attachment)] {
        assert!(bytes < 1024, "a {name} costs {bytes} bytes");
    }
    // They are all there, and found.
    assert_eq!(cache.volumes().count(), OBJECTS);
    assert_eq!(cache.claims_by_volume(&format!("pvc-{}", uid(OBJECTS + 17))).count(), 1);
    assert_eq!(cache.volumes_by_claim("team-17/data-web-17").count(), 1);
}
