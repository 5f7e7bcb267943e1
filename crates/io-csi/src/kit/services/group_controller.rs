//! The group controller service.

use std::future::Future;

use csi::{Call, Code, Response, Status, v1};

service! {
    /// The group controller service. The kit answers an RPC that the author does not write with UNIMPLEMENTED.
    GroupController, group_controller {} {
        /// Creates snapshots of several volumes at one moment, or returns those that an equal call created before.
        create_volume_group_snapshot: CreateVolumeGroupSnapshot(CreateVolumeGroupSnapshotRequest)
            -> CreateVolumeGroupSnapshotResponse, CreateVolumeGroupSnapshotError {
            /// One of the source volumes does not exist.
            SourceNotFound => NotFound,
            /// A group of that name exists, of other volumes.
            Incompatible => AlreadyExists,
            /// The driver cannot take snapshots of these volumes at one moment.
            NotTogether => FailedPrecondition,
            /// There is no room for the snapshots.
            OutOfSpace => ResourceExhausted,
        }
        /// Deletes a group of snapshots. If the group does not exist, this succeeds.
        delete_volume_group_snapshot: DeleteVolumeGroupSnapshot(DeleteVolumeGroupSnapshotRequest)
            -> DeleteVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotError {
            /// One of its snapshots is in use.
            InUse => FailedPrecondition,
        }
        /// Describes a group of snapshots.
        get_volume_group_snapshot: GetVolumeGroupSnapshot(GetVolumeGroupSnapshotRequest)
            -> GetVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotError {
            /// There is no such group.
            GroupNotFound => NotFound,
        }
    }
}
