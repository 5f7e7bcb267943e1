//! Which form is asked for, sent and understood, with servers that speak both, one, or nonsense.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use api::{Kind, ObjectRef, Value, Write};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use control::{Outcome, Refusal, Reply};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use io_kube::Kube;
use serde_json::json;

const JSON: &str = "application/json";
const EITHER: &str = "application/vnd.kubernetes.protobuf, application/json";

/// What a request asked for, and what it carried.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A server that answers with `answer`.
fn server(answer: impl Fn(&str, Vec<u8>) -> Response + Clone + Send + Sync + 'static) -> (Kube, Asked) {
    let asked = Asked::default();
    let noted = asked.clone();
    let router = Router::new().fallback(move |request: Request| async move {
        let (accept, sent) = (header(&request, ACCEPT), header(&request, CONTENT_TYPE));
        noted.lock().unwrap().push((accept, sent.clone()));
        answer(&sent, to_bytes(request.into_body(), usize::MAX).await.unwrap().to_vec())
    });
    (Kube::in_process(router), asked)
}

fn header(request: &Request, name: HeaderName) -> String {
    request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_string()
}

fn volume(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name }, "spec": {} })
}

fn create(body: Value) -> Write {
    let name = body["metadata"]["name"].as_str().unwrap().to_string();
    Write::Create { target: ObjectRef::cluster(Kind::PersistentVolume, name), body }
}

fn in_binary(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, wire::TYPE)], body).into_response()
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

fn enveloped(kind: &str, raw: &[u8]) -> Vec<u8> {
    let of = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [wire::MAGIC.to_vec(), field(1, &of), field(2, raw)].concat()
}

#[tokio::test]
async fn an_object_goes_in_the_binary_form_and_its_answer_is_read_in_whichever_it_comes() {
    for binary in [true, false] {
        let (kube, asked) = server(move |_, body| {
            let raw = wire::envelope(&body).unwrap().raw.to_vec();
            assert!(raw.windows(4).any(|part| part == b"some"));
            if binary {
                in_binary(StatusCode::CREATED, body)
            } else {
                (StatusCode::CREATED, volume("some").to_string()).into_response()
            }
        });
        let outcome = kube.write(&create(volume("some"))).await;
        assert!(
            matches!(&outcome, Outcome::Done(Reply::Object(object)) if object.meta().name == "some"),
            "{outcome:?}"
        );
        assert_eq!(*asked.lock().unwrap(), [(EITHER.to_string(), wire::TYPE.to_string())]);
    }
}

#[tokio::test]
async fn a_server_that_does_not_take_the_binary_form_is_asked_once() {
    let (kube, asked) = server(|sent, body| {
        if sent == JSON {
            (StatusCode::CREATED, body).into_response()
        } else {
            StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()
        }
    });
    for name in ["one", "two"] {
        // Another hand on the same connection knows it too.
        let outcome = kube.paced().write(&create(volume(name))).await;
        assert!(matches!(&outcome, Outcome::Done(Reply::Object(object)) if object.meta().name == name), "{outcome:?}");
    }
    let sent: Vec<String> = asked.lock().unwrap().iter().map(|(_, sent)| sent.clone()).collect();
    assert_eq!(sent, [wire::TYPE, JSON, JSON]);
    let counted = kube.counts().all();
    assert_eq!(counted, [(("create", Kind::PersistentVolume, ""), 2)]);
}

#[tokio::test]
async fn what_the_tables_do_not_know_is_sent_and_asked_for_as_json() {
    let (kube, asked) = server(|_, body| (StatusCode::CREATED, body).into_response());
    let mut invented = volume("some");
    invented["spec"]["inventedDisk"] = json!({ "path": "/" });
    assert!(matches!(kube.write(&create(invented)).await, Outcome::Done(Reply::Object(_))));
    // Kinds of a CustomResourceDefinition have no protobuf form.
    let kind = Kind::VolumeSnapshotContent;
    let content = json!({ "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": { "name": "c" } });
    let target = ObjectRef::cluster(kind, "c");
    assert!(matches!(kube.write(&Write::Create { target, body: content }).await, Outcome::Done(Reply::Object(_))));
    let wanted = [(EITHER.to_string(), JSON.to_string()), (JSON.to_string(), JSON.to_string())];
    assert_eq!(*asked.lock().unwrap(), wanted);
}

// reliability 110
#[tokio::test]
async fn an_object_that_cannot_be_understood_is_left_out_of_a_list_and_stops_no_other() {
    let named = |name: &[u8]| field(2, &field(1, &field(1, name)));
    let page = [field(1, &field(2, b"7")), named(b"one"), named(b"\xff"), named(b"two")].concat();
    let (kube, _) = server(move |_, _| in_binary(StatusCode::OK, enveloped("PersistentVolumeList", &page)));
    let (version, objects) = kube.list(Kind::PersistentVolume).await.unwrap();
    let names: Vec<&str> = objects.iter().map(|object| object.meta().name.as_str()).collect();
    assert_eq!((version.as_str(), names), ("7", vec!["one", "two"]));
}

#[tokio::test]
async fn nonsense_in_the_binary_form_is_an_error_and_never_an_object() {
    let target = ObjectRef::cluster(Kind::PersistentVolume, "some");
    for body in [b"{}".to_vec(), Vec::new(), enveloped("Pod", b""), enveloped("PersistentVolume", &[0x0a, 0x7f])] {
        let (kube, _) = server(move |_, _| in_binary(StatusCode::OK, body.clone()));
        let outcome = kube.read(&target).await;
        assert!(matches!(&outcome, Outcome::Unknown(why) if why.starts_with("cannot understand")), "{outcome:?}");
        assert!(
            kube.list(Kind::PersistentVolume).await.unwrap_err().to_string().starts_with("cannot understand the list")
        );
    }
}

#[tokio::test]
async fn a_refusal_in_the_binary_form_says_why() {
    for (code, said, wanted) in [
        (409, &[field(4, b"AlreadyExists")][..], Outcome::Refused(Refusal::AlreadyExists)),
        (409, &[field(3, b"changed"), field(4, b"Conflict")], Outcome::Refused(Refusal::Conflict)),
        (422, &[field(3, b"bad name"), field(4, b"Invalid")], Outcome::Refused(Refusal::Denied("bad name".into()))),
        (500, &[field(3, b"no etcd")], Outcome::Unknown("the API server failed: no etcd".into())),
        (403, &[], Outcome::Refused(Refusal::Denied("no reason given".into()))),
    ] {
        let body = enveloped("Status", &said.concat());
        let status = StatusCode::from_u16(code).unwrap();
        let (kube, _) = server(move |_, _| in_binary(status, body.clone()));
        assert_eq!(kube.write(&create(volume("some"))).await, wanted);
    }
}
