//! What is served here, in the words `kubectl api-resources` asks for.

use rules_store::{Resource, resources};
use serde_json::{Value, json};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/version`.
pub(crate) fn version() -> Value {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.0+longshore", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{machine}", std::env::consts::OS),
    })
}

/// `/api`.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// The named groups, in the order of the table.
fn groups() -> Vec<&'static str> {
    let mut groups = Vec::new();
    for resource in resources().iter().filter(|r| !r.group.is_empty()) {
        if !groups.contains(&resource.group) {
            groups.push(resource.group);
        }
    }
    groups
}

/// `/apis`.
pub(crate) fn group_list() -> Value {
    let groups: Vec<Value> = groups().into_iter().filter_map(group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/{group}`.
pub(crate) fn group(name: &str) -> Option<Value> {
    if name.is_empty() || !groups().contains(&name) {
        return None;
    }
    let version = version_of(name);
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": [version.clone()], "preferredVersion": version,
    }))
}

/// The one version of a group that is served.
fn version_of(group: &str) -> &'static str {
    resources().iter().find(|r| r.group == group).map_or("v1", |r| r.version)
}

/// Resources of one group and version.
pub(crate) fn members(group: &str, version: &str) -> Vec<&'static Resource> {
    resources().iter().filter(|r| r.group == group && r.version == version).collect()
}

/// `/api/v1` and `/apis/{group}/{version}`.
pub(crate) fn resource_list(group: &str, version: &str) -> Option<Value> {
    let members = members(group, version);
    let api_version = members.first()?.api_version();
    let mut entries = Vec::new();
    for resource in members {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": VERBS,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        entries.push(entry);
        for part in subresources(resource) {
            entries.push(json!({
                "name": format!("{}/{}", resource.plural, part.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": part.kind, "verbs": part.verbs,
            }));
        }
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": entries,
    }))
}

struct Part {
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
}

fn subresources(resource: &Resource) -> Vec<Part> {
    let mut parts = Vec::new();
    if resource.status {
        parts.push(Part { name: "status", kind: resource.kind, verbs: &["get", "patch", "update"] });
    }
    if resource.group.is_empty() && resource.plural == "pods" {
        parts.push(Part { name: "log", kind: "Pod", verbs: &["get"] });
        parts.push(Part { name: "binding", kind: "Binding", verbs: &["create"] });
    }
    if resource.group.is_empty() && resource.plural == "serviceaccounts" {
        parts.push(Part { name: "token", kind: "TokenRequest", verbs: &["create"] });
    }
    parts
}

/// Aggregated discovery: of the core group at `/api`, of the others at `/apis`.
pub(crate) fn aggregated(core: bool) -> Value {
    let names = if core { vec![""] } else { groups() };
    let items: Vec<Value> = names.into_iter().map(aggregated_group).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_group(name: &str) -> Value {
    let version = version_of(name);
    let resources: Vec<Value> = members(name, version).into_iter().map(aggregated_resource).collect();
    json!({
        "metadata": if name.is_empty() { json!({}) } else { json!({"name": name}) },
        "versions": [{"version": version, "freshness": "Current", "resources": resources}],
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |name: &str| json!({"group": resource.group, "version": resource.version, "kind": name});
    let parts: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|p| json!({"subresource": p.name, "responseKind": kind(p.kind), "verbs": p.verbs}))
        .collect();
    let mut entry = json!({
        "resource": resource.plural, "responseKind": kind(resource.kind), "singularResource": resource.singular,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "verbs": VERBS,
    });
    for (key, value) in [("shortNames", resource.short_names), ("categories", resource.categories)] {
        if !value.is_empty() {
            entry[key] = json!(value);
        }
    }
    if !parts.is_empty() {
        entry["subresources"] = json!(parts);
    }
    entry
}
