//! Known leaks and races of the Go programs (reliability 6), each twice in the same world under the same trouble: found
//! with their protocol, absent with ours.

use crate::wrong::{ForgetsDetaching, Led, LetsGoEarly, NeverHolds, NodeMustExist, Unguarded};
use api::{Kind, ObjectRef, Precondition, Write};
use prove_world::world::{UserMove, World};
use prove_world::worlds::{attach, copy, node_lost, provision};
use prove_world::{Bounds, Budget, Report, Scenario, Seat, explore, laws};
use rules_attachdetach::AttachDetach;
use rules_provisioner::{Intent, Local, Provisioner, Settings};

/// Theirs breaks the law; ours keeps every law under the same trouble.
fn found_and_gone(theirs: &Scenario, ours: &Scenario, budget: Budget, law: &str) -> Report {
    let report = explore(theirs, &Bounds::of(budget));
    println!("{report}");
    let found = report.broken.as_ref().expect("their protocol breaks it");
    assert_eq!(found.broken.law, law);
    let holds = explore(ours, &Bounds::of(budget));
    println!("{holds}");
    assert!(holds.holds() && holds.resting > 0, "{holds}");
    report
}

/// Upstream's protocol: nothing is written down before the volume is made.
fn upstream() -> World {
    provision::start::<Provisioner>(Seat {
        build: |_, _| {
            let settings = Settings { intent: Intent::InMemory, ..Settings::default() };
            Local { settings: settings.into(), ..provision::local() }
        },
        refresh: |_, _, _| false,
        digest: provision::lately,
    })
}

/// Looking past the first symptom, which is that no intent is recorded.
const TO_THE_END: &[&str] = &[laws::INTENT_FIRST, laws::ACCOUNTED, laws::FOR_A_CLAIM];

fn theirs(waives: &'static [&'static str]) -> Scenario {
    Scenario { name: "provision, upstream's protocol", start: upstream, waives, ..provision::SCENARIO }
}

fn says_left(report: &Report) {
    let text = &report.broken.as_ref().unwrap().broken.text;
    assert!(text.contains("is left"), "{text}");
}

// Reliability 6 in 7: the first symptom of all of the next three.
#[test]
fn no_intent_is_recorded_before_the_call() {
    found_and_gone(&theirs(&[]), &provision::SCENARIO, Budget::troubled(1, 1, 0), laws::INTENT_FIRST);
}

// 1, ep#486.
#[test]
fn a_crash_between_create_volume_and_the_record() {
    let budget = Budget { faults: 1, crashes: 1, ..Budget::calm(1) };
    says_left(&found_and_gone(&theirs(TO_THE_END), &provision::SCENARIO, budget, laws::AS_ASKED));
}

// 2, ep#311 and ep#131: the call times out, the claim is deleted, and nobody remembers.
#[test]
fn a_call_that_times_out_and_a_claim_deleted_meanwhile() {
    let budget = Budget { faults: 2, late: 1, erased: 1, ..Budget::calm(1) };
    says_left(&found_and_gone(&theirs(TO_THE_END), &provision::SCENARIO, budget, laws::AS_ASKED));
}

// 3, ep#1469.
#[test]
fn a_stale_view_of_a_claim_makes_its_volume_again() {
    let budget = Budget { delays: 1, behind: 1, ..Budget::calm(1) };
    let theirs = theirs(&[laws::INTENT_FIRST, laws::ACCOUNTED]);
    found_and_gone(&theirs, &provision::SCENARIO, budget, laws::FOR_A_CLAIM);
}

// 4, ep#1449.
#[test]
fn a_source_deleted_while_it_is_copied() {
    let theirs = Scenario {
        name: "copy, letting sources go early",
        start: || {
            copy::start::<Led<LetsGoEarly>>(Seat {
                build: |_, _| copy::local(),
                refresh: |_, _, _| false,
                digest: provision::lately,
            })
        },
        ..copy::SCENARIO
    };
    let one_slow_call = Budget { faults: 1, late: 1, ..Budget::calm(1) };
    found_and_gone(&theirs, &copy::SCENARIO, one_slow_call, laws::SOURCE_STAYS);
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
fn rests_without_volumes(world: &World) -> Option<laws::Broken> {
    let leaving = world.volumes().any(|volume| volume.metadata.is_deleting());
    let claimed = world.claims().any(|claim| !claim.metadata.is_deleting());
    if leaving && claimed { None } else { provision::rest(world) }
}

// 5, ep#546.
#[test]
fn a_volume_deleted_before_its_claim() {
    let ours = Scenario { user: deletes_volumes_too, rest: rests_without_volumes, ..provision::SCENARIO };
    let theirs = Scenario {
        name: "provision, volumes not held",
        start: || {
            provision::start::<Led<NeverHolds>>(Seat {
                build: |_, _| provision::local(),
                refresh: |_, _, _| false,
                digest: provision::lately,
            })
        },
        waives: &[laws::ACCOUNTED],
        ..ours
    };
    says_left(&found_and_gone(&theirs, &ours, Budget::calm(2), laws::AS_ASKED));
}

// 13, k/k#120571, and 14, k/k#81097: the driver fails to detach, the controller restarts, the pod comes up elsewhere.
#[test]
fn a_restart_while_a_detach_is_failing() {
    let started = || -> World {
        let detach = Seat { build: |_, _| false, refresh: |_: &mut bool, _, _| false, digest: |_, _| {} };
        let attacher = Seat { build: |_, _| attach::attacher(), refresh: |_, _, _| false, digest: |_, _| {} };
        attach::running(attach::start_with::<Led<ForgetsDetaching>, Led<Unguarded>>(detach, attacher))
    };
    let theirs = Scenario { name: "attach, forgetting what is being detached", start: started, ..attach::SCENARIO };
    let ours = Scenario {
        start: || {
            let detach = Seat { build: |_, _| (), refresh: |(), _, _| false, digest: |(), _| {} };
            attach::running(attach::start::<AttachDetach>(detach))
        },
        ..attach::SCENARIO
    };
    let budget = Budget { faults: 2, refused: 1, crashes: 1, ..Budget::calm(1) };
    found_and_gone(&theirs, &ours, budget, laws::ONE_NODE);
}

// 17, attacher#215.
#[test]
fn a_node_deleted_while_a_volume_is_attached_to_it() {
    let theirs = Scenario {
        name: "node-lost, asking the node for its id",
        start: || {
            node_lost::start::<Led<NodeMustExist>>(Seat {
                build: |_, _| attach::attacher(),
                refresh: |_, _, _| false,
                digest: |_, _| {},
            })
        },
        ..node_lost::SCENARIO
    };
    found_and_gone(&theirs, &node_lost::SCENARIO, Budget::calm(1), laws::AS_ASKED);
}
