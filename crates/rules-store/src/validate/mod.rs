//! What every object must satisfy, and what may not change about it.

mod meta;

pub(crate) use meta::{check_selector, duplicates, is_label, is_path_segment, is_qualified, is_subdomain};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Quantity, names};
use serde_json::Value;

use crate::kinds::rules;
use crate::{Failure, FieldError, FieldProblem};

/// Collects what is wrong, so that the sender hears it all at once.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<FieldError>,
}

impl Report {
    pub(crate) fn add(&mut self, field: impl Into<String>, problem: FieldProblem, message: impl Into<String>) {
        self.errors.push(FieldError::new(field, problem, message));
    }

    pub(crate) fn invalid(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(field, FieldProblem::Invalid, message);
    }

    pub(crate) fn required(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(field, FieldProblem::Required, message);
    }

    /// A text that must be there.
    pub(crate) fn need(&mut self, value: &Value, field: &str) {
        if at(value, field).as_str().unwrap_or_default().is_empty() {
            self.required(field, "it must be set");
        }
    }

    /// A driver's name, which must be there (API-3).
    pub(crate) fn driver(&mut self, value: &Value, field: impl Into<String>) {
        match value.as_str().unwrap_or_default() {
            "" => self.required(field, "it must be set"),
            name if !names::is_driver_name(name) => {
                self.invalid(field, format!("the driver name {name:?} must {}", names::DRIVER_NAME_RULE));
            }
            _name => {}
        }
    }

    /// A map of texts that must stay within a size.
    pub(crate) fn within(&mut self, map: &Value, field: &str, most: usize) {
        let entries = map.as_object().into_iter().flatten();
        let bytes: usize = entries.map(|(key, text)| key.len() + text.as_str().unwrap_or_default().len()).sum();
        if bytes > most {
            let message = format!("keys and values together have {bytes} bytes; at most {most} are allowed");
            self.add(field, FieldProblem::TooLong, message);
        }
    }

    /// A text that must be one of these, if it is there.
    pub(crate) fn one_of(&mut self, value: &Value, field: &str, words: &[&str]) {
        if let Some(word) = at(value, field).as_str()
            && !words.contains(&word)
        {
            self.add(field, FieldProblem::NotSupported, format!("{word:?} is not one of {}", words.join(", ")));
        }
    }

    /// A field that stays as it was made.
    pub(crate) fn immutable(&mut self, old: &Value, new: &Value, field: &str) {
        if at(old, field) != at(new, field) {
            self.add(field, FieldProblem::Invalid, "field is immutable: it cannot change after creation");
        }
    }

    /// An amount that must be there and greater than zero.
    pub(crate) fn amount(&mut self, value: &Value, field: &str) {
        let Some(text) = at(value, field).as_str() else {
            return self.required(field, "it must be set, for example to 1Gi");
        };
        match Quantity(text.into()).bytes() {
            Ok(bytes) if bytes > 0 => {}
            Ok(_) => self.invalid(field, "it must be greater than zero"),
            Err(error) => self.invalid(field, format!("{error}")),
        }
    }

    fn finish(self, kind: Kind, object: &Value) -> Result<(), Failure> {
        if self.errors.is_empty() {
            return Ok(());
        }
        let name = crate::meta::text(object, "name");
        let name = if name.is_empty() { crate::meta::text(object, "generateName") } else { name };
        Err(Failure::Invalid { kind, name: name.into(), causes: self.errors })
    }
}

/// The value at a dotted path; null if there is none.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A new object, and what is wrong with it already.
pub(crate) fn create(kind: Kind, object: &Value, errors: Vec<FieldError>) -> Result<(), Failure> {
    let mut report = Report { errors };
    meta::name(&mut report, kind, object);
    meta::common(&mut report, object);
    (rules(kind).validate)(&mut report, object);
    report.finish(kind, object)
}

/// A new state of an object, and what is wrong with it already.
pub(crate) fn update(kind: Kind, old: &Value, new: &Value, errors: Vec<FieldError>) -> Result<(), Failure> {
    let mut report = Report { errors };
    meta::common(&mut report, new);
    meta::unchanged(&mut report, old, new);
    // What an older version let in may stay; only what changes is judged.
    if substance(old).ne(substance(new)) {
        (rules(kind).validate)(&mut report, new);
    }
    (rules(kind).validate_update)(&mut report, old, new);
    report.finish(kind, new)
}

/// What the object says of itself, without its metadata and status.
fn substance(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata" && *key != "status")
}

const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

/// Claims and volumes say how they are shared.
pub(crate) fn check_access_modes(report: &mut Report, object: &Value) {
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

/// Secrets and config maps can be sealed for good.
pub(crate) fn sealed(report: &mut Report, old: &Value, new: &Value, fields: &[&str]) {
    if old["immutable"].as_bool() != Some(true) {
        return;
    }
    if new["immutable"].as_bool() != Some(true) {
        report.add("immutable", FieldProblem::Forbidden, "it cannot be taken back; delete the object and make it anew");
    }
    for field in fields {
        if old.get(field) != new.get(field) {
            report.add(*field, FieldProblem::Forbidden, "it cannot change while immutable is set");
        }
    }
}
