//! Requests as an orchestrator sends them, ready to be spoilt by a case.

use std::collections::BTreeMap;

use csi::v1;
use v1::volume_capability::access_mode::Mode;
use v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use v1::volume_content_source::{SnapshotSource, Type as Source, VolumeSource};

use crate::CaseContext;
use crate::life::Volume;

/// A volume of files, for this access mode.
pub fn files(mode: Mode) -> v1::VolumeCapability {
    files_with(mode, MountVolume::default())
}

/// A volume of files with more wishes.
pub fn files_with(mode: Mode, mount: MountVolume) -> v1::VolumeCapability {
    v1::VolumeCapability {
        access_type: Some(AccessType::Mount(mount)),
        access_mode: Some(AccessMode { mode: mode as i32 }),
    }
}

/// A volume of blocks, for this access mode.
pub fn blocks(mode: Mode) -> v1::VolumeCapability {
    v1::VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        access_mode: Some(AccessMode { mode: mode as i32 }),
    }
}

/// Files, written by one node: what every driver has.
pub fn plain() -> v1::VolumeCapability {
    files(Mode::SingleNodeWriter)
}

/// At least so many bytes.
pub fn at_least(required_bytes: i64) -> Option<v1::CapacityRange> {
    Some(v1::CapacityRange { required_bytes, limit_bytes: 0 })
}

/// The content of a snapshot.
pub fn of_snapshot(id: &str) -> Option<v1::VolumeContentSource> {
    Some(v1::VolumeContentSource { r#type: Some(Source::Snapshot(SnapshotSource { snapshot_id: id.into() })) })
}

/// The content of a volume.
pub fn of_volume(id: &str) -> Option<v1::VolumeContentSource> {
    Some(v1::VolumeContentSource { r#type: Some(Source::Volume(VolumeSource { volume_id: id.into() })) })
}

/// Deletes a volume.
pub fn delete(id: &str) -> v1::DeleteVolumeRequest {
    v1::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() }
}

/// Deletes a snapshot.
pub fn delete_snapshot(id: &str) -> v1::DeleteSnapshotRequest {
    v1::DeleteSnapshotRequest { snapshot_id: id.into(), ..Default::default() }
}

/// Detaches a volume.
pub fn detach(id: &str, node: &str) -> v1::ControllerUnpublishVolumeRequest {
    v1::ControllerUnpublishVolumeRequest { volume_id: id.into(), node_id: node.into(), ..Default::default() }
}

/// Unstages a volume.
pub fn unstage(id: &str, path: &str) -> v1::NodeUnstageVolumeRequest {
    v1::NodeUnstageVolumeRequest { volume_id: id.into(), staging_target_path: path.into() }
}

/// Unpublishes a volume.
pub fn unpublish(id: &str, path: &str) -> v1::NodeUnpublishVolumeRequest {
    v1::NodeUnpublishVolumeRequest { volume_id: id.into(), target_path: path.into() }
}

/// A page of volumes.
pub fn page(max_entries: i32, starting_token: &str) -> v1::ListVolumesRequest {
    v1::ListVolumesRequest { max_entries, starting_token: starting_token.into() }
}

/// Gets one volume.
pub fn get(id: &str) -> v1::ControllerGetVolumeRequest {
    v1::ControllerGetVolumeRequest { volume_id: id.into() }
}

/// Grows a volume.
pub fn grow(volume: &Volume, bytes: i64) -> v1::ControllerExpandVolumeRequest {
    v1::ControllerExpandVolumeRequest {
        volume_id: volume.id.clone(),
        capacity_range: at_least(bytes),
        volume_capability: Some(volume.capability.clone()),
        ..Default::default()
    }
}

impl CaseContext {
    /// A new volume of files.
    pub(crate) fn create_request(&self) -> v1::CreateVolumeRequest {
        v1::CreateVolumeRequest {
            name: self.name("vol"),
            capacity_range: at_least(self.suite.options.size),
            volume_capabilities: vec![plain()],
            parameters: self.suite.options.parameters.clone(),
            ..Default::default()
        }
    }

    /// A new volume of blocks.
    pub(crate) fn create_blocks(&self) -> v1::CreateVolumeRequest {
        v1::CreateVolumeRequest { volume_capabilities: vec![blocks(Mode::SingleNodeWriter)], ..self.create_request() }
    }

    /// A snapshot of a volume.
    pub(crate) fn snapshot_request(&self, volume: &str) -> v1::CreateSnapshotRequest {
        v1::CreateSnapshotRequest { source_volume_id: volume.into(), name: self.name("snap"), ..Default::default() }
    }

    /// A snapshot of several volumes.
    pub(crate) fn group_request(&self, volumes: &[&Volume]) -> v1::CreateVolumeGroupSnapshotRequest {
        v1::CreateVolumeGroupSnapshotRequest {
            name: self.name("group"),
            source_volume_ids: volumes.iter().map(|volume| volume.id.clone()).collect(),
            ..Default::default()
        }
    }

    /// Attaches a volume to the node.
    pub(crate) fn attach_request(&self, volume: &Volume) -> v1::ControllerPublishVolumeRequest {
        v1::ControllerPublishVolumeRequest {
            volume_id: volume.id.clone(),
            node_id: self.suite.node.node_id.clone(),
            volume_capability: Some(volume.capability.clone()),
            volume_context: volume.context.clone(),
            ..Default::default()
        }
    }

    /// Asks whether a volume can do what was asked for at its creation.
    pub(crate) fn validate_request(&self, volume: &Volume) -> v1::ValidateVolumeCapabilitiesRequest {
        v1::ValidateVolumeCapabilitiesRequest {
            volume_id: volume.id.clone(),
            volume_context: volume.context.clone(),
            volume_capabilities: vec![volume.capability.clone()],
            parameters: self.suite.options.parameters.clone(),
            ..Default::default()
        }
    }

    /// Stages a volume.
    pub(crate) fn stage_request(
        &self,
        volume: &Volume,
        publish_context: &BTreeMap<String, String>,
        path: &str,
    ) -> v1::NodeStageVolumeRequest {
        v1::NodeStageVolumeRequest {
            volume_id: volume.id.clone(),
            publish_context: publish_context.clone(),
            staging_target_path: path.into(),
            volume_capability: Some(volume.capability.clone()),
            volume_context: volume.context.clone(),
            ..Default::default()
        }
    }
}
