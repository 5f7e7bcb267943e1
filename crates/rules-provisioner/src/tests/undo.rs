use alloc::format;
use alloc::string::ToString;

use api::{Kind, names};
use csi::Code;
use serde_json::json;

use super::driver::Mood;
use super::world::{CLAIM, VOLUME, World};

/// A claim whose intent is in the journal, or on the claim itself.
fn asked(journal: bool) -> World {
    if journal { World::asked().in_journal() } else { World::asked() }
}

// Reliability 1, 2, 7, 113: deleted after any step, with and without a crash, nothing is left.
#[test]
fn a_claim_deleted_at_any_step_leaves_nothing_behind() {
    for (steps, journal) in (0..=4).flat_map(|steps| [(steps, false), (steps, true)]) {
        for crash in [false, true] {
            let mut world = asked(journal);
            world.run_for(steps);
            world.delete_claim();
            // Users suffer from claims that cannot be deleted: with the intent elsewhere, they can.
            assert!(!journal || world.get(CLAIM, "data").is_none(), "after {steps} steps");
            if crash {
                world.restart();
            }
            world.run_to_the_end();
            assert!(world.is_empty(), "after {steps} steps, crash {crash}: {:?}", world.log);
        }
    }
}

// The same, with a second crash at any step of the undoing.
#[test]
fn undoing_survives_a_crash_at_any_step() {
    for steps in 1..=3 {
        for crash_after in 0..=6 {
            let mut world = World::asked();
            world.run_for(steps);
            world.delete_claim();
            world.restart();
            world.run_for(crash_after);
            world.restart();
            world.run_to_the_end();
            assert!(world.is_empty(), "{steps} {crash_after}: {:?}", world.log);
        }
    }
}

#[test]
fn a_lost_answer_while_undoing_leaves_nothing_behind() {
    for (lost, journal) in (2..=7).flat_map(|lost| [(lost, false), (lost, true)]) {
        let mut world = asked(journal);
        world.run_for(2);
        world.delete_claim();
        world.restart();
        world.lose_answer = Some(lost);
        world.run_to_the_end();
        assert!(world.is_empty(), "{lost}: {:?}", world.log);
    }
}

// The order of undoing: learn the id, make sure nobody recorded it, delete, forget.
#[test]
fn undoing_asks_deletes_and_only_then_forgets() {
    let mut world = World::asked();
    world.run_for(2);
    let name = world.pv_name();
    world.delete_claim();
    world.restart();
    world.log.clear();
    let uid = world.uid();
    world.run();
    let steps = [
        "AdoptIntent(n/data)".to_string(),
        format!("CreateVolume({name})"),
        format!("LookForPv(claim uid {uid})"),
        format!("DeleteVolume(id-of-{name})"),
        "DropIntent(n/data)".to_string(),
    ];
    assert_eq!(world.log, steps);
}

// Reliability 7: the driver's own refusal means that there is no volume; silence does not.
#[test]
fn a_refusal_lets_a_deleted_claim_go_and_silence_does_not() {
    let mut world = World::asked();
    world.driver.mood = Mood::Down;
    world.run_for(2);
    world.delete_claim();
    assert!(!world.run_for(20));
    assert!(world.get(CLAIM, "data").is_some());
    world.driver.mood = Mood::Refusing(Code::ResourceExhausted, "full".into());
    world.run();
    assert!(world.is_empty());
}

// Reliability 7: a failure after an attempt that may have succeeded proves nothing, and neither does one after a restart.
#[test]
fn a_driver_that_merely_failed_may_have_made_the_volume_before() {
    for restarted in [false, true] {
        let mut world = World::asked();
        world.run_for(1);
        if restarted {
            world.restart();
        } else {
            world.driver.mood = Mood::Down;
            world.run_for(1);
        }
        world.driver.mood = Mood::Refusing(Code::Internal, "disk on fire".into());
        world.delete_claim();
        assert!(!world.run_for(20), "restarted: {restarted}");
        assert!(world.get(CLAIM, "data").is_some());
        world.driver.mood = Mood::Well;
        world.run_to_the_end();
        assert!(world.is_empty());
    }
}

// Reliability 7: where every attempt was refused, there is no volume, whatever the reason was.
#[test]
fn a_driver_that_failed_every_time_has_made_nothing() {
    let mut world = World::asked();
    world.driver.mood = Mood::Refusing(Code::Internal, "disk on fire".into());
    world.run_for(3);
    world.delete_claim();
    world.run();
    assert!(world.is_empty());
}

#[test]
fn already_exists_does_not_mean_that_there_is_no_volume() {
    let mut world = World::asked();
    world.run_for(1);
    world.driver.mood = Mood::Refusing(Code::AlreadyExists, "incompatible".into());
    world.delete_claim();
    assert!(!world.run_for(20));
    assert!(world.get(CLAIM, "data").is_some());
}

// Reliability 14: the class is gone, what it said is not.
#[test]
fn a_volume_whose_class_is_gone_is_undone_all_the_same() {
    let mut world = World::new().class("fast", "d", json!({ "parameters": { "pool": "p" }, "mountOptions": ["ro"] }));
    world = world.with_claim("data", json!({}));
    world.run_for(2);
    world.delete(Kind::StorageClass, "fast");
    world.delete_claim();
    world.restart();
    world.run_to_the_end();
    assert!(world.is_empty(), "{:?}", world.log);
}

#[test]
fn a_volume_that_cannot_be_found_again_is_said() {
    let mut world = World::asked();
    world.run_for(2);
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::PROVISIONING_TERMS: null } } }));
    world.delete(Kind::StorageClass, "fast");
    world.delete_claim();
    world.restart();
    world.run();
    assert_eq!(world.why_claim(), "CannotUndo");
}

// The claim found another volume meanwhile.
#[test]
fn a_claim_bound_to_another_volume_needs_none_of_ours() {
    let mut world = World::asked();
    world.run_for(2);
    world.patch(CLAIM, "data", json!({ "spec": { "volumeName": "other" } }));
    world.run();
    assert!(world.driver.volumes.is_empty());
    assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
    assert_eq!(world.why_claim(), "Bound");
}

// Reliability 13: a namesake starts anew, whatever is remembered.
#[test]
fn a_namesake_gets_a_volume_of_its_own() {
    let mut world = World::asked();
    world.run_for(2);
    let first = world.pv_name();
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": null } }));
    world.delete(CLAIM, "data");
    world.driver.volumes.clear(); // An administrator forced the claim away and cleaned up.
    world = world.with_claim("data", json!({}));
    world.run();
    assert_ne!(world.pv_name(), first);
    assert!(world.get(VOLUME, &first).is_none());
    assert!(world.get(VOLUME, &world.pv_name()).is_some());
}
