//! Bytes to anything that reads JSON of the same object, without a tree in between.

use alloc::string::String;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::bytes::{Wire, next};
use crate::error::Place;
use crate::time::{self, Grain};
use crate::{Error, Form, Message};

/// The tables say what a thing is, so that it is the same whatever the reader would like it to be. It is there, too.
macro_rules! itself_whatever_is_wanted {
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
    manner: Manner,
}

/// How to take what is not expected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Fields without a name here are skipped, and what JSON would leave out is left out.
    Answer,
    /// Fields without a name here are refused, because nobody would notice. Zero and false are told.
    Request,
}

impl<'de> Reader<'de> {
    /// Reads what a server answers.
    pub fn answer(message: &'static Message, bytes: &'de [u8]) -> Self {
        Reader { message, bytes, manner: Manner::Answer }
    }

    /// Reads what is sent to a server.
    pub fn request(message: &'static Message, bytes: &'de [u8]) -> Self {
        Reader { message, bytes, manner: Manner::Request }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let within = Level { message: self.message, rest: self.bytes, seen: 0 };
        visitor.visit_map(Fields { within, outside: None, current: None, manner: self.manner })
    }

    itself_whatever_is_wanted!();
}

/// A message being read, and which of its fields were there.
struct Level<'de> {
    message: &'static Message,
    rest: &'de [u8],
    seen: u64,
}

impl<'de> Level<'de> {
    /// The next field that has a name here, and whether it was there before. A field of many comes with all of them.
    fn next(&mut self, manner: Manner) -> Result<Option<(Field<'de>, bool)>, Error> {
        loop {
            let before = self.rest;
            let Some((number, mut wire)) = next(&mut self.rest, self.message.name)? else { return Ok(None) };
            let Some(index) = self.message.fields.iter().position(|field| field.0 == number) else {
                match manner {
                    Manner::Answer => continue,
                    Manner::Request => return Err(Error::unknown(self.message.name, number)),
                }
            };
            let (_, name, form) = &self.message.fields[index];
            if form.is_repeated() {
                self.skip_all(number)?;
                wire = Wire::Bytes(&before[..before.len() - self.rest.len()]);
            }
            let again = self.seen & 1 << index != 0;
            self.seen |= 1 << index;
            let field = Field { place: Place { message: self.message.name, field: name }, form, wire, manner };
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
    manner: Manner,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        loop {
            let Some((field, again)) = self.within.next(self.manner)? else {
                match self.outside.take() {
                    Some(outside) => self.within = outside,
                    None => return Ok(None),
                }
                continue;
            };
            match (field.form, field.wire) {
                (Form::Unread, _) => {}
                (Form::Inlined(of), Wire::Bytes(bytes)) if !again && self.outside.is_none() => {
                    let inner = Level { message: of, rest: bytes, seen: 0 };
                    self.outside = Some(core::mem::replace(&mut self.within, inner));
                }
                (Form::Inlined(_), _) => return Err(Error::at(field.place, "stands there twice")),
                (_, _) if field.is_left_out() && !again => {}
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
    form: &'static Form,
    wire: Wire<'de>,
    manner: Manner,
}

impl Field<'_> {
    /// Nobody set it; Go writes it all the same.
    fn is_left_out(&self) -> bool {
        match (self.form, self.wire) {
            (Form::Text | Form::Time | Form::MicroTime, Wire::Bytes(bytes)) => bytes.is_empty(),
            (Form::Truth | Form::Number | Form::Small, Wire::Number(number)) => {
                number == 0 && self.manner == Manner::Answer
            }
            (
                Form::Text
                | Form::Truth
                | Form::Number
                | Form::Small
                | Form::Time
                | Form::MicroTime
                | Form::Texts
                | Form::TextMap
                | Form::BytesMap
                | Form::Quantities
                | Form::Part(_)
                | Form::Parts(_)
                | Form::Inlined(_)
                | Form::Set(_)
                | Form::Unread,
                Wire::Number(_) | Wire::Bytes(_),
            ) => false,
        }
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Field { place, form, wire, manner } = self;
        match (form, wire) {
            (Form::Set(form), wire) => Field { place, form, wire, manner }.deserialize_any(visitor),
            (Form::Text, Wire::Bytes(bytes)) => visitor.visit_borrowed_str(text(bytes, place)?),
            (Form::Truth, Wire::Number(number)) if number <= 1 => visitor.visit_bool(number == 1),
            // Signed numbers are written as their two's complement.
            (Form::Number, Wire::Number(number)) => visitor.visit_i64(number.cast_signed()),
            (Form::Small, Wire::Number(number)) => match i32::try_from(number.cast_signed()) {
                Ok(number) => visitor.visit_i32(number),
                Err(_) => Err(Error::at(place, "is too large a number")),
            },
            (Form::Time, Wire::Bytes(bytes)) => visitor.visit_string(time::read(bytes, Grain::Second, place)?),
            (Form::MicroTime, Wire::Bytes(bytes)) => {
                visitor.visit_string(time::read(bytes, Grain::Microsecond, place)?)
            }
            (Form::Part(message), Wire::Bytes(bytes)) => Reader { message, bytes, manner }.deserialize_any(visitor),
            (Form::Texts | Form::Parts(_), Wire::Bytes(rest)) => visitor.visit_seq(Many { place, form, rest, manner }),
            (Form::TextMap | Form::BytesMap | Form::Quantities, Wire::Bytes(rest)) => {
                visitor.visit_map(Entries { many: Many { place, form, rest, manner }, value: b"" })
            }
            (
                Form::Text
                | Form::Truth
                | Form::Number
                | Form::Small
                | Form::Time
                | Form::MicroTime
                | Form::Texts
                | Form::TextMap
                | Form::BytesMap
                | Form::Quantities
                | Form::Part(_)
                | Form::Parts(_)
                | Form::Inlined(_)
                | Form::Unread,
                Wire::Number(_) | Wire::Bytes(_),
            ) => Err(Error::at(place, "is of another type")),
        }
    }

    itself_whatever_is_wanted!();
}

/// The fields of one number.
struct Many<'de> {
    place: Place,
    form: &'static Form,
    rest: &'de [u8],
    manner: Manner,
}

impl<'de> Many<'de> {
    fn next(&mut self) -> Result<Option<&'de [u8]>, Error> {
        match next(&mut self.rest, self.place.message)? {
            Some((_, Wire::Bytes(bytes))) => Ok(Some(bytes)),
            Some((_, Wire::Number(_))) => Err(Error::at(self.place, "is of another type")),
            None => Ok(None),
        }
    }
}

impl<'de> SeqAccess<'de> for Many<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(bytes) = self.next()? else { return Ok(None) };
        match self.form {
            Form::Parts(message) => seed.deserialize(Reader { message, bytes, manner: self.manner }).map(Some),
            _texts => seed.deserialize(BorrowedStrDeserializer::new(text(bytes, self.place)?)).map(Some),
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
        let text = match self.many.form {
            Form::BytesMap => {
                let encoded: String = STANDARD.encode(self.value);
                return seed.deserialize(StringDeserializer::new(encoded));
            }
            Form::Quantities => text(two(self.value, place)?[0], place)?,
            _texts => text(self.value, place)?,
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
