//! What programs read of obstacles and inconsistencies: one word, the objects, and no need for the sentence.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::Kind;
use serde_json::{Value, json};

use super::{Cluster, EBS, PLUGIN};

/// Reason, whether it blocks, and the objects of everything in a list of the only plugin's plan.
fn told(cluster: &Cluster, list: &str) -> Vec<String> {
    let plan = serde_json::to_value(cluster.only()).unwrap();
    let each = |one: &Value| {
        let objects: Vec<String> = one["objects"].as_array().unwrap().iter().map(Value::to_string).collect();
        let blocks = one.get("blocks").map(|blocks| alloc::format!(" blocks={blocks}")).unwrap_or_default();
        assert!(one["text"].as_str().is_some_and(|text| text.len() > 20), "{one}");
        alloc::format!("{}{blocks} {}", one["reason"].as_str().unwrap(), objects.join(" "))
    };
    plan[list].as_array().unwrap().iter().map(each).collect()
}

fn named(kind: &str, name: &str) -> String {
    json!({ "kind": kind, "name": name }).to_string()
}

#[test]
fn obstacles_name_their_objects() {
    let claimed = json!([{ "name": "v", "awsElasticBlockStore": { "volumeID": "aws://x" } }]);
    let pod = json!({ "metadata": { "namespace": "x", "name": "p" }, "spec": { "volumes": claimed } });
    let attachment = json!({ "metadata": { "name": "va" }, "spec": { "attacher": EBS, "nodeName": "n",
        "source": { "persistentVolumeName": "a" } } });
    let bare = json!({ "metadata": { "name": "b" }, "spec": { "awsElasticBlockStore": {
        "volumeID": "vol-a", "colour": "red" } } });
    let untold = json!({ "metadata": { "name": "n" }, "spec": { "drivers": [{ "name": EBS, "nodeID": "n" }] } });
    let cluster = Cluster::live()
        .provisioned("a", true)
        .with(Kind::PersistentVolume, bare)
        .with(Kind::Pod, pod)
        .with(Kind::VolumeAttachment, attachment)
        .with(Kind::CSINode, untold)
        .node("m", false, false);
    let (a, b, n) = (named("PersistentVolume", "a"), named("PersistentVolume", "b"), named("Node", "n"));
    let in_namespace = json!({ "kind": "Pod", "namespace": "x", "name": "p" });
    assert_eq!(
        told(&cluster, "obstacles"),
        [
            alloc::format!("DriverMissing blocks=true {}", named("Node", "m")),
            alloc::format!("Untranslatable blocks=true {in_namespace}"),
            alloc::format!("SameVolume blocks=true {a} {b}"),
            alloc::format!("ZonesUntold blocks=true {n}"),
            alloc::format!("InFlight blocks=true {} {n}", named("VolumeAttachment", "va")),
            alloc::format!("DriverNotDescribed blocks=false {}", named("CSIDriver", EBS)),
            alloc::format!("Lost blocks=false {b}"),
            alloc::format!("ZoneUnsaid blocks=false {b}"),
        ]
    );
    let elsewhere = json!({ "metadata": { "name": "n", "labels": { api::names::ZONE: "us-west-2b" } } });
    let nowhere = Cluster::new().provisioned("a", false).with(Kind::Node, elsewhere);
    assert_eq!(told(&nowhere, "obstacles"), [alloc::format!("ZoneWithoutNode blocks=false {a}")]);
    let none = Cluster::new().provisioned("a", false).node("n", false, false);
    assert_eq!(told(&none, "obstacles"), [alloc::format!("DriverNowhere blocks=true {}", named("CSIDriver", EBS))]);
}

#[test]
fn inconsistencies_name_their_objects() {
    let other = json!({ api::names::PROVISIONED_BY: PLUGIN, api::names::MIGRATED_TO: "other.example.com" });
    let attachment = json!({ "metadata": { "name": "va" }, "spec": { "attacher": EBS, "nodeName": "m",
        "source": { "persistentVolumeName": "a" } }, "status": { "attached": true } });
    let held = json!({ "metadata": { "name": "n" }, "status": { "volumesInUse": ["kubernetes.io/aws-ebs/vol-7"] } });
    let cluster = Cluster::live()
        .provisioned("a", true)
        .provisioned("b", false)
        .volume("c", "vol-c", other)
        .volume("bad", "aws://x", json!({}))
        .node("n", false, true)
        .node("m", true, false)
        .with(Kind::Node, held)
        .with(Kind::VolumeAttachment, attachment);
    let volume = |name| named("PersistentVolume", name);
    assert_eq!(
        told(&cluster, "inconsistencies"),
        [
            alloc::format!("DriverAbsent {}", named("Node", "n")),
            alloc::format!("AttachedByDriver {} {}", named("VolumeAttachment", "va"), named("Node", "m")),
            alloc::format!("HeldByPlugin {}", named("Node", "n")),
            alloc::format!("PartlyMarked {}", volume("b")),
            alloc::format!("MarkedForAnother {}", volume("c")),
            alloc::format!("Unserved {}", volume("bad")),
        ]
    );
    let stuck = Cluster::live().provisioned("a", false).node("n", true, true);
    assert_eq!(told(&stuck, "inconsistencies"), [alloc::format!("Disputed {}", named("Node", "n"))]);
}

// An object of which nobody can tell whose it is stands outside of all plugins, and is named the same way.
#[test]
fn what_is_nobodys_names_its_object() {
    let spec = json!({ "awsElasticBlockStore": { "volumeID": "v" }, "cinder": { "volumeID": "c" } });
    let two = json!({ "metadata": { "name": "two" }, "spec": spec });
    let plan = serde_json::to_value(Cluster::new().with(Kind::PersistentVolume, two).plan()).unwrap();
    assert_eq!(plan["unclear"][0]["reason"], "Untranslatable");
    assert_eq!(plan["unclear"][0]["objects"], json!([{ "kind": "PersistentVolume", "name": "two" }]));
}
