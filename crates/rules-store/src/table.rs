//! Tables for `kubectl get`. Each kind names its columns.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Time};
use serde_json::{Value, json};

use crate::kinds::rules;
use crate::{Stored, meta};

/// One column of what kubectl shows.
pub(crate) struct Column {
    heading: &'static str,
    r#type: &'static str,
    /// Only `-o wide` shows it.
    wide: bool,
    cell: Cell,
}

/// What stands in a column for one object.
type Cell = fn(&Row<'_>) -> Value;

/// An object, and the time it is shown at.
pub(crate) struct Row<'a> {
    pub object: &'a Value,
    /// Milliseconds after 1970.
    pub now: u64,
}

pub(crate) const NAME: Column = text("Name", |row| meta::text(row.object, "name").into());
pub(crate) const AGE: Column = text("Age", |row| since(&row.object["metadata"]["creationTimestamp"], row.now).into());

pub(crate) const fn text(heading: &'static str, cell: Cell) -> Column {
    Column { heading, r#type: "string", wide: false, cell }
}

pub(crate) const fn number(heading: &'static str, cell: Cell) -> Column {
    Column { heading, r#type: "integer", wide: false, cell }
}

pub(crate) const fn flag(heading: &'static str, cell: Cell) -> Column {
    Column { heading, r#type: "boolean", wide: false, cell }
}

pub(crate) const fn wide(heading: &'static str, cell: Cell) -> Column {
    Column { heading, r#type: "string", wide: true, cell }
}

impl Column {
    fn to_json(&self) -> Value {
        json!({
            "name": self.heading,
            "type": self.r#type,
            // Clients find the name column by its format, whatever its heading.
            "format": if self.heading == "Name" && !self.wide { "name" } else { "" },
            "description": "",
            "priority": i32::from(self.wide),
        })
    }
}

/// A `meta.k8s.io/v1` Table. Each row carries the metadata of its object. The caller sets `metadata.resourceVersion`.
pub fn table(kind: Kind, objects: &[&Stored], now_millis: u64) -> Value {
    let columns = rules(kind).columns;
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let row = Row { object: &object.value, now: now_millis };
            json!({
                "cells": columns.iter().map(|column| (column.cell)(&row)).collect::<Vec<_>>(),
                "object": {
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": object.value["metadata"],
                },
            })
        })
        .collect();
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {},
        "columnDefinitions": columns.iter().map(Column::to_json).collect::<Vec<_>>(), "rows": rows,
    })
}

/// A text, or nothing.
pub(crate) fn show(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

/// A text, or a word for its absence.
pub(crate) fn or(value: &Value, absent: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent).into()
}

pub(crate) fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

pub(crate) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `RWO,ROX`, each mode once and in the usual order.
pub(crate) fn access_modes(modes: &Value) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let have = texts(modes);
    let short: Vec<&str> = short.iter().filter(|(mode, _)| have.contains(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

pub(crate) fn phase(object: &Value) -> Value {
    if meta::is_deleting(object) { "Terminating".into() } else { show(&object["status"]["phase"]) }
}

pub(crate) fn class_name(object: &Value) -> Value {
    match meta::annotation(object, api::names::STORAGE_CLASS_BETA) {
        Some(class) => class.into(),
        None => show(&object["spec"]["storageClassName"]),
    }
}

/// How long ago a time was, as `kubectl` writes it.
pub(crate) fn since(time: &Value, now_millis: u64) -> String {
    let then = time.as_str().and_then(|text| Time(text.into()).unix_millis());
    match then {
        None => "<unknown>".into(),
        Some(then) if then > now_millis + 1000 => "<invalid>".into(),
        Some(then) => duration(now_millis.saturating_sub(then) / 1000),
    }
}

/// Seconds with two figures of precision that matter to people.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |big: u64, unit: &str, small: u64, rest: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{rest}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (600, "10m"),
            (630, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (29_100, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (694_800, "8d"),
            (86_400 * 729, "729d"),
            (86_400 * 731, "2y1d"),
            (599, "9m59s"),
            (28_799, "7h59m"),
            (691_199, "7d23h"),
            (86_400 * 730, "2y"),
            (86_400 * (365 * 8 - 1), "7y364d"),
            (86_400 * 365 * 8, "8y"),
            (86_400 * (365 * 8 + 1), "8y"),
            (86_400 * (365 * 9 + 3), "9y"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
