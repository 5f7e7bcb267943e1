//! The traits a driver is written in.

use std::future::Future;

use csi::{Call, Code, Response, Status, v1};

use super::Ledger;
use super::errors::*;
use crate::ability::Ability;

/// Who the driver is and what it offers. The kit answers `GetPluginInfo`, `GetPluginCapabilities` and the capability calls
/// of all services from this.
pub trait Identity: Send + Sync + 'static {
    /// The driver's name, as a domain name: `tiny.example.com`.
    fn name(&self) -> String;

    /// The driver's version, in the author's own way of counting.
    fn version(&self) -> String;

    /// Everything the driver offers, in one place. A call that needs something not named here is answered with
    /// UNIMPLEMENTED, whether it is written or not, so that answers about capabilities and answers to calls agree. What
    /// follows (who offers a capability of the controller has a controller) need not be named.
    fn abilities(&self) -> Vec<Ability>;

    /// Whether the driver is well, after it was said to be ready: true unless the author writes otherwise.
    fn probe(&self) -> impl Future<Output = Result<bool, ProbeError>> + Send {
        async { Ok(true) }
    }
}

/// A whole driver: one type that is all four services. A service that is not offered is an empty `impl`.
pub trait Plugin: Identity + Controller + Node + GroupController {}
impl<P: Identity + Controller + Node + GroupController> Plugin for P {}

macro_rules! service {
    ($(#[$about:meta])* $service:ident, $dispatch:ident { $($more:item)* } { $(
        $(#[$doc:meta])* $name:ident: $method:ident($request:ident) -> $response:ident, $error:ident;
    )* }) => {
        $(#[$about])*
        pub trait $service: Send + Sync + 'static {
            $($more)*
            $(
                $(#[$doc])*
                fn $name(
                    &self,
                    request: v1::$request,
                ) -> impl Future<Output = Result<v1::$response, $error>> + Send {
                    let _ = request;
                    async { Err($error::Unimplemented) }
                }
            )*
        }

        pub(super) async fn $dispatch<S: $service>(service: &S, call: Call) -> Result<Response, Status> {
            match call {
                $(Call::$method(request) => match service.$name(request).await {
                    Ok(answer) => Ok(Response::$method(answer)),
                    Err(error) => Err(error.into()),
                },)*
                other => {
                    let text = format!("{} is not offered here", other.method().name());
                    Err(Status::from_driver(Code::Unimplemented, text))
                }
            }
        }
    };
}

service! {
    /// The controller's calls. Each is answered with UNIMPLEMENTED until it is written.
    Controller, controller {
        /// Where the driver keeps its volumes, if it lets the kit do that. With a ledger the kit decides whether a
        /// volume is new, the same or incompatible, and whether it is known, before it calls the author; and it answers
        /// `ListVolumes`, `ControllerGetVolume` and `ValidateVolumeCapabilities` where the author does not.
        fn ledger(&self) -> Option<&Ledger> {
            None
        }

        /// The id of the volume, snapshot or group with this name. It must be the same at all times: calls that make
        /// something are kept apart by it from calls that name it by its id.
        fn id_of(&self, name: &str) -> String {
            super::id_of(name)
        }
    } {
        /// Makes a volume, or finds the one that this very call made before.
        create_volume: CreateVolume(CreateVolumeRequest) -> CreateVolumeResponse, CreateVolumeError;
        /// Deletes a volume. One that is not there is deleted.
        delete_volume: DeleteVolume(DeleteVolumeRequest) -> DeleteVolumeResponse, DeleteVolumeError;
        /// Makes a volume available on a node.
        controller_publish_volume: ControllerPublishVolume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse, ControllerPublishVolumeError;
        /// Takes a volume away from a node, or from all.
        controller_unpublish_volume: ControllerUnpublishVolume(ControllerUnpublishVolumeRequest) -> ControllerUnpublishVolumeResponse, ControllerUnpublishVolumeError;
        /// Says whether a volume can be used in certain ways.
        validate_volume_capabilities: ValidateVolumeCapabilities(ValidateVolumeCapabilitiesRequest) -> ValidateVolumeCapabilitiesResponse, ValidateVolumeCapabilitiesError;
        /// Lists volumes, page by page.
        list_volumes: ListVolumes(ListVolumesRequest) -> ListVolumesResponse, ListVolumesError;
        /// Says how much room is left.
        get_capacity: GetCapacity(GetCapacityRequest) -> GetCapacityResponse, GetCapacityError;
        /// Makes a snapshot of a volume, or finds the one that this very call made before.
        create_snapshot: CreateSnapshot(CreateSnapshotRequest) -> CreateSnapshotResponse, CreateSnapshotError;
        /// Deletes a snapshot. One that is not there is deleted.
        delete_snapshot: DeleteSnapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse, DeleteSnapshotError;
        /// Lists snapshots, page by page.
        list_snapshots: ListSnapshots(ListSnapshotsRequest) -> ListSnapshotsResponse, ListSnapshotsError;
        /// Describes a snapshot.
        get_snapshot: GetSnapshot(GetSnapshotRequest) -> GetSnapshotResponse, GetSnapshotError;
        /// Makes a volume larger.
        controller_expand_volume: ControllerExpandVolume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse, ControllerExpandVolumeError;
        /// Describes a volume.
        controller_get_volume: ControllerGetVolume(ControllerGetVolumeRequest) -> ControllerGetVolumeResponse, ControllerGetVolumeError;
        /// Changes a volume's mutable parameters.
        controller_modify_volume: ControllerModifyVolume(ControllerModifyVolumeRequest) -> ControllerModifyVolumeResponse, ControllerModifyVolumeError;
        /// Says how a volume is.
        controller_get_volume_health: ControllerGetVolumeHealth(ControllerGetVolumeHealthRequest) -> ControllerGetVolumeHealthResponse, ControllerGetVolumeHealthError;
        /// Says how volumes are, page by page.
        controller_list_volume_health: ControllerListVolumeHealth(ControllerListVolumeHealthRequest) -> ControllerListVolumeHealthResponse, ControllerListVolumeHealthError;
    }
}

service! {
    /// The group controller's calls. Each is answered with UNIMPLEMENTED until it is written.
    GroupController, group_controller {} {
        /// Makes snapshots of several volumes at one moment, or finds those that this very call made before.
        create_volume_group_snapshot: CreateVolumeGroupSnapshot(CreateVolumeGroupSnapshotRequest) -> CreateVolumeGroupSnapshotResponse, CreateVolumeGroupSnapshotError;
        /// Deletes a group of snapshots. One that is not there is deleted.
        delete_volume_group_snapshot: DeleteVolumeGroupSnapshot(DeleteVolumeGroupSnapshotRequest) -> DeleteVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotError;
        /// Describes a group of snapshots.
        get_volume_group_snapshot: GetVolumeGroupSnapshot(GetVolumeGroupSnapshotRequest) -> GetVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotError;
    }
}

service! {
    /// The node's calls. Each is answered with UNIMPLEMENTED until it is written.
    Node, node {} {
        /// Brings a volume to its staging path.
        node_stage_volume: NodeStageVolume(NodeStageVolumeRequest) -> NodeStageVolumeResponse, NodeStageVolumeError;
        /// Takes a volume from its staging path. One that is not there is taken.
        node_unstage_volume: NodeUnstageVolume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse, NodeUnstageVolumeError;
        /// Brings a volume to its target path.
        node_publish_volume: NodePublishVolume(NodePublishVolumeRequest) -> NodePublishVolumeResponse, NodePublishVolumeError;
        /// Takes a volume from its target path. One that is not there is taken.
        node_unpublish_volume: NodeUnpublishVolume(NodeUnpublishVolumeRequest) -> NodeUnpublishVolumeResponse, NodeUnpublishVolumeError;
        /// Says how much of a volume is used.
        node_get_volume_stats: NodeGetVolumeStats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse, NodeGetVolumeStatsError;
        /// Makes a volume larger where it is used.
        node_expand_volume: NodeExpandVolume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse, NodeExpandVolumeError;
        /// Says how a volume is, where it is used.
        node_get_volume_health: NodeGetVolumeHealth(NodeGetVolumeHealthRequest) -> NodeGetVolumeHealthResponse, NodeGetVolumeHealthError;
        /// Says how the node's storage is.
        node_get_storage_health: NodeGetStorageHealth(NodeGetStorageHealthRequest) -> NodeGetStorageHealthResponse, NodeGetStorageHealthError;
        /// Says which node this is, where it is, and how many volumes it can have.
        node_get_info: NodeGetInfo(NodeGetInfoRequest) -> NodeGetInfoResponse, NodeGetInfoError;
    }
}
