//! Clients that ask for protobuf get it, for objects, lists, watches and refusals, and may send it.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use api::Kind;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use common::{MAPS, call, config_map, open};
use http::Request;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;
use wire::{Message, Reader, STATUS};

const EITHER: &str = "application/vnd.kubernetes.protobuf, application/json";

fn run(test: impl AsyncFnOnce(Router)) {
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = open(dir.path());
        test(server.service_as("test")).await;
        server.close();
    });
}

/// The code, the media type and the body of an answer.
async fn ask(service: &Router, method: &str, path: &str, body: impl Into<Bytes>) -> (u16, String, Bytes) {
    let request =
        Request::builder().method(method).uri(path).header("accept", EITHER).header("content-type", wire::TYPE);
    let response = service.clone().oneshot(request.body(Body::from(body.into())).unwrap()).await.unwrap();
    let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let code = response.status().as_u16();
    (code, media_type, response.into_body().collect().await.unwrap().to_bytes())
}

fn read(message: &'static Message, kind: &str, body: &[u8]) -> Value {
    let envelope = wire::envelope(body).unwrap();
    assert_eq!(envelope.kind, kind);
    Value::deserialize(Reader::request(message, envelope.raw)).unwrap()
}

fn class(name: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "p",
        "allowVolumeExpansion": false,
    })
}

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

#[test]
fn an_object_is_sent_and_answered_in_protobuf() {
    run(async |service| {
        let sent = wire::encode(Kind::StorageClass, &class("fast")).unwrap();
        let (code, media_type, body) = ask(&service, "POST", CLASSES, sent).await;
        assert_eq!((code, media_type.as_str()), (201, wire::TYPE));
        let made = read(wire::message(Kind::StorageClass).unwrap(), "StorageClass", &body);
        assert_eq!(made["allowVolumeExpansion"], false);
        let (_, media_type, body) = ask(&service, "GET", &format!("{CLASSES}/fast"), "").await;
        assert_eq!(media_type, wire::TYPE);
        let mut got = read(wire::message(Kind::StorageClass).unwrap(), "StorageClass", &body);
        got["apiVersion"] = json!("storage.k8s.io/v1");
        got["kind"] = json!("StorageClass");
        assert_eq!(got, call(&service, "GET", &format!("{CLASSES}/fast"), "").await.1);
    });
}

#[test]
fn a_list_and_a_refusal_are_answered_in_protobuf() {
    run(async |service| {
        for name in ["a", "b"] {
            assert_eq!(call(&service, "POST", CLASSES, &class(name).to_string()).await.0, 201);
        }
        let (_, media_type, body) = ask(&service, "GET", CLASSES, "").await;
        assert_eq!(media_type, wire::TYPE);
        let envelope = wire::envelope(&body).unwrap();
        assert_eq!(envelope.kind, "StorageClassList");
        let (metadata, items) = wire::list(envelope.raw).unwrap();
        let metadata = Value::deserialize(Reader::answer(&wire::LIST_META, metadata)).unwrap();
        assert!(metadata["resourceVersion"].is_string());
        assert_eq!(items.len(), 2);
        let (code, media_type, body) = ask(&service, "GET", &format!("{CLASSES}/absent"), "").await;
        assert_eq!((code, media_type.as_str()), (404, wire::TYPE));
        let status = read(&STATUS, "Status", &body);
        assert_eq!((&status["reason"], &status["code"]), (&json!("NotFound"), &json!(404)));
        let (code, media_type, body) = ask(&service, "DELETE", &format!("{CLASSES}/a"), "").await;
        assert_eq!((code, media_type.as_str()), (200, wire::TYPE));
        assert_eq!(read(&STATUS, "Status", &body)["status"], "Success");
    });
}

#[test]
fn a_kind_without_protobuf_is_answered_in_json() {
    run(async |service| {
        let grants = "/apis/gateway.networking.k8s.io/v1beta1/referencegrants";
        let (code, media_type, _) = ask(&service, "GET", grants, "").await;
        assert_eq!((code, media_type.as_str()), (200, "application/json"));
    });
}

#[test]
fn a_watch_is_told_in_protobuf() {
    run(async |service| {
        assert_eq!(call(&service, "POST", MAPS, &config_map("first", "x")).await.0, 201);
        let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1");
        let request = Request::builder().uri(path).header("accept", EITHER).body(Body::empty()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
        let mut body = response.into_body();
        let mut next = async || {
            let frame = tokio::time::timeout(Duration::from_secs(20), body.frame()).await.unwrap().unwrap();
            let bytes = frame.unwrap().into_data().unwrap();
            let (length, event) = bytes.split_first_chunk::<4>().unwrap();
            assert_eq!(u32::from_be_bytes(*length) as usize, event.len());
            let (sort, object) = wire::event(event).unwrap();
            let map = read(rules_store::schema(Kind::ConfigMap), "ConfigMap", object);
            (sort.to_owned(), map["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(next().await, ("ADDED".to_owned(), "first".to_owned()));
        assert_eq!(next().await, ("ADDED".to_owned(), "kube-root-ca.crt".to_owned()));
        assert_eq!(call(&service, "POST", MAPS, &config_map("second", "x")).await.0, 201);
        assert_eq!(next().await, ("ADDED".to_owned(), "second".to_owned()));
        assert_eq!(next().await, ("BOOKMARK".to_owned(), String::new()));
    });
}
