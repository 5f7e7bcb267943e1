//! How large the fields of messages may be, and one table of the fields that are bounded. Paths have no bound of their
//! own (the operating system has), nor have texts for people.

use std::collections::BTreeMap;

use csi::v1;
use csi::v1::volume_capability::AccessType;
use csi::v1::volume_content_source::Type as Source;
use csi::{Call, Response};

/// How large fields may be, in bytes (reliability 73).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A name, an id or a token.
    pub text: usize,
    /// The id of a node.
    pub node_id: usize,
    /// All keys and values of a map together, or all entries of a list of strings.
    pub map: usize,
}

impl Limits {
    /// What CSI allows.
    pub const SPEC: Limits = Limits { text: 128, node_id: 256, map: 4 << 10 };
    /// For drivers in use that go beyond it: ids that are whole resource paths of a cloud, contexts with several tokens.
    pub const WIDE: Limits = Limits { text: 1 << 10, node_id: 1 << 10, map: 64 << 10 };

    /// Says which field of a request is too large, if one is. The field's value is not told.
    pub fn check_call(self, call: &Call) -> Result<(), String> {
        self.check(|scale| measure_call(call, scale))
    }

    /// Says which field of an answer is too large, if one is.
    pub fn check_response(self, response: &Response) -> Result<(), String> {
        self.check(|scale| measure_response(response, scale))
    }

    fn check(self, measure: impl FnOnce(&mut Scale)) -> Result<(), String> {
        let mut scale = Scale { limits: self, over: None };
        measure(&mut scale);
        scale.over.map_or(Ok(()), Err)
    }
}

/// Remembers the first thing that was too large.
struct Scale {
    limits: Limits,
    over: Option<String>,
}

impl Scale {
    fn weigh(&mut self, field: &str, bytes: usize, most: usize) {
        if bytes > most && self.over.is_none() {
            self.over = Some(format!("{field} has {bytes} bytes, and at most {most} are allowed"));
        }
    }
}

/// The kinds of bounded fields.
mod kind {
    use super::*;

    pub fn text(scale: &mut Scale, field: &str, value: &str) {
        scale.weigh(field, value.len(), scale.limits.text);
    }

    pub fn texts(scale: &mut Scale, field: &str, values: &[String]) {
        values.iter().for_each(|value| text(scale, field, value));
    }

    pub fn node(scale: &mut Scale, field: &str, value: &str) {
        scale.weigh(field, value.len(), scale.limits.node_id);
    }

    pub fn nodes(scale: &mut Scale, field: &str, values: &[String]) {
        values.iter().for_each(|value| node(scale, field, value));
    }

    pub fn flags(scale: &mut Scale, field: &str, values: &[String]) {
        scale.weigh(field, values.iter().map(String::len).sum(), scale.limits.map);
    }

    pub fn map(scale: &mut Scale, field: &str, values: &BTreeMap<String, String>) {
        scale.weigh(field, values.iter().map(|(key, value)| key.len() + value.len()).sum(), scale.limits.map);
    }

    pub fn part(scale: &mut Scale, _: &str, value: &impl Measured) {
        value.measure(scale);
    }
}

trait Measured {
    fn measure(&self, scale: &mut Scale);
}

impl<M: Measured> Measured for Option<M> {
    fn measure(&self, scale: &mut Scale) {
        self.iter().for_each(|part| part.measure(scale));
    }
}

impl<M: Measured> Measured for Vec<M> {
    fn measure(&self, scale: &mut Scale) {
        self.iter().for_each(|part| part.measure(scale));
    }
}

macro_rules! measured {
    ($($message:path { $($field:ident: $kind:ident),* })*) => {
        $(impl Measured for $message {
            #[allow(unused_variables, reason = "some messages have no bounded field")]
            fn measure(&self, scale: &mut Scale) {
                $(kind::$kind(scale, stringify!($field), &self.$field);)*
            }
        })*
    };
}
measured! {
    v1::volume_capability::MountVolume { fs_type: text, mount_flags: flags, volume_mount_group: text }
    v1::volume_content_source::SnapshotSource { snapshot_id: text }
    v1::volume_content_source::VolumeSource { volume_id: text }
    v1::Volume { volume_id: text, volume_context: map, content_source: part, accessible_topology: part }
    v1::Topology { segments: map }
    v1::TopologyRequirement { requisite: part, preferred: part }
    v1::Snapshot { snapshot_id: text, source_volume_id: text, group_snapshot_id: text, accessible_topology: part }
    v1::VolumeGroupSnapshot { group_snapshot_id: text, snapshots: part }
    v1::VolumeHealth { volume_id: text }
    v1::GetPluginInfoRequest {}
    v1::GetPluginInfoResponse { name: text, vendor_version: text, manifest: map }
    v1::GetPluginCapabilitiesRequest {}
    v1::GetPluginCapabilitiesResponse {}
    v1::ProbeRequest {}
    v1::ProbeResponse {}
    v1::CreateVolumeRequest {
        name: text, volume_capabilities: part, parameters: map, secrets: map, volume_content_source: part,
        accessibility_requirements: part, mutable_parameters: map
    }
    v1::CreateVolumeResponse { volume: part }
    v1::DeleteVolumeRequest { volume_id: text, secrets: map }
    v1::DeleteVolumeResponse {}
    v1::ControllerPublishVolumeRequest {
        volume_id: text, node_id: node, volume_capability: part, secrets: map, volume_context: map
    }
    v1::ControllerPublishVolumeResponse { publish_context: map }
    v1::ControllerUnpublishVolumeRequest { volume_id: text, node_id: node, secrets: map }
    v1::ControllerUnpublishVolumeResponse {}
    v1::ValidateVolumeCapabilitiesRequest {
        volume_id: text, volume_context: map, volume_capabilities: part, parameters: map, secrets: map,
        mutable_parameters: map
    }
    v1::ValidateVolumeCapabilitiesResponse { confirmed: part }
    v1::validate_volume_capabilities_response::Confirmed {
        volume_context: map, volume_capabilities: part, parameters: map, mutable_parameters: map
    }
    v1::ListVolumesRequest { starting_token: text }
    v1::ListVolumesResponse { entries: part, next_token: text }
    v1::list_volumes_response::Entry { volume: part, status: part }
    v1::list_volumes_response::VolumeStatus { published_node_ids: nodes }
    v1::GetCapacityRequest { volume_capabilities: part, parameters: map, accessible_topology: part }
    v1::GetCapacityResponse {}
    v1::ControllerGetCapabilitiesRequest {}
    v1::ControllerGetCapabilitiesResponse {}
    v1::CreateSnapshotRequest {
        source_volume_id: text, name: text, secrets: map, parameters: map, accessibility_requirements: part
    }
    v1::CreateSnapshotResponse { snapshot: part }
    v1::DeleteSnapshotRequest { snapshot_id: text, secrets: map }
    v1::DeleteSnapshotResponse {}
    v1::ListSnapshotsRequest { starting_token: text, source_volume_id: text, snapshot_id: text, secrets: map }
    v1::ListSnapshotsResponse { entries: part, next_token: text }
    v1::list_snapshots_response::Entry { snapshot: part }
    v1::GetSnapshotRequest { snapshot_id: text, secrets: map }
    v1::GetSnapshotResponse { snapshot: part }
    v1::ControllerExpandVolumeRequest { volume_id: text, secrets: map, volume_capability: part }
    v1::ControllerExpandVolumeResponse {}
    v1::ControllerGetVolumeRequest { volume_id: text }
    v1::ControllerGetVolumeResponse { volume: part, status: part }
    v1::controller_get_volume_response::VolumeStatus { published_node_ids: nodes }
    v1::ControllerModifyVolumeRequest { volume_id: text, secrets: map, mutable_parameters: map }
    v1::ControllerModifyVolumeResponse {}
    v1::ControllerGetVolumeHealthRequest { volume_id: text, secrets: map }
    v1::ControllerGetVolumeHealthResponse { volume_health: part }
    v1::ControllerListVolumeHealthRequest { starting_token: text, secrets: map }
    v1::ControllerListVolumeHealthResponse { entries: part, next_token: text }
    v1::GroupControllerGetCapabilitiesRequest {}
    v1::GroupControllerGetCapabilitiesResponse {}
    v1::CreateVolumeGroupSnapshotRequest { name: text, source_volume_ids: texts, secrets: map, parameters: map }
    v1::CreateVolumeGroupSnapshotResponse { group_snapshot: part }
    v1::DeleteVolumeGroupSnapshotRequest { group_snapshot_id: text, snapshot_ids: texts, secrets: map }
    v1::DeleteVolumeGroupSnapshotResponse {}
    v1::GetVolumeGroupSnapshotRequest { group_snapshot_id: text, snapshot_ids: texts, secrets: map }
    v1::GetVolumeGroupSnapshotResponse { group_snapshot: part }
    v1::NodeStageVolumeRequest {
        volume_id: text, publish_context: map, volume_capability: part, secrets: map, volume_context: map
    }
    v1::NodeStageVolumeResponse {}
    v1::NodeUnstageVolumeRequest { volume_id: text }
    v1::NodeUnstageVolumeResponse {}
    v1::NodePublishVolumeRequest {
        volume_id: text, publish_context: map, volume_capability: part, secrets: map, volume_context: map
    }
    v1::NodePublishVolumeResponse {}
    v1::NodeUnpublishVolumeRequest { volume_id: text }
    v1::NodeUnpublishVolumeResponse {}
    v1::NodeGetVolumeStatsRequest { volume_id: text }
    v1::NodeGetVolumeStatsResponse {}
    v1::NodeExpandVolumeRequest { volume_id: text, volume_capability: part, secrets: map }
    v1::NodeExpandVolumeResponse {}
    v1::NodeGetVolumeHealthRequest { volume_id: text }
    v1::NodeGetVolumeHealthResponse { volume_health: part }
    v1::NodeGetStorageHealthRequest { secrets: map }
    v1::NodeGetStorageHealthResponse { backend_health: part }
    v1::node_get_storage_health_response::StorageBackendHealth { volume_capability: part }
    v1::NodeGetCapabilitiesRequest {}
    v1::NodeGetCapabilitiesResponse {}
    v1::NodeGetInfoRequest {}
    v1::NodeGetInfoResponse { node_id: node, accessible_topology: part }
    csi::registration::CsiDriverInfo {}
    csi::registration::CsiDriverInfoRequest {}
    csi::registration::InfoRequest {}
    csi::registration::PluginInfo { name: text }
    csi::registration::RegistrationStatus {}
    csi::registration::RegistrationStatusResponse {}
}

impl Measured for v1::VolumeCapability {
    fn measure(&self, scale: &mut Scale) {
        match &self.access_type {
            Some(AccessType::Mount(mount)) => mount.measure(scale),
            Some(AccessType::Block(_)) | None => {}
        }
    }
}

impl Measured for v1::VolumeContentSource {
    fn measure(&self, scale: &mut Scale) {
        match &self.r#type {
            Some(Source::Snapshot(source)) => source.measure(scale),
            Some(Source::Volume(source)) => source.measure(scale),
            None => {}
        }
    }
}

macro_rules! switch {
    ($($name:ident($request:ty) -> $response:ty, $service:literal;)*) => {
        fn measure_call(call: &Call, scale: &mut Scale) {
            match call { $(Call::$name(message) => message.measure(scale)),* }
        }

        fn measure_response(response: &Response, scale: &mut Scale) {
            match response { $(Response::$name(message) => message.measure(scale)),* }
        }
    };
}
csi::for_each_method!(switch);

#[cfg(test)]
#[path = "limits_tests.rs"]
pub(crate) mod tests;
