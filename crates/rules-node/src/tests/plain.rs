//! Objects, and the views of them, without a world around: for tests of one fact at a time.

use alloc::string::{String, ToString};

use api::{Kind, Object, ObjectKey, Pod, Value};
use control::host::ProcessState;
use control::{Cache, Rules};
use csi::NodeRpc;
use prove_lab::object;
use serde_json::json;

use crate::{DriverFacts, Key, Local, Node, PodView, Publish, Record, View, VolumeView, paths};

/// The one with the other on top; null takes away.
pub fn merge(body: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return *body = more.clone() };
    for (key, value) in more {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(key)),
            value => merge(&mut body[key.as_str()], value),
        }
    }
}

fn with(mut body: Value, more: &Value) -> Value {
    merge(&mut body, more);
    body
}

pub fn cache(objects: impl IntoIterator<Item = Object>) -> Cache {
    let mut cache = Cache::of::<Node>();
    for one in objects {
        cache.set(one);
    }
    cache
}

/// Node `n` with driver `d`, which stages volumes and makes them grow.
pub fn local() -> Local {
    let mut local = Local::new("n", "life-1", "/r");
    local.drivers.insert("d".into(), DriverFacts::new([NodeRpc::StageUnstageVolume, NodeRpc::ExpandVolume]));
    local
}

/// Pod `ns/a` with uid `u` on node `n`: its container `c` mounts volume `v`, which is of claim `data`.
fn pod_body(more: &Value) -> Value {
    let body = json!({ "metadata": { "namespace": "ns", "name": "a", "uid": "u" }, "spec": {
        "nodeName": "n", "restartPolicy": "Never",
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
        "containers": [container("c", json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] }))] } });
    with(body, more)
}

pub fn pod(more: Value) -> Object {
    object(Kind::Pod, pod_body(&more))
}

pub fn pod_of(more: Value) -> Pod {
    serde_json::from_value(pod_body(&more)).unwrap()
}

pub fn container(name: &str, more: Value) -> Value {
    with(json!({ "name": name, "image": "i", "command": ["x"] }), &more)
}

/// Claim `ns/data`, bound to volume `pv`.
pub fn claim(more: Value) -> Object {
    let metadata = json!({ "namespace": "ns", "name": "data", "uid": "u-data" });
    let spec = json!({ "volumeName": "pv", "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } });
    object(Kind::PersistentVolumeClaim, with(json!({ "metadata": metadata, "spec": spec }), &more))
}

/// Volume `pv` of driver `d` with handle `h`, bound to claim `ns/data`.
pub fn volume(more: Value) -> Object {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d", "volumeHandle": "h", "fsType": "ext4" },
        "claimRef": { "namespace": "ns", "name": "data", "uid": "u-data" } });
    object(Kind::PersistentVolume, with(json!({ "metadata": { "name": "pv" }, "spec": spec }), &more))
}

/// The record says that the volume of a handle is published for a pod, and it is mounted there.
pub fn publish(local: &mut Local, volume: &str, handle: &str, uid: &str, read_only: bool) {
    let target = paths::target_path("/r", uid, volume);
    let record = Record::of(volume, "d", handle, "n");
    let record = local.records.entry(record.unique_name()).or_insert(record);
    let publish = Publish { target: target.clone(), pod_namespace: "ns".into(), pod_name: "a".into(), read_only };
    record.publishes.insert(uid.into(), publish);
    local.mounts.insert(target);
}

/// How the process of a container of pod `a` fares that was started so often before.
pub fn process(local: &mut Local, container: &str, restarts: u32, state: ProcessState) {
    local.processes.insert(alloc::format!("u_ns_a_{container}_{restarts}"), state);
}

pub const RUNS: ProcessState = ProcessState::Running { since_millis: 5_000 };

pub fn exited(code: i32) -> ProcessState {
    ProcessState::Exited { code, since_millis: 5_000, at_millis: 9_000, out_of_memory: false }
}

pub fn pod_view(cache: &Cache, local: &Local) -> PodView {
    match Node::view(&Key::Pod(ObjectKey::new("ns", "a")), cache, local) {
        View::Pod(view) => *view,
        other => panic!("{other:?}"),
    }
}

pub fn volume_view(driver: &str, handle: &str, cache: &Cache, local: &Local) -> VolumeView {
    match Node::view(&Key::Volume(paths::unique_name(driver, handle)), cache, local) {
        View::Volume(view) => *view,
        other => panic!("{other:?}"),
    }
}

/// The uids of the pods that a volume has to do with.
pub fn users(view: &VolumeView) -> alloc::vec::Vec<String> {
    view.users.keys().map(ToString::to_string).collect()
}
