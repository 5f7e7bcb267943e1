//! Sends one request and reads its answer.

use std::time::Duration;

use api::{Kind, ObjectRef, Patch, PatchBody, Value, Write};
use bytes::Bytes;
use control::{Outcome, Reply};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::aimd::Feedback;
use crate::encode::{Content, encode};
use crate::error::{RequestError, TransportError};
use crate::negotiation::{Answer, JSON, MediaType, accept};
use crate::outcome::{refused, reply};
use crate::{Kube, path};

/// How often a request is sent while the server answers 429 (Too Many Requests).
const BUSY_TRIES: usize = 5;
/// A server ends a request that takes it longer than a minute. An answer that has not come by then was lost behind a load
/// balancer that still answers for a dead server, which no keep-alive ping reveals.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The pause after a 429 without `Retry-After`, and the longest pause.
const SHORT_PAUSE_MILLIS: u64 = 1_000;
const LONGEST_PAUSE_SECONDS: u64 = 30;

impl Kube {
    /// Reads one object from the server, past every cache.
    pub async fn read(&self, target: &ObjectRef) -> Outcome {
        self.counts.add("get", target.kind, "");
        let path = path::object(target.kind, &target.key, None);
        match self.send(Method::GET, &path, Some(target.kind), "", Bytes::new()).await {
            Ok(answer) if answer.code == StatusCode::NOT_FOUND => Outcome::Done(Reply::Gone),
            Ok(answer) if answer.code.is_success() => match answer.object(target.kind) {
                Ok(object) => Outcome::Done(Reply::Object(object)),
                Err(error) => Outcome::Unknown(format!("cannot understand {target}: {error}")),
            },
            Ok(answer) => refused(&answer, false),
            Err(error) => Outcome::Unknown(error.to_string()),
        }
    }

    /// Asks for a token of a service account. The answer's words are never repeated: they hold the token.
    pub async fn token(&self, wish: &control::TokenWish) -> Outcome {
        self.counts.add("create", Kind::ServiceAccount, "token");
        let key = api::ObjectKey::new(wish.pod.namespace.clone(), wish.account.clone());
        let path = path::object(Kind::ServiceAccount, &key, Some("token"));
        let answer = match self.send(Method::POST, &path, None, JSON, wish.to_json().to_string().into()).await {
            Ok(answer) if answer.code.is_success() => answer,
            // What is missing is the account or the pod; nobody's watch will say which.
            Ok(answer) if answer.code == StatusCode::NOT_FOUND => {
                let message = answer.status().message().unwrap_or("not found").to_string();
                return Outcome::Refused(control::Refusal::Denied(message));
            }
            Ok(answer) => return refused(&answer, false),
            Err(error) => return Outcome::Unknown(error.to_string()),
        };
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let [token, expires] =
            [control::TokenWish::TOKEN, control::TokenWish::EXPIRES].map(|key| told["status"][key].as_str());
        match (token, expires) {
            (Some(token), Some(expires)) => {
                let texts = [(control::TokenWish::TOKEN, token), (control::TokenWish::EXPIRES, expires)];
                Outcome::Done(Reply::Object(api::Object::Secret(std::sync::Arc::new(api::Secret::of_texts(&texts)))))
            }
            _ => Outcome::Unknown("the API server answered no token that can be understood".into()),
        }
    }

    /// Performs one write.
    pub async fn write(&self, write: &Write) -> Outcome {
        match write {
            Write::Note(note) => self.patch_annotations(note).await,
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
        let answer = match content {
            Content::Object(object) => self.send_object(method, &path, target.kind, &object).await,
            Content::Json(content_type, body) => {
                self.send(method, &path, Some(target.kind), content_type, body.to_string().into()).await
            }
        };
        match answer {
            Ok(answer) if answer.code.is_success() => Outcome::Done(reply(target.kind, write, &answer)),
            Ok(answer) => {
                refused(&answer, matches!(write, Write::Patch { patch: Patch { body: PatchBody::Json(_), .. }, .. }))
            }
            Err(error) => Outcome::Unknown(error.to_string()),
        }
    }

    /// Gets any path, for what is not an API object: the HTTP status and the body.
    pub async fn get_raw(&self, path: &str) -> Result<(u16, Bytes), RequestError> {
        let answer = self.send(Method::GET, path, None, "", Bytes::new()).await?;
        Ok((answer.code.as_u16(), answer.body))
    }

    /// Sends a whole object: as protobuf if `wire` can encode it and the server has not rejected protobuf.
    pub(crate) async fn send_object(
        &self,
        method: Method,
        path: &str,
        kind: Kind,
        object: &Value,
    ) -> Result<Answer, RequestError> {
        if self.negotiated.may_send_protobuf()
            && let Some(body) = wire::encode(kind, object)
        {
            let answer = self.send(method.clone(), path, Some(kind), wire::TYPE, body.into()).await?;
            if answer.code != StatusCode::UNSUPPORTED_MEDIA_TYPE {
                return Ok(answer);
            }
            // The server could not read the request, so it has not begun with it.
            self.negotiated.reject_protobuf();
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
    ) -> Result<Answer, RequestError> {
        let mut tries = 1;
        loop {
            if let Some(throttle) = &self.throttle {
                throttle.wait().await;
            }
            let permit = match &self.limit {
                Some(limit) => Some(limit.acquire().await),
                None => None,
            };
            let answered = self.send_once(&method, path, kind, content_type, body.clone()).await;
            let feedback = match &answered {
                Ok((answer, pause)) if answer.code == StatusCode::TOO_MANY_REQUESTS => {
                    Feedback::TooManyRequests(pause.unwrap_or(SHORT_PAUSE_MILLIS))
                }
                Ok(_) => Feedback::Answered,
                Err(_) => Feedback::NoAnswer,
            };
            if let Some(permit) = permit {
                permit.end(feedback);
            }
            match feedback {
                // The server begins no request that it answers with 429, so the same request may be sent again.
                Feedback::TooManyRequests(millis) if tries < BUSY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                Feedback::TooManyRequests(_) | Feedback::Answered | Feedback::NoAnswer => {
                    return answered.map(|(answer, _)| answer);
                }
            }
        }
    }

    /// Sends a request once: the answer, and the pause that a busy server asks for.
    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        kind: Option<Kind>,
        content_type: &str,
        body: Bytes,
    ) -> Result<(Answer, Option<u64>), RequestError> {
        let mut request = http::Request::builder().method(method.clone()).uri(path).header("accept", accept(kind));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Body::from(body)).map_err(|error| RequestError::invalid(path, &error))?;
        let answer = async {
            let response = self.client.send(request).await.map_err(|error| RequestError::no_answer(&error))?;
            let (code, pause) = (response.status(), retry_after(response.headers()));
            let media_type = MediaType::of(response.headers());
            let body = response.into_body().collect().await;
            let body = body.map_err(|error| RequestError::broken_answer(&error))?.to_bytes();
            Ok((Answer { code, media_type, body }, pause))
        };
        let late = |_| Err(RequestError::Unknown(TransportError::Timeout(TIMEOUT)));
        tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(late)
    }
}

/// `Retry-After` in milliseconds; the API server writes whole seconds.
fn retry_after(headers: &http::HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(LONGEST_PAUSE_SECONDS) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_leaves_it_open_what_happened() {
        let nobody = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
        });
        let asked = Kube::in_process(nobody).read(&ObjectRef::cluster(Kind::PersistentVolume, "v")).await;
        assert_eq!(asked, Outcome::Unknown("the API server did not answer within 90 s".into()));
    }

    #[test]
    fn a_busy_server_is_left_alone_for_as_long_as_it_says_within_reason() {
        let said = |text: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(said("2"), Some(2_000));
        assert_eq!(said("86400"), Some(30_000));
        assert_eq!(said("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(retry_after(&http::HeaderMap::new()), None);
    }
}
