//! Drivers whose volumes need no attachment, and drivers that change their mind (S2-1 to S2-14, the controller's half).

use alloc::vec::Vec;

use api::Kind;
use control::Rules;
use serde_json::json;

use super::world::*;
use crate::AttachDetach;

/// The driver's object as it should be from now on.
fn driver(world: &mut World, attach_required: Option<bool>) {
    if !world.json(Kind::CSIDriver, DRIVER).is_null() {
        world.delete(Kind::CSIDriver, DRIVER);
    }
    if let Some(required) = attach_required {
        let spec = json!({ "attachRequired": required });
        world.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": spec }));
    }
    world.sync();
}

/// A pod's volume is attached, reported and in use.
fn in_use() -> World {
    let mut world = World::attached();
    world.in_use("a", true);
    world.sync();
    world
}

// S2-4, S2-5, S2-11, S2-12: the table, row by row. Not attachable means no attachment, and no report, as upstream does
// today.
#[test]
fn the_object_decides_whether_a_volume_is_attached() {
    for (object, attached) in [(None, true), (Some(true), true), (Some(false), false)] {
        let mut world = World::new(&["ReadWriteOnce"]);
        driver(&mut world, object);
        world.pod("p", "a");
        let expected: &[&str] = if attached { &["CreateAttachment"] } else { &[] };
        assert_eq!(world.run(&on("a")), expected, "{object:?}");
        world.in_use("a", true);
        assert!(world.run(&on("a")).is_empty() && !world.reported("a"), "{object:?}");
        let code = if attached { "WaitingForAttacher" } else { "NoAttachRequired" };
        assert_eq!(world.code(&on("a")), code);
        assert_eq!(world.decide(&on("a")).why().settled, !attached);
    }
}

// S2-1: two nodes at once, whatever the access mode: there is nothing that could be attached twice.
#[test]
fn what_is_not_attached_has_no_rival() {
    let mut world = World::new(&["ReadWriteOnce"]);
    driver(&mut world, Some(false));
    for (pod, node) in [("p", "a"), ("q", "b")] {
        world.pod(pod, node);
        world.in_use(node, true);
    }
    for node in ["a", "b"] {
        assert!(world.run(&on(node)).is_empty());
        assert_eq!(world.code(&on(node)), "NoAttachRequired");
    }
}

// S2-7: with the object there before the pod there is never an attachment; the other way round there is one, which goes
// as soon as the object is there. S2-13: no switch stands between the object and what is done.
#[test]
fn s2_7_an_object_that_is_there_before_the_pod_spares_the_attachment() {
    for (first, done) in [(true, &[][..]), (false, &["CreateAttachment", "FenceNode", "DeleteAttachment"])] {
        let mut world = World::new(&["ReadWriteOnce"]);
        if first {
            driver(&mut world, Some(false));
        }
        world.pod("p", "a");
        let mut did = world.run(&on("a"));
        if !first {
            driver(&mut world, Some(false));
        }
        did.extend(world.run(&on("a")));
        assert_eq!(did, done, "the object comes first: {first}");
        assert_eq!(world.code(&on("a")), "NoAttachRequired");
    }
}

// S2-6, S2-9, S2-14: the object comes late. The attachment that was waited for goes, but not from under a pod that
// uses it.
#[test]
fn an_object_that_comes_late_takes_the_attachment_away_once_the_node_lets_go() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    driver(&mut world, Some(false));
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"], "it was never attached");
    let mut world = in_use();
    driver(&mut world, Some(false));
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUse");
    assert!(world.reported("a"), "what the node was told stays true");
    world.in_use("a", false);
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    world.release("a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "NoAttachRequired");
}

// S2-10, S2-14: the object goes, or says otherwise, while the volume is mounted without an attachment. It is attached,
// and until the attacher has said so, nothing is reported and nothing torn off.
#[test]
fn a_mounted_volume_that_must_be_attached_after_all_is_attached() {
    for object in [None, Some(true)] {
        let mut world = World::new(&["ReadWriteOnce"]);
        driver(&mut world, Some(false));
        world.pod("p", "a");
        world.in_use("a", true);
        assert!(world.run(&on("a")).is_empty());
        driver(&mut world, object);
        assert_eq!(world.run(&on("a")), ["CreateAttachment"], "{object:?}");
        world.attach("a");
        assert_eq!(world.run(&on("a")), ["ReportAttached"], "{object:?}");
        world.delete(Kind::Pod, "p");
        assert!(world.run(&on("a")).is_empty(), "in use is in use");
        world.in_use("a", false);
        assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    }
}

// S2-10: and another node that holds it mounted all the same is waited for.
#[test]
fn a_volume_mounted_elsewhere_is_not_attached_here() {
    let mut world = World::new(&["ReadWriteOnce"]);
    driver(&mut world, Some(false));
    world.pod("p", "b");
    world.in_use("b", true);
    let running = json!([{ "name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": { "running": {} } }]);
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Running", "containerStatuses": running }));
    world.pod("q", "a");
    driver(&mut world, None);
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUseElsewhere");
    assert_eq!(world.run(&on("b")), ["CreateAttachment"]);
}

// S2-10: a driver that is attachable before and after is not touched by its object coming and going.
#[test]
fn attachable_drivers_do_not_notice_their_object() {
    let mut world = in_use();
    for object in [Some(true), None, Some(true)] {
        driver(&mut world, object);
        assert!(world.run(&on("a")).is_empty());
        assert_eq!(world.code(&on("a")), "Attached");
    }
}

// S2-2, S2-3, S2-8: the objects are watched from the start, and each change is looked at.
#[test]
fn drivers_are_watched() {
    assert!(AttachDetach::watches().contains(&Kind::CSIDriver));
    let mut world = in_use();
    driver(&mut world, Some(false));
    let object = world.object(&api::ObjectRef::cluster(Kind::CSIDriver, DRIVER));
    let woken: Vec<_> =
        AttachDetach::wakes(&control::Change { before: None, after: object }, &world.cache, &Default::default());
    assert_eq!(woken, [on("a")]);
}
