//! Reading and writing the parts of `metadata` the server itself owns.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value, json};

/// The `metadata` of an object; made if it is missing or not an object.
pub(crate) fn of(value: &mut Value) -> &mut Map<String, Value> {
    object_at(value, "metadata")
}

/// The object under a key; made if it is missing or something else.
pub(crate) fn object_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let map = force_object(value);
    force_object(map.entry(key).or_insert_with(|| json!({})))
}

fn force_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("the value was made an object above")
        }
    }
}

/// A text in `metadata`, or nothing.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value["metadata"][key].as_str().unwrap_or_default()
}

pub(crate) fn set_default(value: &mut Value, key: &str, text: &str) {
    let meta = of(value);
    if meta.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
        meta.insert(key.into(), text.into());
    }
}

/// Writes the resource version; revision 0 means there is none.
pub(crate) fn set_revision(value: &mut Value, revision: u64) {
    if revision == 0 {
        of(value).remove("resourceVersion");
    } else {
        of(value).insert("resourceVersion".into(), revision.to_string().into());
    }
}

pub(crate) fn is_deleting(value: &Value) -> bool {
    value["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn finalizers(value: &Value) -> Vec<&str> {
    value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn add_finalizer(value: &mut Value, finalizer: &str) {
    if !finalizers(value).contains(&finalizer) {
        match of(value).entry("finalizers").or_insert_with(|| json!([])) {
            Value::Array(list) => list.push(finalizer.into()),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                *other = json!([finalizer]);
            }
        }
    }
}

pub(crate) fn annotation<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value["metadata"]["annotations"][key].as_str()
}

/// Copies a key of one object's metadata to another's, or removes it there.
pub(crate) fn carry(from: &Value, to: &mut Value, key: &str) {
    let value = from["metadata"].get(key).cloned();
    let meta = of(to);
    match value {
        Some(value) => meta.insert(key.into(), value),
        None => meta.remove(key),
    };
}

/// Copies a top-level key of one object to another, or removes it there.
pub(crate) fn carry_part(from: &Value, to: &mut Value, key: &str) {
    if let Value::Object(map) = to {
        match from.get(key).cloned() {
            Some(value) => map.insert(key.into(), value),
            None => map.remove(key),
        };
    }
}

/// Empty collections in metadata and no collections there are the same object; only one form is stored.
pub(crate) fn tidy(value: &mut Value) {
    let meta = of(value);
    for key in ["finalizers", "ownerReferences"] {
        if meta.get(key).is_some_and(|v| v.as_array().is_some_and(Vec::is_empty)) {
            meta.remove(key);
        }
    }
    for key in ["labels", "annotations"] {
        if meta.get(key).is_some_and(|v| v.as_object().is_some_and(Map::is_empty)) {
            meta.remove(key);
        }
    }
    for key in ["generateName", "namespace", "uid", "resourceVersion"] {
        if meta.get(key).is_some_and(|v| v.as_str() == Some("")) {
            meta.remove(key);
        }
    }
    // Ownership of fields is not kept here, and the self link has not been served for years.
    meta.remove("managedFields");
    meta.remove("selfLink");
}
