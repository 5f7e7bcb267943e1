//! Answers: one object, a list, or a value, in the form the client wants.

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use rules_store::{Resource, Stored};
use serde_json::{Value, json};

use super::negotiate::{Form, Wanted};
use super::options::Options;
use crate::refusal::Refusal;
use crate::view;

/// A list is sent in parts of about this size, so that a long one stops nothing else.
const PART: usize = 64 << 10;

/// A value as an answer.
pub(crate) fn value(code: StatusCode, wanted: Wanted, value: &Value) -> Result<Response<Body>, Refusal> {
    if wanted.yaml {
        let text =
            serde_saphyr::to_string(value).map_err(|_| Refusal::internal("the answer cannot be written as YAML"))?;
        return Ok(raw(code, "application/yaml", Body::from(text)));
    }
    Ok(raw(code, "application/json", Body::from(value.to_string())))
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
    wanted: Wanted,
    options: &Options,
    object: &Arc<Stored>,
    encoded: Option<Bytes>,
) -> Result<Response<Body>, Refusal> {
    match wanted.form {
        Form::Plain => match encoded {
            Some(encoded) if !wanted.yaml => Ok(raw(code, "application/json", Body::from(encoded))),
            Some(_) | None => value(code, wanted, &object.value),
        },
        Form::Table => {
            let revision = object.value["metadata"]["resourceVersion"].clone();
            let mut table = view::table(object.key.resource, std::slice::from_ref(object), &options.include_object)?;
            table["metadata"] = json!({ "resourceVersion": revision });
            value(code, wanted, &table)
        }
        Form::Metadata => value(code, wanted, &view::metadata(object)),
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

/// Many objects.
pub(crate) fn list(
    wanted: Wanted,
    options: &Options,
    resource: &'static Resource,
    head: &ListHead,
    objects: Vec<Arc<Stored>>,
) -> Result<Response<Body>, Refusal> {
    match wanted.form {
        Form::Table => {
            let mut table = view::table(resource, &objects, &options.include_object)?;
            table["metadata"] = head.metadata();
            value(StatusCode::OK, wanted, &table)
        }
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(view::metadata).collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": head.metadata(), "items": items,
            });
            value(StatusCode::OK, wanted, &list)
        }
        Form::Plain if wanted.yaml => {
            let items: Vec<&Value> = objects.iter().map(|o| &o.value).collect();
            let list = json!({
                "kind": resource.list_kind(), "apiVersion": resource.api_version(),
                "metadata": head.metadata(), "items": items,
            });
            value(StatusCode::OK, wanted, &list)
        }
        Form::Plain => Ok(raw(StatusCode::OK, "application/json", plain_list(resource, head, objects))),
    }
}

fn plain_list(resource: &'static Resource, head: &ListHead, objects: Vec<Arc<Stored>>) -> Body {
    let start = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
        resource.list_kind(),
        resource.api_version(),
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

/// Adds what the sender should know, as `kubectl` prints it.
pub(crate) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings.iter().take(32) {
        let mut text: String =
            warning.chars().take(256).map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' }).collect();
        text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
