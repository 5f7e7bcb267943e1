//! What users are told while a volume does not come to their pod, under the reasons they know from Kubernetes.

use control::{EventType, News, Why};

use crate::{Action, Reason};

const ATTACH_FAILED: &str = "FailedAttachVolume";
const DETACH_FAILED: &str = "FailedDetachVolume";

/// What is told of an action: only that it failed.
pub(crate) fn news(action: &Action) -> News {
    let failed = match action {
        Action::Create { .. } | Action::Adopt(_) | Action::Report { .. } => ATTACH_FAILED,
        Action::Unreport { .. } | Action::Fence { .. } | Action::CheckNode { .. } | Action::Delete(_) => DETACH_FAILED,
    };
    News { failed: Some(failed), ..News::default() }
}

/// What is told while a pod waits for its volume. That nobody needs a volume any more is nobody's business.
pub(crate) fn rest_event(why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    match why.code {
        Reason::AttachFailing
        | Reason::WaitingForAttacher
        | Reason::AttachmentLeaving
        | Reason::NodeNotManaged
        | Reason::DetachingElsewhere
        | Reason::AttachedElsewhere
        | Reason::ReportedElsewhere
        | Reason::InUseElsewhere
        | Reason::WantedElsewhere => Some((EventType::Warning, ATTACH_FAILED)),
        _ => None,
    }
}

/// Drivers of real storage take some seconds to attach and to detach.
pub(crate) fn patience(why: &Why<Reason>) -> u64 {
    match why.code {
        Reason::WaitingForAttacher | Reason::AttachmentLeaving | Reason::DetachingElsewhere => 5_000,
        _ => 2_000,
    }
}
