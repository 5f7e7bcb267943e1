//! What users are told while a volume does not come to their pod, under the reasons they know from Kubernetes.

use alloc::format;

use control::{EventType, News, Why};

use crate::{Action, Reason};

const ATTACH_FAILED: &str = "FailedAttachVolume";
const DETACH_FAILED: &str = "FailedDetachVolume";

/// What is told of an action: that a pod's volume is there (AD-31), that one was taken by force (AD-23), and failures.
pub(crate) fn news(action: &Action) -> News {
    let (failed, done) = match action {
        Action::Report { node, volume, .. } => {
            let text = format!("volume {volume} is attached to node {}", node.name());
            (ATTACH_FAILED, Some(("SuccessfulAttachVolume", text)))
        }
        Action::AskNode { .. } | Action::Create { .. } | Action::Adopt(_) => (ATTACH_FAILED, None),
        Action::ForceRelease { node, volume, evidence, .. } => {
            let text = format!("volume {volume} is taken from node {} without its word: {evidence}", node.name());
            (DETACH_FAILED, Some(("ForceDetachVolume", text)))
        }
        Action::Unreport { .. }
        | Action::Fence { .. }
        | Action::ReadLease { .. }
        | Action::CheckNode { .. }
        | Action::Delete(_) => (DETACH_FAILED, None),
    };
    News { failed: Some(failed), done, begun: None, slow: None }
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
        | Reason::WantedElsewhere
        | Reason::Unattachable
        | Reason::Disputed
        | Reason::PluginHolds => Some((EventType::Warning, ATTACH_FAILED)),
        // Whoever waits for the volume elsewhere is told as well; this is for the volume and the node.
        Reason::DetachFailing => Some((EventType::Warning, DETACH_FAILED)),
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
