//! The CSI driver of a machine: each call is a row of operations on the machine's kernel.

use control::host::{Machine as _, Op, Reply as HostReply};
use csi::v1::volume_capability::AccessType;
use csi::{Call, Code, Response, v1};
use prove_kernel::Kernel;

use super::{FSTYPE, image, is_inline};

const INLINE_SIZE: u64 = 1 << 20;

/// A call that the driver is at.
pub(super) struct Work<'a> {
    pub(super) kernel: &'a mut Kernel,
    pub(super) left: usize,
    pub(super) done: usize,
}

/// Why a call was not carried out.
pub(super) enum Stop {
    Killed,
    Unknown(Code),
    Failed(control::host::Failure),
}

fn is_device(capability: Option<&v1::VolumeCapability>) -> bool {
    matches!(capability.and_then(|one| one.access_type.as_ref()), Some(AccessType::Block(_)))
}

impl Work<'_> {
    fn op(&mut self, op: &Op) -> Result<HostReply, Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Killed)?;
        let reply = self.kernel.perform(op).map_err(Stop::Failed)?;
        self.done += 1;
        Ok(reply)
    }

    fn device(&mut self, volume: &str) -> Result<String, Stop> {
        match self.op(&Op::AttachLoop { image: image(volume) })? {
            HostReply::Device(device) => Ok(device),
            HostReply::Done | HostReply::Usage(_) => Err(Stop::Unknown(Code::Internal)),
        }
    }

    pub(super) fn answer(&mut self, call: &Call) -> Result<Response, Stop> {
        if is_inline(call.volume()) {
            return self.answer_inline(call);
        }
        if self.kernel.sizes_of(&image(call.volume())).is_none() {
            return Err(Stop::Unknown(Code::NotFound));
        }
        match call {
            Call::NodeStageVolume(request) => {
                let device = self.device(&request.volume_id)?;
                if !is_device(request.volume_capability.as_ref()) {
                    self.op(&Op::MakeFilesystem { device: device.clone(), fstype: FSTYPE.into() })?;
                    let (target, fstype) = (request.staging_target_path.clone(), FSTYPE.into());
                    self.op(&Op::Mount { device, target, fstype, flags: Vec::new(), read_only: false })?;
                }
                Ok(Response::NodeStageVolume(v1::NodeStageVolumeResponse {}))
            }
            Call::NodePublishVolume(request) => {
                let (target, read_only) = (request.target_path.clone(), request.readonly);
                if is_device(request.volume_capability.as_ref()) {
                    let device = self.device(&request.volume_id)?;
                    self.op(&Op::MakeFile { path: target.clone() })?;
                    self.op(&Op::BindDevice { device, target, read_only })?;
                } else {
                    self.op(&Op::MakePlace { path: target.clone() })?;
                    let source = request.staging_target_path.clone();
                    self.op(&Op::Bind { source, target, read_only })?;
                }
                Ok(Response::NodePublishVolume(v1::NodePublishVolumeResponse {}))
            }
            Call::NodeUnpublishVolume(request) => {
                self.op(&Op::Unmount { target: request.target_path.clone() })?;
                self.op(&Op::RemoveTarget { path: request.target_path.clone() })?;
                Ok(Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {}))
            }
            Call::NodeUnstageVolume(request) => {
                self.op(&Op::Unmount { target: request.staging_target_path.clone() })?;
                self.op(&Op::DetachLoop { image: image(&request.volume_id) })?;
                Ok(Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {}))
            }
            Call::NodeExpandVolume(request) => {
                let device = self.device(&request.volume_id)?;
                self.op(&Op::RefreshLoop { image: image(&request.volume_id) })?;
                if !is_device(request.volume_capability.as_ref()) {
                    let mounted_at = Some(request.staging_target_path.clone());
                    self.op(&Op::GrowFilesystem { device, fstype: FSTYPE.into(), mounted_at })?;
                }
                let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
                Ok(Response::NodeExpandVolume(v1::NodeExpandVolumeResponse { capacity_bytes }))
            }
            Call::ControllerExpandVolume(request) => {
                let wanted = request.capacity_range.map_or(0, |range| range.required_bytes);
                let size = u64::try_from(wanted).unwrap_or(0);
                self.op(&Op::GrowImage { path: image(&request.volume_id), size })?;
                let (bytes, _) = self.kernel.sizes_of(&image(&request.volume_id)).unwrap_or_default();
                let capacity_bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                let answer = v1::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: true };
                Ok(Response::ControllerExpandVolume(answer))
            }
            _ => Err(Stop::Unknown(Code::Unimplemented)),
        }
    }

    /// What is asked about a pod's own volume, which nobody stages.
    fn answer_inline(&mut self, call: &Call) -> Result<Response, Stop> {
        match call {
            Call::NodePublishVolume(request) => {
                let (target, read_only) = (request.target_path.clone(), request.readonly);
                self.op(&Op::CreateImage { path: image(&request.volume_id), size: INLINE_SIZE })?;
                let device = self.device(&request.volume_id)?;
                self.op(&Op::MakeFilesystem { device: device.clone(), fstype: FSTYPE.into() })?;
                self.op(&Op::MakePlace { path: target.clone() })?;
                self.op(&Op::Mount { device, target, fstype: FSTYPE.into(), flags: Vec::new(), read_only })?;
                Ok(Response::NodePublishVolume(v1::NodePublishVolumeResponse {}))
            }
            Call::NodeUnpublishVolume(request) => {
                self.op(&Op::Unmount { target: request.target_path.clone() })?;
                self.op(&Op::RemoveTarget { path: request.target_path.clone() })?;
                self.op(&Op::DetachLoop { image: image(&request.volume_id) })?;
                self.op(&Op::RemoveFile { path: image(&request.volume_id) })?;
                Ok(Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {}))
            }
            _ => Err(Stop::Unknown(Code::NotFound)),
        }
    }
}
