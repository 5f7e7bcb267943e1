//! What the controllers beside the provisioner decide on everything they can find in the cache, as tables: which
//! sources are let go, and what is published about capacity.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, OwnerReference, Value, names};
use control::{Action, Cache, Decision, Reason, Rules, Timestamp};
use csi::{ControllerRpc, PluginService};
use prove_lab::{Choices, check_table, print_effect};
use serde_json::json;

use super::world::local;
use crate::capacity::Said;
use crate::{
    Capacity, CapacityKey, CapacityMemory, CapacitySettings, ContentSource, Intent, Local, OwnNode, Segments, Settings,
    SourceKey, SourceKind, Sources,
};

fn set(cache: &mut Cache, kind: Kind, body: Value) {
    cache.set(Object::from_json(kind, body).unwrap());
}

/// A decision with all of its effect and what a person reads.
fn told<A: Action, C: Reason>(decision: &Decision<A, C>) -> String {
    let text = &decision.why().text;
    match decision {
        Decision::Do(action, _) => format!("Do({}: {}) {text}", action.name(), print_effect(&action.effect())),
        Decision::Wait(until, _) => format!("Wait({}) {text}", until.0),
        Decision::Rest(why) => format!("Rest, {}: {text}", if why.settled { "settled" } else { "waiting" }),
        Decision::Either(..) => String::from("Either"),
    }
}

/// A journal with one entry, for a claim that is made from a source.
fn journal(cache: &mut Cache, uid: &str, user: &str, source: &ContentSource) {
    let entry = json!({ "c": { "ns": "n", "n": user, "s": "1Gi" }, "u": "class", "source": source });
    let name = format!("{}{uid}.1", names::JOURNAL_ENTRY);
    let key = local().journal();
    let annotations = json!({ name: serde_json::to_string(&entry).unwrap() });
    let metadata = json!({ "namespace": key.namespace, "name": key.name, "uid": "j", "annotations": annotations });
    set(cache, Kind::Lease, json!({ "metadata": metadata }));
}

#[test]
fn everything_a_source_can_be() {
    check_table(env!("CARGO_MANIFEST_DIR"), "sources", |choices| {
        let mut cache = Cache::default();
        let snapshot = choices.word("source", &["snapshot", "claim"]) == "snapshot";
        let (kind, held_by) = match snapshot {
            true => (Kind::VolumeSnapshot, names::SNAPSHOT_SOURCE_PROTECTION),
            false => (Kind::PersistentVolumeClaim, names::CLONE_PROTECTION),
        };
        let able = choices.flag("able");
        let copies = if able == snapshot { ControllerRpc::CreateDeleteSnapshot } else { ControllerRpc::CloneVolume };
        let capabilities = Local::PLAIN.with(copies.into());
        let intents = [("claim", Intent::OnClaim), ("journal", Intent::InJournal), ("memory", Intent::InMemory)];
        let intent = choices.one_of("intent", &intents);
        let settings = Settings { intent, ..Settings::clone(&local().settings) };
        let local = Local { capabilities, settings: settings.into(), ..local() };
        if choices.flag("there") {
            let finalizers = choices.one_of("finalizers", &[("none", json!([])), ("ours", json!(["a/b", held_by]))]);
            let mut metadata = json!({ "namespace": "n", "name": "src", "uid": "s", "finalizers": finalizers });
            if choices.flag("deleting") {
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            set(&mut cache, kind, json!({ "metadata": metadata }));
        }
        let source = match snapshot {
            true => ("VolumeSnapshot", Some("snapshot.storage.k8s.io"), SourceKind::Snapshot),
            false => ("PersistentVolumeClaim", None, SourceKind::Volume),
        };
        let user = choices.word("user", &["none", "no-phase", "Pending", "Bound", "Lost", "of-another-source"]);
        if user != "none" {
            let begun = choices.flag("begun").then_some(names::PROVISIONING_INTENT);
            let name = if user == "of-another-source" { "other" } else { "src" };
            let phase = match user {
                "no-phase" => "",
                "of-another-source" => "Pending",
                phase => phase,
            };
            let spec = json!({ "dataSource": { "apiGroup": source.1, "kind": source.0, "name": name } });
            let metadata = json!({ "namespace": "n", "name": "user", "uid": "u", "finalizers": Vec::from_iter(begun) });
            let body = json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } });
            set(&mut cache, Kind::PersistentVolumeClaim, body);
        }
        match choices.word("entry", &["none", "of-the-user", "of-one-gone", "of-one-made-anew", "from-another-source"])
        {
            "none" => {}
            entry => {
                let name = if entry == "from-another-source" { "src-2" } else { "src" };
                let uid = if entry == "of-the-user" { "u" } else { "gone" };
                let who = if entry == "of-one-gone" { "lost" } else { "user" };
                let from =
                    ContentSource { kind: source.2, namespace: "n".into(), name: name.into(), handle: "h".into() };
                journal(&mut cache, uid, who, &from);
            }
        }
        let key = ObjectKey::new("n", "src");
        let key = if snapshot { SourceKey::Snapshot(key) } else { SourceKey::Claim(key) };
        told(&Sources::decide(Timestamp(0), &Sources::view(&key, &cache, &local), &()))
    });
}

const ZONE: &str = "topology.d/zone";
const NOW: Timestamp = Timestamp(1_000_000);

fn owner() -> OwnerReference {
    OwnerReference { kind: "StatefulSet".into(), name: "p".into(), uid: "o".into(), ..OwnerReference::default() }
}

/// A provisioner that publishes, or not, and says how far its driver's volumes reach.
fn publisher(choices: &mut Choices) -> Local {
    let immediate = choices.flag("for-immediate");
    let capacity = CapacitySettings { namespace: "n".into(), immediate, poll_millis: 60_000, owner: None };
    let mut settings = Settings { capacity: Some(capacity), ..Settings::clone(&local().settings) };
    let topology = match choices.word("reach", &["everywhere", "zones", "own-node"]) {
        "everywhere" => false,
        "zones" => true,
        _own_node => {
            let segments: Segments = [(ZONE.into(), "a".into())].into();
            let own = OwnNode { name: "node-a".into(), segments, ..OwnNode::default() };
            settings.node = Some(own);
            true
        }
    };
    settings.topology = true;
    let mut capabilities = Local::PLAIN;
    capabilities.extend(topology.then_some(PluginService::VolumeAccessibilityConstraints));
    Local { capabilities, settings: settings.into(), ..local() }
}

/// One class and one node in zone `a`, as far as they are there.
fn cluster(choices: &mut Choices) -> Cache {
    let mut cache = Cache::default();
    let class = choices.one_of(
        "class",
        &[
            ("none", None),
            ("waits", Some(("d", json!("WaitForFirstConsumer")))),
            ("says-nothing", Some(("d", Value::Null))),
            ("immediate", Some(("d", json!("Immediate")))),
            ("of-another-driver", Some(("e", json!("WaitForFirstConsumer")))),
        ],
    );
    if let Some((provisioner, mode)) = class {
        let body = json!({ "metadata": { "name": "fast", "uid": "k" }, "provisioner": provisioner,
            "volumeBindingMode": mode, "parameters": { "tier": "1" } });
        set(&mut cache, Kind::StorageClass, body);
    }
    let node = choices.word("node", &["in-a", "in-b", "unlabelled", "driver-not-on-it", "gone"]);
    if node != "gone" {
        let zone = match node {
            "in-b" => json!({ ZONE: "b" }),
            "unlabelled" => json!({}),
            _ => json!({ ZONE: "a" }),
        };
        set(&mut cache, Kind::Node, json!({ "metadata": { "name": "node-a", "uid": "x", "labels": zone } }));
    }
    let name = if node == "driver-not-on-it" { "e" } else { "d" };
    let drivers = json!([{ "name": name, "nodeID": "i", "topologyKeys": [ZONE] }]);
    set(
        &mut cache,
        Kind::CSINode,
        json!({ "metadata": { "name": "node-a", "uid": "y" }, "spec": { "drivers": drivers } }),
    );
    cache
}

/// An object that says something about class `fast`.
fn object(name: &str, local: &Local, zone: Option<&str>, said: (&str, Option<&str>), owners: Value) -> Value {
    let labels = crate::capacity::labels(local);
    let place = zone.map_or(json!({}), |zone| json!({ "matchLabels": { ZONE: zone } }));
    json!({
        "metadata": { "namespace": "n", "name": name, "uid": "c", "labels": labels, "ownerReferences": owners },
        "storageClassName": "fast", "nodeTopology": place, "capacity": said.0, "maximumVolumeSize": said.1,
    })
}

#[test]
fn every_place_that_is_asked_about() {
    check_table(env!("CARGO_MANIFEST_DIR"), "capacity-places", |choices| {
        let local = publisher(choices);
        let cache = cluster(choices);
        let zone = choices.one_of("place", &[("everywhere", None), ("a", Some("a")), ("b", Some("b"))]);
        let segments = zone.iter().map(|zone| (ZONE.into(), (*zone).into())).collect();
        let place = CapacityKey::Place { class: "fast".into(), segments };
        let looked_at = Capacity::keys(&cache, &local).contains(&place);
        let told = told(&Capacity::decide(NOW, &Capacity::view(&place, &cache, &local), &CapacityMemory::default()));
        format!("{}{told}", if looked_at { "" } else { "(not looked at by itself) " })
    });
}

/// What was said so long ago, so often.
fn memory(choices: &mut Choices) -> CapacityMemory {
    let said = |ago: u64, times| Some(Said { at: Timestamp(NOW.0 - ago), available: 1 << 30, largest: Some(5), times });
    let said = choices.one_of(
        "said",
        &[
            ("never", None),
            ("just-now", said(0, 0)),
            ("just-now-for-the-third-time", said(0, 2)),
            ("just-now-as-ever", said(0, 9)),
            ("49ms-ago", said(49, 2)),
            ("50ms-ago", said(50, 2)),
            ("999ms-ago", said(999, 0)),
            ("1s-ago", said(1_000, 0)),
        ],
    );
    CapacityMemory { said }
}

#[test]
fn everything_to_say_about_a_place() {
    check_table(env!("CARGO_MANIFEST_DIR"), "capacity", |choices| {
        let owned = choices.flag("owned").then(owner);
        let poll_millis = choices.one_of("poll", &[("1m", 60_000), ("1ms", 1)]);
        let capacity = CapacitySettings { namespace: "n".into(), immediate: false, poll_millis, owner: owned };
        let settings = Settings { capacity: Some(capacity), ..Settings::clone(&local().settings) };
        let local = Local { capabilities: Local::PLAIN, settings: settings.into(), ..local() };
        let mut cache = Cache::default();
        set(&mut cache, Kind::StorageClass, json!({ "metadata": { "name": "fast", "uid": "k" }, "provisioner": "d" }));
        let memory = memory(choices);
        let published = choices.word("published", &["no", "same", "other-size", "other-largest", "other-owner"]);
        if published != "no" {
            let said = match published {
                "other-size" => ("2Gi", Some("5")),
                "other-largest" => ("1Gi", None),
                _ => ("1Gi", Some("5")),
            };
            let another = OwnerReference { uid: "p".into(), ..owner() };
            let owner = if published == "other-owner" { another } else { owner() };
            set(&mut cache, Kind::CSIStorageCapacity, object("by-hand", &local, None, said, json!([owner])));
        }
        let place = CapacityKey::Place { class: "fast".into(), segments: Segments::new() };
        told(&Capacity::decide(NOW, &Capacity::view(&place, &cache, &local), &memory))
    });
}

#[test]
fn everything_an_object_with_our_labels_can_be() {
    check_table(env!("CARGO_MANIFEST_DIR"), "capacity-objects", |choices| {
        let local = publisher(choices);
        let mut cache = cluster(choices);
        let zone = choices.one_of("says", &[("everywhere", None), ("a", Some("a")), ("b", Some("b"))]);
        let mut body = object("m", &local, zone, ("1Gi", None), json!([]));
        match choices.word("object", &["ours", "of-another-driver", "in-another-namespace", "of-another-class"]) {
            "of-another-driver" => body["metadata"]["labels"][names::CAPACITY_DRIVER] = "e".into(),
            "in-another-namespace" => body["metadata"]["namespace"] = "far".into(),
            "of-another-class" => body["storageClassName"] = "slow".into(),
            _ours => {}
        }
        let key = CapacityKey::Object(ObjectKey::new(body["metadata"]["namespace"].as_str().unwrap(), "m"));
        if let Some(other) = choices.one_of("twin", &[("none", None), ("before", Some("a")), ("after", Some("z"))]) {
            set(&mut cache, Kind::CSIStorageCapacity, object(other, &local, zone, ("1Gi", None), json!([])));
        }
        set(&mut cache, Kind::CSIStorageCapacity, body);
        let looked_at = Capacity::keys(&cache, &local).contains(&key);
        let told = told(&Capacity::decide(NOW, &Capacity::view(&key, &cache, &local), &CapacityMemory::default()));
        format!("{}{told}", if looked_at { "" } else { "(not looked at by itself) " })
    });
}
