//! The token of a pod that is to have one: a volume that shows it where Kubernetes' clients look for it.
//!
//! Kubernetes gives it to every pod that does not say `automountServiceAccountToken: false`. Most pods here reach no
//! network, so only those get it that say `true`, or whose account does.

use alloc::format;
use alloc::vec::Vec;

use api::Kind;
use serde_json::{Value, json};

use super::super::root_certificate;
use crate::{Store, generate_name, meta};

const PLACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const PREFIX: &str = "kube-api-access-";
/// What Kubernetes asks for: an hour, told apart from one that a user asked for.
const SECONDS: i64 = 3607;

/// Adds the volume, and mounts it in every container that has nothing else in its place.
pub(super) fn admit(store: &Store, pod: &mut Value) {
    if !wanted(store, pod) {
        return;
    }
    let name = format!("{PREFIX}{}", generate_name::suffix(meta::text(pod, "uid"), 0));
    let mut used = false;
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != PLACE) {
                mounts.push(json!({ "name": name, "readOnly": true, "mountPath": PLACE }));
                used = true;
            }
        }
    }
    if used && let Some(spec) = pod["spec"].as_object_mut() {
        let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
        let mut all: Vec<Value> = volumes.as_array().cloned().unwrap_or_default();
        all.push(volume(&name));
        *volumes = Value::Array(all);
    }
}

/// What the pod says counts, and otherwise what its account says.
fn wanted(store: &Store, pod: &Value) -> bool {
    const FIELD: &str = "automountServiceAccountToken";
    let Some(spec) = pod.get("spec").filter(|spec| spec.is_object()) else { return false };
    let account = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty());
    let account = account.or_else(|| spec["serviceAccount"].as_str().filter(|name| !name.is_empty()));
    let of_account = || {
        let found = store.get(Kind::ServiceAccount, meta::text(pod, "namespace"), account.unwrap_or("default"))?;
        found.value.get(FIELD)?.as_bool()
    };
    spec.get(FIELD).and_then(Value::as_bool).or_else(of_account) == Some(true)
}

fn volume(name: &str) -> Value {
    let certificate = json!([{ "key": root_certificate::ENTRY, "path": root_certificate::ENTRY }]);
    let field = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    json!({ "name": name, "projected": { "sources": [
        { "serviceAccountToken": { "expirationSeconds": SECONDS, "path": "token" } },
        { "configMap": { "name": root_certificate::NAME, "items": certificate } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": field }] } },
    ] } })
}
