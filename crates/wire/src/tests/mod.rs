mod read;
mod write;

use alloc::vec::Vec;

use api::Kind;
use prost::encoding::{WireType, encode_key, encode_varint};

/// The kinds that have a table here.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| crate::message(*kind).is_some())
}

/// A field of bytes.
pub(crate) fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// A field of a number.
pub(crate) fn number(number: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::Varint, &mut out);
    encode_varint(value, &mut out);
    out
}
