//! What is told on attachments (S0-40, S0-45).

use alloc::format;
use alloc::string::String;

use api::Kind;
use control::{Action as _, Decision, EventType, Narrate, Outcome, Refusal, Rules, Timestamp};
use csi::Code;
use serde_json::json;

use super::world::*;
use crate::{Action, Attacher, Key, Memory};

/// The next action of this name; those before it are done.
fn until(world: &mut World, name: &str) -> Action {
    for _ in 0..10 {
        world.sync();
        let Decision::Do(action, _) = world.decide(&on("a")) else { panic!("{:?}", world.decide(&on("a"))) };
        if action.name() == name {
            return action;
        }
        world.step(&on("a"));
    }
    panic!("{name} does not come")
}

/// The event of an attachment that rests.
fn told(world: &mut World) -> String {
    world.run(&on("a"));
    world.sync();
    let local = world.engine.local();
    let view = Attacher::view(&on("a"), &world.cache, local);
    let decision = Attacher::decide(Timestamp(0), &view, &Memory::default());
    let targets = Attacher::event_targets(&on("a"), &world.cache, local);
    assert!(targets.iter().all(|target| target.kind == Kind::VolumeAttachment), "{targets:?}");
    match Attacher::rest_event(&on("a"), decision.why()) {
        Some((EventType::Warning, reason)) => format!("{reason}: {}", decision.why().text),
        other => format!("{other:?}"),
    }
}

fn refused(code: Code) -> Outcome {
    Outcome::Refused(Refusal::Driver(code, "no".into()))
}

// S0-40, S0-45: each way has its own reason, and the event is about the attachment.
#[test]
fn a_refusal_is_told_by_what_was_tried() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let publish = until(&mut world, "ControllerPublishVolume");
    assert_eq!(publish.news().failed, Some("FailedAttachVolume"));
    assert_eq!((publish.news().begun, publish.news().done), (None, None), "what goes well is told to the pods");
    assert_eq!(Attacher::object(&on("a")).kind, Kind::VolumeAttachment);
    world.run(&on("a"));
    world.unwant("a");
    let unpublish = until(&mut world, "ControllerUnpublishVolume");
    assert_eq!(unpublish.news().failed, Some("FailedDetachVolume"));
}

// S0-45: `detachError` tells of a detach that was tried, and a driver that refuses to attach is asked to detach at
// once.
#[test]
fn what_kept_a_volume_from_being_attached_is_no_error_of_detaching() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let publish = until(&mut world, "ControllerPublishVolume");
    world.hear(&on("a"), &publish, &refused(Code::InvalidArgument));
    world.unwant("a");
    let undone = ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"];
    assert_eq!(world.run(&on("a")), undone, "no report, and no pause");
    assert!(world.real_attachment("a").is_none());
}

// The other way round: a failure of the detach is told there, and waits for the next attempt.
#[test]
fn a_failed_detach_is_told_and_tried_again_later() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    let unpublish = until(&mut world, "ControllerUnpublishVolume");
    world.hear(&on("a"), &unpublish, &refused(Code::Internal));
    assert_eq!(world.run(&on("a")), ["ReportDetachError"]);
    let status = world.real_attachment("a").unwrap().status;
    assert!(status.attached && status.attach_error.is_none() && status.detach_error.is_some());
    assert!(matches!(world.decide(&on("a")), Decision::Wait(..)));
}

// S0-40: what somebody has to mend is told, on the way there and on the way back.
#[test]
fn obstacles_are_told() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.delete(Kind::CSINode, "a");
    world.want("a");
    assert_eq!(told(&mut world), "FailedAttachVolume: waiting for the driver to be registered on node a");
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "v");
    world.unwant("a");
    let gone = "FailedDetachVolume: volume v does not exist, so the driver's name for it is not known";
    assert_eq!(told(&mut world), gone);
    // What rests and is well, and what is no attachment, is nobody's business.
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    assert_eq!(told(&mut world), "None");
    let missing = control::Why::waiting(crate::Reason::VolumeMissing, "");
    assert_eq!(Attacher::rest_event(&Key::Volume("v".into()), &missing), None);
}
