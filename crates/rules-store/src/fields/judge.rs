use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use serde_json::{Map, Value};
use wire::{Presence, Type};

use super::{FieldStanding, FieldTable, TableEntry, fields};
use crate::path::Path;
use crate::{FieldError, FieldProblem};

/// Fields that are named; an object of thousands of containers is not told of each.
const MOST_TOLD: usize = 100;

/// What is to be said of the fields of an object.
#[derive(Default)]
pub(crate) struct Verdict {
    pub refused: Vec<FieldError>,
    pub warnings: Vec<String>,
}

/// Judges what an object newly sets: all of a new one, of a change what the object did not say before. An object that
/// was stored when nobody looked can so be changed and deleted as ever.
pub(crate) fn judge(kind: Kind, old: Option<&Value>, new: &Value) -> Verdict {
    let mut verdict = Verdict::default();
    if let Value::Object(new) = new {
        object(fields(kind), old, new, &Path::Root, &mut verdict);
    }
    verdict
}

fn object(
    table: &'static FieldTable,
    old: Option<&Value>,
    new: &Map<String, Value>,
    path: &Path<'_>,
    verdict: &mut Verdict,
) {
    for (key, value) in new {
        let Some(entry) = table.entry(key) else { continue };
        let (before, path) = (old.and_then(|old| old.get(key)), Path::Field(path, key));
        match (entry.standing, entry.within) {
            (FieldStanding::Honoured, None) => {}
            (FieldStanding::Honoured, Some(within)) => match value {
                Value::Object(value) => object(within, before, value, &path, verdict),
                Value::Array(list) => {
                    let identity = match table.of.field(key).map(|field| field.r#type) {
                        Some(Type::Keyed(_, identity)) => Some(identity),
                        Some(_) | None => None,
                    };
                    items(within, identity, before, list, &path, verdict);
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            },
            (FieldStanding::Warned | FieldStanding::Refused, _) => {
                if before != Some(value) && is_set(table, key, value) {
                    unhonoured(entry, value, &path, verdict);
                }
            }
        }
    }
}

fn items(
    within: &'static FieldTable,
    identity: Option<&str>,
    before: Option<&Value>,
    list: &[Value],
    path: &Path<'_>,
    verdict: &mut Verdict,
) {
    let before = before.and_then(Value::as_array);
    let mut by_identity = None;
    for (at, item) in list.iter().enumerate() {
        let Value::Object(item) = item else { continue };
        let old = match (before, identity) {
            (Some(before), Some(key)) => {
                // Usually it is where it was. The rest is looked up: lists can be long.
                let there = before.get(at).filter(|old| old.get(key) == item.get(key));
                there.or_else(|| {
                    let known = by_identity.get_or_insert_with(|| named(before, key));
                    known.get(item.get(key)?.as_str()?).copied()
                })
            }
            (Some(before), None) => before.get(at),
            (None, _) => None,
        };
        object(within, old, item, &Path::Item(path, at), verdict);
    }
}

fn named<'a>(list: &'a [Value], key: &str) -> BTreeMap<&'a str, &'a Value> {
    list.iter().filter_map(|item| Some((item.get(key)?.as_str()?, item))).collect()
}

/// What Go leaves out, or would not tell from unset, is not set.
fn is_set(table: &FieldTable, key: &str, value: &Value) -> bool {
    let pointer = || table.of.field(key).is_some_and(|field| field.presence == Presence::Pointer);
    match value {
        Value::Null => false,
        Value::Bool(said) => *said || pointer(),
        Value::Number(number) => number.as_i64() != Some(0) || pointer(),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty() || pointer(),
    }
}

fn unhonoured(entry: &TableEntry, value: &Value, path: &Path<'_>, verdict: &mut Verdict) {
    let passes = |value: &Value| entry.unless.iter().any(|usual| is_word(usual, value));
    match value {
        Value::Object(map) if !entry.unless.is_empty() => {
            for key in map.keys().filter(|key| !entry.unless.iter().any(|usual| is_text(usual, key))) {
                tell(entry, &Path::Field(path, key), verdict);
            }
        }
        Value::Array(list) if !list.iter().all(passes) => tell(entry, path, verdict),
        Value::Array(_) => {}
        value if passes(value) => {}
        _value => tell(entry, path, verdict),
    }
}

fn is_text(usual: &str, text: &str) -> bool {
    usual.strip_prefix('"').and_then(|usual| usual.strip_suffix('"')) == Some(text)
}

fn is_word(usual: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => is_text(usual, text),
        Value::Bool(said) => usual == if *said { "true" } else { "false" },
        Value::Number(number) => number.as_i64().is_some_and(|number| usual.parse() == Ok(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn tell(entry: &TableEntry, path: &Path<'_>, verdict: &mut Verdict) {
    match entry.standing {
        FieldStanding::Warned if verdict.warnings.len() < MOST_TOLD => {
            verdict.warnings.push(format!("{}: {}", path.text(), entry.sentence));
        }
        FieldStanding::Refused if verdict.refused.len() < MOST_TOLD => {
            verdict.refused.push(FieldError::new(path.text(), FieldProblem::Forbidden, entry.sentence));
        }
        FieldStanding::Honoured | FieldStanding::Warned | FieldStanding::Refused => {}
    }
}
