//! An object's JSON to bytes.

use alloc::vec::Vec;

use api::{Kind, Value};
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Map;

use crate::time::{self, Grain};
use crate::{Form, MAGIC, Message, message};

/// Room for a usual object, so that it is written without moving.
const USUAL: usize = 1536;

/// An object of this kind in an envelope. Nothing if the object has a field that the tables do not know, or a value that
/// the bytes would not say as the JSON does: then it has to be sent as JSON.
pub fn encode(kind: Kind, object: &Value) -> Option<Vec<u8>> {
    let (table, object) = (message(kind)?, object.as_object()?);
    let is_kind = object.get("kind")? == kind.name() && object.get("apiVersion")? == kind.api_version();
    if !is_kind {
        return None;
    }
    let mut out = Vec::with_capacity(USUAL);
    out.extend_from_slice(MAGIC);
    nested(1, &mut out, |out| {
        bytes(1, kind.api_version().as_bytes(), out);
        bytes(2, kind.name().as_bytes(), out);
        Some(())
    })?;
    let fields = object.iter().filter(|(key, _)| *key != "kind" && *key != "apiVersion");
    nested(2, &mut out, |out| fields_of(table, fields, out))?;
    Some(out)
}

/// Writes the fields of a message. JSON says that nothing is set in two ways, one of which is null.
fn fields_of<'a>(
    table: &Message,
    fields: impl Iterator<Item = (&'a alloc::string::String, &'a Value)> + Clone,
    out: &mut Vec<u8>,
) -> Option<()> {
    for (key, value) in fields.clone().filter(|(_, value)| !value.is_null()) {
        match table.named(key) {
            Some((number, _, form)) => field(*number, form, value, out)?,
            None if inlined(table).any(|(_, of)| of.named(key).is_some()) => {}
            None => return None,
        }
    }
    for (number, of) in inlined(table) {
        let mut inner = fields.clone().filter_map(|(key, value)| Some((of.named(key)?, value))).peekable();
        if inner.peek().is_some() {
            nested(number, out, |out| {
                inner
                    .filter(|(_, value)| !value.is_null())
                    .try_for_each(|((number, _, form), value)| field(*number, form, value, out))
            })?;
        }
    }
    Some(())
}

fn inlined(table: &Message) -> impl Iterator<Item = (u32, &'static Message)> {
    table.fields.iter().filter_map(|(number, _, form)| match form {
        Form::Inlined(of) => Some((*number, *of)),
        _other => None,
    })
}

fn field(number: u32, form: &Form, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match form {
        Form::Set(form) => field(number, form, value, out)?,
        Form::Text => bytes(number, value.as_str()?.as_bytes(), out),
        Form::Truth => varint(number, u64::from(value.as_bool()?), out),
        Form::Number => varint(number, value.as_i64()?.cast_unsigned(), out),
        Form::Small => varint(number, i64::from(i32::try_from(value.as_i64()?).ok()?).cast_unsigned(), out),
        Form::Time => time(number, value, Grain::Second, out)?,
        Form::MicroTime => time(number, value, Grain::Microsecond, out)?,
        Form::Part(of) => part(number, of, value.as_object()?, out)?,
        Form::Parts(of) => {
            value.as_array()?.iter().try_for_each(|value| part(number, of, value.as_object()?, out))?;
        }
        Form::Texts => value.as_array()?.iter().try_for_each(|value| {
            bytes(number, value.as_str()?.as_bytes(), out);
            Some(())
        })?,
        Form::TextMap => entries(number, value, out, |value, out| {
            bytes(2, value.as_str()?.as_bytes(), out);
            Some(())
        })?,
        // An empty text is a quantity in JSON alone.
        Form::Quantities => entries(number, value, out, |value, out| {
            let text = value.as_str().filter(|text| !text.is_empty())?;
            nested(2, out, |out| {
                bytes(1, text.as_bytes(), out);
                Some(())
            })
        })?,
        // No kind that is written here has bytes.
        Form::BytesMap | Form::Inlined(_) | Form::Unread => return None,
    }
    Some(())
}

fn part(number: u32, of: &Message, object: &Map<alloc::string::String, Value>, out: &mut Vec<u8>) -> Option<()> {
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

fn time(number: u32, value: &Value, grain: Grain, out: &mut Vec<u8>) -> Option<()> {
    let (seconds, nanos) = time::parsed(value.as_str()?, grain)?;
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
