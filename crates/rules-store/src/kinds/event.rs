use alloc::format;
use alloc::string::ToString;

use serde_json::Value;

use super::{KindRules, Names};
use crate::table::{Row, show, since, text, wide};
use crate::validate::Report;

pub(super) static RULES: KindRules = KindRules {
    names: Names::PATH_SEGMENT,
    validate,
    selectable: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    columns: &[
        text("Last Seen", |row| since(last_seen(row.object), row.now).into()),
        text("Type", |row| show(&row.object["type"])),
        text("Reason", |row| show(&row.object["reason"])),
        text("Object", about),
        wide("Subobject", |row| show(&row.object["involvedObject"]["fieldPath"])),
        wide("Source", source),
        text("Message", |row| row.object["message"].as_str().unwrap_or_default().trim().into()),
        wide("First Seen", |row| since(first_seen(row.object), row.now).into()),
        wide("Count", count),
        wide("Name", |row| show(&row.object["metadata"]["name"])),
    ],
    ..KindRules::plain(&wire::messages::EVENT)
};

/// An event lives in the namespace of what it is about.
fn validate(report: &mut Report, object: &Value) {
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    if !about.is_empty() && Some(about) != object["metadata"]["namespace"].as_str() {
        report.invalid("involvedObject.namespace", "it must be the namespace of the event");
    }
}

fn first_seen(event: &Value) -> &Value {
    let times = [&event["firstTimestamp"], &event["eventTime"]];
    times.into_iter().find(|time| time.is_string()).unwrap_or(&Value::Null)
}

fn last_seen(event: &Value) -> &Value {
    let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"]];
    times.into_iter().find(|time| time.is_string()).unwrap_or(first_seen(event))
}

fn about(row: &Row<'_>) -> Value {
    let about = &row.object["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_ascii_lowercase();
    format!("{kind}/{}", about["name"].as_str().unwrap_or_default()).into()
}

fn source(row: &Row<'_>) -> Value {
    let event = row.object;
    event["source"]["component"].as_str().or(event["reportingComponent"].as_str()).unwrap_or_default().into()
}

fn count(row: &Row<'_>) -> Value {
    row.object["series"]["count"].as_i64().or(row.object["count"].as_i64()).unwrap_or(1).to_string().into()
}
