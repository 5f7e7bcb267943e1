use api::Kind;
use control::{Decision, Rules as _};

use super::world::*;
use crate::AttachDetach;

// The straight path, and reliability 37 and 38: attach, report, take back, detach, and no wait on the way.
#[test]
fn a_volume_comes_and_goes_with_its_pod() {
    let mut world = World::new(&["ReadWriteOnce"]);
    assert_eq!(world.code(&on("a")), "NotWanted");
    world.pod("p", "a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    assert_eq!(world.code(&on("a")), "WaitingForAttacher");
    let made = world.real_attachment("a").unwrap();
    assert_eq!((made.spec.attacher.as_str(), made.volume()), (DRIVER, Some("v")));
    assert_eq!(made.metadata.name, attachment_name("a")); // reliability 31
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
    assert!(world.reported("a"));
    assert!(world.decide(&on("a")).why().settled);
    world.in_use("a", true);
    world.delete(Kind::Pod, "p");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUse");
    world.in_use("a", false);
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    assert_eq!(world.code(&on("a")), "Detaching");
    world.release("a");
    assert!(world.run(&on("a")).is_empty());
    assert!(world.decide(&on("a")).why().settled);
    assert_eq!(world.writes, 4, "four writes for a whole life");
}

// Memory is a hint: losing it before every look costs an adoption and a fence, and changes nothing else.
#[test]
fn the_same_without_any_memory() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    assert_eq!(world.run_forgetful(&on("a")), ["CreateAttachment"]);
    world.attach("a");
    world.sync();
    assert_eq!(world.step(&on("a")), Some("AdoptAttachment"));
    assert_eq!(world.step(&on("a")), Some("ReportAttached"));
    assert!(world.run_forgetful(&on("a")).is_empty(), "nothing is repeated at rest (109)");
    world.delete(Kind::Pod, "p");
    world.sync();
    world.forget();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    world.forget();
    assert_eq!(world.step(&on("a")), Some("FenceNode"));
    assert_eq!(world.step(&on("a")), Some("DeleteAttachment"));
}

// AD-8: a pod that ended, or is being deleted and runs no more, wants nothing.
#[test]
fn a_finished_pod_wants_nothing() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.patch_status(Kind::Pod, "p", serde_json::json!({ "phase": "Succeeded" }));
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
}

// AD-10, AD-12: a driver that needs no attachments gets none, and leftovers go.
#[test]
fn a_driver_that_needs_no_attachment_gets_none() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.create(
        Kind::CSIDriver,
        serde_json::json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": false } }),
    );
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
    world.sync();
    assert_eq!(world.code(&on("a")), "NoAttachRequired");
}

// AD-1, AD-6: a node that does not leave attaching to us gets no attachment, but loses none either.
#[test]
fn an_unmanaged_node_is_left_alone() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.create(Kind::Node, serde_json::json!({ "metadata": { "name": "c" } }));
    world.pod("p", "c");
    assert!(world.run(&on("c")).is_empty());
    assert_eq!(world.code(&on("c")), "NodeNotManaged");
}

// Reliability 35: nothing before every kind is in the cache.
#[test]
fn an_unfilled_cache_decides_nothing() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    for missing in AttachDetach::watches() {
        world.cache = control::Cache::default();
        AttachDetach::watches().iter().filter(|kind| *kind != missing).for_each(|kind| world.sync_kind(*kind));
        assert!(matches!(world.decide(&on("a")), Decision::Rest(_)), "{missing} was not awaited");
        assert_eq!(world.code(&on("a")), "CacheNotSynced");
    }
}

// AD-49: without the volume nobody knows its handle; the attachment is left and the reason told.
#[test]
fn a_missing_volume_is_told() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.patch(Kind::PersistentVolume, "v", serde_json::json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "v");
    assert!(world.json(Kind::PersistentVolume, "v").is_null());
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "VolumeMissing");
}
