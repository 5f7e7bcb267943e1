//! Which objects say that a driver has taken over their plugin: PV-35, PV-36, PV-48 to PV-51.

use alloc::string::ToString;

use api::{Kind, names};
use rules_translate::{Migration, Phase, Plugin};
use serde_json::{Value, json};

use super::world::World;
use crate::Local;

const EBS: &str = "kubernetes.io/aws-ebs";
const DRIVER: &str = "ebs.csi.aws.com";

fn off() -> Local {
    Local { migration: Migration::default().with(Plugin::AwsEbs, Phase::Off), ..Local::default() }
}

fn said(object: &Value) -> &Value {
    &object["metadata"]["annotations"][names::MIGRATED_TO]
}

fn with(annotations: Value) -> Value {
    json!({ "metadata": { "annotations": annotations } })
}

// PV-48, PV-49, PV-51: set where a plugin that is taken over was named, once, and nowhere else.
#[test]
fn pv_48_objects_of_a_plugin_that_is_taken_over_say_by_whom() {
    let mut world = World::new()
        .with_volume("taken-over", "x", "1Gi", with(json!({ names::PROVISIONED_BY: EBS })))
        .with_volume("by-hand", "x", "1Gi", json!({}))
        .with_volume("of-a-driver", "x", "1Gi", with(json!({ names::PROVISIONED_BY: "d" })))
        .with_volume("of-a-plugin-that-is-not", "x", "1Gi", with(json!({ names::PROVISIONED_BY: "kubernetes.io/rbd" })))
        .with_claim("old", Some(""), "1Gi", with(json!({ names::STORAGE_PROVISIONER: EBS })))
        .with_claim("older", Some(""), "1Gi", with(json!({ names::STORAGE_PROVISIONER_BETA: EBS })));
    world.settle();
    assert_eq!(said(&world.volume("taken-over")), DRIVER);
    for other in ["by-hand", "of-a-driver", "of-a-plugin-that-is-not"] {
        assert!(said(&world.volume(other)).is_null(), "{other}");
    }
    assert_eq!((said(&world.claim("old")), said(&world.claim("older"))), (&json!(DRIVER), &json!(DRIVER)));
    let marks = world.log.iter().filter(|name| name.ends_with("Migrated")).count();
    assert_eq!(marks, 3);
}

// PV-48: what was said is taken back when the migration is undone, or never was true.
#[test]
fn pv_48_what_is_no_longer_true_is_taken_back() {
    let mut world = World::new()
        .with_volume("v", "x", "1Gi", with(json!({ names::PROVISIONED_BY: EBS })))
        .with_volume("by-hand", "x", "1Gi", with(json!({ names::MIGRATED_TO: "somebody" })))
        .with_claim("data", Some(""), "1Gi", with(json!({ names::STORAGE_PROVISIONER: EBS })));
    world.settle();
    world.restart(off());
    world.settle();
    assert!(said(&world.volume("v")).is_null());
    assert!(said(&world.claim("data")).is_null());
    // PV-49: nobody is asked about a volume that names no provisioner.
    assert_eq!(said(&world.volume("by-hand")), "somebody");
}

// S4-42: what says so under the key of the first design alone says it under today's from then on, in one write; who
// keeps to the first design beside us may say the same, and nothing else.
#[test]
fn s4_42_the_first_designs_key_gives_way_to_todays() {
    for (before, after, writes) in [
        (json!({ names::MIGRATED_TO_BETA: DRIVER }), json!([DRIVER, null]), 2),
        (json!({ names::MIGRATED_TO_BETA: "other" }), json!([DRIVER, null]), 2),
        (json!({ names::MIGRATED_TO: DRIVER, names::MIGRATED_TO_BETA: "other" }), json!([DRIVER, null]), 2),
        (json!({ names::MIGRATED_TO: DRIVER, names::MIGRATED_TO_BETA: DRIVER }), json!([DRIVER, DRIVER]), 0),
        (json!({ names::MIGRATED_TO: DRIVER, names::MIGRATED_TO_BETA: "" }), json!([DRIVER, ""]), 0),
    ] {
        let mut world = marked(&before);
        world.settle();
        assert_eq!(keys(&world), [after.clone(), after], "{before}");
        assert_eq!(world.log.iter().filter(|name| name.ends_with("Migrated")).count(), writes, "{before}");
    }
}

// S4-36, S4-42: switched off, neither key is left, in one write for each object: the plugin deletes no volume that a
// driver is said to have, under whichever key.
#[test]
fn s4_42_both_keys_are_taken_back() {
    for before in [
        json!({ names::MIGRATED_TO_BETA: DRIVER }),
        json!({ names::MIGRATED_TO: DRIVER, names::MIGRATED_TO_BETA: DRIVER }),
        json!({ names::MIGRATED_TO: "", names::MIGRATED_TO_BETA: DRIVER }),
    ] {
        for local in [off(), served()] {
            let mut world = marked(&before);
            world.restart(local);
            world.settle();
            assert_eq!(keys(&world), [json!([null, null]), json!([null, null])], "{before}");
            assert_eq!(world.log.iter().filter(|name| name.ends_with("Migrated")).count(), 2, "{before}");
        }
    }
    // Whose claim is gone then waits for no driver: with no plugin there, somebody is told.
    let mut volume = with(json!({ names::PROVISIONED_BY: EBS, names::MIGRATED_TO_BETA: DRIVER }));
    volume["spec"] = json!({
        "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" }, "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": { "namespace": "n", "name": "gone", "uid": "gone" },
    });
    let mut world = World::new().with_volume("v", "x", "1Gi", volume);
    world.restart(off());
    world.settle();
    assert_eq!(world.why_volume("v"), "VolumeFailedDelete");
}

/// A volume and a claim of the plugin that say this.
fn marked(annotations: &Value) -> World {
    let named = |key: &str| {
        let mut annotations = annotations.clone();
        annotations[key] = EBS.into();
        with(annotations)
    };
    let world = World::new().with_volume("v", "x", "1Gi", named(names::PROVISIONED_BY));
    world.with_claim("data", Some(""), "1Gi", named(names::STORAGE_PROVISIONER))
}

/// What they say of a driver, under today's key and the first design's.
fn keys(world: &World) -> [Value; 2] {
    [world.volume("v"), world.claim("data")].map(|object| {
        let annotations = &object["metadata"]["annotations"];
        json!([annotations[names::MIGRATED_TO], annotations[names::MIGRATED_TO_BETA]])
    })
}

// PV-50, PV-51: in one write, what a driver has taken over is no longer held for a plugin; other finalizers stay.
#[test]
fn pv_50_a_volume_that_is_taken_over_is_not_held_for_its_plugin() {
    let held = |annotations: Value| {
        let finalizers = [names::PV_PROTECTION, names::PV_CONTROLLER, names::PROVISIONER_FINALIZER];
        json!({ "metadata": { "annotations": annotations, "finalizers": finalizers } })
    };
    let both = json!([names::PV_PROTECTION, names::PROVISIONER_FINALIZER]);
    let told = json!({ names::PROVISIONED_BY: EBS, names::MIGRATED_TO: DRIVER });
    let mut world = World::new()
        .with_volume("new", "x", "1Gi", held(json!({ names::PROVISIONED_BY: EBS })))
        .with_volume("told", "x", "1Gi", held(told))
        .with_volume("other", "x", "1Gi", held(json!({ names::PROVISIONED_BY: "d" })));
    world.settle();
    assert_eq!(world.volume("new")["metadata"]["finalizers"], both);
    assert_eq!(said(&world.volume("new")), DRIVER);
    assert_eq!(world.volume("told")["metadata"]["finalizers"], both);
    assert_eq!(world.volume("other")["metadata"]["finalizers"].as_array().map(alloc::vec::Vec::len), Some(3));
    assert_eq!(world.log.iter().filter(|name| **name == "MarkVolumeMigrated").count(), 2);
}

// PV-35, PV-36: the driver is asked in the plugin's place, by its own name; without one nobody is.
#[test]
fn pv_36_a_class_of_a_plugin_that_is_taken_over_asks_the_driver() {
    let start = || World::new().class("old", EBS, json!({})).with_claim("data", Some("old"), "1Gi", json!({}));
    let mut world = start();
    world.settle();
    let annotations = world.claim("data")["metadata"]["annotations"].clone();
    assert_eq!(annotations[names::STORAGE_PROVISIONER], DRIVER);
    assert_eq!(annotations[names::STORAGE_PROVISIONER_BETA], DRIVER);
    // S4-41, S4-42, Q-4: and the claim says so, for as long as it is true, also when its class is gone.
    assert_eq!(said(&world.claim("data")), DRIVER);
    assert_eq!(world.why_claim("data"), "ExternalProvisioning");
    world.delete(Kind::StorageClass, "old");
    world.settle();
    assert_eq!(said(&world.claim("data")), DRIVER);
    world.restart(off());
    world.settle();
    assert!(said(&world.claim("data")).is_null());

    // The driver's own class is no plugin's.
    let class = || World::new().class("new", DRIVER, json!({})).with_claim("data", Some("new"), "1Gi", json!({}));
    let mut world = class();
    world.settle();
    assert!(said(&world.claim("data")).is_null());

    // S4-37: with nobody to ask, no driver and no plugin, that is told.
    let mut world = start();
    world.restart(off());
    world.settle();
    assert_eq!(world.why_claim("data"), "ProvisionerNotSupported");
}

// EX-7, S4-20, S4-40: the driver that has taken over is named as the one that grows, and the user is told that it will.
#[test]
fn s4_40_a_volume_of_a_plugin_that_is_taken_over_is_grown_by_the_driver() {
    let disk = json!({ "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
    let mut world = World::new().class("fast", EBS, json!({ "allowVolumeExpansion": true }));
    world = world.with_volume("v", "fast", "1Gi", disk).with_claim("data", Some("fast"), "1Gi", json!({}));
    world.settle();
    let more = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    world.patch(Kind::PersistentVolumeClaim, "data", more);
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_RESIZER], DRIVER);
    assert_eq!(world.why_claim("data"), "ExternalExpanding");
}

// EX-7, S4-37: a plugin that is neither there nor taken over names nobody to grow its volumes.
#[test]
fn ex_7_a_volume_of_a_plugin_that_is_not_taken_over_names_no_resizer() {
    let grows = json!({ "allowVolumeExpansion": true });
    let disk = json!({ "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
    let mut world = World::new().class("fast", "d", grows).with_volume("v", "fast", "1Gi", disk).with_claim(
        "data",
        Some("fast"),
        "1Gi",
        json!({}),
    );
    world.restart(off());
    world.settle();
    world.patch(
        Kind::PersistentVolumeClaim,
        "data",
        json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }),
    );
    world.settle();
    assert_eq!(world.why_claim("data"), "ExternalExpanding");
    assert!(world.claim("data")["metadata"]["annotations"][names::STORAGE_RESIZER].is_null());
}

// S4-26: claims and volumes of a plugin are protected as all are, whoever serves them; the marks change nothing of it.
#[test]
fn s4_26_claims_and_volumes_of_a_plugin_are_kept_while_they_are_used() {
    for local in [Local::default(), off(), served()] {
        let disk = json!({ "metadata": { "annotations": { names::PROVISIONED_BY: EBS } },
            "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
        let mut world = World::new().with_volume("v", "x", "1Gi", disk).with_claim("data", Some("x"), "1Gi", json!({}));
        world = world.with_pod_on("a", "user", "data");
        world.restart(local);
        world.settle();
        assert_eq!(world.why_claim("data"), "Bound");
        world.delete(Kind::PersistentVolumeClaim, "data");
        world.delete(Kind::PersistentVolume, "v");
        world.settle();
        assert_eq!(world.why_claim("data"), "ClaimInUse");
        assert!(world.volume("v")["metadata"]["finalizers"].to_string().contains(names::PV_PROTECTION));
        world.delete(Kind::Pod, "user");
        world.settle();
        assert!(world.get(Kind::PersistentVolumeClaim, "data").is_none());
        assert!(
            !world
                .list(Kind::PersistentVolume)
                .iter()
                .any(|volume| { volume["metadata"]["finalizers"].to_string().contains(names::PV_PROTECTION) })
        );
    }
}

/// The plugin is at work in this process, and no driver has taken it over.
fn served() -> Local {
    Local { plugin: Some(Plugin::AwsEbs), ..off() }
}

// S4-9, S4-41, PV-35: with its gate off a plugin that is there is asked by its own name; another one is not.
#[test]
fn s4_41_a_plugin_that_is_there_and_not_taken_over_is_asked() {
    for (provisioner, code) in [(EBS, "ExternalProvisioning"), ("kubernetes.io/rbd", "ProvisionerNotSupported")] {
        let mut world =
            World::new().class("old", provisioner, json!({})).with_claim("data", Some("old"), "1Gi", json!({}));
        world.restart(served());
        world.settle();
        assert_eq!(world.why_claim("data"), code);
        let asked = &world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER];
        assert_eq!(asked == provisioner, code == "ExternalProvisioning", "{asked}");
        assert!(said(&world.claim("data")).is_null());
    }
    // S4-9: it stands down once the gate is on, and the claim says for whom.
    let mut world = World::new().class("old", EBS, json!({})).with_claim("data", Some("old"), "1Gi", json!({}));
    world.restart(served());
    world.settle();
    world.restart(Local { migration: Migration::default(), ..served() });
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], DRIVER);
    assert_eq!(said(&world.claim("data")), DRIVER);
    // S4-36: and is asked again when it is switched off, while nothing is made yet.
    world.restart(served());
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], EBS);
    assert!(said(&world.claim("data")).is_null());
}

// PV-50, PV-51, S4-42: in one write the mark goes, and what was held for the driver is held for the plugin, if it is to
// be deleted at all. Nobody can put a finalizer on what is being deleted already.
#[test]
fn pv_50_a_volume_that_is_given_back_is_held_for_its_plugin() {
    for (policy, deleting, held) in
        [("Delete", false, names::PV_CONTROLLER), ("Retain", false, ""), ("Delete", true, names::PROVISIONER_FINALIZER)]
    {
        let mut world = World::new().with_volume(
            "v",
            "x",
            "1Gi",
            json!({ "metadata": {
                "annotations": { names::PROVISIONED_BY: EBS, names::MIGRATED_TO: DRIVER },
                "finalizers": ["other", names::PROVISIONER_FINALIZER] },
                "spec": { "persistentVolumeReclaimPolicy": policy } }),
        );
        if deleting {
            world.delete(Kind::PersistentVolume, "v");
        }
        world.restart(served());
        world.settle();
        assert!(said(&world.volume("v")).is_null());
        let finalizers = world.volume("v")["metadata"]["finalizers"].to_string();
        for keeper in [names::PV_CONTROLLER, names::PROVISIONER_FINALIZER] {
            assert_eq!(finalizers.contains(keeper), held == keeper, "{policy} {deleting} {finalizers}");
        }
        assert!(finalizers.contains("other"));
        assert_eq!(world.log.iter().filter(|name| **name == "MarkVolumeMigrated").count(), 1);
    }
}

// PV-29, PV-32, S4-9: whose claim is gone is left to a plugin that is there to delete it, and to nobody where there is
// none.
#[test]
fn pv_29_a_released_volume_of_a_plugin_that_is_there_awaits_its_deletion() {
    let provisioned = with(json!({ names::PROVISIONED_BY: EBS }));
    for (annotated, local, code) in [
        (provisioned.clone(), served(), "Released"),
        (json!({}), served(), "Released"),
        (json!({}), Local { migration: Migration::default(), ..served() }, "VolumeFailedDelete"),
        (provisioned, off(), "VolumeFailedDelete"),
    ] {
        let mut volume = annotated;
        volume["spec"] = json!({
            "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" }, "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": { "namespace": "n", "name": "gone", "uid": "gone" },
        });
        let mut world = World::new().with_volume("v", "x", "1Gi", volume);
        world.restart(local);
        world.settle();
        assert_eq!(world.why_volume("v"), code);
    }
}

// S4-20, S4-40, EX-9: its volumes grow by the plugin itself, which the claim names.
#[test]
fn s4_20_a_plugin_that_is_there_is_named_as_the_one_that_grows() {
    let disk = json!({ "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
    let mut world = World::new().class("fast", EBS, json!({ "allowVolumeExpansion": true }));
    world = world.with_volume("v", "fast", "1Gi", disk).with_claim("data", Some("fast"), "1Gi", json!({}));
    world.restart(served());
    world.settle();
    let more = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    world.patch(Kind::PersistentVolumeClaim, "data", more);
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_RESIZER], EBS);
    assert_eq!(world.why_claim("data"), "ExternalExpanding");
    // Switched on meanwhile, the driver is named in its place.
    world.restart(Local { migration: Migration::default(), ..served() });
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_RESIZER], DRIVER);
}
