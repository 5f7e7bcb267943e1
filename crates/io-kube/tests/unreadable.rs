//! An object that cannot be decoded never counts as absent (reliability 110): the cache keeps what it knew of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Kind, ObjectKey, Value};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use control::Cache;
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use io_kube::{Kube, WatchEvent};
use serde_json::json;
use tokio::sync::mpsc;

/// What a server answers to one request.
enum Answer {
    /// A page of a list at this version, with a token for the next page.
    Page { version: u64, next: &'static str, items: Vec<Value> },
    /// A page in protobuf.
    Protobuf(Vec<u8>),
    /// The events of a watch, which then ends.
    Events(Vec<(&'static str, Value)>),
}

impl Answer {
    fn list(version: u64, items: Vec<Value>) -> Answer {
        Answer::Page { version, next: "", items }
    }

    fn too_old() -> Answer {
        Answer::Events(vec![("ERROR", json!({ "kind": "Status", "code": 410, "message": "too old" }))])
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Answer::Page { version, next, items } => {
                let metadata = json!({ "resourceVersion": version.to_string(), "continue": next });
                json!({ "kind": "List", "metadata": metadata, "items": items }).to_string().into_response()
            }
            Answer::Protobuf(body) => ([(CONTENT_TYPE, wire::TYPE)], body).into_response(),
            Answer::Events(events) => {
                let lines = events.into_iter().map(|(event, object)| json!({ "type": event, "object": object }));
                lines.map(|line| format!("{line}\n")).collect::<String>().into_response()
            }
        }
    }
}

/// A cache that follows a server.
struct Follower {
    kube: Kube,
    cache: Cache,
    events: mpsc::Receiver<WatchEvent>,
}

/// A server which answers each request with the next of these, and is silent afterwards.
fn server(answers: Vec<Answer>) -> Kube {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    Kube::in_process(Router::new().fallback(move |_: Request| async move {
        let next = answers.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer.into_response(),
            None => {
                let silence = futures::stream::pending::<Result<String, std::io::Error>>();
                Body::from_stream(silence.boxed()).into_response()
            }
        }
    }))
}

impl Follower {
    fn new(kind: Kind, answers: Vec<Answer>) -> Follower {
        let (send, events) = mpsc::channel(16);
        let kube = server(answers);
        tokio::spawn(kube.clone().watch(kind, send));
        Follower { kube, cache: Cache::default(), events }
    }

    /// Takes this many events.
    async fn take(&mut self, count: usize) {
        for _ in 0..count {
            let event = tokio::time::timeout(Duration::from_secs(60), self.events.recv()).await.unwrap().unwrap();
            match event {
                WatchEvent::InitApply(objects) => {
                    self.cache.part(objects);
                }
                WatchEvent::InitDone { kind, version, objects, before } => {
                    self.cache.replace_rest(kind, version, objects, before);
                }
                WatchEvent::Apply(object) => {
                    self.cache.set(object);
                }
                WatchEvent::Delete(object) => {
                    self.cache.remove(&object);
                }
            }
        }
    }

    /// The objects in the cache and their versions.
    fn known(&self, kind: Kind) -> Vec<String> {
        let versions = self.cache.all(kind).map(|object| (object.meta().name.clone(), object.meta().version()));
        versions.map(|(name, version)| format!("{name}@{version}")).collect()
    }
}

fn class(name: &str, version: u64) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version.to_string() }, "provisioner": "p" })
}

/// A class that nobody can decode.
fn broken(name: &str, version: u64) -> Value {
    let mut class = class(name, version);
    class["provisioner"] = json!(["not", "a", "text"]);
    class
}

#[tokio::test]
async fn a_change_that_cannot_be_understood_leaves_what_was_known_and_stops_no_other() {
    let mut follower = Follower::new(
        Kind::StorageClass,
        vec![
            Answer::list(10, vec![class("a", 1), class("b", 2)]),
            Answer::Events(vec![("MODIFIED", broken("a", 11)), ("MODIFIED", class("b", 12))]),
        ],
    );
    follower.take(2).await;
    assert_eq!(follower.known(Kind::StorageClass), ["a@1", "b@12"]);
    let known = follower.cache.class(&ObjectKey::cluster("a")).unwrap();
    assert_eq!(known.provisioner, "p");
    // The cache shows an old class from now on, so no version certifies it: the server is not even asked.
    assert!(follower.kube.is_doubted(Kind::StorageClass));
    assert_eq!(follower.kube.version(Kind::StorageClass).await, None);
}

#[tokio::test]
async fn a_deletion_that_cannot_be_understood_is_heard_of_by_a_new_list() {
    let mut follower = Follower::new(
        Kind::StorageClass,
        vec![
            Answer::list(10, vec![class("a", 1), class("b", 2)]),
            Answer::Events(vec![("DELETED", broken("a", 11))]),
            Answer::list(12, vec![class("b", 2)]),
        ],
    );
    follower.take(2).await;
    assert_eq!(follower.known(Kind::StorageClass), ["b@2"]);
}

#[tokio::test]
async fn an_item_of_a_list_that_cannot_be_understood_stays_in_the_cache() {
    let mut follower = Follower::new(
        Kind::StorageClass,
        vec![
            Answer::list(10, vec![class("a", 1), class("b", 2), class("gone", 3), class("z", 4)]),
            Answer::too_old(),
            Answer::Page { version: 20, next: "more", items: vec![broken("a", 15), class("b", 16)] },
            Answer::list(20, vec![broken("z", 17), class("new", 18)]),
        ],
    );
    follower.take(1).await;
    assert_eq!(follower.known(Kind::StorageClass).len(), 4);
    follower.take(2).await;
    assert_eq!(follower.known(Kind::StorageClass), ["a@1", "b@16", "new@18", "z@4"]);
}

// It may be any of those that are known, so none of them counts as gone.
#[tokio::test]
async fn an_item_whose_name_cannot_be_understood_removes_nothing() {
    let field =
        |number: u8, content: &[u8]| [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat();
    let volume = |name: &[u8], version: &[u8]| {
        field(2, &field(1, &[field(1, name), field(5, b"u"), field(6, version)].concat()))
    };
    let list = |version: &[u8], items: &[Vec<u8>]| {
        let of = [field(1, b"v1"), field(2, b"PersistentVolumeList")].concat();
        let raw = [field(1, &field(2, version)), items.concat()].concat();
        Answer::Protobuf([wire::MAGIC.to_vec(), field(1, &of), field(2, &raw)].concat())
    };
    let mut follower = Follower::new(
        Kind::PersistentVolume,
        vec![
            list(b"10", &[volume(b"a", b"1"), volume(b"b", b"2")]),
            Answer::too_old(),
            list(b"20", &[volume(b"\xff", b"11"), volume(b"b", b"12")]),
        ],
    );
    follower.take(2).await;
    assert_eq!(follower.known(Kind::PersistentVolume), ["a@1", "b@12"]);
}

// Who waits for a long list sees it come, page by page.
#[tokio::test]
async fn a_list_tells_after_each_page_how_much_has_come() {
    let page = |next, items| Answer::Page { version: 10, next, items };
    let pages = vec![page("more", vec![class("a", 1), class("b", 2)]), page("", vec![class("c", 3)])];
    let mut told = Vec::new();
    let (version, objects) =
        server(pages).list_by_pages(Kind::StorageClass, &mut |read| told.push(read)).await.unwrap();
    assert_eq!((version.as_str(), objects.len(), told), ("10", 3, vec![2, 3]));
}
