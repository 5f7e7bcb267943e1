//! An object's JSON to bytes.

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Map;

use crate::messages::{LIST_META, message};
use crate::time::{self, Precision};
use crate::{MAGIC, Message, Type};

/// Room for a usual object, so that it is written without moving.
const USUAL: usize = 1536;

/// An object of this kind in an envelope. `None` if the object has a field that the tables do not know, or a value that
/// the bytes would not say as the JSON does: then it has to be sent as JSON.
pub fn encode(kind: Kind, object: &Value) -> Option<Vec<u8>> {
    let is_kind = object.get("kind")? == kind.name() && object.get("apiVersion")? == kind.api_version();
    if is_kind { encode_as(message(kind)?, kind.api_version(), kind.name(), object) } else { None }
}

/// The same for any message that has a protobuf form.
pub fn encode_as(message: &Message, api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    enveloped(api_version, kind, |out| root(message, object, out))
}

/// A list of objects of this kind in an envelope.
pub fn encode_list<'a>(
    message: &Message,
    kind: Kind,
    metadata: &Value,
    items: impl Iterator<Item = &'a Value>,
) -> Option<Vec<u8>> {
    let mut items = items;
    enveloped(kind.api_version(), kind.list_kind(), |out| {
        nested(1, out, |out| root(&LIST_META, metadata, out))?;
        items.try_for_each(|item| nested(2, out, |out| root(message, item, out)))
    })
}

/// One event of a watch about an object in its envelope, with its length before it, as servers send it.
pub fn encode_event(r#type: &str, object: &[u8]) -> Vec<u8> {
    const PREFIX: usize = size_of::<u32>();
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(&[0; PREFIX]);
    bytes(1, r#type.as_bytes(), &mut out);
    // It cannot fail: nothing in it is refused.
    let _written = nested(2, &mut out, |out| {
        bytes(1, object, out);
        Some(())
    });
    let length = u32::try_from(out.len() - PREFIX).unwrap_or(u32::MAX);
    out[..PREFIX].copy_from_slice(&length.to_be_bytes());
    out
}

fn enveloped(api_version: &str, kind: &str, raw: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(USUAL);
    out.extend_from_slice(MAGIC);
    nested(1, &mut out, |out| {
        bytes(1, api_version.as_bytes(), out);
        bytes(2, kind.as_bytes(), out);
        Some(())
    })?;
    nested(2, &mut out, raw)?;
    Some(out)
}

/// A message that stands by itself. The envelope says its version and kind.
fn root(message: &Message, object: &Value, out: &mut Vec<u8>) -> Option<()> {
    let fields = object.as_object()?.iter().filter(|(key, _)| *key != "kind" && *key != "apiVersion");
    fields_of(message, fields, out)
}

/// Writes the fields of a message. JSON says in two ways that nothing is set, one of which is null.
fn fields_of<'a>(
    message: &Message,
    fields: impl Iterator<Item = (&'a String, &'a Value)> + Clone,
    out: &mut Vec<u8>,
) -> Option<()> {
    for (key, value) in fields.clone().filter(|(_, value)| !value.is_null()) {
        match message.own(key) {
            Some(known) => field(known.number, known.r#type, value, out)?,
            None if message.field(key).is_some() => {}
            None => return None,
        }
    }
    for (number, inner) in message.inlined() {
        let mut inner = fields.clone().filter_map(|(key, value)| Some((inner.own(key)?, value))).peekable();
        if inner.peek().is_some() {
            nested(number, out, |out| {
                inner
                    .filter(|(_, value)| !value.is_null())
                    .try_for_each(|(known, value)| field(known.number, known.r#type, value, out))
            })?;
        }
    }
    Some(())
}

fn field(number: u32, r#type: Type, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match r#type {
        Type::String => bytes(number, value.as_str()?.as_bytes(), out),
        Type::Bool => varint(number, u64::from(value.as_bool()?), out),
        Type::Int64 => varint(number, value.as_i64()?.cast_unsigned(), out),
        Type::Int32 => varint(number, int32(value)?, out),
        Type::Time => time(number, value, Precision::Seconds, out)?,
        Type::MicroTime => time(number, value, Precision::Micros, out)?,
        Type::Quantity => quantity(number, value, out)?,
        Type::IntOrString => nested(number, out, |out| int_or_string(value, out))?,
        Type::Message(of) => part(number, of, value.as_object()?, out)?,
        Type::Messages(of) | Type::Keyed(of, _) => {
            value.as_array()?.iter().try_for_each(|value| part(number, of, value.as_object()?, out))?;
        }
        Type::Int32s => value.as_array()?.iter().try_for_each(|value| {
            varint(number, int32(value)?, out);
            Some(())
        })?,
        Type::Int64s => value.as_array()?.iter().try_for_each(|value| {
            varint(number, value.as_i64()?.cast_unsigned(), out);
            Some(())
        })?,
        Type::Strings | Type::StringSet => value.as_array()?.iter().try_for_each(|value| {
            bytes(number, value.as_str()?.as_bytes(), out);
            Some(())
        })?,
        Type::StringMap => entries(number, value, out, |value, out| {
            bytes(2, value.as_str()?.as_bytes(), out);
            Some(())
        })?,
        Type::BytesMap => entries(number, value, out, |value, out| {
            bytes(2, &STANDARD.decode(value.as_str()?).ok()?, out);
            Some(())
        })?,
        Type::QuantityMap => entries(number, value, out, |value, out| quantity(2, value, out))?,
        Type::Inline(_) | Type::Unread => return None,
    }
    Some(())
}

fn int32(value: &Value) -> Option<u64> {
    Some(i64::from(i32::try_from(value.as_i64()?).ok()?).cast_unsigned())
}

/// An empty text is a quantity in JSON alone.
fn quantity(number: u32, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    nested(number, out, |out| {
        bytes(1, text.as_bytes(), out);
        Some(())
    })
}

/// Which of the two it is comes first.
fn int_or_string(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::String(text) => {
            varint(1, 1, out);
            bytes(3, text.as_bytes(), out);
        }
        number => {
            varint(1, 0, out);
            varint(2, int32(number)?, out);
        }
    }
    Some(())
}

fn part(number: u32, of: &Message, object: &Map<String, Value>, out: &mut Vec<u8>) -> Option<()> {
    nested(number, out, |out| fields_of(of, object.iter(), out))
}

fn entries(
    number: u32,
    value: &Value,
    out: &mut Vec<u8>,
    write: impl Fn(&Value, &mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    value.as_object()?.iter().try_for_each(|(key, value)| {
        nested(number, out, |out| {
            bytes(1, key.as_bytes(), out);
            write(value, out)
        })
    })
}

fn time(number: u32, value: &Value, precision: Precision, out: &mut Vec<u8>) -> Option<()> {
    let (seconds, nanos) = time::parse(value.as_str()?, precision)?;
    nested(number, out, |out| {
        varint(1, seconds, out);
        varint(2, nanos, out);
        Some(())
    })
}

fn bytes(number: u32, content: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(content.len() as u64, out);
    out.extend_from_slice(content);
}

fn varint(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

/// A field that holds what `write` writes. Its length comes first, and is known last.
fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    encode_key(number, WireType::LengthDelimited, out);
    let start = out.len();
    out.push(0);
    write(out)?;
    let mut length = (out.len() - start - 1) as u64;
    let mut at = start;
    while length >= 0x80 {
        out[at] = (length & 0x7f) as u8 | 0x80;
        length >>= 7;
        at += 1;
        out.insert(at, 0);
    }
    out[at] = length as u8;
    Some(())
}
