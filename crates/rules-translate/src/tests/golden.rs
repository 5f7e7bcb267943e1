//! Recorded answers of Kubernetes' own library (csi-translation-lib, as tools/peers pins it), one case per line: what went in,
//! and what came out or that it was refused. `make record-translations` makes the record anew; a new case is a line with `op`
//! and `in`. Both sides are compared as the objects the rules read.

use alloc::string::String;
use alloc::vec::Vec;

use api::{PersistentVolume, StorageClass, Value};

use super::{class, inline, volume};
use crate::{Plugin, Translated, class_to_csi, inline_to_csi, repair_handle, volume_to_csi, volume_to_in_tree};

const CASES: &str = include_str!("golden.jsonl");

/// What we say: the object as JSON, or that it is refused.
fn ours(case: &Value) -> Option<Value> {
    fn json<T: serde::Serialize>(translated: Translated<T>) -> Value {
        serde_json::to_value(translated.object).unwrap()
    }
    let input = case["in"].clone();
    let text = |key: &str| -> String { case["in"][key].as_str().unwrap().into() };
    match case["op"].as_str().unwrap() {
        "pv_to_csi" => volume_to_csi(&volume(input)).ok().map(json),
        "pv_to_in_tree" => volume_to_in_tree(&volume(input)).ok().map(json),
        "inline" => inline_to_csi(&inline(input), case["ns"].as_str().unwrap_or("")).ok().map(json),
        "class" => class_to_csi(&class(input)).ok().map(json),
        "repair" => repair_handle(&text("driver"), &text("handle"), &text("node")).ok().map(Value::from),
        other => panic!("{other} is no operation"),
    }
}

/// What they say, in our types.
fn theirs(case: &Value) -> Option<Value> {
    if case["err"] == Value::Bool(true) {
        return None;
    }
    let out = case["out"].clone();
    Some(match case["op"].as_str().unwrap() {
        "repair" => out,
        "class" => {
            let mut class: StorageClass = serde_json::from_value(out).unwrap();
            // A class in CSI's terms is the driver's, which the library says of Portworx alone.
            if let Some(plugin) = Plugin::named(&class.provisioner) {
                class.provisioner = plugin.driver().into();
            }
            serde_json::to_value(class).unwrap()
        }
        _volume => serde_json::to_value(serde_json::from_value::<PersistentVolume>(out).unwrap()).unwrap(),
    })
}

// reliability 130; every plugin of TR-1 but RBD, which that library no longer has.
#[test]
fn we_say_what_kubernetes_says() {
    let cases: Vec<Value> = CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 500);
    let mut wrong = String::new();
    for case in &cases {
        let (ours, theirs) = (ours(case), theirs(case));
        if ours != theirs {
            wrong += &alloc::format!("\n{}\n  theirs {theirs:?}\n  ours   {ours:?}", case["in"]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
