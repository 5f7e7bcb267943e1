//! Where a pod's files and variables come from, held to what Kubernetes takes: names of files stay within their volume.

use alloc::collections::BTreeSet;
use alloc::format;

use api::Quantity;
use serde_json::Value;

use crate::FieldProblem;
use crate::validate::{Report, items};

const PLACES: [&str; 8] =
    ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
/// Fields that both files and variables can tell.
const FIELDS: [&str; 3] = ["metadata.name", "metadata.namespace", "metadata.uid"];
/// Fields that only files can tell, because they are maps.
const MAPS: [&str; 2] = ["metadata.labels", "metadata.annotations"];
/// Fields that only variables can tell.
const OF_VARIABLES: [&str; 6] =
    ["spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"];

/// The source of a volume.
pub(super) fn volume(report: &mut Report, path: &str, volume: &Value) {
    named(report, &format!("{path}.configMap"), &volume["configMap"], "name");
    named(report, &format!("{path}.secret"), &volume["secret"], "secretName");
    in_tree(report, path, volume);
    for source in ["configMap", "secret"] {
        files(report, &format!("{path}.{source}"), &volume[source]);
    }
    fields(report, &format!("{path}.downwardAPI"), &volume["downwardAPI"]);
    mode(report, &format!("{path}.projected.defaultMode"), &volume["projected"]["defaultMode"]);
    for (at, part) in items(&volume["projected"]["sources"]).enumerate() {
        let path = format!("{path}.projected.sources[{at}]");
        for source in ["configMap", "secret"] {
            named(report, &format!("{path}.{source}"), &part[source], "name");
            files(report, &format!("{path}.{source}"), &part[source]);
        }
        fields(report, &format!("{path}.downwardAPI"), &part["downwardAPI"]);
        let token = &part["serviceAccountToken"];
        if token.is_object() {
            file(report, &format!("{path}.serviceAccountToken.path"), &token["path"]);
            if token["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < 600) {
                let message = "may not specify a duration less than 10 minutes";
                report.invalid(format!("{path}.serviceAccountToken.expirationSeconds"), message);
            }
        }
    }
    host_path(report, &format!("{path}.hostPath"), &volume["hostPath"]);
    if let Some(limit) = volume["emptyDir"]["sizeLimit"].as_str()
        && Quantity(limit.into()).bytes().is_ok_and(|bytes| bytes < 0)
    {
        let message = "SizeLimit field must be a valid resource quantity";
        report.add(format!("{path}.emptyDir.sizeLimit"), FieldProblem::Forbidden, message);
    }
}

/// What a source of an in-tree plugin must say, in a volume and in a pod alike.
pub(crate) fn in_tree(report: &mut Report, path: &str, volume: &Value) {
    for (source, field) in [
        ("gcePersistentDisk", "pdName"),
        ("awsElasticBlockStore", "volumeID"),
        ("azureDisk", "diskName"),
        ("azureDisk", "diskURI"),
        ("azureFile", "secretName"),
        ("azureFile", "shareName"),
        ("cinder", "volumeID"),
        ("vsphereVolume", "volumePath"),
        ("portworxVolume", "volumeID"),
        ("rbd", "image"),
    ] {
        named(report, &format!("{path}.{source}"), &volume[source], field);
    }
}

fn named(report: &mut Report, path: &str, source: &Value, field: &str) {
    if source.is_object() && source[field].as_str().unwrap_or_default().is_empty() {
        report.required(format!("{path}.{field}"), "it must be set");
    }
}

/// Entries that become files.
fn files(report: &mut Report, path: &str, source: &Value) {
    mode(report, &format!("{path}.defaultMode"), &source["defaultMode"]);
    for (at, item) in items(&source["items"]).enumerate() {
        let path = format!("{path}.items[{at}]");
        if item["key"].as_str().unwrap_or_default().is_empty() {
            report.required(format!("{path}.key"), "it must be set");
        }
        file(report, &format!("{path}.path"), &item["path"]);
        mode(report, &format!("{path}.mode"), &item["mode"]);
    }
}

/// Fields that become files.
fn fields(report: &mut Report, path: &str, source: &Value) {
    mode(report, &format!("{path}.defaultMode"), &source["defaultMode"]);
    for (at, item) in items(&source["items"]).enumerate() {
        let path = format!("{path}.items[{at}]");
        file(report, &format!("{path}.path"), &item["path"]);
        mode(report, &format!("{path}.mode"), &item["mode"]);
        field(report, &path, &item["fieldRef"], &[&FIELDS[..], &MAPS[..]].concat());
        if item["resourceFieldRef"].is_object() {
            named(report, &format!("{path}.resourceFieldRef"), &item["resourceFieldRef"], "containerName");
            named(report, &format!("{path}.resourceFieldRef"), &item["resourceFieldRef"], "resource");
        } else if !item["fieldRef"].is_object() {
            report.required(format!("{path}.fieldRef"), "one of fieldRef and resourceFieldRef is required");
        }
    }
}

fn field(report: &mut Report, path: &str, reference: &Value, known: &[&str]) {
    if !reference.is_object() {
        return;
    }
    let path = format!("{path}.fieldRef.fieldPath");
    let asked = reference["fieldPath"].as_str().unwrap_or_default();
    let entry = MAPS.iter().any(|map| {
        let key = asked.strip_prefix(map).and_then(|rest| rest.strip_prefix("['")).and_then(|r| r.strip_suffix("']"));
        key.is_some_and(|key| !key.is_empty())
    });
    match asked {
        "" => report.required(path, "it must be set"),
        asked if entry || known.contains(&asked) => {}
        asked => {
            let message = format!("{asked:?}: supported values: {}", known.join(", "));
            report.add(path, FieldProblem::NotSupported, message);
        }
    }
}

/// A path that stays within the volume, and leaves the names to us that begin with two dots.
fn file(report: &mut Report, path: &str, name: &Value) {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        report.required(path, "it must be set");
    } else if name.starts_with('/') {
        report.invalid(path, format!("{name:?}: must be a relative path"));
    } else if name.split('/').any(|part| part == "..") {
        report.invalid(path, format!("{name:?}: must not contain '..'"));
    } else if name.starts_with("..") {
        report.invalid(path, format!("{name:?}: must not start with '..'"));
    } else if name.split('/').any(|part| part.is_empty() || part == ".") {
        report.invalid(path, format!("{name:?}: must not contain empty parts"));
    }
}

fn mode(report: &mut Report, path: &str, mode: &Value) {
    if mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        report.invalid(path, format!("{mode}: must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

fn host_path(report: &mut Report, path: &str, host: &Value) {
    if !host.is_object() {
        return;
    }
    match host["path"].as_str().unwrap_or_default() {
        "" => report.required(format!("{path}.path"), "it must be set"),
        place if place.split('/').any(|part| part == "..") => {
            report.invalid(format!("{path}.path"), format!("{place:?}: must not contain '..'"));
        }
        place if !place.starts_with('/') => {
            report.invalid(format!("{path}.path"), format!("{place:?}: must be an absolute path"));
        }
        _place => {}
    }
    if let Some(kind) = host["type"].as_str().filter(|kind| !PLACES.contains(kind)) {
        let message = format!("{kind:?}: supported values: {}", PLACES[1..].join(", "));
        report.add(format!("{path}.type"), FieldProblem::NotSupported, message);
    }
}

/// A variable of a container.
pub(super) fn variable(report: &mut Report, path: &str, variable: &Value) {
    let from = &variable["valueFrom"];
    if !from.is_object() {
        return;
    }
    let path = format!("{path}.valueFrom");
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let named_sources = sources.iter().filter(|source| from[**source].is_object()).count();
    if named_sources != 1 {
        report.invalid(path.as_str(), "it must name exactly one source");
    }
    if variable["value"].as_str().is_some_and(|value| !value.is_empty()) {
        report.invalid(path.as_str(), "may not be specified when `value` is not empty");
    }
    field(report, &path, &from["fieldRef"], &[&FIELDS[..], &OF_VARIABLES[..]].concat());
    for source in ["configMapKeyRef", "secretKeyRef"] {
        named(report, &format!("{path}.{source}"), &from[source], "name");
        named(report, &format!("{path}.{source}"), &from[source], "key");
    }
    named(report, &format!("{path}.resourceFieldRef"), &from["resourceFieldRef"], "resource");
}

/// Variables from all entries of an object.
pub(super) fn all_of(report: &mut Report, path: &str, from: &Value) {
    let both: BTreeSet<&str> =
        ["configMapRef", "secretRef"].into_iter().filter(|source| from[*source].is_object()).collect();
    if both.len() != 1 {
        report.invalid(path, "it must name exactly one of configMapRef and secretRef");
    }
    for source in both {
        named(report, &format!("{path}.{source}"), &from[source], "name");
    }
}

/// Which later mounts a container wants to share.
pub(super) fn propagation(report: &mut Report, path: &str, mount: &Value, container: &Value) {
    let path = format!("{path}.mountPropagation");
    match mount["mountPropagation"].as_str() {
        None | Some("None" | "HostToContainer") => {}
        Some("Bidirectional") if container["securityContext"]["privileged"] == true => {}
        Some("Bidirectional") => {
            let message = "Bidirectional mount propagation is available only to privileged containers";
            report.add(path, FieldProblem::Forbidden, message);
        }
        Some(other) => {
            let message = format!("{other:?}: supported values: None, HostToContainer, Bidirectional");
            report.add(path, FieldProblem::NotSupported, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use serde_json::json;

    use super::*;
    use crate::{Context, FieldValidation, Request, Store, WriteOptions};

    /// What a pod with this container and these volumes is told.
    fn told(container: Value, volumes: Value) -> alloc::string::String {
        let context = Context { now_millis: 1, new_uid: "u", actor: "t" };
        let options = WriteOptions {
            dry_run: false,
            field_validation: FieldValidation::Strict,
            only_existing: false,
            judged: true,
        };
        let mut store = Store::new();
        let labels = json!({ "pod-security.kubernetes.io/enforce": "privileged" });
        let home = json!({ "metadata": { "name": "n", "labels": labels } });
        let kind = api::Kind::Namespace;
        store.apply(&context, Request::Create { kind, namespace: "".into(), body: home, options }).unwrap();
        let mut whole = json!({ "name": "c", "image": "host" });
        for (key, value) in container.as_object().unwrap() {
            whole[key] = value.clone();
        }
        let body = json!({ "metadata": { "name": "p" }, "spec": { "containers": [whole], "volumes": volumes } });
        let request = Request::Create { kind: api::Kind::Pod, namespace: "n".into(), body, options };
        store.apply(&context, request).map_or_else(|failure| failure.to_string(), |_| "taken".to_string())
    }

    #[test]
    fn sources_of_volumes_are_held_to_what_kubernetes_takes() {
        let volume = |source: Value| {
            let mut volume = source;
            volume["name"] = "v".into();
            told(json!({}), json!([volume]))
        };
        let item = |item: Value| json!({ "configMap": { "name": "m", "items": [item] } });
        let field =
            |path: &str| json!({ "downwardAPI": { "items": [{ "path": "f", "fieldRef": { "fieldPath": path } }] } });
        for (source, said) in [
            (item(json!({ "key": "k", "path": "a/b", "mode": 0o400 })), "taken"),
            (json!({ "secret": { "secretName": "s", "optional": true } }), "taken"),
            (field("metadata.labels['a']"), "taken"),
            (json!({ "hostPath": { "path": "/x", "type": "Socket" } }), "taken"),
            (json!({ "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } }), "taken"),
            (json!({ "configMap": {} }), "configMap.name: Required"),
            (json!({ "secret": {} }), "secret.secretName: Required"),
            (json!({ "projected": { "sources": [{ "secret": {} }] } }), "sources[0].secret.name: Required"),
            (item(json!({ "key": "k", "path": "../x" })), "must not contain '..'"),
            (item(json!({ "key": "k", "path": "/x" })), "must be a relative path"),
            (item(json!({ "key": "k", "path": "..x" })), "must not start with '..'"),
            (item(json!({ "key": "k", "path": "a//b" })), "must not contain empty parts"),
            (item(json!({ "path": "x" })), "items[0].key: Required"),
            (item(json!({ "key": "k", "path": "x", "mode": 0o1000 })), "between 0 and 0777"),
            (field("spec.nodeName"), "fieldRef.fieldPath: Unsupported"),
            (json!({ "downwardAPI": { "items": [{ "path": "f" }] } }), "one of fieldRef and resourceFieldRef"),
            (json!({ "hostPath": {} }), "hostPath.path: Required"),
            (json!({ "hostPath": { "path": "/a/../b" } }), "must not contain '..'"),
            (json!({ "hostPath": { "path": "/a", "type": "Door" } }), "hostPath.type: Unsupported"),
            (json!({ "emptyDir": { "sizeLimit": "-1" } }), "must be a valid resource quantity"),
        ] {
            let told = volume(source.clone());
            assert!(told.contains(said), "{source}: {told}");
        }
    }

    #[test]
    fn sources_of_variables_are_held_to_what_kubernetes_takes() {
        let variable = |from: Value| json!({ "env": [{ "name": "E", "valueFrom": from }] });
        for (container, said) in [
            (variable(json!({ "fieldRef": { "fieldPath": "spec.nodeName" } })), "taken"),
            (variable(json!({ "secretKeyRef": { "name": "s", "key": "k" } })), "taken"),
            (json!({ "envFrom": [{ "prefix": "P_", "configMapRef": { "name": "m" } }] }), "taken"),
            (variable(json!({})), "exactly one source"),
            (variable(json!({ "fieldRef": { "fieldPath": "metadata.labels" } })), "fieldPath: Unsupported"),
            (variable(json!({ "configMapKeyRef": { "name": "m" } })), "configMapKeyRef.key: Required"),
            (
                json!({ "env": [{ "name": "E", "value": "v",
                    "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }] }),
                "may not be specified when `value` is not empty",
            ),
            (json!({ "envFrom": [{}] }), "exactly one of configMapRef and secretRef"),
            (json!({ "envFrom": [{ "secretRef": {} }] }), "secretRef.name: Required"),
        ] {
            let told = told(container.clone(), json!([]));
            assert!(told.contains(said), "{container}: {told}");
        }
    }

    #[test]
    fn only_privileged_containers_share_their_mounts_with_the_machine() {
        let mount = |how: &str, privileged: bool| {
            let mounts = json!([{ "name": "v", "mountPath": "/v", "mountPropagation": how }]);
            told(
                json!({ "volumeMounts": mounts, "securityContext": { "privileged": privileged } }),
                json!([{ "name": "v" }]),
            )
        };
        for (how, privileged, said) in [
            ("None", false, "taken"),
            ("HostToContainer", false, "taken"),
            ("Bidirectional", true, "taken"),
            ("Bidirectional", false, "available only to privileged containers"),
            ("Sideways", true, "mountPropagation: Unsupported"),
        ] {
            let told = mount(how, privileged);
            assert!(told.contains(said), "{how}: {told}");
        }
    }
}
