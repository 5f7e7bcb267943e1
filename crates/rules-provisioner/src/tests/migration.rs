//! Claims, classes and volumes of an in-tree plugin that the driver has taken over (sidecars 2.3, 2.4, 2.9, 2.10; S4-8,
//! S4-9, S4-42 to S4-45).

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use super::driver::id_of;
use super::world::{CLAIM, VOLUME, World};
use crate::{Intent, Key};

const EBS: &str = "ebs.csi.aws.com";
const PLUGIN: &str = "kubernetes.io/aws-ebs";
const ZONE_KEY: &str = "topology.ebs.csi.aws.com/zone";

/// Who was asked, as the claim's annotations say.
fn asked(provisioner: &str, more: Value) -> Value {
    let mut annotations =
        json!({ names::STORAGE_PROVISIONER: provisioner, names::STORAGE_PROVISIONER_BETA: provisioner });
    rules_store::merge_patch(&mut annotations, &more);
    json!({ "metadata": { "annotations": annotations } })
}

fn driver(name: &str) -> World {
    let mut world = World::new();
    world.update_local(|local| local.driver = name.into());
    world
}

fn why(world: &World, volume: &str) -> &'static str {
    world.why(&Key::Volume(volume.into())).code
}

// P5, P7, S4-42, S4-44: by our name, or by the plugin's where the claim says that our driver has taken over.
#[test]
fn claims_asked_of_the_plugin_are_ours_if_they_say_so() {
    for (provisioner, more, ours) in [
        (EBS, json!({}), true),
        (PLUGIN, json!({ names::MIGRATED_TO: EBS }), true),
        (PLUGIN, json!({ names::MIGRATED_TO_BETA: EBS }), true),
        (PLUGIN, json!({}), false),
        (PLUGIN, json!({ names::MIGRATED_TO: "other" }), false),
        ("kubernetes.io/gce-pd", json!({ names::MIGRATED_TO: EBS }), false),
    ] {
        let mut world =
            driver(EBS).class("fast", PLUGIN, json!({})).with_claim("data", asked(provisioner, more.clone()));
        world.run();
        assert_eq!(world.get(VOLUME, &world.pv_name()).is_some(), ours, "{provisioner} {more}");
        assert_eq!(world.why_claim(), if ours { "VolumeMade" } else { "NotOurs" });
    }
    // A driver that has taken over nothing does not know the plugin's classes.
    let mut world = World::new().class("fast", PLUGIN, json!({})).with_claim("data", json!({}));
    world.run();
    assert_eq!(world.why_claim(), "ClassNotOurs");
}

// S4-8, S4-9, S4-45, TR-12, TR-16, TR-49: the class is translated for the driver, and the volume is recorded as the plugin
// would have done it.
#[test]
fn a_class_of_the_plugin_makes_volumes_of_the_plugin() {
    let class = json!({
        "parameters": { "type": "io1", "fsType": "xfs", "iopsPerGB": "10", "zone": "us-west-2a" },
        "reclaimPolicy": "Delete", "mountOptions": ["noatime"],
    });
    for intent in [Intent::OnClaim, Intent::InMemory] {
        let mut world = driver(EBS).able().with(|settings| settings.intent = intent);
        world = world.class("fast", PLUGIN, class.clone()).with_claim("data", asked(EBS, json!({})));
        world.driver.places = [[(ZONE_KEY.into(), "us-west-2a".into())].into()].into();
        world.run();
        let request = world.request();
        let wanted = json!({ "type": "io1", "iopsPerGB": "10", "allowautoiopspergbincrease": "true" });
        assert_eq!(json!(request.parameters), wanted);
        let places = &request.accessibility_requirements.as_ref().unwrap().requisite;
        assert_eq!(places[0].segments, [(ZONE_KEY.into(), "us-west-2a".into())].into());
        let volume = world.volume(&world.pv_name());
        let disk = json!({ "volumeID": id_of(&world.pv_name()), "fsType": "xfs" });
        assert_eq!(volume["spec"]["awsElasticBlockStore"], disk);
        assert!(volume["spec"]["csi"].is_null());
        let terms = json!([{ "matchExpressions": [
            { "key": names::ZONE, "operator": "In", "values": ["us-west-2a"] },
            { "key": names::REGION, "operator": "In", "values": ["us-west-2"] },
        ] }]);
        assert_eq!(volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"], terms);
        assert_eq!(volume["metadata"]["labels"], json!({ names::ZONE: "us-west-2a", names::REGION: "us-west-2" }));
        let annotations = &volume["metadata"]["annotations"];
        assert_eq!(
            (annotations[names::PROVISIONED_BY].as_str(), annotations[names::MIGRATED_TO].as_str()),
            (Some(PLUGIN), Some(EBS))
        );
        assert_eq!(volume["spec"]["mountOptions"], json!(["noatime"]));
        assert!(volume["metadata"]["finalizers"].to_string().contains(names::PROVISIONER_FINALIZER));
    }
}

// S4-9, P80, P84: from the claim to nothing.
#[test]
fn what_was_made_for_the_plugins_class_is_deleted_again() {
    let mut world = driver(EBS).class("fast", PLUGIN, json!({})).with_claim("data", asked(EBS, json!({})));
    let name = world.pv_name();
    world.run();
    world.delete_claim();
    world.run_to_the_end();
    assert!(world.is_empty(), "{:?}", world.log);
    assert!(world.log.contains(&format!("DeleteVolume({})", id_of(&name))), "{:?}", world.log);
}

fn old_volume(annotations: Value, source: Value) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "persistentVolumeReclaimPolicy": "Delete",
    });
    rules_store::merge_patch(&mut spec, &source);
    json!({ "metadata": { "name": "old", "annotations": annotations }, "spec": spec })
}

// S4-9, S4-42 to S4-44, P81, P82: what the plugin made is ours by its mark; what was made by hand is not.
#[test]
fn what_the_plugin_made_is_held_and_deleted_under_the_drivers_name_for_it() {
    let disk = json!({ "awsElasticBlockStore": { "volumeID": id_of("old") } });
    for (annotations, ours) in [
        (json!({ names::PROVISIONED_BY: PLUGIN }), true),
        (json!({ names::PROVISIONED_BY: PLUGIN, names::MIGRATED_TO: EBS }), true),
        (json!({ names::MIGRATED_TO: EBS }), true),
        (json!({ names::PROVISIONED_BY: "kubernetes.io/cinder" }), false),
        (json!({}), false),
    ] {
        let mut world = driver(EBS);
        world.driver.volumes.insert("old".into(), csi::v1::CreateVolumeRequest::default());
        world.create(VOLUME, old_volume(annotations.clone(), disk.clone()));
        world.patch_status(VOLUME, "old", json!({ "phase": "Bound" }));
        world.run();
        let held = world.volume("old")["metadata"]["finalizers"].to_string().contains(names::PROVISIONER_FINALIZER);
        assert_eq!(held, ours, "{annotations}");
        world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
        world.run();
        world.unprotect_volumes();
        world.run();
        assert_eq!(world.get(VOLUME, "old").is_none(), ours, "{annotations} {:?}", world.log);
        assert_eq!(world.driver.volumes.is_empty(), ours, "{:?}", world.log);
    }
}

// TR-13: the driver's name for it is not always what stands in the volume.
#[test]
fn deletion_is_by_the_translated_handle() {
    let mut world = driver(EBS);
    let disk = json!({ "awsElasticBlockStore": { "volumeID": "aws://us-west-2a/vol-1" } });
    world.create(VOLUME, old_volume(json!({ names::PROVISIONED_BY: PLUGIN }), disk));
    world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
    world.run();
    assert!(world.log.contains(&"DeleteVolume(vol-1)".into()), "{:?}", world.log);
}

// reliability 8: what cannot be translated is neither held nor deleted, and it says so.
#[test]
fn a_volume_that_cannot_be_translated_is_not_touched() {
    for (source, code) in [
        (json!({ "awsElasticBlockStore": { "volumeID": "aws://moon" } }), "VolumeUntranslatable"),
        (json!({ "cinder": { "volumeID": "c" } }), "NoSource"),
    ] {
        let mut world = driver(EBS);
        world.create(VOLUME, old_volume(json!({ names::PROVISIONED_BY: PLUGIN }), source));
        for phase in ["Bound", "Released"] {
            world.patch_status(VOLUME, "old", json!({ "phase": phase }));
            world.run();
            assert!(world.log.is_empty(), "{:?}", world.log);
            assert_eq!(why(&world, "old"), code);
        }
    }
}

// Sidecars 2.9: what cannot be recorded as the plugin would have done it is deleted again, and not made in a circle.
#[test]
fn a_volume_that_cannot_be_recorded_is_deleted_again() {
    let mut world = driver(EBS).able().class("fast", PLUGIN, json!({ "parameters": { "zone": "moon" } }));
    world = world.with_claim("data", asked(EBS, json!({})));
    world.driver.places = [[(ZONE_KEY.into(), "moon".into())].into()].into();
    assert!(!world.run_for(2), "{:?}", world.log);
    let why = world.why(&world.key());
    assert_eq!(why.code, "BackOff");
    assert!(why.text.contains("do not name exactly one region"), "{why:?}");
    let deleted = format!("DeleteVolume({})", id_of(&world.pv_name()));
    while !world.log.contains(&deleted) {
        assert!(!world.run_for(1) && world.log.len() < 9, "{:?}", world.log);
    }
    assert!(world.driver.volumes.is_empty() && world.get(VOLUME, &world.pv_name()).is_none(), "{:?}", world.log);
    // Things come right: the next one is recorded.
    world.driver.places = [[(ZONE_KEY.into(), "us-west-2a".into())].into()].into();
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// TR-11: a class that cannot be translated is told, and the driver hears nothing.
#[test]
fn a_class_that_cannot_be_translated_is_told() {
    let class = json!({ "parameters": { "zone": "a", "zones": "b" } });
    let mut world = driver(EBS).class("fast", PLUGIN, class).with_claim("data", asked(EBS, json!({})));
    world.run();
    assert_eq!(world.why_claim(), "ClassUntranslatable");
    assert!(world.log.is_empty());
}

// P34, TR-43: the secret a volume is deleted with, as its class says it in the plugin's words.
#[test]
fn the_class_tells_the_secret_in_the_plugins_words() {
    let (driver_name, plugin) = ("pxd.portworx.com", "kubernetes.io/portworx-volume");
    let class = json!({ "parameters": { "openstorage.io/auth-secret-name": "s", "openstorage.io/auth-secret-namespace": "n" } });
    let mut world = driver(driver_name).class("px", plugin, class);
    world.create(Kind::Secret, json!({ "metadata": { "name": "s" }, "data": { "token": "dA==" } }));
    let mut old =
        old_volume(json!({ names::PROVISIONED_BY: plugin }), json!({ "portworxVolume": { "volumeID": "p1" } }));
    old["spec"]["storageClassName"] = json!("px");
    world.create(VOLUME, old);
    world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
    world.run();
    assert_eq!(world.driver.deleted_with["p1"], [("token".into(), "t".into())].into());
}

// P63 to P72 for volumes of either form: a copy is made from what the driver calls the source.
#[test]
fn an_in_tree_volume_can_be_copied() {
    let mut world = driver(EBS).able().with(|settings| settings.topology = false);
    world = world.class("fast", PLUGIN, json!({})).with_claim("source", asked(EBS, json!({})));
    world.run();
    let uid = world.claim("source")["metadata"]["uid"].as_str().unwrap().to_string();
    let name = world.engine.local().volume_name(&uid);
    world.patch(CLAIM, "source", json!({ "spec": { "volumeName": name } }));
    world.patch_status(CLAIM, "source", json!({ "phase": "Bound" }));
    world.patch_status(VOLUME, &name, json!({ "phase": "Bound" }));
    let mut copy = asked(EBS, json!({}));
    copy["spec"] = json!({ "dataSource": { "kind": "PersistentVolumeClaim", "name": "source" } });
    world = world.with_claim("data", copy);
    world.run();
    let copies: Vec<_> =
        world.driver.volumes.values().filter(|request| request.volume_content_source.is_some()).collect();
    assert_eq!(copies.len(), 1, "{} {:?}", world.why_claim(), world.log);
    let source = copies[0].volume_content_source.as_ref().unwrap().r#type.as_ref();
    let Some(csi::v1::volume_content_source::Type::Volume(source)) = source else { panic!("no copy of a volume") };
    assert_eq!(source.volume_id, id_of(&name));
}

// S4-5, S4-9: what a volume is copied from is read by the gates that were given, not by those of today's Kubernetes.
#[test]
fn s4_9_a_copy_reads_its_source_by_the_gates_given() {
    let rbd = Migration::OFF.with(Plugin::Rbd, Phase::On);
    for (migration, expected) in [(Migration::OFF, "SourceNotCsi"), (Migration::default(), "SourceNotCsi"), (rbd, "")] {
        let (driver_name, image) = ("rbd.csi.ceph.com", json!({ "rbd": { "image": "i", "pool": "p" } }));
        let mut world = driver(driver_name).able().with(|settings| settings.topology = false);
        world = world.with(|settings| settings.migration = migration);
        world = world.class("fast", driver_name, json!({})).with_claim("source", asked(driver_name, json!({})));
        let mut old = old_volume(json!({}), image);
        let claim = world.claim("source");
        old["spec"]["claimRef"] =
            json!({ "namespace": claim["metadata"]["namespace"], "name": "source", "uid": claim["metadata"]["uid"] });
        world.create(VOLUME, old);
        world.patch(CLAIM, "source", json!({ "spec": { "volumeName": "old" } }));
        world.patch_status(CLAIM, "source", json!({ "phase": "Bound" }));
        world.patch_status(VOLUME, "old", json!({ "phase": "Bound" }));
        let mut copy = asked(driver_name, json!({}));
        copy["spec"] = json!({ "dataSource": { "kind": "PersistentVolumeClaim", "name": "source" } });
        world = world.with_claim("data", copy);
        world.run();
        match expected {
            "" => assert_ne!(world.why_claim(), "SourceNotCsi", "{:?}", world.log),
            expected => assert_eq!(world.why_claim(), expected, "{:?}", world.log),
        }
    }
}

// S4-1, S4-2: with the gate off the plugin's claims and volumes are left to it, whatever they say.
#[test]
fn a_plugin_that_serves_its_volumes_makes_and_deletes_them() {
    for (phase, ours) in [(Phase::Off, false), (Phase::On, true), (Phase::Complete, true)] {
        let mark = json!({ names::MIGRATED_TO: EBS });
        let mut world = driver(EBS).with(|settings| settings.migration = Migration::OFF.with(Plugin::AwsEbs, phase));
        world = world.class("fast", PLUGIN, json!({})).with_claim("data", asked(PLUGIN, mark));
        let disk = json!({ "awsElasticBlockStore": { "volumeID": id_of("old") } });
        world.create(VOLUME, old_volume(json!({ names::PROVISIONED_BY: PLUGIN }), disk));
        world.driver.volumes.insert("old".into(), csi::v1::CreateVolumeRequest::default());
        world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
        world.run();
        world.unprotect_volumes();
        world.run();
        assert_eq!(world.get(VOLUME, &world.pv_name()).is_some(), ours, "{phase:?}");
        assert_eq!(world.get(VOLUME, "old").is_none(), ours, "{phase:?} {:?}", world.log);
    }
}
