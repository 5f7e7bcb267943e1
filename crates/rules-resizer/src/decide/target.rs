use crate::view::{Expansion, ResizeProgress, Sizes};

/// What a resize should come to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeTarget {
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
pub fn target(
    sizes: &Sizes,
    progress: ResizeProgress,
    by: Expansion,
    refused: bool,
    node_pending: bool,
) -> ResizeTarget {
    let begun = sizes.allocated.unwrap_or(sizes.requested);
    if sizes.volume < sizes.requested {
        return match progress {
            ResizeProgress::NodeInfeasible => ResizeTarget::Size(begun),
            ResizeProgress::NodePending | ResizeProgress::NodeInProgress if sizes.volume >= begun => {
                ResizeTarget::NodesTurn
            }
            ResizeProgress::NodePending | ResizeProgress::NodeInProgress => ResizeTarget::Size(begun),
            ResizeProgress::ControllerInProgress if refused => ResizeTarget::Size(sizes.requested),
            ResizeProgress::ControllerInProgress => ResizeTarget::Size(begun),
            ResizeProgress::ControllerInfeasible | ResizeProgress::None => ResizeTarget::Size(sizes.requested),
        };
    }
    match progress {
        ResizeProgress::NodePending | ResizeProgress::NodeInProgress => ResizeTarget::NodesTurn,
        ResizeProgress::NodeInfeasible => match by {
            Expansion::Controller => ResizeTarget::Size(begun),
            Expansion::NodeOnly | Expansion::None => ResizeTarget::Size(sizes.requested),
        },
        ResizeProgress::ControllerInProgress | ResizeProgress::ControllerInfeasible => ResizeTarget::Size(begun),
        ResizeProgress::None => match sizes.allocated {
            Some(allocated) => ResizeTarget::Size(allocated),
            None if node_pending => ResizeTarget::NodesTurn,
            None => ResizeTarget::Size(sizes.requested),
        },
    }
}

/// The older way, which keeps no record of the size under way.
pub fn target_without_recovery(sizes: &Sizes, node_pending: bool) -> ResizeTarget {
    match sizes.volume >= sizes.requested && node_pending {
        true => ResizeTarget::NodesTurn,
        false => ResizeTarget::Size(sizes.requested),
    }
}
