//! JSON as Go reads it: null is the zero value of whatever is expected, in fields, in lists and in maps.
//!
//! Go writes a list or map that was never made as null. A kubelet's first CSINode says `drivers: null`.

use core::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// Reads from another deserializer and turns each null into the zero value of the type that is asked for.
pub(crate) struct AsGo<T>(pub T);

/// What null stands for where a visitor expects a value.
#[derive(Clone, Copy)]
enum Zero {
    Bool,
    Number,
    String,
    Seq,
    Map,
    /// Null itself: the reader asks for an option, or for any value.
    Null,
}

/// Forwards each hint, with the zero value it implies.
macro_rules! hint {
    ($($method:ident($($name:ident: $type:ty),*) $zero:ident;)*) => { $(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            // A format that checks hints would refuse null before the visitor sees it.
            self.0.deserialize_any(Reading { visitor, zero: Zero::$zero })
        }
    )* };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for AsGo<D> {
    type Error = D::Error;

    hint! {
        deserialize_any() Null;
        deserialize_bool() Bool;
        deserialize_i8() Number;
        deserialize_i16() Number;
        deserialize_i32() Number;
        deserialize_i64() Number;
        deserialize_i128() Number;
        deserialize_u8() Number;
        deserialize_u16() Number;
        deserialize_u32() Number;
        deserialize_u64() Number;
        deserialize_u128() Number;
        deserialize_f32() Number;
        deserialize_f64() Number;
        deserialize_char() String;
        deserialize_str() String;
        deserialize_string() String;
        deserialize_bytes() String;
        deserialize_byte_buf() String;
        deserialize_unit() Null;
        deserialize_unit_struct(_name: &'static str) Null;
        deserialize_seq() Seq;
        deserialize_tuple(_length: usize) Seq;
        deserialize_tuple_struct(_name: &'static str, _length: usize) Seq;
        deserialize_map() Map;
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]) Map;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Reading { visitor, zero: Zero::Null })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Reading { visitor, zero: Zero::Null })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Reading { visitor, zero: Zero::Null })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }
}

/// A visitor that takes null for the zero value, and hands on readers that do the same.
struct Reading<V> {
    visitor: V,
    zero: Zero,
}

macro_rules! forward {
    ($($method:ident($type:ty);)*) => { $(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )* };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Reading<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    forward! {
        visit_bool(bool);
        visit_i64(i64);
        visit_i32(i32);
        visit_u64(u64);
        visit_f64(f64);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(alloc::string::String);
        visit_bytes(&[u8]);
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.zero {
            Zero::Bool => self.visitor.visit_bool(false),
            Zero::Number => self.visitor.visit_u64(0),
            Zero::String => self.visitor.visit_str(""),
            Zero::Seq => self.visitor.visit_seq(SeqDeserializer::new(core::iter::empty::<()>())),
            Zero::Map => self.visitor.visit_map(MapDeserializer::new(core::iter::empty::<((), ())>())),
            Zero::Null => self.visitor.visit_unit(),
        }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(AsGo(from))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(AsGo(from))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(AsGo(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(AsGo(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(variant)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for AsGo<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(AsGo(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for AsGo<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(AsGo(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for AsGo<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(AsGo(from))
    }
}
