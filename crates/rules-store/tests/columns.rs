//! What each column of `kubectl get` shows, by what an object says.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::{Value, json};

/// All cells of an object of this kind that says this, also those of `-o wide`.
fn cells(plural: &str, value: Value) -> Vec<String> {
    at(plural, value, 1_800_000_000_000)
}

fn at(plural: &str, mut value: Value, now_millis: u64) -> Vec<String> {
    let mut cluster = Cluster::new();
    let mut object = (*cluster.create("configmaps", json!({ "metadata": { "name": "any" } }))).clone();
    if value["metadata"]["name"].is_null() {
        value["metadata"]["name"] = "x".into();
    }
    object.value = value;
    let table = table(named(plural), &[&object], now_millis);
    let row = table["rows"][0]["cells"].as_array().unwrap().iter();
    row.map(|cell| cell.as_str().map_or(cell.to_string(), String::from)).collect()
}

/// Ready, status and restarts of a pod.
fn pod_says(value: Value) -> [String; 3] {
    let [_, ready, status, restarts, ..] = cells("pods", value).try_into().map(|all: [String; 9]| all).unwrap();
    [ready, status, restarts]
}

/// A pod with these containers and init containers and their statuses.
fn pod_like(init: Value, init_statuses: Value, statuses: Value, more: Value) -> Value {
    let containers: Vec<Value> =
        statuses.as_array().unwrap().iter().map(|status| json!({ "name": status["name"] })).collect();
    let mut pod = json!({ "spec": { "containers": containers, "initContainers": init },
        "status": { "phase": "Running", "initContainerStatuses": init_statuses, "containerStatuses": statuses } });
    merge_patch(&mut pod, &more);
    pod
}

fn plain(statuses: Value) -> [String; 3] {
    pod_says(pod_like(json!([]), json!([]), statuses, json!({})))
}

#[test]
fn a_pods_status_is_its_most_telling_word() {
    let running = |name: &str, ready: bool, restarts: u32| {
        let state = json!({ "running": {} });
        json!({ "name": name, "ready": ready, "restartCount": restarts, "state": state })
    };
    let waiting =
        |reason: &str| json!({ "name": "w", "restartCount": 3, "state": { "waiting": { "reason": reason } } });
    let ended = |terminated: Value| json!({ "name": "e", "state": { "terminated": terminated } });
    assert_eq!(plain(json!([running("a", true, 2)])), ["1/1", "Running", "2"]);
    assert_eq!(plain(json!([running("a", true, 2), waiting("CrashLoopBackOff")])), ["1/2", "CrashLoopBackOff", "5"]);
    assert_eq!(plain(json!([waiting("")]))[1], "Running");
    for (terminated, told) in [
        (json!({ "reason": "OOMKilled", "exitCode": 137 }), "OOMKilled"),
        (json!({ "signal": 9, "exitCode": 137 }), "Signal:9"),
        (json!({ "reason": "", "signal": 9 }), "Signal:9"),
        (json!({ "signal": 0, "exitCode": 3 }), "ExitCode:3"),
        (json!({ "exitCode": 0 }), "ExitCode:0"),
    ] {
        assert_eq!(plain(json!([ended(terminated.clone())]))[1], told, "{terminated}");
    }
    // One is done, another still works: only if that one is ready.
    let done = || ended(json!({ "reason": "Completed" }));
    assert_eq!(plain(json!([done(), running("a", true, 0)])), ["1/2", "Running", "0"]);
    assert_eq!(plain(json!([done(), running("a", false, 0)])), ["0/2", "Completed", "0"]);
    assert_eq!(plain(json!([done()]))[1], "Completed");
    let failing = || ended(json!({ "reason": "Error" }));
    assert_eq!(plain(json!([failing(), running("a", true, 0)]))[1], "Error");
    // The first container's word counts.
    assert_eq!(plain(json!([failing(), waiting("ImagePullBackOff")]))[1], "Error");
}

#[test]
fn a_pod_that_goes_is_terminating_until_it_has_ended() {
    let going = |status: Value| {
        let metadata = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        pod_says(json!({ "metadata": metadata, "spec": { "containers": [{}] }, "status": status }))[1].clone()
    };
    assert_eq!(going(json!({ "phase": "Running" })), "Terminating");
    assert_eq!(going(json!({ "phase": "Running", "reason": "NodeLost" })), "Unknown");
    assert_eq!(going(json!({ "phase": "Failed" })), "Failed");
    assert_eq!(going(json!({ "phase": "Failed", "reason": "Evicted" })), "Evicted");
}

#[test]
fn a_pod_that_starts_says_how_far_it_is() {
    let state = |state: Value| json!({ "name": "one", "restartCount": 4, "state": state });
    let main = || json!([{ "name": "main", "restartCount": 1, "ready": true, "state": { "running": {} } }]);
    let init = |restart: &str| json!([{ "name": "one", "restartPolicy": restart }, { "name": "two" }]);
    let says = |restart: &str, first: Value| {
        let statuses = json!([first, { "name": "two", "state": { "terminated": { "exitCode": 0 } } }]);
        pod_says(pod_like(init(restart), statuses, main(), json!({})))
    };
    let waiting = |reason: &str| state(json!({ "waiting": { "reason": reason } }));
    assert_eq!(says("", waiting("ErrImagePull")), ["1/1", "Init:ErrImagePull", "4"]);
    assert_eq!(says("", waiting("PodInitializing"))[1], "Init:0/2");
    assert_eq!(says("", waiting(""))[1], "Init:0/2");
    assert_eq!(says("", state(json!({ "running": {} })))[1], "Init:0/2");
    assert_eq!(says("", state(json!({ "terminated": { "exitCode": 2, "reason": "Error" } })))[1], "Init:Error");
    assert_eq!(says("", state(json!({ "terminated": { "exitCode": 2 } })))[1], "Init:ExitCode:2");
    assert_eq!(says("", state(json!({ "terminated": { "exitCode": 0 } }))), ["1/1", "Running", "1"]);
    // A sidecar has done its part once it has started, counts as a container, and restarts like one.
    let sidecar = |started: bool, ready: bool| {
        let state = json!({ "running": {} });
        json!({ "name": "one", "restartCount": 4, "started": started, "ready": ready, "state": state })
    };
    assert_eq!(says("Always", sidecar(true, true)), ["2/2", "Running", "5"]);
    assert_eq!(says("Always", sidecar(true, false)), ["1/2", "Running", "5"]);
    assert_eq!(says("Always", sidecar(false, false))[1], "Init:0/2");
    assert_eq!(says("", sidecar(true, false))[1], "Init:0/2", "it is none");
    // Of two, the second one.
    let statuses = json!([
        { "name": "one", "state": { "terminated": { "exitCode": 0 } } },
        { "name": "two", "state": { "running": {} } },
    ]);
    assert_eq!(pod_says(pod_like(init(""), statuses, main(), json!({})))[1], "Init:1/2");
}

#[test]
fn a_pod_says_where_it_is_or_that_it_is_nowhere() {
    let wide = |value: Value| cells("pods", value)[5..8].join(" ");
    let placed = json!({ "spec": { "nodeName": "a" }, "status": { "podIP": "10.0.0.1", "nominatedNodeName": "b" } });
    assert_eq!(wide(placed), "10.0.0.1 a b");
    assert_eq!(wide(json!({ "spec": { "nodeName": "" } })), "<none> <none> <none>");
}

#[test]
fn events_say_how_often_and_from_where() {
    let shown = |event: Value| cells("events", event).join("|");
    let (source, reporting) = (json!({ "source": { "component": "here" } }), json!({ "reportingComponent": "there" }));
    assert!(shown(source).contains("here") && shown(reporting).contains("there"));
    let count = |event: Value| cells("events", event).contains(&"7".to_string());
    assert!(count(json!({ "count": 7 })) && count(json!({ "series": { "count": 7 }, "count": 3 })));
    assert!(cells("events", json!({})).contains(&"1".to_string()));
}

#[test]
fn a_nodes_addresses_are_told_apart() {
    let addresses =
        json!([{ "type": "InternalIP", "address": "10.0.0.1" }, { "type": "ExternalIP", "address": "8.8.8.8" }]);
    let shown = cells("nodes", json!({ "status": { "addresses": addresses } }));
    let [inner, outer] = ["10.0.0.1", "8.8.8.8"].map(|ip| shown.iter().position(|cell| cell == ip).unwrap());
    assert!(inner < outer, "{shown:?}");
    assert!(cells("nodes", json!({ "status": {} })).iter().filter(|cell| *cell == "<none>").count() >= 2);
}

#[test]
fn a_role_binding_names_its_role_and_its_subjects() {
    let subjects = json!([
        { "kind": "User", "name": "u" }, { "kind": "Group", "name": "g" },
        { "kind": "ServiceAccount", "name": "s", "namespace": "n" },
    ]);
    let binding = json!({ "roleRef": { "kind": "Role", "name": "r" }, "subjects": subjects });
    let shown = cells("rolebindings", binding);
    for cell in ["Role/r", "u", "g", "n/s"] {
        assert!(shown.contains(&cell.to_string()), "{cell}: {shown:?}");
    }
}

#[test]
fn the_default_class_is_marked() {
    let name = |annotations: Value| {
        cells("storageclasses", json!({ "metadata": { "name": "s", "annotations": annotations } }))[0].clone()
    };
    assert_eq!(name(json!({ "storageclass.kubernetes.io/is-default-class": "true" })), "s (default)");
    assert_eq!(name(json!({ "storageclass.kubernetes.io/is-default-class": "false" })), "s");
    assert_eq!(name(json!({})), "s");
}

// A clock may be a second ahead.
#[test]
fn the_age_of_what_is_still_to_come_is_not_known() {
    let age = |now: u64| {
        let metadata = json!({ "name": "c", "creationTimestamp": "2027-01-15T08:00:00Z" });
        at("configmaps", json!({ "metadata": metadata }), now).pop().unwrap()
    };
    assert_eq!(age(1_800_000_000_000 + 7_000), "7s");
    assert_eq!(age(1_800_000_000_000 - 1_000), "0s");
    assert_eq!(age(1_800_000_000_000 - 1_001), "<invalid>");
    assert_eq!(age(1_800_000_000_000 - 90_000), "<invalid>");
    assert_eq!(cells("configmaps", json!({})).pop().unwrap(), "<unknown>");
}

#[test]
fn what_is_in_a_map_is_counted() {
    assert_eq!(cells("configmaps", json!({ "data": { "a": "1", "b": "2" } }))[1], "2");
    assert_eq!(cells("configmaps", json!({}))[1], "0");
}
