//! How things stand that no rule waits on: classes, drivers, nodes, snapshots, namespaces. What `explain` says of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{CSIDriver, CSINode, Kind, Node, Object, ObjectKey, StorageClass};
use control::Cache;

/// How an object stands: whether all is as it should be, and a sentence without its subject and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// Nothing remains to be done about it.
    pub settled: bool,
    /// Such as `the driver is registered on node a`.
    pub text: String,
}

impl ObjectState {
    fn settled(text: impl Into<String>) -> ObjectState {
        ObjectState { settled: true, text: text.into() }
    }

    fn waiting(text: impl Into<String>) -> ObjectState {
        ObjectState { settled: false, text: text.into() }
    }
}

/// How an object stands, if it is of a kind that rules read and do nothing about.
pub fn object_state(object: &Object, cache: &Cache) -> Option<ObjectState> {
    Some(match object {
        Object::StorageClass(class) => class_state(class, cache),
        Object::CSIDriver(driver) => driver_state(driver, cache),
        Object::CSINode(node) => csi_node_state(node),
        Object::Node(node) => node_state(node, cache),
        Object::VolumeAttributesClass(class) => ObjectState::settled(format!(
            "it holds parameters that the resizer of driver {} gives to volumes whose claims name it",
            class.driver_name
        )),
        Object::VolumeSnapshot(snapshot) => {
            snapshot_state(snapshot.status.ready_to_use, snapshot.spec.source.persistent_volume_claim_name.as_deref())
        }
        Object::VolumeSnapshotContent(content) => snapshot_state(content.status.ready_to_use, None),
        _ => return None,
    })
}

/// How a namespace stands, which is in no cache; `going` once somebody asked for its deletion.
pub fn namespace_state(name: &str, going: bool, cache: &Cache) -> ObjectState {
    let kinds = [(Kind::Pod, "pod"), (Kind::PersistentVolumeClaim, "pvc")];
    let there = |(kind, word): &(Kind, &str)| {
        let inside = cache.all(*kind).filter(|object| object.meta().namespace == name);
        inside.map(|object| format!("{word}/{}", object.meta().name)).collect::<Vec<_>>()
    };
    let inside: Vec<String> = kinds.iter().flat_map(there).collect();
    match (going, inside.first()) {
        (false, _) => ObjectState::settled("the namespace is open for new objects"),
        (true, Some(first)) => ObjectState::waiting(format!(
            "it is being deleted and still holds {} pods and claims; explain {first} -n {name} says what keeps it",
            inside.len()
        )),
        (true, None) => ObjectState::waiting(
            "it is being deleted and holds no pod or claim any more, but objects with finalizers may be left in it",
        ),
    }
}

fn class_state(class: &StorageClass, cache: &Cache) -> ObjectState {
    let driver = &class.provisioner;
    if driver == "kubernetes.io/no-provisioner" {
        return ObjectState::settled("no driver makes volumes of this class; claims get volumes that exist");
    }
    let when = match class.waits_for_consumer() {
        true => "when the first pod that uses the claim has a node",
        false => "as soon as a claim asks",
    };
    let default = match StorageClass::default_of(cache.classes()) {
        Some(chosen) if chosen.metadata.name == class.metadata.name => ", also for claims that name no class",
        Some(_) | None => "",
    };
    let grows = if class.allow_volume_expansion == Some(true) { "can grow" } else { "cannot grow" };
    let nodes = registered_on(driver, cache);
    if nodes.is_empty() {
        return ObjectState::waiting(format!(
            "its driver {driver} is registered on no node, so nothing makes its volumes"
        ));
    }
    ObjectState::settled(format!(
        "driver {driver} makes its volumes {when}{default}; they {grows}, and the policy when a claim goes is {}",
        class.reclaim_policy()
    ))
}

fn driver_state(driver: &CSIDriver, cache: &Cache) -> ObjectState {
    let nodes = registered_on(&driver.metadata.name, cache);
    if nodes.is_empty() {
        return ObjectState::waiting(
            "the driver is registered on no node; start it beside a node agent that finds its registration socket",
        );
    }
    let attach = if driver.attach_required() { "are attached before" } else { "need no attachment before" };
    ObjectState::settled(format!("the driver is registered on {}; volumes {attach} they are mounted", nodes.join(", ")))
}

fn csi_node_state(node: &CSINode) -> ObjectState {
    match drivers_of(node) {
        drivers if drivers.is_empty() => ObjectState::waiting("no driver is registered on the node"),
        drivers => ObjectState::settled(format!("registered on the node: {}", drivers.join("; "))),
    }
}

fn node_state(node: &Node, cache: &Cache) -> ObjectState {
    let csi_node = cache.csi_node(&ObjectKey::cluster(&*node.metadata.name));
    let drivers = csi_node.map(|node| drivers_of(&node)).unwrap_or_default();
    let drivers = if drivers.is_empty() { "no driver is registered".to_string() } else { drivers.join("; ") };
    if !node.is_ready() {
        let ready = node.status.conditions.iter().find(|condition| condition.r#type == "Ready");
        let why = ready.map(|condition| condition.message.as_str()).filter(|message| !message.is_empty());
        return ObjectState::waiting(format!("the node is not ready: {}", why.unwrap_or("its agent has not said so")));
    }
    let taints = node.spec.taints.iter().filter(|taint| taint.effect.starts_with("No"));
    let taints: Vec<String> = taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    let pods = match (node.spec.unschedulable, taints.is_empty()) {
        (true, _) => "is cordoned and takes no new pods (kubectl uncordon opens it)".to_string(),
        (false, false) => format!("takes only pods that tolerate {}", taints.join(", ")),
        (false, true) => "takes pods".to_string(),
    };
    ObjectState::settled(format!("the node is ready and {pods}; drivers: {drivers}"))
}

/// Nobody takes snapshots here.
fn snapshot_state(ready: Option<bool>, of: Option<&str>) -> ObjectState {
    if ready == Some(true) {
        return ObjectState::settled("the snapshot is ready to use");
    }
    let of = of.map_or(String::new(), |claim| format!(" of claim {claim}"));
    ObjectState::waiting(format!(
        "nothing here takes snapshots{of}: Longshore has no snapshot controller; run Kubernetes' snapshot-controller \
         and csi-snapshotter beside it"
    ))
}

/// The nodes a driver is registered on.
fn registered_on(driver: &str, cache: &Cache) -> Vec<String> {
    let has = |node: &CSINode| node.spec.drivers.iter().any(|one| one.name == driver);
    cache.csi_nodes().filter(|node| has(node)).map(|node| format!("node {}", node.metadata.name)).collect()
}

/// The drivers registered on a node, with what they tell apart places by.
fn drivers_of(node: &CSINode) -> Vec<String> {
    let told = node.spec.drivers.iter().map(|driver| match driver.topology_keys.as_deref() {
        Some(keys) if !keys.is_empty() => format!("{} with topology {}", driver.name, keys.join(", ")),
        Some(_) | None => driver.name.clone(),
    });
    told.collect()
}
