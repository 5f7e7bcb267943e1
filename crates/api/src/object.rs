use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer};

use crate::go::AsGo;
use crate::*;

/// A type that holds what the rules read of one kind.
pub trait Narrow: Sized {
    /// The kind that objects of this type are of.
    const KIND: Kind;

    /// The object, if it is of this kind.
    fn of(object: &Object) -> Option<&Arc<Self>>;
}

macro_rules! declare_object {
    (
        cached { $($cached:ident $_1:tt $_2:tt $_3:tt $_4:tt $_5:tt $_6:tt $_7:tt $_8:tt;)* }
        fetched { $($fetched:ident $_f1:tt $_f2:tt $_f3:tt $_f4:tt $_f5:tt $_f6:tt $_f7:tt $_f8:tt;)* }
        served { $($served:tt)* }
    ) => {
        impl Object {
            /// Kinds that may be kept in a cache.
            pub const KINDS: [Kind; [$(Kind::$cached),*].len()] = [$(Kind::$cached),*];
        }
        declare_object!($($cached)* $($fetched)*);
    };
    ($($kind:ident)*) => {
        /// Any object the rules read, shared and immutable.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is the Kubernetes kind of the same name")]
        pub enum Object { $($kind(Arc<$kind>)),* }

        impl Object {
            /// The object's kind.
            pub fn kind(&self) -> Kind {
                match self { $(Object::$kind(_) => Kind::$kind),* }
            }

            /// The object's metadata.
            pub fn meta(&self) -> &Meta {
                match self { $(Object::$kind(object) => &object.metadata),* }
            }

            /// Reads an object of this kind from any format that has the names of JSON, as Go reads it: fields that the
            /// narrow type does not have are ignored, and null stands for the zero value.
            pub fn read<'de, D: Deserializer<'de>>(kind: Kind, from: D) -> Result<Object, D::Error> {
                match kind {
                    $(Kind::$kind => $kind::deserialize(AsGo(from)).map(Object::from),)*
                    unread => Err(serde::de::Error::custom(ReadError::NotRead(unread))),
                }
            }

            /// The object as bytes that [`Object::from_slice`] reads; kind and version are left out.
            pub fn to_bytes(&self) -> Vec<u8> {
                match self { $(Object::$kind(object) => serde_json::to_vec(&**object)),* }.unwrap_or_default()
            }

            fn to_value(&self) -> Value {
                match self { $(Object::$kind(object) => serde_json::to_value(&**object)),* }.unwrap_or_default()
            }
        }

        $(
            impl From<$kind> for Object {
                fn from(object: $kind) -> Object {
                    Object::$kind(Arc::new(object))
                }
            }

            impl Narrow for $kind {
                const KIND: Kind = Kind::$kind;

                fn of(object: &Object) -> Option<&Arc<Self>> {
                    match object {
                        Object::$kind(object) => Some(object),
                        _another => None,
                    }
                }
            }
        )*
    };
}
for_each_kind!(declare_object);

/// Why something is not an object that the rules read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// No rule reads objects of this kind.
    NotRead(Kind),
    /// A field holds what it cannot hold.
    Malformed {
        /// The kind it should be.
        kind: Kind,
        /// What is wrong, and where.
        message: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::NotRead(kind) => write!(f, "no rule reads objects of kind {kind}"),
            ReadError::Malformed { kind, message } => write!(f, "it is not a {kind}: {message}"),
        }
    }
}

impl core::error::Error for ReadError {}

impl Object {
    /// What identifies the object.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { kind: self.kind(), key: self.meta().key() }
    }

    /// Reads an object from its JSON, as Go reads it.
    pub fn from_json(kind: Kind, json: Value) -> Result<Object, ReadError> {
        Object::read(kind, json).map_err(|error| malformed(kind, &error))
    }

    /// The same from bytes, without building a tree in between.
    pub fn from_slice(kind: Kind, json: &[u8]) -> Result<Object, ReadError> {
        let mut from = serde_json::Deserializer::from_slice(json);
        let object = Object::read(kind, &mut from).map_err(|error| malformed(kind, &error))?;
        from.end().map_err(|error| malformed(kind, &error))?;
        Ok(object)
    }

    /// The object as it is written: with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Value {
        let mut json = self.to_value();
        if let Value::Object(map) = &mut json {
            map.insert("apiVersion".into(), self.kind().api_version().into());
            map.insert("kind".into(), self.kind().name().into());
        }
        json
    }
}

fn malformed(kind: Kind, error: &serde_json::Error) -> ReadError {
    ReadError::Malformed { kind, message: error.to_string() }
}
