use control::{Action, Decision, Effect, Outcome, Refusal};
use csi::Code;

use super::world::*;
use crate::{Act, Key, Memory};

fn act(world: &World, key: &Key) -> Act {
    match world.look(key) {
        Decision::Do(act, _) => act,
        other => panic!("{other:?}"),
    }
}

fn until(world: &mut World, key: &Key, name: &str) -> Act {
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
    assert!(matches!(world.look(&on("a")), Decision::Wait(..)));
    assert!(world.look(&on("a")).why().text.contains("connection lost"));
    world.now += 100_000;
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
        world.now += 100_000;
        let undone = world.run(&on("a"));
        assert!(
            undone.ends_with(&["RecheckAttachment", "ControllerUnpublishVolume", "UnmarkAttachment"]),
            "{undone:?}"
        );
        assert!(world.backend.is_empty());
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
        world.now += 100_000;
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
        if let Decision::Do(Act::ReportError { code, .. }, _) = world.look(&on("a")) {
            assert_eq!(code, Some(13));
            reports += 1;
            world.step(&on("a"));
        }
        world.now += 1_000_000;
    }
    assert_eq!(reports, 1);
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
    world.memory.clear();
    assert_eq!(world.step(&on("a")), Some("RecheckAttachment"));
    assert!(!matches!(world.look(&on("a")), Decision::Do(..)));
    assert!(world.backend.contains("id-a"));
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
    assert!(world.backend.contains("id-b"));
}

#[test]
fn a_shared_volume_is_published_everywhere() {
    let mut world = World::new(&["ReadWriteMany"]);
    world.want("a");
    world.want("b");
    world.run(&on("a"));
    world.run(&on("b"));
    assert_eq!(world.backend.len(), 2);
}

// Both carry the finalizer, as happens when marks are long on their way: one of them gives way, and comes later.
#[test]
fn of_two_marked_attachments_one_gives_way() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.want("b");
    let first = until(&mut world, &on("a"), "MarkAttachment");
    let second = until(&mut world, &on("b"), "MarkAttachment");
    for (key, act) in [(on("a"), first), (on("b"), second)] {
        let outcome = world.land(&act);
        world.hear(&key, &act, &outcome);
    }
    let (winner, loser) = if attachment_name("a") < attachment_name("b") { ("a", "b") } else { ("b", "a") };
    world.sync();
    assert_eq!(world.code(&on(winner)), "AttachedElsewhere");
    assert_eq!(
        world.run(&on(loser)),
        ["GiveWay", "RecheckAttachment", "ControllerUnpublishVolume", "UnmarkAttachment"]
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
            while matches!(world.look(&on("a")), Decision::Do(..)) {
                if steps == forget_at {
                    world.memory.insert(on("a"), Memory::default());
                }
                steps += 1;
                world.step(&on("a"));
                world.sync();
            }
            assert_eq!(world.real_attachment("a").is_some_and(|attachment| attachment.status.attached), wanted);
        }
        assert!(world.backend.is_empty() && steps < 12);
    }
}

// Every write carries uid and version of what was seen.
#[test]
fn every_write_carries_its_precondition() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.sync();
    let mut writes = 0;
    while let Decision::Do(act, _) = world.look(&on("a")) {
        if let Effect::Write(api::Write::Patch { patch: api::Patch::Merge(body), .. }) = act.effect() {
            assert!(body["metadata"]["uid"].is_string() && body["metadata"]["resourceVersion"].is_string(), "{act:?}");
            writes += 1;
        }
        world.step(&on("a"));
        world.sync();
    }
    assert_eq!(writes, 3);
}
