use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, names};
use control::{Decision, Outcome, Reply, Rules, Timestamp};
use serde_json::{Value, json};

use super::driver::Mood;
use super::world::{CLAIM, VOLUME, World, local};
use crate::{Action, Fresh, Key, Memory, Provisioner};

/// A volume made, bound and, its claim gone, released.
fn released(policy: &str) -> (World, String) {
    let mut world = World::new().class("fast", "d", json!({ "reclaimPolicy": policy })).with_claim("data", json!({}));
    world.run();
    let name = world.pv_name();
    world.patch_status(VOLUME, &name, json!({ "phase": "Bound" }));
    world.run();
    world.delete_claim();
    world.release_volumes();
    world.log.clear();
    (world, name)
}

// P80, P84, PV-33, S0-33, reliability 8, 10: fresh look, data, object, hold.
#[test]
fn a_released_volume_is_deleted_data_first() {
    let (mut world, name) = released("Delete");
    world.run();
    let steps = ["LookAtPv", "DeleteVolume", "DeletePv", "RemoveFinalizer"];
    let done: Vec<&str> = world.log.iter().map(|line| line.split('(').next().unwrap()).collect();
    assert_eq!(done, steps);
    world.unprotect_volumes();
    assert!(world.get(VOLUME, &name).is_none());
    assert!(world.driver.volumes.is_empty());
}

// An attacher in the same process finds its finalizer there when the volume is first attached, and never has to let go.
#[test]
fn beside_an_attacher_a_volume_is_held_for_both_and_let_go_for_both() {
    let class = json!({ "reclaimPolicy": "Delete" });
    let mut world = World::new().with(|settings| settings.attaches = true).class("fast", "d", class);
    world = world.with_claim("data", json!({}));
    world.run();
    let name = world.pv_name();
    let finalizers = |world: &World| world.get(VOLUME, &name).unwrap()["metadata"]["finalizers"].to_string();
    assert!(finalizers(&world).contains(names::PROVISIONER_FINALIZER));
    assert!(finalizers(&world).contains(&names::attacher_finalizer("d")));
    world.delete_claim();
    world.release_volumes();
    world.log.clear();
    world.run();
    // It is not known whether it was ever attached, so the attachments are listed.
    assert_eq!(world.log.len(), 5, "{:?}", world.log);
    assert!(!finalizers(&world).contains("external-"), "{}", finalizers(&world));
}

// Reliability 113.
#[test]
fn deletion_survives_a_crash_or_a_lost_answer_at_any_step() {
    for at in 0..=4 {
        for crash in [true, false] {
            let (mut world, _) = released("Delete");
            if crash {
                world.run_for(at);
                world.restart();
            } else {
                world.lose_answer = Some(at);
            }
            world.run_to_the_end();
            assert!(world.is_empty(), "{at} {crash}: {:?}", world.log);
        }
    }
}

// P81, reliability 9, 10.
#[test]
fn a_retained_volume_keeps_its_data_and_loses_our_hold() {
    let (mut world, name) = released("Retain");
    world.run();
    assert_eq!(world.volume(&name)["metadata"]["finalizers"], json!([names::PV_PROTECTION]));
    assert_eq!(world.driver.volumes.len(), 1);
    assert_eq!(world.why(&Key::Volume(name)).code, "Retained");
}

// P81: a policy changed to Delete on a bound volume.
#[test]
fn a_bound_volume_with_policy_delete_is_held() {
    let (mut world, name) = released("Retain");
    world.run();
    world.patch_status(VOLUME, &name, json!({ "phase": "Bound" }));
    world.patch(VOLUME, &name, json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } }));
    world.run();
    assert!(world.volume(&name)["metadata"]["finalizers"].to_string().contains(names::PROVISIONER_FINALIZER));
    assert_eq!(world.driver.volumes.len(), 1);
}

// P83, reliability 8: and the attachment's end wakes the volume.
#[test]
fn an_attachment_holds_up_deletion() {
    let (mut world, name) = released("Delete");
    let source = json!({ "persistentVolumeName": name });
    let spec = json!({ "attacher": "d", "nodeName": "x", "source": source });
    world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": "va" }, "spec": spec }));
    world.run();
    let why = world.why(&Key::Volume(name));
    assert_eq!(why.code, "StillAttached");
    assert!(why.text.ends_with("va"));
    assert_eq!(world.driver.volumes.len(), 1);
    world.delete(Kind::VolumeAttachment, "va");
    world.run_to_the_end();
    assert!(world.is_empty());
}

// Reliability 8, 105: an attachment that the cache has not shown yet, of a volume that was attached once.
#[test]
fn an_attachment_that_the_cache_does_not_show_holds_up_deletion() {
    let (mut world, name) = released("Delete");
    let finalizers = json!([names::PV_PROTECTION, names::PROVISIONER_FINALIZER, names::attacher_finalizer("d")]);
    world.patch(VOLUME, &name, json!({ "metadata": { "finalizers": finalizers } }));
    world.frozen.insert(Kind::VolumeAttachment);
    let source = json!({ "persistentVolumeName": name });
    let spec = json!({ "attacher": "d", "nodeName": "x", "source": source });
    world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": "va" }, "spec": spec }));
    // It looks again and again, and deletes nothing.
    world.run_for(6);
    let done: Vec<&str> = world.log.iter().map(|line| line.split('(').next().unwrap()).collect();
    assert_eq!(done, ["LookAtPv", "LookForAttachments"].repeat(3));
    assert_eq!(world.driver.volumes.len(), 1);

    world.frozen.clear();
    world.sync();
    world.run();
    assert_eq!(world.why(&Key::Volume(name)).code, "StillAttached");
    world.delete(Kind::VolumeAttachment, "va");
    world.log.clear();
    world.run();
    let done: Vec<&str> = world.log.iter().map(|line| line.split('(').next().unwrap()).collect();
    assert_eq!(done, ["LookAtPv", "LookForAttachments", "DeleteVolume", "DeletePv", "RemoveFinalizer"]);
    assert!(world.driver.volumes.is_empty());
}

// Reliability 8, 9, 105: the cache condemns the volume, the API does not.
#[test]
fn a_stale_cache_does_not_destroy_data() {
    let (world, name) = released("Delete");
    let cached = |value: &Value| Object::from_json(VOLUME, value.clone()).unwrap();
    let mut cache = control::Cache::default();
    cache.set(cached(&world.volume(&name)));
    let key = Key::Volume(name.clone());
    let decide = |now, memory: &Memory| Provisioner::decide(now, &Provisioner::view(&key, &cache, &local()), memory);
    let Decision::Do(look, _) = decide(Timestamp(0), &Memory::default()) else { panic!() };
    assert!(matches!(look, Action::LookAtPv { .. }));

    let mut retained = world.volume(&name);
    retained["spec"]["persistentVolumeReclaimPolicy"] = "Retain".into();
    let mut bound = world.volume(&name);
    bound["status"]["phase"] = "Bound".into();
    let mut namesake = world.volume(&name);
    namesake["metadata"]["uid"] = "another".into();
    for reply in
        [Reply::Object(cached(&retained)), Reply::Object(cached(&bound)), Reply::Object(cached(&namesake)), Reply::Gone]
    {
        let memory = Provisioner::remember(Timestamp(0), Memory::default(), &look, &Outcome::Done(reply));
        assert!(matches!(decide(Timestamp(0), &memory), Decision::Wait(..)));
        assert!(matches!(decide(Timestamp(5_000), &memory), Decision::Do(Action::LookAtPv { .. }, _)));
    }
    let unknown = Outcome::Unknown("cut off".into());
    let memory = Provisioner::remember(Timestamp(0), Memory::default(), &look, &unknown);
    assert_eq!(memory.fresh, Fresh::Unread);
}

// Every attempt is preceded by a read of its own, and the pauses between attempts grow (reliability 74).
#[test]
fn a_driver_that_is_down_delays_deletion() {
    let (mut world, name) = released("Delete");
    world.driver.mood = Mood::Down;
    let before = world.now.0;
    assert!(!world.run_for(20));
    assert!(world.now.0 - before > 30_000);
    assert!(world.why(&Key::Volume(name)).text.contains("connection refused"));
    world.driver.mood = Mood::Well;
    world.run_to_the_end();
    assert!(world.is_empty());
}

// P85: deleted before its claim, it stays until the claim is gone.
#[test]
fn a_bound_volume_being_deleted_waits_for_its_claim() {
    let mut world = World::asked();
    world.run();
    let name = world.pv_name();
    world.patch_status(VOLUME, &name, json!({ "phase": "Bound" }));
    world.delete(VOLUME, &name);
    world.run();
    assert_eq!(world.driver.volumes.len(), 1);
    assert!(world.get(VOLUME, &name).is_some());
    world.delete_claim();
    world.run_to_the_end();
    assert!(world.is_empty());
}

// A volume deleted before it was ever bound makes room for a new one.
#[test]
fn an_unbound_volume_being_deleted_goes_and_the_claim_gets_another() {
    let mut world = World::asked();
    world.run();
    let name = world.pv_name();
    let uid = world.volume(&name)["metadata"]["uid"].clone();
    world.delete(VOLUME, &name);
    world.unprotect_volumes();
    world.run();
    assert_ne!(world.volume(&name)["metadata"]["uid"], uid);
    assert_eq!(world.driver.volumes.len(), 1);
    assert!(world.get(CLAIM, "data").is_some());
}

// P82: made by hand for our driver.
#[test]
fn volumes_of_others_are_left_alone_and_ours_made_by_hand_are_not() {
    let mut world = World::new();
    for (name, driver, made_by) in
        [("theirs", "e", Value::Null), ("also-theirs", "d", "e".into()), ("ours", "d", Value::Null)]
    {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
            "persistentVolumeReclaimPolicy": "Delete", "csi": { "driver": driver, "volumeHandle": name },
            "claimRef": { "namespace": "n", "name": "gone", "uid": "u" },
        });
        let mut annotations = json!({});
        if !made_by.is_null() {
            annotations[names::PROVISIONED_BY] = made_by;
        }
        world.create(VOLUME, json!({ "metadata": { "name": name, "annotations": annotations }, "spec": spec }));
        world.patch_status(VOLUME, name, json!({ "phase": "Released" }));
    }
    world.run();
    world.unprotect_volumes();
    assert!(world.get(VOLUME, "theirs").is_some());
    assert!(world.get(VOLUME, "also-theirs").is_some());
    assert!(world.get(VOLUME, "ours").is_none());
}

// S4-42 to S4-44: a volume our driver has taken over is ours, but one we cannot speak of as CSI is neither held nor deleted.
#[test]
fn a_volume_that_was_taken_over_is_ours_and_not_touched_untranslated() {
    for (migrated_to, code) in [("d", "NoSource"), ("e", "NotOurs")] {
        let mut world = World::new();
        let annotations = json!({ names::PROVISIONED_BY: "kubernetes.io/aws-ebs", names::MIGRATED_TO: migrated_to });
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
            "persistentVolumeReclaimPolicy": "Delete", "awsElasticBlockStore": { "volumeID": "vol-1" },
        });
        world.create(VOLUME, json!({ "metadata": { "name": "v", "annotations": annotations }, "spec": spec }));
        for phase in ["Bound", "Released"] {
            world.patch_status(VOLUME, "v", json!({ "phase": phase }));
            world.run();
            assert!(world.log.is_empty(), "{:?}", world.log);
            assert_eq!(world.why(&Key::Volume("v".into())).code, code);
        }
    }
}
