//! Every prefix of the writes, then a crash: the next incarnation ends where an undisturbed one does (PV-7, reliability
//! 113).

use api::{Kind, names};
use serde_json::{Value, json};

use super::world::World;
use crate::Local;

fn reserve_and_bind() -> World {
    let mut world = World::new()
        .class("hand", names::NO_PROVISIONER, json!({}))
        .with_claim("a", Some("hand"), "1Gi", json!({}))
        .with_claim("b", Some("hand"), "2Gi", json!({}));
    world.add_volume("v1", "hand", "1Gi", json!({}));
    world.add_volume("v2", "hand", "2Gi", json!({}));
    world.add_volume("v3", "hand", "2Gi", json!({}));
    world
}

fn release() -> World {
    let mut world = reserve_and_bind();
    world.settle();
    world.delete(Kind::PersistentVolumeClaim, "a");
    world.delete(Kind::PersistentVolume, "v2");
    world
}

fn lose() -> World {
    let mut world = reserve_and_bind();
    world.settle();
    let volume = world.claim("a")["spec"]["volumeName"].clone();
    let volume = volume.as_str().unwrap();
    world.patch(Kind::PersistentVolume, volume, json!({ "metadata": { "finalizers": Value::Null } }));
    world.delete(Kind::PersistentVolume, volume);
    world
}

fn crash_everywhere(scene: fn() -> World) {
    let mut undisturbed = scene();
    undisturbed.settle();
    let steps = undisturbed.log.len();
    assert!(steps > 0);
    for crash_after in 0..=steps {
        let mut world = scene();
        world.run_for(crash_after);
        world.restart(Local::default());
        world.settle();
        assert_eq!(world.outcome(), undisturbed.outcome(), "crash after {crash_after} of {:?}", undisturbed.log);
        check_pairs(&world);
    }
}

/// Reliability 16: a claim and a volume name each other, or neither does.
fn check_pairs(world: &World) {
    for volume in world.list(Kind::PersistentVolume) {
        if volume["status"]["phase"] == "Bound" {
            let claim = world.claim(volume["spec"]["claimRef"]["name"].as_str().unwrap());
            assert_eq!(claim["spec"]["volumeName"], volume["metadata"]["name"]);
            assert_eq!(claim["metadata"]["uid"], volume["spec"]["claimRef"]["uid"]);
        }
    }
}

// PV-7: a crash between any two writes.
#[test]
fn pv_7_a_half_written_binding_is_completed_by_the_next_life() {
    crash_everywhere(reserve_and_bind);
}

// PV-7, reliability 113.
#[test]
fn pv_7_a_half_written_release_is_completed_by_the_next_life() {
    crash_everywhere(release);
}

// PV-7, reliability 113.
#[test]
fn pv_7_a_half_written_loss_is_completed_by_the_next_life() {
    crash_everywhere(lose);
}

// Reliability 114.
#[test]
fn a_restart_at_rest_does_nothing() {
    for scene in [reserve_and_bind, release, lose] {
        let mut world = scene();
        world.settle();
        world.actions.clear();
        world.restart(Local::default());
        world.settle();
        assert!(world.actions.is_empty(), "{:?}", world.actions);
    }
}
