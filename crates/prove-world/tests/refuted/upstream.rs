//! Known leaks and races of the Go programs (reliability 6), each twice in the same world under the same trouble: found
//! with their protocol, absent with ours.

use crate::page;
use crate::planted::{self, Plant};
use crate::wrong::{
    ByName, Deregisters, DetachesOnTime, DoneWhenPlaced, EmptyCache, GivesUp, GrowsAtOnce, Led, Mistaken,
    NodeMustExist, Oblivious,
};
use api::{Kind, ObjectRef, Precondition, Write};
use prove_world::world::{UserMove, World};
use prove_world::worlds::node::lost;
use prove_world::worlds::{attach, copy, growth, life, provision, register};
use prove_world::{Bounds, Budget, Law, Report, Scenario, Seat, Violation, explore};
use rules_attachdetach::AttachDetach;

/// Theirs breaks the law; ours keeps every law under the same trouble.
pub fn found_and_gone(theirs: &Scenario, ours: &Scenario, budget: Budget, law: Law) -> Report {
    let report = page::refuted(theirs, budget);
    assert_eq!(report.broken.as_ref().unwrap().violation.law(), law);
    let holds = explore(ours, &Bounds::of(budget));
    println!("{holds}");
    assert!(holds.holds() && holds.resting > 0, "{holds}");
    report
}

/// Looking past the first symptom, which is that no intent is recorded.
const TO_THE_END: &[Law] = &[Law::IntentFirst, Law::Accounted, Law::ForAClaim];

fn theirs(waives: &'static [Law]) -> Scenario {
    Scenario { name: "provision, upstream's protocol", start: planted::no_intent, waives, ..provision::SCENARIO }
}

fn says_left(report: &Report) {
    let found = &report.broken.as_ref().unwrap().violation;
    assert!(matches!(found, Violation::VolumeLeft { .. } | Violation::HandleLeft { .. }), "{found}");
}

// Reliability 6 in 7: the first symptom of all of the next three.
#[test]
fn no_intent_is_recorded_before_the_call() {
    found_and_gone(&theirs(&[]), &provision::SCENARIO, Budget::troubled(1, 1, 0), Law::IntentFirst);
}

// 1, ep#486.
#[test]
fn a_crash_between_create_volume_and_the_record() {
    let budget = Budget { faults: 1, crashes: 1, ..Budget::calm(1) };
    says_left(&found_and_gone(&theirs(TO_THE_END), &provision::SCENARIO, budget, Law::AsAsked));
}

// 2, ep#311 and ep#131: the call times out, the claim is deleted, and nobody remembers.
#[test]
fn a_call_that_times_out_and_a_claim_deleted_meanwhile() {
    let budget = Budget { faults: 2, late: 1, erased: 1, ..Budget::calm(1) };
    says_left(&found_and_gone(&theirs(TO_THE_END), &provision::SCENARIO, budget, Law::AsAsked));
}

// 3, ep#1469.
#[test]
fn a_stale_view_of_a_claim_makes_its_volume_again() {
    let Plant { scenario, budget } = planted::without_intent_on_a_slow_watch();
    found_and_gone(&scenario, &provision::SCENARIO, budget, Law::ForAClaim);
}

// 4, ep#1449.
#[test]
fn a_source_deleted_while_it_is_copied() {
    let Plant { scenario, budget } = planted::letting_sources_go_early();
    found_and_gone(&scenario, &copy::SCENARIO, budget, Law::SourceStays);
}

/// The user deletes the volume's object as well, before or after the claim.
fn deletes_volumes_too(world: &World) -> Vec<UserMove> {
    let mut moves = provision::user(world);
    moves.extend(world.volumes().filter(|volume| !volume.metadata.is_deleting()).map(|volume| UserMove {
        label: format!("delete volume {}", volume.metadata.name),
        writes: vec![Write::Delete {
            target: ObjectRef { kind: Kind::PersistentVolume, key: volume.metadata.key() },
            only_if: Precondition::same(&volume.metadata),
            grace_seconds: None,
        }],
    }));
    moves
}

/// A volume whose deletion was asked for stays as long as its claim, and no longer.
fn rests_without_volumes(world: &World) -> Option<Violation> {
    let leaving = world.volumes().any(|volume| volume.metadata.is_deleting());
    let claimed = world.claims().any(|claim| !claim.metadata.is_deleting());
    if leaving && claimed { None } else { provision::rest(world) }
}

/// The world of a user who deletes both.
pub const DELETES_VOLUMES_TOO: Scenario =
    Scenario { user: deletes_volumes_too, rest: rests_without_volumes, ..provision::SCENARIO };

// 5, ep#546.
#[test]
fn a_volume_deleted_before_its_claim() {
    let Plant { scenario, budget } = planted::volumes_not_held();
    says_left(&found_and_gone(&scenario, &DELETES_VOLUMES_TOO, budget, Law::AsAsked));
}

/// Ours from the moment a pod runs.
fn running() -> Scenario {
    Scenario {
        start: || attach::running(attach::start::<AttachDetach>(Seat::fixed(|_, _| Default::default()))),
        ..attach::SCENARIO
    }
}

// 6, k/k#40887: the node's status is read before the detach, and the node mounts after that.
#[test]
fn a_detach_that_races_a_mount() {
    let Plant { scenario, budget } = planted::reading_fresh_alone();
    found_and_gone(&scenario, &attach::REPORTED, budget, Law::NoDetachWhileMounted);
}

// 12, k/k#106710: a detach by the clock, under a process that has not ended.
#[test]
fn a_detach_because_time_is_up() {
    let start = || attach::running(attach::start::<Led<DetachesOnTime>>(planted::none()));
    let theirs = Scenario { name: "attach, detaching on time", start, ..attach::SCENARIO };
    found_and_gone(&theirs, &running(), Budget::calm(1), Law::NoDetachWhileMounted);
}

// 15, k/k#117091: the controller starts anew and detaches before it knows what nodes use.
#[test]
fn a_detach_by_a_controller_that_has_just_started() {
    let start = || {
        let seat = Seat {
            build: |_, _| false,
            refresh: |_, _, _| false,
            digest: |full: &bool, mut hasher| std::hash::Hash::hash(full, &mut hasher),
        };
        attach::running(attach::start::<Led<EmptyCache>>(seat))
    };
    let theirs = Scenario { name: "attach, with an empty cache", start, ..attach::SCENARIO };
    let budget = Budget { faults: 1, crashes: 1, ..Budget::calm(1) };
    found_and_gone(&theirs, &running(), budget, Law::NoDetachWhileMounted);
}

// 22, k/k#123055 and k/k#115294: the node grows the filesystem before the volume has grown.
#[test]
fn a_filesystem_that_is_grown_before_its_volume() {
    let Plant { scenario, budget } = planted::growers::<GrowsAtOnce>("node-growth, growing at once");
    let ours = Scenario { user: planted::asks_for_a_size, ..growth::SCENARIO };
    found_and_gone(&scenario, &ours, budget, Law::ControllerFirst);
}

/// The user deletes the pod, and makes another one for the same node.
fn deletes_and_makes(world: &World) -> Vec<UserMove> {
    attach::user(world).into_iter().filter(|one| !one.label.contains(" and create ")).collect()
}

// 24, k/k#93902: a detach that was decided on before comes once more, after the volume was attached again.
#[test]
fn a_volume_detached_twice() {
    let start = || attach::running(attach::start::<Mistaken<ByName>>(planted::none()));
    let theirs = Scenario { name: "attach, detaching by name", start, user: deletes_and_makes, ..attach::SCENARIO };
    let budget = Budget { faults: 1, late: 1, ..Budget::calm(2) };
    let ours = Scenario { user: deletes_and_makes, ..running() };
    found_and_gone(&theirs, &ours, budget, Law::NoDetachWhileMounted);
}

// 25: what is known of the node's use is cached, and nothing else guards a detach.
#[test]
fn a_detach_on_what_a_cache_says() {
    let Plant { scenario, budget } = planted::detaching_on_a_cached_report();
    found_and_gone(&scenario, &attach::REPORTED, budget, Law::NoDetachWhileMounted);
}

// Found by a walk through `life`: a claim is deleted before its pod is placed, a scheduler that has not heard of it
// places the pod, the claim is made again, and nobody names a node for it. kube-scheduler is done with a pod that has
// a node.
#[test]
fn a_claim_made_again_while_its_pod_is_placed() {
    let start = || life::start_placing::<Led<DoneWhenPlaced>>(planted::none());
    let theirs = Scenario { name: "life-placing, done when placed", start, ..life::PLACING };
    let budget = Budget { delays: 1, behind: 1, ..Budget::calm(2) };
    let report = found_and_gone(&theirs, &life::PLACING, budget, Law::AsAsked);
    let found = &report.broken.as_ref().unwrap().violation;
    assert!(matches!(found, Violation::ClaimUnserved { .. }), "{found}");
}

// 13, k/k#120571, and 14, k/k#81097: the driver fails to detach, the controller restarts, the pod comes up elsewhere.
#[test]
fn a_restart_while_a_detach_is_failing() {
    let Plant { scenario, budget } = planted::forgetting_what_is_being_detached();
    found_and_gone(&scenario, &running(), budget, Law::OneNode);
}

// 17, attacher#215.
#[test]
fn a_node_deleted_while_a_volume_is_attached_to_it() {
    let theirs = Scenario {
        name: "node-lost, asking the node for its id",
        start: || lost::start::<Led<NodeMustExist>>(Seat::fixed(|_, _| attach::attacher())),
        ..lost::SCENARIO
    };
    found_and_gone(&theirs, &lost::SCENARIO, Budget::calm(1), Law::AsAsked);
}

/// The user restarts the driver whose volume is in use, and nothing else.
fn restarts(world: &World) -> Vec<UserMove> {
    register::user(world).into_iter().filter(|one| one.label == "restart driver old").collect()
}

// 18, k/k#71424: the driver's entry goes with its socket, whatever of it is mounted.
#[test]
fn a_restart_of_a_driver_that_takes_its_entry() {
    let theirs = Scenario {
        name: "register-in-use, deregistering",
        start: || register::start(true, register::seat::<Led<Deregisters>>()),
        user: restarts,
        ..register::IN_USE
    };
    let ours = Scenario { user: restarts, ..register::IN_USE };
    found_and_gone(&theirs, &ours, Budget::calm(1), Law::EntryStaysInUse);
}

fn says_not_registered(report: &Report) {
    let found = &report.broken.as_ref().unwrap().violation;
    assert!(matches!(found, Violation::NotRegistered { .. }), "{found}");
}

// 19, k/k#118317: one failed call, and the driver is never registered.
#[test]
fn a_registration_that_failed_and_is_not_tried_again() {
    let theirs = Scenario {
        name: "register, giving up",
        start: || register::start(false, register::seat::<Led<GivesUp>>()),
        ..register::SCENARIO
    };
    let budget = Budget::troubled(1, 1, 0);
    says_not_registered(&found_and_gone(&theirs, &register::SCENARIO, budget, Law::AsAsked));
}

// 21, registrar#139: the driver comes anew at the same path, and nobody notices.
#[test]
fn a_driver_made_anew_at_its_path() {
    let theirs = Scenario {
        name: "register, not noticing",
        start: || register::start(false, Oblivious::seat()),
        user: restarts,
        ..register::SCENARIO
    };
    let ours = Scenario { user: restarts, ..register::SCENARIO };
    says_not_registered(&found_and_gone(&theirs, &ours, Budget::calm(1), Law::AsAsked));
}
