//! The writes, as they travel. Claims are patched item by item (conditions by type), so that nobody else's words are lost.

use alloc::string::String;
use alloc::vec::Vec;

use api::{Quantity, Seen, Time, Value, names};
use control::Effect;
use serde_json::{Map, json};

use crate::action::{Begin, GrowthReport, ModifyReport};

/// A change of the volume as it was seen, unchanged since: one that arrives late meets a newer version and fails.
fn volume(seen: &Seen, body: Value) -> Effect {
    Effect::Write(seen.patch(body))
}

/// A change of the claim as it was seen, unchanged since.
fn claim(seen: &Seen, body: Value) -> Effect {
    Effect::Write(seen.merge_status(body))
}

fn one(key: &str, value: Value) -> Value {
    let mut map = Map::new();
    map.insert(key.into(), value);
    Value::Object(map)
}

fn size_text(size: i64) -> String {
    Quantity::from_bytes(size).0
}

fn holds(condition: &str, at: &Time) -> Value {
    json!({ "type": condition, "status": "True", "lastTransitionTime": at.0 })
}

fn failed(condition: &str, reason: &str, message: &str, at: &Time) -> Value {
    let mut told = holds(condition, at);
    told["message"] = json!(message);
    if !reason.is_empty() {
        told["reason"] = json!(reason);
    }
    told
}

fn without(gone: &[String]) -> impl Iterator<Item = Value> {
    gone.iter().map(|condition| json!({ "type": condition, "$patch": "delete" }))
}

pub(crate) fn forget_before(seen: &Seen) -> Effect {
    let body = json!({ "metadata": { "annotations": one(names::PRE_RESIZE_CAPACITY, Value::Null) } });
    volume(seen, body)
}

pub(crate) fn adopt(seen: &Seen) -> Effect {
    claim(seen, json!({ "metadata": { "annotations": one(names::RESIZE_ADOPTED, json!(seen.version)) } }))
}

pub(crate) fn begin(begin: &Begin) -> Effect {
    let conditions: Vec<Value> = [holds(names::RESIZING, &begin.at)].into_iter().chain(without(&begin.gone)).collect();
    let mut body = json!({ "status": { "conditions": conditions } });
    if begin.recovers {
        body["status"]["allocatedResources"] = json!({ "storage": size_text(begin.size) });
        body["status"]["allocatedResourceStatuses"] = json!({ "storage": names::CONTROLLER_RESIZE_IN_PROGRESS });
    }
    if begin.forget_not_required {
        body["metadata"] = json!({ "annotations": one(names::NODE_EXPANSION_NOT_REQUIRED, Value::Null) });
    }
    claim(&begin.claim, body)
}

pub(crate) fn set_size(seen: &Seen, size: i64, before: Option<&str>) -> Effect {
    let mut body = json!({ "spec": { "capacity": { "storage": size_text(size) } } });
    if let Some(before) = before {
        body["metadata"] = json!({ "annotations": one(names::PRE_RESIZE_CAPACITY, json!(before)) });
    }
    volume(seen, body)
}

pub(crate) fn await_node(seen: &Seen, size: i64, recovers: bool, at: &Time) -> Effect {
    let adopted = one(names::RESIZE_ADOPTED, Value::Null);
    let conditions = [holds(names::FILE_SYSTEM_RESIZE_PENDING, at)];
    let mut body = json!({ "metadata": { "annotations": adopted }, "status": { "conditions": conditions } });
    if recovers {
        body["status"]["allocatedResources"] = json!({ "storage": size_text(size) });
        body["status"]["allocatedResourceStatuses"] = json!({ "storage": names::NODE_RESIZE_PENDING });
    }
    claim(seen, body)
}

pub(crate) fn finish(seen: &Seen, size: i64, gone: &[String], recovers: bool) -> Effect {
    let conditions: Vec<Value> = without(gone).collect();
    let mut status = json!({ "capacity": { "storage": size_text(size) }, "conditions": conditions });
    if recovers {
        status["allocatedResourceStatuses"] = json!({ "storage": null });
    }
    let mut annotations = one(names::NODE_EXPANSION_NOT_REQUIRED, json!("true"));
    annotations[names::RESIZE_ADOPTED] = Value::Null;
    claim(seen, json!({ "metadata": { "annotations": annotations }, "status": status }))
}

pub(crate) fn report_growth(report: &GrowthReport) -> Effect {
    let condition = failed(names::CONTROLLER_RESIZE_ERROR, "", &report.message, &report.at);
    let mut status = json!({ "conditions": [condition] });
    if report.infeasible {
        status["allocatedResourceStatuses"] = json!({ "storage": names::CONTROLLER_RESIZE_INFEASIBLE });
    }
    claim(&report.claim, json!({ "status": status }))
}

fn modify_status(status: &str, class: &str) -> Value {
    json!({ "status": status, "targetVolumeAttributesClassName": class })
}

pub(crate) fn begin_modify(seen: &Seen, class: &str, at: &Time) -> Effect {
    let status = modify_status(names::MODIFY_IN_PROGRESS, class);
    let conditions = [holds(names::MODIFYING_VOLUME, at)];
    claim(seen, json!({ "status": { "modifyVolumeStatus": status, "conditions": conditions } }))
}

pub(crate) fn pend(seen: &Seen, target: &str) -> Effect {
    let status = modify_status(names::MODIFY_PENDING, target);
    claim(seen, json!({ "status": { "modifyVolumeStatus": status } }))
}

pub(crate) fn set_class(seen: &Seen, class: &str) -> Effect {
    volume(seen, json!({ "spec": { "volumeAttributesClassName": class } }))
}

pub(crate) fn finish_modify(seen: &Seen, class: &str, gone: &[String]) -> Effect {
    let conditions: Vec<Value> = without(gone).collect();
    let status = json!({
        "modifyVolumeStatus": null, "currentVolumeAttributesClassName": class, "conditions": conditions,
    });
    let adopted = one(names::RESIZE_ADOPTED, Value::Null);
    claim(seen, json!({ "metadata": { "annotations": adopted }, "status": status }))
}

pub(crate) fn report_modify(report: &ModifyReport) -> Effect {
    let word = if report.infeasible { names::MODIFY_INFEASIBLE } else { names::MODIFY_IN_PROGRESS };
    let conditions = [
        holds(names::MODIFYING_VOLUME, &report.at),
        failed(names::MODIFY_VOLUME_ERROR, &report.reason, &report.message, &report.at),
    ];
    let status = modify_status(word, &report.class);
    claim(&report.claim, json!({ "status": { "modifyVolumeStatus": status, "conditions": conditions } }))
}

pub(crate) fn cancel_modify(seen: &Seen) -> Effect {
    let gone = json!({ "type": names::MODIFYING_VOLUME, "$patch": "delete" });
    claim(seen, json!({ "status": { "conditions": [gone] } }))
}
