//! What of the kernel a call has to do with: the rest of the machine may have thousands of mounts and devices.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use csi::Call;
use csi::v1::volume_content_source::Type as SourceType;

use crate::check;

/// What has to be looked at before a call is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The volumes whose loop device matters, and everything that shows it or them.
    pub volumes: Vec<String>,
    /// Places that matter whatever they show.
    pub paths: Vec<String>,
}

/// What a call has to do with.
pub fn look(call: &Call) -> Look {
    match call {
        Call::CreateVolume(r) => match r.volume_content_source.as_ref().and_then(|source| source.r#type.as_ref()) {
            Some(SourceType::Volume(from)) => of(&[&from.volume_id], &[]),
            Some(SourceType::Snapshot(_)) | None => deletion(&r.name),
        },
        Call::DeleteVolume(r) => of(&[&r.volume_id], &[]),
        Call::ControllerUnpublishVolume(r) => of(&[&r.volume_id], &[]),
        Call::ControllerModifyVolume(r) => of(&[&r.volume_id], &[]),
        Call::CreateSnapshot(r) => of(&[&r.source_volume_id], &[]),
        Call::CreateVolumeGroupSnapshot(r) => {
            let ids: Vec<&str> = r.source_volume_ids.iter().map(String::as_str).collect();
            of(&ids, &[])
        }
        Call::NodeStageVolume(r) => of(&[&r.volume_id], &[&r.staging_target_path]),
        Call::NodeUnstageVolume(r) => of(&[&r.volume_id], &[&r.staging_target_path]),
        Call::NodePublishVolume(r) => of(&[&r.volume_id], &[&r.staging_target_path, &r.target_path]),
        Call::NodeUnpublishVolume(r) => of(&[&r.volume_id], &[&r.target_path]),
        Call::NodeGetVolumeStats(r) => of(&[&r.volume_id], &[&r.volume_path, &r.staging_target_path]),
        Call::NodeGetVolumeHealth(r) => of(&[&r.volume_id], &[&r.volume_publish_path, &r.staging_target_path]),
        Call::NodeExpandVolume(r) => of(&[&r.volume_id], &[&r.volume_path, &r.staging_target_path]),
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ControllerPublishVolume(_)
        | Call::ValidateVolumeCapabilities(_)
        | Call::ListVolumes(_)
        | Call::GetCapacity(_)
        | Call::ControllerGetCapabilities(_)
        | Call::DeleteSnapshot(_)
        | Call::ListSnapshots(_)
        | Call::GetSnapshot(_)
        | Call::ControllerExpandVolume(_)
        | Call::ControllerGetVolume(_)
        | Call::ControllerGetVolumeHealth(_)
        | Call::ControllerListVolumeHealth(_)
        | Call::GroupControllerGetCapabilities(_)
        | Call::DeleteVolumeGroupSnapshot(_)
        | Call::GetVolumeGroupSnapshot(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::NodeGetStorageHealth(_)
        | Call::GetCSIDriverInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => Look::default(),
    }
}

/// A volume of the same name may be on its way out, with a loop device still.
fn deletion(name: &str) -> Look {
    of(&[&check::id_for(csi::Thing::Volume, name)], &[])
}

fn of(ids: &[&str], paths: &[&str]) -> Look {
    let mut look = Look::default();
    for id in ids {
        // The caller's own name for a volume of a pod is not the one it is kept under.
        let both = [id.to_string(), check::ephemeral_id(id)];
        look.volumes.extend(both.into_iter().filter(|id| check::is_id(id)));
    }
    look.paths = paths.iter().map(|path| path.trim_end_matches('/').to_string()).collect();
    look.paths.retain(|path| !path.is_empty());
    look
}

impl Look {
    /// Nothing has to be looked at.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.paths.is_empty()
    }
}
