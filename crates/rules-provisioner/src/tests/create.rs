use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, names};
use control::{Action as _, Decision};
use csi::Code;
use serde_json::{Value, json};

use super::driver::{Mood, id_of};
use super::world::{CLAIM, VOLUME, World};

// The straight path: four actions, in this order (reliability 6, 7; S0-20, S0-22, S0-24).
#[test]
fn a_claim_gets_a_volume_in_four_steps() {
    let mut world = World::asked();
    let name = world.pv_name();
    world.run();
    let steps = ["RecordIntent(n/data)", &format!("CreateVolume({name})"), "CreatePv(n/data)", "DropIntent(n/data)"];
    assert_eq!(world.log, steps);
    let claim = world.claim("data");
    assert_eq!(claim["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
    assert!(claim["metadata"]["annotations"][names::PROVISIONING_TERMS].is_null());
    assert_eq!(world.why_claim(), "VolumeMade");
}

// Sidecars 2.9 "PV written", P1, P31; S0-30, S0-32.
#[test]
fn the_volume_is_recorded_as_the_class_and_the_driver_say() {
    let class = json!({
        "parameters": { "csi.storage.k8s.io/fstype": "xfs", "type": "ssd" },
        "reclaimPolicy": "Retain", "mountOptions": ["noatime"],
    });
    let mut world = World::new().class("fast", "d", class).with_claim("data", json!({}));
    world.driver.capacity = Some(3 << 30);
    world.run_for(3);
    let volume = world.volume(&world.pv_name());
    let claim_ref = &volume["spec"]["claimRef"];
    assert_eq!(
        (claim_ref["namespace"].as_str(), claim_ref["name"].as_str(), claim_ref["uid"].as_str()),
        (Some("n"), Some("data"), Some(world.uid().as_str()))
    );
    assert_eq!(volume["spec"]["csi"]["driver"], "d");
    assert_eq!(volume["spec"]["csi"]["volumeHandle"], id_of(&world.pv_name()));
    assert_eq!(volume["spec"]["csi"]["fsType"], "xfs");
    assert_eq!(volume["spec"]["csi"]["volumeAttributes"], json!({ "k": "v" }));
    assert_eq!(volume["spec"]["capacity"]["storage"], "3Gi"); // P22
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(volume["spec"]["mountOptions"], json!(["noatime"]));
    assert_eq!(volume["spec"]["storageClassName"], "fast");
    assert_eq!(volume["metadata"]["annotations"][names::PROVISIONED_BY], "d");
    assert_eq!(volume["metadata"]["annotations"][names::DELETION_SECRET_NAME], "");
    // Policy Retain needs no hold of ours: set by policy, where upstream sets it and takes it off again.
    assert!(!volume["metadata"]["finalizers"].to_string().contains(names::PROVISIONER_FINALIZER));
}

// P20.
#[test]
fn a_driver_that_states_no_size_gets_the_requested_one_recorded() {
    let mut world = World::asked();
    world.driver.capacity = Some(0);
    world.run();
    assert_eq!(world.volume(&world.pv_name())["spec"]["capacity"]["storage"], "1Gi");
}

// P21, reliability 5: never recorded as if it were large enough, deleted again, and tried again after a pause.
#[test]
fn a_volume_that_is_too_small_is_deleted_again_and_not_recorded() {
    let mut world = World::asked();
    world.driver.capacity = Some(1 << 20);
    let before = world.now.0;
    assert!(!world.run_for(32));
    assert!(world.get(VOLUME, &world.pv_name()).is_none());
    assert_eq!(
        world.log[1..4].iter().map(|line| line.split('(').next().unwrap()).collect::<Vec<_>>(),
        ["CreateVolume", "LookForPv", "DeleteVolume"]
    );
    assert!(world.now.0 - before > 30_000, "ten volumes in {} ms", world.now.0 - before);
    assert!(world.why(&world.key()).text.contains("1048576 bytes where 1073741824 were asked"));
    world.delete_claim();
    world.run_to_the_end();
    assert!(world.is_empty());
}

// Reliability 113: a crash after any step, then a new incarnation.
#[test]
fn a_crash_after_any_step_ends_with_the_same_volume() {
    for crash_after in 0..=4 {
        let mut world = World::asked();
        world.run_for(crash_after);
        world.restart();
        world.run();
        assert!(world.get(VOLUME, &world.pv_name()).is_some(), "{crash_after}");
        assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]), "{crash_after}");
        assert_eq!(world.driver.volumes.len(), 1);
        world.log.clear();
        world.restart();
        world.run();
        assert!(world.log.is_empty(), "not at rest: {:?}", world.log); // reliability 114
    }
}

// Reliability 75: what happened without our hearing of it is found, not repeated.
#[test]
fn a_lost_answer_at_any_step_ends_with_the_same_volume() {
    for lost in 0..4 {
        let mut world = World::asked();
        world.lose_answer = Some(lost);
        world.run();
        assert!(world.get(VOLUME, &world.pv_name()).is_some(), "{lost}");
        assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]), "{:?}", world.log);
    }
}

// A drop on its way from an earlier incarnation must not take away the intent under a call (reliability 1, 6).
#[test]
fn an_intent_found_is_adopted_so_that_earlier_writes_fail() {
    let mut world = World::asked();
    world.run_for(1);
    let claim = world.cache.claim(&ObjectKey::new("n", "data")).unwrap().clone();
    let earlier = crate::Action::DropIntent { claim, place: crate::IntentLocation::Claim };
    world.restart();
    world.run_for(1);
    assert_eq!(world.log.last().unwrap(), "AdoptIntent(n/data)");
    let control::Effect::Write(write) = earlier.effect() else { panic!() };
    assert!(world.write(&write).is_err());
    world.run();
    assert_eq!(world.driver.volumes.len(), 1);
}

#[test]
fn a_driver_that_is_down_is_waited_for_and_said() {
    let mut world = World::asked();
    world.driver.mood = Mood::Down;
    world.run_for(6);
    let why = world.why(&world.key());
    assert_eq!(why.code, "BackOff");
    assert!(why.text.starts_with("waiting for driver d to create volume pvc-"), "{}", why.text);
    assert!(why.text.ends_with(": connection refused"), "{}", why.text);
    world.driver.mood = Mood::Well;
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// Sidecars 2.9: retried for ever with backoff (reliability 74), the claim stays as it is.
#[test]
fn a_refusal_is_shown_in_the_drivers_words_and_retried() {
    let mut world = World::asked();
    world.driver.mood = Mood::Refusing(Code::InvalidArgument, "no such pool".into());
    let before = world.now.0;
    world.run_for(11);
    let why = world.why(&world.key());
    assert_eq!(why.code, "CreateRefused");
    assert!(why.text.contains("no such pool"), "{}", why.text);
    assert!(world.now.0 - before > 30_000, "ten attempts in {} ms", world.now.0 - before);
    assert_eq!(world.claim("data")["status"]["phase"], "Pending");
    world.driver.mood = Mood::Well;
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P7, S0-23, S0-47 and the like: not ours, nothing done, nothing said to be waited for.
#[test]
fn claims_of_others_change_nothing() {
    let asked = |who: Value| {
        json!({ "metadata": { "annotations": {
        names::STORAGE_PROVISIONER: who, names::STORAGE_PROVISIONER_BETA: who } } })
    };
    for (class, claim, code) in [
        ("d", asked(Value::Null), "NotAsked"),
        ("other", asked("other".into()), "NotOurs"),
        ("other", asked("d".into()), "ClassNotOurs"),
    ] {
        let mut world = World::new().class("fast", class, json!({})).with_claim("data", claim);
        world.run();
        world.restart();
        world.run();
        assert!(world.log.is_empty(), "{code}: {:?}", world.log);
        assert_eq!(world.why_claim(), code);
        assert!(world.why(&world.key()).settled);
    }
}

// P5.
#[test]
fn the_older_annotation_counts_as_well() {
    let older = json!({ "metadata": { "annotations": { names::STORAGE_PROVISIONER: null } } });
    let mut world = World::new().class("fast", "d", json!({})).with_claim("data", older);
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P4.
#[test]
fn delayed_binding_waits_for_a_node() {
    let late = json!({ "volumeBindingMode": "WaitForFirstConsumer" });
    let mut world = World::new().class("fast", "d", late).with_claim("data", json!({}));
    world.run();
    assert_eq!(world.why_claim(), "AwaitingNode");
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: "x" } } }));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P6, reliability 13: a volume of that name for somebody else.
#[test]
fn a_taken_name_is_refused_and_said() {
    let mut world = World::asked();
    let other = json!({ "namespace": "n", "name": "data", "uid": "older" });
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "claimRef": other,
        "csi": { "driver": "e", "volumeHandle": "h" },
    });
    let name = world.pv_name();
    world.create(VOLUME, json!({ "metadata": { "name": name }, "spec": spec }));
    world.run();
    assert_eq!(world.why_claim(), "VolumeNameTaken");
    assert!(world.log.is_empty());
    let name = world.pv_name();
    world.patch(VOLUME, &name, json!({ "metadata": { "finalizers": null } }));
    world.delete(VOLUME, &name);
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

#[test]
fn a_missing_class_is_waited_for() {
    let mut world = World::new().with_claim("data", json!({}));
    world.run();
    assert_eq!(world.why_claim(), "ClassMissing");
    world = world.class("fast", "d", json!({}));
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// Reliability 14: the class goes while the volume is being made.
#[test]
fn a_class_deleted_underneath_is_waited_for() {
    let mut world = World::asked();
    world.run_for(2);
    world.delete(Kind::StorageClass, "fast");
    world.restart();
    world.run();
    assert_eq!(world.why_claim(), "ClassMissing");
}

// P48: a class replaced because the driver would not take it.
#[test]
fn a_replaced_class_has_its_turn_once_the_driver_has_refused_the_old_one() {
    let mut world = World::new().class("fast", "d", json!({ "parameters": { "pool": "wrong" } }));
    world = world.with_claim("data", json!({}));
    world.driver.mood = Mood::Refusing(Code::InvalidArgument, "no such pool".into());
    world.run_for(3);
    world.delete(Kind::StorageClass, "fast");
    world = world.class("fast", "d", json!({ "parameters": { "pool": "right" } }));
    world.restart();
    world.run_for(3); // Adopt, ask once more with the old parameters, start over.
    assert_eq!(world.log.last().unwrap(), "DropIntent(n/data)");
    world.driver.mood = Mood::Well;
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    assert_eq!(world.driver.volumes[&world.pv_name()].parameters["pool"], "right");
}

// Reliability 14, 69: a volume made under the old class is not passed off as one of the new class.
#[test]
fn a_replaced_class_does_not_change_a_volume_already_made() {
    let mut world = World::new().class("fast", "d", json!({ "parameters": { "pool": "a" } }));
    world = world.with_claim("data", json!({}));
    world.run_for(2);
    world.delete(Kind::StorageClass, "fast");
    world = world.class("fast", "d", json!({ "parameters": { "pool": "b" } }));
    world.restart();
    world.run();
    assert_eq!(world.why_claim(), "ClassReplaced");
    world.delete_claim();
    world.run_to_the_end();
    assert!(world.is_empty());
}

#[test]
fn a_paused_key_acts_only_when_its_time_has_come() {
    let mut world = World::asked();
    world.driver.mood = Mood::Down;
    world.run_for(2);
    assert!(matches!(world.decide(&world.key()), Decision::Wait(until, _) if until > world.now));
}
