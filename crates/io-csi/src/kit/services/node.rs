//! The node service.

use std::future::Future;

use csi::{Call, Code, Response, Status, v1};

service! {
    /// The node service. The kit answers an RPC that the author does not write with UNIMPLEMENTED.
    Node, node {} {
        /// Mounts a volume at its staging path.
        node_stage_volume: NodeStageVolume(NodeStageVolumeRequest) -> NodeStageVolumeResponse, NodeStageVolumeError {
            /// There is no such volume on this node.
            VolumeNotFound => NotFound,
            /// The volume is mounted there with another capability.
            Incompatible => AlreadyExists,
            /// The volume cannot be used like this.
            NotPossible => FailedPrecondition,
        }
        /// Unmounts a volume from its staging path. If it is not mounted there, this succeeds.
        node_unstage_volume: NodeUnstageVolume(NodeUnstageVolumeRequest)
            -> NodeUnstageVolumeResponse, NodeUnstageVolumeError {
            /// There is no such volume on this node.
            VolumeNotFound => NotFound,
            /// The volume is still published.
            InUse => FailedPrecondition,
        }
        /// Mounts a volume at its target path.
        node_publish_volume: NodePublishVolume(NodePublishVolumeRequest)
            -> NodePublishVolumeResponse, NodePublishVolumeError {
            /// There is no such volume on this node.
            VolumeNotFound => NotFound,
            /// The volume is mounted there with another capability.
            Incompatible => AlreadyExists,
            /// The volume cannot be used like this, or not yet.
            NotPossible => FailedPrecondition,
        }
        /// Unmounts a volume from its target path. If it is not mounted there, this succeeds.
        node_unpublish_volume: NodeUnpublishVolume(NodeUnpublishVolumeRequest)
            -> NodeUnpublishVolumeResponse, NodeUnpublishVolumeError {
            /// There is no such volume on this node.
            VolumeNotFound => NotFound,
        }
        /// Returns how much of a volume is used.
        node_get_volume_stats: NodeGetVolumeStats(NodeGetVolumeStatsRequest)
            -> NodeGetVolumeStatsResponse, NodeGetVolumeStatsError {
            /// There is no such volume, or not at that path.
            VolumeNotFound => NotFound,
        }
        /// Expands a volume on its node.
        node_expand_volume: NodeExpandVolume(NodeExpandVolumeRequest)
            -> NodeExpandVolumeResponse, NodeExpandVolumeError {
            /// There is no such volume, or not at that path.
            VolumeNotFound => NotFound,
            /// The volume cannot be expanded while it is in use.
            InUse => FailedPrecondition,
            /// The volume cannot have such a size.
            Size => OutOfRange,
        }
        /// Returns the health of a volume on its node.
        node_get_volume_health: NodeGetVolumeHealth(NodeGetVolumeHealthRequest)
            -> NodeGetVolumeHealthResponse, NodeGetVolumeHealthError {
            /// There is no such volume, or not at that path.
            VolumeNotFound => NotFound,
        }
        /// Returns the health of the node's storage.
        node_get_storage_health: NodeGetStorageHealth(NodeGetStorageHealthRequest)
            -> NodeGetStorageHealthResponse, NodeGetStorageHealthError {}
        /// Returns the node's id, its topology, and how many volumes it can have.
        node_get_info: NodeGetInfo(NodeGetInfoRequest) -> NodeGetInfoResponse, NodeGetInfoError {}
    }
}
