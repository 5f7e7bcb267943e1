//! The objects of a large cluster, by their numbers: nothing is alike by accident, and nothing is to be done.

use api::{Value, names};
use serde_json::json;

use super::{CLASS, DRIVER, LISTED};

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

fn meta(name: String, number: usize, version: usize) -> Value {
    // Versions of one kind only grow; a later one is larger than that of the list.
    let version = if version > 1 { LISTED as usize + version } else { 1 + number };
    json!({ "name": name, "uid": uid(number), "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z" })
}

fn namespaced(number: usize) -> String {
    format!("team-{}", number % 50)
}

pub(super) fn volume_name(number: usize) -> String {
    format!("pvc-{}", uid(10_000_000 + number))
}

pub(super) fn handle(number: usize) -> String {
    format!("vol-0{:016x}", (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub(super) fn node_name(number: usize) -> String {
    format!("ip-10-{}-{}.example.internal", number / 256, number % 256)
}

pub(super) fn class(version: usize) -> Value {
    let mut metadata = meta(CLASS.into(), 1, version);
    metadata["labels"] = json!({ "changed": version.to_string() });
    json!({ "metadata": metadata, "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" })
}

pub(super) fn driver(version: usize) -> Value {
    json!({ "metadata": meta(DRIVER.into(), 2, version), "spec": { "attachRequired": true } })
}

pub(super) fn csi_node(number: usize, version: usize) -> Value {
    let keys = if version > 1 { json!(["zone", format!("key-{version}")]) } else { json!(["zone"]) };
    let drivers = json!([{ "name": DRIVER, "nodeID": format!("i-{number}"), "topologyKeys": keys }]);
    json!({ "metadata": meta(node_name(number), 20_000_000 + number, version), "spec": { "drivers": drivers } })
}

pub(super) fn node(number: usize, volumes: usize, nodes: usize, each: usize, version: usize) -> Value {
    let mut metadata = meta(node_name(number), 30_000_000 + number, version);
    metadata["annotations"] = json!({ names::CONTROLLER_MANAGED_ATTACH: "true" });
    let zone = ["a", "b", "c"][number % 3];
    metadata["labels"] = json!({ "zone": zone });
    let mine = (0..each).map(|at| number + at * nodes).filter(|at| *at < volumes);
    let used: Vec<String> = mine.map(|at| names::unique_volume_name(DRIVER, &handle(at))).collect();
    let attached: Vec<Value> = used.iter().map(|name| json!({ "name": name, "devicePath": "" })).collect();
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "volumesAttached": attached, "volumesInUse": used, "conditions": [ready] });
    json!({ "metadata": metadata, "spec": {}, "status": status })
}

pub(super) fn volume(number: usize, version: usize) -> Value {
    let mut metadata = meta(volume_name(number), 40_000_000 + number, version);
    metadata["annotations"] = json!({ names::PROVISIONED_BY: DRIVER, names::DELETION_SECRET_NAME: "",
        names::DELETION_SECRET_NAMESPACE: "" });
    metadata["labels"] = json!({ "changed": version.to_string() });
    metadata["finalizers"] =
        json!([names::PROVISIONER_FINALIZER, "kubernetes.io/pv-protection", names::attacher_finalizer(DRIVER)]);
    let spec = json!({ "capacity": { "storage": "10Gi" }, "accessModes": ["ReadWriteOnce"],
        "claimRef": { "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespaced(number),
            "name": format!("data-web-{number}"), "uid": uid(10_000_000 + number) },
        "csi": { "driver": DRIVER, "volumeHandle": handle(number), "fsType": "ext4" },
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": CLASS, "volumeMode": "Filesystem" });
    json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Bound" } })
}

pub(super) fn claim(number: usize, bound: bool, version: usize) -> Value {
    let mut metadata = meta(format!("data-web-{number}"), 10_000_000 + number, version);
    metadata["namespace"] = json!(namespaced(number));
    metadata["labels"] = json!({ "changed": version.to_string() });
    metadata["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    let mut spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } },
        "storageClassName": CLASS, "volumeMode": "Filesystem" });
    let mut status = json!({ "phase": "Pending" });
    if bound {
        metadata["annotations"] = json!({ names::BIND_COMPLETED: "yes", "pv.kubernetes.io/bound-by-controller": "yes",
            names::STORAGE_PROVISIONER: DRIVER, names::STORAGE_PROVISIONER_BETA: DRIVER });
        spec["volumeName"] = json!(volume_name(number));
        status = json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "10Gi" } });
    }
    json!({ "metadata": metadata, "spec": spec, "status": status })
}

pub(super) fn attachment(number: usize, nodes: usize, version: usize) -> Value {
    let node = node_name(number % nodes);
    let mut metadata = meta(names::attachment_name(&handle(number), DRIVER, &node), 50_000_000 + number, version);
    metadata["finalizers"] = json!([names::attacher_finalizer(DRIVER)]);
    metadata["labels"] = json!({ "changed": version.to_string() });
    let spec =
        json!({ "attacher": DRIVER, "nodeName": node, "source": { "persistentVolumeName": volume_name(number) } });
    json!({ "metadata": metadata, "spec": spec, "status": { "attached": true } })
}

pub(super) fn pod(number: usize, nodes: usize, version: usize) -> Value {
    let mut metadata = meta(format!("web-{number}"), 60_000_000 + number, version);
    metadata["namespace"] = json!(namespaced(number));
    metadata["labels"] = json!({ "changed": version.to_string() });
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": format!("data-web-{number}") } }]);
    let spec = json!({ "nodeName": node_name(number % nodes), "containers": [{ "name": "c", "image": "web" }],
        "volumes": volumes });
    let running = json!([{ "name": "c", "state": { "running": {} } }]);
    json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Running", "containerStatuses": running } })
}
