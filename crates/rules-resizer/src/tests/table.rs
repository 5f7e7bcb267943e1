//! Every row of the state machine (sidecars 4.4), for every combination of what it looks at.

use crate::decide::target::{ResizeTarget, target};
use crate::{Expansion, ResizeProgress, Sizes};

const S: i64 = 10;
const A: Option<i64> = Some(7);

fn at(volume: i64, allocated: Option<i64>, progress: ResizeProgress) -> ResizeTarget {
    go(volume, allocated, progress, Expansion::Controller, false, false)
}

fn go(
    volume: i64,
    allocated: Option<i64>,
    progress: ResizeProgress,
    by: Expansion,
    refused: bool,
    pending: bool,
) -> ResizeTarget {
    target(&Sizes { requested: S, volume, had: 1, allocated }, progress, by, refused, pending)
}

#[test]
fn r1_small_volume_node_infeasible_goes_for_what_was_begun() {
    assert_eq!(at(5, A, ResizeProgress::NodeInfeasible), ResizeTarget::Size(7));
    assert_eq!(at(7, A, ResizeProgress::NodeInfeasible), ResizeTarget::Size(7));
    assert_eq!(at(5, None, ResizeProgress::NodeInfeasible), ResizeTarget::Size(S));
}

#[test]
fn r2_small_volume_nodes_turn_unless_the_volume_lags_behind() {
    for progress in [ResizeProgress::NodePending, ResizeProgress::NodeInProgress] {
        assert_eq!(at(7, A, progress), ResizeTarget::NodesTurn);
        assert_eq!(at(5, A, progress), ResizeTarget::Size(7));
        assert_eq!(at(5, None, progress), ResizeTarget::Size(S));
    }
}

#[test]
fn r3_small_volume_in_progress_goes_on_unless_it_was_refused() {
    assert_eq!(at(5, A, ResizeProgress::ControllerInProgress), ResizeTarget::Size(7));
    assert_eq!(at(5, None, ResizeProgress::ControllerInProgress), ResizeTarget::Size(S));
    let refused = go(5, A, ResizeProgress::ControllerInProgress, Expansion::Controller, true, false);
    assert_eq!(refused, ResizeTarget::Size(S));
}

#[test]
fn r4_small_volume_infeasible_or_nothing_begun_goes_for_the_request() {
    for progress in [ResizeProgress::ControllerInfeasible, ResizeProgress::None] {
        assert_eq!(at(5, A, progress), ResizeTarget::Size(S));
        assert_eq!(at(5, None, progress), ResizeTarget::Size(S));
    }
}

#[test]
fn r5_large_volume_nodes_turn() {
    for progress in [ResizeProgress::NodePending, ResizeProgress::NodeInProgress] {
        for allocated in [A, None] {
            assert_eq!(at(S, allocated, progress), ResizeTarget::NodesTurn);
        }
    }
}

#[test]
fn r6_large_volume_node_infeasible_depends_on_who_expands() {
    assert_eq!(at(S, Some(12), ResizeProgress::NodeInfeasible), ResizeTarget::Size(12));
    assert_eq!(at(S, None, ResizeProgress::NodeInfeasible), ResizeTarget::Size(S));
    let node_only = go(S, Some(12), ResizeProgress::NodeInfeasible, Expansion::NodeOnly, false, false);
    assert_eq!(node_only, ResizeTarget::Size(S));
}

#[test]
fn r7_large_volume_controllers_turn_goes_for_what_was_begun() {
    for progress in [ResizeProgress::ControllerInProgress, ResizeProgress::ControllerInfeasible] {
        assert_eq!(at(S, Some(12), progress), ResizeTarget::Size(12));
        assert_eq!(at(S, None, progress), ResizeTarget::Size(S));
    }
}

#[test]
fn r8_large_volume_nothing_begun() {
    assert_eq!(at(S, Some(12), ResizeProgress::None), ResizeTarget::Size(12));
    assert_eq!(at(S, None, ResizeProgress::None), ResizeTarget::Size(S));
    let pending = go(S, None, ResizeProgress::None, Expansion::Controller, false, true);
    assert_eq!(pending, ResizeTarget::NodesTurn);
}
