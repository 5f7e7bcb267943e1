//! One request, one outcome.

use std::time::Duration;

use api::{Kind, ObjectRef, Patch, Value, Write};
use bytes::Bytes;
use control::{Answer as Pacing, Outcome, Refusal, Reply};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::json;

use crate::answer::{Answer, Form, accept};
use crate::failure::why;
use crate::{Kube, path};

/// A field manager for what we write, so that users see who it was. Fields nobody knows are not looked for: what we write is
/// tested against real servers, and the search costs the server time with every write.
const MANAGER: &str = "fieldManager=longshore&fieldValidation=Ignore";
const JSON: &str = "application/json";
/// How often a request is made while the server says that it is too busy.
const BUSY_TRIES: usize = 5;
/// A server ends what takes it longer than a minute. What is not there then has been lost behind a load balancer that still
/// answers for a dead server, which no question to the connection tells.
const LATEST: Duration = Duration::from_secs(90);
/// For how long a busy server is left alone that does not say, and at most.
const SHORT_PAUSE_MILLIS: u64 = 1_000;
const LONGEST_PAUSE_SECONDS: u64 = 30;

impl Kube {
    /// Reads one object, past every cache.
    pub async fn read(&self, target: &ObjectRef) -> Outcome {
        self.counts.add("get", target.kind, "");
        let path = path::object(target.kind, &target.key, None);
        match self.send(Method::GET, &path, Some(target.kind), "", Bytes::new()).await {
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => Outcome::Done(Reply::Gone),
            Ok(answer) if answer.status.is_success() => match answer.object(target.kind) {
                Ok(object) => Outcome::Done(Reply::Object(object)),
                Err(error) => Outcome::Unknown(format!("cannot understand {target}: {error}")),
            },
            Ok(answer) => refused(&answer, false),
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
        let (method, path, content) = encode(write);
        let answered = match content {
            Content::Object(object) => self.send_object(method, &path, target.kind, object).await,
            Content::Json(content_type, body) => {
                self.send(method, &path, Some(target.kind), content_type, body.to_string().into()).await
            }
        };
        let answered = match answered {
            Ok(answer) => answer,
            Err(text) => return Outcome::Unknown(text),
        };
        if !answered.status.is_success() {
            return refused(&answered, matches!(write, Write::Patch { patch: Patch::Json(_), .. }));
        }
        match write {
            Write::Bind { .. } => Outcome::Done(Reply::Nothing),
            Write::Create { .. } | Write::Patch { .. } | Write::Delete { .. } | Write::Note(_) => {
                Outcome::Done(reply(target.kind, write, &answered))
            }
        }
    }

    /// Asks for any path: for what is no API object.
    pub async fn get_raw(&self, path: &str) -> Result<(u16, Bytes), String> {
        let answer = self.send(Method::GET, path, None, "", Bytes::new()).await?;
        Ok((answer.status.as_u16(), answer.body))
    }

    /// Sends a whole object, in the binary form if it can be written so and the server has not turned that down.
    pub(crate) async fn send_object(
        &self,
        method: Method,
        path: &str,
        kind: Kind,
        object: &Value,
    ) -> Result<Answer, String> {
        if self.counts.binary_is_taken()
            && let Some(body) = wire::encode(kind, object)
        {
            let answer = self.send(method.clone(), path, Some(kind), wire::TYPE, body.into()).await?;
            if answer.status != StatusCode::UNSUPPORTED_MEDIA_TYPE {
                return Ok(answer);
            }
            // Not read means that nothing was begun.
            self.counts.binary_turned_down();
        }
        self.send(method, path, Some(kind), JSON, object.to_string().into()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        kind: Option<Kind>,
        content_type: &str,
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut tries = 1;
        loop {
            if let Some(throttle) = &self.throttle {
                throttle.turn().await;
            }
            let passage = match &self.gate {
                Some(gate) => Some(gate.pass().await),
                None => None,
            };
            let answered = self.send_once(&method, path, kind, content_type, body.clone()).await;
            let pacing = match &answered {
                Ok((answer, pause)) if answer.status == StatusCode::TOO_MANY_REQUESTS => {
                    Pacing::TooBusy(pause.unwrap_or(SHORT_PAUSE_MILLIS))
                }
                Ok(_) => Pacing::Served,
                Err(_) => Pacing::Lost,
            };
            if let Some(passage) = passage {
                passage.ended(pacing);
            }
            match pacing {
                // Too busy means that nothing was begun, so that the same request may be made again.
                Pacing::TooBusy(millis) if tries < BUSY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                Pacing::TooBusy(_) | Pacing::Served | Pacing::Lost => return answered.map(|(answer, _)| answer),
            }
        }
    }

    /// One attempt: the answer, and for how long a busy server wants to be left alone.
    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        kind: Option<Kind>,
        content_type: &str,
        body: Bytes,
    ) -> Result<(Answer, Option<u64>), String> {
        let mut request = http::Request::builder().method(method.clone()).uri(path).header("accept", accept(kind));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Body::from(body)).map_err(|error| format!("cannot ask for {path}: {error}"))?;
        let asking = async {
            let response = self.client.send(request).await.map_err(|error| why(&error))?;
            let (status, form, pause) = (response.status(), Form::of(response.headers()), pause(response.headers()));
            let body = response.into_body().collect().await.map_err(|error| why(&error))?.to_bytes();
            Ok((Answer { status, form, body }, pause))
        };
        let late = |_| Err(format!("the API server did not answer within {} s", LATEST.as_secs()));
        tokio::time::timeout(LATEST, asking).await.unwrap_or_else(late)
    }
}

/// `Retry-After` in milliseconds; the API server writes whole seconds.
fn pause(headers: &http::HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(LONGEST_PAUSE_SECONDS) * 1000)
}

/// What a request carries.
enum Content<'a> {
    /// A whole object of the kind that is written.
    Object(&'a Value),
    /// Anything else, under this type.
    Json(&'static str, Value),
}

fn encode(write: &Write) -> (Method, String, Content<'_>) {
    let target = write.target();
    let subresource = write.subresource();
    match write {
        Write::Create { body, .. } => {
            let path = format!("{}?{MANAGER}", path::collection(target.kind, &target.key.namespace));
            (Method::POST, path, Content::Object(body))
        }
        Write::Note(note) => {
            let path = format!("{}?{MANAGER}", path::object(target.kind, &target.key, None));
            let patch = note.patch(Some(note.seen.clone()));
            (Method::PATCH, path, Content::Json(patch.content_type(), patch.to_json()))
        }
        Write::Patch { patch, .. } => {
            let path = format!("{}?{MANAGER}", path::object(target.kind, &target.key, subresource));
            (Method::PATCH, path, Content::Json(patch.content_type(), patch.to_json()))
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
            (Method::DELETE, path::object(target.kind, &target.key, None), Content::Json(JSON, options))
        }
        Write::Bind { uid, node, .. } => {
            let key = &target.key;
            let body = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            });
            (Method::POST, path::object(target.kind, key, subresource), Content::Json(JSON, body))
        }
    }
}

/// What a successful write left behind. A delete answers with a `Status`, or with the object as it was last; the
/// object is still there only if something holds it.
fn reply(kind: Kind, write: &Write, answer: &Answer) -> Reply {
    let Ok(object) = answer.object(kind) else {
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
fn refused(answer: &Answer, json_patch: bool) -> Outcome {
    let said = answer.said();
    let message = said.message().unwrap_or("no reason given").to_string();
    match answer.status {
        StatusCode::NOT_FOUND => Outcome::Refused(Refusal::NotFound),
        StatusCode::CONFLICT if said.reason == "AlreadyExists" => Outcome::Refused(Refusal::AlreadyExists),
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

    fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
        Answer { status: StatusCode::from_u16(status).unwrap(), form: Form::Json, body: body.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_leaves_it_open_what_happened() {
        let nobody = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
        });
        let asked = Kube::in_process(nobody).read(&ObjectRef::cluster(Kind::PersistentVolume, "v")).await;
        assert_eq!(asked, Outcome::Unknown("the API server did not answer within 90 s".into()));
    }

    #[test]
    fn only_certain_answers_are_refusals() {
        let conflict = refused(&answer(409, json!({ "reason": "Conflict" }).to_string()), false);
        assert_eq!(conflict, Outcome::Refused(Refusal::Conflict));
        let exists = refused(&answer(409, json!({ "reason": "AlreadyExists" }).to_string()), false);
        assert_eq!(exists, Outcome::Refused(Refusal::AlreadyExists));
        for status in [500, 503, 504, 429] {
            let outcome = refused(&answer(status, "garbage"), false);
            assert!(matches!(outcome, Outcome::Unknown(_)), "{status}");
        }
        assert!(matches!(refused(&answer(403, ""), false), Outcome::Refused(Refusal::Denied(_))));
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
        assert_eq!(refused(&answer(422, "{}"), true), Outcome::Refused(Refusal::Conflict));
        assert!(matches!(refused(&answer(422, "{}"), false), Outcome::Refused(Refusal::Denied(_))));
    }

    #[test]
    fn a_deleted_object_is_gone_unless_something_holds_it() {
        let target = ObjectRef::cluster(Kind::PersistentVolume, "v");
        let delete = Write::Delete { target, only_if: Precondition::default(), grace_seconds: None };
        let gone = json!({ "kind": "Status", "status": "Success" });
        let answered = |json: Value| reply(Kind::PersistentVolume, &delete, &answer(200, json.to_string()));
        assert_eq!(answered(gone), Reply::Gone);
        let held =
            json!({ "metadata": { "name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
        assert!(matches!(answered(held), Reply::Object(_)));
    }

    #[test]
    fn a_delete_carries_its_preconditions() {
        let target = ObjectRef::namespaced(Kind::Pod, "n", "p");
        let only_if = Precondition { uid: Some("u".into()), resource_version: Some("7".into()) };
        let delete = Write::Delete { target, only_if, grace_seconds: Some(0) };
        let (method, path, Content::Json(_, body)) = encode(&delete) else { unreachable!("a delete carries options") };
        assert_eq!((method, path.as_str()), (Method::DELETE, "/api/v1/namespaces/n/pods/p"));
        assert_eq!(body["preconditions"], json!({ "uid": "u", "resourceVersion": "7" }));
        assert_eq!(body["gracePeriodSeconds"], json!(0));
    }
}
