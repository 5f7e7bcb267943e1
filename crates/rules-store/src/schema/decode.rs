use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::{Shape, Type, schema};
use crate::request::FieldValidation;
use crate::{Failure, Resource};

/// Holds an object to the schema of its kind: wrong types are refused, nulls are left out, fields the kind does not
/// have are dropped, and reported as the sender asked for. Answers with the warnings.
pub(crate) fn decode(
    resource: &'static Resource,
    body: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Failure> {
    let mut unknown = Vec::new();
    object(schema(resource), body, &Path::Root, &mut unknown)?;
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(unknown),
        FieldValidation::Strict if unknown.is_empty() => Ok(unknown),
        FieldValidation::Strict => Err(Failure::bad_request(format!("strict decoding error: {}", unknown.join(", ")))),
    }
}

/// Where we are; made into text only when somebody has to be told.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(Path::Root, name) => String::from(*name),
            Path::Field(parent, name) => format!("{}.{name}", parent.text()),
            Path::Item(parent, at) => format!("{}[{at}]", parent.text()),
        }
    }
}

fn object(of: &'static Type, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), Failure> {
    let map = as_object(value, path)?;
    map.retain(|key, value| {
        let known = of.shape(key).is_some();
        if !known {
            unknown.push(format!("unknown field \"{}\"", Path::Field(path, key).text()));
        }
        known && !value.is_null()
    });
    for (key, value) in map.iter_mut() {
        if let Some(shape) = of.shape(key) {
            field(shape, value, &Path::Field(path, key), unknown)?;
        }
    }
    Ok(())
}

fn field(shape: &Shape, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), Failure> {
    match shape {
        Shape::Text | Shape::Time => expect(value.is_string(), value, "a string", path),
        Shape::Integer => expect(value.is_i64() || value.is_u64(), value, "a whole number", path),
        Shape::Boolean => expect(value.is_boolean(), value, "true or false", path),
        Shape::Quantity => quantity(value, path),
        Shape::IntOrText => expect(value.is_string() || value.is_i64(), value, "a string or a whole number", path),
        Shape::Texts | Shape::TextSet => {
            each(value, path, |item, path| expect(item.is_string(), item, "a string", path))
        }
        Shape::TextMap | Shape::BytesMap => {
            values(value, path, |item, path| {
                // A null in a map of strings has always been read as the empty string.
                if item.is_null() {
                    *item = Value::String(String::new());
                }
                expect(item.is_string(), item, "a string", path)
            })
        }
        Shape::QuantityMap => values(value, path, quantity),
        Shape::Object(of) => object(of, value, path, unknown),
        Shape::Objects(of) | Shape::Keyed(of, _) => each(value, path, |item, path| object(of, item, path, unknown)),
        Shape::Opaque => as_object(value, path).map(drop),
        Shape::OpaqueList => each(value, path, |_, _| Ok(())),
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
