//! What both benches do: the cases of a file, as `record-translations` reads them, operation by operation. The file and
//! what is done with it is what `tools/peers/csi-translation-lib/bench` does with Kubernetes' own library.
#![allow(clippy::unwrap_used, reason = "a program for people")]

use std::hint::black_box;

use api::{PersistentVolume, StorageClass};
use rules_translate::{class_to_csi, volume_into_csi, volume_into_in_tree, volume_to_csi, volume_to_in_tree};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An operation on all of its cases, once; how many translations or copies that is.
pub struct Operation {
    pub name: &'static str,
    pub count: usize,
    pub round: Box<dyn FnMut()>,
}

impl Operation {
    fn new<T: 'static>(name: &'static str, inputs: Vec<T>, each: fn(&T)) -> Operation {
        let (count, round) = (inputs.len(), Box::new(move || inputs.iter().for_each(|input| each(black_box(input)))));
        Operation { name, count, round }
    }
}

/// Every operation, on the cases of a file that Kubernetes' own library does not refuse.
pub fn operations(file: &str) -> Vec<Operation> {
    let text = std::fs::read_to_string(file).unwrap();
    let volumes = |op| inputs::<PersistentVolume>(&text, op);
    let both = || volumes("pv_to_csi").into_iter().filter(|volume| back(there(volume.clone())).is_some());
    let mut turned: Vec<Option<PersistentVolume>> = both().map(Some).collect();
    vec![
        Operation::new("pv_to_csi", volumes("pv_to_csi"), |volume| drop(black_box(volume_to_csi(volume).unwrap()))),
        Operation::new("pv_to_in_tree", volumes("pv_to_in_tree"), |volume| {
            drop(black_box(volume_to_in_tree(volume).unwrap()));
        }),
        Operation::new("there_and_back", both().collect(), |volume| {
            drop(black_box(volume_to_in_tree(&volume_to_csi(volume).unwrap().object).unwrap()));
        }),
        // One and the same volume again and again: nothing of it is copied.
        Operation {
            name: "there_and_back_moved",
            count: turned.len(),
            round: Box::new(move || {
                turned.iter_mut().for_each(|volume| *volume = back(there(black_box(volume.take()).unwrap())));
            }),
        },
        Operation::new("class", inputs::<StorageClass>(&text, "class"), |class| {
            drop(black_box(class_to_csi(class).unwrap()));
        }),
        Operation::new("copy", volumes("pv_to_csi"), |volume| drop(black_box(volume.clone()))),
    ]
}

fn there(volume: PersistentVolume) -> PersistentVolume {
    volume_into_csi(volume).unwrap().object
}

fn back(volume: PersistentVolume) -> Option<PersistentVolume> {
    Some(volume_into_in_tree(volume).ok()?.object)
}

fn inputs<T: DeserializeOwned>(text: &str, op: &str) -> Vec<T> {
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let wanted = cases.filter(|case| case["op"] == op && case["err"] != true);
    wanted.map(|case| serde_json::from_value(case["in"].clone()).unwrap()).collect()
}

/// The arguments; `cargo bench` adds a flag of its own.
pub fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|argument| argument != "--bench").collect()
}
