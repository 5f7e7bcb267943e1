//! What is refused and what is let in, at each edge of a rule.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

/// The refusal of an object, or nothing if it is let in.
fn refusal(plural: &str, body: Value) -> String {
    let mut cluster = Cluster::new();
    cluster.try_create(plural, body).err().map(|failure| failure.to_string()).unwrap_or_default()
}

fn pod_with(container: Value) -> Value {
    let mut main = json!({ "name": "main", "image": "i" });
    merge_patch(&mut main, &container);
    json!({ "metadata": { "name": "p" }, "spec": { "containers": [main] } })
}

#[test]
fn ports_are_named_as_kubernetes_names_them() {
    let named = |name: &str| refusal("pods", pod_with(json!({ "ports": [{ "name": name, "containerPort": 80 }] })));
    for fine in ["http", "a", "web-1", "1a", "abcdefghijklmno"] {
        assert_eq!(named(fine), "", "{fine}");
    }
    for (bad, said) in [
        ("abcdefghijklmnop", "must be no more than 15 characters"),
        ("abcdefghijklmnopq", "must be no more than 15 characters"),
        ("a_b", "must contain only alpha-numeric characters"),
        ("80", "must contain at least one letter"),
        ("a--b", "must not contain consecutive hyphens"),
        ("-a", "must not begin or end with a hyphen"),
        ("a-", "must not begin or end with a hyphen"),
    ] {
        assert!(named(bad).contains(said), "{bad}: {}", named(bad));
    }
    let port = |port: Value| refusal("pods", pod_with(json!({ "ports": [port] })));
    assert!(port(json!({ "name": "a" })).contains("containerPort"));
    assert!(port(json!({ "containerPort": 0 })).contains("containerPort"));
    assert_eq!(port(json!({ "containerPort": 80, "hostPort": 0 })), "");
    assert_eq!(port(json!({ "containerPort": 65_535 })), "");
    assert!(port(json!({ "containerPort": 65_536 })).contains("must be between 1 and 65535"));
}

#[test]
fn a_mount_has_one_path_below() {
    let mounted = |mount: Value| {
        let mut all = json!({ "name": "v", "mountPath": "/m" });
        merge_patch(&mut all, &mount);
        let mut pod = pod_with(json!({ "volumeMounts": [all] }));
        pod["spec"]["volumes"] = json!([{ "name": "v", "emptyDir": {} }]);
        refusal("pods", pod)
    };
    assert_eq!(mounted(json!({ "subPath": "a" })), "");
    assert_eq!(mounted(json!({ "subPath": "", "subPathExpr": "a" })), "");
    assert_eq!(mounted(json!({ "subPath": "a", "subPathExpr": "" })), "");
    assert!(mounted(json!({ "subPath": "a", "subPathExpr": "b" })).contains("mutually exclusive"));
}

#[test]
fn the_quality_of_service_follows_requests_and_limits() {
    let class = |containers: Value| {
        let mut cluster = Cluster::new();
        let mut pod = pod_with(json!({}));
        let all = containers.as_array().unwrap().iter().enumerate();
        let all = all.map(|(at, resources)| json!({ "name": format!("c{at}"), "image": "i", "resources": resources }));
        pod["spec"]["containers"] = all.collect();
        cluster.create("pods", pod);
        cluster.value("pods/default/p")["status"]["qosClass"].as_str().unwrap().to_string()
    };
    let both = || json!({ "cpu": "1", "memory": "1Gi" });
    let full = || json!({ "requests": both(), "limits": both() });
    assert_eq!(class(json!([{}])), "BestEffort");
    assert_eq!(class(json!([full()])), "Guaranteed");
    assert_eq!(class(json!([full(), full()])), "Guaranteed");
    assert_eq!(class(json!([{ "limits": both() }])), "Guaranteed", "a request that is not said is the limit");
    assert_eq!(class(json!([full(), {}])), "Burstable");
    assert_eq!(class(json!([{}, full()])), "Burstable");
    assert_eq!(class(json!([{ "requests": both() }])), "Burstable");
    assert_eq!(class(json!([{ "limits": { "cpu": "1" } }])), "Burstable");
    let less = json!({ "requests": { "cpu": "500m", "memory": "1Mi" }, "limits": both() });
    assert_eq!(class(json!([less])), "Burstable");
}

#[test]
fn a_probe_over_http_asks_for_the_root_in_the_clear() {
    let mut cluster = Cluster::new();
    cluster.create("pods", pod_with(json!({ "livenessProbe": { "httpGet": { "port": 80 } } })));
    let get = cluster.value("pods/default/p")["spec"]["containers"][0]["livenessProbe"]["httpGet"].clone();
    assert_eq!((&get["path"], &get["scheme"]), (&json!("/"), &json!("HTTP")), "{get}");
}

#[test]
fn sizes_and_times_of_volumes_have_their_least() {
    let volume = |source: Value| {
        let mut pod = pod_with(json!({}));
        let mut volume = json!({ "name": "v" });
        merge_patch(&mut volume, &source);
        pod["spec"]["volumes"] = json!([volume]);
        refusal("pods", pod)
    };
    let token = |seconds: u32| {
        volume(json!({ "projected": { "sources": [
            { "serviceAccountToken": { "path": "t", "expirationSeconds": seconds } }] } }))
    };
    assert_eq!(token(600), "");
    assert!(token(599).contains("less than 10 minutes"));
    assert_eq!(volume(json!({ "emptyDir": { "sizeLimit": "0" } })), "");
    assert!(volume(json!({ "emptyDir": { "sizeLimit": "-1" } })).contains("SizeLimit"));
}

fn metadata(more: Value) -> String {
    let mut body = json!({ "metadata": { "name": "m" } });
    merge_patch(&mut body["metadata"], &more);
    refusal("configmaps", body)
}

#[test]
fn annotations_have_room_for_so_much_and_an_object_one_controller() {
    let annotations = |bytes: usize| metadata(json!({ "annotations": { "a": "x".repeat(bytes - 2), "b": "" } }));
    assert_eq!(annotations(256 << 10), "");
    assert!(annotations((256 << 10) + 1).contains("smaller than 256 KiB"));
    // Keys count as values do.
    let key = "k".repeat(63);
    assert!(metadata(json!({ "annotations": { key: "x".repeat((256 << 10) - 62) } })).contains("smaller than"));
    let owner = |name: &str, controller: bool| {
        let (kind, uid) = ("Pod", name);
        json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": controller })
    };
    assert_eq!(metadata(json!({ "ownerReferences": [owner("a", true), owner("b", false)] })), "");
    let two = metadata(json!({ "ownerReferences": [owner("a", true), owner("b", true)] }));
    assert!(two.contains("only one owner can be the controller"), "{two}");
    let three = metadata(json!({ "ownerReferences": [owner("a", true), owner("b", true), owner("c", true)] }));
    assert!(three.contains("only one owner can be the controller"), "{three}");
}

// Of roles the names are freer than elsewhere, but they are still part of a path.
#[test]
fn a_roles_name_is_part_of_a_path() {
    let role = |name: &str| {
        let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
        refusal("clusterroles", json!({ "metadata": { "name": name }, "rules": rules }))
    };
    assert_eq!(role("system:a.B"), "");
    for bad in [".", "..", "a/b", "a%b"] {
        assert_ne!(role(bad), "", "{bad}");
    }
    let rule = |rule: Value| refusal("clusterroles", json!({ "metadata": { "name": "r" }, "rules": [rule] }));
    let paths = |more: Value| {
        let mut all = json!({ "verbs": ["get"], "nonResourceURLs": ["/healthz"] });
        merge_patch(&mut all, &more);
        rule(all)
    };
    assert_eq!(paths(json!({})), "");
    for part in ["apiGroups", "resources", "resourceNames"] {
        assert!(paths(json!({ part: ["x"] })).contains("not both"), "{part}");
    }
}

#[test]
fn a_selector_asks_of_labels_what_can_be_asked() {
    let asked = |expression: Value| {
        let mut body = claim("c");
        body["spec"]["selector"] = json!({ "matchExpressions": [expression] });
        refusal("persistentvolumeclaims", body)
    };
    let of = |operator: &str, values: Value| asked(json!({ "key": "a", "operator": operator, "values": values }));
    for operator in ["In", "NotIn"] {
        assert_eq!(of(operator, json!(["x"])), "");
        assert!(of(operator, json!([])).contains("at least one value"));
    }
    for operator in ["Exists", "DoesNotExist"] {
        assert_eq!(of(operator, json!([])), "");
        assert!(of(operator, json!(["x"])).contains("compare with no value"));
    }
    assert!(asked(json!({ "key": "-", "operator": "Exists" })).contains("cannot be the name of a label"));
    let mut body = claim("c");
    body["spec"]["selector"] = json!({ "matchLabels": { "-": "x" } });
    assert!(refusal("persistentvolumeclaims", body).contains("cannot be the name of a label"));
}

#[test]
fn a_claim_for_one_pod_is_for_nothing_else() {
    let modes = |modes: Value| {
        let mut body = claim("c");
        body["spec"]["accessModes"] = modes;
        refusal("persistentvolumeclaims", body)
    };
    assert_eq!(modes(json!(["ReadWriteOncePod"])), "");
    assert_eq!(modes(json!(["ReadWriteOnce", "ReadOnlyMany"])), "");
    assert!(modes(json!(["ReadWriteOncePod", "ReadWriteOnce"])).contains("cannot stand beside"));
}

#[test]
fn a_node_takes_no_fewer_volumes_than_none() {
    let driver = |count: i32| {
        let drivers = json!([{ "name": "d", "nodeID": "n", "allocatable": { "count": count } }]);
        refusal("csinodes", json!({ "metadata": { "name": "n" }, "spec": { "drivers": drivers } }))
    };
    assert_eq!((driver(0), driver(1)), (String::new(), String::new()));
    assert!(driver(-1).contains("must not be negative"));
}

#[test]
fn selectors_compare_and_are_empty_when_nothing_is_asked() {
    let labelled = |value: &str| json!({ "metadata": { "name": "n", "labels": { "a": value } } });
    let matches = |text: &str, value: &str| LabelSelector::parse(text).unwrap().matches(&labelled(value));
    for (value, above, below) in [("4", false, true), ("5", false, false), ("6", true, false), ("x", false, false)] {
        assert_eq!((matches("a>5", value), matches("a<5", value)), (above, below), "{value}");
    }
    let kind = named("nodes");
    let of = |labels: Option<&str>, fields: Option<&str>| select(kind, labels, fields).unwrap();
    assert!(of(None, None).is_empty() && of(None, None).labels.is_empty() && of(None, None).fields.is_empty());
    assert!(!of(Some("a=b"), None).is_empty() && !of(Some("a=b"), None).labels.is_empty());
    assert!(!of(None, Some("metadata.name=n")).is_empty() && !of(None, Some("metadata.name=n")).fields.is_empty());
    let both = of(Some("a=b"), Some("metadata.name=n"));
    assert!(both.matches(&labelled("b")) && !both.matches(&labelled("c")));
    assert!(!of(Some("a=b"), Some("metadata.name=m")).matches(&labelled("b")));
    // Only a name that is asked for is the one that can match.
    let name = |text: &str| FieldSelector::parse(kind, text).unwrap().name().map(String::from);
    assert_eq!(name("metadata.name=n").as_deref(), Some("n"));
    assert_eq!((name("metadata.name!=n"), name("spec.unschedulable=true")), (None, None));
}

/// Namespaces and names of what is to be created.
fn wanted(requests: Vec<Request>) -> Vec<(String, String)> {
    let of = |request: Request| match request {
        Request::Create { namespace, body, .. } => (namespace, body["metadata"]["name"].as_str().unwrap().to_string()),
        other => panic!("{other:?}"),
    };
    requests.into_iter().map(of).collect()
}

#[test]
fn every_namespace_that_stays_has_its_account_and_its_certificate() {
    let mut cluster = Cluster::new();
    let account = || json!({ "metadata": { "name": "default" } });
    let lacking = [("default".to_string(), "default".to_string())];
    assert_eq!(wanted(missing_accounts(&cluster.store)), lacking);
    cluster.create("serviceaccounts", account());
    assert!(missing_accounts(&cluster.store).is_empty());
    // One that is taken away comes again; another does not, and an ordinary change is none.
    cluster.create("serviceaccounts", json!({ "metadata": { "name": "other" } }));
    let gone = cluster.delete("serviceaccounts/default/other").unwrap();
    assert!(missing_accounts_after(&cluster.store, &gone.changes).is_empty());
    let gone = cluster.delete("serviceaccounts/default/default").unwrap();
    assert_eq!(wanted(missing_accounts_after(&cluster.store, &gone.changes)), lacking);
    let config = cluster.try_create("configmaps", json!({ "metadata": { "name": "x" } })).unwrap();
    assert!(root_certificates_after(&cluster.store, &config.changes, "pem").is_empty());
    // In a namespace that goes nothing is made anew.
    cluster.create("serviceaccounts", account());
    cluster.create("namespaces", json!({ "metadata": { "name": "going", "finalizers": ["keep/it"] } }));
    assert_eq!(wanted(missing_accounts(&cluster.store)), [("going".to_string(), "default".to_string())]);
    cluster.delete("namespaces/going").unwrap();
    assert!(cluster.get("namespaces/going").is_some() && missing_accounts(&cluster.store).is_empty());
    let of = |requests: Vec<Request>| wanted(requests).into_iter().map(|(namespace, _)| namespace).collect::<Vec<_>>();
    assert_eq!(of(root_certificates(&cluster.store, "pem")), ["default"]);
}

#[test]
fn a_pods_spec_changes_only_where_it_may() {
    let mut cluster = Cluster::new();
    let mut pod = pod_with(json!({}));
    pod["spec"]["tolerations"] = json!([{ "key": "a", "operator": "Exists" }]);
    pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
    cluster.create("pods", pod);
    let mut change = |spec: Value| cluster.merge("pods/default/p", json!({ "spec": spec })).is_ok();
    let tolerates = |keys: &[&str]| -> Value {
        keys.iter().map(|key| json!({ "key": key, "operator": "Exists" })).collect::<Vec<_>>().into()
    };
    assert!(change(json!({ "tolerations": tolerates(&["a", "b"]) })));
    assert!(!change(json!({ "tolerations": tolerates(&["b"]) })));
    assert!(!change(json!({ "terminationGracePeriodSeconds": 1 })), "only one that was negative");
    assert!(change(json!({ "containers": [{ "name": "main", "image": "j" }] })));
    assert!(!change(json!({ "containers": [{ "name": "other", "image": "j" }] })));
    let long = |length: usize| {
        let mut pod = pod_with(json!({}));
        pod["spec"]["containers"][0]["name"] = "x".repeat(length).into();
        refusal("pods", pod)
    };
    assert_eq!(long(63), "");
    assert!(long(64).contains("no more than 63 characters"));
}
