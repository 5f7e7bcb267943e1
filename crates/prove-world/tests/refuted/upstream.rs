//! Known leaks and races of the Go programs (reliability 6), each twice in the same world under the same trouble: found
//! with their protocol, absent with ours.

use crate::planted::{self, Plant};
use crate::wrong::{Led, NodeMustExist};
use api::{Kind, ObjectRef, Precondition, Write};
use prove_world::world::{UserMove, World};
use prove_world::worlds::{attach, copy, node_lost, provision};
use prove_world::{Bounds, Budget, Law, Report, Scenario, Seat, Violation, explore};
use rules_attachdetach::AttachDetach;

/// Theirs breaks the law; ours keeps every law under the same trouble.
fn found_and_gone(theirs: &Scenario, ours: &Scenario, budget: Budget, law: Law) -> Report {
    let report = explore(theirs, &Bounds::of(budget));
    println!("{report}");
    let found = report.broken.as_ref().expect("their protocol breaks it");
    assert_eq!(found.violation.law(), law);
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

// 13, k/k#120571, and 14, k/k#81097: the driver fails to detach, the controller restarts, the pod comes up elsewhere.
#[test]
fn a_restart_while_a_detach_is_failing() {
    let ours = Scenario {
        start: || attach::running(attach::start::<AttachDetach>(Seat::fixed(|_, _| ()))),
        ..attach::SCENARIO
    };
    let Plant { scenario, budget } = planted::forgetting_what_is_being_detached();
    found_and_gone(&scenario, &ours, budget, Law::OneNode);
}

// 17, attacher#215.
#[test]
fn a_node_deleted_while_a_volume_is_attached_to_it() {
    let theirs = Scenario {
        name: "node-lost, asking the node for its id",
        start: || node_lost::start::<Led<NodeMustExist>>(Seat::fixed(|_, _| attach::attacher())),
        ..node_lost::SCENARIO
    };
    found_and_gone(&theirs, &node_lost::SCENARIO, Budget::calm(1), Law::AsAsked);
}
