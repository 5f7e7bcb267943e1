//! What pods put up with that say nothing about it: a node that is not ready, or not heard of, for a while (the
//! admission plugin DefaultTolerationSeconds).

use alloc::vec::Vec;

use api::names;
use serde_json::{Value, json};

use crate::Store;

const TAINTS: [&str; 2] = [names::NOT_READY_TAINT, names::UNREACHABLE_TAINT];

/// Adds a toleration for each of both taints, unless there is one that fits, for however long.
pub(super) fn admit(store: &Store, pod: &mut Value) {
    let seconds = [store.tolerance.not_ready, store.tolerance.unreachable];
    add(pod, TAINTS.into_iter().zip(seconds).map(|(key, seconds)| toleration(key, seconds)));
}

/// A write that leaves out what was added to the pod gets it again: a pod keeps its tolerations.
pub(super) fn keep(old: Option<&Value>, pod: &mut Value) {
    let held = old.and_then(|old| old["spec"]["tolerations"].as_array());
    let is_added = |held: &Value| {
        let added = held["key"].as_str().zip(held["tolerationSeconds"].as_u64());
        added.is_some_and(|(key, seconds)| TAINTS.contains(&key) && *held == toleration(key, seconds))
    };
    let added: Vec<Value> = held.into_iter().flatten().filter(|held| is_added(held)).cloned().collect();
    if !added.is_empty() {
        add(pod, added.into_iter());
    }
}

fn toleration(key: &str, seconds: impl Into<Value>) -> Value {
    json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds.into() })
}

fn add(pod: &mut Value, wanted: impl Iterator<Item = Value>) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    // What is no list is refused later, as it came.
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for wanted in wanted {
        let says = |toleration: &Value, field: &str| {
            toleration[field].as_str().is_none_or(|said| said.is_empty() || wanted[field] == said)
        };
        if !tolerations.iter().any(|toleration| says(toleration, "key") && says(toleration, "effect")) {
            tolerations.push(wanted);
        }
    }
}
