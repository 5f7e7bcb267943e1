use api::Kind;
use control::{Action as _, BackOff, Decision, Effect, Outcome, Refusal};
use csi::Code;

use super::world::*;
use crate::{Action, Key};

fn act(world: &World, key: &Key) -> Action {
    match world.decide(key) {
        Decision::Do(act, _) => act,
        other => panic!("{other:?}"),
    }
}

fn until(world: &mut World, key: &Key, name: &str) -> Action {
    world.sync();
    for _ in 0..10 {
        let act = act(world, key);
        if act.name() == name {
            return act;
        }
        world.step(key);
        world.sync();
    }
    panic!("{name} never comes");
}

// Reliability 34: whatever came of the first call, it is made again until the driver says yes.
#[test]
fn an_unanswered_publish_is_repeated_unchanged() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let publish = until(&mut world, &on("a"), "ControllerPublishVolume");
    world.land(&publish);
    world.hear(&on("a"), &publish, &Outcome::Unknown("connection lost".into()));
    assert_eq!(world.step(&on("a")), Some("ReportAttachError"));
    world.sync();
    assert!(!world.real_attachment("a").unwrap().status.attached);
    assert!(matches!(world.decide(&on("a")), Decision::Wait(..)));
    assert!(world.decide(&on("a")).why().text.contains("connection lost"));
    world.pass(100_000);
    assert_eq!(act(&world, &on("a")), publish);
    assert_eq!(world.run(&on("a")), ["ControllerPublishVolume", "ConfirmAttached"]);
    assert!(world.real_attachment("a").unwrap().status.attach_error.is_none());
}

// Reliability 33, 34: an attachment that may exist is always unpublished, whatever was answered before.
#[test]
fn a_deletion_after_an_unanswered_publish_unpublishes() {
    for lost in [Outcome::Unknown("lost".into()), Outcome::Refused(Refusal::Driver(Code::Internal, "no".into()))] {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.want("a");
        let publish = until(&mut world, &on("a"), "ControllerPublishVolume");
        world.land(&publish);
        world.hear(&on("a"), &publish, &lost);
        world.unwant("a");
        world.pass(100_000);
        let undone = world.run(&on("a"));
        assert!(
            undone.ends_with(&["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]),
            "{undone:?}"
        );
        assert!(world.driver.attached.is_empty());
    }
}

// Reliability 33: only a success of the driver lets the finalizer go; repetitions are the same call.
#[test]
fn the_finalizer_stays_until_the_driver_has_unpublished() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    for outcome in [
        Outcome::Unknown("deadline passed".into()),
        Outcome::Refused(Refusal::Driver(Code::Internal, "broken".into())),
        Outcome::Refused(Refusal::Driver(Code::FailedPrecondition, "busy".into())),
    ] {
        let unpublish = until(&mut world, &on("a"), "ControllerUnpublishVolume");
        world.hear(&on("a"), &unpublish, &outcome);
        assert_eq!(world.step(&on("a")), Some("ReportDetachError"));
        world.pass(100_000);
        assert_eq!(until(&mut world, &on("a"), "ControllerUnpublishVolume"), unpublish);
        assert!(world.real_attachment("a").unwrap().metadata.has_finalizer(&finalizer()));
    }
    world.run(&on("a"));
    assert!(world.real_attachment("a").is_none());
}

// The same error is told once, however often it comes.
#[test]
fn an_error_that_repeats_is_written_once() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let mut reports = 0;
    for _ in 0..5 {
        let publish = until(&mut world, &on("a"), "ControllerPublishVolume");
        world.hear(&on("a"), &publish, &Outcome::Refused(Refusal::Driver(Code::Internal, "broken".into())));
        if let Decision::Do(Action::ReportError { code, .. }, _) = world.decide(&on("a")) {
            assert_eq!(code, Some(13));
            reports += 1;
            world.step(&on("a"));
        }
        world.pass(1_000_000);
    }
    assert_eq!(reports, 1);
}

// Sidecars 1.7: the pause is the operator's. Telling of a failure is one attempt of its own: whatever becomes of it, the next
// call comes when its pause is over.
#[test]
fn a_report_that_fails_does_not_delay_the_next_attempt() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.pauses = BackOff { first: 1_000, longest: 5_000 });
    world.want("a");
    let publish = until(&mut world, &on("a"), "ControllerPublishVolume");
    world.hear(&on("a"), &publish, &Outcome::Unknown("connection lost".into()));
    world.forbidden.insert(Kind::VolumeAttachment);
    assert_eq!(world.step(&on("a")), Some("ReportAttachError"));
    let Decision::Wait(until, why) = world.decide(&on("a")) else { panic!("{:?}", world.decide(&on("a"))) };
    assert_eq!((until, why.code), (world.now.after_millis(1_000), "BackOff"));
    world.now = until;
    assert_eq!(act(&world, &on("a")), publish);
}

// Reliability 105: the attachment is read past the cache before the driver is told to detach.
#[test]
fn nothing_is_undone_on_the_word_of_an_old_cache() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    world.sync();
    let old = world.cache.clone();
    world.run(&on("a"));
    world.want("a");
    world.run(&on("a"));
    world.cache = old; // It still shows the first attachment, on its way out.
    world.forget();
    assert_eq!(world.step(&on("a")), Some("RecheckAttachment"));
    assert!(!matches!(world.decide(&on("a")), Decision::Do(..)));
    assert!(world.driver.attached.contains("id-a"));
}

// Reliability 24: not published while another attachment of the volume may be.
#[test]
fn a_single_node_volume_is_published_once() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.want("b");
    until(&mut world, &on("a"), "ControllerPublishVolume"); // Marked, not published yet.
    assert_eq!(world.code(&on("b")), "AttachedElsewhere");
    world.run(&on("a"));
    assert_eq!(world.code(&on("b")), "AttachedElsewhere");
    world.unwant("a");
    world.sync();
    assert_eq!(world.code(&on("b")), "AttachedElsewhere", "still being undone");
    world.run(&on("a"));
    world.run(&on("b"));
    assert!(world.driver.attached.contains("id-b"));
}

#[test]
fn a_shared_volume_is_published_everywhere() {
    let mut world = World::new(&["ReadWriteMany"]);
    world.want("a");
    world.want("b");
    world.run(&on("a"));
    world.run(&on("b"));
    assert_eq!(world.driver.attached.len(), 2);
}

// Both carry the finalizer, as happens when marks are long on their way: one of them gives way, and comes later.
#[test]
fn of_two_marked_attachments_one_gives_way() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.want("b");
    let first = until(&mut world, &on("a"), "AddAttachmentFinalizer");
    let second = until(&mut world, &on("b"), "AddAttachmentFinalizer");
    for (key, act) in [(on("a"), first), (on("b"), second)] {
        let outcome = world.land(&act);
        world.hear(&key, &act, &outcome);
    }
    let (winner, loser) = if attachment_name("a") < attachment_name("b") { ("a", "b") } else { ("b", "a") };
    world.sync();
    assert_eq!(world.code(&on(winner)), "AttachedElsewhere");
    assert_eq!(
        world.run(&on(loser)),
        ["GiveWay", "RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]
    );
    assert_eq!(world.code(&on(loser)), "AttachedElsewhere");
    world.run(&on(winner));
    assert!(world.real_attachment(winner).unwrap().status.attached);
    world.unwant(winner);
    world.run(&on(winner));
    world.run(&on(loser));
    assert!(world.real_attachment(loser).unwrap().status.attached);
}

// Memory is a hint: losing it before any one step costs repetitions only.
#[test]
fn forgetting_at_any_step_costs_only_repetitions() {
    for forget_at in 0..12 {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.want("a");
        let mut steps = 0;
        for wanted in [true, false] {
            if !wanted {
                world.unwant("a");
            }
            world.sync();
            while matches!(world.decide(&on("a")), Decision::Do(..)) {
                if steps == forget_at {
                    world.forget();
                }
                steps += 1;
                world.step(&on("a"));
                world.sync();
            }
            assert_eq!(world.real_attachment("a").is_some_and(|attachment| attachment.status.attached), wanted);
        }
        assert!(world.driver.attached.is_empty() && steps < 12);
    }
}

// Every write carries uid and version of what was seen.
#[test]
fn every_write_carries_its_precondition() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.sync();
    let mut writes = 0;
    while let Decision::Do(act, _) = world.decide(&on("a")) {
        if let Effect::Write(api::Write::Patch { patch: api::Patch { only_if, .. }, .. }) = act.effect() {
            assert!(only_if.uid.is_some() && only_if.resource_version.is_some(), "{act:?}");
            writes += 1;
        }
        world.step(&on("a"));
        world.sync();
    }
    assert_eq!(writes, 3);
}
