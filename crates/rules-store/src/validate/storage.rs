use alloc::format;
use alloc::string::String;

use api::Quantity;
use serde_json::{Value, json};

use super::meta::duplicates;
use super::{Report, at, items};
use crate::FieldProblem;
use crate::meta::carry_part;

const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Filesystem", "Block"];
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

fn access_modes(report: &mut Report, object: &Value) {
    let modes = &object["spec"]["accessModes"];
    if items(modes).next().is_none() {
        report.required("spec.accessModes", "at least one access mode is needed");
    }
    for mode in items(modes).filter_map(Value::as_str) {
        if !ACCESS_MODES.contains(&mode) {
            let words = ACCESS_MODES.join(", ");
            report.add("spec.accessModes", FieldProblem::NotSupported, format!("{mode:?} is not one of {words}"));
        }
    }
    let once_pod = items(modes).any(|mode| mode.as_str() == Some("ReadWriteOncePod"));
    if once_pod && items(modes).count() > 1 {
        report.add("spec.accessModes", FieldProblem::Forbidden, "ReadWriteOncePod cannot stand beside other modes");
    }
}

pub(super) fn claim(report: &mut Report, object: &Value) {
    access_modes(report, object);
    report.amount(object, "spec.resources.requests.storage");
    report.one_of(object, "spec.volumeMode", &VOLUME_MODES);
    for field in ["dataSource", "dataSourceRef"] {
        if object["spec"][field].is_object() {
            report.need(object, &format!("spec.{field}.kind"));
            report.need(object, &format!("spec.{field}.name"));
        }
    }
}

/// A claim's spec stays, but for what the binder fills in, the size of a bound claim and its attributes class.
pub(super) fn claim_unchanged(report: &mut Report, old: &Value, new: &Value) {
    let (before, mut after) = (&old["spec"], new["spec"].clone());
    let bound = old["status"]["phase"].as_str() == Some("Bound");
    if bound && let Some(resources) = after.get_mut("resources") {
        carry_part(&before["resources"], resources, "requests");
    }
    if before["volumeName"].as_str().unwrap_or_default().is_empty() {
        carry_part(before, &mut after, "volumeName");
    }
    // A class is given late to a claim that was made before there was a default.
    if before.get("storageClassName").is_none() {
        carry_part(before, &mut after, "storageClassName");
    }
    let attributes = |spec: &Value| spec.get("volumeAttributesClassName").is_some();
    if attributes(before) && !attributes(&after) {
        report.add("spec.volumeAttributesClassName", FieldProblem::Forbidden, "once set it can change but not go");
    }
    carry_part(before, &mut after, "volumeAttributesClassName");
    if *before != after {
        report.add(
            "spec",
            FieldProblem::Forbidden,
            "the spec cannot change after creation, except resources.requests and volumeAttributesClassName of a bound claim",
        );
    }
    shrink(report, old, new);
}

/// EX-2: a request may shrink only to more than the claim has already.
fn shrink(report: &mut Report, old: &Value, new: &Value) {
    const REQUEST: &str = "spec.resources.requests.storage";
    let bytes = |value: &Value| value.as_str().and_then(|text| Quantity(text.into()).bytes().ok());
    let (Some(before), Some(after)) = (bytes(at(old, REQUEST)), bytes(at(new, REQUEST))) else { return };
    let has = bytes(at(old, "status.capacity.storage")).unwrap_or(0);
    if after < before && after <= has {
        report.add(REQUEST, FieldProblem::Forbidden, "it can shrink only to more than status.capacity");
    }
}

pub(super) fn volume(report: &mut Report, object: &Value) {
    access_modes(report, object);
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
        report.need(object, "spec.csi.driver");
        report.need(object, "spec.csi.volumeHandle");
    }
    if object["spec"]["local"].is_object() && !object["spec"]["nodeAffinity"].is_object() {
        report.required("spec.nodeAffinity", "a local volume must say which node it is on");
    }
}

/// A volume stays what it is and where it is; who uses it and how much it holds may change.
pub(super) fn volume_unchanged(report: &mut Report, old: &Value, new: &Value) {
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

pub(super) fn class(report: &mut Report, object: &Value) {
    report.need(object, "provisioner");
    report.one_of(object, "reclaimPolicy", &["Delete", "Retain"]);
    report.one_of(object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
}

pub(super) fn attachment(report: &mut Report, object: &Value) {
    report.need(object, "spec.attacher");
    report.need(object, "spec.nodeName");
    let source = &object["spec"]["source"];
    let inline = source["inlineVolumeSpec"].is_object();
    let named = !source["persistentVolumeName"].as_str().unwrap_or_default().is_empty();
    match (named, inline) {
        (true, true) => report.invalid("spec.source", "name a volume or describe one, not both"),
        (false, false) => report.required("spec.source.persistentVolumeName", "name a volume, or describe one inline"),
        (true, false) | (false, true) => {}
    }
}

pub(super) fn csi_driver(report: &mut Report, object: &Value) {
    report.one_of(object, "spec.fsGroupPolicy", &["ReadWriteOnceWithFSType", "File", "None"]);
    for mode in items(&object["spec"]["volumeLifecycleModes"]).filter_map(Value::as_str) {
        if mode != "Persistent" && mode != "Ephemeral" {
            let message = format!("{mode:?} is not one of Persistent, Ephemeral");
            report.add("spec.volumeLifecycleModes", FieldProblem::NotSupported, message);
        }
    }
}

pub(super) fn csi_node(report: &mut Report, object: &Value) {
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
pub(super) fn csi_node_unchanged(report: &mut Report, old: &Value, new: &Value) {
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
