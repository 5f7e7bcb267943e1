//! Long random runs. Every answer is held to the laws in `common::check_changes`; a failure names its seed.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::*;
use prove_lab::Dice;
use rules_store::*;
use serde_json::{Value, json};

const PATHS: [&str; 5] = [
    "persistentvolumeclaims/default/a",
    "persistentvolumes/a",
    "pods/default/a",
    "configmaps/default/a",
    "persistentvolumeclaims/team/a",
];

fn body(path: &str) -> Value {
    match path.split('/').next().unwrap() {
        "persistentvolumeclaims" => claim("a"),
        "persistentvolumes" => volume("a"),
        "pods" => pod("a"),
        _ => json!({ "metadata": { "name": "a" } }),
    }
}

fn patch(dice: &mut Dice, current: Option<&Value>) -> Value {
    let mut patch = match dice.roll(8) {
        0 => json!({ "metadata": { "labels": { "l": dice.roll(3).to_string() } } }),
        1 => json!({ "metadata": { "finalizers": null } }),
        2 => json!({ "metadata": { "finalizers": ["x.example/y"] } }),
        3 => json!({ "status": { "phase": *dice.pick(&["Pending", "Bound", "Succeeded", "Running"]) } }),
        4 => json!({ "spec": { "volumeName": "a" } }),
        5 => {
            json!({ "spec": { "storageClassName": *dice.pick(&["x", "y"]) }, "data": { "k": dice.roll(2).to_string() } })
        }
        6 => json!({ "metadata": { "deletionTimestamp": null, "creationTimestamp": null, "generation": 50 } }),
        _ => json!({}),
    };
    if dice.roll(3) == 0 {
        let version = if dice.roll(2) == 0 { current.map(|v| v["metadata"]["resourceVersion"].clone()) } else { None };
        patch["metadata"]["resourceVersion"] = version.unwrap_or_else(|| json!(dice.roll(40).to_string()));
    }
    patch
}

fn request(dice: &mut Dice, store: &Store) -> Request {
    let path = *dice.pick(&PATHS);
    let target = target(path);
    let current = store.get(target.kind, &target.namespace, &target.name);
    let current = current.as_ref().map(|object| &object.value);
    let options = WriteOptions { dry_run: dice.roll(12) == 0, ..WriteOptions::default() };
    let subresource = if dice.roll(3) == 0 { Some(Subresource::Status) } else { None };
    let kind = *dice.pick(&[PatchKind::Merge, PatchKind::Strategic, PatchKind::Apply]);
    match dice.roll(10) {
        0 | 1 => Request::Create { kind: target.kind, namespace: target.namespace, body: body(path), options },
        2 => Request::Update { target, subresource, body: current.cloned().unwrap_or_else(|| body(path)), options },
        3..=6 => Request::Patch { target, subresource, kind, body: patch(dice, current), options },
        7 => Request::Bind { target: common::target("pods/default/a"), uid: None, node: "n".into(), dry_run: false },
        8 if dice.roll(4) == 0 => Request::Delete {
            target: common::target("namespaces/team"),
            preconditions: Precondition::default(),
            grace_seconds: None,
            propagation: DeletePropagation::Background,
            dry_run: false,
        },
        _ => Request::Delete {
            target,
            preconditions: Precondition::default(),
            grace_seconds: *dice.pick(&[None, Some(0), Some(5)]),
            propagation: *dice.pick(&[
                DeletePropagation::Background,
                DeletePropagation::Foreground,
                DeletePropagation::Orphan,
            ]),
            dry_run: options.dry_run,
        },
    }
}

/// The uid and version a request insists on, if any.
fn insists(request: &Request) -> Option<String> {
    match request {
        Request::Patch { body, .. } => {
            body["metadata"]["resourceVersion"].as_str().filter(|v| *v != "0").map(String::from)
        }
        Request::Create { .. } | Request::Update { .. } | Request::Delete { .. } | Request::Bind { .. } => None,
    }
}

// reliability 85, 86, 87, 99, 100, 109
#[test]
fn random_histories_keep_the_laws() {
    let (mut changed, mut conflicts, mut deletions) = (0, 0, 0);
    for seed in 1..=60_u64 {
        let mut dice = Dice::new(seed);
        let mut cluster = Cluster::new();
        let mut dead = BTreeMap::new();
        for _ in 0..150 {
            if cluster.get("namespaces/team").is_none() {
                cluster.create("namespaces", json!({ "metadata": { "name": "team" } }));
            }
            let request = request(&mut dice, &cluster.store);
            let wanted = insists(&request);
            let result = cluster.send(request);
            match (&result, wanted) {
                // reliability 86: whoever got through with a version had the right one.
                (Ok(applied), Some(version)) => {
                    let seen = applied
                        .changes
                        .first()
                        .and_then(|change| change.before.clone())
                        .unwrap_or(applied.reply.clone());
                    assert_eq!(seen.revision.to_string(), version, "seed {seed}");
                }
                (Err(Failure::Conflict { .. }), _) => conflicts += 1,
                (Ok(_) | Err(_), _) => {}
            }
            for change in result.iter().flat_map(|applied| &applied.changes) {
                changed += 1;
                let uid = String::from(change.object.uid());
                // A uid that is gone never comes back.
                assert!(!dead.contains_key(&uid), "seed {seed}");
                if change.event == EventType::Deleted {
                    deletions += 1;
                    dead.insert(uid, change.revision);
                }
            }
            check_state(&cluster.store);
        }
    }
    assert!(
        changed > 1000 && conflicts > 100 && deletions > 100,
        "the runs reach what they should: {changed} {conflicts} {deletions}"
    );
}

fn check_state(store: &Store) {
    for object in store.iter() {
        assert!(object.revision <= store.revision());
        let namespace = &object.key.namespace;
        assert!(
            namespace.is_empty() || store.get(named("namespaces"), "", namespace).is_some(),
            "{object:?} is homeless"
        );
        // reliability 99: whatever is deleted and still here has a reason to be.
        let meta = &object.value["metadata"];
        let held = meta.get("finalizers").is_some() || meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
        assert!(!object.is_deleting() || held || object.key.kind == Kind::Namespace, "{object:?} should be gone");
    }
}

#[test]
fn a_restored_store_continues_where_it_stopped() {
    let mut cluster = Cluster::new();
    cluster.create("persistentvolumes", volume("v"));
    cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    cluster.delete("secrets/default/s").unwrap();
    let saved: Vec<Stored> = cluster.store.iter().map(|object| Stored::clone(object)).collect();
    let restored = Store::restore(cluster.store.revision(), saved.into_iter());
    assert_same(&restored, &cluster.store);
    cluster.store = restored;
    // reliability 85: not even the number of the deletion is used twice.
    assert_eq!(cluster.create("persistentvolumes", volume("w")).revision, 5);
}

#[test]
fn a_change_shown_twice_counts_once() {
    let mut cluster = Cluster::new();
    let made = cluster.try_create("secrets", json!({ "metadata": { "name": "s" } })).unwrap();
    let gone = cluster.delete("secrets/default/s").unwrap();
    cluster.copy.replay(&made.changes[0]);
    assert_same(&cluster.copy, &cluster.store);
    cluster.copy.replay(&gone.changes[0]);
    assert_same(&cluster.copy, &cluster.store);
}

#[test]
fn copies_share_and_then_part() {
    let mut cluster = Cluster::new();
    cluster.create("persistentvolumes", volume("v"));
    let copy = cluster.store.clone();
    cluster.create("persistentvolumes", volume("w"));
    assert_eq!((copy.count(named("persistentvolumes")), cluster.store.count(named("persistentvolumes"))), (1, 2));
    assert_eq!(copy.revision() + 1, cluster.store.revision());
}

#[test]
fn lists_are_in_order_and_keep_to_their_namespace() {
    let mut cluster = Cluster::new();
    for namespace in ["b", "bb", "a"] {
        cluster.create("namespaces", json!({ "metadata": { "name": namespace } }));
        for name in ["y", "x"] {
            let (body, options) = (json!({ "metadata": { "name": name } }), WriteOptions::default());
            cluster
                .send(Request::Create { kind: named("secrets"), namespace: namespace.into(), body, options })
                .unwrap();
        }
    }
    let names = |objects: &mut dyn Iterator<Item = &std::sync::Arc<Stored>>| -> Vec<String> {
        objects.map(|o| format!("{}/{}", o.key.namespace, o.key.name)).collect()
    };
    let (store, secrets) = (&cluster.store, named("secrets"));
    assert_eq!(names(&mut store.list(secrets, Some("b"))), ["b/x", "b/y"]);
    assert_eq!(names(&mut store.list(secrets, None)), ["a/x", "a/y", "b/x", "b/y", "bb/x", "bb/y"]);
    assert_eq!(names(&mut store.list_from(secrets, "b", "y")), ["b/y", "bb/x", "bb/y"]);
    assert_eq!(names(&mut store.list(secrets, Some("none"))), Vec::<String>::new());
}
