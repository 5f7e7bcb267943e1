use alloc::collections::BTreeSet;
use alloc::vec;

use serde_json::{Value, json};

use super::*;
use crate::{Context, Failure, Request, Store, Subresource, Target, WriteOptions};

fn inner(r#type: Type) -> Option<&'static Message> {
    match r#type {
        Type::Message(of) | Type::Messages(of) | Type::Keyed(of, _) | Type::Inline(of) => Some(of),
        _ => None,
    }
}

/// Holds a table to its message, and those within.
fn complete(table: &'static FieldTable, path: &str, seen: &mut BTreeSet<*const FieldTable>) {
    if !seen.insert(core::ptr::from_ref(table)) {
        return;
    }
    let mut listed: Vec<&str> = table.entries.iter().flat_map(|entry| entry.names).copied().collect();
    let mut known: Vec<&str> = table.of.json_fields().map(|field| field.name).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "{path}: the table of {} and its schema", table.of.name);
    for entry in table.entries {
        let honoured = entry.standing == FieldStanding::Honoured;
        assert!(honoured || !entry.sentence.is_empty(), "{path}{:?}: say why, and what to do", entry.names);
        assert!(
            honoured || entry.within.is_none(),
            "{path}{:?}: nobody looks within what is not honoured",
            entry.names
        );
        assert!(!honoured || entry.unless.is_empty(), "{path}{:?}: an honoured field takes every value", entry.names);
        assert!(entry.sentence.len() <= 200, "{path}{:?}: a warning is at most 512 bytes with its path", entry.names);
        for name in entry.names {
            let within = inner(table.of.field(name).unwrap().r#type);
            let opaque = path.is_empty() && *name == "status";
            match (within, entry.within) {
                (Some(of), Some(table)) => {
                    assert!(core::ptr::eq(of, table.of), "{path}{name} is a {}, not a {}", of.name, table.of.name);
                    complete(table, &format!("{path}{name}."), seen);
                }
                (Some(_), None) => assert!(!honoured || opaque, "{path}{name} needs a table of what is within"),
                (None, within) => assert!(within.is_none(), "{path}{name} has nothing within"),
            }
        }
    }
}

#[test]
fn every_field_of_every_kind_has_a_standing() {
    for kind in Kind::ALL {
        let table = fields(kind);
        assert!(core::ptr::eq(table.of, crate::schema(kind)), "{kind}");
        complete(table, "", &mut BTreeSet::new());
    }
}

const CONTEXT: Context<'static> = Context { now_millis: 1, new_uid: "u", actor: "t" };
const JUDGED: WriteOptions = WriteOptions {
    dry_run: false,
    field_validation: crate::FieldValidation::Strict,
    only_existing: false,
    judged: true,
};

fn store() -> Store {
    let mut store = Store::new();
    let body = json!({"metadata": {"name": "default"}});
    let request =
        Request::Create { kind: Kind::Namespace, namespace: String::new(), body, options: WriteOptions::default() };
    store.apply(&CONTEXT, request).unwrap();
    store
}

fn create(store: &mut Store, kind: Kind, body: Value, options: WriteOptions) -> Result<Vec<String>, Failure> {
    let namespace = if kind.namespaced() { "default" } else { "" };
    let request = Request::Create { kind, namespace: namespace.into(), body, options };
    store.apply(&CONTEXT, request).map(|applied| applied.warnings)
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "host"}]}});
    for (key, value) in spec.as_object().unwrap() {
        match value.as_object() {
            Some(more) if key == "container" => {
                let container = pod["spec"]["containers"][0].as_object_mut().unwrap();
                container.extend(more.clone());
            }
            _ => pod["spec"][key] = value.clone(),
        }
    }
    pod
}

/// The fields that are refused, and those that are warned of.
fn told(kind: Kind, body: Value) -> (Vec<String>, Vec<String>) {
    match create(&mut store(), kind, body, JUDGED) {
        Ok(warnings) => {
            (vec![], warnings.iter().map(|warning| warning.split(": ").next().unwrap().to_string()).collect())
        }
        Err(failure @ Failure::Invalid { .. }) => {
            let status = failure.to_status();
            assert_eq!(status["code"], 422);
            let causes = status["details"]["causes"].as_array().unwrap();
            (causes.iter().map(|cause| cause["field"].as_str().unwrap().into()).collect(), vec![])
        }
        Err(other) => panic!("{other}"),
    }
}

fn refused(kind: Kind, body: Value, fields: &[&str]) {
    assert_eq!(told(kind, body), (fields.iter().map(|field| (*field).into()).collect(), vec![]));
}

fn warned(kind: Kind, body: Value, fields: &[&str]) {
    assert_eq!(told(kind, body), (vec![], fields.iter().map(|field| (*field).into()).collect()));
}

#[test]
fn what_would_be_ignored_is_refused_by_its_path() {
    // newuser.md 4 and 5: all of these were taken and did nothing.
    let hook = json!({"tcpSocket": {"port": 1}});
    let probe = json!({"grpc": {"port": 1}});
    for (spec, field) in [
        (json!({"container": {"livenessProbe": probe}}), "spec.containers[0].livenessProbe.grpc"),
        (json!({"container": {"readinessProbe": probe}}), "spec.containers[0].readinessProbe.grpc"),
        (json!({"container": {"startupProbe": probe}}), "spec.containers[0].startupProbe.grpc"),
        (json!({"container": {"lifecycle": {"preStop": hook}}}), "spec.containers[0].lifecycle.preStop.tcpSocket"),
        (json!({"container": {"lifecycle": {"postStart": hook}}}), "spec.containers[0].lifecycle.postStart.tcpSocket"),
        (json!({"container": {"tty": true}}), "spec.containers[0].tty"),
        (
            json!({"container": {"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": 1}}}}),
            "spec.containers[0].resources.limits.nvidia.com/gpu",
        ),
        (json!({"volumes": [{"name": "v", "emptyDir": {"medium": "HugePages"}}]}), "spec.volumes[0].emptyDir.medium"),
        (
            json!({"volumes": [{"name": "v", "configMap": {"name": "m", "defaultUser": 7}}]}),
            "spec.volumes[0].configMap.defaultUser",
        ),
        (json!({"hostAliases": [{"ip": "127.0.0.2"}]}), "spec.hostAliases"),
        (json!({"dnsConfig": {"nameservers": ["1.1.1.1"]}}), "spec.dnsConfig"),
        (json!({"runtimeClassName": "kata"}), "spec.runtimeClassName"),
        (json!({"shareProcessNamespace": true}), "spec.shareProcessNamespace"),
        (json!({"overhead": {"cpu": "1"}}), "spec.overhead"),
        (json!({"hostUsers": false}), "spec.hostUsers"),
        (json!({"initContainers": [{"name": "i", "image": "host", "tty": true}]}), "spec.initContainers[0].tty"),
        (
            json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}),
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (
            json!({"container": {"securityContext": {"seccompProfile": {"type": "Localhost"}}}}),
            "spec.containers[0].securityContext.seccompProfile.type",
        ),
    ] {
        refused(Kind::Pod, pod(spec), &[field]);
    }
    let mount = json!({"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"});
    let mounted = json!({"container": {"volumeMounts": [mount]}, "volumes": [{"name": "v"}]});
    refused(Kind::Pod, pod(mounted), &["spec.containers[0].volumeMounts[0].recursiveReadOnly"]);
}

#[test]
fn all_refused_fields_are_named_together_with_what_is_invalid() {
    let spec = json!({"overhead": {"cpu": "1"}, "dnsConfig": {}, "restartPolicy": "Sometimes"});
    refused(Kind::Pod, pod(spec), &["spec.dnsConfig", "spec.overhead", "spec.restartPolicy"]);
    // However many fields are warned of, one that is refused is refused.
    let many: Vec<Value> = (0..300).map(|n| json!({"name": format!("c{n}"), "image": "x"})).collect();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": many, "dnsConfig": {}}});
    refused(Kind::Pod, pod, &["spec.dnsConfig"]);
}

#[test]
fn what_does_no_harm_is_warned_of() {
    warned(Kind::Pod, pod(json!({"priorityClassName": "high"})), &["spec.priorityClassName"]);
    warned(Kind::Pod, pod(json!({"imagePullSecrets": [{"name": "s"}]})), &["spec.imagePullSecrets"]);
    warned(Kind::Pod, pod(json!({"container": {"image": "nginx"}})), &["spec.containers[0].image"]);
    let snapshot = json!({"metadata": {"name": "s"}, "spec": {"source": {"persistentVolumeClaimName": "c"}}});
    warned(Kind::VolumeSnapshot, snapshot, &["spec.source"]);
}

#[test]
fn defaults_and_empty_values_are_not_set() {
    let spec = json!({
        "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "serviceAccountName": "default",
        "serviceAccount": "default", "enableServiceLinks": true, "securityContext": {}, "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority", "shareProcessNamespace": false, "hostPID": false, "affinity": {},
        "hostUsers": true, "initContainers": [], "runtimeClassName": null, "overhead": {}, "subdomain": "",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300}],
        "volumes": [{"name": "v", "emptyDir": {"medium": ""}}],
        "container": {
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "stdin": false,
            "imagePullPolicy": "Always", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "securityContext": {"procMount": "Default", "seccompProfile": {"type": "RuntimeDefault"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "None", "subPath": ""}],
        },
    });
    warned(Kind::Pod, pod(spec), &[]);
}

#[test]
fn an_object_from_before_can_be_changed_and_is_judged_for_what_is_new() {
    let mut store = store();
    let probe = json!({"tcpSocket": {"port": 1}});
    let containers = json!([{"name": "a", "image": "x", "livenessProbe": probe}, {"name": "b", "image": "x"}]);
    let body = json!({"metadata": {"name": "p"}, "spec": {"containers": containers, "dnsConfig": {"searches": ["x"]}}});
    create(&mut store, Kind::Pod, body, WriteOptions::default()).unwrap();
    let target = Target::new(Kind::Pod, "default", "p");
    let mut patch = |body: Value, subresource| {
        let kind = crate::PatchKind::Strategic;
        store.apply(&CONTEXT, Request::Patch { target: target.clone(), subresource, kind, body, options: JUDGED })
    };
    assert_eq!(patch(json!({"metadata": {"labels": {"a": "b"}}}), None).unwrap().warnings, [""; 0]);
    // The list is merged by name: a is still a.
    let image = patch(json!({"spec": {"containers": [{"name": "b", "image": "y"}]}}), None).unwrap();
    assert_eq!(image.warnings.len(), 1, "{:?}", image.warnings);
    assert!(image.warnings[0].starts_with("spec.containers[1].image: "), "{:?}", image.warnings);
    let resolver = patch(json!({"spec": {"dnsConfig": {"searches": ["y"]}}}), None).unwrap_err();
    assert!(resolver.to_string().contains("spec.dnsConfig: Forbidden: a pod's resolver"), "{resolver}");
    let status = json!({"status": {"phase": "Running"}});
    assert_eq!(patch(status, Some(Subresource::Status)).unwrap().changes.len(), 1);
    let apply = Request::Patch {
        target: target.clone(),
        subresource: None,
        kind: crate::PatchKind::Apply,
        body: json!({"metadata": {"labels": {"c": "d"}}}),
        options: JUDGED,
    };
    let applied = store.apply(&CONTEXT, apply).unwrap();
    assert!(applied.warnings[0].starts_with("server-side apply: "), "{:?}", applied.warnings);
}

#[test]
fn long_lists_are_judged_without_the_square_of_their_length() {
    // H4: every item has moved by one place.
    let list = |from: usize| -> Value { (from..from + 100_000).map(|n| json!({"name": format!("v{n}")})).collect() };
    let (old, new) = (json!({"spec": {"volumes": list(0)}}), json!({"spec": {"volumes": list(1)}}));
    let verdict = judge(Kind::Pod, Some(&old), &new);
    assert!(verdict.refused.is_empty() && verdict.warnings.is_empty());
}

#[test]
fn lines_tell_paths_and_what_passes() {
    let lines = lines(Kind::Pod);
    let line = |path: &str| lines.iter().find(|line| line.path == path).unwrap();
    assert_eq!(line("spec.containers[].livenessProbe.grpc").standing, FieldStanding::Refused);
    assert_eq!(line("spec.containers[].image").unless, ["host"]);
    assert_eq!(line("spec.nodeSelector").standing, FieldStanding::Honoured);
    assert!(!lines.iter().any(|line| line.path.starts_with("status") || line.path.contains("livenessProbe.grpc.")));
}

// S4-6: what a CSI driver has taken over is taken as it is, of volumes and of pods, and no warning says that it does
// not work; a source that lacks its disk, or one of no driver, is not.
#[test]
fn s4_6_in_tree_sources_are_taken_as_they_are() {
    let sources = [
        json!({ "gcePersistentDisk": { "pdName": "d", "fsType": "ext4", "partition": 1, "readOnly": true } }),
        json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } }),
        json!({ "azureDisk": { "diskName": "d", "diskURI": "/u/d", "kind": "Managed" } }),
        json!({ "azureFile": { "secretName": "s", "shareName": "x" } }),
        json!({ "cinder": { "volumeID": "c" } }),
        json!({ "vsphereVolume": { "volumePath": "[d] v.vmdk" } }),
        json!({ "portworxVolume": { "volumeID": "p" } }),
        json!({ "rbd": { "image": "i", "pool": "p", "secretRef": { "name": "s" } } }),
    ];
    let mut store = store();
    for (at, source) in sources.iter().enumerate() {
        let (name, source) = (format!("v{at}"), source.as_object().unwrap());
        let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] });
        spec.as_object_mut().unwrap().extend(source.clone());
        let volume = json!({ "metadata": { "name": name }, "spec": spec });
        assert_eq!(create(&mut store, Kind::PersistentVolume, volume, JUDGED), Ok(vec![]), "{source:?}");
        let mut held = json!({ "name": "data" });
        held.as_object_mut().unwrap().extend(source.clone());
        let spec = json!({ "containers": [{ "name": "c", "image": "host" }], "volumes": [held] });
        let pod = json!({ "metadata": { "name": name }, "spec": spec });
        assert_eq!(create(&mut store, Kind::Pod, pod, JUDGED), Ok(vec![]), "{source:?}");

        let (plugin, _) = source.iter().next().unwrap();
        let mut empty = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] });
        empty[plugin] = json!({});
        let volume = json!({ "metadata": { "name": "empty" }, "spec": empty });
        let failure = create(&mut store, Kind::PersistentVolume, volume, JUDGED).unwrap_err();
        assert!(format!("{failure:?}").contains(&format!("spec.{plugin}.")), "{failure:?}");
        let spec =
            json!({ "containers": [{ "name": "c", "image": "host" }], "volumes": [{ "name": "v", plugin: {} }] });
        let pod = json!({ "metadata": { "name": "empty" }, "spec": spec });
        assert!(create(&mut store, Kind::Pod, pod, JUDGED).is_err(), "{plugin}");
    }
    // What the driver cannot be told is said.
    let spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
        "rbd": { "image": "i", "keyring": "k" } });
    let volume = json!({ "metadata": { "name": "w" }, "spec": spec });
    let warnings = create(&mut store, Kind::PersistentVolume, volume, JUDGED).unwrap();
    assert!(warnings.len() == 1 && warnings[0].starts_with("spec.rbd.keyring"), "{warnings:?}");
}
