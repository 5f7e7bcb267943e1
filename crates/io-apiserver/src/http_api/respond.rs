//! Answers: one object, a list, or a value, in the form the client wants.

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use rules_store::{Kind, Stored, schema};
use serde_json::{Value, json};

use super::negotiate::{self, Accepted, Encoding, Form};
use super::options::Options;
use super::protobuf;
use crate::refusal::Refusal;
use crate::view;

/// A list is sent in parts of about this size, so that a long one stops nothing else.
const PART: usize = 64 << 10;

/// A value as an answer.
pub(crate) fn value(code: StatusCode, accepted: Accepted, value: &Value) -> Result<Response<Body>, Refusal> {
    match accepted.encoding {
        Encoding::Yaml => {
            let text = serde_saphyr::to_string(value)
                .map_err(|_| Refusal::internal("the answer cannot be written as YAML"))?;
            Ok(raw(code, "application/yaml", Body::from(text)))
        }
        Encoding::Protobuf => Ok(binary(code, value).unwrap_or_else(|| json_text(code, value))),
        Encoding::Json => Ok(json_text(code, value)),
    }
}

fn json_text(code: StatusCode, value: &Value) -> Response<Body> {
    raw(code, "application/json", Body::from(value.to_string()))
}

/// The value as protobuf, if that can say it.
fn binary(code: StatusCode, value: &Value) -> Option<Response<Body>> {
    protobuf::encode(value).map(|bytes| raw(code, protobuf::TYPE, Body::from(bytes)))
}

/// A refusal, in the encoding the client prefers.
pub(crate) fn refusal(headers: &HeaderMap, refusal: &Refusal) -> Response<Body> {
    let mut response = refusal.clone().into_response();
    let prefers_protobuf = negotiate::accepted(headers, true).is_ok_and(|a| a.encoding == Encoding::Protobuf);
    if prefers_protobuf && let Some(bytes) = protobuf::encode(refusal.status()) {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(protobuf::TYPE));
        *response.body_mut() = Body::from(bytes);
    }
    response
}

/// Bytes as an answer.
pub(crate) fn raw(code: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    // What is read here may be secret and is always newer tomorrow.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// One object. `encoded` is used where the client wants the object as it is.
pub(crate) fn object(
    code: StatusCode,
    accepted: Accepted,
    options: &Options,
    object: &Arc<Stored>,
    encoded: Option<Bytes>,
) -> Result<Response<Body>, Refusal> {
    match accepted.form {
        Form::Plain => match encoded {
            Some(encoded) if accepted.encoding == Encoding::Json => {
                Ok(raw(code, "application/json", Body::from(encoded)))
            }
            Some(_) | None => value(code, accepted, &object.value),
        },
        Form::Table => {
            let revision = object.value["metadata"]["resourceVersion"].clone();
            let mut table = view::table(object.key.kind, std::slice::from_ref(object), &options.include_object)?;
            table["metadata"] = json!({ "resourceVersion": revision });
            value(code, accepted, &table)
        }
        Form::Metadata => value(code, accepted, &view::metadata(object)),
    }
}

/// What a list says besides its items.
pub(crate) struct ListHead {
    pub revision: u64,
    pub continue_token: String,
    pub remaining: usize,
}

impl ListHead {
    fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if !self.continue_token.is_empty() {
            metadata["continue"] = json!(self.continue_token);
            metadata["remainingItemCount"] = json!(self.remaining);
        }
        metadata
    }
}

/// A list in the form the caller asked for.
pub(crate) fn list(
    accepted: Accepted,
    options: &Options,
    kind: Kind,
    head: &ListHead,
    objects: Vec<Arc<Stored>>,
) -> Result<Response<Body>, Refusal> {
    match accepted.form {
        Form::Table => {
            let mut table = view::table(kind, &objects, &options.include_object)?;
            table["metadata"] = head.metadata();
            value(StatusCode::OK, accepted, &table)
        }
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(view::metadata).collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": head.metadata(), "items": items,
            });
            value(StatusCode::OK, accepted, &list)
        }
        Form::Plain if accepted.encoding == Encoding::Yaml => {
            let items: Vec<&Value> = objects.iter().map(|o| &o.value).collect();
            let list = json!({
                "kind": kind.list_kind(), "apiVersion": kind.api_version(),
                "metadata": head.metadata(), "items": items,
            });
            value(StatusCode::OK, accepted, &list)
        }
        Form::Plain if accepted.encoding == Encoding::Protobuf => {
            let items = objects.iter().map(|object| &object.value);
            match wire::encode_list(schema(kind), kind, &head.metadata(), items) {
                Some(bytes) => Ok(raw(StatusCode::OK, protobuf::TYPE, Body::from(bytes))),
                None => Ok(raw(StatusCode::OK, "application/json", plain_list(kind, head, objects))),
            }
        }
        Form::Plain => Ok(raw(StatusCode::OK, "application/json", plain_list(kind, head, objects))),
    }
}

fn plain_list(kind: Kind, head: &ListHead, objects: Vec<Arc<Stored>>) -> Body {
    let start = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
        kind.list_kind(),
        kind.api_version(),
        head.metadata()
    );
    let mut encoder = ListEncoder { objects: objects.into_iter(), first: true };
    let (first, done) = encoder.part(BytesMut::from(start.as_bytes()));
    if done {
        return Body::from(first);
    }
    let parts = stream::unfold((Some(first), Some(encoder)), |(ready, encoder)| async move {
        let mut encoder = encoder?;
        if let Some(ready) = ready {
            return Some((Ok::<_, std::convert::Infallible>(ready), (None, Some(encoder))));
        }
        tokio::task::yield_now().await;
        let (part, done) = encoder.part(BytesMut::new());
        Some((Ok(part), (None, if done { None } else { Some(encoder) })))
    });
    Body::from_stream(parts)
}

struct ListEncoder {
    objects: std::vec::IntoIter<Arc<Stored>>,
    first: bool,
}

impl ListEncoder {
    /// The next part, and whether it is the last.
    fn part(&mut self, mut buffer: BytesMut) -> (Bytes, bool) {
        use bytes::BufMut;
        while buffer.len() < PART {
            let Some(object) = self.objects.next() else {
                buffer.put_slice(b"]}\n");
                return (buffer.freeze(), true);
            };
            if !std::mem::take(&mut self.first) {
                buffer.put_u8(b',');
            }
            // Values have text keys only and the buffer grows, so this cannot fail.
            let _ = serde_json::to_writer((&mut buffer).writer(), &object.value);
        }
        (buffer.freeze(), false)
    }
}

/// The path of a field and a sentence.
const LONGEST_WARNING: usize = 512;

/// Adds what the sender should know, as `kubectl` prints it.
pub(crate) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings.iter().take(32) {
        let mut text: String = warning
            .chars()
            .take(LONGEST_WARNING)
            .map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' })
            .collect();
        text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
