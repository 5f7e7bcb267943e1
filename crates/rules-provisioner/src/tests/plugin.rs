//! The rules speaking for an in-tree plugin itself, while no driver has taken it over (S4-9, S4-41; PV-27, PV-30,
//! PV-33, PV-39).

use alloc::format;
use alloc::string::ToString;

use api::{Value, names};
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use super::driver::id_of;
use super::world::{CLAIM, VOLUME, World};
use crate::Key;

const EBS: &str = "ebs.csi.aws.com";
const PLUGIN: &str = "kubernetes.io/aws-ebs";

/// For a driver with the gate on, or for its plugin with the gate off.
fn speaking_for(name: &str) -> World {
    let phase = if name == PLUGIN { Phase::Off } else { Phase::On };
    let mut world = World::new().with(|settings| settings.migration = Migration::OFF.with(Plugin::AwsEbs, phase));
    world.update_local(|local| local.driver = name.into());
    world.in_journal()
}

fn asked(provisioner: &str, mark: Option<&str>) -> Value {
    let annotations = json!({
        names::STORAGE_PROVISIONER: provisioner, names::STORAGE_PROVISIONER_BETA: provisioner, names::MIGRATED_TO: mark,
    });
    json!({ "metadata": { "annotations": annotations } })
}

fn with_claim(name: &str, class: Value) -> World {
    speaking_for(name).class("fast", PLUGIN, class).with_claim("data", asked(name, None))
}

// S4-9, S4-45: from the same claim the same volume, whoever made it; beside it stands who did, as PV-39 has it: the
// plugin's name, the mark of the controller and the finalizer of what is to be deleted.
#[test]
fn s4_9_the_plugin_makes_what_its_driver_would_have_made() {
    let class = json!({
        "parameters": { "type": "gp2", "fsType": "xfs" }, "reclaimPolicy": "Delete", "mountOptions": ["noatime"],
    });
    let (mut by_driver, mut by_plugin) = (with_claim(EBS, class.clone()), with_claim(PLUGIN, class));
    by_driver.run();
    by_plugin.run();
    assert_eq!(by_driver.request().parameters, by_plugin.request().parameters);
    let name = by_plugin.pv_name();
    assert_eq!(name, by_driver.pv_name());
    let (driver, plugin) = (by_driver.volume(&name), by_plugin.volume(&name));
    assert_eq!(driver["spec"], plugin["spec"]);
    assert_eq!(plugin["spec"]["awsElasticBlockStore"], json!({ "volumeID": id_of(&name), "fsType": "xfs" }));
    assert!(plugin["spec"]["csi"].is_null());
    let annotations = json!({
        names::PROVISIONED_BY: PLUGIN, names::BOUND_BY_CONTROLLER: "yes",
        names::CREATED_BY: "aws-ebs-dynamic-provisioner",
    });
    assert_eq!(plugin["metadata"]["annotations"], annotations);
    let finalizers = |volume: &Value| volume["metadata"]["finalizers"].to_string();
    assert!(finalizers(&plugin).contains(names::PV_CONTROLLER), "{plugin}");
    assert!(!finalizers(&plugin).contains(names::PROVISIONER_FINALIZER), "{plugin}");
    assert!(finalizers(&driver).contains(names::PROVISIONER_FINALIZER), "{driver}");
}

// S4-9, S4-42, S4-43: where the mark says that a driver has taken over, or a driver was asked, the plugin stands down.
#[test]
fn s4_9_the_plugin_stands_down_where_a_driver_is_named() {
    for (provisioner, mark) in [(PLUGIN, Some(EBS)), (EBS, Some(EBS)), (EBS, None), ("kubernetes.io/gce-pd", None)] {
        let mut world =
            speaking_for(PLUGIN).class("fast", PLUGIN, json!({})).with_claim("data", asked(provisioner, mark));
        world.create(VOLUME, old(json!({ names::PROVISIONED_BY: PLUGIN, names::MIGRATED_TO: EBS })));
        world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
        world.run();
        assert!(world.log.is_empty(), "{provisioner} {mark:?} {:?}", world.log);
        assert_eq!((world.why_claim(), world.why(&Key::Volume("old".into())).code), ("NotOurs", "NotOurs"));
    }
}

// S4-9, PV-33, reliability 1, 5, 6: crashes and lost answers at every action; in the end nothing is left, and at no
// time is a disk unaccounted for.
#[test]
fn s4_9_what_the_plugin_began_it_ends_whatever_happens() {
    for lost in [false, true] {
        for at in 0..9 {
            let mut world = with_claim(PLUGIN, json!({ "reclaimPolicy": "Delete" }));
            world.lose_answer = lost.then_some(at);
            world.run_for(at);
            world.restart();
            world.run();
            assert_eq!(world.driver.volumes.len(), 1, "{at}");
            assert_eq!(world.why_claim(), "VolumeMade", "{at} {:?}", world.log);
            world.delete_claim();
            world.run_for(at);
            world.restart();
            world.run_to_the_end();
            assert!(world.is_empty(), "{at} {:?}", world.log);
        }
    }
}

fn old(annotations: Value) -> Value {
    let disk = json!({ "volumeID": id_of("old") });
    json!({ "metadata": { "name": "old", "annotations": annotations }, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "persistentVolumeReclaimPolicy": "Delete",
        "awsElasticBlockStore": disk } })
}

// S4-9, PV-30, PV-50: what the driver made is the plugin's to delete once the mark is gone, and what was made by hand;
// also if the volume is already being deleted and held for the driver alone.
#[test]
fn s4_9_the_plugin_deletes_what_its_driver_made() {
    for (annotations, ours) in [
        (json!({ names::PROVISIONED_BY: PLUGIN }), true),
        (json!({}), true),
        (json!({ names::PROVISIONED_BY: EBS }), false),
        (json!({ names::PROVISIONED_BY: "kubernetes.io/cinder" }), false),
    ] {
        for deleting in [false, true] {
            let mut world = speaking_for(PLUGIN);
            world.driver.volumes.insert("old".into(), csi::v1::CreateVolumeRequest::default());
            let mut volume = old(annotations.clone());
            volume["metadata"]["finalizers"] = json!([names::PV_PROTECTION, names::PROVISIONER_FINALIZER]);
            world.create(VOLUME, volume);
            world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
            if deleting {
                world.delete(VOLUME, "old");
            }
            world.run();
            world.unprotect_volumes();
            world.run();
            assert_eq!(world.get(VOLUME, "old").is_none(), ours, "{annotations} {deleting} {:?}", world.log);
            assert_eq!(world.driver.volumes.is_empty(), ours, "{annotations} {deleting} {:?}", world.log);
        }
    }
}

// PV-30: a volume of another source is not the plugin's, whatever it says.
#[test]
fn the_plugin_deletes_nothing_but_its_own_disks() {
    for source in
        [json!({ "csi": { "driver": EBS, "volumeHandle": id_of("old") } }), json!({ "cinder": { "volumeID": "c" } })]
    {
        let mut world = speaking_for(PLUGIN);
        let mut volume = old(json!({ names::PROVISIONED_BY: PLUGIN }));
        volume["spec"]["awsElasticBlockStore"] = Value::Null;
        rules_store::merge_patch(&mut volume["spec"], &source);
        world.create(VOLUME, volume);
        world.patch_status(VOLUME, "old", json!({ "phase": "Released" }));
        world.run();
        assert_eq!((world.log.len(), world.why(&Key::Volume("old".into())).code), (0, "NoSource"));
    }
}

// S4-9, PV-50: what policy keeps is not held for the plugin either.
#[test]
fn what_policy_keeps_is_not_held_for_the_plugin() {
    let mut world = with_claim(PLUGIN, json!({ "reclaimPolicy": "Delete" }));
    world.run();
    let name = world.pv_name();
    world.patch(VOLUME, &name, json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } }));
    world.run();
    assert!(!world.volume(&name)["metadata"]["finalizers"].to_string().contains(names::PV_CONTROLLER));
}

// S4-9, PV-37: a class that waits for the first pod.
#[test]
fn s4_9_the_plugin_waits_for_a_node_where_its_class_does() {
    let mut world = with_claim(PLUGIN, json!({ "volumeBindingMode": "WaitForFirstConsumer" }));
    world.run();
    assert_eq!((world.log.len(), world.why_claim()), (0, "AwaitingNode"));
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: "a" } } }));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade", "{:?}", world.log);
}

// S4-9, S4-43, reliability 7: switched off while the driver was about to make a volume. The plugin makes it, under the
// same name; what the driver noted goes then, or it would have that volume deleted one day.
#[test]
fn s4_9_what_a_driver_began_and_the_plugin_made_is_no_drivers_any_more() {
    let mut world = with_claim(EBS, json!({ "reclaimPolicy": "Retain" }));
    world.run_for(1);
    assert_eq!((world.entries().len(), world.driver.volumes.len()), (1, 0), "{:?}", world.log);
    world.patch(CLAIM, "data", asked(PLUGIN, None));
    world.run();
    assert_eq!((world.entries().len(), world.why_claim()), (1, "NotOurs"), "{:?}", world.log);
    let name = world.pv_name();
    world.driver.volumes.insert(name.clone(), csi::v1::CreateVolumeRequest::default());
    let mut made = old(json!({ names::PROVISIONED_BY: PLUGIN }));
    made["metadata"]["name"] = json!(name);
    made["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
    made["spec"]["awsElasticBlockStore"]["volumeID"] = json!(id_of(&name));
    made["spec"]["claimRef"] = json!({ "namespace": "n", "name": "data", "uid": world.uid() });
    world.create(VOLUME, made);
    world.run();
    assert!(world.entries().is_empty(), "{:?}", world.log);
    assert!(!world.log.contains(&format!("DeleteVolume({})", id_of(&name))));
}
