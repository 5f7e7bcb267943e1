//! What drivers say of the health of volumes: KL-105.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use api::Kind;
use control::{Action as _, Attempt, Decision, Outcome, Reply, Rules as _};
use csi::v1::VolumeHealthErrorType::{DataLoss, Degraded, UnknownVolumeHealthType};
use csi::{NodeRpc, Response, v1};

use super::world::World;
use crate::{Action, DriverFacts, Key, Node, unwell_claims};

fn said(statuses: &[(v1::VolumeHealthErrorType, &str)]) -> Outcome {
    let entry = |(status, reason): &(v1::VolumeHealthErrorType, &str)| v1::volume_health::VolumeHealthEntry {
        status: (*status).into(),
        reason: (*reason).into(),
        message: "the driver's words".into(),
    };
    let health_statuses = statuses.iter().map(entry).collect();
    let volume_health = Some(v1::VolumeHealth { volume_id: "h1".into(), health_statuses });
    Outcome::Done(Reply::Csi(Response::NodeGetVolumeHealth(v1::NodeGetVolumeHealthResponse { volume_health })))
}

/// The question that is due, answered; and what users are told of it.
fn answer(world: &mut World, got: &Outcome) -> Attempt {
    let key = World::volume_key();
    let (action, effect) = world.begin(&key).unwrap();
    let Action::AskHealth(asked) = &action else { panic!("{action:?}") };
    assert_eq!(effect, asked.effect());
    assert_eq!(action.news().failed, Some("VolumeConditionAbnormal"));
    world.finish(&key, got);
    action.attempt(got)
}

fn later(world: &mut World) {
    world.now = world.now.after_millis(60_000);
}

fn told(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::Failed(text) if text.contains("the driver's words"))
}

// KL-105: asked every minute; another kind or reason is told, the same is not; no answer changes nothing; recovery is
// told once.
#[test]
fn kl_105_what_changes_about_a_volumes_health_is_told() {
    let mut world = World::new();
    world.pod("a");
    world.settle();
    assert!(matches!(world.decide(&World::volume_key()), Decision::Rest(_)), "the driver does not tell");
    world.driver_can(|driver| driver.capabilities.extend([NodeRpc::GetVolumeHealth]));
    assert_eq!(answer(&mut world, &said(&[])), Attempt::Neutral);
    assert!(matches!(world.decide(&World::volume_key()), Decision::Wait(..)), "a minute later again");
    assert_eq!(unwell_claims(&world.cache, world.local()).into_values().collect::<Vec<_>>(), [false]);

    later(&mut world);
    assert!(told(&answer(&mut world, &said(&[(Degraded, "SlowDisk"), (UnknownVolumeHealthType, "x")]))));
    let claims = unwell_claims(&world.cache, world.local());
    let (claim, unwell) = claims.first_key_value().unwrap();
    assert_eq!((claim.to_string().as_str(), *unwell), ("ns/data", true));
    later(&mut world);
    assert!(!told(&answer(&mut world, &said(&[(Degraded, "SlowDisk")]))), "the same is not told again");
    later(&mut world);
    assert_eq!(answer(&mut world, &Outcome::Unknown("no answer".into())), Attempt::Neutral);
    assert!(unwell_claims(&world.cache, world.local()).into_values().all(|unwell| unwell), "what was said stands");
    later(&mut world);
    assert!(told(&answer(&mut world, &said(&[(DataLoss, "Gone")]))), "another kind is");

    later(&mut world);
    assert_eq!(answer(&mut world, &said(&[])), Attempt::Neutral);
    let Decision::Do(action, _) = world.decide(&World::volume_key()) else { panic!("recovery is told") };
    assert_eq!(action.news().done.unwrap().0, "VolumeConditionNormal");
    assert_eq!(world.step(&World::volume_key()), Some("NoteRecovered"));
    assert!(matches!(world.decide(&World::volume_key()), Decision::Wait(..)), "once");

    world.driver_can(|driver| *driver = DriverFacts::new([NodeRpc::StageUnstageVolume]));
    world.delete_pod("a");
    world.settle();
    assert!(world.local().health.is_empty() && world.get(Kind::Pod, "a").is_none());
    assert!(Node::keys(&world.cache, world.local()).iter().all(|key| !matches!(key, Key::Orphans)));
}

// KL-105: recovery is told once for each time that it was unwell, and not when it is unwell again by then.
#[test]
fn kl_105_a_volume_has_recovered_when_it_was_unwell_and_is_well() {
    let (ill, well) = (|| said(&[(Degraded, "SlowDisk")]), || said(&[]));
    for (what, answers, recovered) in [
        ("never asked", Vec::new(), false),
        ("well from the start", [well()].into(), false),
        ("unwell", [ill()].into(), false),
        ("well after it", [ill(), well()].into(), true),
        ("asked once more before that is told", [ill(), well(), well()].into(), true),
        ("unwell again before that is told", [ill(), well(), ill()].into(), false),
        ("no answer after it", [ill(), well(), Outcome::Unknown("no answer".into())].into(), true),
    ] {
        let (mut local, asked) = (crate::Local::default(), question(1));
        answers.iter().for_each(|got| crate::health::learn(&mut local, &asked, got));
        assert_eq!(local.recovered.contains("/t"), recovered, "{what}");
    }
}

fn question(at_millis: u64) -> crate::AskHealth {
    let there = crate::action::There { driver: "d".into(), handle: "h".into(), path: "/t".into() };
    crate::AskHealth { there, staging: None, before: None, at_millis }
}

// KL-105: it is asked every minute, whatever the answer to the last question was.
#[test]
fn kl_105_no_question_is_held_back_by_one_before_it() {
    let (first, second) = (Action::AskHealth(question(1).into()), Action::AskHealth(question(2).into()));
    assert_ne!(first.lane().subject, second.lane().subject);
    assert!(!first.lane().subject.is_empty() && !second.lane().subject.starts_with(&*first.lane().subject));
}
