//! What users see on a pod whose volume does not come.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::Kind;
use control::{Action as _, EventType, Narrate, Rules, Timestamp};
use serde_json::json;

use super::world::*;
use crate::{AttachDetach, Memory, Reason};

/// The event while the volume waits to come to the node, and on whom.
fn told(world: &mut World, node: &str) -> String {
    world.run(&on(node));
    world.sync();
    let decision = AttachDetach::decide(
        Timestamp(0),
        &AttachDetach::view(&on(node), &world.cache, &Default::default()),
        &Memory::default(),
    );
    let why = decision.why();
    let targets = AttachDetach::event_targets(&on(node), &world.cache, &Default::default());
    let targets: Vec<String> = targets.iter().map(|target| format!("{} {}", target.kind.name(), target.key)).collect();
    match AttachDetach::rest_event(&on(node), why) {
        None => format!("- {}", why.text),
        Some((EventType::Normal, reason)) => format!("Normal {reason} on {}: {}", targets.join(", "), why.text),
        Some((EventType::Warning, reason)) => format!("Warning {reason} on {}: {}", targets.join(", "), why.text),
    }
}

#[test]
fn pods_are_told_what_the_driver_says_and_that_there_is_none() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.pod("q", "a");
    world.sync();
    let missing = format!(
        "Warning FailedAttachVolume on Pod n/p, Pod n/q: waiting for driver {DRIVER} to attach volume v to node a; \
         there is no CSIDriver {DRIVER}: is the driver installed?"
    );
    assert_eq!(told(&mut world, "a"), missing);
    let error = json!({ "attachError": { "message": "there is no such volume" } });
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), error);
    world.sync();
    let said = told(&mut world, "a");
    assert!(said.starts_with("Warning FailedAttachVolume on Pod n/p, Pod n/q: "), "{said}");
    assert!(said.ends_with(": there is no such volume"), "{said}");
    world.attach("a");
    world.sync();
    // AD-31: that it has come is told on every pod, once: nothing is reported twice.
    let (report, _) = world.begin(&on("a")).unwrap();
    let said = Some(("SuccessfulAttachVolume", "volume v is attached to node a".into()));
    assert_eq!((report.news().done, report.news().begun), (said, None));
    let outcome = world.land(&report);
    world.hear(&on("a"), &report, &outcome);
    assert_eq!(told(&mut world, "a"), "- v on a is attached and reported to the node");
    assert!(world.run(&on("a")).is_empty());
}

// AD-40: a driver that does not detach is told of on the volume, and on the pod that waits for it elsewhere.
#[test]
fn a_failing_detach_is_told_where_somebody_waits() {
    let mut world = World::attached();
    world.delete(Kind::Pod, "p");
    world.run(&on("a"));
    let error = json!({ "detachError": { "message": "busy" } });
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), error);
    world.pod("q", "b");
    world.sync();
    let name = attachment_name("a");
    let here = format!(
        "Warning FailedDetachVolume on PersistentVolume v: waiting for driver {DRIVER} to detach volume v from node a \
         ({name}): busy"
    );
    assert_eq!(told(&mut world, "a"), here);
    let there = "Warning FailedAttachVolume on Pod n/q: volume v may be on one node only and is not detached from node \
                 a: busy";
    assert_eq!(told(&mut world, "b"), there);
}

// AD-26, AD-27. All pods of a claim are in its namespace, so that none has to be counted instead of named.
#[test]
fn a_pod_that_waits_for_another_node_is_told_which_pods_hold_its_volume() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("holder", "a");
    world.sync();
    world.run(&on("a"));
    world.pod("waiting", "b");
    world.sync();
    let said = "Warning FailedAttachVolume on Pod n/waiting: volume v may be on one node only \
                and has an attachment to node a for these pods: n/holder";
    assert_eq!(told(&mut world, "b"), said);
    world.delete(Kind::Pod, "holder");
    world.sync();
    let said = told(&mut world, "b");
    // Nobody uses it there any more, and it is waited for.
    assert!(said.ends_with("has an attachment to node a"), "{said}");
}

// What is nobody's wait is nobody's news, and drivers are given some seconds.
#[test]
fn detaching_is_no_news_and_attaching_takes_its_time() {
    let event = |code| AttachDetach::rest_event(&on("a"), &control::Why::waiting(code, ""));
    assert_eq!((event(Reason::InUse), event(Reason::Detaching), event(Reason::NotWanted)), (None, None, None));
    let patience = |code| AttachDetach::patience(&control::Why::waiting(code, ""));
    assert!(patience(Reason::WaitingForAttacher) > patience(Reason::AttachFailing));
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.sync();
    let (action, _) = world.begin(&on("a")).unwrap();
    assert_eq!(action.news().failed.map(|reason| reason.to_string()), Some("FailedAttachVolume".into()));
}
