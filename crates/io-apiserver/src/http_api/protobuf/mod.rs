//! Objects in protobuf, which typed clients of Kubernetes send and prefer to read.
//!
//! Read strictly: a field this server has no name for is refused, not dropped, because nobody would notice. What is read
//! becomes the JSON of the same object, so that everything behind this file knows one form only.

use rules_store::{Kind, schema};
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::messages::{STATUS, request};
use wire::{Message, Reader, encode_as, envelope};

use crate::refusal::Refusal;

/// The media type.
pub(crate) use wire::TYPE;

/// The media type of a watch.
pub(crate) const WATCH_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Reads a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, Refusal> {
    let envelope = envelope(body).map_err(malformed)?;
    let Some(message) = message(envelope.api_version, envelope.kind) else {
        let name: String = envelope.kind.chars().take(63).filter(|c| c.is_ascii_alphanumeric()).collect();
        let told = format!("objects of kind \"{name}\" cannot be read as protobuf here; send application/json");
        return Err(Refusal::unsupported_media(told));
    };
    let mut object: Map<String, Value> = Map::deserialize(Reader::request(message, envelope.raw)).map_err(malformed)?;
    object.insert("apiVersion".to_owned(), envelope.api_version.into());
    object.insert("kind".to_owned(), envelope.kind.into());
    Ok(Value::Object(object))
}

/// Writes an object, or whatever else says its version and kind. `None` if that has no protobuf form, or if it holds what
/// protobuf cannot say: then it goes as JSON.
pub(crate) fn encode(value: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = (value["apiVersion"].as_str()?, value["kind"].as_str()?);
    encode_as(message(api_version, kind)?, api_version, kind, value)
}

/// The message of a stored kind, or of what is only sent.
fn message(api_version: &str, kind: &str) -> Option<&'static Message> {
    match Kind::named(api_version, kind) {
        Some(kind) if kind.has_protobuf() => Some(schema(kind)),
        Some(_json_only) => None,
        None if (api_version, kind) == ("v1", "Status") => Some(&STATUS),
        None => request(api_version, kind),
    }
}

fn malformed(what: wire::Error) -> Refusal {
    Refusal::bad_request(format!("the request body is not a Kubernetes object in protobuf: {what}"))
}

#[cfg(test)]
mod tests;
