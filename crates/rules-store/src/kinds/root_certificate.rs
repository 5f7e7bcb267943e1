//! The certificate by which programs know this server, in every namespace: pods mount it beside their token.

use alloc::vec::Vec;

use api::Kind;
use serde_json::{Value, json};

use crate::{Change, EventType, PatchKind, Request, Store, Target, WriteOptions};

/// The config map, and the entry of it that pods look for.
pub(super) const NAME: &str = "kube-root-ca.crt";
pub(super) const ENTRY: &str = "ca.crt";

/// What is to be written so that every namespace that stays has the certificate.
pub fn root_certificates(store: &Store, certificate: &str) -> Vec<Request> {
    store.list(Kind::Namespace, None).filter_map(|home| missing(store, &home.key.name, certificate)).collect()
}

/// The same, of the namespaces that these changes made, or took the certificate from.
pub fn root_certificates_after(store: &Store, changes: &[Change], certificate: &str) -> Vec<Request> {
    let lacking = changes.iter().filter_map(|change| {
        let key = &change.object.key;
        match (key.kind, change.event) {
            (Kind::Namespace, EventType::Added) => missing(store, &key.name, certificate),
            (Kind::ConfigMap, _) if &*key.name == NAME => missing(store, &key.namespace, certificate),
            _others => None,
        }
    });
    lacking.collect()
}

fn missing(store: &Store, namespace: &str, certificate: &str) -> Option<Request> {
    let stays = store.get(Kind::Namespace, "", namespace).is_some_and(|home| !home.is_deleting());
    let (kind, options, data) = (Kind::ConfigMap, WriteOptions::default(), json!({ ENTRY: certificate }));
    match store.get(kind, namespace, NAME) {
        _any if !stays => None,
        Some(map) if map.is_deleting() || map.value.get("data") == Some(&data) => None,
        // What is not the certificate does not belong there.
        Some(map) => {
            let other = map.value.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.keys());
            let mut data = data;
            other.filter(|key| *key != ENTRY).for_each(|key| data[key.as_str()] = Value::Null);
            let target = Target::new(kind, namespace, NAME);
            Some(Request::Patch {
                target,
                subresource: None,
                kind: PatchKind::Merge,
                body: json!({ "data": data }),
                options,
            })
        }
        None => {
            let body = json!({ "metadata": { "name": NAME }, "data": data });
            Some(Request::Create { kind, namespace: namespace.into(), body, options })
        }
    }
}
