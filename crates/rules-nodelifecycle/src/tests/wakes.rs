//! Who is looked at after a change, and who is not.

use api::{Kind, Object, names};
use control::Cache;
use prove_lab::{check_wakes, object};
use serde_json::json;

use crate::NodeLifecycle;

fn node(name: &str, ready: &str, heartbeat: &str, taint: Option<&str>, used: &str) -> Option<Object> {
    let ready = json!([{ "type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat }]);
    let taints = taint.map(|key| json!([{ "key": key, "effect": "NoExecute" }]));
    Some(object(
        Kind::Node,
        json!({ "metadata": { "name": name, "uid": name }, "spec": { "taints": taints },
            "status": { "conditions": ready, "volumesInUse": [used] } }),
    ))
}

fn pod(name: &str, node: &str) -> Option<Object> {
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    Some(object(Kind::Pod, json!({ "metadata": metadata, "spec": { "nodeName": node } })))
}

fn lease(namespace: &str, version: &str) -> Option<Object> {
    let metadata = json!({ "namespace": namespace, "name": "a", "resourceVersion": version });
    Some(object(Kind::Lease, json!({ "metadata": metadata, "spec": {} })))
}

#[test]
fn every_change_and_whom_it_wakes() {
    let (early, late) = ("2030-01-01T00:00:00Z", "2030-01-01T00:05:00Z");
    let mut cache = Cache::default();
    for one in [
        pod("on-a", "a"),
        pod("on-b", "b"),
        pod("unplaced", ""),
        node("b", "Unknown", early, None, ""),
        node("c", "True", early, None, ""),
    ] {
        cache.set(one.unwrap());
    }
    let plain = || node("a", "True", early, None, "");
    let changes = [
        ("a-node-comes", None, plain()),
        ("a-node-goes", plain(), None),
        ("a-node-is-not-heard-of", plain(), node("a", "Unknown", early, None, "")),
        ("a-node-says-again-that-it-is-ready", plain(), node("a", "True", late, None, "")),
        ("a-node-gets-a-taint", plain(), node("a", "True", early, Some("x"), "")),
        ("a-node-uses-a-volume", plain(), node("a", "True", early, None, "v")),
        ("a-node-renews-its-lease", lease(names::NODE_LEASES, "1"), lease(names::NODE_LEASES, "2")),
        ("another-lease-is-renewed", lease("n", "1"), lease("n", "2")),
        ("a-pod-comes", None, pod("new", "")),
        ("a-pod-is-placed", pod("new", ""), pod("new", "a")),
        ("a-pod-goes", pod("new", "a"), None),
    ];
    check_wakes::<NodeLifecycle>(env!("CARGO_MANIFEST_DIR"), &cache, &(), &changes);
}
