//! The bytes themselves: fields, and the few messages that are read without a table.

use alloc::format;
use alloc::vec::Vec;
use core::str::from_utf8;

use prost::encoding::{WireType, decode_key, decode_varint};

use crate::Error;

/// What every object in this form begins with.
pub const MAGIC: &[u8] = b"k8s\0";

/// One field as it stands in the bytes.
#[derive(Clone, Copy)]
pub(crate) enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The next field and its number; nothing at the end.
pub(crate) fn next<'a>(bytes: &mut &'a [u8], place: &str) -> Result<Option<(u32, Wire<'a>)>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let spoilt = |_| Error::new(&format!("{place} ends in the middle of a field"));
    let (number, wire) = decode_key(bytes).map_err(spoilt)?;
    match wire {
        WireType::Varint => Ok(Some((number, Wire::Number(decode_varint(bytes).map_err(spoilt)?)))),
        WireType::LengthDelimited => {
            let length = decode_varint(bytes).map_err(spoilt)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
            let length = length.ok_or_else(|| Error::new(&format!("{place} is longer than what holds it")))?;
            let (inner, rest) = bytes.split_at(length);
            *bytes = rest;
            Ok(Some((number, Wire::Bytes(inner))))
        }
        // No object of the kinds read here has any of these.
        WireType::SixtyFourBit | WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
            Err(Error::new(&format!("{place} has a field of a type that no field has")))
        }
    }
}

pub(crate) fn text<'a>(bytes: &'a [u8], place: &str) -> Result<&'a str, Error> {
    from_utf8(bytes).map_err(|_| Error::new(&format!("{place} is not UTF-8 text")))
}

/// What is around an object: its kind, and its own bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The value of `apiVersion:`.
    pub api_version: &'a str,
    /// The value of `kind:`.
    pub kind: &'a str,
    /// The object, without either.
    pub raw: &'a [u8],
}

/// Opens the envelope of an object, a list or a status.
pub fn envelope(body: &[u8]) -> Result<Envelope<'_>, Error> {
    const PLACE: &str = "the envelope";
    let mut content =
        body.strip_prefix(MAGIC).ok_or_else(|| Error::new("it does not begin with k8s and a zero byte"))?;
    let mut envelope = Envelope::default();
    while let Some((number, field)) = next(&mut content, PLACE)? {
        match (number, field) {
            (1, Wire::Bytes(mut of)) => {
                while let Some((number, field)) = next(&mut of, PLACE)? {
                    match (number, field) {
                        (1, Wire::Bytes(version)) => envelope.api_version = text(version, PLACE)?,
                        (2, Wire::Bytes(kind)) => envelope.kind = text(kind, PLACE)?,
                        (number, _) => return Err(Error::unknown(PLACE, number)),
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            // An encoding and a type of its own; both are empty when the content is what the header says.
            (3, Wire::Bytes(b"")) | (4, Wire::Bytes(b"")) => {}
            (3 | 4, _) => return Err(Error::new("its content has an encoding of its own")),
            (number, _) => return Err(Error::unknown(PLACE, number)),
        }
    }
    Ok(envelope)
}

/// The metadata of a list, for [`crate::LIST_META`], and the bytes of each of its objects, which have no envelope.
pub fn list(mut raw: &[u8]) -> Result<(&[u8], Vec<&[u8]>), Error> {
    const PLACE: &str = "the list";
    let (mut metadata, mut items) = (&b""[..], Vec::new());
    while let Some((number, field)) = next(&mut raw, PLACE)? {
        match (number, field) {
            (1, Wire::Bytes(bytes)) => metadata = bytes,
            (2, Wire::Bytes(item)) => items.push(item),
            (number, _) => return Err(Error::unknown(PLACE, number)),
        }
    }
    Ok((metadata, items))
}

/// One event of a watch: its type, and its object in an envelope. The event itself has none.
pub fn event(mut frame: &[u8]) -> Result<(&str, &[u8]), Error> {
    const PLACE: &str = "the event";
    let (mut sort, mut object) = ("", &b""[..]);
    while let Some((number, field)) = next(&mut frame, PLACE)? {
        match (number, field) {
            (1, Wire::Bytes(bytes)) => sort = text(bytes, PLACE)?,
            (2, Wire::Bytes(mut holder)) => {
                while let Some((number, field)) = next(&mut holder, PLACE)? {
                    match (number, field) {
                        (1, Wire::Bytes(bytes)) => object = bytes,
                        (number, _) => return Err(Error::unknown(PLACE, number)),
                    }
                }
            }
            (number, _) => return Err(Error::unknown(PLACE, number)),
        }
    }
    Ok((sort, object))
}
