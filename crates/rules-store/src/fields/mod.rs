//! Which fields do something here, and what is said of those that do not: one table for each message of the schema.
//! The tables of a kind are in its file in `kinds`. Those of claims, volumes and pods are here, with what kinds share.
//!
//! Every field has a line. `honoured` ones do what Kubernetes says of them, or are only for people to read. `refused`
//! ones would change what happens and do not: an object that sets one is not taken. `warned` ones pass, and the sender
//! is told. `longshore fields`, `docs/fields.md` and the descriptions of `kubectl explain` are made from the same
//! lines.
//!
//! A field added to the schema without a line here fails a test.

pub(crate) mod claim;
mod container;
mod in_tree;
mod judge;
pub(crate) mod meta;
pub(crate) mod pod;
mod pod_volume;
pub(crate) mod volume;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::Kind;
use wire::{Message, Type};

use crate::kinds::rules;

pub(crate) use judge::{Verdict, judge};

/// What becomes of a field that a user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldStanding {
    /// It does what it says.
    Honoured,
    /// It does nothing, which the sender is told.
    Warned,
    /// An object with it is not taken.
    Refused,
}

impl FieldStanding {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            FieldStanding::Honoured => "honoured",
            FieldStanding::Warned => "warned",
            FieldStanding::Refused => "refused",
        }
    }
}

/// The fields of one message.
#[derive(Debug)]
pub struct FieldTable {
    /// The message, whose every field is in one of the entries.
    pub of: &'static Message,
    /// What becomes of them.
    pub entries: &'static [TableEntry],
}

/// Fields of one message with the same standing.
#[derive(Debug)]
pub struct TableEntry {
    /// Their names in JSON.
    pub names: &'static [&'static str],
    /// What becomes of them.
    pub standing: FieldStanding,
    /// Values that pass though the field is warned of or refused, as Rust writes them; of a map, the keys that pass.
    pub unless: &'static [&'static str],
    /// What they are for, or why they are not taken and what to do; may be empty for honoured ones.
    pub sentence: &'static str,
    /// The fields within, if the field is an honoured message.
    pub within: Option<&'static FieldTable>,
}

impl FieldTable {
    /// What is said of a field.
    pub fn entry(&self, name: &str) -> Option<&'static TableEntry> {
        self.entries.iter().find(|entry| entry.names.contains(&name))
    }
}

/// Declares tables:
///
/// ```text
/// tables! {
///     NAME = MESSAGE {
///         honoured one, two: "What they are for.";
///         honoured spec => TABLE_WITHIN;
///         refused three ["a value that passes"]: "why, and what to do";
///     }
/// }
/// ```
macro_rules! tables {
    ($($id:ident = $message:path {
        $($standing:ident $($name:ident),+ $([$($unless:literal),+])? $(: $sentence:literal)? $(=> $within:ident)?;)*
    })*) => { $(
        pub(crate) static $id: $crate::fields::FieldTable = $crate::fields::FieldTable {
            of: &$message,
            entries: &[$($crate::fields::TableEntry {
                names: &[$(stringify!($name)),+],
                standing: $crate::fields::standing!($standing),
                unless: &[$($(stringify!($unless)),+)?],
                sentence: concat!($($sentence)?),
                within: $crate::fields::within!($($within)?),
            }),*],
        };
    )* };
}
pub(crate) use tables;

macro_rules! standing {
    (honoured) => {
        $crate::fields::FieldStanding::Honoured
    };
    (warned) => {
        $crate::fields::FieldStanding::Warned
    };
    (refused) => {
        $crate::fields::FieldStanding::Refused
    };
}
pub(crate) use standing;

macro_rules! within {
    () => {
        None
    };
    ($table:ident) => {
        Some(&$table)
    };
}
pub(crate) use within;

/// The table of a kind.
pub const fn fields(kind: Kind) -> &'static FieldTable {
    rules(kind).fields
}

/// A field of a kind as people look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLine {
    /// Its path, as in `spec.containers[].image`.
    pub path: String,
    /// What becomes of it.
    pub standing: FieldStanding,
    /// Values, or keys of a map, that pass all the same.
    pub unless: Vec<String>,
    /// What it is for, or why it is not taken and what to do.
    pub sentence: &'static str,
}

/// Every field of a kind, without those within a field that is not honoured, and without the status, which is no wish.
pub fn lines(kind: Kind) -> Vec<FieldLine> {
    let mut found = Vec::new();
    gather(fields(kind), "", &mut found);
    found
}

fn gather(table: &'static FieldTable, prefix: &str, found: &mut Vec<FieldLine>) {
    for field in table.of.json_fields() {
        let Some(entry) = table.entry(field.name) else { continue };
        if prefix.is_empty() && field.name == "status" {
            continue;
        }
        let list = if matches!(field.r#type, Type::Messages(_) | Type::Keyed(..)) { "[]" } else { "" };
        let path = format!("{prefix}{}{list}", field.name);
        match entry.within {
            Some(within) => gather(within, &format!("{path}."), found),
            None => {
                let unless = entry.unless.iter().map(|word| word.trim_matches('"').to_string()).collect();
                found.push(FieldLine { path, standing: entry.standing, unless, sentence: entry.sentence });
            }
        }
    }
}

#[cfg(test)]
mod tests;
