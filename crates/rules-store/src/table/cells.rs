use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;

use super::{Column, flag, number, pod, since, text, wide};
use crate::resource::Id;
use crate::{Resource, admit, meta};

static NAMESPACES: [Column; 3] = [text("Name"), text("Status"), text("Age")];
static NODES: [Column; 10] = [
    text("Name"),
    text("Status"),
    text("Roles"),
    text("Age"),
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];
static CLAIMS: [Column; 9] = [
    text("Name"),
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Age"),
    wide("VolumeMode"),
];
static VOLUMES: [Column; 11] = [
    text("Name"),
    text("Capacity"),
    text("Access Modes"),
    text("Reclaim Policy"),
    text("Status"),
    text("Claim"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Reason"),
    text("Age"),
    wide("VolumeMode"),
];
static SECRETS: [Column; 4] = [text("Name"), text("Type"), number("Data"), text("Age")];
static CONFIG_MAPS: [Column; 3] = [text("Name"), number("Data"), text("Age")];
static SERVICE_ACCOUNTS: [Column; 3] = [text("Name"), number("Secrets"), text("Age")];
static EVENTS: [Column; 10] = [
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];
static CLASSES: [Column; 6] = [
    text("Name"),
    text("Provisioner"),
    text("ReclaimPolicy"),
    text("VolumeBindingMode"),
    flag("AllowVolumeExpansion"),
    text("Age"),
];
static DRIVERS: [Column; 8] = [
    text("Name"),
    flag("AttachRequired"),
    flag("PodInfoOnMount"),
    flag("StorageCapacity"),
    text("TokenRequests"),
    flag("RequiresRepublish"),
    text("Modes"),
    text("Age"),
];
static CSI_NODES: [Column; 3] = [text("Name"), number("Drivers"), text("Age")];
static ATTACHMENTS: [Column; 6] =
    [text("Name"), text("Attacher"), text("PV"), text("Node"), flag("Attached"), text("Age")];
static CAPACITIES: [Column; 4] = [text("Name"), text("StorageClass"), text("Capacity"), text("Age")];
static ATTRIBUTES: [Column; 3] = [text("Name"), text("DriverName"), text("Age")];
static SNAPSHOTS: [Column; 8] = [
    text("Name"),
    flag("ReadyToUse"),
    text("SourcePVC"),
    text("SourceSnapshotContent"),
    text("RestoreSize"),
    text("SnapshotClass"),
    text("SnapshotContent"),
    text("Age"),
];
static SNAPSHOT_CONTENTS: [Column; 7] = [
    text("Name"),
    flag("ReadyToUse"),
    text("DeletionPolicy"),
    text("Driver"),
    text("VolumeSnapshot"),
    text("VolumeSnapshotNamespace"),
    text("Age"),
];
static GRANTS: [Column; 2] = [text("Name"), text("Age")];
static SNAPSHOT_CLASSES: [Column; 4] = [text("Name"), text("Driver"), text("DeletionPolicy"), text("Age")];
static ROLES: [Column; 2] = [text("Name"), text("Created At")];
static BINDINGS: [Column; 6] =
    [text("Name"), text("Role"), text("Age"), wide("Users"), wide("Groups"), wide("ServiceAccounts")];
static LEASES: [Column; 3] = [text("Name"), text("Holder"), text("Age")];

pub(super) fn columns(resource: &Resource) -> &'static [Column] {
    match resource.id {
        Id::Namespace => &NAMESPACES,
        Id::Node => &NODES,
        Id::Pod => &pod::COLUMNS,
        Id::PersistentVolumeClaim => &CLAIMS,
        Id::PersistentVolume => &VOLUMES,
        Id::Secret => &SECRETS,
        Id::ConfigMap => &CONFIG_MAPS,
        Id::ServiceAccount => &SERVICE_ACCOUNTS,
        Id::Event => &EVENTS,
        Id::StorageClass => &CLASSES,
        Id::CSIDriver => &DRIVERS,
        Id::CSINode => &CSI_NODES,
        Id::VolumeAttachment => &ATTACHMENTS,
        Id::CSIStorageCapacity => &CAPACITIES,
        Id::VolumeAttributesClass => &ATTRIBUTES,
        Id::Lease => &LEASES,
        Id::VolumeSnapshot => &SNAPSHOTS,
        Id::VolumeSnapshotContent => &SNAPSHOT_CONTENTS,
        Id::ReferenceGrant => &GRANTS,
        Id::VolumeSnapshotClass => &SNAPSHOT_CLASSES,
        Id::ClusterRole | Id::Role => &ROLES,
        Id::ClusterRoleBinding | Id::RoleBinding => &BINDINGS,
    }
}

pub(super) fn cells(resource: &Resource, object: &Value, now: u64) -> Vec<Value> {
    let name: Value = meta::text(object, "name").into();
    let age: Value = since(&object["metadata"]["creationTimestamp"], now).into();
    let spec = &object["spec"];
    match resource.id {
        Id::Namespace => vec![name, show(&object["status"]["phase"]), age],
        Id::Node => node(object, name, age),
        Id::Pod => pod::cells(object, name, age),
        Id::PersistentVolumeClaim => claim(object, name, age),
        Id::PersistentVolume => volume(object, name, age),
        Id::Secret => vec![name, show(&object["type"]), entries(&object["data"]).into(), age],
        Id::ConfigMap => vec![name, (entries(&object["data"]) + entries(&object["binaryData"])).into(), age],
        Id::ServiceAccount => vec![name, object["secrets"].as_array().map_or(0, Vec::len).into(), age],
        Id::Event => event(object, name, now),
        Id::StorageClass => class(object, age),
        Id::CSIDriver => driver(object, name, age),
        Id::CSINode => vec![name, spec["drivers"].as_array().map_or(0, Vec::len).into(), age],
        Id::VolumeAttachment => vec![
            name,
            show(&spec["attacher"]),
            show(&spec["source"]["persistentVolumeName"]),
            show(&spec["nodeName"]),
            object["status"]["attached"].as_bool().unwrap_or(false).into(),
            age,
        ],
        Id::CSIStorageCapacity => vec![name, show(&object["storageClassName"]), show(&object["capacity"]), age],
        Id::VolumeAttributesClass => vec![name, show(&object["driverName"]), age],
        Id::Lease => vec![name, show(&spec["holderIdentity"]), age],
        Id::VolumeSnapshot => vec![
            name,
            object["status"]["readyToUse"].as_bool().unwrap_or(false).into(),
            show(&spec["source"]["persistentVolumeClaimName"]),
            show(&spec["source"]["volumeSnapshotContentName"]),
            show(&object["status"]["restoreSize"]),
            show(&spec["volumeSnapshotClassName"]),
            show(&object["status"]["boundVolumeSnapshotContentName"]),
            age,
        ],
        Id::VolumeSnapshotContent => vec![
            name,
            object["status"]["readyToUse"].as_bool().unwrap_or(false).into(),
            show(&spec["deletionPolicy"]),
            show(&spec["driver"]),
            show(&spec["volumeSnapshotRef"]["name"]),
            show(&spec["volumeSnapshotRef"]["namespace"]),
            age,
        ],
        Id::ReferenceGrant => vec![name, age],
        Id::VolumeSnapshotClass => vec![name, show(&object["driver"]), show(&object["deletionPolicy"]), age],
        Id::ClusterRole | Id::Role => vec![name, show(&object["metadata"]["creationTimestamp"])],
        Id::ClusterRoleBinding | Id::RoleBinding => binding(object, name, age),
    }
}

/// A text, or nothing.
fn show(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

/// A text, or a word for its absence.
fn or(value: &Value, absent: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent).into()
}

fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `RWO,ROX`, each mode once and in the usual order.
fn access_modes(modes: &Value) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let have = texts(modes);
    let short: Vec<&str> = short.iter().filter(|(mode, _)| have.contains(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

fn phase(object: &Value) -> Value {
    if meta::is_deleting(object) { "Terminating".into() } else { show(&object["status"]["phase"]) }
}

fn class_name(object: &Value) -> Value {
    match meta::annotation(object, api::names::STORAGE_CLASS_BETA) {
        Some(class) => class.into(),
        None => show(&object["spec"]["storageClassName"]),
    }
}

fn claim(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let bound = spec["volumeName"].as_str().is_some_and(|volume| !volume.is_empty());
    let (capacity, modes) = match bound {
        true => (show(&status["capacity"]["storage"]), access_modes(&status["accessModes"])),
        false => (Value::from(""), String::new()),
    };
    vec![
        name,
        phase(object),
        show(&spec["volumeName"]),
        capacity,
        modes.into(),
        class_name(object),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        age,
        or(&spec["volumeMode"], "<unset>"),
    ]
}

fn volume(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let claim = match (spec["claimRef"]["namespace"].as_str(), spec["claimRef"]["name"].as_str()) {
        (namespace, Some(name)) => format!("{}/{name}", namespace.unwrap_or_default()),
        (Some(_) | None, None) => String::new(),
    };
    vec![
        name,
        show(&spec["capacity"]["storage"]),
        access_modes(&spec["accessModes"]).into(),
        show(&spec["persistentVolumeReclaimPolicy"]),
        phase(object),
        claim.into(),
        class_name(object),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        show(&object["status"]["reason"]),
        age,
        or(&spec["volumeMode"], "<unset>"),
    ]
}

fn class(object: &Value, age: Value) -> Vec<Value> {
    let mut name = meta::text(object, "name").to_string();
    if admit::is_default_class(object) {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        show(&object["provisioner"]),
        or(&object["reclaimPolicy"], "Delete"),
        or(&object["volumeBindingMode"], "Immediate"),
        object["allowVolumeExpansion"].as_bool().unwrap_or(false).into(),
        age,
    ]
}

fn driver(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let flag = |key: &str, default: bool| Value::from(spec[key].as_bool().unwrap_or(default));
    let tokens = spec["tokenRequests"].as_array().into_iter().flatten();
    let audiences: Vec<&str> = tokens.filter_map(|token| token["audience"].as_str()).collect();
    let tokens = if audiences.is_empty() { "<unset>".into() } else { audiences.join(",") };
    vec![
        name,
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        tokens.into(),
        flag("requiresRepublish", false),
        texts(&spec["volumeLifecycleModes"]).join(",").into(),
        age,
    ]
}

fn binding(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let role = &object["roleRef"];
    let role = format!("{}/{}", role["kind"].as_str().unwrap_or_default(), role["name"].as_str().unwrap_or_default());
    let subjects = |kind: &str| {
        let all = object["subjects"].as_array().into_iter().flatten();
        let names = all.filter(|subject| subject["kind"].as_str() == Some(kind)).map(|subject| {
            let name = subject["name"].as_str().unwrap_or_default();
            subject["namespace"].as_str().map_or(name.into(), |namespace| format!("{namespace}/{name}"))
        });
        Value::from(names.collect::<Vec<_>>().join(", "))
    };
    vec![name, role.into(), age, subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    const ROLE: &str = "node-role.kubernetes.io/";
    let (status, info) = (&object["status"], &object["status"]["nodeInfo"]);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|c| c["type"].as_str() == Some("Ready")).map(|c| c["status"].as_str());
    let mut state = match ready {
        Some(Some("True")) => "Ready".to_string(),
        Some(Some(_) | None) => "NotReady".to_string(),
        None => "Unknown".to_string(),
    };
    if object["spec"]["unschedulable"].as_bool() == Some(true) {
        state.push_str(",SchedulingDisabled");
    }
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(key, _)| key.strip_prefix(ROLE)).collect();
    let roles = if roles.is_empty() { "<none>".into() } else { roles.join(",") };
    let address = |of: &str| {
        let mut all = status["addresses"].as_array().into_iter().flatten();
        or(all.find(|a| a["type"].as_str() == Some(of)).map_or(&Value::Null, |a| &a["address"]), "<none>")
    };
    vec![
        name,
        state.into(),
        roles.into(),
        age,
        show(&info["kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        or(&info["osImage"], "<unknown>"),
        or(&info["kernelVersion"], "<unknown>"),
        or(&info["containerRuntimeVersion"], "<unknown>"),
    ]
}

fn event(object: &Value, name: Value, now: u64) -> Vec<Value> {
    let first = [&object["firstTimestamp"], &object["eventTime"]].into_iter().find(|time| time.is_string());
    let last = [&object["series"]["lastObservedTime"], &object["lastTimestamp"]].into_iter().find(|t| t.is_string());
    let first = first.unwrap_or(&Value::Null);
    let count = object["series"]["count"].as_i64().or(object["count"].as_i64()).unwrap_or(1);
    let about = &object["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_ascii_lowercase();
    let source = object["source"]["component"].as_str().or(object["reportingComponent"].as_str()).unwrap_or_default();
    vec![
        since(last.unwrap_or(first), now).into(),
        show(&object["type"]),
        show(&object["reason"]),
        format!("{kind}/{}", about["name"].as_str().unwrap_or_default()).into(),
        show(&about["fieldPath"]),
        source.into(),
        object["message"].as_str().unwrap_or_default().trim().into(),
        since(first, now).into(),
        count.to_string().into(),
        name,
    ]
}
