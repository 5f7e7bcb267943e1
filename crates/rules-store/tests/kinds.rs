//! What a cluster adds to the objects of each kind, and what it holds them to.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

fn class(name: &str, default: bool) -> Value {
    let annotations = json!({ "storageclass.kubernetes.io/is-default-class": default.to_string() });
    json!({ "metadata": { "name": name, "annotations": annotations }, "provisioner": "p.example", "allowVolumeExpansion": true })
}

#[test]
fn claims_get_their_defaults_and_the_newest_default_class() {
    let mut cluster = Cluster::new();
    let none = cluster.create("persistentvolumeclaims", claim("none"));
    assert_eq!(none.value["spec"].get("storageClassName"), None);
    assert_eq!(none.value["spec"]["volumeMode"], "Filesystem");
    assert_eq!(none.value["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    cluster.create("storageclasses", class("older", true));
    cluster.create("storageclasses", class("newer", true));
    cluster.create("storageclasses", class("newest", false));
    let got = cluster.create("persistentvolumeclaims", claim("c"));
    assert_eq!(got.value["spec"]["storageClassName"], "newer");
    let mut empty = claim("empty");
    empty["spec"]["storageClassName"] = json!("");
    assert_eq!(cluster.create("persistentvolumeclaims", empty).value["spec"]["storageClassName"], "");
    let mut beta = claim("beta");
    beta["metadata"]["annotations"] = json!({ "volume.beta.kubernetes.io/storage-class": "mine" });
    assert_eq!(cluster.create("persistentvolumeclaims", beta).value["spec"].get("storageClassName"), None);
}

#[test]
fn the_two_data_source_fields_of_a_claim_mirror_each_other() {
    let mut cluster = Cluster::new();
    let source = json!({ "kind": "PersistentVolumeClaim", "name": "origin" });
    for (name, field, other) in [("a", "dataSource", "dataSourceRef"), ("b", "dataSourceRef", "dataSource")] {
        let mut body = claim(name);
        body["spec"][field] = source.clone();
        assert_eq!(cluster.create("persistentvolumeclaims", body).value["spec"][other], source);
    }
    let mut populated = claim("c");
    populated["spec"]["dataSourceRef"] = json!({ "apiGroup": "x.example", "kind": "Seed", "name": "s" });
    assert_eq!(cluster.create("persistentvolumeclaims", populated).value["spec"].get("dataSource"), None);
}

/// A selector with one requirement.
fn asks(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] })
}

// PV-26: the server says since when a volume is in its phase, unless who changes the phase says so.
#[test]
fn pv_26_a_volume_says_since_when_it_is_in_its_phase() {
    let mut cluster = Cluster::new();
    let since = |cluster: &Cluster| cluster.value("persistentvolumes/v")["status"]["lastPhaseTransitionTime"].clone();
    let made = cluster.create("persistentvolumes", volume("v"));
    assert_eq!(since(&cluster), made.value["metadata"]["creationTimestamp"]);
    let made = since(&cluster);

    cluster.merge_status("persistentvolumes/v", json!({ "status": { "phase": "Available" } })).unwrap();
    let available = since(&cluster);
    assert!(available.as_str() > made.as_str(), "{available} {made}");

    // Nothing else changes it, and nobody takes it away by leaving it out.
    cluster.merge_status("persistentvolumes/v", json!({ "status": { "message": "x" } })).unwrap();
    cluster.merge("persistentvolumes/v", json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    let mut whole = cluster.value("persistentvolumes/v");
    whole["status"] = json!({ "phase": "Available" });
    cluster.put_status("persistentvolumes/v", whole.clone()).unwrap();
    assert_eq!(since(&cluster), available);

    let told = json!("2001-02-03T04:05:06Z");
    cluster
        .merge_status(
            "persistentvolumes/v",
            json!({ "status": { "phase": "Bound", "lastPhaseTransitionTime": told.clone() } }),
        )
        .unwrap();
    assert_eq!(since(&cluster), told);
}

#[test]
fn other_kinds_get_their_defaults() {
    let mut cluster = Cluster::new();
    for (plural, body, path, wanted) in [
        ("persistentvolumes", volume("a"), "/spec/persistentVolumeReclaimPolicy", json!("Retain")),
        ("persistentvolumes", volume("b"), "/spec/volumeMode", json!("Filesystem")),
        ("persistentvolumes", volume("c"), "/status/phase", json!("Pending")),
        ("persistentvolumes", volume("d"), "/metadata/finalizers", json!(["kubernetes.io/pv-protection"])),
        // PV-58
        (
            "volumeattributesclasses",
            json!({"metadata":{"name":"a"},"driverName":"d"}),
            "/metadata/finalizers",
            json!(["kubernetes.io/vac-protection"]),
        ),
        ("storageclasses", class("a", false), "/reclaimPolicy", json!("Delete")),
        ("storageclasses", class("b", false), "/volumeBindingMode", json!("Immediate")),
        ("csidrivers", json!({"metadata":{"name":"a"}}), "/spec/attachRequired", json!(true)),
        ("csidrivers", json!({"metadata":{"name":"b"}}), "/spec/volumeLifecycleModes", json!(["Persistent"])),
        ("csidrivers", json!({"metadata":{"name":"c"}}), "/spec/fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        ("namespaces", json!({"metadata":{"name":"a"}}), "/status/phase", json!("Active")),
        ("namespaces", json!({"metadata":{"name":"b"}}), "/metadata/labels/kubernetes.io~1metadata.name", json!("b")),
        ("secrets", json!({"metadata":{"name":"a"},"stringData":{"k":"foob"}}), "/data/k", json!("Zm9vYg==")),
        ("secrets", json!({"metadata":{"name":"b"}}), "/type", json!("Opaque")),
        ("pods", pod("a"), "/spec/terminationGracePeriodSeconds", json!(30)),
        ("pods", pod("b"), "/spec/restartPolicy", json!("Always")),
        ("pods", pod("c"), "/spec/serviceAccountName", json!("default")),
        ("pods", pod("d"), "/status/phase", json!("Pending")),
        ("pods", pod("e"), "/status/qosClass", json!("BestEffort")),
        ("pods", pod("f"), "/spec/containers/0/imagePullPolicy", json!("IfNotPresent")),
        ("pods", pod("g"), "/spec/containers/0/terminationMessagePath", json!("/dev/termination-log")),
    ] {
        let made = cluster.create(plural, body);
        assert_eq!(made.value.pointer(path), Some(&wanted), "{plural} {path}");
        assert_eq!(made.value.get("stringData"), None);
    }
}

#[test]
fn images_that_move_are_pulled_always() {
    let mut cluster = Cluster::new();
    for (at, (image, policy)) in [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("registry.example:5000/busybox", "Always"),
        ("registry.example:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:00", "IfNotPresent"),
        ("busybox:latest@sha256:00", "IfNotPresent"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = pod(&format!("p{at}"));
        body["spec"]["containers"][0]["image"] = json!(image);
        let made = cluster.create("pods", body);
        assert_eq!(made.value["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
    }
}

#[test]
fn objects_that_break_a_rule_of_their_kind_are_refused_with_the_field() {
    let mut cluster = Cluster::new();
    let edited = |mut body: Value, path: &str, value: Value| {
        let (parent, key) = path.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[key] = value;
        body
    };
    let attachment = json!({ "metadata": { "name": "a" }, "spec": { "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "v" } } });
    let csi_node = json!({ "metadata": { "name": "n" }, "spec": { "drivers": [{ "name": "d", "nodeID": "i" }] } });
    for (plural, body, field) in [
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/accessModes", json!(["ReadWriteOnce", "ReadWriteOncePod"])),
            "spec.accessModes",
        ),
        ("persistentvolumeclaims", edited(claim("c"), "/spec/volumeMode", json!("Tape")), "spec.volumeMode"),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/dataSource", json!({ "kind": "X" })),
            "spec.dataSource.name",
        ),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/selector", json!({ "matchLabels": { "a": "not a value" } })),
            "spec.selector.matchLabels",
        ),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/selector", asks("disk", "Like", &["f"])),
            "spec.selector.matchExpressions[0].operator",
        ),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/selector", asks("disk", "In", &[])),
            "spec.selector.matchExpressions[0].values",
        ),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/selector", asks("disk", "Exists", &["f"])),
            "spec.selector.matchExpressions[0].values",
        ),
        (
            "persistentvolumeclaims",
            edited(claim("c"), "/spec/selector", asks("", "Exists", &[])),
            "spec.selector.matchExpressions[0].key",
        ),
        ("persistentvolumes", edited(volume("v"), "/spec/capacity", json!({})), "spec.capacity.storage"),
        ("persistentvolumes", edited(volume("v"), "/spec/csi", Value::Null), "spec"),
        ("persistentvolumes", edited(volume("v"), "/spec/hostPath", json!({ "path": "/" })), "spec"),
        ("persistentvolumes", edited(volume("v"), "/spec/csi/volumeHandle", json!("")), "spec.csi.volumeHandle"),
        ("storageclasses", edited(class("s", false), "/provisioner", json!("")), "provisioner"),
        ("storageclasses", edited(class("s", false), "/reclaimPolicy", json!("Burn")), "reclaimPolicy"),
        ("volumeattachments", edited(attachment.clone(), "/spec/attacher", Value::Null), "spec.attacher"),
        ("volumeattachments", edited(attachment.clone(), "/spec/nodeName", Value::Null), "spec.nodeName"),
        ("volumeattachments", edited(attachment, "/spec/source", json!({})), "spec.source.persistentVolumeName"),
        ("csinodes", edited(csi_node.clone(), "/spec/drivers", json!([{ "name": "d" }])), "spec.drivers[0].nodeID"),
        (
            "csinodes",
            edited(csi_node, "/spec/drivers", json!([{ "name": "d", "nodeID": "1" }, { "name": "d", "nodeID": "2" }])),
            "spec.drivers[1].name",
        ),
        ("pods", edited(pod("p"), "/spec/containers", json!([])), "spec.containers"),
        ("pods", edited(pod("p"), "/spec/volumes", json!([])), "spec.containers[0].volumeMounts[0].name"),
        ("pods", edited(pod("p"), "/spec/containers/0/name", json!("")), "spec.containers[0].name"),
        ("pods", edited(pod("p"), "/spec/volumes/0/emptyDir", json!({})), "spec.volumes[0]"),
        ("secrets", json!({ "metadata": { "name": "s" }, "data": { "k": "not base64" } }), "data[k]"),
        (
            "leases",
            json!({ "metadata": { "name": "l" }, "spec": { "leaseDurationSeconds": 0 } }),
            "spec.leaseDurationSeconds",
        ),
        (
            "events",
            json!({ "metadata": { "name": "e" }, "involvedObject": { "namespace": "other" } }),
            "involvedObject.namespace",
        ),
        ("secrets", json!({ "metadata": { "name": "s", "labels": { "a b": "c" } } }), "metadata.labels"),
        ("secrets", json!({ "metadata": { "name": "s", "labels": { "a": "-c" } } }), "metadata.labels"),
        ("secrets", json!({ "metadata": { "name": "s", "finalizers": ["a/b/c"] } }), "metadata.finalizers"),
        (
            "secrets",
            json!({ "metadata": { "name": "s", "ownerReferences": [{ "kind": "X", "name": "x", "apiVersion": "v1" }] } }),
            "metadata.ownerReferences[0].uid",
        ),
        ("namespaces", json!({ "metadata": { "name": "a.b" } }), "metadata.name"),
    ] {
        match cluster.try_create(plural, body.clone()) {
            Err(Failure::Invalid { causes, .. }) => {
                assert!(causes.iter().any(|cause| cause.field == field), "{plural} {field}: {causes:?}");
            }
            other => panic!("{plural} {field}: {other:?}"),
        }
    }
}

// API-9: what of a claim may be said later, and once.
#[test]
fn what_must_not_change_does_not() {
    let mut cluster = Cluster::new();
    let source = json!({ "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "v" } });
    cluster.create("volumeattachments", json!({ "metadata": { "name": "a" }, "spec": source }));
    cluster.create("persistentvolumeclaims", claim("c"));
    cluster.create("persistentvolumes", volume("v"));
    cluster.create("storageclasses", class("s", false));
    cluster.create("csidrivers", json!({ "metadata": { "name": "d" } }));
    cluster.create(
        "csinodes",
        json!({ "metadata": { "name": "n" }, "spec": { "drivers": [{ "name": "d", "nodeID": "i" }] } }),
    );
    cluster.create("pods", pod("p"));
    cluster.create("configmaps", json!({ "metadata": { "name": "m" }, "immutable": true, "data": { "a": "b" } }));
    cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    let (attachment, claim) = ("volumeattachments/a", "persistentvolumeclaims/default/c");
    for (path, patch, allowed) in [
        (attachment, json!({ "spec": { "nodeName": "m" } }), false),
        (attachment, json!({ "metadata": { "annotations": { "a": "b" } } }), true),
        (claim, json!({ "spec": { "accessModes": ["ReadWriteMany"] } }), false),
        (claim, json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }), false),
        (claim, json!({ "spec": { "storageClassName": "late" } }), true),
        (claim, json!({ "spec": { "storageClassName": "later" } }), false),
        (claim, json!({ "spec": { "volumeName": "v" } }), true),
        (claim, json!({ "spec": { "volumeName": "w" } }), false),
        (claim, json!({ "spec": { "volumeAttributesClassName": "gold" } }), true),
        (claim, json!({ "spec": { "volumeAttributesClassName": null } }), false),
        ("persistentvolumes/v", json!({ "spec": { "csi": { "volumeHandle": "other" } } }), false),
        ("persistentvolumes/v", json!({ "spec": { "csi": null, "hostPath": { "path": "/" } } }), false),
        ("persistentvolumes/v", json!({ "spec": { "volumeMode": "Block" } }), false),
        ("persistentvolumes/v", json!({ "spec": { "nodeAffinity": { "required": {} } } }), true),
        ("persistentvolumes/v", json!({ "spec": { "nodeAffinity": null } }), false),
        ("persistentvolumes/v", json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } }), true),
        ("persistentvolumes/v", json!({ "spec": { "claimRef": { "name": "c", "namespace": "default" } } }), true),
        ("persistentvolumes/v", json!({ "spec": { "capacity": { "storage": "2Gi" } } }), true),
        ("storageclasses/s", json!({ "provisioner": "q" }), false),
        ("storageclasses/s", json!({ "parameters": { "a": "b" } }), false),
        ("storageclasses/s", json!({ "reclaimPolicy": "Retain" }), false),
        ("storageclasses/s", json!({ "volumeBindingMode": "WaitForFirstConsumer" }), false),
        ("storageclasses/s", json!({ "allowVolumeExpansion": false }), true),
        ("csidrivers/d", json!({ "spec": { "attachRequired": false } }), false),
        ("csidrivers/d", json!({ "spec": { "podInfoOnMount": true } }), true),
        ("csinodes/n", json!({ "spec": { "drivers": [{ "name": "d", "nodeID": "j" }] } }), false),
        (
            "csinodes/n",
            json!({ "spec": { "drivers": [{ "name": "d", "nodeID": "i", "topologyKeys": [], "allocatable": { "count": 3 } }] } }),
            true,
        ),
        ("csinodes/n", json!({ "spec": { "drivers": [] } }), true),
        ("pods/default/p", json!({ "spec": { "nodeName": "n" } }), false),
        ("pods/default/p", json!({ "spec": { "volumes": [{ "name": "data", "emptyDir": {} }] } }), false),
        ("pods/default/p", json!({ "spec": { "activeDeadlineSeconds": 5 } }), true),
        ("pods/default/p", json!({ "spec": { "tolerations": [{ "key": "a" }] } }), true),
        ("pods/default/p", json!({ "spec": { "tolerations": [{ "key": "a" }, { "key": "b" }] } }), true),
        ("pods/default/p", json!({ "spec": { "tolerations": [{ "key": "b" }] } }), false),
        ("configmaps/default/m", json!({ "data": { "a": "c" } }), false),
        ("configmaps/default/m", json!({ "immutable": false }), false),
        ("configmaps/default/m", json!({ "metadata": { "labels": { "a": "c" } } }), true),
        ("secrets/default/s", json!({ "type": "kubernetes.io/tls" }), false),
    ] {
        let result = cluster.merge(path, patch.clone());
        match allowed {
            true => assert!(result.is_ok_and(|applied| applied.changes.len() == 1), "{path} {patch}"),
            false => assert!(matches!(result, Err(Failure::Invalid { .. })), "{path} {patch}"),
        }
    }
    let image = json!({ "spec": { "containers": [{ "name": "main", "image": "busybox:2" }] } });
    assert_eq!(cluster.patch("pods/default/p", PatchKind::Strategic, image).unwrap().changes.len(), 1);
    let command = json!({ "spec": { "containers": [{ "name": "main", "command": ["x"] }] } });
    assert_eq!(cluster.patch("pods/default/p", PatchKind::Strategic, command).unwrap_err().code(), 422);
}

// EX-1, EX-2
#[test]
fn bound_claims_grow_if_their_class_lets_them_and_shrink_only_above_what_they_have() {
    let mut cluster = Cluster::new();
    cluster.create("storageclasses", class("s", true));
    cluster.create("persistentvolumeclaims", claim("c"));
    let path = "persistentvolumeclaims/default/c";
    let bound = json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } });
    cluster.merge_status(path, bound).unwrap();
    let ask = |size: &str| json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    cluster.merge(path, ask("3Gi")).unwrap();
    cluster.merge(path, ask("2Gi")).unwrap();
    assert_eq!(cluster.merge(path, ask("1Gi")).unwrap_err().code(), 422);
    assert_eq!(cluster.merge(path, ask("512Mi")).unwrap_err().code(), 422);
    cluster.merge("storageclasses/s", json!({ "allowVolumeExpansion": false })).unwrap();
    assert_eq!(cluster.merge(path, ask("4Gi")).unwrap_err().code(), 403);
    cluster.delete("storageclasses/s").unwrap();
    assert_eq!(cluster.merge(path, ask("4Gi")).unwrap_err().code(), 403);
}

#[test]
fn h3_names_in_pods_are_what_kubernetes_takes() {
    let mut cluster = Cluster::new();
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let container = |more: Value| {
        let mut container = json!({"name": "main", "image": "x"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"containers": [container], "volumes": [{"name": "data"}]})
    };
    let at = "spec.containers[0]";
    for (spec, sentence) in [
        (container(json!({"name": "my_app"})), format!("{at}.name: Invalid value: \"my_app\": {label}")),
        (container(json!({"name": "../x"})), format!("{at}.name: Invalid value: \"../x\": {label}")),
        (container(json!({"name": "x".repeat(64)})), "must be no more than 63 characters".to_owned()),
        (
            json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}),
            "spec.containers[1].name: Duplicate value: \"a\"".to_owned(),
        ),
        (
            json!({"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "a", "image": "x"}]}),
            "spec.initContainers[0].name: Duplicate value: \"a\"".to_owned(),
        ),
        (
            json!({"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "a_b", "image": "x"}]}),
            format!("spec.initContainers[0].name: Invalid value: \"a_b\": {label}"),
        ),
        (
            json!({"containers": [{"name": "a", "image": "x"}], "volumes": [{"name": "a/b"}]}),
            format!("spec.volumes[0].name: Invalid value: \"a/b\": {label}"),
        ),
        (
            container(json!({"env": [{"name": "A=B"}]})),
            format!("{at}.env[0].name: Invalid value: \"A=B\": a valid env"),
        ),
        (container(json!({"env": [{"value": "x"}]})), format!("{at}.env[0].name: Required value")),
        (
            container(json!({"ports": [{"name": "HTTP", "containerPort": 80}]})),
            format!("{at}.ports[0].name: Invalid value: \"HTTP\": must contain only alpha-numeric characters"),
        ),
        (
            container(json!({"ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]})),
            format!("{at}.ports[1].name: Duplicate value: \"a\""),
        ),
        (
            container(json!({"ports": [{"containerPort": 70_000}]})),
            format!("{at}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ),
        (
            container(json!({"volumeMounts": [{"name": "none", "mountPath": "/x"}]})),
            format!("{at}.volumeMounts[0].name: Not found: \"none\""),
        ),
        (
            container(json!({"volumeMounts": [{"name": "data"}]})),
            format!("{at}.volumeMounts[0].mountPath: Required value"),
        ),
        (
            container(
                json!({"volumeMounts": [{"name": "data", "mountPath": "/x"}, {"name": "data", "mountPath": "/x"}]}),
            ),
            format!("{at}.volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique"),
        ),
        (
            container(json!({"volumeMounts": [{"name": "data", "mountPath": "/x", "subPath": "a/../../b"}]})),
            format!("{at}.volumeMounts[0].subPath: Invalid value: \"a/../../b\": must not contain '..'"),
        ),
        (
            container(json!({"volumeMounts": [{"name": "data", "mountPath": "/x", "subPath": "/b"}]})),
            format!("{at}.volumeMounts[0].subPath: Invalid value: \"/b\": must be a relative path"),
        ),
    ] {
        let refused = cluster.try_create("pods", json!({"metadata": {"name": "p"}, "spec": spec})).unwrap_err();
        assert_eq!(refused.code(), 422);
        assert!(refused.to_string().contains(&sentence), "{refused}\nlacks\n{sentence}");
    }
    let fine = json!({
        "ports": [{"name": "http", "containerPort": 80}], "env": [{"name": "A.b-C"}, {"name": "A.b-C"}],
        "volumeMounts": [{"name": "data", "mountPath": "/x", "subPath": "a..b/c"}],
    });
    cluster.create("pods", json!({"metadata": {"name": "p"}, "spec": container(fine)}));
}

// As the admission plugin DefaultTolerationSeconds has it.
#[test]
fn pods_stay_for_a_while_on_nodes_that_are_not_heard_of() {
    let mut cluster = Cluster::new();
    let tolerations = |cluster: &Cluster, name: &str| -> Vec<(String, Option<i64>)> {
        let pod = cluster.value(&format!("pods/default/{name}"));
        let all = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| (one["key"].as_str().unwrap_or("").into(), one["tolerationSeconds"].as_i64())).collect()
    };
    let with = |name: &str, tolerations: Value| {
        let mut pod = pod(name);
        pod["spec"]["tolerations"] = tolerations;
        pod
    };
    let (not_ready, unreachable) = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable");
    let both = |seconds: i64| vec![(not_ready.to_string(), Some(seconds)), (unreachable.to_string(), Some(seconds))];
    cluster.create("pods", pod("plain"));
    assert_eq!(tolerations(&cluster, "plain"), both(300));
    cluster.create("pods", with("null", Value::Null));
    assert_eq!(tolerations(&cluster, "null"), both(300));
    // Who says something about a taint is left alone with it.
    let own = json!([{ "key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7 }]);
    cluster.create("pods", with("own", own));
    assert_eq!(tolerations(&cluster, "own"), [(unreachable.into(), Some(7)), (not_ready.into(), Some(300))]);
    for (name, toleration) in
        [("all", json!({ "operator": "Exists" })), ("ever", json!({ "operator": "Exists", "effect": "NoExecute" }))]
    {
        cluster.create("pods", with(name, json!([toleration])));
        assert_eq!(tolerations(&cluster, name), [(String::new(), None)], "{name}");
    }
    // One for another effect does not fit.
    let other = json!([{ "operator": "Exists", "effect": "NoSchedule" }]);
    cluster.create("pods", with("other", other));
    assert_eq!(tolerations(&cluster, "other").len(), 3);
    // Whoever writes the pod as they know it does not take them away.
    let mut told = cluster.value("pods/default/plain");
    told["spec"]["tolerations"] = Value::Null;
    told["metadata"]["labels"] = json!({ "a": "b" });
    assert!(cluster.put("pods/default/plain", told).is_ok_and(|applied| applied.changes.len() == 1));
    assert_eq!(tolerations(&cluster, "plain"), both(300));
    // Another time holds for pods that are made from then on.
    cluster.store = cluster.store.clone().with_tolerance(rules_store::Tolerance { not_ready: 5, unreachable: 5 });
    cluster.create("pods", pod("hasty"));
    assert_eq!((tolerations(&cluster, "hasty"), tolerations(&cluster, "plain")), (both(5), both(300)));
}
