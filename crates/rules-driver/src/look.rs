//! What a call needs to know of the kernel: the rest of the machine may have thousands of mounts and devices.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use csi::Call;
use csi::v1::volume_content_source::Type as SourceType;

use crate::check;

/// What of the kernel the driver reads before it answers a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Volumes: their loop devices, and every mount of one.
    pub volumes: Vec<String>,
    /// Paths: whatever is mounted there.
    pub paths: Vec<String>,
}

/// What the driver must look at before it answers a call: the volume and the paths that the call names, unless the records
/// alone give the answer.
pub fn look(call: &Call) -> Look {
    match call {
        Call::CreateVolume(r) => match r.volume_content_source.as_ref().and_then(|source| source.r#type.as_ref()) {
            Some(SourceType::Volume(from)) => of(&[&from.volume_id], &[]),
            Some(SourceType::Snapshot(_)) | None => deletion(&r.name),
        },
        Call::CreateVolumeGroupSnapshot(r) => {
            let ids: Vec<&str> = r.source_volume_ids.iter().map(String::as_str).collect();
            of(&ids, &[])
        }
        // The records know all of it, and the machine may have thousands of mounts.
        Call::ControllerPublishVolume(_)
        | Call::ValidateVolumeCapabilities(_)
        | Call::ControllerExpandVolume(_)
        | Call::ControllerGetVolume(_)
        | Call::ControllerGetVolumeHealth(_) => Look::default(),
        // Whatever else there is: to look at too much is slow, to look at too little is wrong.
        _ => of(&[call.volume()], &call.paths()),
    }
}

/// A volume of the same name may be on its way out, with a loop device still.
fn deletion(name: &str) -> Look {
    of(&[&check::id_for(csi::Thing::Volume, name)], &[])
}

fn of(ids: &[&str], paths: &[&str]) -> Look {
    let mut look = Look::default();
    for id in ids.iter().filter(|id| !id.is_empty()) {
        // The caller's own name for a volume of a pod is not the one it is kept under.
        let both = [id.to_string(), check::ephemeral_id(id)];
        look.volumes.extend(both.into_iter().filter(|id| check::is_id(id)));
    }
    look.paths = paths.iter().map(|path| path.trim_end_matches('/').to_string()).collect();
    look.paths.retain(|path| !path.is_empty());
    look
}

impl Look {
    /// Whether the call needs to know nothing of the kernel.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.paths.is_empty()
    }
}
