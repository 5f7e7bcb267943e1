//! What containers are told in variables and files, and what of it must not be printed: each fact by itself.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Pod, Quantity, Value};
use control::Timestamp;
use serde_json::json;

use super::plain::{container, pod_of};
use crate::contents::{self, Environment};
use crate::{PodSource, SourceRead, ToldOfNode};

fn source(kind: Kind, name: &str) -> PodSource {
    PodSource { kind, name: name.into() }
}

/// Config map `app` and secret `key`, which both have these entries.
fn sources(entries: &[(&str, &str)]) -> BTreeMap<PodSource, SourceRead> {
    let bytes = |text: &str| Vec::from(text.as_bytes()).into();
    let entries: BTreeMap<_, _> = entries.iter().map(|(key, text)| (key.to_string(), bytes(text))).collect();
    let read = SourceRead { at: Timestamp(1), found: true, entries: Some(entries) };
    [(source(Kind::ConfigMap, "app"), read.clone()), (source(Kind::Secret, "key"), read)].into()
}

fn node() -> ToldOfNode {
    let allocatable = [("cpu", "4"), ("memory", "8Gi"), ("hugepages-2Mi", "64Mi")];
    let allocatable = allocatable.map(|(name, amount)| (name.into(), Quantity(amount.into()))).into();
    ToldOfNode { address: "10.0.0.7".into(), allocatable }
}

/// A pod whose container says this.
fn pod_with(more: Value) -> Pod {
    pod_of(json!({ "spec": { "volumes": [], "containers": [container("c", more)] } }))
}

fn environment(pod: &Pod, entries: &[(&str, &str)]) -> Result<Environment, String> {
    contents::environment(pod, &pod.spec.containers[0], &node(), &sources(entries))
}

/// The value of a variable that takes it from there.
fn value(pod: impl Fn(Value) -> Pod, from: Value) -> Result<String, String> {
    let pod = pod(json!({ "env": [{ "name": "E", "valueFrom": from }] }));
    environment(&pod, &[]).map(|found| found.variables["E"].clone())
}

fn from_source(kind: &str, name: &str) -> Value {
    json!({ "env": [{ "name": "E", "valueFrom": { kind: { "name": name, "key": "k" } } }] })
}

// What came from config maps and secrets belongs on no disk, by whichever way it came.
#[test]
fn what_takes_anything_from_config_maps_or_secrets_is_confidential() {
    let field = json!({ "env": [{ "name": "E", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }] });
    for (more, confidential) in [
        (json!({}), false),
        (json!({ "env": [{ "name": "E", "value": "x" }] }), false),
        (field, false),
        (from_source("configMapKeyRef", "app"), true),
        (from_source("secretKeyRef", "key"), true),
        (json!({ "envFrom": [{ "configMapRef": { "name": "app" } }] }), true),
        (json!({ "envFrom": [{ "secretRef": { "name": "key" } }] }), true),
    ] {
        let found = environment(&pod_with(more.clone()), &[("k", "canary")]).unwrap();
        assert_eq!(found.confidential, confidential, "{more}");
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
    }
    let found = environment(&pod_with(from_source("secretKeyRef", "key")), &[("k", "canary")]).unwrap();
    assert_eq!(format!("{found:?}"), r#"{"E", "HOSTNAME", "PATH"}"#, "the names alone");
}

#[test]
fn entries_that_no_variable_can_be_called_are_left_out() {
    let pod = pod_with(json!({ "envFrom": [{ "configMapRef": { "name": "app" } }] }));
    let found = environment(&pod, &[("", "1"), ("A=B", "2"), ("C", "3"), ("=", "4")]).unwrap();
    let names: Vec<&str> = found.variables.keys().map(String::as_str).collect();
    assert_eq!(names, ["C", "HOSTNAME", "PATH"]);
}

#[test]
fn an_entry_that_is_not_text_is_told_with_where_it_is_and_what_to_do() {
    for (kind, name, said) in [("configMapKeyRef", "app", "configmap app"), ("secretKeyRef", "key", "secret key")] {
        let wrong = environment(&pod_with(from_source(kind, name)), &[("k", "a\0b")]).unwrap_err();
        assert_eq!(wrong, format!("entry k of {said} is not text, so no variable can hold it; mount it"));
    }
}

#[test]
fn a_pod_on_the_machines_network_has_the_machines_address() {
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    for (host_network, path, address) in [
        (false, "status.podIP", "127.0.0.1"),
        (false, "status.podIPs", "127.0.0.1"),
        (false, "status.hostIP", "10.0.0.7"),
        (true, "status.podIP", "10.0.0.7"),
        (true, "status.podIPs", "10.0.0.7"),
        (true, "status.hostIP", "10.0.0.7"),
    ] {
        let pod = |more: Value| {
            let mut pod = pod_with(more);
            pod.spec.host_network = host_network;
            pod
        };
        assert_eq!(value(pod, field(path)).as_deref(), Ok(address), "{host_network} {path}");
    }
}

#[test]
fn a_field_that_nobody_can_be_told_is_named() {
    for path in ["spec.containers", "metadata.finalizers", "status.phase", "spec['x']"] {
        let wrong = value(pod_with, json!({ "fieldRef": { "fieldPath": path } })).unwrap_err();
        assert!(wrong.contains(path) && wrong.contains("use one such as metadata.name"), "{wrong}");
    }
}

#[test]
fn texts_of_annotations_are_quoted_as_go_quotes_them() {
    for (text, quoted) in [
        ("plain ä", r#""plain ä""#),
        ("say \"hi\"", r#""say \"hi\"""#),
        ("a\\b", r#""a\\b""#),
        ("a\n\t\rb", r#""a\n\t\rb""#),
        ("a\u{7}\u{1f}b", r#""a\x07\x1fb""#),
    ] {
        let pod = |more: Value| {
            let mut pod = pod_with(more);
            pod.metadata.annotations = [("note".into(), text.into())].into();
            pod
        };
        let found = value(pod, json!({ "fieldRef": { "fieldPath": "metadata.annotations" } }));
        assert_eq!(found, Ok(format!("note={quoted}")));
    }
}

#[test]
fn a_resource_is_told_in_units_of_its_divisor_rounded_up() {
    let own = json!({ "limits": { "memory": "1000Mi", "example.com/gpu": "1" }, "requests": { "cpu": "1500m" } });
    for (resource, divisor, amount) in [
        ("limits.memory", json!("1Mi"), Some("1000")),
        ("limits.memory", json!("1Gi"), Some("1")),
        ("limits.memory", Value::Null, Some("1048576000")),
        // Nothing is divided by nothing.
        ("limits.memory", json!("0"), Some("1048576000")),
        ("requests.cpu", Value::Null, Some("2")),
        ("requests.cpu", json!("1m"), Some("1500")),
        ("limits.cpu", Value::Null, Some("4")),
        // What a container has no limit of, it may use all of that the node has.
        ("limits.hugepages-2Mi", json!("1Mi"), Some("64")),
        ("limits.ephemeral-storage", Value::Null, Some("0")),
        ("limits.example.com/gpu", Value::Null, None),
        ("limits", Value::Null, None),
        ("usage.memory", Value::Null, None),
    ] {
        let from = json!({ "resourceFieldRef": { "resource": resource, "divisor": divisor } });
        let pod = |more: Value| {
            let mut more = more;
            more["resources"] = own.clone();
            pod_with(more)
        };
        let found = value(pod, from);
        assert_eq!(found.as_deref().ok(), amount, "{resource} {divisor}: {found:?}");
        if let Err(wrong) = found {
            assert!(wrong.contains(resource) && wrong.contains("limits.memory"), "{wrong}");
        }
    }
}

// A pod does without a source only if every use of it does.
#[test]
fn a_source_is_optional_if_every_use_of_it_is() {
    let volume =
        |name: &str, optional: bool| json!({ "name": name, "configMap": { "name": "app", "optional": optional } });
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let pod = pod_of(json!({ "spec": { "volumes": [volume("v", first), volume("w", second)] } }));
        let needs = contents::needs(&pod);
        assert_eq!(needs[&source(Kind::ConfigMap, "app")].optional, first && second, "{first} {second}");
    }
}

#[test]
fn an_entry_that_is_missing_is_left_out_where_the_source_is_optional_and_told_elsewhere() {
    for (optional, shown) in [
        (json!(true), Ok(["here"].as_slice())),
        (json!(false), Err("configmap references non-existent config key: gone")),
        (Value::Null, Err("configmap references non-existent config key: gone")),
    ] {
        let items = json!([{ "key": "here", "path": "here" }, { "key": "gone", "path": "gone" }]);
        let map = json!({ "name": "v", "configMap": { "name": "app", "optional": optional, "items": items } });
        let pod = pod_of(json!({ "spec": { "volumes": [map] } }));
        let files = contents::files(&pod, &pod.spec.volumes[0], &node(), &sources(&[("here", "1")]), &BTreeMap::new());
        let names = files.map(|files| files.into_keys().collect::<Vec<_>>());
        match (names, shown) {
            (Ok(names), Ok(shown)) => assert_eq!(names, shown),
            (Err(wrong), Err(said)) => assert_eq!(wrong, said),
            other => panic!("{optional}: {other:?}"),
        }
    }
}
