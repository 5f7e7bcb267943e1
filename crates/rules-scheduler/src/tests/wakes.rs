//! Who is looked at after a change, and who is not.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, Value};
use control::{Cache, Change, Rules};
use prove_lab::check_table;
use serde_json::json;

use crate::Scheduler;

fn object(kind: Kind, body: Value) -> Object {
    Object::from_json(kind, body).unwrap()
}

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
    check_table(env!("CARGO_MANIFEST_DIR"), "wakes", |choices| {
        let volume = |holder: Option<&str>| {
            let holder = holder.map(|name| json!({ "namespace": "n", "name": name }));
            object(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": { "claimRef": holder } }))
        };
        let class =
            |name: &str| object(Kind::StorageClass, json!({ "metadata": { "name": name }, "provisioner": "d" }));
        let plain = || node(json!({}), false, "True");
        let changes: [(&'static str, Option<Object>, Object); 13] = [
            ("claim", None, object(Kind::PersistentVolumeClaim, claim.clone())),
            ("volume-of-the-claim", None, volume(Some("c"))),
            ("volume-of-another-claim", None, volume(Some("d"))),
            ("volume-of-no-claim", None, volume(None)),
            ("class-of-the-claim", None, class("late")),
            ("another-class", None, class("other")),
            ("pod-with-the-claim", None, pod("placed-with-the-claim", true, "a", "Succeeded")),
            ("pod-without-a-claim", None, pod("placed-without-a-claim", false, "a", "Succeeded")),
            ("node-new", None, plain()),
            ("node-labelled", Some(plain()), node(json!({ "zone": "z" }), false, "True")),
            ("node-closed", Some(plain()), node(json!({}), true, "True")),
            ("node-not-ready", Some(plain()), node(json!({}), false, "False")),
            ("node-the-same", Some(plain()), plain()),
        ];
        let labels: Vec<(&'static str, usize)> =
            changes.iter().enumerate().map(|(at, change)| (change.0, at)).collect();
        let (_, before, after) = changes[choices.one_of("change", &labels)].clone();
        let mut woken: Vec<String> = Scheduler::wakes(&Change { before, after: Some(after) }, &cache, &())
            .iter()
            .map(ToString::to_string)
            .collect();
        woken.sort();
        format!("{woken:?}")
    });
}
