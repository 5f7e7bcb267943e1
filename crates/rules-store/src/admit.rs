//! Defaults and admission: what a cluster adds to an object before it looks at it.

use alloc::format;
use alloc::string::String;
use core::cmp::Reverse;

use api::{Quantity, names};
use serde_json::{Map, Value, json};

use crate::resource::{CLASSES, Id, RBAC};
use crate::store::Store;
use crate::{Failure, Resource, encode, meta};

/// What happens once, when an object is made.
pub(crate) fn create(store: &Store, resource: &'static Resource, body: &mut Value) {
    match resource.id {
        Id::PersistentVolumeClaim => {
            name_default_class(store, body);
            meta::add_finalizer(body, names::PVC_PROTECTION);
        }
        Id::PersistentVolume => meta::add_finalizer(body, names::PV_PROTECTION),
        Id::Pod => {
            let class = quality(body);
            let status = meta::object_at(body, "status");
            default(status, "phase", "Pending");
            default(status, "qosClass", class);
        }
        Id::Namespace => {
            let name = String::from(meta::text(body, "name"));
            let labels = meta::of(body).entry("labels").or_insert_with(|| json!({}));
            if let Value::Object(labels) = labels {
                labels.insert("kubernetes.io/metadata.name".into(), name.into());
            }
        }
        // Nothing is added to the others.
        Id::Node
        | Id::Secret
        | Id::ConfigMap
        | Id::ServiceAccount
        | Id::Event
        | Id::StorageClass
        | Id::CSIDriver
        | Id::CSINode
        | Id::VolumeAttachment
        | Id::CSIStorageCapacity
        | Id::VolumeAttributesClass
        | Id::VolumeSnapshot
        | Id::VolumeSnapshotContent
        | Id::ReferenceGrant
        | Id::VolumeSnapshotClass
        | Id::ClusterRole
        | Id::ClusterRoleBinding
        | Id::Role
        | Id::RoleBinding
        | Id::Lease => {}
    }
}

/// EX-1: only claims of a class that allows it may grow.
pub(crate) fn update(store: &Store, resource: &'static Resource, old: &Value, new: &Value) -> Result<(), Failure> {
    if resource.id != Id::PersistentVolumeClaim {
        return Ok(());
    }
    let size = |claim: &Value| {
        let text = claim["spec"]["resources"]["requests"]["storage"].as_str().map(String::from);
        text.and_then(|text| Quantity(text).bytes().ok())
    };
    let (Some(before), Some(after)) = (size(old), size(new)) else { return Ok(()) };
    // A claim that is not bound may not change its request at all, which validation says in its own words.
    if after <= before || old["status"]["phase"].as_str() != Some("Bound") {
        return Ok(());
    }
    let class = class_of(new).unwrap_or_default();
    let allowed =
        store.get(CLASSES, "", class).is_some_and(|c| c.value["allowVolumeExpansion"].as_bool() == Some(true));
    if allowed {
        return Ok(());
    }
    Err(Failure::Forbidden {
        resource,
        name: meta::text(new, "name").into(),
        message: format!(
            "its storage class {class:?} does not allow volumes to grow; set allowVolumeExpansion on a class"
        ),
    })
}

fn class_of(claim: &Value) -> Option<&str> {
    meta::annotation(claim, names::STORAGE_CLASS_BETA).or(claim["spec"]["storageClassName"].as_str())
}

/// A claim that names no class gets the newest default class, if there is one.
fn name_default_class(store: &Store, claim: &mut Value) {
    if class_of(claim).is_some() {
        return;
    }
    let defaults = store.list(CLASSES, None).filter(|class| is_default_class(&class.value));
    let newest = defaults.min_by_key(|class| {
        (Reverse(String::from(meta::text(&class.value, "creationTimestamp"))), class.key.name.clone())
    });
    if let Some(class) = newest {
        meta::object_at(claim, "spec").insert("storageClassName".into(), (&*class.key.name).into());
    }
}

pub(crate) fn is_default_class(class: &Value) -> bool {
    [names::DEFAULT_CLASS, names::DEFAULT_CLASS_BETA].iter().any(|key| meta::annotation(class, key) == Some("true"))
}

/// What happens on every write: fields that were left out get the value they stand for.
pub(crate) fn defaults(resource: &'static Resource, body: &mut Value) {
    match resource.id {
        Id::PersistentVolumeClaim => {
            claim(meta::object_at(body, "spec"));
            default(meta::object_at(body, "status"), "phase", "Pending");
        }
        Id::PersistentVolume => {
            default(meta::object_at(body, "status"), "phase", "Pending");
            let spec = meta::object_at(body, "spec");
            default(spec, "persistentVolumeReclaimPolicy", "Retain");
            default(spec, "volumeMode", "Filesystem");
        }
        Id::StorageClass => {
            if let Value::Object(class) = body {
                default(class, "reclaimPolicy", "Delete");
                default(class, "volumeBindingMode", "Immediate");
            }
        }
        Id::CSIDriver => {
            let spec = meta::object_at(body, "spec");
            default(spec, "attachRequired", true);
            default(spec, "podInfoOnMount", false);
            default(spec, "storageCapacity", false);
            default(spec, "requiresRepublish", false);
            default(spec, "seLinuxMount", false);
            default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            default(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
        Id::Namespace => default(meta::object_at(body, "status"), "phase", "Active"),
        Id::VolumeAttachment => default(meta::object_at(body, "status"), "attached", false),
        Id::CSINode => default(meta::object_at(body, "spec"), "drivers", json!([])),
        Id::Pod => pod(meta::object_at(body, "spec")),
        Id::Secret => secret(body),
        Id::ClusterRoleBinding | Id::RoleBinding => binding(body),
        // The others say all they mean.
        Id::Node
        | Id::ConfigMap
        | Id::ServiceAccount
        | Id::Event
        | Id::CSIStorageCapacity
        | Id::VolumeAttributesClass
        | Id::VolumeSnapshot
        | Id::VolumeSnapshotContent
        | Id::ReferenceGrant
        | Id::VolumeSnapshotClass
        | Id::ClusterRole
        | Id::Role
        | Id::Lease => {}
    }
}

fn default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.entry(key).or_insert_with(|| value.into());
}

fn claim(spec: &mut Map<String, Value>) {
    default(spec, "volumeMode", "Filesystem");
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source, reference) {
        // Whoever reads either of the two fields finds the source.
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(reference)) => {
            let local = reference.get("namespace").is_none_or(|n| n.as_str() == Some(""));
            let classic = matches!(reference["kind"].as_str(), Some("PersistentVolumeClaim" | "VolumeSnapshot"));
            if local && classic {
                spec.insert("dataSource".into(), reference);
            }
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn pod(spec: &mut Map<String, Value>) {
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "serviceAccountName", "default");
    default(spec, "enableServiceLinks", true);
    default(spec, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for item in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(item) = item {
                container(item);
            }
        }
    }
    for item in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(item) = item {
            volume(item);
        }
    }
}

fn container(container: &mut Map<String, Value>) {
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    default(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let (name, tag) =
        image.rsplit_once('/').map_or(image, |(_, name)| name).split_once(':').unwrap_or((image, "latest"));
    let moving = !name.contains('@') && tag == "latest" && !image.contains('@');
    default(container, "imagePullPolicy", if moving { "Always" } else { "IfNotPresent" });
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            default(port, "protocol", "TCP");
        }
    }
}

fn volume(volume: &mut Map<String, Value>) {
    // A volume that names no source is an empty directory.
    if volume.len() <= 1 {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            default(source, "defaultMode", 0o644);
        }
    }
    if let Some(Value::Object(host)) = volume.get_mut("hostPath") {
        default(host, "type", "");
    }
    if let Some(ephemeral) = volume.get_mut("ephemeral").filter(|e| e["volumeClaimTemplate"]["spec"].is_object())
        && let Value::Object(spec) = &mut ephemeral["volumeClaimTemplate"]["spec"]
    {
        claim(spec);
    }
}

/// `stringData` is a way to write `data` without encoding it; it is never read back.
fn secret(body: &mut Value) {
    let Value::Object(secret) = body else { return };
    default(secret, "type", "Opaque");
    if let Some(Value::Object(plain)) = secret.remove("stringData") {
        let data = secret.entry("data").or_insert_with(|| json!({}));
        for (key, value) in plain {
            data[key] = encode::base64(value.as_str().unwrap_or_default().as_bytes()).into();
        }
    }
}

/// Users and groups are names of the group of roles itself; service accounts are objects of the core group.
fn binding(body: &mut Value) {
    default(meta::object_at(body, "roleRef"), "apiGroup", RBAC);
    for subject in body.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(subject) = subject
            && matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group"))
        {
            default(subject, "apiGroup", RBAC);
        }
    }
}

/// The pod's quality of service: none asked for, everything asked for and limited alike, or something between.
fn quality(pod: &Value) -> &'static str {
    let containers = || {
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
    };
    let amount = |resources: &Value, part: &str, what: &str| {
        resources[part][what].as_str().map(|text| Quantity(text.into())).and_then(|quantity| quantity.bytes().ok())
    };
    let (mut any, mut full) = (false, true);
    for container in containers() {
        for what in ["cpu", "memory"] {
            let resources = &container["resources"];
            let (request, limit) = (amount(resources, "requests", what), amount(resources, "limits", what));
            any |= request.is_some() || limit.is_some();
            full &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, full) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
