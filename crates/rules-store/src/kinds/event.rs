use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, Precondition, Time};
use serde_json::Value;
use wire::messages::{EVENT, EVENT_SERIES, EVENT_SOURCE};

use super::{KindRules, Names};
use crate::fields::meta::{META, OBJECT};
use crate::fields::tables;
use crate::table::{Row, show, since, text, wide};
use crate::validate::Report;
use crate::{Request, Store, Stored, Target};

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
    ..KindRules::plain(&FIELDS)
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

/// How long an event is kept after it was last seen, as kube-apiserver keeps it by default (`--event-ttl`).
const KEPT_MILLIS: u64 = 3_600_000;

/// Deletions of the events that nobody has repeated for an hour, at most so many.
pub fn expired_events(store: &Store, now_millis: u64, most: usize) -> Vec<Request> {
    let seen = |event: &Value| {
        let times = [last_seen(event), &event["metadata"]["creationTimestamp"]];
        times.into_iter().filter_map(|time| Time(time.as_str()?.into()).unix_millis()).max()
    };
    let expired = store.list(Kind::Event, None).filter(|event| {
        !event.is_deleting() && seen(&event.value).is_some_and(|seen| seen.saturating_add(KEPT_MILLIS) <= now_millis)
    });
    let deletion = |event: &Arc<Stored>| Request::Delete {
        target: Target {
            kind: Kind::Event,
            namespace: event.key.namespace.to_string(),
            name: event.key.name.to_string(),
        },
        preconditions: Precondition { uid: Some(event.uid().into()), resource_version: None },
        grace_seconds: None,
        propagation: crate::DeletePropagation::Background,
        dry_run: false,
    };
    expired.take(most).map(deletion).collect()
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

tables! {
    FIELDS = EVENT {
        honoured metadata => META;
        honoured involvedObject, related => OBJECT;
        honoured reason, message, firstTimestamp, lastTimestamp, count, type, eventTime, action, reportingComponent,
            reportingInstance;
        honoured source => EVENT_FROM;
        honoured series => EVENT_AGAIN;
    }
    EVENT_FROM = EVENT_SOURCE {
        honoured component, host;
    }
    EVENT_AGAIN = EVENT_SERIES {
        honoured count, lastObservedTime;
    }
}
