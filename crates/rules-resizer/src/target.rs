use crate::view::{Expansion, Progress, Sizes};

/// What a resize should come to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This size, by the driver's controller.
    Size(i64),
    /// The controller's part is done: the node goes on.
    NodesTurn,
}

/// The state machine of a resize that can be recovered from (sidecars 4.4): which size to go for, given how far an earlier
/// resize has come. The request is more than the claim has.
///
/// `refused` says that the driver's answer about the allocated size is known to be a refusal, so that nothing of that size
/// is or will be.
pub fn target(sizes: &Sizes, progress: Progress, by: Expansion, refused: bool, node_pending: bool) -> Target {
    let begun = sizes.allocated.unwrap_or(sizes.requested);
    if sizes.volume < sizes.requested {
        return match progress {
            Progress::NodeInfeasible => Target::Size(begun),
            Progress::NodePending | Progress::NodeInProgress if sizes.volume >= begun => Target::NodesTurn,
            Progress::NodePending | Progress::NodeInProgress => Target::Size(begun),
            Progress::ControllerInProgress if refused => Target::Size(sizes.requested),
            Progress::ControllerInProgress => Target::Size(begun),
            Progress::ControllerInfeasible | Progress::None => Target::Size(sizes.requested),
        };
    }
    match progress {
        Progress::NodePending | Progress::NodeInProgress => Target::NodesTurn,
        Progress::NodeInfeasible => match by {
            Expansion::Controller => Target::Size(begun),
            Expansion::NodeOnly | Expansion::None => Target::Size(sizes.requested),
        },
        Progress::ControllerInProgress | Progress::ControllerInfeasible => Target::Size(begun),
        Progress::None => match sizes.allocated {
            Some(allocated) => Target::Size(allocated),
            None if node_pending => Target::NodesTurn,
            None => Target::Size(sizes.requested),
        },
    }
}

/// The older way, which keeps no record of the size under way.
pub fn target_without_recovery(sizes: &Sizes, node_pending: bool) -> Target {
    match sizes.volume >= sizes.requested && node_pending {
        true => Target::NodesTurn,
        false => Target::Size(sizes.requested),
    }
}
