use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::{KindRules, default};
use crate::table::{AGE, NAME, number};
use crate::validate::{Report, duplicates, items};
use crate::{FieldProblem, meta};

pub(super) static RULES: KindRules = KindRules {
    defaults: |node| default(meta::object_at(node, "spec"), "drivers", json!([])),
    validate,
    validate_update,
    columns: &[NAME, number("Drivers", |row| row.object["spec"]["drivers"].as_array().map_or(0, Vec::len).into()), AGE],
    ..KindRules::plain(&wire::messages::CSI_NODE)
};

fn validate(report: &mut Report, object: &Value) {
    let drivers = &object["spec"]["drivers"];
    for (index, driver) in items(drivers).enumerate() {
        for field in ["name", "nodeID"] {
            if driver[field].as_str().unwrap_or_default().is_empty() {
                report.required(format!("spec.drivers[{index}].{field}"), "it must be set");
            }
        }
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
