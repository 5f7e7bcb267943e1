//! What clients see at the edges: strictness, statuses, selectors and tables.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

fn create_with(cluster: &mut Cluster, validation: FieldValidation, body: Value) -> Result<Applied, Failure> {
    let options = WriteOptions { field_validation: validation, ..WriteOptions::default() };
    let kind = named("persistentvolumeclaims");
    cluster.send(Request::Create { kind, namespace: "default".into(), body, options })
}

#[test]
fn unknown_fields_are_refused_reported_or_dropped_as_asked() {
    let mut cluster = Cluster::new();
    let mut body = claim("c");
    body["spec"]["foo"] = json!(1);
    body["metadata"]["finalisers"] = json!([]);
    let strict = create_with(&mut cluster, FieldValidation::Strict, body.clone()).unwrap_err();
    let said = "strict decoding error: unknown field \"metadata.finalisers\", unknown field \"spec.foo\"";
    assert_eq!((strict.code(), strict.to_string().as_str()), (400, said));
    let warned = create_with(&mut cluster, FieldValidation::Warn, body.clone()).unwrap();
    assert_eq!(warned.warnings, ["unknown field \"metadata.finalisers\"", "unknown field \"spec.foo\""]);
    assert_eq!(warned.reply.value["spec"].get("foo"), None);
    body["metadata"]["name"] = json!("d");
    let ignored = create_with(&mut cluster, FieldValidation::Ignore, body).unwrap();
    assert!(ignored.warnings.is_empty() && ignored.reply.value["spec"].get("foo").is_none());
    let patch = Request::Patch {
        target: target("persistentvolumeclaims/default/c"),
        subresource: None,
        kind: PatchKind::Merge,
        body: json!({ "spec": { "resources": { "bar": {} } } }),
        options: WriteOptions { field_validation: FieldValidation::Strict, ..WriteOptions::default() },
    };
    assert!(cluster.send(patch).unwrap_err().to_string().contains("\"spec.resources.bar\""));
}

#[test]
fn wrong_types_are_refused_by_name_and_without_their_value() {
    let mut cluster = Cluster::new();
    for (plural, body, said) in [
        ("persistentvolumeclaims", json!({ "spec": "x" }), "the field \"spec\" must be an object, not a string"),
        (
            "persistentvolumeclaims",
            json!({ "spec": { "accessModes": "x" } }),
            "the field \"spec.accessModes\" must be a list, not a string",
        ),
        (
            "persistentvolumeclaims",
            json!({ "spec": { "accessModes": [1] } }),
            "the field \"spec.accessModes[0]\" must be a string, not a number",
        ),
        (
            "persistentvolumes",
            json!({ "spec": { "csi": { "readOnly": "yes" } } }),
            "the field \"spec.csi.readOnly\" must be true or false, not a string",
        ),
        (
            "pods",
            json!({ "spec": { "activeDeadlineSeconds": 1.5 } }),
            "the field \"spec.activeDeadlineSeconds\" must be a whole number, not a number",
        ),
        (
            "secrets",
            json!({ "stringData": { "k": ["hush"] } }),
            "the field \"stringData.k\" must be a string, not a list",
        ),
        (
            "secrets",
            json!({ "metadata": { "labels": { "k": 5 } } }),
            "the field \"metadata.labels.k\" must be a string, not a number",
        ),
        ("secrets", json!({ "metadata": 5 }), "metadata must be an object"),
    ] {
        let failure = cluster.try_create(plural, body).unwrap_err();
        assert_eq!((failure.code(), failure.to_string().as_str()), (400, said));
    }
}

#[test]
fn nulls_are_left_out_and_numbers_become_quantities() {
    let mut cluster = Cluster::new();
    let mut body = claim("c");
    body["metadata"]["creationTimestamp"] = Value::Null;
    body["spec"]["selector"] = Value::Null;
    body["spec"]["resources"]["requests"]["storage"] = json!(1_073_741_824);
    let made = cluster.create("persistentvolumeclaims", body);
    assert_eq!(made.value["spec"].get("selector"), None);
    assert_eq!(made.value["spec"]["resources"]["requests"]["storage"], "1073741824");
}

#[test]
fn empty_metadata_lists_and_maps_are_as_good_as_none() {
    let mut cluster = Cluster::new();
    let empty = json!({ "name": "s", "finalizers": [], "ownerReferences": [], "labels": {}, "annotations": {}, "generateName": "" });
    let made = cluster.create("secrets", json!({ "metadata": empty }));
    let keys: Vec<&String> = made.value["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]);
    assert!(
        cluster.merge("secrets/default/s", json!({ "metadata": { "finalizers": [] } })).unwrap().changes.is_empty()
    );
}

#[test]
fn failures_have_the_shape_clients_switch_on() {
    let mut cluster = Cluster::new();
    let missing = cluster.delete("storageclasses/x").unwrap_err().to_status();
    assert_eq!(
        missing,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "storageclasses.storage.k8s.io \"x\" not found",
            "details": { "name": "x", "kind": "storageclasses", "group": "storage.k8s.io" },
        })
    );
    let missing = cluster.delete("persistentvolumeclaims/default/x").unwrap_err();
    assert_eq!(missing.to_string(), "persistentvolumeclaims \"x\" not found");
    let invalid = cluster.try_create("storageclasses", json!({ "metadata": { "name": "s" } })).unwrap_err().to_status();
    assert_eq!((&invalid["code"], &invalid["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(
        invalid["message"],
        "StorageClass.storage.k8s.io \"s\" is invalid: provisioner: Required value: it must be set"
    );
    assert_eq!(invalid["details"]["kind"], "StorageClass");
    assert_eq!(
        invalid["details"]["causes"],
        json!([{ "reason": "FieldValueRequired", "message": "Required value: it must be set", "field": "provisioner" }])
    );
    let media = PatchKind::from_media_type("text/plain").unwrap_err();
    assert_eq!((media.code(), media.reason()), (415, "UnsupportedMediaType"));
    assert_eq!(PatchKind::from_media_type("application/merge-patch+json; charset=utf-8"), Ok(PatchKind::Merge));
}

#[test]
fn label_selectors_match_as_in_kubectl() {
    let object = json!({ "metadata": { "labels": { "app": "db", "tier": "back", "n": "5", "x.io/y": "" } } });
    for (selector, matches) in [
        ("", true),
        ("app=db", true),
        ("app==db", true),
        ("app = db , tier=back", true),
        ("app!=db", false),
        ("other!=db", true),
        ("app in (web,db)", true),
        ("app in (web)", false),
        ("app notin (web)", true),
        ("other notin (web)", true),
        ("app", true),
        ("other", false),
        ("!other", true),
        ("!app", false),
        ("x.io/y=", true),
        ("x.io/y in ()", true),
        ("n>4", true),
        ("n<5", false),
        ("app>1", false),
        ("app in (web,db),tier=front", false),
    ] {
        assert_eq!(LabelSelector::parse(selector).unwrap().matches(&object), matches, "{selector}");
    }
    for bad in ["a=b=c", "a in b", "a in (b", "a of (b)", ",", "a,,b", "=b", "a b", "a>x"] {
        assert_eq!(LabelSelector::parse(bad).unwrap_err().code(), 400, "{bad}");
    }
}

#[test]
fn field_selectors_know_what_each_resource_can_be_selected_by() {
    let pod = json!({ "metadata": { "name": "p", "namespace": "default" }, "spec": { "nodeName": "n" }, "status": { "phase": "Running" } });
    for (selector, matches) in [
        ("metadata.name=p", true),
        ("metadata.name!=p", false),
        ("metadata.namespace=default,spec.nodeName==n", true),
        ("spec.nodeName=", false),
        ("status.phase!=Failed", true),
        ("spec.hostNetwork=false", true),
        ("status.podIP=", true),
    ] {
        let selector = FieldSelector::parse(named("pods"), selector).unwrap();
        assert_eq!(selector.matches(&pod), matches, "{selector:?}");
    }
    let event =
        json!({ "type": "Warning", "involvedObject": { "kind": "Pod", "uid": "u" }, "source": { "component": "c" } });
    let selector = select(named("events"), None, Some("involvedObject.uid=u,type=Warning,source=c")).unwrap();
    assert!(selector.matches(&event) && !selector.is_empty());
    let by_name = FieldSelector::parse(named("nodes"), "metadata.name=n").unwrap();
    assert_eq!(by_name.name(), Some("n"));
    for (plural, bad) in [
        ("persistentvolumeclaims", "status.phase=Bound"),
        ("nodes", "metadata.namespace=x"),
        ("pods", "spec.image=x"),
        ("pods", "metadata.name"),
    ] {
        assert_eq!(FieldSelector::parse(named(plural), bad).unwrap_err().code(), 400, "{bad}");
    }
}

fn row(cluster: &Cluster, path: &str) -> Vec<String> {
    let object = cluster.get(path).unwrap();
    let table = table(object.key.kind, &[&object], cluster.now + 90_000);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns = table["columnDefinitions"].as_array().unwrap();
    let row = &table["rows"][0];
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["name"], object.value["metadata"]["name"]);
    assert_eq!(row["cells"].as_array().unwrap().len(), columns.len(), "{path}");
    let shown = columns.iter().zip(row["cells"].as_array().unwrap()).filter(|(column, _)| column["priority"] == 0);
    shown.map(|(_, cell)| cell.as_str().map_or(cell.to_string(), String::from)).collect()
}

#[test]
fn tables_show_what_kubectl_users_expect() {
    let mut cluster = Cluster::new();
    let annotations = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
    cluster.create(
        "storageclasses",
        json!({ "metadata": { "name": "s", "annotations": annotations }, "provisioner": "p" }),
    );
    cluster.create("persistentvolumeclaims", claim("pending"));
    let mut bound = claim("c");
    bound["spec"]["volumeName"] = json!("v");
    cluster.create("persistentvolumeclaims", bound);
    let status = json!({ "status": { "phase": "Bound", "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteMany", "ReadWriteOnce"] } });
    cluster.merge_status("persistentvolumeclaims/default/c", status).unwrap();
    let mut v = volume("v");
    v["spec"]["claimRef"] = json!({ "namespace": "default", "name": "c" });
    cluster.create("persistentvolumes", v);
    cluster.delete("persistentvolumes/v").unwrap();
    cluster.create("pods", pod("p"));
    let waiting = json!([{ "name": "main", "ready": false, "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]);
    cluster
        .merge_status("pods/default/p", json!({ "status": { "phase": "Running", "containerStatuses": waiting } }))
        .unwrap();
    let spec = json!({ "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "v" } });
    cluster.create("volumeattachments", json!({ "metadata": { "name": "a" }, "spec": spec }));
    cluster.create("csidrivers", json!({ "metadata": { "name": "d" } }));
    cluster.create("csinodes", json!({ "metadata": { "name": "n" } }));
    cluster.create("secrets", json!({ "metadata": { "name": "x" }, "stringData": { "a": "b" } }));
    cluster.create("configmaps", json!({ "metadata": { "name": "x" }, "data": { "a": "b", "c": "d" } }));
    cluster.create("serviceaccounts", json!({ "metadata": { "name": "x" } }));
    cluster.create("leases", json!({ "metadata": { "name": "x" }, "spec": { "holderIdentity": "me" } }));
    let ready =
        json!({ "conditions": [{ "type": "Ready", "status": "True" }], "nodeInfo": { "kubeletVersion": "v1" } });
    cluster.create("nodes", json!({ "metadata": { "name": "n" }, "spec": { "unschedulable": true }, "status": ready }));
    let about = json!({ "kind": "Pod", "name": "p", "namespace": "default" });
    cluster.create("events", json!({ "metadata": { "name": "e" }, "involvedObject": about, "type": "Normal", "reason": "R", "message": "m\n" }));
    for (path, cells) in [
        ("storageclasses/s", "s (default)|p|Delete|Immediate|false|106s"),
        ("persistentvolumeclaims/default/pending", "pending|Pending||||s|<unset>|105s"),
        ("persistentvolumeclaims/default/c", "c|Bound|v|2Gi|RWO,RWX|s|<unset>|104s"),
        ("persistentvolumes/v", "v|1Gi|RWO|Retain|Terminating|default/c||<unset>||102s"),
        ("pods/default/p", "p|0/1|CrashLoopBackOff|2|100s"),
        ("volumeattachments/a", "a|d|v|n|false|98s"),
        ("csidrivers/d", "d|true|false|false|<unset>|false|Persistent|97s"),
        ("csinodes/n", "n|0|96s"),
        ("secrets/default/x", "x|Opaque|1|95s"),
        ("configmaps/default/x", "x|2|94s"),
        ("serviceaccounts/default/x", "x|0|93s"),
        ("leases/default/x", "x|me|92s"),
        ("nodes/n", "n|Ready,SchedulingDisabled|<none>|91s|v1"),
        ("events/default/e", "<unknown>|Normal|R|pod/p|m"),
        ("namespaces/default", "default|Active|107s"),
    ] {
        assert_eq!(row(&cluster, path).join("|"), cells, "{path}");
    }
}

#[test]
fn values_stay_out_of_debug_output() {
    let mut cluster = Cluster::new();
    let made = cluster.create("secrets", json!({ "metadata": { "name": "s" }, "stringData": { "k": "hush" } }));
    assert_eq!(format!("{made:?}"), "secrets/default/s@2");
}

#[test]
fn h11_a_number_that_clients_cannot_read_is_refused() {
    // Clients have 32 or 64 bits with a sign; an object they cannot read would be gone for them.
    let mut cluster = Cluster::new();
    let container = json!({"name": "c", "image": "host"});
    cluster.create("pods", json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}}));
    for (path, number) in [
        ("/spec/terminationGracePeriodSeconds", json!(1_u64 << 63)),
        ("/status/containerStatuses", json!([{"name": "c", "restartCount": 1_u64 << 63}])),
        ("/status/containerStatuses", json!([{"name": "c", "restartCount": 1_u64 << 31}])),
        ("/status/containerStatuses", json!([{"name": "c", "restartCount": 1.5}])),
    ] {
        let patch = json!([{"op": "add", "path": path, "value": number}]);
        let failure = cluster.patch("pods/default/p", PatchKind::Json, patch).unwrap_err();
        assert_eq!(failure.code(), 400, "{path} {number}: {failure}");
    }
}
