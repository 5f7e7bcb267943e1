use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use crate::meta;
use crate::table::{AGE, Column, NAME, Row, or, text, wide};
use crate::validate::items;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Ready", ready),
    text("Status", |row| state(row.object).into()),
    text("Restarts", restarts),
    AGE,
    wide("IP", |row| or(&row.object["status"]["podIP"], "<none>")),
    wide("Node", |row| or(&row.object["spec"]["nodeName"], "<none>")),
    wide("Nominated Node", |row| or(&row.object["status"]["nominatedNodeName"], "<none>")),
    wide("Readiness Gates", |_| "<none>".into()),
];

/// Containers and the init containers that stay beside them.
fn staying(object: &Value) -> impl Iterator<Item = &Value> {
    let beside = items(&object["status"]["initContainerStatuses"]);
    let beside = beside.filter(|status| is_sidecar(object, &status["name"]));
    beside.chain(items(&object["status"]["containerStatuses"]))
}

fn is_sidecar(object: &Value, name: &Value) -> bool {
    items(&object["spec"]["initContainers"]).any(|init| init["name"] == *name && init["restartPolicy"] == "Always")
}

fn ready(row: &Row<'_>) -> Value {
    let sidecars =
        items(&row.object["spec"]["initContainers"]).filter(|init| init["restartPolicy"] == "Always").count();
    let containers = row.object["spec"]["containers"].as_array().map_or(0, Vec::len) + sidecars;
    let statuses = staying(row.object);
    let ready = statuses.filter(|container| container["ready"].as_bool() == Some(true)).count();
    format!("{ready}/{containers}").into()
}

fn restarts(row: &Row<'_>) -> Value {
    let initializing = initializing(row.object).is_some();
    let statuses = match initializing {
        true => items(&row.object["status"]["initContainerStatuses"]).collect::<Vec<_>>(),
        false => staying(row.object).collect(),
    };
    let restarts: i64 = statuses.into_iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    restarts.to_string().into()
}

/// The most telling word about a pod: what an init container or container waits for or ended with, else its phase.
fn state(object: &Value) -> String {
    let status = &object["status"];
    let ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if meta::is_deleting(object) && !ended {
        return if status["reason"].as_str() == Some("NodeLost") { "Unknown".into() } else { "Terminating".into() };
    }
    if let Some(reason) = initializing(object) {
        return reason;
    }
    let mut reason = status["reason"].as_str().or(status["phase"].as_str()).unwrap_or_default().to_string();
    let mut running = false;
    for container in status["containerStatuses"].as_array().into_iter().flatten().rev() {
        let state = &container["state"];
        if let Some(waiting) = state["waiting"]["reason"].as_str().filter(|reason| !reason.is_empty()) {
            reason = waiting.into();
        } else if state["terminated"].is_object() {
            reason = ending(&state["terminated"]);
        } else if state["running"].is_object() && container["ready"].as_bool() == Some(true) {
            running = true;
        }
    }
    // One container is done, another still works.
    if reason == "Completed" && running { "Running".into() } else { reason }
}

fn ending(terminated: &Value) -> String {
    match (terminated["reason"].as_str(), terminated["signal"].as_i64().filter(|signal| *signal != 0)) {
        (Some(reason), _) if !reason.is_empty() => reason.into(),
        (_, Some(signal)) => format!("Signal:{signal}"),
        (_, None) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
    }
}

fn initializing(object: &Value) -> Option<String> {
    let total = object["spec"]["initContainers"].as_array().map_or(0, Vec::len);
    for (at, container) in object["status"]["initContainerStatuses"].as_array()?.iter().enumerate() {
        let state = &container["state"];
        // One that runs beside the containers has done its part once it has started.
        if is_sidecar(object, &container["name"]) && container["started"].as_bool() == Some(true) {
            continue;
        }
        let terminated = &state["terminated"];
        if terminated.is_object() && terminated["exitCode"].as_i64() == Some(0) {
            continue;
        }
        if terminated.is_object() {
            return Some(format!("Init:{}", ending(terminated)));
        }
        return Some(match state["waiting"]["reason"].as_str() {
            Some(reason) if !reason.is_empty() && reason != "PodInitializing" => format!("Init:{reason}"),
            Some(_) | None => format!("Init:{at}/{total}"),
        });
    }
    None
}
