use alloc::format;

use serde_json::Value;

use super::Report;
use crate::{FieldProblem, encode};

pub(super) fn secret(report: &mut Report, object: &Value) {
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        if !value.as_str().is_some_and(encode::is_base64) {
            report.invalid(format!("data[{key}]"), "it must be base64; use stringData for plain text");
        }
    }
}

pub(super) fn secret_unchanged(report: &mut Report, old: &Value, new: &Value) {
    report.immutable(old, new, "type");
    sealed(report, old, new, &["data"]);
}

/// Secrets and config maps can be sealed for good.
pub(super) fn sealed(report: &mut Report, old: &Value, new: &Value, fields: &[&str]) {
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

pub(super) fn lease(report: &mut Report, object: &Value) {
    if object["spec"]["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        report.invalid("spec.leaseDurationSeconds", "it must be greater than zero");
    }
    if object["spec"]["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        report.invalid("spec.leaseTransitions", "it must not be negative");
    }
}

/// An event lives in the namespace of what it tells of.
pub(super) fn event(report: &mut Report, object: &Value) {
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    if !about.is_empty() && Some(about) != object["metadata"]["namespace"].as_str() {
        report.invalid("involvedObject.namespace", "it must be the namespace of the event");
    }
}
