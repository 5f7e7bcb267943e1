//! Objects in the binary form of Kubernetes, which kubectl sends for the kinds it knows by type.
//!
//! Read strictly: a field this server has no name for is refused, not dropped, because nobody would notice. What is read
//! becomes the JSON of the same object, so that everything behind this file knows one form only.

use serde::Deserialize;
use serde_json::{Map, Value};
use wire::{Reader, envelope, requests};

use crate::refusal::Refusal;

/// The media type.
pub(crate) use wire::TYPE;

/// Reads a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, Refusal> {
    let envelope = envelope(body).map_err(malformed)?;
    let Some(message) = requests::find(envelope.api_version, envelope.kind) else {
        let name: String = envelope.kind.chars().take(63).filter(|c| c.is_ascii_alphanumeric()).collect();
        let told = format!("objects of kind \"{name}\" cannot be read as protobuf here; send application/json");
        return Err(Refusal::unsupported_media(told));
    };
    let mut object: Map<String, Value> = Map::deserialize(Reader::request(message, envelope.raw)).map_err(malformed)?;
    tidy(&mut object);
    object.insert("apiVersion".to_owned(), envelope.api_version.into());
    object.insert("kind".to_owned(), envelope.kind.into());
    Ok(Value::Object(object))
}

/// The senders write out parts in which nothing is set; in JSON they are left out.
fn tidy(object: &mut Map<String, Value>) {
    object.retain(|_, value| match value {
        Value::Object(part) => {
            tidy(part);
            !part.is_empty()
        }
        Value::Array(parts) => {
            parts.iter_mut().filter_map(Value::as_object_mut).for_each(tidy);
            true
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
}

fn malformed(what: wire::Error) -> Refusal {
    Refusal::bad_request(format!("the request body is not a Kubernetes object in protobuf: {what}"))
}

#[cfg(test)]
mod tests;
