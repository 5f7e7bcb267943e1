use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Plugin;

/// Why something cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It has no source of a plugin that a CSI driver has taken over.
    NotInTree(String),
    /// It has no CSI source.
    NotCsi(String),
    /// It has more than one source.
    Ambiguous(String),
    /// No plugin has this name.
    UnknownPlugin(String),
    /// No driver of this name has taken over a plugin.
    UnknownDriver(String),
    /// A field or parameter is missing.
    Missing {
        plugin: Plugin,
        /// Which, and where to write it.
        what: &'static str,
    },
    /// A field or parameter says something that cannot be translated.
    Malformed {
        plugin: Plugin,
        field: &'static str,
        /// What it says.
        value: String,
        /// What it should look like.
        want: &'static str,
    },
    /// Two parameters of a class say the same thing.
    Twice {
        class: String,
        /// What they say.
        what: &'static str,
    },
    /// The zones are not in one region, or not in any that can be told from their names.
    NoRegion { plugin: Plugin, zones: Vec<String> },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotInTree(what) => {
                write!(f, "{what} has no source of an in-tree plugin that a CSI driver has taken over")
            }
            Error::NotCsi(what) => write!(f, "{what} has no CSI source"),
            Error::Ambiguous(what) => write!(f, "{what} has more than one source; remove all but one"),
            Error::UnknownPlugin(name) => write!(f, "no CSI driver is known to have taken over plugin {name:?}"),
            Error::UnknownDriver(name) => write!(f, "CSI driver {name:?} is not known to have taken over a plugin"),
            Error::Missing { plugin, what } => write!(f, "a volume of {plugin} lacks {what}"),
            Error::Malformed { plugin, field, value, want } => {
                write!(f, "{field} {value:?} of {plugin} cannot be translated; it should be {want}")
            }
            Error::Twice { class, what } => write!(f, "class {class:?} says more than once {what}; keep one"),
            Error::NoRegion { plugin, zones } if zones.is_empty() => {
                write!(f, "a place of a volume of {plugin} names no zone, so that its region cannot be told")
            }
            Error::NoRegion { plugin, zones } => {
                write!(f, "the zones {} of {plugin} do not name exactly one region", zones.join(", "))
            }
        }
    }
}

impl core::error::Error for Error {}

/// Something the other form has no word for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The field, annotation or parameter.
    pub field: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no counterpart and is left out", self.field)
    }
}

/// A translated object, and what the translation could not carry over. Nothing is dropped without being named here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated<T> {
    /// The object in its other form.
    pub object: T,
    /// What it cannot say.
    pub lost: Vec<Lost>,
}

/// Collects what is lost under way.
#[derive(Default)]
pub(crate) struct Losses(Vec<Lost>);

impl Losses {
    pub(crate) fn note(&mut self, field: impl Into<String>) {
        self.0.push(Lost { field: field.into() });
    }

    /// A field that is set and cannot be carried over.
    pub(crate) fn note_if(&mut self, set: bool, field: &str) {
        if set {
            self.note(field);
        }
    }

    pub(crate) fn with<T>(mut self, object: T) -> Translated<T> {
        self.0.sort();
        self.0.dedup();
        Translated { object, lost: self.0 }
    }
}
