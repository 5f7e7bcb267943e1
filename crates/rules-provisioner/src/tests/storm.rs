//! Every feature, with a crash, a lost answer or a change of mind after any step (reliability 113).

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, names};
use serde_json::json;

use super::secrets::{add_secret, with_secrets};
use super::sources::{cloning, restoring, with_snapshot, with_source};
use super::topology::placed;
use super::world::{CLAIM, World};

type Make = Box<dyn Fn() -> World>;

/// A claim for a volume that needs everything a driver can be given, one thing at a time.
fn worlds() -> impl Iterator<Item = (&'static str, Make)> {
    let in_journal = features().into_iter().map(|(name, make)| (name, Box::new(move || make().in_journal()) as Make));
    features().into_iter().chain(in_journal)
}

fn features() -> Vec<(&'static str, Make)> {
    Vec::from([
        ("plain", Box::new(World::asked) as Make),
        ("from a snapshot", Box::new(|| restoring(with_snapshot(json!({}), json!({})), json!({})))),
        ("from a claim", Box::new(|| cloning(with_source(json!({}), json!({})), json!({})))),
        ("for a node", Box::new(|| placed(|_| {}))),
        (
            "with secrets",
            Box::new(|| {
                let mut world = with_secrets();
                add_secret(&mut world, "s");
                world
            }),
        ),
    ])
}

const STEPS: usize = 8;

fn ended_well(world: &World, name: &str) {
    assert_eq!(world.why_claim(), "VolumeMade", "{name}: {:?}", world.log);
    assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]), "{name}");
    assert_eq!(world.driver.volumes.len(), 1, "{name}: {:?}", world.log);
    assert!(world.entries().is_empty(), "{name}: {:?}", world.log);
}

#[test]
fn a_crash_after_any_step_ends_with_one_volume() {
    for (name, make) in worlds() {
        for steps in 0..STEPS {
            let mut world = make();
            world.run_for(steps);
            world.restart();
            world.run();
            ended_well(&world, name);
        }
    }
}

#[test]
fn a_lost_answer_at_any_step_ends_with_one_volume() {
    for (name, make) in worlds() {
        for lost in 0..STEPS {
            let mut world = make();
            world.lose_answer = Some(lost);
            world.run();
            ended_well(&world, name);
        }
    }
}

#[test]
fn a_claim_deleted_after_any_step_leaves_nothing() {
    for (name, make) in worlds() {
        for (steps, again) in (0..STEPS).flat_map(|steps| (0..STEPS).map(move |again| (steps, again))) {
            let mut world = make();
            world.run_for(steps);
            world.delete_claim();
            world.restart();
            world.run_for(again);
            world.restart();
            world.run_to_the_end();
            assert!(world.get(CLAIM, "data").is_none(), "{name} {steps} {again}: {:?}", world.log);
            assert!(world.driver.volumes.is_empty(), "{name} {steps} {again}: {:?}", world.log);
            assert!(world.entries().is_empty(), "{name} {steps} {again}: {:?}", world.log);
            world.run_sources();
            let held = |kind: Kind, object: &str| {
                world.get(kind, object).is_some_and(|object| {
                    object["metadata"]["finalizers"].to_string().contains(names::SNAPSHOT_SOURCE_PROTECTION)
                })
            };
            assert!(!held(Kind::VolumeSnapshot, "snap"), "{name} {steps} {again}");
        }
    }
}
