use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};
use wire::{Message, Type};

use super::{PatchError, merge_patch};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";

/// What `$patch` asks for.
enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>) -> Result<Directive, PatchError> {
    match patch.get(DIRECTIVE) {
        None => Ok(Directive::Merge),
        Some(word) => match word.as_str() {
            Some("merge") => Ok(Directive::Merge),
            Some("replace") => Ok(Directive::Replace),
            Some("delete") => Ok(Directive::Delete),
            Some(_) | None => Err(PatchError::Malformed("$patch must be merge, replace or delete".into())),
        },
    }
}

/// A strategic merge along a schema: objects merge, keyed lists merge by key, sets unite, other lists are replaced.
pub fn strategic_merge(of: &'static Message, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match directive(patch)? {
        Directive::Merge => {}
        Directive::Replace => {
            *target = Value::Object(plain(patch));
            return Ok(());
        }
        Directive::Delete => {
            *target = Value::Null;
            return Ok(());
        }
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return Ok(()) };
    retain(target, patch)?;
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_PRIMITIVES) {
            delete_primitives(target, list, value)?;
        }
    }
    for (key, value) in patch {
        if key.starts_with('$') {
            // $patch and $retainKeys are done; $setElementOrder only asks for an order we do not keep.
            let known =
                key == DIRECTIVE || key == RETAIN || key.starts_with(ORDER) || key.starts_with(DELETE_PRIMITIVES);
            if !known {
                return Err(PatchError::Malformed(format!("{key:?} is not a directive of a strategic merge patch")));
            }
        } else if value.is_null() {
            target.remove(key);
        } else {
            let place = target.entry(key.as_str()).or_insert(Value::Null);
            merge_field(of.field(key).map(|field| field.r#type), place, value)?;
            if place.is_null() {
                target.remove(key);
            }
        }
    }
    Ok(())
}

fn merge_field(r#type: Option<Type>, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    match r#type {
        Some(Type::Message(of)) => strategic_merge(of, target, patch),
        Some(Type::Keyed(of, key)) => merge_keyed(of, key, target, patch),
        Some(Type::StringSet) => merge_set(target, patch),
        Some(Type::StringMap | Type::QuantityMap | Type::BytesMap) | None => merge_open(target, patch),
        Some(_replaced) => {
            *target = patch.clone();
            Ok(())
        }
    }
}

/// Maps, and objects whose fields we do not know: they merge as in RFC 7396, with the directives honoured.
fn merge_open(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(map) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match directive(map)? {
        Directive::Replace => *target = Value::Object(plain(map)),
        Directive::Delete => *target = Value::Null,
        Directive::Merge => {
            if let Value::Object(target) = target {
                retain(target, map)?;
            }
            merge_patch(target, &Value::Object(plain(map)));
        }
    }
    Ok(())
}

fn merge_keyed(of: &'static Message, key: &str, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(items) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(list) = target else { return Ok(()) };
    // A marker anywhere in the list means that the other items are the whole list.
    if items.iter().any(|item| item[DIRECTIVE].as_str() == Some("replace")) {
        *list = items.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect();
        return Ok(());
    }
    // By the text of their keys, so that long lists do not take the square of their length.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (at, have) in list.iter().enumerate() {
        places.entry(have.get(key).unwrap_or(&Value::Null).to_string()).or_insert(at);
    }
    let mut gone = BTreeSet::new();
    for item in items {
        let Value::Object(map) = item else {
            return Err(PatchError::Malformed(format!("the items of a list merged by {key:?} must be objects")));
        };
        let Some(id) = map.get(key) else {
            return Err(PatchError::Malformed(format!(
                "an item of a list merged by {key:?} does not name its {key:?}"
            )));
        };
        let id = id.to_string();
        match (directive(map)?, places.get(&id).copied()) {
            (Directive::Delete, Some(at)) => {
                gone.insert(at);
                places.remove(&id);
            }
            (Directive::Delete, None) => {}
            (Directive::Merge | Directive::Replace, Some(at)) => strategic_merge(of, &mut list[at], item)?,
            (Directive::Merge | Directive::Replace, None) => {
                let mut made = Value::Null;
                strategic_merge(of, &mut made, item)?;
                places.insert(id, list.len());
                list.push(made);
            }
        }
    }
    let mut at = 0..;
    list.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
    Ok(())
}

fn merge_set(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    match (target, patch) {
        (Value::Array(list), Value::Array(more)) => {
            let mut have = texts(list);
            list.extend(more.iter().filter(|item| have.insert(item.to_string())).cloned());
        }
        (target, patch) => *target = patch.clone(),
    }
    Ok(())
}

/// Items by their text: values have no order, and a search through a list for each of another takes too long.
fn texts(list: &[Value]) -> BTreeSet<String> {
    list.iter().map(Value::to_string).collect()
}

fn delete_primitives(target: &mut Map<String, Value>, list: &str, values: &Value) -> Result<(), PatchError> {
    let Value::Array(values) = values else {
        return Err(PatchError::Malformed(format!("{DELETE_PRIMITIVES}{list} must be a list")));
    };
    if let Some(Value::Array(list)) = target.get_mut(list) {
        let gone = texts(values);
        list.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// `$retainKeys`: everything it does not name goes, because it belongs to another choice of a union.
fn retain(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    match patch.get(RETAIN) {
        None => Ok(()),
        Some(Value::Array(keys)) => {
            let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
            target.retain(|key, _| keys.contains(key.as_str()));
            Ok(())
        }
        Some(_) => Err(PatchError::Malformed("$retainKeys must be a list of field names".into())),
    }
}

/// A patch object without its directives and without its removals.
fn plain(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}
