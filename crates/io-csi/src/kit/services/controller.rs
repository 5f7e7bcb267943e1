//! The controller service.

use std::future::Future;

use csi::{Call, Code, Response, Status, v1};

use crate::kit::{Ledger, id_of};

service! {
    /// The controller service. The kit answers an RPC that the author does not write with UNIMPLEMENTED.
    Controller, controller {
        /// The ledger in which the kit keeps the driver's volumes, if the driver wants that. With a ledger the kit decides
        /// whether a volume is new, the same, incompatible or unknown before it calls the author, and it answers
        /// `ListVolumes`, `ControllerGetVolume` and `ValidateVolumeCapabilities` where the author does not.
        fn ledger(&self) -> Option<&Ledger> {
            None
        }

        /// The id of the volume, snapshot or group with this name. It must be the same at all times: by it the kit locks
        /// what a call creates against calls that name it by its id.
        fn id_of(&self, name: &str) -> String {
            id_of(name)
        }
    } {
        /// Creates a volume, or returns the one that an equal call created before.
        create_volume: CreateVolume(CreateVolumeRequest) -> CreateVolumeResponse, CreateVolumeError {
            /// The source snapshot or source volume does not exist.
            SourceNotFound => NotFound,
            /// A volume of that name exists, and differs from the request.
            Incompatible => AlreadyExists,
            /// There is no room where the volume has to be.
            OutOfSpace => ResourceExhausted,
            /// A volume cannot have such a size.
            Size => OutOfRange,
        }
        /// Deletes a volume. If the volume does not exist, this succeeds.
        delete_volume: DeleteVolume(DeleteVolumeRequest) -> DeleteVolumeResponse, DeleteVolumeError {
            /// The volume is in use.
            InUse => FailedPrecondition,
        }
        /// Attaches a volume to a node.
        controller_publish_volume: ControllerPublishVolume(ControllerPublishVolumeRequest)
            -> ControllerPublishVolumeResponse, ControllerPublishVolumeError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
            /// There is no such node.
            NodeNotFound => NotFound,
            /// The volume is attached to the node with another capability.
            Incompatible => AlreadyExists,
            /// The volume is attached to another node, and can be attached to one only.
            Elsewhere => FailedPrecondition,
            /// The node has as many volumes as it can have attached.
            NodeFull => ResourceExhausted,
        }
        /// Detaches a volume from a node, or from all nodes.
        controller_unpublish_volume: ControllerUnpublishVolume(ControllerUnpublishVolumeRequest)
            -> ControllerUnpublishVolumeResponse, ControllerUnpublishVolumeError {
            /// There is no such volume, and the driver cannot say that it is not attached.
            VolumeNotFound => NotFound,
            /// There is no such node, and the driver cannot say that the volume is not attached to it.
            NodeNotFound => NotFound,
        }
        /// Says whether a volume has certain capabilities.
        validate_volume_capabilities: ValidateVolumeCapabilities(ValidateVolumeCapabilitiesRequest)
            -> ValidateVolumeCapabilitiesResponse, ValidateVolumeCapabilitiesError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
        }
        /// Lists volumes, page by page.
        list_volumes: ListVolumes(ListVolumesRequest) -> ListVolumesResponse, ListVolumesError {
            /// The token does not continue a list. The caller lists from the start.
            BadToken => Aborted,
        }
        /// Returns how much room is left.
        get_capacity: GetCapacity(GetCapacityRequest) -> GetCapacityResponse, GetCapacityError {}
        /// Creates a snapshot of a volume, or returns the one that an equal call created before.
        create_snapshot: CreateSnapshot(CreateSnapshotRequest) -> CreateSnapshotResponse, CreateSnapshotError {
            /// The source volume does not exist.
            SourceNotFound => NotFound,
            /// A snapshot of that name exists, of another volume.
            Incompatible => AlreadyExists,
            /// There is no room for the snapshot.
            OutOfSpace => ResourceExhausted,
        }
        /// Deletes a snapshot. If the snapshot does not exist, this succeeds.
        delete_snapshot: DeleteSnapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse, DeleteSnapshotError {
            /// The snapshot is in use.
            InUse => FailedPrecondition,
        }
        /// Lists snapshots, page by page.
        list_snapshots: ListSnapshots(ListSnapshotsRequest) -> ListSnapshotsResponse, ListSnapshotsError {
            /// The token does not continue a list. The caller lists from the start.
            BadToken => Aborted,
        }
        /// Describes a snapshot.
        get_snapshot: GetSnapshot(GetSnapshotRequest) -> GetSnapshotResponse, GetSnapshotError {
            /// There is no such snapshot.
            SnapshotNotFound => NotFound,
        }
        /// Expands a volume.
        controller_expand_volume: ControllerExpandVolume(ControllerExpandVolumeRequest)
            -> ControllerExpandVolumeResponse, ControllerExpandVolumeError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
            /// The volume cannot be expanded while it is in use.
            InUse => FailedPrecondition,
            /// A volume cannot have such a size.
            Size => OutOfRange,
        }
        /// Describes a volume.
        controller_get_volume: ControllerGetVolume(ControllerGetVolumeRequest)
            -> ControllerGetVolumeResponse, ControllerGetVolumeError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
        }
        /// Changes a volume's mutable parameters.
        controller_modify_volume: ControllerModifyVolume(ControllerModifyVolumeRequest)
            -> ControllerModifyVolumeResponse, ControllerModifyVolumeError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
        }
        /// Returns the health of a volume.
        controller_get_volume_health: ControllerGetVolumeHealth(ControllerGetVolumeHealthRequest)
            -> ControllerGetVolumeHealthResponse, ControllerGetVolumeHealthError {
            /// There is no such volume.
            VolumeNotFound => NotFound,
        }
        /// Lists the health of volumes, page by page.
        controller_list_volume_health: ControllerListVolumeHealth(ControllerListVolumeHealthRequest)
            -> ControllerListVolumeHealthResponse, ControllerListVolumeHealthError {
            /// The token does not continue a list. The caller lists from the start.
            BadToken => Aborted,
        }
    }
}
