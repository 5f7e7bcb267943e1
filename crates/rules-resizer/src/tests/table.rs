//! Every row of the state machine (sidecars 4.4), for every combination of what it looks at.

use crate::target::{Target, target};
use crate::{Expansion, Progress, Sizes};

const S: i64 = 10;
const A: Option<i64> = Some(7);

fn at(volume: i64, allocated: Option<i64>, progress: Progress) -> Target {
    go(volume, allocated, progress, Expansion::Controller, false, false)
}

fn go(volume: i64, allocated: Option<i64>, progress: Progress, by: Expansion, refused: bool, pending: bool) -> Target {
    target(&Sizes { requested: S, volume, had: 1, allocated }, progress, by, refused, pending)
}

#[test]
fn r1_small_volume_node_infeasible_goes_for_what_was_begun() {
    assert_eq!(at(5, A, Progress::NodeInfeasible), Target::Size(7));
    assert_eq!(at(7, A, Progress::NodeInfeasible), Target::Size(7));
    assert_eq!(at(5, None, Progress::NodeInfeasible), Target::Size(S));
}

#[test]
fn r2_small_volume_nodes_turn_unless_the_volume_lags_behind() {
    for progress in [Progress::NodePending, Progress::NodeInProgress] {
        assert_eq!(at(7, A, progress), Target::NodesTurn);
        assert_eq!(at(5, A, progress), Target::Size(7));
        assert_eq!(at(5, None, progress), Target::Size(S));
    }
}

#[test]
fn r3_small_volume_in_progress_goes_on_unless_it_was_refused() {
    assert_eq!(at(5, A, Progress::ControllerInProgress), Target::Size(7));
    assert_eq!(at(5, None, Progress::ControllerInProgress), Target::Size(S));
    let refused = go(5, A, Progress::ControllerInProgress, Expansion::Controller, true, false);
    assert_eq!(refused, Target::Size(S));
}

#[test]
fn r4_small_volume_infeasible_or_nothing_begun_goes_for_the_request() {
    for progress in [Progress::ControllerInfeasible, Progress::None] {
        assert_eq!(at(5, A, progress), Target::Size(S));
        assert_eq!(at(5, None, progress), Target::Size(S));
    }
}

#[test]
fn r5_large_volume_nodes_turn() {
    for progress in [Progress::NodePending, Progress::NodeInProgress] {
        for allocated in [A, None] {
            assert_eq!(at(S, allocated, progress), Target::NodesTurn);
        }
    }
}

#[test]
fn r6_large_volume_node_infeasible_depends_on_who_expands() {
    assert_eq!(at(S, Some(12), Progress::NodeInfeasible), Target::Size(12));
    assert_eq!(at(S, None, Progress::NodeInfeasible), Target::Size(S));
    let node_only = go(S, Some(12), Progress::NodeInfeasible, Expansion::NodeOnly, false, false);
    assert_eq!(node_only, Target::Size(S));
}

#[test]
fn r7_large_volume_controllers_turn_goes_for_what_was_begun() {
    for progress in [Progress::ControllerInProgress, Progress::ControllerInfeasible] {
        assert_eq!(at(S, Some(12), progress), Target::Size(12));
        assert_eq!(at(S, None, progress), Target::Size(S));
    }
}

#[test]
fn r8_large_volume_nothing_begun() {
    assert_eq!(at(S, Some(12), Progress::None), Target::Size(12));
    assert_eq!(at(S, None, Progress::None), Target::Size(S));
    let pending = go(S, None, Progress::None, Expansion::Controller, false, true);
    assert_eq!(pending, Target::NodesTurn);
}
