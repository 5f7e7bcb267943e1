//! One request, one outcome.

use std::time::Duration;

use api::{Kind, Object, ObjectRef, Patch, Value, Write};
use bytes::Bytes;
use control::{Answer, Outcome, Refusal, Reply};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::json;

use crate::failure::why;
use crate::{Kube, path};

/// A field manager for what we write, so that users see who it was. Fields nobody knows are not looked for: what we write is
/// tested against real servers, and the search costs the server time with every write.
const MANAGER: &str = "fieldManager=longshore&fieldValidation=Ignore";
/// How often a request is made while the server says that it is too busy.
const BUSY_TRIES: usize = 5;
/// For how long a busy server is left alone that does not say, and at most.
const SHORT_PAUSE_MILLIS: u64 = 1_000;
const LONGEST_PAUSE_SECONDS: u64 = 30;

impl Kube {
    /// Reads one object, past every cache.
    pub async fn read(&self, target: &ObjectRef) -> Outcome {
        self.counts.add("get", target.kind, "");
        let path = path::object(target.kind, &target.key, None);
        match self.send(Method::GET, &path, "", Bytes::new()).await {
            Ok((StatusCode::NOT_FOUND, _)) => Outcome::Done(Reply::Gone),
            Ok((status, body)) if status.is_success() => match Object::from_slice(target.kind, &body) {
                Ok(object) => Outcome::Done(Reply::Object(object)),
                Err(error) => Outcome::Unknown(format!("cannot understand {target}: {error}")),
            },
            Ok((status, body)) => refused(status, &body, false),
            Err(text) => Outcome::Unknown(text),
        }
    }

    /// Performs one write.
    pub async fn write(&self, write: &Write) -> Outcome {
        match write {
            Write::Note(note) => self.note(note).await,
            Write::Create { .. } | Write::Patch { .. } | Write::Delete { .. } | Write::Bind { .. } => {
                self.write_alone(write).await
            }
        }
    }

    /// Performs one write in a request of its own.
    pub(crate) async fn write_alone(&self, write: &Write) -> Outcome {
        let target = write.target();
        self.counts.add(write.verb(), target.kind, write.subresource().unwrap_or(""));
        let (method, path, content_type, body) = encode(write);
        let (status, body) = match self.send(method, &path, content_type, body.into()).await {
            Ok(answer) => answer,
            Err(text) => return Outcome::Unknown(text),
        };
        if !status.is_success() {
            return refused(status, &body, matches!(write, Write::Patch { patch: Patch::Json(_), .. }));
        }
        match write {
            Write::Bind { .. } => Outcome::Done(Reply::Nothing),
            Write::Create { .. } | Write::Patch { .. } | Write::Delete { .. } | Write::Note(_) => {
                Outcome::Done(answer(target.kind, write, &body))
            }
        }
    }

    /// Asks for any path: for what is no API object.
    pub async fn get_raw(&self, path: &str) -> Result<(u16, Bytes), String> {
        let (status, body) = self.send(Method::GET, path, "", Bytes::new()).await?;
        Ok((status.as_u16(), body))
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut tries = 1;
        loop {
            if let Some(throttle) = &self.throttle {
                throttle.turn().await;
            }
            let passage = match &self.gate {
                Some(gate) => Some(gate.pass().await),
                None => None,
            };
            let answered = self.send_once(&method, path, content_type, body.clone()).await;
            let answer = match &answered {
                Ok((StatusCode::TOO_MANY_REQUESTS, pause, _)) => Answer::TooBusy(pause.unwrap_or(SHORT_PAUSE_MILLIS)),
                Ok(_) => Answer::Served,
                Err(_) => Answer::Lost,
            };
            if let Some(passage) = passage {
                passage.ended(answer);
            }
            match answer {
                // Too busy means that nothing was begun, so that the same request may be made again.
                Answer::TooBusy(millis) if tries < BUSY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                Answer::TooBusy(_) | Answer::Served | Answer::Lost => {
                    return answered.map(|(status, _, body)| (status, body));
                }
            }
        }
    }

    /// One attempt: the status, for how long a busy server wants to be left alone, and the body.
    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Option<u64>, Bytes), String> {
        let mut request =
            http::Request::builder().method(method.clone()).uri(path).header("accept", "application/json");
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request =
            request.body(Body::from(body.to_vec())).map_err(|error| format!("cannot ask for {path}: {error}"))?;
        let response = self.client.send(request).await.map_err(|error| why(&error))?;
        let (status, pause) = (response.status(), pause(response.headers()));
        let body = response.into_body().collect().await.map_err(|error| why(&error))?.to_bytes();
        Ok((status, pause, body))
    }
}

/// `Retry-After` in milliseconds; the API server writes whole seconds.
fn pause(headers: &http::HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(LONGEST_PAUSE_SECONDS) * 1000)
}

fn encode(write: &Write) -> (Method, String, &'static str, String) {
    let target = write.target();
    let subresource = write.subresource();
    match write {
        Write::Create { body, .. } => {
            let path = format!("{}?{MANAGER}", path::collection(target.kind, &target.key.namespace));
            (Method::POST, path, "application/json", body.to_string())
        }
        Write::Note(note) => {
            let path = format!("{}?{MANAGER}", path::object(target.kind, &target.key, None));
            let patch = note.patch(Some(note.seen.clone()));
            (Method::PATCH, path, patch.content_type(), patch.to_json().to_string())
        }
        Write::Patch { patch, .. } => {
            let path = format!("{}?{MANAGER}", path::object(target.kind, &target.key, subresource));
            (Method::PATCH, path, patch.content_type(), patch.to_json().to_string())
        }
        Write::Delete { only_if, grace_seconds, .. } => {
            let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {} });
            if let Some(uid) = &only_if.uid {
                options["preconditions"]["uid"] = json!(uid);
            }
            if let Some(version) = &only_if.resource_version {
                options["preconditions"]["resourceVersion"] = json!(version);
            }
            if let Some(grace) = grace_seconds {
                options["gracePeriodSeconds"] = json!(grace);
            }
            (Method::DELETE, path::object(target.kind, &target.key, None), "application/json", options.to_string())
        }
        Write::Bind { uid, node, .. } => {
            let key = &target.key;
            let body = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            });
            (Method::POST, path::object(target.kind, key, subresource), "application/json", body.to_string())
        }
    }
}

/// What a successful write left behind. A delete answers with a `Status`, or with the object as it was last; the
/// object is still there only if something holds it.
fn answer(kind: Kind, write: &Write, body: &[u8]) -> Reply {
    let Ok(object) = Object::from_slice(kind, body) else {
        // A `Status` after a delete; or a kind the rules do not keep, such as events.
        return if matches!(write, Write::Delete { .. }) { Reply::Gone } else { Reply::Nothing };
    };
    match write {
        Write::Delete { .. } => {
            let meta = object.meta();
            let held = !meta.finalizers.is_empty() || meta.deletion_grace_period_seconds.unwrap_or(0) > 0;
            if meta.is_deleting() && held { Reply::Object(object) } else { Reply::Gone }
        }
        Write::Create { .. } | Write::Patch { .. } | Write::Note(_) => {
            let meta = object.meta();
            // The patch that took the last finalizer off made the object go.
            let gone = meta.is_deleting()
                && meta.finalizers.is_empty()
                && meta.deletion_grace_period_seconds.unwrap_or(0) == 0;
            if gone { Reply::Gone } else { Reply::Object(object) }
        }
        Write::Bind { .. } => Reply::Nothing,
    }
}

/// Reads an unsuccessful answer. Overload and server errors leave it open whether the write happened.
fn refused(status: StatusCode, body: &[u8], json_patch: bool) -> Outcome {
    let said: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let message = said["message"].as_str().unwrap_or("no reason given").to_string();
    match status {
        StatusCode::NOT_FOUND => Outcome::Refused(Refusal::NotFound),
        StatusCode::CONFLICT if said["reason"] == "AlreadyExists" => Outcome::Refused(Refusal::AlreadyExists),
        StatusCode::CONFLICT => Outcome::Refused(Refusal::Conflict),
        // A failed `test` of a JSON patch: the belief it carried was wrong.
        StatusCode::UNPROCESSABLE_ENTITY if json_patch => Outcome::Refused(Refusal::Conflict),
        StatusCode::TOO_MANY_REQUESTS => Outcome::Unknown(format!("the API server is overloaded: {message}")),
        status if status.is_server_error() => Outcome::Unknown(format!("the API server failed: {message}")),
        _ => Outcome::Refused(Refusal::Denied(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Precondition;

    fn body(value: Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    #[test]
    fn only_certain_answers_are_refusals() {
        let conflict = refused(StatusCode::CONFLICT, &body(json!({ "reason": "Conflict" })), false);
        assert_eq!(conflict, Outcome::Refused(Refusal::Conflict));
        let exists = refused(StatusCode::CONFLICT, &body(json!({ "reason": "AlreadyExists" })), false);
        assert_eq!(exists, Outcome::Refused(Refusal::AlreadyExists));
        for status in [500, 503, 504, 429] {
            let outcome = refused(StatusCode::from_u16(status).unwrap(), b"garbage", false);
            assert!(matches!(outcome, Outcome::Unknown(_)), "{status}");
        }
        assert!(matches!(refused(StatusCode::FORBIDDEN, b"", false), Outcome::Refused(Refusal::Denied(_))));
    }

    #[test]
    fn a_busy_server_is_left_alone_for_as_long_as_it_says_within_reason() {
        let said = |text: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::RETRY_AFTER, text.parse().unwrap());
            pause(&headers)
        };
        assert_eq!(said("2"), Some(2_000));
        assert_eq!(said("86400"), Some(30_000));
        assert_eq!(said("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(pause(&http::HeaderMap::new()), None);
    }

    #[test]
    fn a_failed_test_of_a_json_patch_is_a_conflict_and_an_invalid_object_is_not() {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(refused(status, b"{}", true), Outcome::Refused(Refusal::Conflict));
        assert!(matches!(refused(status, b"{}", false), Outcome::Refused(Refusal::Denied(_))));
    }

    #[test]
    fn a_deleted_object_is_gone_unless_something_holds_it() {
        let target = ObjectRef::cluster(Kind::PersistentVolume, "v");
        let delete = Write::Delete { target, only_if: Precondition::default(), grace_seconds: None };
        let gone = json!({ "kind": "Status", "status": "Success" });
        assert_eq!(answer(Kind::PersistentVolume, &delete, &body(gone)), Reply::Gone);
        let held =
            json!({ "metadata": { "name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
        assert!(matches!(answer(Kind::PersistentVolume, &delete, &body(held)), Reply::Object(_)));
    }

    #[test]
    fn a_delete_carries_its_preconditions() {
        let target = ObjectRef::namespaced(Kind::Pod, "n", "p");
        let only_if = Precondition { uid: Some("u".into()), resource_version: Some("7".into()) };
        let (method, path, _, body) = encode(&Write::Delete { target, only_if, grace_seconds: Some(0) });
        assert_eq!((method, path.as_str()), (Method::DELETE, "/api/v1/namespaces/n/pods/p"));
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["preconditions"], json!({ "uid": "u", "resourceVersion": "7" }));
        assert_eq!(body["gracePeriodSeconds"], json!(0));
    }
}
