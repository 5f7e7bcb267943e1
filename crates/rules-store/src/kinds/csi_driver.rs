use alloc::format;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::{KindRules, default};
use crate::table::{AGE, NAME, flag, text, texts};
use crate::validate::{Report, items};
use crate::{FieldProblem, meta};

pub(super) static RULES: KindRules = KindRules {
    defaults: |driver| {
        let spec = meta::object_at(driver, "spec");
        default(spec, "attachRequired", true);
        default(spec, "podInfoOnMount", false);
        default(spec, "storageCapacity", false);
        default(spec, "requiresRepublish", false);
        default(spec, "seLinuxMount", false);
        default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    },
    validate,
    validate_update: |report, old, new| {
        report.immutable(old, new, "spec.attachRequired");
        report.immutable(old, new, "spec.volumeLifecycleModes");
    },
    columns: &[
        NAME,
        flag("AttachRequired", |row| row.object["spec"]["attachRequired"].as_bool().unwrap_or(true).into()),
        flag("PodInfoOnMount", |row| row.object["spec"]["podInfoOnMount"].as_bool().unwrap_or(false).into()),
        flag("StorageCapacity", |row| row.object["spec"]["storageCapacity"].as_bool().unwrap_or(false).into()),
        text("TokenRequests", |row| audiences(&row.object["spec"]["tokenRequests"])),
        flag("RequiresRepublish", |row| row.object["spec"]["requiresRepublish"].as_bool().unwrap_or(false).into()),
        text("Modes", |row| texts(&row.object["spec"]["volumeLifecycleModes"]).join(",").into()),
        AGE,
    ],
    ..KindRules::plain(&wire::messages::CSI_DRIVER)
};

fn validate(report: &mut Report, object: &Value) {
    report.one_of(object, "spec.fsGroupPolicy", &["ReadWriteOnceWithFSType", "File", "None"]);
    for mode in items(&object["spec"]["volumeLifecycleModes"]).filter_map(Value::as_str) {
        if mode != "Persistent" && mode != "Ephemeral" {
            let message = format!("{mode:?} is not one of Persistent, Ephemeral");
            report.add("spec.volumeLifecycleModes", FieldProblem::NotSupported, message);
        }
    }
}

fn audiences(tokens: &Value) -> Value {
    let audiences: Vec<&str> = items(tokens).filter_map(|token| token["audience"].as_str()).collect();
    if audiences.is_empty() { "<unset>".into() } else { audiences.join(",").into() }
}
