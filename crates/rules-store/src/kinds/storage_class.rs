use alloc::format;
use alloc::string::ToString;

use api::names;
use serde_json::Value;
use wire::messages::{STORAGE_CLASS, TOPOLOGY_SELECTOR_LABEL_REQUIREMENT, TOPOLOGY_SELECTOR_TERM};

use super::{KindRules, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, flag, or, show, text};
use crate::{FieldProblem, meta};

/// API-8: how many parameters a class may have, and how many bytes all together.
const MOST_PARAMETERS: usize = 512;
const MOST_BYTES: usize = 256 * 1024;

pub(super) static RULES: KindRules = KindRules {
    defaults: |class| {
        if let Value::Object(class) = class {
            default(class, "reclaimPolicy", "Delete");
            default(class, "volumeBindingMode", "Immediate");
        }
    },
    validate: |report, class| {
        report.need(class, "provisioner");
        let count = class["parameters"].as_object().map_or(0, |parameters| parameters.len());
        if count > MOST_PARAMETERS {
            let message = format!("there are {count}; at most {MOST_PARAMETERS} are allowed");
            report.add("parameters", FieldProblem::TooLong, message);
        }
        report.within(&class["parameters"], "parameters", MOST_BYTES);
        report.one_of(class, "reclaimPolicy", &["Delete", "Retain"]);
        report.one_of(class, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    },
    validate_update: |report, old, new| {
        for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
            report.immutable(old, new, field);
        }
    },
    columns: &[
        text("Name", |row| name(row.object)),
        text("Provisioner", |row| show(&row.object["provisioner"])),
        text("ReclaimPolicy", |row| or(&row.object["reclaimPolicy"], "Delete")),
        text("VolumeBindingMode", |row| or(&row.object["volumeBindingMode"], "Immediate")),
        flag("AllowVolumeExpansion", |row| row.object["allowVolumeExpansion"].as_bool().unwrap_or(false).into()),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

fn name(class: &Value) -> Value {
    let mut name = meta::text(class, "name").to_string();
    if [names::DEFAULT_CLASS, names::DEFAULT_CLASS_BETA].iter().any(|key| meta::annotation(class, key) == Some("true"))
    {
        name.push_str(" (default)");
    }
    name.into()
}

tables! {
    FIELDS = STORAGE_CLASS {
        honoured metadata => META;
        honoured provisioner: "The driver that makes the volumes.";
        honoured parameters: "What the driver is told when it makes one.";
        honoured reclaimPolicy: "What becomes of a volume whose claim is gone: Delete or Retain.";
        honoured mountOptions: "Options of the mounts of all volumes of the class.";
        honoured allowVolumeExpansion: "Whether claims of the class may grow.";
        honoured volumeBindingMode: "Whether a volume is made at once or for the first pod that uses the claim.";
        honoured allowedTopologies: "Where volumes may be made." => TOPOLOGY;
    }
    TOPOLOGY = TOPOLOGY_SELECTOR_TERM {
        honoured matchLabelExpressions => TOPOLOGY_LABEL;
    }
    TOPOLOGY_LABEL = TOPOLOGY_SELECTOR_LABEL_REQUIREMENT {
        honoured key, values;
    }
}
