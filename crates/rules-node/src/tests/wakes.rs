//! Who is looked at after a change, and who is not.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, names};
use control::host::ProcessState;
use control::{Cache, Rules};
use prove_lab::{check_wakes, object};
use serde_json::json;

use crate::{Local, Node, Publish, Record};

fn pod(name: &str, node: &str, claim: Option<&str>) -> Object {
    let volumes: Vec<_> =
        claim.iter().map(|name| json!({ "name": "v", "persistentVolumeClaim": { "claimName": name } })).collect();
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    object(Kind::Pod, json!({ "metadata": metadata, "spec": { "nodeName": node, "volumes": volumes } }))
}

fn claim(name: &str, volume: &str) -> Object {
    let metadata = json!({ "namespace": "n", "name": name, "uid": name });
    let body = json!({ "metadata": metadata, "spec": { "volumeName": volume }, "status": { "phase": "Bound" } });
    object(Kind::PersistentVolumeClaim, body)
}

fn volume(name: &str, holder: Option<&str>) -> Object {
    let holder = holder.map(|name| json!({ "namespace": "n", "name": name, "uid": name }));
    let spec = json!({ "csi": { "driver": "d", "volumeHandle": name }, "claimRef": holder });
    object(Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": spec }))
}

fn attachment(volume: &str, node: &str) -> Object {
    let spec = json!({ "attacher": "d", "nodeName": node, "source": { "persistentVolumeName": volume } });
    object(Kind::VolumeAttachment, json!({ "metadata": { "name": "va" }, "spec": spec }))
}

fn node(name: &str, in_use: &[&str]) -> Object {
    let in_use: Vec<String> = in_use.iter().map(|handle| names::unique_volume_name("d", handle)).collect();
    object(Kind::Node, json!({ "metadata": { "name": name }, "status": { "volumesInUse": in_use } }))
}

/// Node `a`: one volume is recorded for a pod that is gone, one is listed as in use, one process runs.
fn local() -> Local {
    let mut local = Local::new("a", "life-1", "/root");
    let publish = Publish { pod_namespace: "n".into(), pod_name: "gone".into(), ..Publish::default() };
    let record = Record { driver: "d".into(), publishes: [("gone".into(), publish)].into(), ..Record::default() };
    local.records.insert(names::unique_volume_name("d", "recorded"), record);
    local.processes.insert("uid-1_n_runs_main_0".into(), ProcessState::Running { since_millis: 0 });
    local
}

fn cache() -> Cache {
    let mut cache = Cache::default();
    for one in [
        pod("here", "a", Some("c")),
        pod("elsewhere", "b", Some("c")),
        pod("plain", "a", None),
        claim("c", "v"),
        volume("v", Some("c")),
        volume("free", None),
        node("a", &["listed"]),
    ] {
        cache.set(one);
    }
    cache
}

// KL-29: nobody asks for a pod to be looked at again: whatever changes what its view reads wakes it.
#[test]
fn every_change_and_whom_it_wakes() {
    let driver = |name: &str| Some(object(Kind::CSIDriver, json!({ "metadata": { "name": name } })));
    let changes = [
        ("pod-here", None, Some(pod("here", "a", Some("c")))),
        ("pod-elsewhere", None, Some(pod("elsewhere", "b", Some("c")))),
        ("pod-that-is-recorded", None, Some(pod("gone", "a", None))),
        ("pod-without-a-claim", None, Some(pod("plain", "a", None))),
        ("claim", None, Some(claim("c", "v"))),
        ("claim-of-nobody", None, Some(claim("x", "free"))),
        ("volume", None, Some(volume("v", Some("c")))),
        ("volume-of-nobody", None, Some(volume("free", None))),
        ("attachment-here", None, Some(attachment("v", "a"))),
        ("attachment-elsewhere", None, Some(attachment("v", "b"))),
        ("attachment-of-a-missing-volume", None, Some(attachment("x", "a"))),
        ("driver", None, driver("d")),
        ("another-driver", None, driver("dd")),
        ("node", None, Some(node("a", &["listed"]))),
        ("node-that-lists-another", Some(node("a", &["listed"])), Some(node("a", &["other"]))),
        ("node-of-others", None, Some(node("b", &["listed"]))),
    ];
    check_wakes::<Node>(env!("CARGO_MANIFEST_DIR"), &cache(), &local(), &changes);
}

#[test]
fn at_the_start_everything_here_is_looked_at() {
    let mut keys: Vec<String> = Node::keys(&cache(), &local()).iter().map(ToString::to_string).collect();
    keys.sort();
    let volume = |handle: &str| alloc::format!("volume {}", names::unique_volume_name("d", handle));
    let mut expected = ["pod n/gone", "pod n/here", "pod n/plain", "pod n/runs"].map(String::from).to_vec();
    expected.extend(["listed", "recorded", "v"].map(volume));
    expected.sort();
    assert_eq!(keys, expected);
}
