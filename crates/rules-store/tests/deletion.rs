//! Finalizers, graceful pods, namespaces, binding.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rules_store::*;
use serde_json::json;

fn events(applied: &Applied) -> Vec<(EventType, String)> {
    applied.changes.iter().map(|c| (c.event, format!("{}/{}", c.object.key.kind.plural(), c.object.key.name))).collect()
}

fn bind(cluster: &mut Cluster, uid: Option<&str>) -> Result<Applied, Failure> {
    let uid = uid.map(String::from);
    cluster.send(Request::Bind { target: target("pods/default/p"), uid, node: "n".into(), dry_run: false })
}

// reliability 97
#[test]
fn an_object_without_finalizers_goes_at_once() {
    let mut cluster = Cluster::new();
    let made = cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    let gone = cluster.delete("secrets/default/s").unwrap();
    assert_eq!(events(&gone), [(EventType::Deleted, "secrets/s".into())]);
    assert_eq!(gone.reply.revision, made.revision + 1, "a delete carries the deletion's revision");
    let failure = cluster.delete("secrets/default/s").unwrap_err();
    assert_eq!(failure.to_string(), "secrets \"s\" not found");
}

// reliability 99
#[test]
fn an_object_with_finalizers_goes_with_the_last_one() {
    let mut cluster = Cluster::new();
    let mut body = volume("v");
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create("persistentvolumes", body);
    let path = "persistentvolumes/v";
    let marked = cluster.delete(path).unwrap();
    assert_eq!(marked.changes[0].event, EventType::Modified);
    assert_eq!(marked.reply.value["metadata"]["deletionTimestamp"], "2027-01-15T08:00:03Z");
    assert_eq!(marked.reply.value["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(cluster.delete(path).unwrap().changes.is_empty(), "deleting twice changes nothing");

    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/new"] } });
    let failure = cluster.merge(path, more).unwrap_err();
    assert_eq!(failure.code(), 422);
    let less = cluster.merge(path, json!({ "metadata": { "finalizers": ["example.com/hold"] } })).unwrap();
    assert_eq!(less.changes[0].event, EventType::Modified);
    // The deletion cannot be taken back.
    let undo = json!({ "metadata": { "deletionTimestamp": null } });
    assert!(cluster.merge(path, undo).unwrap().changes.is_empty());

    let last = cluster.merge(path, json!({ "metadata": { "finalizers": null } })).unwrap();
    assert_eq!(events(&last), [(EventType::Deleted, "persistentvolumes/v".into())]);
    assert_eq!(last.reply.revision, cluster.store.revision());
    assert_eq!(cluster.get(path), None);
}

#[test]
fn a_namesake_is_another_object() {
    let mut cluster = Cluster::new();
    let first = cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    cluster.delete("secrets/default/s").unwrap();
    let second = cluster.create("secrets", json!({ "metadata": { "name": "s" } }));
    assert_ne!(first.uid(), second.uid());
    let precondition = Precondition { uid: Some(first.uid().into()), resource_version: None };
    assert_eq!(cluster.delete_with("secrets/default/s", precondition, None).unwrap_err().code(), 409);
}

#[test]
fn a_running_pod_gets_time_to_end() {
    let mut cluster = Cluster::new();
    cluster.create("pods", pod("p"));
    bind(&mut cluster, None).unwrap();
    let path = "pods/default/p";
    let asked = cluster.delete(path).unwrap();
    assert_eq!(asked.changes[0].event, EventType::Modified);
    let meta = &asked.reply.value["metadata"];
    assert_eq!(
        (&meta["deletionTimestamp"], &meta["deletionGracePeriodSeconds"]),
        (&json!("2027-01-15T08:00:34Z"), &json!(30))
    );
    assert!(cluster.delete(path).unwrap().changes.is_empty());
    assert!(cluster.delete_with(path, Precondition::default(), Some(60)).unwrap().changes.is_empty(), "never put off");
    let sooner = cluster.delete_with(path, Precondition::default(), Some(10)).unwrap();
    let meta = &sooner.reply.value["metadata"];
    assert_eq!(
        (&meta["deletionTimestamp"], &meta["deletionGracePeriodSeconds"]),
        (&json!("2027-01-15T08:00:14Z"), &json!(10))
    );
    // Status writes of the node do not end it, the node's own delete does.
    cluster.merge_status(path, json!({ "status": { "phase": "Running" } })).unwrap();
    let gone = cluster.delete_with(path, Precondition::default(), Some(0)).unwrap();
    assert_eq!(gone.changes[0].event, EventType::Deleted);
}

#[test]
fn a_pod_with_finalizers_stays_even_when_its_grace_is_over() {
    let mut cluster = Cluster::new();
    let mut body = pod("p");
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create("pods", body);
    bind(&mut cluster, None).unwrap();
    let path = "pods/default/p";
    cluster.delete(path).unwrap();
    let held = cluster.delete_with(path, Precondition::default(), Some(0)).unwrap();
    assert_eq!(held.reply.value["metadata"]["deletionGracePeriodSeconds"], 0);
    let gone = cluster.merge(path, json!({ "metadata": { "finalizers": null } })).unwrap();
    assert_eq!(gone.changes[0].event, EventType::Deleted);
}

#[test]
fn losing_its_finalizers_does_not_cut_a_pods_grace_short() {
    let mut cluster = Cluster::new();
    let mut body = pod("p");
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create("pods", body);
    bind(&mut cluster, None).unwrap();
    cluster.delete("pods/default/p").unwrap();
    let free = cluster.merge("pods/default/p", json!({ "metadata": { "finalizers": null } })).unwrap();
    assert_eq!(free.changes[0].event, EventType::Modified);
}

#[test]
fn pods_that_run_nowhere_go_at_once() {
    for phase in ["unplaced", "Succeeded", "Failed"] {
        let mut cluster = Cluster::new();
        cluster.create("pods", pod("p"));
        if phase != "unplaced" {
            bind(&mut cluster, None).unwrap();
            cluster.merge_status("pods/default/p", json!({ "status": { "phase": phase } })).unwrap();
        }
        let gone = cluster.delete("pods/default/p").unwrap();
        assert_eq!(gone.changes[0].event, EventType::Deleted, "{phase}");
    }
}

#[test]
fn a_pods_own_grace_counts_and_zero_means_now() {
    let mut cluster = Cluster::new();
    let mut body = pod("p");
    body["spec"]["terminationGracePeriodSeconds"] = json!(0);
    cluster.create("pods", body);
    bind(&mut cluster, None).unwrap();
    assert_eq!(cluster.delete("pods/default/p").unwrap().changes[0].event, EventType::Deleted);
}

#[test]
fn a_pod_is_bound_once_and_only_if_it_is_the_one_meant() {
    let mut cluster = Cluster::new();
    let made = cluster.create("pods", pod("p"));
    assert_eq!(bind(&mut cluster, Some("another")).unwrap_err().code(), 409);
    let bound = bind(&mut cluster, Some(made.uid())).unwrap().reply;
    assert_eq!(bound.value["spec"]["nodeName"], "n");
    assert_eq!(bound.value["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(bound.value["status"]["conditions"][0]["status"], "True");
    assert_eq!(bind(&mut cluster, None).unwrap_err().code(), 409);
    // A full replacement with what was read is still no change.
    assert!(cluster.put("pods/default/p", bound.value.clone()).unwrap().changes.is_empty());

    let mut held = pod("p2");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create("pods", held);
    cluster.delete("pods/default/p2").unwrap();
    let late = Request::Bind { target: target("pods/default/p2"), uid: None, node: "n".into(), dry_run: false };
    assert_eq!(cluster.send(late).unwrap_err().code(), 409);
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    let mut cluster = Cluster::new();
    cluster.create("namespaces", json!({ "metadata": { "name": "team" } }));
    for name in ["a", "b"] {
        let body = json!({ "metadata": { "name": name } });
        let (kind, options) = (named("secrets"), WriteOptions::default());
        cluster.send(Request::Create { kind, namespace: "team".into(), body, options }).unwrap();
    }
    cluster.create("secrets", json!({ "metadata": { "name": "elsewhere" } }));
    let gone = cluster.delete("namespaces/team").unwrap();
    let deleted = |name: &str| (EventType::Deleted, String::from(name));
    assert_eq!(events(&gone), [deleted("secrets/a"), deleted("secrets/b"), deleted("namespaces/team")]);
    assert!(cluster.get("secrets/default/elsewhere").is_some());
}

#[test]
fn a_namespace_waits_for_what_has_finalizers() {
    let mut cluster = Cluster::new();
    cluster.create("namespaces", json!({ "metadata": { "name": "team" } }));
    let into_team = |body| Request::Create {
        kind: named("persistentvolumeclaims"),
        namespace: "team".into(),
        body,
        options: WriteOptions::default(),
    };
    cluster.send(into_team(claim("c"))).unwrap();
    let asked = cluster.delete("namespaces/team").unwrap();
    assert_eq!(asked.reply.value["status"]["phase"], "Terminating");
    assert!(cluster.get("persistentvolumeclaims/team/c").unwrap().is_deleting());
    assert!(cluster.delete("namespaces/team").unwrap().changes.is_empty());
    let failure = cluster.send(into_team(claim("late"))).unwrap_err();
    assert_eq!(failure.code(), 403);
    let free = json!({ "metadata": { "finalizers": null } });
    let last = cluster.merge("persistentvolumeclaims/team/c", free).unwrap();
    let deleted = |name: &str| (EventType::Deleted, String::from(name));
    assert_eq!(events(&last), [deleted("persistentvolumeclaims/c"), deleted("namespaces/team")]);
    assert_eq!(&*last.reply.key.name, "c");
}

#[test]
fn the_default_namespace_stays() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.delete("namespaces/default").unwrap_err().code(), 403);
}

// As kube-apiserver does by default: an event goes an hour after it was last seen.
#[test]
fn events_expire_an_hour_after_they_were_last_seen() {
    let mut store = Store::new();
    let millis = |text: &str| api::Time(text.into()).unix_millis().unwrap();
    let mut make = |kind: Kind, namespace: &str, body: serde_json::Value| {
        let uid = body["metadata"]["name"].as_str().unwrap().to_owned();
        let context = Context { now_millis: millis("2030-01-01T09:30:00Z"), new_uid: &uid, actor: "test" };
        let (namespace, options) = (namespace.into(), WriteOptions::default());
        store.apply(&context, Request::Create { kind, namespace, body, options }).unwrap();
    };
    make(Kind::Namespace, "", json!({"metadata": {"name": "default"}}));
    let mut put = |name: &str, times: serde_json::Value| {
        let mut body = json!({"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": "p"}});
        body.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
        make(Kind::Event, "default", body);
    };
    put("old", json!({"lastTimestamp": "2030-01-01T01:00:00Z"}));
    put("repeated", json!({"firstTimestamp": "2030-01-01T01:00:00Z", "lastTimestamp": "2030-01-01T10:20:00Z"}));
    put("series", json!({"series": {"lastObservedTime": "2030-01-01T10:20:00.000000Z"}}));
    put("timeless", json!({}));
    let gone = |now: &str, most: usize| {
        let requests = expired_events(&store, millis(now), most).into_iter();
        let names = requests.map(|request| match request {
            Request::Delete { target, .. } => target.name,
            other => panic!("{other:?}"),
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(gone("2030-01-01T10:29:59Z", 9), Vec::<String>::new());
    assert_eq!(gone("2030-01-01T10:30:00Z", 9), ["old", "timeless"]);
    assert_eq!(gone("2030-01-01T11:20:00Z", 9), ["old", "repeated", "series", "timeless"]);
    assert_eq!(gone("2030-01-01T11:20:00Z", 2).len(), 2);
}
