//! Mounts that go without our asking, and machines that go with all their mounts: reliability 41, KL-34, KL-59.

use alloc::collections::BTreeSet;
use alloc::string::String;

use control::Action as _;
use serde_json::json;

use super::world::{World, unique};
use crate::Action;

fn running() -> World {
    let mut world = World::new();
    world.pod_with("a", json!({ "restartPolicy": "Always" }));
    world.settle();
    world
}

fn target(world: &World) -> String {
    world.local().records[&unique()].publishes.values().next().unwrap().target.clone()
}

/// The table held this path and holds it no longer.
fn vanish(world: &mut World, path: &str) {
    let before = world.local().mounts.clone();
    let now: BTreeSet<String> = before.iter().filter(|mount| *mount != path).cloned().collect();
    world.update_local(|local| local.remounted(&before, &now));
}

// Reliability 41, KL-34: what is gone is told and published again.
#[test]
fn a_mount_that_vanishes_is_told_and_made_again() {
    let mut world = running();
    let target = target(&world);
    vanish(&mut world, &target);
    assert!(!world.local().mounts.contains(&target));
    assert_eq!(world.settle(), ["NoteVanished", "Publish"]);
    assert!(world.local().mounts.contains(&target) && world.local().vanished.is_empty());
    let (reason, text) = Action::NoteVanished { path: target.clone() }.news().done.unwrap();
    assert!(reason == "MountVanished" && text.contains(&target), "{text}");
}

// Reliability 40: a staging mount that is gone is staged again.
#[test]
fn a_staging_mount_that_vanishes_is_staged_again() {
    let mut world = running();
    let staging = world.local().records[&unique()].staging_path.clone().unwrap();
    vanish(&mut world, &staging);
    assert_eq!(world.settle(), ["Stage"]);
}

// A driver that stages without a mount is not asked again for ever.
#[test]
fn what_was_never_in_the_table_cannot_vanish_from_it() {
    let mut world = running();
    let (none, only) = (BTreeSet::new(), BTreeSet::from([target(&world)]));
    world.update_local(|local| local.remounted(&none, &only));
    assert_eq!(world.settle(), [""; 0]);
}

// KL-59: nothing is left but the records, and everything is put back.
#[test]
fn kl_59_after_a_reboot_all_is_staged_published_and_started_again() {
    let mut world = running();
    world.machine.staged.clear();
    world.machine.published.clear();
    world.machine.processes.clear();
    world.crash("life-2");
    let done = world.settle();
    let calls: alloc::vec::Vec<&str> =
        done.iter().map(String::as_str).filter(|name| ["Stage", "Publish", "Start"].contains(name)).collect();
    assert_eq!(calls, ["Stage", "Publish", "Start"]);
}
