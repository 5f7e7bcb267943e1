//! What users are told while a claim waits, under the reasons they know from Kubernetes.

use control::{EventType, Why};

use crate::{Key, Reason};

/// The event while something is waited for. A claim's wait is told on the claim; a volume's is its claim's.
pub(crate) fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    if matches!(key, Key::Volume(_)) || why.settled {
        return None;
    }
    match why.code {
        Reason::WaitForFirstConsumer => Some((EventType::Normal, "WaitForFirstConsumer")),
        Reason::WaitForPodScheduled => Some((EventType::Normal, "WaitForPodScheduled")),
        Reason::ExternalProvisioning | Reason::ProvisionerBusy => Some((EventType::Normal, "ExternalProvisioning")),
        Reason::ExternalExpanding => Some((EventType::Normal, "ExternalExpanding")),
        Reason::NoVolumeFits => Some((EventType::Normal, "FailedBinding")),
        Reason::SelectorNotSupported | Reason::BadRequest | Reason::VolumeNotFound | Reason::VolumeTaken => {
            Some((EventType::Warning, "FailedBinding"))
        }
        Reason::ClassMissing | Reason::ProvisionerNotSupported => Some((EventType::Warning, "ProvisioningFailed")),
        Reason::VolumeMismatch => Some((EventType::Warning, "VolumeMismatch")),
        Reason::VolumeVanished | Reason::VolumeNotNamed => Some((EventType::Warning, "ClaimLost")),
        Reason::ClaimMisbound => Some((EventType::Warning, "ClaimMisbound")),
        // Deletion is seen in the object itself; everything else is under way.
        _ => None,
    }
}
