//! Watches: in order, without gaps, resumable, and honest about what they cannot tell.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use common::{MAPS, call, call_as, config_map, open, revision};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

struct Watcher(Body);

impl Watcher {
    async fn start(service: &Router, query: &str) -> Watcher {
        Watcher::at(service, &format!("{MAPS}?watch=1&{query}"), "application/json").await
    }

    async fn at(service: &Router, path: &str, accept: &str) -> Watcher {
        let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Watcher(response.into_body())
    }

    /// The next event; each is one frame and one line.
    async fn next(&mut self) -> Option<Value> {
        let frame =
            tokio::time::timeout(Duration::from_secs(20), self.0.frame()).await.expect("an event is missing")?;
        let bytes = frame.unwrap().into_data().unwrap();
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    async fn told(&mut self) -> (String, String, u64) {
        let event = self.next().await.unwrap();
        let object = &event["object"];
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&object["metadata"]["name"]), revision(object))
    }
}

fn run(test: impl AsyncFnOnce(Router)) {
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        test(server.service_as("test")).await;
        server.close();
    });
}

async fn put(service: &Router, name: &str, labels: Value) -> u64 {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}});
    let path = format!("{MAPS}/{name}");
    let (code, object) = match call(service, "GET", &path, "").await.0 {
        200 => call(service, "PUT", &path, &body.to_string()).await,
        _ => call(service, "POST", MAPS, &body.to_string()).await,
    };
    assert!(code < 300, "{object}");
    revision(&object)
}

async fn delete(service: &Router, name: &str) {
    assert_eq!(call(service, "DELETE", &format!("{MAPS}/{name}"), "").await.0, 200);
}

async fn current(service: &Router) -> u64 {
    revision(&call(service, "GET", MAPS, "").await.1)
}

#[test]
fn every_change_is_told_once_and_in_order_under_concurrent_writers() {
    // reliability 92, 93
    run(async |service| {
        let start = current(&service).await;
        let mut watchers = Vec::new();
        for _ in 0..5 {
            watchers.push(Watcher::start(&service, &format!("resourceVersion={start}")).await);
        }
        let writers = (0..16).map(|writer| {
            let service = service.clone();
            async move {
                let mut acked = Vec::new();
                for number in 0..20 {
                    let name = format!("w{writer}-{number}");
                    let (code, object) = call(&service, "POST", MAPS, &config_map(&name, "x")).await;
                    assert_eq!(code, 201);
                    acked.push((revision(&object), "ADDED".to_owned(), name.clone()));
                    let patch = r#"{"data":{"text":"y"}}"#;
                    let path = format!("{MAPS}/{name}");
                    let (_, object) = call_as(&service, "PATCH", &path, "application/merge-patch+json", patch).await;
                    acked.push((revision(&object), "MODIFIED".to_owned(), name.clone()));
                }
                acked
            }
        });
        let mut acked: Vec<_> = futures::future::join_all(writers).await.into_iter().flatten().collect();
        acked.sort();
        for watcher in &mut watchers {
            let mut told = Vec::new();
            for _ in 0..acked.len() {
                let (kind, name, revision) = watcher.told().await;
                told.push((revision, kind, name));
            }
            assert_eq!(told, acked);
        }
    });
}

#[test]
fn a_watch_resumes_from_its_last_event_without_gap() {
    // reliability 94
    run(async |service| {
        let start = current(&service).await;
        for name in ["a", "b", "c", "d"] {
            put(&service, name, json!({})).await;
        }
        let mut first = Watcher::start(&service, &format!("resourceVersion={start}")).await;
        first.told().await;
        let (_, name, last) = first.told().await;
        assert_eq!(name, "b");
        drop(first);
        delete(&service, "c").await;
        let mut second = Watcher::start(&service, &format!("resourceVersion={last}")).await;
        let told = [second.told().await, second.told().await, second.told().await];
        let words: Vec<_> = told.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect();
        assert_eq!(words, ["ADDED c", "ADDED d", "DELETED c"]);
    });
}

#[test]
fn entering_and_leaving_a_selector_is_added_and_deleted() {
    // reliability 97
    run(async |service| {
        let start = current(&service).await;
        let mut watcher = Watcher::start(&service, &format!("resourceVersion={start}&labelSelector=on%3Dyes")).await;
        put(&service, "a", json!({"on": "no"})).await;
        let entered = put(&service, "a", json!({"on": "yes"})).await;
        let changed = put(&service, "a", json!({"on": "yes", "more": "1"})).await;
        let left = put(&service, "a", json!({"on": "no"})).await;
        put(&service, "a", json!({"on": "never"})).await;
        put(&service, "b", json!({"on": "yes"})).await;
        delete(&service, "b").await;
        assert_eq!(watcher.told().await, ("ADDED".into(), "a".into(), entered));
        assert_eq!(watcher.told().await, ("MODIFIED".into(), "a".into(), changed));
        let gone = watcher.next().await.unwrap();
        assert_eq!((gone["type"].as_str(), revision(&gone["object"])), (Some("DELETED"), left));
        assert_eq!(gone["object"]["metadata"]["labels"]["on"], "yes", "the state that matched");
        let (kind, name, made) = watcher.told().await;
        assert_eq!((kind.as_str(), name.as_str()), ("ADDED", "b"));
        let (kind, _, deleted) = watcher.told().await;
        assert_eq!(kind, "DELETED");
        assert!(deleted > made, "a deletion has a revision of its own");
    });
}

#[test]
fn watch_list_sends_the_state_then_a_bookmark_then_changes() {
    run(async |service| {
        put(&service, "a", json!({})).await;
        let last = put(&service, "b", json!({})).await;
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watcher = Watcher::start(&service, query).await;
        let (kind, first, _) = watcher.told().await;
        // The namespace's own objects come with them, in the order of names.
        assert_eq!((kind.as_str(), first.as_str()), ("ADDED", "a"));
        assert_eq!(watcher.told().await.1, "b");
        assert_eq!(watcher.told().await.1, "kube-root-ca.crt");
        let bookmark = watcher.next().await.unwrap();
        assert_eq!(bookmark["type"], "BOOKMARK");
        assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        assert!(revision(&bookmark["object"]) >= last);
        put(&service, "c", json!({})).await;
        assert_eq!(watcher.told().await.1, "c");
        let path = format!("{MAPS}?watch=1&sendInitialEvents=true");
        assert_eq!(call(&service, "GET", &path, "").await.0, 400, "it needs resourceVersionMatch");
    });
}

#[test]
fn a_watch_without_version_starts_with_the_state_and_ends_in_time_with_a_bookmark() {
    run(async |service| {
        put(&service, "a", json!({})).await;
        for version in ["", "resourceVersion=0&"] {
            let mut watcher =
                Watcher::start(&service, &format!("{version}timeoutSeconds=1&allowWatchBookmarks=1")).await;
            assert_eq!(watcher.told().await.0, "ADDED");
            assert_eq!(watcher.told().await.1, "kube-root-ca.crt");
            let other = "/api/v1/namespaces/default/secrets";
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s"}}).to_string();
            let elsewhere = revision(&call(&service, "POST", other, &secret).await.1);
            let bookmark = watcher.next().await.unwrap();
            assert_eq!(bookmark["type"], "BOOKMARK");
            assert!(revision(&bookmark["object"]) >= elsewhere, "changes elsewhere move the bookmark");
            assert!(watcher.next().await.is_none());
        }
    });
}

#[test]
fn a_version_older_than_the_history_is_410_as_an_event() {
    // reliability 96
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        let old = put(&server.service_as("test"), "a", json!({})).await;
        put(&server.service_as("test"), "b", json!({})).await;
        server.close();
        let server = open(dir.path());
        let service = server.service_as("test");
        let mut watcher = Watcher::start(&service, &format!("resourceVersion={old}")).await;
        let event = watcher.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(event["object"]["reason"], "Expired");
        assert!(watcher.next().await.is_none(), "the watch ends there");
        let mut fresh = Watcher::start(&service, &format!("resourceVersion={}", server.revision())).await;
        put(&service, "c", json!({})).await;
        assert_eq!(fresh.told().await.1, "c");
    });
}

#[test]
fn a_watcher_that_does_not_read_is_cut_off_instead_of_fed_from_memory() {
    // reliability 98
    run(async |service| {
        let start = current(&service).await;
        let mut sleeper = Watcher::start(&service, &format!("resourceVersion={start}")).await;
        put(&service, "a", json!({})).await;
        sleeper.told().await;
        let big = "x".repeat(200_000);
        for number in 0..60 {
            assert_eq!(call(&service, "POST", MAPS, &config_map(&format!("b{number}"), &big)).await.0, 201);
        }
        let mut last = sleeper.next().await.unwrap();
        let mut told = 0;
        while last["type"] != "ERROR" {
            told += 1;
            last = sleeper.next().await.expect("the history is not bounded");
        }
        assert_eq!(last["object"]["code"], 410);
        assert!(told < 60);
        assert!(sleeper.next().await.is_none());
    });
}

#[test]
fn a_watch_from_the_future_tells_nothing_older() {
    // reliability 95
    run(async |service| {
        let future = current(&service).await + 2;
        let mut watcher = Watcher::start(&service, &format!("resourceVersion={future}")).await;
        for name in ["a", "b", "c"] {
            put(&service, name, json!({})).await;
        }
        let (_, name, revision) = watcher.told().await;
        assert_eq!((name.as_str(), revision), ("c", future + 1));
    });
}

#[test]
fn tables_and_metadata_can_be_watched() {
    run(async |service| {
        put(&service, "a", json!({})).await;
        let path = format!("{MAPS}?watch=1");
        let mut tables = Watcher::at(&service, &path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
        let first = tables.next().await.unwrap();
        assert_eq!(first["object"]["kind"], "Table");
        assert!(first["object"]["columnDefinitions"].is_array());
        assert_eq!(first["object"]["rows"][0]["object"]["metadata"]["name"], "a");
        put(&service, "b", json!({})).await;
        let second = tables.next().await.unwrap();
        assert!(second["object"]["columnDefinitions"].is_null(), "headers are sent once");
        let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let mut metadata = Watcher::at(&service, &path, accept).await;
        let event = metadata.next().await.unwrap();
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        let keys: BTreeMap<String, Value> = serde_json::from_value(event["object"].clone()).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["apiVersion", "kind", "metadata"]);
    });
}

// What is kept as text alone is told as what is kept as a tree: to watchers of all, of a label, and as tables.
#[test]
fn old_changes_are_told_as_the_latest_ones_are() {
    run(async |service| {
        let start = current(&service).await;
        for number in 0..100 {
            put(&service, "m", json!({"on": if number % 2 == 0 { "yes" } else { "no" }})).await;
        }
        delete(&service, "m").await;
        let from = format!("resourceVersion={start}");
        let mut all = Watcher::start(&service, &from).await;
        let mut revisions = Vec::new();
        for number in 0..=100 {
            let (kind, name, revision) = all.told().await;
            let expected = match number {
                0 => "ADDED",
                100 => "DELETED",
                _ => "MODIFIED",
            };
            assert_eq!((kind.as_str(), name.as_str()), (expected, "m"), "{number}");
            revisions.push(revision);
        }
        assert!(revisions.is_sorted());
        let mut some = Watcher::start(&service, &format!("{from}&labelSelector=on%3Dyes")).await;
        for (number, told) in revisions.iter().enumerate().take(100) {
            let event = some.next().await.unwrap();
            let (kind, on) = if number % 2 == 0 { ("ADDED", "yes") } else { ("DELETED", "yes") };
            assert_eq!((&event["type"], &event["object"]["metadata"]["labels"]["on"]), (&json!(kind), &json!(on)));
            assert_eq!(revision(&event["object"]), *told, "{number}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let mut rows = Watcher::at(&service, &format!("{MAPS}?watch=1&{from}"), table).await;
        for number in 0..=100 {
            let event = rows.next().await.unwrap();
            assert_eq!(event["object"]["rows"][0]["cells"][0], "m", "{number}");
        }
    });
}
