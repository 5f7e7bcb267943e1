//! The store under two writers.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use prove_world::{Bounds, Budget, run};

// Reliability 85, 86, 99.
#[test]
fn the_store_keeps_its_laws_under_two_stale_writers() {
    let report = run("store", Some(Bounds::of(Budget::troubled(2, 2, 2)))).unwrap();
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[test]
fn small() {
    for (u, f, d) in [(0, 0, 0), (1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1), (2, 1, 1)] {
        let report = run("store", Some(Bounds { budget: Budget::troubled(u, f, d), states: 200_000 })).unwrap();
        println!("{report}");
    }
}
