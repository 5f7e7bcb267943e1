use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use serde_json::{Map, Value};
use wire::{Message, Type, canonical_time};

use crate::Failure;
use crate::kinds::rules;
use crate::path::Path;
use crate::request::FieldValidation;

/// Holds an object to the schema of its kind: wrong types are refused, nulls are left out, fields the kind does not
/// have are dropped, and reported as the sender asked for. Answers with the warnings.
pub(crate) fn decode(kind: Kind, body: &mut Value, validation: FieldValidation) -> Result<Vec<String>, Failure> {
    let mut unknown = Vec::new();
    root(rules(kind).schema, body, &mut unknown)?;
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(unknown),
        FieldValidation::Strict if unknown.is_empty() => Ok(unknown),
        FieldValidation::Strict => Err(Failure::bad_request(format!("strict decoding error: {}", unknown.join(", ")))),
    }
}

/// Unknown fields that are told; Kubernetes stops there as well.
const MOST_TOLD: usize = 100;

/// The object itself, which says its version and kind besides its fields.
fn root(of: &'static Message, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), Failure> {
    let map = as_object(value, &Path::Root)?;
    let envelope = ["apiVersion", "kind"].map(|key| (key, map.remove(key)));
    object(of, value, &Path::Root, unknown)?;
    for (key, said) in envelope {
        if let (Some(said), Value::Object(map)) = (said, &mut *value) {
            expect(said.is_string(), &said, "a string", &Path::Field(&Path::Root, key))?;
            map.insert(key.into(), said);
        }
    }
    Ok(())
}

fn object(of: &'static Message, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), Failure> {
    let map = as_object(value, path)?;
    map.retain(|key, value| {
        let known = of.field(key).is_some();
        if !known && unknown.len() < MOST_TOLD {
            unknown.push(format!("unknown field \"{}\"", Path::Field(path, key).text()));
        }
        known && !value.is_null()
    });
    for (key, value) in map.iter_mut() {
        if let Some(known) = of.field(key) {
            field(known.r#type, value, &Path::Field(path, key), unknown)?;
        }
    }
    Ok(())
}

fn field(r#type: Type, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), Failure> {
    match r#type {
        Type::String => expect(value.is_string(), value, "a string", path),
        Type::Time | Type::MicroTime => time(r#type, value, path),
        Type::Int32 => expect(is_int32(value), value, "a whole number of 32 bits", path),
        Type::Int64 => expect(value.is_i64(), value, "a whole number", path),
        Type::Bool => expect(value.is_boolean(), value, "true or false", path),
        Type::Quantity => quantity(value, path),
        Type::IntOrString => {
            expect(value.is_string() || is_int32(value), value, "a string or a whole number of 32 bits", path)
        }
        Type::Int32s => each(value, path, |item, path| expect(is_int32(item), item, "a whole number of 32 bits", path)),
        Type::Int64s => each(value, path, |item, path| expect(item.is_i64(), item, "a whole number", path)),
        Type::Strings | Type::StringSet => {
            each(value, path, |item, path| expect(item.is_string(), item, "a string", path))
        }
        Type::StringMap | Type::BytesMap => {
            values(value, path, |item, path| {
                // A null in a map of strings has always been read as the empty string.
                if item.is_null() {
                    *item = Value::String(String::new());
                }
                expect(item.is_string(), item, "a string", path)
            })
        }
        Type::QuantityMap => values(value, path, |item, path| {
            // As Go reads it.
            if item.is_null() {
                *item = "0".into();
            }
            quantity(item, path)
        }),
        Type::Message(of) => object(of, value, path, unknown),
        Type::Messages(of) | Type::Keyed(of, _) => each(value, path, |item, path| object(of, item, path, unknown)),
        Type::Unread => each(value, path, |_, _| Ok(())),
        // The fields of an inlined message are found by their own names.
        Type::Inline(_) => Ok(()),
    }
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

/// Times are stored in the one form that Kubernetes serves them in.
fn time(r#type: Type, value: &mut Value, path: &Path<'_>) -> Result<(), Failure> {
    match value.as_str().and_then(|text| canonical_time(r#type, text)) {
        Some(canonical) => {
            *value = Value::String(canonical);
            Ok(())
        }
        None => Err(wrong(value, "a time such as 2027-01-15T08:00:00Z", path)),
    }
}

/// Numbers are taken for quantities and stored as the strings they are served as.
fn quantity(value: &mut Value, path: &Path<'_>) -> Result<(), Failure> {
    if let Value::Number(number) = value {
        *value = Value::String(format!("{number}"));
    }
    expect(value.is_string(), value, "a quantity", path)
}

fn as_object<'a>(value: &'a mut Value, path: &Path<'_>) -> Result<&'a mut Map<String, Value>, Failure> {
    expect(value.is_object(), value, "an object", path)?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(wrong(value, "an object", path))
        }
    }
}

fn each(
    value: &mut Value,
    path: &Path<'_>,
    mut check: impl FnMut(&mut Value, &Path<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    expect(value.is_array(), value, "a list", path)?;
    if let Value::Array(list) = value {
        for (at, item) in list.iter_mut().enumerate() {
            check(item, &Path::Item(path, at))?;
        }
    }
    Ok(())
}

fn values(
    value: &mut Value,
    path: &Path<'_>,
    mut check: impl FnMut(&mut Value, &Path<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (key, item) in as_object(value, path)?.iter_mut() {
        check(item, &Path::Field(path, key))?;
    }
    Ok(())
}

fn expect(fits: bool, value: &Value, wanted: &str, path: &Path<'_>) -> Result<(), Failure> {
    if fits { Ok(()) } else { Err(wrong(value, wanted, path)) }
}

/// The value itself is not repeated: it may be part of a secret.
fn wrong(value: &Value, wanted: &str, path: &Path<'_>) -> Failure {
    let got = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Failure::bad_request(format!("the field \"{}\" must be {wanted}, not {got}", path.text()))
}
