use alloc::format;

use api::{Time, names};
use serde_json::Value;

use super::claim::VOLUME_MODES;
use super::{KindRules, default, pod};
use crate::table::{AGE, NAME, access_modes, class_name, or, phase, show, text, wide};
use crate::validate::{Report, check_access_modes};
use crate::{FieldProblem, fields, meta};

pub(super) static RULES: KindRules = KindRules {
    admit: |_, volume| meta::add_finalizer(volume, names::PV_PROTECTION),
    defaults: |volume| {
        default(meta::object_at(volume, "status"), "phase", "Pending");
        let spec = meta::object_at(volume, "spec");
        default(spec, "persistentVolumeReclaimPolicy", "Retain");
        default(spec, "volumeMode", "Filesystem");
    },
    stamp: note_phase,
    validate,
    validate_update,
    columns: &[
        NAME,
        text("Capacity", |row| show(&row.object["spec"]["capacity"]["storage"])),
        text("Access Modes", |row| access_modes(&row.object["spec"]["accessModes"]).into()),
        text("Reclaim Policy", |row| show(&row.object["spec"]["persistentVolumeReclaimPolicy"])),
        text("Status", |row| phase(row.object)),
        text("Claim", |row| claim(&row.object["spec"]["claimRef"])),
        text("StorageClass", |row| class_name(row.object)),
        text("VolumeAttributesClass", |row| or(&row.object["spec"]["volumeAttributesClassName"], "<unset>")),
        text("Reason", |row| show(&row.object["status"]["reason"])),
        AGE,
        wide("VolumeMode", |row| or(&row.object["spec"]["volumeMode"], "<unset>")),
    ],
    ..KindRules::plain(&fields::volume::VOLUME)
};

/// PV-26: says since when the volume is in its phase, unless who changed the phase said so.
fn note_phase(now: &Time, old: Option<&Value>, new: &mut Value) {
    let none = Value::Null;
    let before = old.map_or(&none, |old| &old["status"]);
    let changed = before["phase"] != new["status"]["phase"];
    let told = new["status"].get(SINCE).filter(|told| before.get(SINCE) != Some(*told));
    let since = match (told, changed) {
        (Some(_), _) => return,
        (None, true) => Value::from(now.0.as_str()),
        (None, false) => before[SINCE].clone(),
    };
    match (since, meta::object_at(new, "status")) {
        (Value::Null, _) => {}
        (since, status) => drop(status.insert(SINCE.into(), since)),
    }
}

const SINCE: &str = "lastPhaseTransitionTime";

/// Fields of a volume's spec that are not its source.
const NOT_A_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

fn validate(report: &mut Report, object: &Value) {
    check_access_modes(report, object);
    report.amount(object, "spec.capacity.storage");
    report.one_of(object, "spec.volumeMode", &VOLUME_MODES);
    report.one_of(object, "spec.persistentVolumeReclaimPolicy", &["Retain", "Delete", "Recycle"]);
    let spec = object["spec"].as_object();
    let sources = spec.into_iter().flatten().filter(|(key, _)| !NOT_A_SOURCE.contains(&key.as_str())).count();
    match sources {
        0 => report.required("spec", "a volume needs a source, such as csi"),
        1 => {}
        2.. => report.add("spec", FieldProblem::Forbidden, "a volume has exactly one source"),
    }
    if object["spec"]["csi"].is_object() {
        report.driver(&object["spec"]["csi"]["driver"], "spec.csi.driver");
        report.need(object, "spec.csi.volumeHandle");
    }
    pod::in_tree(report, "spec", &object["spec"]);
    if object["spec"]["local"].is_object() && !object["spec"]["nodeAffinity"].is_object() {
        report.required("spec.nodeAffinity", "a local volume must say which node it is on");
    }
}

/// A volume stays what it is and where it is; who uses it and how much it holds may change.
fn validate_update(report: &mut Report, old: &Value, new: &Value) {
    let source = |volume: &Value| -> Value {
        let mut spec = volume["spec"].clone();
        if let Value::Object(map) = &mut spec {
            map.retain(|key, _| !NOT_A_SOURCE.contains(&key.as_str()));
        }
        spec
    };
    if source(old) != source(new) {
        report.add("spec.persistentvolumesource", FieldProblem::Forbidden, "the source cannot change after creation");
    }
    report.immutable(old, new, "spec.volumeMode");
    if old["spec"]["nodeAffinity"].is_object() {
        report.immutable(old, new, "spec.nodeAffinity");
    }
}

fn claim(reference: &Value) -> Value {
    match (reference["namespace"].as_str(), reference["name"].as_str()) {
        (namespace, Some(name)) => format!("{}/{name}", namespace.unwrap_or_default()).into(),
        (Some(_) | None, None) => "".into(),
    }
}
