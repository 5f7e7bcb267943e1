//! Objects are read as Go reads them: null is the zero value, wherever it stands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod common;

use api::{Kind, Object};
use common::Cluster;
use rules_store::{Failure, schema};
use serde_json::{Value, json};

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(at.clone());
                places(value, &at, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let at = format!("{at}/{index}");
                found.push(at.clone());
                places(value, &at, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn read_kinds() -> impl Iterator<Item = Kind> {
    Object::KINDS.into_iter().chain([Kind::Secret])
}

#[test]
fn null_at_any_place_of_any_kind_is_read() {
    for kind in read_kinds() {
        let full = wire::example(schema(kind));
        let mut found = Vec::new();
        places(&full, "", &mut found);
        assert!(found.len() > 20, "{kind} has fields");
        for place in found {
            let mut object = full.clone();
            *object.pointer_mut(&place).unwrap() = Value::Null;
            let bytes = object.to_string();
            let read = Object::from_json(kind, object).unwrap_or_else(|error| panic!("{kind} {place}: {error}"));
            assert_eq!(Object::from_slice(kind, bytes.as_bytes()), Ok(read), "{kind} {place}");
        }
    }
}

/// What the server makes of an object that is sent: what it holds then, or why it refuses.
fn answer(kind: Kind, object: Value) -> Result<Value, Failure> {
    Ok(Cluster::new().try_create(kind.plural(), object)?.reply.value.clone())
}

/// The object without the field at a place; `None` for the entry of a list.
fn without(object: &Value, place: &str) -> Option<Value> {
    let (parent, field) = place.rsplit_once('/').unwrap();
    let mut object = object.clone();
    object.pointer_mut(parent)?.as_object_mut()?.remove(&field.replace("~1", "/").replace("~0", "~"))?;
    Some(object)
}

// Every kind that is served, also those that no rule reads. Where a field may be missing, null is as good as that;
// where it may not, both are refused with the same words.
#[test]
fn null_that_is_sent_is_a_field_that_is_missing() {
    for kind in Kind::ALL {
        let mut full = wire::example(schema(kind));
        full["metadata"] = json!({ "name": "text", "labels": {}, "finalizers": ["example.com/a"] });
        let mut found = Vec::new();
        places(&full, "", &mut found);
        let mut tried = 0;
        // What `wire::example` calls the entries of maps: those are no fields.
        for place in found.iter().filter(|place| !["key", "storage"].contains(&place.rsplit('/').next().unwrap())) {
            let Some(missing) = without(&full, place) else { continue };
            let mut null = full.clone();
            *null.pointer_mut(place).unwrap() = Value::Null;
            assert_eq!(answer(kind, null), answer(kind, missing), "{kind} {place}");
            tried += 1;
        }
        assert!(tried >= 3, "{kind} has fields");
    }
}

// As Go reads an entry that is null: the zero value of the map's type.
#[test]
fn null_in_a_map_is_an_empty_text_or_no_quantity() {
    let claim = json!({
        "metadata": { "name": "data", "labels": { "app": null } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" }, "limits": { "storage": null } },
        },
    });
    let mut written = claim.clone();
    written["metadata"]["labels"]["app"] = "".into();
    written["spec"]["resources"]["limits"]["storage"] = "0".into();
    assert_eq!(answer(Kind::PersistentVolumeClaim, claim), answer(Kind::PersistentVolumeClaim, written));
}

#[test]
fn the_first_csi_node_of_a_kubelet_is_read() {
    let node = json!({ "metadata": { "name": "n" }, "spec": { "drivers": null } });
    let Ok(Object::CSINode(node)) = Object::from_json(Kind::CSINode, node) else { panic!("it is a CSINode") };
    assert!(node.spec.drivers.is_empty());
}

#[test]
fn what_cannot_be_understood_is_named() {
    let claim = json!({ "spec": { "accessModes": "ReadWriteOnce" } });
    let error = Object::from_json(Kind::PersistentVolumeClaim, claim).unwrap_err().to_string();
    assert!(error.contains("PersistentVolumeClaim") && error.contains("expected a sequence"), "{error}");
    let error = Object::from_json(Kind::Namespace, json!({})).unwrap_err();
    assert!(error.to_string().contains("no rule reads objects of kind Namespace"), "{error}");
}
