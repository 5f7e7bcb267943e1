//! What is served here, in the words `kubectl api-resources` asks for.

use rules_store::Kind;
use serde_json::{Value, json};

use super::absent::{self, AbsentKind};

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
    let known = Kind::ALL.into_iter().map(|kind| kind.group()).chain(absent::KINDS.iter().map(|kind| kind.group));
    for group in known.filter(|group| !group.is_empty()) {
        if !groups.contains(&group) {
            groups.push(group);
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
    let known = Kind::ALL.into_iter().find(|r| r.group() == group).map(|r| r.version());
    known.or_else(|| absent::KINDS.iter().find(|r| r.group == group).map(|r| r.version)).unwrap_or("v1")
}

/// Resources of one group and version.
pub(crate) fn members(group: &str, version: &str) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|r| r.group() == group && r.version() == version).collect()
}

/// `/api/v1` and `/apis/{group}/{version}`.
pub(crate) fn resource_list(group: &str, version: &str) -> Option<Value> {
    let (members, mut entries) = (members(group, version), Vec::new());
    let absent: Vec<_> = absent_members(group, version).collect();
    if members.is_empty() && absent.is_empty() {
        return None;
    }
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    for kind in members {
        let mut entry = json!({
            "name": kind.plural(), "singularName": kind.singular(), "namespaced": kind.namespaced(),
            "kind": kind.name(), "verbs": VERBS,
        });
        if !kind.short_names().is_empty() {
            entry["shortNames"] = json!(kind.short_names());
        }
        if !kind.categories().is_empty() {
            entry["categories"] = json!(kind.categories());
        }
        entries.push(entry);
        for part in subresources(kind) {
            entries.push(json!({
                "name": format!("{}/{}", kind.plural(), part.name), "singularName": "",
                "namespaced": kind.namespaced(), "kind": part.kind, "verbs": part.verbs,
            }));
        }
    }
    for kind in absent {
        entries.push(json!({
            "name": kind.plural, "singularName": kind.kind.to_ascii_lowercase(), "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": [], "shortNames": kind.short,
        }));
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": entries,
    }))
}

/// Kinds of one group and version that are not served. Without a verb, `kubectl api-resources` leaves them out.
fn absent_members(group: &str, version: &str) -> impl Iterator<Item = &'static AbsentKind> {
    absent::KINDS.iter().filter(move |kind| kind.group == group && kind.version == version)
}

struct Part {
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
}

fn subresources(kind: Kind) -> Vec<Part> {
    let mut parts = Vec::new();
    if kind.has_status() {
        parts.push(Part { name: "status", kind: kind.name(), verbs: &["get", "patch", "update"] });
    }
    if kind == Kind::Pod {
        parts.push(Part { name: "log", kind: "Pod", verbs: &["get"] });
        parts.push(Part { name: "exec", kind: "PodExecOptions", verbs: &["create", "get"] });
        parts.push(Part { name: "binding", kind: "Binding", verbs: &["create"] });
    }
    if kind == Kind::ServiceAccount {
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
    let mut resources: Vec<Value> = members(name, version).into_iter().map(aggregated_resource).collect();
    resources.extend(absent_members(name, version).map(|kind| {
        let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        json!({
            "resource": kind.plural, "responseKind": gvk, "singularResource": kind.kind.to_ascii_lowercase(),
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": [], "shortNames": kind.short,
        })
    }));
    json!({
        "metadata": if name.is_empty() { json!({}) } else { json!({"name": name}) },
        "versions": [{"version": version, "freshness": "Current", "resources": resources}],
    })
}

fn aggregated_resource(kind: Kind) -> Value {
    let gvk = |name: &str| json!({"group": kind.group(), "version": kind.version(), "kind": name});
    let parts: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|p| json!({"subresource": p.name, "responseKind": gvk(p.kind), "verbs": p.verbs}))
        .collect();
    let mut entry = json!({
        "resource": kind.plural(), "responseKind": gvk(kind.name()), "singularResource": kind.singular(),
        "scope": if kind.namespaced() { "Namespaced" } else { "Cluster" }, "verbs": VERBS,
    });
    for (key, value) in [("shortNames", kind.short_names()), ("categories", kind.categories())] {
        if !value.is_empty() {
            entry[key] = json!(value);
        }
    }
    if !parts.is_empty() {
        entry["subresources"] = json!(parts);
    }
    entry
}
