use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::PatchError;
use super::budget::Budget;

/// Kubernetes takes no more operations than this in one patch.
const MOST_OPERATIONS: usize = 10_000;

/// RFC 6902. On failure the document is in an unspecified state: patch a copy. Time, memory and depth are bounded,
/// whatever the patch says.
pub fn json_patch(document: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed("a JSON patch must be a list of operations".into()));
    };
    if operations.len() > MOST_OPERATIONS {
        let (most, got) = (MOST_OPERATIONS, operations.len());
        return Err(PatchError::TooLarge(format!("a JSON patch takes at most {most} operations, not {got}")));
    }
    let mut budget = Budget::new();
    for operation in operations {
        step(document, operation, &mut budget)?;
    }
    Ok(())
}

fn step(document: &mut Value, operation: &Value, budget: &mut Budget) -> Result<(), PatchError> {
    let path = text(operation, "path")?;
    match text(operation, "op")? {
        "test" => {
            if find(document, path)? == value(operation)? {
                return Ok(());
            }
            Err(PatchError::Mismatch(format!("the test of {path} failed: the value there is another one")))
        }
        "add" => {
            Budget::put(value(operation)?, path)?;
            add(document, path, value(operation)?.clone(), budget)
        }
        "replace" => {
            Budget::put(value(operation)?, path)?;
            *find_mut(document, path)? = value(operation)?.clone();
            Ok(())
        }
        "remove" => remove(document, path, budget).map(drop),
        "copy" => {
            let copied = find(document, text(operation, "from")?)?;
            budget.copy(copied, path)?;
            add(document, path, copied.clone(), budget)
        }
        "move" => {
            let from = text(operation, "from")?;
            if path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
                return Err(PatchError::Malformed(format!("{from} cannot be moved into itself")));
            }
            let moved = remove(document, from, budget)?;
            budget.carry(&moved, path)?;
            add(document, path, moved, budget)
        }
        other => Err(PatchError::Malformed(format!("{other:?} is not a JSON patch operation"))),
    }
}

fn text<'a>(operation: &'a Value, key: &str) -> Result<&'a str, PatchError> {
    operation[key].as_str().ok_or_else(|| PatchError::Malformed(format!("a JSON patch operation needs a text {key:?}")))
}

fn value(operation: &Value) -> Result<&Value, PatchError> {
    operation.get("value").ok_or_else(|| PatchError::Malformed("this JSON patch operation needs a \"value\"".into()))
}

fn missing(path: &str) -> PatchError {
    PatchError::Mismatch(format!("there is nothing at {path}"))
}

fn tokens(path: &str) -> Result<Vec<String>, PatchError> {
    match path.strip_prefix('/') {
        Some(rest) => Ok(rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect()),
        None if path.is_empty() => Ok(Vec::new()),
        None => Err(PatchError::Malformed(format!("the path {path:?} must start with a slash"))),
    }
}

/// A list position: digits without a leading zero.
fn position(token: &str) -> Option<usize> {
    let canonical = token == "0" || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
    if canonical { token.parse().ok() } else { None }
}

fn find<'a>(document: &'a Value, path: &str) -> Result<&'a Value, PatchError> {
    let mut here = document;
    for token in tokens(path)? {
        here = match here {
            Value::Object(map) => map.get(&token),
            Value::Array(list) => position(&token).and_then(|at| list.get(at)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
        .ok_or_else(|| missing(path))?;
    }
    Ok(here)
}

fn find_mut<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, PatchError> {
    let mut here = document;
    for token in tokens(path)? {
        here = match here {
            Value::Object(map) => map.get_mut(&token),
            Value::Array(list) => position(&token).and_then(|at| list.get_mut(at)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
        .ok_or_else(|| missing(path))?;
    }
    Ok(here)
}

/// The container a path ends in, and the last step.
fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), PatchError> {
    let last = tokens(path)?.pop().unwrap_or_default();
    let cut = path.rfind('/').unwrap_or(0);
    Ok((find_mut(document, &path[..cut])?, last))
}

fn add(document: &mut Value, path: &str, value: Value, budget: &mut Budget) -> Result<(), PatchError> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (container, token) = parent(document, path)?;
    match container {
        Value::Object(map) => {
            map.insert(token, value);
            Ok(())
        }
        Value::Array(list) => {
            let at = if token == "-" { Some(list.len()) } else { position(&token) };
            let at = at.filter(|at| *at <= list.len()).ok_or_else(|| missing(path))?;
            budget.shift(list.len() - at)?;
            list.insert(at, value);
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(missing(path)),
    }
}

fn remove(document: &mut Value, path: &str, budget: &mut Budget) -> Result<Value, PatchError> {
    if path.is_empty() {
        return Err(PatchError::Malformed("the whole object cannot be removed by a patch; delete it".to_string()));
    }
    let (container, token) = parent(document, path)?;
    match container {
        Value::Object(map) => map.remove(&token).ok_or_else(|| missing(path)),
        Value::Array(list) => {
            let at = position(&token).filter(|at| *at < list.len()).ok_or_else(|| missing(path))?;
            budget.shift(list.len() - at)?;
            Ok(list.remove(at))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(missing(path)),
    }
}
