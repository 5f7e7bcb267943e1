//! The patch languages: the examples of their specifications, and the laws that hold for every document.
#![allow(clippy::unwrap_used)]

mod common;

use common::named;
use prove_lab::Dice;
use rules_store::*;
use serde_json::{Value, json};

#[test]
fn merge_patch_agrees_with_rfc_7396_appendix_a() {
    for (mut document, patch, result) in [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a":"b"}), json!(["c"]), json!(["c"])),
        (json!({"a":"foo"}), json!(null), json!(null)),
        (json!({"a":"foo"}), json!("bar"), json!("bar")),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ] {
        merge_patch(&mut document, &patch);
        assert_eq!(document, result, "{patch}");
    }
}

#[test]
fn json_patch_agrees_with_rfc_6902_appendix_a() {
    for (mut document, patch, result) in [
        (json!({"foo":"bar"}), json!([{"op":"add","path":"/baz","value":"qux"}]), json!({"baz":"qux","foo":"bar"})),
        (
            json!({"foo":["bar","baz"]}),
            json!([{"op":"add","path":"/foo/1","value":"qux"}]),
            json!({"foo":["bar","qux","baz"]}),
        ),
        (json!({"baz":"qux","foo":"bar"}), json!([{"op":"remove","path":"/baz"}]), json!({"foo":"bar"})),
        (json!({"foo":["bar","qux","baz"]}), json!([{"op":"remove","path":"/foo/1"}]), json!({"foo":["bar","baz"]})),
        (
            json!({"baz":"qux","foo":"bar"}),
            json!([{"op":"replace","path":"/baz","value":"boo"}]),
            json!({"baz":"boo","foo":"bar"}),
        ),
        (
            json!({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}),
            json!([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]),
            json!({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}),
        ),
        (
            json!({"foo":["all","grass","cows","eat"]}),
            json!([{"op":"move","from":"/foo/1","path":"/foo/3"}]),
            json!({"foo":["all","cows","eat","grass"]}),
        ),
        (
            json!({"foo":"bar"}),
            json!([{"op":"add","path":"/child","value":{"grandchild":{}}}]),
            json!({"foo":"bar","child":{"grandchild":{}}}),
        ),
        (json!({"/":9,"~1":10}), json!([{"op":"test","path":"/~01","value":10}]), json!({"/":9,"~1":10})),
        (
            json!({"foo":["bar"]}),
            json!([{"op":"add","path":"/foo/-","value":["abc","def"]}]),
            json!({"foo":["bar",["abc","def"]]}),
        ),
        (json!({"a":{"b":1}}), json!([{"op":"copy","from":"/a","path":"/c"}]), json!({"a":{"b":1},"c":{"b":1}})),
        (json!({"a":1}), json!([{"op":"replace","path":"","value":{"b":2}}]), json!({"b":2})),
    ] {
        json_patch(&mut document, &patch).unwrap();
        assert_eq!(document, result, "{patch}");
    }
}

#[test]
fn json_patches_that_do_not_fit_are_refused() {
    let document = json!({ "foo": "bar", "list": ["a"], "/": 9 });
    for (patch, code) in [
        (json!([{"op":"test","path":"/foo","value":"secret"}]), 422),
        (json!([{"op":"test","path":"/nothing","value":null}]), 422),
        (json!([{"op":"add","path":"/baz/bat","value":"qux"}]), 422),
        (json!([{"op":"add","path":"/list/2","value":"x"}]), 422),
        (json!([{"op":"add","path":"/list/01","value":"x"}]), 422),
        (json!([{"op":"remove","path":"/list/1"}]), 422),
        (json!([{"op":"remove","path":"/baz"}]), 422),
        (json!([{"op":"replace","path":"/baz","value":1}]), 422),
        (json!([{"op":"remove","path":""}]), 400),
        (json!([{"op":"move","from":"/foo","path":"/foo/x"}]), 400),
        (json!([{"op":"add","path":"baz","value":1}]), 400),
        (json!([{"op":"add","path":"/baz"}]), 400),
        (json!([{"op":"spin","path":"/baz"}]), 400),
        (json!({"op":"remove","path":"/foo"}), 400),
    ] {
        let error = json_patch(&mut document.clone(), &patch).unwrap_err();
        let wanted = if code == 422 {
            matches!(error, PatchError::Mismatch(_))
        } else {
            matches!(error, PatchError::Malformed(_))
        };
        assert!(wanted, "{patch}: {error:?}");
        assert!(!format!("{error:?}").contains("secret"), "values may be secret");
    }
}

fn strategic(plural: &str, document: Value, patch: Value) -> Value {
    let mut document = document;
    strategic_merge(schema(named(plural)), &mut document, &patch).unwrap();
    document
}

#[test]
fn strategic_merge_follows_the_keys_of_the_schema() {
    let volumes = |names: &[&str]| -> Value { names.iter().map(|n| json!({ "name": n })).collect() };
    let spec = |list: &str, value: Value| json!({ "spec": { list: value } });
    let meta = |list: &str, value: Value| json!({ "metadata": { list: value } });
    for (plural, document, patch, result) in [
        (
            "pods",
            spec("volumes", volumes(&["a", "b"])),
            spec("volumes", volumes(&["c"])),
            spec("volumes", volumes(&["a", "b", "c"])),
        ),
        (
            "pods",
            spec("volumes", json!([{"name":"a","emptyDir":{}}])),
            spec("volumes", json!([{"name":"a","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}])),
            spec("volumes", json!([{"name":"a","hostPath":{"path":"/x"}}])),
        ),
        (
            "pods",
            spec("volumes", volumes(&["a", "b"])),
            spec("volumes", json!([{"name":"a","$patch":"delete"}])),
            spec("volumes", volumes(&["b"])),
        ),
        (
            "pods",
            spec("volumes", volumes(&["a", "b"])),
            spec("volumes", json!([{"name":"c"},{"$patch":"replace"}])),
            spec("volumes", volumes(&["c"])),
        ),
        (
            "pods",
            spec(
                "containers",
                json!([{"name":"m","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"args":["x"]}]),
            ),
            spec("containers", json!([{"name":"m","env":[{"name":"B","value":"3"}],"args":["y"]}])),
            spec(
                "containers",
                json!([{"name":"m","env":[{"name":"A","value":"1"},{"name":"B","value":"3"}],"args":["y"]}]),
            ),
        ),
        (
            "pods",
            spec("containers", json!([{"name":"m","volumeMounts":[{"name":"v","mountPath":"/a"}]}])),
            spec(
                "containers",
                json!([{"name":"m","volumeMounts":[{"name":"w","mountPath":"/a"},{"name":"v","mountPath":"/b"}]}]),
            ),
            spec(
                "containers",
                json!([{"name":"m","volumeMounts":[{"name":"w","mountPath":"/a"},{"name":"v","mountPath":"/b"}]}]),
            ),
        ),
        (
            "pods",
            spec("tolerations", json!([{"key":"a"}])),
            spec("tolerations", json!([{"key":"b"}])),
            spec("tolerations", json!([{"key":"b"}])),
        ),
        (
            "nodes",
            spec("taints", json!([{"key":"a"}])),
            spec("taints", json!([{"key":"b"}])),
            spec("taints", json!([{"key":"b"}])),
        ),
        (
            "nodes",
            json!({"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Disk","status":"True"}]}}),
            json!({"status":{"conditions":[{"type":"Ready","status":"True"}],"$setElementOrder/conditions":[{"type":"Ready"},{"type":"Disk"}]}}),
            json!({"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Disk","status":"True"}]}}),
        ),
        (
            "csinodes",
            spec("drivers", json!([{"name":"a","nodeID":"1"}])),
            spec("drivers", json!([{"name":"b","nodeID":"2"}])),
            spec("drivers", json!([{"name":"a","nodeID":"1"},{"name":"b","nodeID":"2"}])),
        ),
        (
            "pods",
            meta("finalizers", json!(["a/a"])),
            meta("finalizers", json!(["b/b", "a/a"])),
            meta("finalizers", json!(["a/a", "b/b"])),
        ),
        (
            "pods",
            meta("finalizers", json!(["a/a", "b/b"])),
            meta("$deleteFromPrimitiveList/finalizers", json!(["a/a"])),
            meta("finalizers", json!(["b/b"])),
        ),
        (
            "pods",
            meta("ownerReferences", json!([{"uid":"1"}])),
            meta("ownerReferences", json!([{"uid":"2"}])),
            meta("ownerReferences", json!([{"uid":"1"},{"uid":"2"}])),
        ),
        (
            "pods",
            meta("labels", json!({"a":"1","b":"2"})),
            meta("labels", json!({"a":null,"c":"3"})),
            meta("labels", json!({"b":"2","c":"3"})),
        ),
        (
            "pods",
            meta("labels", json!({"a":"1"})),
            meta("labels", json!({"$patch":"replace","c":"3"})),
            meta("labels", json!({"c":"3"})),
        ),
        (
            "pods",
            json!({"spec":{"securityContext":{"runAsUser":1}}}),
            json!({"spec":{"securityContext":{"$patch":"delete"}}}),
            json!({"spec":{}}),
        ),
        (
            "persistentvolumes",
            spec("iscsi", json!({"iqn":"a","lun":1})),
            spec("iscsi", json!({"lun":2})),
            spec("iscsi", json!({"iqn":"a","lun":2})),
        ),
    ] {
        assert_eq!(strategic(plural, document, patch.clone()), result, "{patch}");
    }
}

#[test]
fn strategic_patches_that_make_no_sense_are_refused() {
    for patch in [
        json!({ "spec": { "volumes": [{ "emptyDir": {} }] } }),
        json!({ "spec": { "volumes": ["a"] } }),
        json!({ "spec": { "$patch": "explode" } }),
        json!({ "spec": { "$frobnicate": true } }),
        json!({ "spec": { "$retainKeys": "name" } }),
    ] {
        let refused = strategic_merge(schema(named("pods")), &mut json!({}), &patch);
        assert!(matches!(refused, Err(PatchError::Malformed(_))), "{patch}");
    }
}

fn document(dice: &mut Dice, depth: u64) -> Value {
    match dice.roll(if depth == 0 { 4 } else { 7 }) {
        0 => json!(dice.roll(3)),
        1 => json!(*dice.pick(&["x", "y", ""])),
        2 => json!(dice.roll(2) == 0),
        3 => json!([]),
        4 => (0..dice.roll(3)).map(|_| document(dice, depth - 1)).collect(),
        _ => {
            let fields =
                (0..dice.roll(4)).map(|_| (String::from(*dice.pick(&["a", "b", "c~/"])), document(dice, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

/// The merge patch that turns one object into another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let mut patch = serde_json::Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(have) if have == value => {}
            Some(have) => drop(patch.insert(key.clone(), difference(have, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[test]
fn merge_patches_reach_their_goal_and_rest_there() {
    let mut dice = Dice::new(0x5eed);
    for _ in 0..3000 {
        let (from, to) = (document(&mut dice, 3), document(&mut dice, 3));
        let patch = difference(&from, &to);
        let mut result = from.clone();
        merge_patch(&mut result, &patch);
        assert_eq!(result, to, "{from} patched with {patch}");
        let once = result.clone();
        merge_patch(&mut result, &patch);
        assert_eq!(result, once, "a merge patch is idempotent");
    }
}

#[test]
fn json_patches_undo_each_other() {
    let mut dice = Dice::new(0xcafe);
    for _ in 0..3000 {
        let mut base = document(&mut dice, 3);
        let value = document(&mut dice, 2);
        if !base.is_object() {
            base = json!({ "b": base });
        }
        let had = base.get("c~/").cloned();
        let path = "/c~0~1";
        let mut changed = base.clone();
        json_patch(&mut changed, &json!([{ "op": "add", "path": path, "value": value }])).unwrap();
        assert_eq!(changed["c~/"], value);
        let undo = match had {
            Some(had) => {
                json!([{ "op": "test", "path": path, "value": value }, { "op": "replace", "path": path, "value": had }])
            }
            None => json!([{ "op": "test", "path": path, "value": value }, { "op": "remove", "path": path }]),
        };
        json_patch(&mut changed, &undo).unwrap();
        assert_eq!(changed, base);
    }
}

#[test]
fn a_strategic_merge_is_idempotent_and_an_empty_one_changes_nothing() {
    let mut dice = Dice::new(0xf00d);
    let names = ["a", "b", "c"];
    for _ in 0..2000 {
        let mut body = || {
            let mut items: Vec<Value> = Vec::new();
            for name in names {
                if dice.roll(2) == 0 {
                    items.push(
                        json!({ "name": name, "image": dice.roll(3).to_string(), "args": [dice.roll(3).to_string()] }),
                    );
                }
            }
            json!({ "metadata": { "labels": { "l": dice.roll(3).to_string() } }, "spec": { "containers": items } })
        };
        let (base, patch) = (body(), body());
        assert_eq!(strategic("pods", base.clone(), json!({})), base);
        let once = strategic("pods", base.clone(), patch.clone());
        assert_eq!(strategic("pods", once.clone(), patch.clone()), once);
        // Every item of the patch is in the result as it says, every other item is as it was.
        let find = |value: &Value, name: &str| {
            value["spec"]["containers"].as_array().and_then(|l| l.iter().find(|c| c["name"] == *name).cloned())
        };
        for name in names {
            assert_eq!(find(&once, name), find(&patch, name).or(find(&base, name)));
        }
    }
}
