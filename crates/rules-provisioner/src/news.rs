//! What users are told, under the reasons they know from the Go provisioner (sidecars 2.13).

use alloc::format;

use control::{EventType, News, Why};

use crate::{Action, Key, Reason};

const FAILED: &str = "ProvisioningFailed";
const DELETE_FAILED: &str = "VolumeFailedDelete";

/// What is told of an action. Upstream tells of a volume twice, when it is begun and when it is there, and of every
/// failure on the way.
pub(crate) fn news(action: &Action) -> News {
    match action {
        Action::CreateVolume { request, .. } => News {
            begun: Some(("Provisioning", format!("the driver is asked for volume {}", request.name))),
            failed: Some(FAILED),
            ..News::default()
        },
        Action::CreatePv { terms, .. } => News {
            done: Some(("ProvisioningSucceeded", format!("volume {} is there", terms.request.name))),
            failed: Some(FAILED),
            ..News::default()
        },
        Action::RecordIntent { .. }
        | Action::AdoptIntent { .. }
        | Action::DropIntent { .. }
        | Action::AddSourceFinalizer { .. }
        | Action::ReadSecret { .. }
        | Action::LookAtClaim { .. }
        | Action::LookForPv { .. }
        | Action::AskCapacity { .. }
        | Action::TakeClaim { .. }
        | Action::Reschedule(_) => News { failed: Some(FAILED), ..News::default() },
        Action::DeleteVolume { .. }
        | Action::LookAtPv { .. }
        | Action::LookForAttachments { .. }
        | Action::AddFinalizer { .. }
        | Action::RemoveFinalizer { .. }
        | Action::DeletePv(_) => News { failed: Some(DELETE_FAILED), ..News::default() },
    }
}

/// What is told while something is in the way.
pub(crate) fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    match (key, why.code) {
        _ if why.settled => None,
        // Nothing is wrong; or somebody else tells it already, the binder that named us.
        (Key::Claim { .. }, Reason::AwaitingNode | Reason::ClassMissing) => None,
        // P74: somebody else fills the volume, and users should know that nobody forgot it.
        (Key::Claim { .. }, Reason::ExternalPopulator) => Some((EventType::Normal, "Provisioning")),
        (Key::Claim { .. }, _) => Some((EventType::Warning, FAILED)),
        (Key::Volume(_), _) => Some((EventType::Warning, DELETE_FAILED)),
    }
}
