//! API server, controllers, node agent and driver as four processes: the same life of a volume as under `longshore
//! up`, at the same cost.
#![allow(clippy::print_stderr, reason = "a test that is not run says why")]

use std::time::Duration;

use crate::cost::{cheapest, counts_at, free_address, parse, sum, writes};
use crate::world::{World, is_root};

#[test]
fn four_processes_cost_no_more_than_one() {
    if !is_root() {
        eprintln!("not run: pods mount filesystems, and only root may");
        return;
    }
    let together = World::all_in_one("together");
    // Longer than `up` waits for the driver that it expects: one that registered must not be served twice.
    std::thread::sleep(Duration::from_millis(2500));
    let in_one = cheapest(&together, || parse(&together.api.ask("GET", "/longshore/v1/counts", "", "").unwrap()));
    drop(together);

    let (controllers, node) = (free_address(), free_address());
    let apart = World::apart("apart", &controllers, &node);
    let in_four = cheapest(&apart, || sum(&[counts_at(&controllers), counts_at(&node)]));
    eprintln!("API writes: {} in one process, {} in four", writes(&in_one), writes(&in_four));
    assert_eq!(in_four, in_one, "{}", apart.told());
}
