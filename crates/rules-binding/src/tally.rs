//! How long claims wait for the volumes that are asked for, and volumes for their end, as the volume binder counts it
//! (PV-46): from the first word about it until it is so, whoever does the work.

use alloc::collections::BTreeMap;
use alloc::string::String;

use api::{Meta, PersistentVolume, ReclaimPolicy, names};
use control::Timestamp;

use crate::Action;

/// When the waits that last began, by the uid of the claim or volume. Each goes with its object, which this controller
/// lets go.
#[derive(Clone, Debug, Default)]
pub struct WaitTally {
    begun: BTreeMap<String, Timestamp>,
}

/// A wait that is over, or an attempt to begin one that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedWait {
    /// `provision` or `delete`.
    pub operation: &'static str,
    /// Who was asked.
    pub plugin: String,
    /// How many milliseconds it took; `None` if it failed.
    pub took: Option<u64>,
}

impl WaitTally {
    /// An action that began at the first moment has ended at the second.
    pub fn ended(&mut self, times: (Timestamp, Timestamp), action: &Action, failed: bool) -> Option<EndedWait> {
        match action {
            Action::CallProvisioner { provisioner, .. } if failed => {
                Some(EndedWait { operation: "provision", plugin: provisioner.clone(), took: None })
            }
            Action::MarkFailed { volume, .. } if !failed => {
                Some(EndedWait { operation: "delete", plugin: maker(volume), took: None })
            }
            _ if failed => None,
            Action::CallProvisioner { claim, .. } => self.begin(&claim.metadata, times.0),
            Action::MarkReleased(volume) if volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete => {
                self.begin(&volume.metadata, times.0)
            }
            Action::MarkClaimBound { claim, .. } => {
                let plugin = claim.metadata.annotation(names::STORAGE_PROVISIONER).unwrap_or_default().into();
                self.end(&claim.metadata, times.1, "provision", plugin)
            }
            Action::RemoveVolumeFinalizer(volume) => self.end(&volume.metadata, times.1, "delete", maker(volume)),
            Action::RemoveClaimFinalizer(claim) => {
                self.begun.remove(&claim.metadata.uid);
                None
            }
            _ => None,
        }
    }

    /// The first word counts.
    fn begin(&mut self, of: &Meta, at: Timestamp) -> Option<EndedWait> {
        self.begun.entry(of.uid.clone()).or_insert(at);
        None
    }

    fn end(&mut self, of: &Meta, at: Timestamp, operation: &'static str, plugin: String) -> Option<EndedWait> {
        let began = self.begun.remove(&of.uid)?;
        Some(EndedWait { operation, plugin, took: Some(at.0.saturating_sub(began.0)) })
    }
}

fn maker(volume: &PersistentVolume) -> String {
    volume.metadata.annotation(names::PROVISIONED_BY).unwrap_or_default().into()
}
