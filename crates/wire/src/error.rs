use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Why bytes are no such object. Of what this crate says itself no value is a part, only places: a body may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(what: &str) -> Error {
        Error(what.to_string())
    }

    pub(crate) fn unknown(place: &str, number: u32) -> Error {
        Error(format!("{place} has no field with the number {number}"))
    }

    pub(crate) fn at(place: Place, what: &str) -> Error {
        Error(format!("{place} {what}"))
    }
}

/// A field of a message, for people.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub message: &'static str,
    pub field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.message, self.field)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(what: T) -> Error {
        Error(what.to_string())
    }
}
