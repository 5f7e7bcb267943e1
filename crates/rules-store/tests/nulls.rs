//! Objects are read as Go reads them: null is the zero value, wherever it stands.

use api::{Kind, Object};
use rules_store::schema;
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
