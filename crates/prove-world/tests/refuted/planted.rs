//! Wrong rules, planted on purpose. The explorer must refute each of them, with the shortest history there is.

use crate::wrong::{CachedInUse, FreshReadOnly, Led, NodeIsSwift, Trusting, UnknownIsNo};
use prove_world::worlds::{attach, provision, resize};
use prove_world::{Bounds, Budget, Report, Scenario, Seat, explore, laws};

fn refuted(scenario: &Scenario, budget: Budget, law: &str) -> Report {
    let report = explore(scenario, &Bounds::of(budget));
    println!("{report}");
    let found = report.broken.as_ref().expect("the wrong rule is refuted");
    assert_eq!(found.broken.law, law);
    assert!(!found.script.is_empty());
    report
}

fn detach_seat<R: control::Rules<Local = ()>>() -> Seat<R> {
    Seat { build: |_, _| (), refresh: |(), _, _| false, digest: |(), _| {} }
}

// Reliability 28: a cached report is never enough.
#[test]
fn detaching_on_a_cached_in_use_report_is_refuted() {
    let scenario = Scenario {
        name: "attach, detaching on a cached report",
        start: || attach::start_reported::<Led<CachedInUse>>(detach_seat()),
        ..attach::SCENARIO
    };
    let one_slow_watch = Budget { delays: 1, behind: 1, ..Budget::calm(1) };
    refuted(&scenario, one_slow_watch, laws::NO_DETACH_WHILE_MOUNTED);
}

// Reliability 28: nor is a fresh read, unless the report was taken back before it.
#[test]
fn reading_in_use_fresh_without_taking_the_report_back_is_refuted() {
    let scenario = Scenario {
        name: "attach, reading fresh without taking the report back",
        start: || attach::start_reported::<FreshReadOnly>(detach_seat()),
        ..attach::SCENARIO
    };
    // The agent does not hear of the pod's deletion in time, and the detach is decided before its report arrives.
    let budget = Budget { delays: 2, behind: 1, held: 1, ..Budget::calm(1) };
    refuted(&scenario, budget, laws::NO_DETACH_WHILE_MOUNTED);
}

fn resizer_seat<R: control::Rules<Local = rules_resizer::Local>>() -> Seat<R> {
    Seat { build: |_, _| resize::local(), refresh: |_, _, _| false, digest: |_, _| {} }
}

// Reliability 57, 58: what may have happened is not undone by asking for less.
#[test]
fn taking_an_unknown_answer_for_a_no_is_refuted() {
    let scenario = Scenario {
        name: "resize, taking unknown for no",
        start: || resize::start::<Led<UnknownIsNo>>(resizer_seat()),
        user: |world| resize::user(world).into_iter().filter(|one| one.label.ends_with('i')).collect(),
        ..resize::SCENARIO
    };
    let one_late_call = Budget { faults: 1, late: 1, ..Budget::calm(2) };
    refuted(&scenario, one_late_call, laws::SIZE_ON_RECORD);
}

// Reliability 56.
#[test]
fn telling_a_size_before_the_filesystem_has_it_is_refuted() {
    let scenario = Scenario {
        name: "resize, not waiting for the node",
        start: || resize::start::<Led<NodeIsSwift>>(resizer_seat()),
        ..resize::SCENARIO
    };
    refuted(&scenario, Budget::calm(1), laws::NODE_FIRST);
}

// Reliability 1, 6: an entry found in the journal is given a new name before anything relies on it.
#[test]
fn relying_on_an_entry_that_an_earlier_note_may_still_take_away_is_refuted() {
    let scenario = Scenario {
        name: "provision, trusting what is found",
        start: || {
            provision::start::<Led<Trusting>>(Seat {
                build: |_, _| provision::local(),
                refresh: |_, _, _| false,
                digest: provision::lately,
            })
        },
        ..provision::SCENARIO
    };
    // The first call is refused, the claim deleted, and the note that forgets it is still on its way when a new life asks
    // the driver again what it may have made.
    let budget = Budget { faults: 3, refused: 1, late: 1, crashes: 1, ..Budget::calm(1) };
    refuted(&scenario, budget, laws::ACCOUNTED);
    let ours = explore(&provision::SCENARIO, &Bounds::of(budget));
    assert!(ours.holds() && ours.resting > 0, "{ours}");
}
