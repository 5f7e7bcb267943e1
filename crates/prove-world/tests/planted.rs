//! Wrong rules, planted on purpose. The explorer must refute each of them, with the shortest history there is.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod wrong;

use prove_world::worlds::{attach, provision};
use prove_world::{Bounds, Budget, Report, Scenario, Seat, explore, laws};
use rules_provisioner::{Intent, Local, Provisioner, Settings};
use wrong::{CachedInUse, FreshReadOnly};

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
        start: || attach::start_reported::<CachedInUse>(detach_seat()),
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

/// The real rules under the setting that restores upstream's protocol.
fn upstream() -> Local {
    let settings = Settings { intent: Intent::InMemory, ..Settings::default() };
    Local { settings: settings.into(), ..provision::local() }
}

fn provisioner_seat() -> Seat<Provisioner> {
    Seat { build: |_, _| upstream(), refresh: |_, _, _| false, digest: |_, _| {} }
}

// Reliability 6: the first symptom.
#[test]
fn an_intent_kept_only_in_memory_is_refuted() {
    let scenario = Scenario {
        name: "provision, upstream's protocol",
        start: || provision::start::<Provisioner>(provisioner_seat()),
        ..provision::SCENARIO
    };
    refuted(&scenario, Budget::troubled(1, 1, 0), laws::INTENT_FIRST);
}

// Reliability 1 and 2: what it leads to, looking past the first symptom.
#[test]
fn an_intent_kept_only_in_memory_leaks_a_volume() {
    let scenario = Scenario {
        name: "provision, upstream's protocol, to the end",
        start: || provision::start::<Provisioner>(provisioner_seat()),
        waives: &[laws::INTENT_FIRST, laws::ACCOUNTED],
        ..provision::SCENARIO
    };
    let report = refuted(&scenario, Budget::troubled(1, 1, 0), laws::AS_ASKED);
    assert!(report.broken.unwrap().broken.text.contains("is left"));
}
