//! Creating and changing objects.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

#[test]
fn create_stamps_what_the_server_owns() {
    let mut cluster = Cluster::new();
    let mut body = claim("c");
    body["metadata"]["uid"] = json!("mine");
    body["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
    body["metadata"]["generation"] = json!(7);
    body["status"] = json!({ "phase": "Bound" });
    let made = cluster.create("persistentvolumeclaims", body);
    let meta = &made.value["metadata"];
    assert_eq!(meta["uid"], "uid-2");
    assert_eq!(meta["namespace"], "default");
    assert_eq!(meta["creationTimestamp"], "2027-01-15T08:00:02Z");
    assert_eq!(meta["generation"], 1);
    assert_eq!(meta.get("deletionTimestamp"), None);
    assert_eq!(made.value["status"], json!({ "phase": "Pending" }));
    assert_eq!((&made.value["kind"], &made.value["apiVersion"]), (&json!("PersistentVolumeClaim"), &json!("v1")));
}

#[test]
fn a_node_keeps_the_status_it_registers_with() {
    let mut cluster = Cluster::new();
    let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    let node = cluster.create("nodes", json!({ "metadata": { "name": "n" }, "status": status }));
    assert_eq!(node.value["status"], status);
}

#[test]
fn create_refuses_what_makes_no_sense() {
    let mut cluster = Cluster::new();
    cluster.create("persistentvolumeclaims", claim("taken"));
    let with = |path: &str, value: Value| {
        let mut body = claim("c");
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let mut versioned = claim("c");
    versioned["metadata"]["resourceVersion"] = json!("1");
    let mut elsewhere = claim("c");
    elsewhere["metadata"]["namespace"] = json!("other");
    let mut kind = claim("c");
    kind["kind"] = json!("Pod");
    for (body, code, reason) in [
        (versioned, 400, "BadRequest"),
        (elsewhere, 400, "BadRequest"),
        (kind, 400, "BadRequest"),
        (json!("text"), 400, "BadRequest"),
        (claim("taken"), 409, "AlreadyExists"),
        (claim("Upper"), 422, "Invalid"),
        (claim("a..b"), 422, "Invalid"),
        (claim("-a"), 422, "Invalid"),
        (claim(""), 422, "Invalid"),
        (with("/spec/accessModes", json!([])), 422, "Invalid"),
        (with("/spec/accessModes", json!(["Sometimes"])), 422, "Invalid"),
        (with("/spec/resources/requests/storage", json!("much")), 422, "Invalid"),
        (with("/spec/resources/requests/storage", json!("0")), 422, "Invalid"),
    ] {
        let failure = cluster.try_create("persistentvolumeclaims", body.clone()).unwrap_err();
        assert_eq!((failure.code(), failure.reason()), (code, reason), "{body}: {failure}");
    }
    let lost = Request::Create {
        kind: named("persistentvolumeclaims"),
        namespace: "nowhere".into(),
        body: claim("c"),
        options: WriteOptions::default(),
    };
    assert_eq!(cluster.send(lost).unwrap_err().to_string(), "namespaces \"nowhere\" not found");
}

#[test]
fn generated_names_are_free_and_legal() {
    let mut cluster = Cluster::new();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let mut body = claim("");
        body["metadata"] = json!({ "generateName": "data-" });
        let made = cluster.create("persistentvolumeclaims", body);
        assert!(made.key.name.starts_with("data-") && made.key.name.len() == 10, "{}", made.key.name);
        assert!(seen.insert(made.key.name.clone()));
    }
}

// reliability 86
#[test]
fn a_stale_version_or_foreign_uid_conflicts_in_every_kind_of_write() {
    let mut cluster = Cluster::new();
    let first = cluster.create("persistentvolumes", volume("v"));
    cluster.merge("persistentvolumes/v", json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    let stale = first.value.clone();
    let mut foreign = cluster.value("persistentvolumes/v");
    foreign["metadata"]["uid"] = json!("another");
    let version = json!({ "metadata": { "resourceVersion": first.value["metadata"]["resourceVersion"] } });
    let uid = json!({ "metadata": { "uid": "another" } });
    let ops = json!([{ "op": "replace", "path": "/metadata/uid", "value": "another" }]);
    let (path, same) = ("persistentvolumes/v", Precondition::default());
    let old_version = Some(String::from("2"));
    let results = [
        cluster.put(path, stale.clone()),
        cluster.put(path, foreign.clone()),
        cluster.put_status(path, stale),
        cluster.put_status(path, foreign),
        cluster.merge(path, version.clone()),
        cluster.merge(path, uid.clone()),
        cluster.merge_status(path, version.clone()),
        cluster.merge_status(path, uid.clone()),
        cluster.patch(path, PatchKind::Strategic, version.clone()),
        cluster.patch(path, PatchKind::Apply, version),
        cluster.patch(path, PatchKind::Apply, uid),
        cluster.patch(path, PatchKind::Json, ops),
        cluster.delete_with(path, Precondition { uid: Some("another".into()), ..same.clone() }, None),
        cluster.delete_with(
            path,
            Precondition { resource_version: old_version.map(api::ResourceVersion), ..same },
            None,
        ),
    ];
    for (at, result) in results.into_iter().enumerate() {
        assert!(matches!(result, Err(Failure::Conflict { .. })), "case {at}");
    }
    assert_eq!(cluster.get(path).unwrap().revision, 3);
}

#[test]
fn a_put_without_a_version_is_unconditional() {
    let mut cluster = Cluster::new();
    cluster.create("configmaps", json!({ "metadata": { "name": "m" }, "data": { "a": "1" } }));
    for (version, value) in [(None, "2"), (Some(""), "3"), (Some("0"), "4")] {
        let mut body = json!({ "metadata": { "name": "m" }, "data": { "a": value } });
        if let Some(version) = version {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        cluster.put("configmaps/default/m", body).unwrap();
        assert_eq!(cluster.value("configmaps/default/m")["data"]["a"], *value);
    }
}

#[test]
fn a_put_replaces_what_it_does_not_name() {
    let mut cluster = Cluster::new();
    let body = json!({ "metadata": { "name": "m", "labels": { "a": "b" } }, "data": { "a": "1" } });
    let made = cluster.create("configmaps", body);
    cluster.put("configmaps/default/m", json!({ "metadata": { "name": "m" } })).unwrap();
    let now = cluster.value("configmaps/default/m");
    assert_eq!((now.get("data"), now["metadata"].get("labels")), (None, None));
    assert_eq!(now["metadata"]["uid"], made.value["metadata"]["uid"]);
}

// reliability 109
#[test]
fn a_write_that_changes_nothing_makes_no_change() {
    let mut cluster = Cluster::new();
    let made = cluster.create("persistentvolumeclaims", claim("c"));
    let path = "persistentvolumeclaims/default/c";
    let revision = cluster.store.revision();
    let results = [
        cluster.put(path, made.value.clone()),
        cluster.put_status(path, made.value.clone()),
        cluster.merge(path, json!({})),
        cluster.merge(path, json!({ "metadata": { "labels": {} } })),
        cluster.merge(path, json!({ "metadata": { "labels": { "a": null } } })),
        cluster.merge_status(path, json!({ "status": { "phase": "Pending" } })),
        cluster.patch(
            path,
            PatchKind::Json,
            json!([{ "op": "test", "path": "/kind", "value": "PersistentVolumeClaim" }]),
        ),
        cluster.patch(
            path,
            PatchKind::Strategic,
            json!({ "metadata": { "finalizers": ["kubernetes.io/pvc-protection"] } }),
        ),
    ];
    for (at, result) in results.into_iter().enumerate() {
        let applied = result.unwrap();
        assert!(applied.changes.is_empty(), "case {at}");
        assert_eq!(applied.reply, made, "case {at}");
    }
    assert_eq!(cluster.store.revision(), revision);
}

// reliability 100
#[test]
fn each_door_opens_only_its_own_part() {
    let mut cluster = Cluster::new();
    cluster.create("persistentvolumeclaims", claim("c"));
    let path = "persistentvolumeclaims/default/c";
    let both = json!({
        "metadata": { "labels": { "a": "b" }, "finalizers": null },
        "spec": { "volumeName": "v" }, "status": { "phase": "Bound" },
    });
    let before = cluster.value(path);
    cluster.merge_status(path, both.clone()).unwrap();
    let status = cluster.value(path);
    assert_eq!((&status["spec"], &status["status"]), (&before["spec"], &json!({ "phase": "Bound" })));
    assert_eq!(status["metadata"]["finalizers"], before["metadata"]["finalizers"]);
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(status["metadata"]["generation"], 1);

    cluster.merge(path, json!({ "spec": { "volumeName": "v" }, "status": { "phase": "Lost" } })).unwrap();
    let main = cluster.value(path);
    assert_eq!((&main["spec"]["volumeName"], &main["status"]), (&json!("v"), &json!({ "phase": "Bound" })));
    assert_eq!(main["metadata"]["generation"], 2);
}

#[test]
fn resources_without_a_status_have_no_such_door() {
    let mut cluster = Cluster::new();
    cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    let failure = cluster.merge_status("secrets/default/s", json!({ "status": {} })).unwrap_err();
    assert_eq!(failure.code(), 404);
}

// reliability 99
#[test]
fn what_identifies_an_object_cannot_change() {
    let mut cluster = Cluster::new();
    cluster.create("persistentvolumes", volume("v"));
    let path = "persistentvolumes/v";
    for (patch, code) in [
        (json!({ "metadata": { "name": "w" } }), 400),
        (json!({ "metadata": { "namespace": "w" } }), 400),
        (json!({ "kind": "Pod" }), 400),
        (json!({ "metadata": { "creationTimestamp": "2020-01-01T00:00:00Z" } }), 422),
    ] {
        assert_eq!(cluster.merge(path, patch.clone()).unwrap_err().code(), code, "{patch}");
    }
    // What the server owns is put back without a word.
    let silent =
        json!({ "metadata": { "deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 9, "managedFields": [] } });
    assert!(cluster.merge(path, silent).unwrap().changes.is_empty());
}

#[test]
fn a_dry_run_answers_and_does_nothing() {
    let mut cluster = Cluster::new();
    let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let create =
        |body| Request::Create { kind: named("persistentvolumeclaims"), namespace: "default".into(), body, options };
    let applied = cluster.send(create(claim("c"))).unwrap();
    assert!(applied.changes.is_empty() && cluster.get("persistentvolumeclaims/default/c").is_none());
    assert_eq!(applied.reply.value["metadata"].get("resourceVersion"), None);
    assert_eq!(applied.reply.value["spec"]["volumeMode"], "Filesystem");
    assert_eq!(cluster.send(create(claim("Bad"))).unwrap_err().code(), 422);

    let made = cluster.create("persistentvolumes", volume("v"));
    let preconditions = Precondition::default();
    let delete = Request::Delete {
        target: target("persistentvolumes/v"),
        preconditions,
        grace_seconds: None,
        propagation: DeletePropagation::Background,
        dry_run: true,
    };
    let reply = cluster.send(delete).unwrap().reply;
    assert!(reply.is_deleting());
    assert_eq!(reply.revision, made.revision);
    assert_eq!(cluster.get("persistentvolumes/v"), Some(made));
}

#[test]
fn apply_makes_what_is_missing_and_merges_what_is_there() {
    let mut cluster = Cluster::new();
    let path = "pods/default/p";
    let mut body = pod("p");
    body["metadata"] = json!({ "labels": { "a": "1" } });
    let made = cluster.patch(path, PatchKind::Apply, body.clone()).unwrap();
    assert_eq!(made.changes[0].event, EventType::Added);
    assert!(cluster.patch(path, PatchKind::Apply, body).unwrap().changes.is_empty());
    let image = json!({ "metadata": { "labels": { "b": "2" } }, "spec": { "containers": [{ "name": "main", "image": "busybox:2" }] } });
    cluster.patch(path, PatchKind::Apply, image).unwrap();
    let now = cluster.value(path);
    assert_eq!(now["metadata"]["labels"], json!({ "a": "1", "b": "2" }));
    assert_eq!(now["spec"]["containers"][0]["image"], "busybox:2");
    assert_eq!(now["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/data");
    // An apply that names an object which is gone does not make another one.
    let gone = json!({ "metadata": { "uid": "uid-0" } });
    assert_eq!(cluster.patch("pods/default/q", PatchKind::Apply, gone).unwrap_err().code(), 409);
}

#[test]
fn the_rules_writes_become_requests() {
    use api::{Kind, Meta, ObjectRef, Patch, Write};
    let mut cluster = Cluster::new();
    let at = ObjectRef::cluster(Kind::PersistentVolume, "v");
    let mut body = volume("v");
    body["metadata"] = json!({});
    cluster.send(Request::from_write(&Write::Create { target: at.clone(), body })).unwrap();
    let meta: Meta = serde_json::from_value(cluster.value("persistentvolumes/v")["metadata"].clone()).unwrap();
    let patch = Patch::add_finalizer(&meta, "example.com/hold");
    let write = Write::Patch { target: at.clone(), subresource: None, patch };
    cluster.send(Request::from_write(&write)).unwrap();
    assert_eq!(cluster.send(Request::from_write(&write)).unwrap_err().code(), 409);
    let only_if = Precondition::same(&meta);
    cluster.send(Request::from_write(&Write::Delete { target: at, only_if, grace_seconds: None })).unwrap();
    assert!(cluster.get("persistentvolumes/v").unwrap().is_deleting());
}
