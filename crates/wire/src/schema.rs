//! The language that says what the fields of an object are: one for decoding, merging, documenting, and protobuf.

/// A message: an object type and its fields.
#[derive(Debug)]
pub struct Message {
    /// The package that declares it, in protobuf's words.
    pub package: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its fields. `apiVersion` and `kind` are none: protobuf has them in the envelope.
    pub fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its number in protobuf, which never changes; 0 in a message that has no protobuf form.
    pub number: u32,
    /// Its name in JSON.
    pub name: &'static str,
    /// When Go leaves it out.
    pub presence: Presence,
    /// What it holds.
    pub r#type: Type,
}

/// Whether a zero value counts as set. Go's protobuf writes every field that is no pointer, zero or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Zero is the same as unset (`omitempty`).
    OmitEmpty,
    /// A pointer: empty, zero and false are values like any other.
    Pointer,
    /// Always there, zero or not.
    Required,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the words of protobuf and Kubernetes")]
pub enum Type {
    Bool,
    Int32,
    Int64,
    String,
    /// RFC 3339 in JSON, to the second.
    Time,
    /// RFC 3339 in JSON, to the microsecond.
    MicroTime,
    /// A number with a unit: a string or a number in JSON.
    Quantity,
    IntOrString,
    Int32s,
    Int64s,
    /// A list that a strategic merge replaces.
    Strings,
    /// A list that a strategic merge unites.
    StringSet,
    StringMap,
    QuantityMap,
    /// A map to bytes, which JSON writes in base64.
    BytesMap,
    Message(&'static Message),
    /// A list that a strategic merge replaces.
    Messages(&'static Message),
    /// A list that a strategic merge merges item by item: items with the same value in this field are the same.
    Keyed(&'static Message, &'static str),
    /// A message whose fields JSON has among those of the message that holds it.
    Inline(&'static Message),
    /// A list that nobody reads and nobody here writes.
    Unread,
}

impl Message {
    /// A message of these fields, at most as many as a set of them has bits.
    #[doc(hidden)]
    pub const fn new(package: &'static str, name: &'static str, fields: &'static [Field]) -> Message {
        assert!(fields.len() <= u64::BITS as usize, "a message has more fields than can be ticked off");
        Message { package, name, fields }
    }

    /// The field with this name in JSON, which may be one of an inlined message.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.own(name).or_else(|| self.inlined().find_map(|(_, inner)| inner.own(name)))
    }

    /// The fields as JSON has them.
    pub fn json_fields(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().flat_map(|field| match field.r#type {
            Type::Inline(inner) => inner.fields.iter(),
            _other => core::slice::from_ref(field).iter(),
        })
    }

    /// The field with this name that is no inlined message and no part of one.
    pub(crate) fn own(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name && !matches!(field.r#type, Type::Inline(_)))
    }

    /// The inlined messages and their numbers.
    pub(crate) fn inlined(&self) -> impl Iterator<Item = (u32, &'static Message)> {
        self.fields.iter().filter_map(|field| match field.r#type {
            Type::Inline(inner) => Some((field.number, inner)),
            _other => None,
        })
    }
}

impl Type {
    /// One field in JSON, many in protobuf.
    pub(crate) const fn is_repeated(self) -> bool {
        match self {
            Type::Int32s
            | Type::Int64s
            | Type::Strings
            | Type::StringSet
            | Type::StringMap
            | Type::QuantityMap
            | Type::BytesMap
            | Type::Messages(_)
            | Type::Keyed(_, _)
            | Type::Unread => true,
            Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::String
            | Type::Time
            | Type::MicroTime
            | Type::Quantity
            | Type::IntOrString
            | Type::Message(_)
            | Type::Inline(_) => false,
        }
    }
}

/// Declares messages:
///
/// ```text
/// messages! {
///     in "the package";
///     NAME = "Name" { number field: Type, number field? Type, number field! Type }
/// }
/// ```
///
/// `:` stands for [`Presence::OmitEmpty`], `?` for [`Presence::Pointer`], `!` for [`Presence::Required`]. Messages that have
/// no protobuf form leave the numbers out.
#[macro_export]
macro_rules! messages {
    (in $package:literal; $($id:ident = $name:literal {
        $($number:literal $field:ident $presence:tt $type:expr),* $(,)?
    })*) => { $(
        #[doc = concat!("The fields of `", $name, "`.")]
        pub static $id: $crate::Message = $crate::Message::new($package, $name, &[$($crate::Field {
            number: $number, name: stringify!($field), presence: $crate::presence!($presence), r#type: $type,
        }),*]);
    )* };
    (in $package:literal; $($id:ident = $name:literal { $($field:ident $presence:tt $type:expr),* $(,)? })*) => {
        $crate::messages! { in $package; $($id = $name { $(0 $field $presence $type),* })* }
    };
}

/// The presence behind the sign of [`messages!`].
#[doc(hidden)]
#[macro_export]
macro_rules! presence {
    (:) => {
        $crate::Presence::OmitEmpty
    };
    (?) => {
        $crate::Presence::Pointer
    };
    (!) => {
        $crate::Presence::Required
    };
}
