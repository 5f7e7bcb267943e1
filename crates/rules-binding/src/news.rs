//! What users are told while a claim waits, under the reasons they know from Kubernetes.

use control::{EventType, Why};

use crate::{Key, Reason};

/// The event while something is waited for. A claim's wait is told on the claim; most of a volume's waits are its
/// claim's.
pub(crate) fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
    if why.settled {
        return None;
    }
    match (key, why.code) {
        // PV-29: told as upstream does, though nothing is wrong yet.
        (Key::Volume(_), Reason::VolumeUsed) => Some((EventType::Normal, "VolumeFailedRecycle")),
        (Key::Volume(_), code) => volume_event(code).map(|reason| (EventType::Warning, reason)),
        (Key::Claim(_) | Key::Pod(_), code) => claim_event(code),
    }
}

/// PV-29, PV-32, and the row of the table of orchestrator 2.5 that is told on both objects.
fn volume_event(code: Reason) -> Option<&'static str> {
    match code {
        Reason::VolumeMismatch => Some("VolumeMismatch"),
        Reason::VolumeFailedRecycle => Some("VolumeFailedRecycle"),
        Reason::VolumeFailedDelete => Some("VolumeFailedDelete"),
        Reason::VolumeUnknownReclaimPolicy => Some("VolumeUnknownReclaimPolicy"),
        _ => None,
    }
}

fn claim_event(code: Reason) -> Option<(EventType, &'static str)> {
    match code {
        Reason::WaitForFirstConsumer => Some((EventType::Normal, "WaitForFirstConsumer")),
        Reason::WaitForPodScheduled => Some((EventType::Normal, "WaitForPodScheduled")),
        Reason::ExternalProvisioning | Reason::ProvisionerBusy => Some((EventType::Normal, "ExternalProvisioning")),
        Reason::ExternalExpanding => Some((EventType::Normal, "ExternalExpanding")),
        Reason::NoVolumeFits => Some((EventType::Normal, "FailedBinding")),
        Reason::BadRequest | Reason::VolumeNotFound | Reason::VolumeTaken => {
            Some((EventType::Warning, "FailedBinding"))
        }
        Reason::ClassMissing | Reason::ProvisionerNotSupported => Some((EventType::Warning, "ProvisioningFailed")),
        Reason::VolumeMismatch => Some((EventType::Warning, "VolumeMismatch")),
        Reason::VolumeVanished | Reason::VolumeNotNamed => Some((EventType::Warning, "ClaimLost")),
        // PV-60: told on the pod, which is the key.
        Reason::ClaimNotOwned => Some((EventType::Warning, "FailedBinding")),
        Reason::ClaimMisbound => Some((EventType::Warning, "ClaimMisbound")),
        // Deletion is seen in the object itself; everything else is under way.
        _ => None,
    }
}
