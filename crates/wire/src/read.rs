//! Bytes to anything that reads JSON of the same object, without a tree in between.

use alloc::string::String;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::{BorrowedStrDeserializer, I64Deserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::bytes::{Wire, next};
use crate::error::Place;
use crate::time::{self, Precision};
use crate::{Error, Message, Presence, Type};

/// The format is self-describing: every hint goes to `deserialize_any`, and a field that is there is `Some`.
macro_rules! forward_all_hints {
    () => {
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_some(self)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_newtype_struct(self)
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
            tuple_struct map struct enum identifier ignored_any
        }
    };
}

/// Reads one message. It goes no deeper than the tables do, none of which holds itself.
#[derive(Clone, Copy)]
pub struct Reader<'de> {
    message: &'static Message,
    bytes: &'de [u8],
    unknown: Unknown,
}

/// What to do with fields that the tables do not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// Skip them: a server may be newer.
    Skip,
    /// Refuse them: nobody would notice that they are lost.
    Refuse,
}

impl<'de> Reader<'de> {
    /// Reads what a server answers.
    pub fn answer(message: &'static Message, bytes: &'de [u8]) -> Self {
        Reader { message, bytes, unknown: Unknown::Skip }
    }

    /// Reads what is sent to a server.
    pub fn request(message: &'static Message, bytes: &'de [u8]) -> Self {
        Reader { message, bytes, unknown: Unknown::Refuse }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let within = Level { message: self.message, rest: self.bytes, seen: 0 };
        visitor.visit_map(Fields { within, outside: None, current: None, unknown: self.unknown })
    }

    forward_all_hints!();
}

/// A message being read, and which of its fields were there.
struct Level<'de> {
    message: &'static Message,
    rest: &'de [u8],
    seen: u64,
}

impl<'de> Level<'de> {
    /// The next field that has a name here, and whether it was there before. A field of many comes with all of them.
    fn next(&mut self, unknown: Unknown) -> Result<Option<(Field<'de>, bool)>, Error> {
        loop {
            let before = self.rest;
            let Some((number, mut wire)) = next(&mut self.rest, self.message.name)? else { return Ok(None) };
            let Some(index) = self.message.fields.iter().position(|field| field.number == number) else {
                match unknown {
                    Unknown::Skip => continue,
                    Unknown::Refuse => return Err(Error::unknown(self.message.name, number)),
                }
            };
            let known = &self.message.fields[index];
            if known.r#type.is_repeated() {
                self.skip_all(number)?;
                wire = Wire::Bytes(&before[..before.len() - self.rest.len()]);
            }
            let again = self.seen & 1 << index != 0;
            self.seen |= 1 << index;
            let field = Field { place: Place { message: self.message.name, field: known.name }, known, wire, unknown };
            return Ok(Some((field, again)));
        }
    }

    /// Moves behind every field of this number that follows at once.
    fn skip_all(&mut self, number: u32) -> Result<(), Error> {
        let mut ahead = self.rest;
        while let Some((another, _)) = next(&mut ahead, self.message.name)? {
            if another != number {
                break;
            }
            self.rest = ahead;
        }
        Ok(())
    }
}

/// The fields of a message, as JSON names them.
struct Fields<'de> {
    within: Level<'de>,
    /// The message that holds this one, while the fields of an inlined one are told.
    outside: Option<Level<'de>>,
    current: Option<(Field<'de>, bool)>,
    unknown: Unknown,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        loop {
            let Some((field, again)) = self.within.next(self.unknown)? else {
                match self.outside.take() {
                    Some(outside) => self.within = outside,
                    None => return Ok(None),
                }
                continue;
            };
            match (field.known.r#type, field.wire) {
                (Type::Unread, _) => {}
                (Type::Inline(of), Wire::Bytes(bytes)) if !again && self.outside.is_none() => {
                    let inner = Level { message: of, rest: bytes, seen: 0 };
                    self.outside = Some(core::mem::replace(&mut self.within, inner));
                }
                (Type::Inline(_), _) => return Err(Error::at(field.place, "stands there twice")),
                (_, _) if !again && field.is_unset()? => {}
                (_, _) => {
                    let name = field.place.field;
                    self.current = Some((field, again));
                    return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (field, again) = self.current.take().ok_or_else(|| Error::new("a value was asked for before its name"))?;
        let value = seed.deserialize(field)?;
        // Many that do not stand together would be lost in part, and of two only one can be kept.
        if again { Err(Error::at(field.place, "stands there twice")) } else { Ok(value) }
    }
}

/// One field. One of many holds all of them, still as fields.
#[derive(Clone, Copy)]
struct Field<'de> {
    place: Place,
    known: &'static crate::Field,
    wire: Wire<'de>,
    unknown: Unknown,
}

impl Field<'_> {
    /// Nobody set it; Go writes it all the same.
    fn is_unset(&self) -> Result<bool, Error> {
        Ok(match (self.known.presence, self.known.r#type, self.wire) {
            (_, Type::Time | Type::MicroTime, Wire::Bytes(bytes)) => bytes.is_empty(),
            (Presence::OmitEmpty, Type::Message(of), Wire::Bytes(bytes)) => is_blank(of, bytes, self.unknown)?,
            (Presence::OmitEmpty, Type::String | Type::Quantity | Type::IntOrString, Wire::Bytes(bytes)) => {
                bytes.is_empty()
            }
            (Presence::OmitEmpty, Type::Bool | Type::Int32 | Type::Int64, Wire::Number(number)) => number == 0,
            (_, _, Wire::Number(_) | Wire::Bytes(_)) => false,
        })
    }
}

/// Nothing is set in any field of the message. What is spoilt is for the reader of the field to find.
fn is_blank(message: &'static Message, bytes: &[u8], unknown: Unknown) -> Result<bool, Error> {
    let mut level = Level { message, rest: bytes, seen: 0 };
    while let Some((field, again)) = level.next(unknown)? {
        let blank = match (field.known.r#type, field.wire) {
            (Type::Inline(of), Wire::Bytes(bytes)) => is_blank(of, bytes, unknown)?,
            // Go writes a zero here as well, and JSON would say it; alone it is no reason to have the message.
            (Type::Bool | Type::Int32 | Type::Int64, Wire::Number(number)) => {
                number == 0 && field.known.presence != Presence::Pointer
            }
            (Type::String, Wire::Bytes(bytes)) => bytes.is_empty() && field.known.presence != Presence::Pointer,
            (_, _) => field.is_unset()?,
        };
        if again || !blank {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Field { place, known, wire, unknown } = self;
        let r#type = known.r#type;
        match (r#type, wire) {
            (Type::String, Wire::Bytes(bytes)) => visitor.visit_borrowed_str(text(bytes, place)?),
            (Type::Bool, Wire::Number(number)) if number <= 1 => visitor.visit_bool(number == 1),
            // Signed numbers are written as their two's complement.
            (Type::Int64, Wire::Number(number)) => visitor.visit_i64(number.cast_signed()),
            (Type::Int32, Wire::Number(number)) => visitor.visit_i32(int32(number, place)?),
            (Type::Time, Wire::Bytes(bytes)) => visitor.visit_string(time::read(bytes, Precision::Seconds, place)?),
            (Type::MicroTime, Wire::Bytes(bytes)) => visitor.visit_string(time::read(bytes, Precision::Micros, place)?),
            (Type::Quantity, Wire::Bytes(bytes)) => visitor.visit_borrowed_str(text(two(bytes, place)?[0], place)?),
            (Type::IntOrString, Wire::Bytes(bytes)) => match int_or_string(bytes, place)? {
                IntOrString::Int(number) => visitor.visit_i32(number),
                IntOrString::String(text) => visitor.visit_borrowed_str(text),
            },
            (Type::Message(message), Wire::Bytes(bytes)) => Reader { message, bytes, unknown }.deserialize_any(visitor),
            (
                Type::Strings | Type::StringSet | Type::Int32s | Type::Int64s | Type::Messages(_) | Type::Keyed(_, _),
                Wire::Bytes(rest),
            ) => visitor.visit_seq(Many { place, r#type, rest, unknown }),
            (Type::StringMap | Type::BytesMap | Type::QuantityMap, Wire::Bytes(rest)) => {
                visitor.visit_map(Entries { many: Many { place, r#type, rest, unknown }, value: b"" })
            }
            (_, Wire::Number(_) | Wire::Bytes(_)) => Err(Error::at(place, "is of another type")),
        }
    }

    forward_all_hints!();
}

fn int32(number: u64, place: Place) -> Result<i32, Error> {
    i32::try_from(number.cast_signed()).map_err(|_| Error::at(place, "is too large a number"))
}

enum IntOrString<'a> {
    Int(i32),
    String(&'a str),
}

fn int_or_string(mut bytes: &[u8], place: Place) -> Result<IntOrString<'_>, Error> {
    let (mut is_string, mut number, mut string) = (0, 0, &b""[..]);
    while let Some((field, wire)) = next(&mut bytes, place.field)? {
        match (field, wire) {
            (1, Wire::Number(sort)) => is_string = sort,
            (2, Wire::Number(int)) => number = int,
            (3, Wire::Bytes(text)) => string = text,
            (field, _) => return Err(Error::unknown(place.field, field)),
        }
    }
    match is_string {
        0 => Ok(IntOrString::Int(int32(number, place)?)),
        1 => Ok(IntOrString::String(text(string, place)?)),
        _neither => Err(Error::at(place, "is of another type")),
    }
}

/// The fields of one number.
struct Many<'de> {
    place: Place,
    r#type: Type,
    rest: &'de [u8],
    unknown: Unknown,
}

impl<'de> Many<'de> {
    fn next(&mut self) -> Result<Option<&'de [u8]>, Error> {
        match next(&mut self.rest, self.place.message)? {
            Some((_, Wire::Bytes(bytes))) => Ok(Some(bytes)),
            Some((_, Wire::Number(_))) => Err(Error::at(self.place, "is of another type")),
            None => Ok(None),
        }
    }

    fn next_number(&mut self) -> Result<Option<u64>, Error> {
        match next(&mut self.rest, self.place.message)? {
            Some((_, Wire::Number(number))) => Ok(Some(number)),
            Some((_, Wire::Bytes(_))) => Err(Error::at(self.place, "is of another type")),
            None => Ok(None),
        }
    }
}

impl<'de> SeqAccess<'de> for Many<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if matches!(self.r#type, Type::Int32s | Type::Int64s) {
            let Some(number) = self.next_number()? else { return Ok(None) };
            let number = match self.r#type {
                Type::Int32s => i64::from(int32(number, self.place)?),
                _int64s => number.cast_signed(),
            };
            return seed.deserialize(I64Deserializer::new(number)).map(Some);
        }
        let Some(bytes) = self.next()? else { return Ok(None) };
        match self.r#type {
            Type::Messages(message) | Type::Keyed(message, _) => {
                seed.deserialize(Reader { message, bytes, unknown: self.unknown }).map(Some)
            }
            _strings => seed.deserialize(BorrowedStrDeserializer::new(text(bytes, self.place)?)).map(Some),
        }
    }
}

/// The same where each is a name and a value.
struct Entries<'de> {
    many: Many<'de>,
    value: &'de [u8],
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.many.next()? else { return Ok(None) };
        let place = self.many.place;
        let [key, value] = two(entry, place)?;
        self.value = value;
        seed.deserialize(BorrowedStrDeserializer::new(text(key, place)?)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let place = self.many.place;
        let text = match self.many.r#type {
            Type::BytesMap => {
                let encoded: String = STANDARD.encode(self.value);
                return seed.deserialize(StringDeserializer::new(encoded));
            }
            Type::QuantityMap => text(two(self.value, place)?[0], place)?,
            _strings => text(self.value, place)?,
        };
        seed.deserialize(BorrowedStrDeserializer::new(text))
    }
}

/// The fields 1 and 2 of a small message, such as a map's entry; either may be left out when it is empty.
fn two(mut bytes: &[u8], place: Place) -> Result<[&[u8]; 2], Error> {
    let mut found = [&b""[..]; 2];
    while let Some((number, wire)) = next(&mut bytes, place.field)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => found[0] = bytes,
            (2, Wire::Bytes(bytes)) => found[1] = bytes,
            (number, _) => return Err(Error::unknown(place.field, number)),
        }
    }
    Ok(found)
}

fn text(bytes: &[u8], place: Place) -> Result<&str, Error> {
    core::str::from_utf8(bytes).map_err(|_| Error::at(place, "is not UTF-8 text"))
}
