//! The one table of RPCs. Everything this workspace knows of a single RPC without doing it stands in its row.

/// Calls `$then!` with a row for every RPC of CSI and of plugin registration, in this form:
///
/// ```text
/// Service.Method(Request) -> Response {
///     capability: [Controller(CreateDeleteVolume)],
///     volume: [name],
///     locks: [create_volume(name), content_source(volume_content_source)],
///     request: [name: name, secrets: secrets],
///     response: [volume: message],
/// }
/// ```
///
/// - `capability`: the capability a driver reports if it serves the RPC. Empty for RPCs that every driver must serve, and
///   for those of the node service, whose presence only an answer shows.
/// - `volume`: the request field that names the volume the call is about, for logs and [`Call::volume`](crate::Call::volume).
/// - `locks`: what the call must have to itself or may share, as [`locks`](crate::locks) takes it. An RPC without locks
///   only reads, and one with locks changes something ([`Method::changes_state`](crate::Method::changes_state)).
/// - `request`, `response`: the fields with a rule, and the rule ([`Field`](crate::Field)): required or not, how large,
///   secret. Fields that are not named may hold anything.
///
/// A macro that needs no column matches them all with `{ $($columns:tt)* }`.
#[macro_export]
macro_rules! for_each_method {
    ($then:path) => {
        $then! {
            Identity.GetPluginInfo(v1::GetPluginInfoRequest) -> v1::GetPluginInfoResponse {
                capability: [], volume: [], locks: [],
                request: [],
                response: [name: text, vendor_version: text, manifest: map],
            }
            Identity.GetPluginCapabilities(v1::GetPluginCapabilitiesRequest) -> v1::GetPluginCapabilitiesResponse {
                capability: [], volume: [], locks: [],
                request: [],
                response: [],
            }
            Identity.Probe(v1::ProbeRequest) -> v1::ProbeResponse {
                capability: [], volume: [], locks: [],
                request: [],
                response: [],
            }
            Controller.CreateVolume(v1::CreateVolumeRequest) -> v1::CreateVolumeResponse {
                capability: [Controller(CreateDeleteVolume)],
                volume: [name],
                locks: [create_volume(name), content_source(volume_content_source)],
                request: [
                    name: name, volume_capabilities: capabilities, capacity_range: range, parameters: map,
                    secrets: secrets, volume_content_source: content_source, accessibility_requirements: message,
                    mutable_parameters: map
                ],
                response: [volume: message],
            }
            Controller.DeleteVolume(v1::DeleteVolumeRequest) -> v1::DeleteVolumeResponse {
                capability: [Controller(CreateDeleteVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [volume_id: id, secrets: secrets],
                response: [],
            }
            Controller.ControllerPublishVolume(v1::ControllerPublishVolumeRequest)
                -> v1::ControllerPublishVolumeResponse
            {
                capability: [Controller(PublishUnpublishVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [
                    volume_id: id, node_id: node_id, volume_capability: capability, secrets: secrets,
                    volume_context: context
                ],
                response: [publish_context: map],
            }
            Controller.ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest)
                -> v1::ControllerUnpublishVolumeResponse
            {
                capability: [Controller(PublishUnpublishVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [volume_id: id, node_id: optional_node_id, secrets: secrets],
                response: [],
            }
            Controller.ValidateVolumeCapabilities(v1::ValidateVolumeCapabilitiesRequest)
                -> v1::ValidateVolumeCapabilitiesResponse
            {
                capability: [Plugin(ControllerService)],
                volume: [volume_id],
                locks: [],
                request: [
                    volume_id: id, volume_capabilities: capabilities, volume_context: context, parameters: map,
                    secrets: secrets, mutable_parameters: map
                ],
                response: [confirmed: message],
            }
            Controller.ListVolumes(v1::ListVolumesRequest) -> v1::ListVolumesResponse {
                capability: [Controller(ListVolumes)],
                volume: [],
                locks: [],
                request: [max_entries: max_entries, starting_token: text],
                response: [entries: message, next_token: text],
            }
            Controller.GetCapacity(v1::GetCapacityRequest) -> v1::GetCapacityResponse {
                capability: [Controller(GetCapacity)],
                volume: [],
                locks: [],
                request: [
                    volume_capabilities: optional_capabilities, parameters: map, accessible_topology: message
                ],
                response: [],
            }
            Controller.ControllerGetCapabilities(v1::ControllerGetCapabilitiesRequest)
                -> v1::ControllerGetCapabilitiesResponse
            {
                capability: [Plugin(ControllerService)],
                volume: [],
                locks: [],
                request: [],
                response: [],
            }
            Controller.CreateSnapshot(v1::CreateSnapshotRequest) -> v1::CreateSnapshotResponse {
                capability: [Controller(CreateDeleteSnapshot)],
                volume: [source_volume_id],
                locks: [source_volume(source_volume_id), create_snapshot(name)],
                request: [
                    source_volume_id: id, name: name, secrets: secrets, parameters: map,
                    accessibility_requirements: message
                ],
                response: [snapshot: message],
            }
            Controller.DeleteSnapshot(v1::DeleteSnapshotRequest) -> v1::DeleteSnapshotResponse {
                capability: [Controller(CreateDeleteSnapshot)],
                volume: [],
                locks: [snapshot(snapshot_id)],
                request: [snapshot_id: id, secrets: secrets],
                response: [],
            }
            Controller.ListSnapshots(v1::ListSnapshotsRequest) -> v1::ListSnapshotsResponse {
                capability: [Controller(ListSnapshots)],
                volume: [],
                locks: [],
                request: [
                    max_entries: max_entries, starting_token: text, source_volume_id: text, snapshot_id: text,
                    secrets: secrets
                ],
                response: [entries: message, next_token: text],
            }
            Controller.GetSnapshot(v1::GetSnapshotRequest) -> v1::GetSnapshotResponse {
                capability: [Controller(GetSnapshot)],
                volume: [],
                locks: [],
                request: [snapshot_id: id, secrets: secrets],
                response: [snapshot: message],
            }
            Controller.ControllerExpandVolume(v1::ControllerExpandVolumeRequest)
                -> v1::ControllerExpandVolumeResponse
            {
                capability: [Controller(ExpandVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [
                    volume_id: id, capacity_range: required_range, volume_capability: optional_capability,
                    secrets: secrets
                ],
                response: [],
            }
            Controller.ControllerGetVolume(v1::ControllerGetVolumeRequest) -> v1::ControllerGetVolumeResponse {
                capability: [Controller(GetVolume)],
                volume: [volume_id],
                locks: [],
                request: [volume_id: id],
                response: [volume: message, status: message],
            }
            Controller.ControllerModifyVolume(v1::ControllerModifyVolumeRequest)
                -> v1::ControllerModifyVolumeResponse
            {
                capability: [Controller(ModifyVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [volume_id: id, secrets: secrets, mutable_parameters: map],
                response: [],
            }
            Controller.ControllerGetVolumeHealth(v1::ControllerGetVolumeHealthRequest)
                -> v1::ControllerGetVolumeHealthResponse
            {
                capability: [Controller(GetVolumeHealth)],
                volume: [volume_id],
                locks: [],
                request: [volume_id: id, secrets: secrets],
                response: [volume_health: message],
            }
            Controller.ControllerListVolumeHealth(v1::ControllerListVolumeHealthRequest)
                -> v1::ControllerListVolumeHealthResponse
            {
                capability: [Controller(ListVolumeHealth)],
                volume: [],
                locks: [],
                request: [max_entries: max_entries, starting_token: text, secrets: secrets],
                response: [entries: message, next_token: text],
            }
            GroupController.GroupControllerGetCapabilities(v1::GroupControllerGetCapabilitiesRequest)
                -> v1::GroupControllerGetCapabilitiesResponse
            {
                capability: [Plugin(GroupControllerService)],
                volume: [],
                locks: [],
                request: [],
                response: [],
            }
            GroupController.CreateVolumeGroupSnapshot(v1::CreateVolumeGroupSnapshotRequest)
                -> v1::CreateVolumeGroupSnapshotResponse
            {
                capability: [Group(CreateDeleteGetVolumeGroupSnapshot)],
                volume: [],
                locks: [source_volumes(source_volume_ids), create_group_snapshot(name)],
                request: [name: name, source_volume_ids: ids, secrets: secrets, parameters: map],
                response: [group_snapshot: message],
            }
            GroupController.DeleteVolumeGroupSnapshot(v1::DeleteVolumeGroupSnapshotRequest)
                -> v1::DeleteVolumeGroupSnapshotResponse
            {
                capability: [Group(CreateDeleteGetVolumeGroupSnapshot)],
                volume: [],
                locks: [snapshots(snapshot_ids), group_snapshot(group_snapshot_id)],
                request: [group_snapshot_id: id, snapshot_ids: texts, secrets: secrets],
                response: [],
            }
            GroupController.GetVolumeGroupSnapshot(v1::GetVolumeGroupSnapshotRequest)
                -> v1::GetVolumeGroupSnapshotResponse
            {
                capability: [Group(CreateDeleteGetVolumeGroupSnapshot)],
                volume: [],
                locks: [],
                request: [group_snapshot_id: id, snapshot_ids: texts, secrets: secrets],
                response: [group_snapshot: message],
            }
            Node.NodeStageVolume(v1::NodeStageVolumeRequest) -> v1::NodeStageVolumeResponse {
                capability: [Node(StageUnstageVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [
                    volume_id: id, staging_target_path: path, volume_capability: capability, publish_context: map,
                    secrets: secrets, volume_context: context
                ],
                response: [],
            }
            Node.NodeUnstageVolume(v1::NodeUnstageVolumeRequest) -> v1::NodeUnstageVolumeResponse {
                capability: [Node(StageUnstageVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [volume_id: id, staging_target_path: path],
                response: [],
            }
            Node.NodePublishVolume(v1::NodePublishVolumeRequest) -> v1::NodePublishVolumeResponse {
                capability: [],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [
                    volume_id: id, staging_target_path: optional_path, target_path: path,
                    volume_capability: capability, publish_context: map, secrets: secrets, volume_context: context
                ],
                response: [],
            }
            Node.NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest) -> v1::NodeUnpublishVolumeResponse {
                capability: [],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [volume_id: id, target_path: path],
                response: [],
            }
            Node.NodeGetVolumeStats(v1::NodeGetVolumeStatsRequest) -> v1::NodeGetVolumeStatsResponse {
                capability: [Node(GetVolumeStats)],
                volume: [volume_id],
                locks: [],
                request: [volume_id: id, volume_path: path, staging_target_path: optional_path],
                response: [],
            }
            Node.NodeExpandVolume(v1::NodeExpandVolumeRequest) -> v1::NodeExpandVolumeResponse {
                capability: [Node(ExpandVolume)],
                volume: [volume_id],
                locks: [volume(volume_id)],
                request: [
                    volume_id: id, volume_path: path, capacity_range: range, staging_target_path: optional_path,
                    volume_capability: optional_capability, secrets: secrets
                ],
                response: [],
            }
            Node.NodeGetVolumeHealth(v1::NodeGetVolumeHealthRequest) -> v1::NodeGetVolumeHealthResponse {
                capability: [Node(GetVolumeHealth)],
                volume: [volume_id],
                locks: [],
                request: [volume_id: id, volume_publish_path: optional_path, staging_target_path: optional_path],
                response: [volume_health: message],
            }
            Node.NodeGetStorageHealth(v1::NodeGetStorageHealthRequest) -> v1::NodeGetStorageHealthResponse {
                capability: [Node(GetStorageHealth)],
                volume: [],
                locks: [],
                request: [secrets: secrets],
                response: [backend_health: message],
            }
            Node.NodeGetCapabilities(v1::NodeGetCapabilitiesRequest) -> v1::NodeGetCapabilitiesResponse {
                capability: [], volume: [], locks: [],
                request: [],
                response: [],
            }
            Node.NodeGetInfo(v1::NodeGetInfoRequest) -> v1::NodeGetInfoResponse {
                capability: [], volume: [], locks: [],
                request: [],
                response: [node_id: node_id, accessible_topology: message],
            }
            Registration.GetInfo(registration::InfoRequest) -> registration::PluginInfo {
                capability: [], volume: [], locks: [],
                request: [],
                response: [name: text],
            }
            Registration.NotifyRegistrationStatus(registration::RegistrationStatus)
                -> registration::RegistrationStatusResponse
            {
                capability: [], volume: [], locks: [],
                request: [],
                response: [],
            }
            CSIRegistration.GetCSIDriverInfo(registration::CsiDriverInfoRequest) -> registration::CsiDriverInfo {
                capability: [], volume: [], locks: [],
                request: [],
                response: [],
            }
        }
    };
}
