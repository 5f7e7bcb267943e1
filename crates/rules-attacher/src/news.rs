//! What users are told on the attachment (S0-40, S0-45), under the reasons they know from their pods.

use control::{EventType, News, Why};

use crate::{Action, Key, Reason, Side};

const ATTACH_FAILED: &str = "FailedAttachVolume";
const DETACH_FAILED: &str = "FailedDetachVolume";

/// What is told of an action: only that it failed. That it went well is told to pods, by the attach/detach controller.
pub(crate) fn news(action: &Action) -> News {
    let failed = match action {
        Action::AddVolumeFinalizer { .. }
        | Action::AddAttachmentFinalizer { .. }
        | Action::Publish { .. }
        | Action::Confirm { .. }
        | Action::GiveWay(_)
        | Action::ReadSecret { side: Side::Attach, .. }
        | Action::ReportError { side: Side::Attach, .. } => Some(ATTACH_FAILED),
        Action::Recheck { .. }
        | Action::Unpublish { .. }
        | Action::RemoveAttachmentFinalizer { .. }
        | Action::Detached(_)
        | Action::ReadSecret { side: Side::Detach, .. }
        | Action::ReportError { side: Side::Detach, .. } => Some(DETACH_FAILED),
        Action::RemoveVolumeFinalizer { .. } | Action::List { .. } => None,
    };
    News { failed, ..News::default() }
}

/// What is told while an attachment waits for something that somebody has to do.
pub(crate) fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    let Key::Attachment(_) = key else { return None };
    match why.code {
        Reason::Impossible
        | Reason::VolumeMissing
        | Reason::VolumeLeaving
        | Reason::VolumeUnreadable
        | Reason::NodeIdUnknown
        | Reason::AttachedElsewhere => Some((EventType::Warning, ATTACH_FAILED)),
        Reason::DetachStuck => Some((EventType::Warning, DETACH_FAILED)),
        _ => None,
    }
}

/// Drivers of real storage take some seconds to let a volume go.
pub(crate) fn patience(why: &Why<Reason>) -> u64 {
    match why.code {
        Reason::AttachedElsewhere => 5_000,
        _ => 2_000,
    }
}
