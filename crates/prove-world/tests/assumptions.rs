//! What no rules can survive, shown: the histories that break a law when a driver does what the explorer takes for granted
//! that it does not. If one of these stops failing, the assumption is no longer needed and the worlds can do without it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use prove_world::worlds::{attach, provision};
use prove_world::{Bounds, Budget, Law, Scenario, explore};

fn breaks(scenario: &Scenario, budget: Budget, law: Law) {
    let report = explore(scenario, &Bounds::of(budget));
    println!("{report}");
    let found = report.broken.as_ref().expect("no rules survive this");
    assert_eq!(found.violation.law(), law, "{report}");
}

// A driver carries out a DeleteVolume before a CreateVolume that it took in earlier: the volume is made after the driver
// said that it is gone, and nothing tells that it exists.
#[test]
fn a_driver_that_makes_a_volume_after_it_deleted_it_leaks_it() {
    let budget = Budget { faults: 1, late: 1, reordered: 2, ..Budget::calm(1) };
    breaks(&provision::SCENARIO, budget, Law::Accounted);
}

// The same with ControllerUnpublishVolume and ControllerPublishVolume: the volume is attached after the driver said that it
// is not.
#[test]
fn a_driver_that_attaches_a_volume_after_it_detached_it_keeps_it_attached() {
    let budget = Budget { faults: 1, late: 1, reordered: 2, ..Budget::calm(1) };
    breaks(&attach::SCENARIO, budget, Law::FinalizerAfterDetach);
}

// CreateVolume makes the volume, its answer is lost, and the same request is then called impossible (a full disk, a source
// that is gone): the rules take a refusal that is about the request for certain, because an intent that nothing can serve
// would otherwise stay for ever.
#[test]
fn a_driver_that_calls_impossible_what_it_has_made_leaks_it() {
    let budget = Budget { faults: 1, lost: 1, lies: 1, ..Budget::calm(1) };
    breaks(&provision::SCENARIO, budget, Law::Accounted);
}

// CreateVolume makes the volume and is answered with a final code: CSI has no way to say so, and the intent goes.
#[test]
fn a_driver_that_refuses_what_it_has_made_leaks_it() {
    breaks(&provision::SCENARIO, Budget { lies: 1, ..Budget::calm(1) }, Law::Accounted);
}
