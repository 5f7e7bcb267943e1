use alloc::format;
use alloc::string::{String, ToString};

use api::{Kind, Object, Quantity, StorageClass, names};
use serde_json::{Map, Value};

use super::{KindRules, default};
use crate::fields;
use crate::meta::{self, carry_part};
use crate::table::{AGE, NAME, access_modes, class_name, or, phase, show, text, wide};
use crate::validate::{Report, at, check_access_modes, check_selector};
use crate::{Failure, FieldProblem, Store};

pub(crate) const VOLUME_MODES: [&str; 2] = ["Filesystem", "Block"];

pub(super) static RULES: KindRules = KindRules {
    admit: |store, claim| {
        name_default_class(store, claim);
        meta::add_finalizer(claim, names::PVC_PROTECTION);
    },
    admit_update: may_grow,
    defaults: |claim| {
        spec_defaults(meta::object_at(claim, "spec"));
        default(meta::object_at(claim, "status"), "phase", "Pending");
    },
    validate,
    validate_update,
    columns: &[
        NAME,
        text("Status", |row| phase(row.object)),
        text("Volume", |row| show(&row.object["spec"]["volumeName"])),
        text("Capacity", |row| if_bound(row.object, |status| show(&status["capacity"]["storage"]))),
        text("Access Modes", |row| if_bound(row.object, |status| access_modes(&status["accessModes"]).into())),
        text("StorageClass", |row| class_name(row.object)),
        text("VolumeAttributesClass", |row| or(&row.object["spec"]["volumeAttributesClassName"], "<unset>")),
        AGE,
        wide("VolumeMode", |row| or(&row.object["spec"]["volumeMode"], "<unset>")),
    ],
    // Resizers say in an annotation, through a claim's status, whether the node has a part in a resize.
    status_with_annotations: true,
    ..KindRules::plain(&fields::claim::CLAIM)
};

/// A claim that names no class gets the default class, if there is one.
fn name_default_class(store: &Store, claim: &mut Value) {
    if class_of(claim).is_some() {
        return;
    }
    let classes = store.list(Kind::StorageClass, None);
    let classes = classes.filter_map(|class| Object::from_json(Kind::StorageClass, class.value.clone()).ok());
    let classes = classes.filter_map(|class| <StorageClass as api::Narrow>::of(&class).cloned());
    if let Some(class) = StorageClass::default_of(classes) {
        meta::object_at(claim, "spec").insert("storageClassName".into(), class.metadata.name.clone().into());
    }
}

fn class_of(claim: &Value) -> Option<&str> {
    meta::annotation(claim, names::STORAGE_CLASS_BETA).or(claim["spec"]["storageClassName"].as_str())
}

/// EX-1: only claims of a class that allows it may grow.
fn may_grow(store: &Store, old: &Value, new: &Value) -> Result<(), Failure> {
    let size = |claim: &Value| bytes(at(claim, "spec.resources.requests.storage"));
    let (Some(before), Some(after)) = (size(old), size(new)) else { return Ok(()) };
    // A claim that is not bound may not change its request at all, which validation says in its own words.
    if after <= before || old["status"]["phase"].as_str() != Some("Bound") {
        return Ok(());
    }
    let class = class_of(new).unwrap_or_default();
    let stored = store.get(Kind::StorageClass, "", class);
    if stored.is_some_and(|stored| stored.value["allowVolumeExpansion"].as_bool() == Some(true)) {
        return Ok(());
    }
    Err(Failure::Forbidden {
        kind: Kind::PersistentVolumeClaim,
        name: meta::text(new, "name").to_string(),
        message: format!(
            "its storage class {class:?} does not allow volumes to grow; set allowVolumeExpansion on a class"
        ),
    })
}

/// The defaults of a claim's spec, which a pod may hold as a template.
pub(super) fn spec_defaults(spec: &mut Map<String, Value>) {
    default(spec, "volumeMode", "Filesystem");
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source, reference) {
        // Whoever reads either of the two fields finds the source.
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(reference)) => {
            let local = reference.get("namespace").is_none_or(|n| n.as_str() == Some(""));
            let classic = matches!(reference["kind"].as_str(), Some("PersistentVolumeClaim" | "VolumeSnapshot"));
            if local && classic {
                spec.insert("dataSource".into(), reference);
            }
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn validate(report: &mut Report, object: &Value) {
    check_access_modes(report, object);
    report.amount(object, "spec.resources.requests.storage");
    report.one_of(object, "spec.volumeMode", &VOLUME_MODES);
    check_selector(report, &object["spec"]["selector"], "spec.selector");
    for field in ["dataSource", "dataSourceRef"] {
        if object["spec"][field].is_object() {
            report.need(object, &format!("spec.{field}.kind"));
            report.need(object, &format!("spec.{field}.name"));
        }
    }
}

/// A claim's spec stays, but for what the binder fills in, the size of a bound claim and its attributes class.
fn validate_update(report: &mut Report, old: &Value, new: &Value) {
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
    may_shrink(report, old, new);
}

/// EX-2: a request may shrink only to more than the claim has already.
fn may_shrink(report: &mut Report, old: &Value, new: &Value) {
    const REQUEST: &str = "spec.resources.requests.storage";
    let (Some(before), Some(after)) = (bytes(at(old, REQUEST)), bytes(at(new, REQUEST))) else { return };
    let has = bytes(at(old, "status.capacity.storage")).unwrap_or(0);
    if after < before && after <= has {
        report.add(REQUEST, FieldProblem::Forbidden, "it can shrink only to more than status.capacity");
    }
}

fn bytes(value: &Value) -> Option<i64> {
    Quantity(String::from(value.as_str()?)).bytes().ok()
}

/// What the status says of the volume, once there is one.
fn if_bound(claim: &Value, cell: fn(&Value) -> Value) -> Value {
    let bound = claim["spec"]["volumeName"].as_str().is_some_and(|volume| !volume.is_empty());
    if bound { cell(&claim["status"]) } else { "".into() }
}
