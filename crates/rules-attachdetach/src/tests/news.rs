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
    let decision =
        AttachDetach::decide(Timestamp(0), &AttachDetach::view(&on(node), &world.cache, &()), &Memory::default());
    let why = decision.why();
    let targets = AttachDetach::event_targets(&on(node), &world.cache, &());
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
    assert_eq!(told(&mut world, "a"), "- v on a is attached and reported to the node");
}

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
