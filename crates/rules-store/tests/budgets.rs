//! What one request may cost: no patch makes much of little, nothing is stored that cannot be read back, and long lists
//! do not take the square of their length.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Cluster, named};
use rules_store::*;
use serde_json::{Value, json};

fn map(cluster: &mut Cluster) {
    cluster.create("configmaps", json!({"metadata": {"name": "m"}, "data": {"k": "v".repeat(100)}}));
}

fn refused(cluster: &mut Cluster, kind: PatchKind, patch: Value) -> String {
    match cluster.patch("configmaps/default/m", kind, patch) {
        Err(failure @ Failure::TooLarge { .. }) => {
            let status = failure.to_status();
            assert_eq!((&status["code"], &status["reason"]), (&json!(413), &json!("RequestEntityTooLarge")));
            failure.to_string()
        }
        other => panic!("not refused as too large: {other:?}"),
    }
}

#[test]
fn h2_copies_of_copies_are_bounded() {
    // CVE-2019-1002100: each operation doubles the document.
    let mut cluster = Cluster::new();
    map(&mut cluster);
    let doubling: Value = (0..64).map(|n| json!({"op": "copy", "from": "", "path": format!("/c{n}")})).collect();
    assert!(refused(&mut cluster, PatchKind::Json, doubling).contains("copies"));
    // Into a list as well, and with tests and moves in between.
    let mut steps = vec![json!({"op": "add", "path": "/l", "value": ["x".repeat(1000)]})];
    for _ in 0..40 {
        steps.push(json!({"op": "copy", "from": "/l", "path": "/l/-"}));
        steps.push(json!({"op": "move", "from": "/l", "path": "/m"}));
        steps.push(json!({"op": "move", "from": "/m", "path": "/l"}));
    }
    refused(&mut cluster, PatchKind::Json, steps.into());
}

#[test]
fn h2_patches_nest_no_deeper_than_the_limit_and_end_no_process() {
    let mut cluster = Cluster::new();
    map(&mut cluster);
    // Values put into values.
    let path = |depth: usize| "/a".repeat(depth);
    let adds: Value = (1..9000).map(|n| json!({"op": "add", "path": path(n.min(3000)), "value": {}})).collect();
    assert!(refused(&mut cluster, PatchKind::Json, adds).contains("nests deeper"));
    // The document moved into a new one, again and again; and the same with copies of something small.
    let mut steps = vec![json!({"op": "add", "path": "/x", "value": {}})];
    for _ in 0..3000 {
        steps.push(json!({"op": "add", "path": "/y", "value": {}}));
        steps.push(json!({"op": "move", "from": "/x", "path": "/y/x"}));
        steps.push(json!({"op": "move", "from": "/y", "path": "/x"}));
    }
    assert!(refused(&mut cluster, PatchKind::Json, steps.into()).contains("nests deeper"));
    let mut deep = json!({});
    for _ in 0..120 {
        deep = json!({ "a": deep });
    }
    for kind in [PatchKind::Merge, PatchKind::Strategic, PatchKind::Apply] {
        // Unknown fields go before anything is measured; what they nest is nothing to anybody.
        let applied = cluster.patch("configmaps/default/m", kind, json!({ "unknown": deep.clone() })).unwrap();
        assert!(applied.changes.is_empty());
    }
    refused(&mut cluster, PatchKind::Json, json!([{"op": "add", "path": "/x", "value": deep}]));
}

#[test]
fn h2_a_patch_has_so_many_operations_and_moves_so_much() {
    let mut cluster = Cluster::new();
    map(&mut cluster);
    let test = json!({"op": "test", "path": "/kind", "value": "ConfigMap"});
    let many = |n: usize| Value::from(vec![test.clone(); n]);
    cluster.patch("configmaps/default/m", PatchKind::Json, many(10_000)).unwrap();
    assert!(refused(&mut cluster, PatchKind::Json, many(10_001)).contains("at most 10000 operations, not 10001"));
    // A long list that is shifted by one place ten thousand times.
    let began = Instant::now();
    let mut steps = vec![json!({"op": "add", "path": "/l", "value": vec![0; 500_000]})];
    steps.extend((0..9_999).map(|_| json!({"op": "add", "path": "/l/0", "value": 1})));
    refused(&mut cluster, PatchKind::Json, steps.into());
    let mut steps = vec![json!({"op": "add", "path": "/l", "value": vec![0; 500_000]})];
    steps.extend((0..4_999).flat_map(|_| {
        [json!({"op": "move", "from": "/l", "path": "/m"}), json!({"op": "move", "from": "/m", "path": "/l"})]
    }));
    refused(&mut cluster, PatchKind::Json, steps.into());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn h5_an_object_is_no_larger_than_in_etcd() {
    let mut cluster = Cluster::new();
    let body = |bytes: usize| json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat(bytes)}});
    let failure = cluster.try_create("configmaps", body(1_600_000)).unwrap_err();
    assert_eq!((failure.code(), failure.reason()), (413, "RequestEntityTooLarge"));
    cluster.create("configmaps", body(900_000));
    let more = json!({"data": {"l": "x".repeat(900_000)}});
    assert_eq!(cluster.merge("configmaps/default/m", more).unwrap_err().code(), 413);
    cluster.merge("configmaps/default/m", json!({"data": {"l": "x".repeat(500_000)}})).unwrap();
}

#[test]
fn h4_long_lists_merge_without_the_square_of_their_length() {
    let count = 40_000;
    let items = |from: usize| -> Value { (from..from + count).map(|n| json!({"name": n.to_string()})).collect() };
    let began = Instant::now();
    let mut pod = json!({"spec": {"volumes": items(0)}, "metadata": {"finalizers": []}});
    let patch = json!({"spec": {"volumes": items(count / 2)}});
    strategic_merge(schema(named("pods")), &mut pod, &patch).unwrap();
    assert_eq!(pod["spec"]["volumes"].as_array().unwrap().len(), count * 3 / 2);
    let names = |from: usize| -> Value { (from..from + count).map(|n| json!(format!("a/b{n}"))).collect() };
    for from in [0, count / 2] {
        let patch = json!({"metadata": {"finalizers": names(from)}});
        strategic_merge(schema(named("pods")), &mut pod, &patch).unwrap();
    }
    assert_eq!(pod["metadata"]["finalizers"].as_array().unwrap().len(), count * 3 / 2);
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names(0)}});
    strategic_merge(schema(named("pods")), &mut pod, &gone).unwrap();
    assert_eq!(pod["metadata"]["finalizers"].as_array().unwrap().len(), count / 2);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
