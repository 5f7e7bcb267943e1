//! Tables for `kubectl get`: the columns people expect for each kind.

mod cells;
mod pod;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::Time;
use serde_json::{Value, json};

use crate::{Resource, Stored};

/// One column: its heading, its type, and whether only `-o wide` shows it.
struct Column {
    name: &'static str,
    of: &'static str,
    wide: bool,
}

const fn text(name: &'static str) -> Column {
    Column { name, of: "string", wide: false }
}

const fn number(name: &'static str) -> Column {
    Column { name, of: "integer", wide: false }
}

const fn flag(name: &'static str) -> Column {
    Column { name, of: "boolean", wide: false }
}

const fn wide(name: &'static str) -> Column {
    Column { name, of: "string", wide: true }
}

impl Column {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.of,
            // The name column is found by its format, whatever its heading.
            "format": if self.name == "Name" && !self.wide { "name" } else { "" },
            "description": "",
            "priority": i32::from(self.wide),
        })
    }
}

/// A `meta.k8s.io/v1` Table. Each row carries the metadata of its object. The caller sets `metadata.resourceVersion`.
pub fn table(resource: &'static Resource, objects: &[&Stored], now_millis: u64) -> Value {
    let columns: Vec<Value> = cells::columns(resource).iter().map(Column::to_json).collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            json!({
                "cells": cells::cells(resource, &object.value, now_millis),
                "object": {
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": object.value["metadata"],
                },
            })
        })
        .collect();
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {},
        "columnDefinitions": columns, "rows": rows,
    })
}

/// How long ago a time was, as `kubectl` writes it.
fn since(time: &Value, now_millis: u64) -> String {
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
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (86_400 * 729, "729d"),
            (86_400 * 731, "2y1d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
