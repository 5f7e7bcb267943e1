//! Objects in the binary form of Kubernetes, which kubectl sends for the kinds it knows by type.
//!
//! Read strictly: a field this server has no name for is refused, not dropped, because nobody would notice. What is read
//! becomes the JSON of the same object, so that everything behind this file knows one form only.

mod kinds;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde_json::{Map, Value};

use crate::refusal::Refusal;
use kinds::{Form, Message};

/// The media type.
pub(crate) const TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The envelope: what is in it, and the object's own bytes.
#[derive(Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
}

/// Reads a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, Refusal> {
    let content = body.strip_prefix(MAGIC).ok_or_else(|| malformed("it does not begin with k8s and a zero byte"))?;
    let envelope = envelope(content)?;
    let Some(message) = kinds::find(envelope.api_version, envelope.kind) else {
        let name: String = envelope.kind.chars().take(63).filter(|c| c.is_ascii_alphanumeric()).collect();
        let told = format!("objects of kind \"{name}\" cannot be read as protobuf here; send application/json");
        return Err(Refusal::unsupported_media(told));
    };
    let mut value = read(message, envelope.raw)?;
    value.insert("apiVersion".to_owned(), envelope.api_version.into());
    value.insert("kind".to_owned(), envelope.kind.into());
    Ok(Value::Object(value))
}

fn envelope(mut content: &[u8]) -> Result<Envelope<'_>, Refusal> {
    const PLACE: &str = "the envelope";
    let mut envelope = Envelope::default();
    while let Some((number, field)) = next(&mut content, PLACE)? {
        match (number, field) {
            (1, Wire::Bytes(mut of)) => {
                while let Some((number, field)) = next(&mut of, PLACE)? {
                    match (number, field) {
                        (1, Wire::Bytes(text)) => envelope.api_version = utf8(text, PLACE)?,
                        (2, Wire::Bytes(text)) => envelope.kind = utf8(text, PLACE)?,
                        (number, _) => return Err(unknown(PLACE, number)),
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            // An encoding and a type of its own; both are empty when the content is what the header says.
            (3, Wire::Bytes(b"")) | (4, Wire::Bytes(b"")) => {}
            (3 | 4, _) => return Err(malformed("its content has an encoding of its own")),
            (number, _) => return Err(unknown(PLACE, number)),
        }
    }
    Ok(envelope)
}

/// One field as it stands in the bytes.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The next field and its number; nothing at the end.
fn next<'a>(bytes: &mut &'a [u8], place: &str) -> Result<Option<(u32, Wire<'a>)>, Refusal> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let spoilt = |_| malformed(&format!("{place} ends in the middle of a field"));
    let (number, wire) = decode_key(bytes).map_err(spoilt)?;
    match wire {
        WireType::Varint => Ok(Some((number, Wire::Number(decode_varint(bytes).map_err(spoilt)?)))),
        WireType::LengthDelimited => {
            let length = decode_varint(bytes).map_err(spoilt)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
            let length = length.ok_or_else(|| malformed(&format!("{place} is longer than what holds it")))?;
            let (inner, rest) = bytes.split_at(length);
            *bytes = rest;
            Ok(Some((number, Wire::Bytes(inner))))
        }
        // No object of the kinds read here has any of these.
        WireType::SixtyFourBit | WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
            Err(malformed(&format!("{place} has a field of a type that no field has")))
        }
    }
}

/// Reads a message. It goes no deeper than the tables of [`kinds`] do, none of which holds itself.
fn read(message: &Message, mut bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let mut object = Map::new();
    while let Some((number, wire)) = next(&mut bytes, message.name)? {
        let field = message.fields.iter().find(|field| field.0 == number);
        let Some((_, name, form)) = field else { return Err(unknown(message.name, number)) };
        let place = || format!("{}.{name}", message.name);
        match (form, wire) {
            (Form::Unread, Wire::Bytes(_)) => {}
            (Form::Texts, Wire::Bytes(text)) => push(&mut object, name, utf8(text, &place())?.into()),
            (Form::Parts(of), Wire::Bytes(part)) => push(&mut object, name, Value::Object(read(of, part)?)),
            (Form::TextMap, Wire::Bytes(entry)) => {
                let (key, text) = self::entry(entry, &place())?;
                put(&mut object, name, key, utf8(text, &place())?.into());
            }
            (Form::BytesMap, Wire::Bytes(entry)) => {
                let (key, bytes) = self::entry(entry, &place())?;
                put(&mut object, name, key, STANDARD.encode(bytes).into());
            }
            (form, wire) => {
                let value = single(form, wire, &place())?;
                if object.contains_key(*name) {
                    return Err(malformed(&format!("{} stands there twice", place())));
                }
                object.insert((*name).to_owned(), value);
            }
        }
    }
    // The senders write out what is not set; in JSON it is left out.
    object.retain(|_, value| !matches!(value, Value::Null) && value != "" && !is_empty(value));
    Ok(object)
}

/// A field that is there once.
fn single(form: &Form, wire: Wire<'_>, place: &str) -> Result<Value, Refusal> {
    match (form, wire) {
        (Form::Text, Wire::Bytes(text)) => Ok(utf8(text, place)?.into()),
        (Form::Truth, Wire::Number(number)) if number <= 1 => Ok((number == 1).into()),
        // Signed numbers are written as their two's complement.
        (Form::Number, Wire::Number(number)) => Ok(number.cast_signed().into()),
        (Form::Time, Wire::Bytes(time)) => self::time(time, place),
        (Form::Part(of), Wire::Bytes(part)) => Ok(Value::Object(read(of, part)?)),
        (
            Form::Text
            | Form::Truth
            | Form::Number
            | Form::Time
            | Form::Part(_)
            | Form::Unread
            | Form::Texts
            | Form::Parts(_)
            | Form::TextMap
            | Form::BytesMap,
            Wire::Number(_) | Wire::Bytes(_),
        ) => Err(malformed(&format!("{place} is of another type"))),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) {
    if let Value::Array(list) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
        list.push(value);
    }
}

fn put(object: &mut Map<String, Value>, name: &str, key: &str, value: Value) {
    if let Value::Object(map) = object.entry(name).or_insert_with(|| Value::Object(Map::new())) {
        map.insert(key.to_owned(), value);
    }
}

/// The key and the value of a map's entry; either may be left out when it is empty.
fn entry<'a>(mut bytes: &'a [u8], place: &str) -> Result<(&'a str, &'a [u8]), Refusal> {
    let (mut key, mut value) = ("", &b""[..]);
    while let Some((number, wire)) = next(&mut bytes, place)? {
        match (number, wire) {
            (1, Wire::Bytes(text)) => key = utf8(text, place)?,
            (2, Wire::Bytes(bytes)) => value = bytes,
            (number, _) => return Err(unknown(place, number)),
        }
    }
    Ok((key, value))
}

/// Seconds after 1970 and nanoseconds; nothing at all is no time.
fn time(mut bytes: &[u8], place: &str) -> Result<Value, Refusal> {
    let (mut seconds, mut nanos) = (0, 0);
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    while let Some((number, wire)) = next(&mut bytes, place)? {
        match (number, wire) {
            (1, Wire::Number(number)) => seconds = number,
            (2, Wire::Number(number)) => nanos = number,
            (number, _) => return Err(unknown(place, number)),
        }
    }
    // The last second of the year 9999: what is later, or before 1970, cannot be written.
    if seconds > 253_402_300_799 || nanos > 999_999_999 {
        return Err(malformed(&format!("{place} is no time")));
    }
    Ok(api::Time::from_unix_millis(seconds * 1000).0.into())
}

fn utf8<'a>(bytes: &'a [u8], place: &str) -> Result<&'a str, Refusal> {
    std::str::from_utf8(bytes).map_err(|_| malformed(&format!("{place} is not UTF-8 text")))
}

// Only names of this file are told, never a value: the body may be a secret.
fn malformed(what: &str) -> Refusal {
    Refusal::bad_request(format!("the request body is not a Kubernetes object in protobuf: {what}"))
}

fn unknown(place: &str, number: u32) -> Refusal {
    malformed(&format!("{place} has no field with the number {number}"))
}

#[cfg(test)]
mod tests;
