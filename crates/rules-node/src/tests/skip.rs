//! Drivers whose volumes need no attachment, and drivers that change their mind (S2-1 to S2-14, the node's half).

use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use serde_json::json;

use super::world::*;

/// The same node with neither attachment nor report.
fn unattached() -> World {
    let mut world = World::new();
    world.delete(Kind::VolumeAttachment, "va");
    world.report_attached(false);
    world
}

fn has(done: &[String], what: &str) -> bool {
    done.iter().any(|one| one == what)
}

// S2-1, S2-2, S2-4 (WaitForAttach), S2-6: without an object an attachment is waited for; the object comes late, and the
// volume is mounted without one. It is reported as in use all the same, so that S2-14 has no race.
#[test]
fn an_object_that_comes_late_ends_the_wait() {
    let mut world = unattached();
    world.pod("a");
    let waiting = world.settle();
    assert!(!has(&waiting, "Stage") && !has(&waiting, "Publish"), "{waiting:?}");
    world.driver(json!({ "attachRequired": false }));
    let done = world.settle();
    assert!(has(&done, "Publish"), "{done:?}");
    assert!(world.node_lists("volumesInUse") && !world.node_lists("volumesAttached"));
}

// S2-4: absent and true are the same: what is not attached is not mounted.
#[test]
fn an_attachable_driver_is_waited_for() {
    let mut world = unattached();
    world.driver(json!({ "attachRequired": true }));
    world.pod("a");
    assert!(!has(&world.settle(), "Publish"));
    world.attach();
    assert!(has(&world.settle(), "Publish"));
}

// S2-10, S2-14: a mounted volume that must be attached from now on stays mounted and in use, with nothing done to it.
#[test]
fn a_mounted_volume_that_becomes_attachable_stays() {
    let mut world = unattached();
    world.driver(json!({ "attachRequired": false }));
    world.pod("a");
    world.settle();
    world.delete(Kind::CSIDriver, DRIVER);
    let done: Vec<String> = world.settle();
    assert!(!has(&done, "Unpublish") && !has(&done, "Unstage"), "{done:?}");
    assert!(world.node_lists("volumesInUse"));
    world.delete_pod("a");
    let done = world.settle();
    assert!(has(&done, "Unpublish"), "{done:?}");
    assert!(!world.node_lists("volumesInUse"), "and it can be let go");
}

// S2-9, S2-14: the other way round, an attached volume stays in use until it is unmounted, whatever becomes of its
// attachment's need.
#[test]
fn a_mounted_volume_that_needs_no_attachment_any_more_stays() {
    let mut world = World::new();
    world.pod("a");
    world.settle();
    world.driver(json!({ "attachRequired": false }));
    let done = world.settle();
    assert!(!has(&done, "Unpublish") && !has(&done, "Unstage"), "{done:?}");
    assert!(world.node_lists("volumesInUse"));
    world.delete_pod("a");
    world.settle();
    assert!(!world.node_lists("volumesInUse"));
}
