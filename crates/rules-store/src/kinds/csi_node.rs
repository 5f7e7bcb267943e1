use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};
use wire::messages::{CSI_NODE, CSI_NODE_DRIVER, CSI_NODE_SPEC, VOLUME_NODE_RESOURCES};

use super::{KindRules, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, number};
use crate::validate::{Report, duplicates, is_qualified, items};
use crate::{FieldProblem, meta};

pub(super) static RULES: KindRules = KindRules {
    defaults: |node| default(meta::object_at(node, "spec"), "drivers", json!([])),
    validate,
    validate_update,
    columns: &[NAME, number("Drivers", |row| row.object["spec"]["drivers"].as_array().map_or(0, Vec::len).into()), AGE],
    ..KindRules::plain(&FIELDS)
};

const LONGEST_NODE_ID: usize = 256;

/// API-4: they are keys of labels, each once.
fn topology_keys(report: &mut Report, path: &str, keys: &Value) {
    let keys: Vec<&str> = items(keys).filter_map(Value::as_str).collect();
    for (index, key) in keys.iter().enumerate() {
        if !is_qualified(key) {
            report
                .invalid(format!("{path}[{index}]"), format!("{key:?} is not a label key; write name or prefix/name"));
        }
        if keys[..index].contains(key) {
            report.add(format!("{path}[{index}]"), FieldProblem::Duplicate, format!("{key:?} is there twice"));
        }
    }
}

fn validate(report: &mut Report, object: &Value) {
    let drivers = &object["spec"]["drivers"];
    for (index, driver) in items(drivers).enumerate() {
        report.driver(&driver["name"], format!("spec.drivers[{index}].name"));
        let node = format!("spec.drivers[{index}].nodeID");
        match driver["nodeID"].as_str().unwrap_or_default().len() {
            0 => report.required(node, "it must be set"),
            length if length > LONGEST_NODE_ID => {
                let message = format!("it has {length} bytes; at most {LONGEST_NODE_ID} are allowed");
                report.add(node, FieldProblem::TooLong, message);
            }
            _fits => {}
        }
        topology_keys(report, &format!("spec.drivers[{index}].topologyKeys"), &driver["topologyKeys"]);
        if driver["allocatable"]["count"].as_i64().is_some_and(|count| count < 0) {
            report.invalid(format!("spec.drivers[{index}].allocatable.count"), "it must not be negative");
        }
    }
    duplicates(drivers, "name", |index, name| {
        report.add(format!("spec.drivers[{index}].name"), FieldProblem::Duplicate, format!("{name:?} is there twice"));
    });
}

/// A registered driver's node id and topology keys stay; its limit may change, and it may go.
fn validate_update(report: &mut Report, old: &Value, new: &Value) {
    for (index, driver) in items(&new["spec"]["drivers"]).enumerate() {
        let before = items(&old["spec"]["drivers"]).find(|have| have["name"] == driver["name"]);
        let fixed = |driver: &Value| -> [Value; 2] {
            let keys = driver.get("topologyKeys").filter(|keys| items(keys).next().is_some());
            [driver["nodeID"].clone(), keys.cloned().unwrap_or_else(|| json!([]))]
        };
        if before.is_some_and(|before| fixed(before) != fixed(driver)) {
            let field: String = format!("spec.drivers[{index}]");
            report.invalid(field, "nodeID and topologyKeys cannot change; remove the driver and add it again");
        }
    }
}

tables! {
    FIELDS = CSI_NODE {
        honoured metadata => META;
        honoured spec => CSI_NODE_SPECS;
        honoured status;
    }
    CSI_NODE_SPECS = CSI_NODE_SPEC {
        honoured drivers => CSI_NODE_DRIVERS;
    }
    CSI_NODE_DRIVERS = CSI_NODE_DRIVER {
        honoured name, nodeID, topologyKeys;
        honoured allocatable => LIMIT;
    }
    LIMIT = VOLUME_NODE_RESOURCES {
        honoured count;
    }
}
