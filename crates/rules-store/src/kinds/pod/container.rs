//! What a container says, held to what Kubernetes takes: names become parts of paths and of environments.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use serde_json::Value;

use super::sources;
use super::validate::name;
use crate::FieldProblem;
use crate::validate::{Report, items};

pub(super) fn check(report: &mut Report, path: &str, container: &Value, volumes: &BTreeSet<&str>) {
    if container["image"].as_str().unwrap_or_default().is_empty() {
        report.required(format!("{path}.image"), "it must be set");
    }
    ports(report, path, &container["ports"]);
    for (at, variable) in items(&container["env"]).enumerate() {
        // A later variable of the same name wins, as in Kubernetes.
        name(report, &mut BTreeSet::new(), format!("{path}.env[{at}].name"), &variable["name"], variable_name);
        sources::variable(report, &format!("{path}.env[{at}]"), variable);
    }
    for (at, from) in items(&container["envFrom"]).enumerate() {
        sources::all_of(report, &format!("{path}.envFrom[{at}]"), from);
    }
    let mut places = BTreeSet::new();
    for (at, mount) in items(&container["volumeMounts"]).enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        volume(report, &path, &mount["name"], volumes);
        place(report, &mut places, format!("{path}.mountPath"), &mount["mountPath"]);
        sources::propagation(report, &path, mount, container);
        for part in ["subPath", "subPathExpr"] {
            let below = mount[part].as_str().unwrap_or_default();
            if below.starts_with('/') {
                report.invalid(format!("{path}.{part}"), format!("{below:?}: must be a relative path"));
            }
            if climbs(below) {
                report.invalid(format!("{path}.{part}"), format!("{below:?}: must not contain '..'"));
            }
        }
        if mount["subPath"].as_str().is_some_and(|text| !text.is_empty())
            && let Some(other) = mount["subPathExpr"].as_str().filter(|text| !text.is_empty())
        {
            let message = format!("{other:?}: subPathExpr and subPath are mutually exclusive");
            report.invalid(format!("{path}.subPathExpr"), message);
        }
    }
    for (at, device) in items(&container["volumeDevices"]).enumerate() {
        let path = format!("{path}.volumeDevices[{at}]");
        volume(report, &path, &device["name"], volumes);
        let devices = format!("{path}.devicePath");
        if let Some(climbing) = device["devicePath"].as_str().filter(|device| climbs(device)) {
            report.invalid(devices.clone(), format!("{climbing:?}: must not contain '..'"));
        }
        place(report, &mut places, devices, &device["devicePath"]);
    }
}

/// A volume of the pod.
fn volume(report: &mut Report, path: &str, name: &Value, volumes: &BTreeSet<&str>) {
    match name.as_str().unwrap_or_default() {
        "" => report.required(format!("{path}.name"), "it must be set"),
        name if volumes.contains(name) => {}
        name => {
            let message = format!("{name:?}: the pod has no volume of this name");
            report.add(format!("{path}.name"), FieldProblem::NotFound, message);
        }
    }
}

/// A path in the container that nothing else takes.
fn place<'a>(report: &mut Report, taken: &mut BTreeSet<&'a str>, path: String, place: &'a Value) {
    match place.as_str().unwrap_or_default() {
        "" => report.required(path, "it must be set"),
        place if taken.insert(place) => {}
        place => report.invalid(path, format!("{place:?}: must be unique")),
    }
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

fn ports(report: &mut Report, path: &str, ports: &Value) {
    let mut names = BTreeSet::new();
    for (at, port) in items(ports).enumerate() {
        let path = format!("{path}.ports[{at}]");
        if port["name"].as_str().is_some_and(|text| !text.is_empty()) {
            name(report, &mut names, format!("{path}.name"), &port["name"], port_name);
        }
        for (field, needed) in [("containerPort", true), ("hostPort", false)] {
            let path = format!("{path}.{field}");
            match port[field].as_i64() {
                None | Some(0) if needed => report.required(path, "it must be set"),
                None | Some(0..=65_535) => {}
                Some(number) => report.invalid(path, format!("{number}: must be between 1 and 65535, inclusive")),
            }
        }
        if let Some(protocol) = port["protocol"].as_str().filter(|word| !["SCTP", "TCP", "UDP"].contains(word)) {
            let message = format!("{protocol:?}: supported values: \"SCTP\", \"TCP\", \"UDP\"");
            report.add(format!("{path}.protocol"), FieldProblem::NotSupported, message);
        }
    }
}

fn port_name(name: &str) -> Option<&'static str> {
    match name {
        name if name.len() > 15 => Some("must be no more than 15 characters"),
        name if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') => {
            Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
        }
        name if !name.bytes().any(|b| b.is_ascii_lowercase()) => Some("must contain at least one letter (a-z)"),
        name if name.contains("--") => Some("must not contain consecutive hyphens"),
        name if name.starts_with('-') || name.ends_with('-') => Some("must not begin or end with a hyphen"),
        _fits => None,
    }
}

fn variable_name(name: &str) -> Option<&'static str> {
    if name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return None;
    }
    Some("a valid environment variable name must consist only of printable ASCII characters other than '='")
}
