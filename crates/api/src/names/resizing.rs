//! Keys and words of growing and modifying volumes.

/// Claim: the driver that resizes its volume, where an in-tree volume has been taken over.
pub const STORAGE_RESIZER: &str = "volume.kubernetes.io/storage-resizer";
/// Claim: the last resize left nothing to do for the node.
pub const NODE_EXPANSION_NOT_REQUIRED: &str = "volume.kubernetes.io/node-expansion-not-required";
/// Volume: the size its filesystem had before the resize that is under way.
pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// Volume: the secret ControllerModifyVolume needs.
pub const MODIFY_SECRET_NAME: &str = "volume.kubernetes.io/controller-modify-secret-name";
/// The namespace of that secret.
pub const MODIFY_SECRET_NAMESPACE: &str = "volume.kubernetes.io/controller-modify-secret-namespace";
/// Claim: written by a resizer that goes on with what it did not begin in this incarnation, so that a write still on
/// its way from an earlier incarnation meets a newer resource version and fails.
pub const RESIZE_ADOPTED: &str = "longshore.dev/resizing-adopted-at";

/// Resize status: the driver is at work on it.
pub const CONTROLLER_RESIZE_IN_PROGRESS: &str = "ControllerResizeInProgress";
/// Resize status: the driver will never do it.
pub const CONTROLLER_RESIZE_INFEASIBLE: &str = "ControllerResizeInfeasible";
/// Resize status: it is the node's turn.
pub const NODE_RESIZE_PENDING: &str = "NodeResizePending";
/// Resize status: the node is at work on it.
pub const NODE_RESIZE_IN_PROGRESS: &str = "NodeResizeInProgress";
/// Resize status: the node will never do it.
pub const NODE_RESIZE_INFEASIBLE: &str = "NodeResizeInfeasible";

/// Claim condition: its volume is being resized.
pub const RESIZING: &str = "Resizing";
/// Claim condition: the node has to resize the filesystem.
pub const FILE_SYSTEM_RESIZE_PENDING: &str = "FileSystemResizePending";
/// Claim condition: the driver failed to resize the volume.
pub const CONTROLLER_RESIZE_ERROR: &str = "ControllerResizeError";
/// Claim condition: the node failed to resize the volume.
pub const NODE_RESIZE_ERROR: &str = "NodeResizeError";
/// Claim condition: its volume's attributes are being changed.
pub const MODIFYING_VOLUME: &str = "ModifyingVolume";
/// Claim condition: changing them failed.
pub const MODIFY_VOLUME_ERROR: &str = "ModifyVolumeError";

/// Modify status: the attributes class is not there yet.
pub const MODIFY_PENDING: &str = "Pending";
/// Modify status: the driver is at work on it.
pub const MODIFY_IN_PROGRESS: &str = "InProgress";
/// Modify status: the driver will never do it.
pub const MODIFY_INFEASIBLE: &str = "Infeasible";

/// Key under which a driver is told the claim's name.
pub const CLAIM_NAME_PARAMETER: &str = "csi.storage.k8s.io/pvc/name";
/// Key under which a driver is told the claim's namespace.
pub const CLAIM_NAMESPACE_PARAMETER: &str = "csi.storage.k8s.io/pvc/namespace";
/// Key under which a driver is told the volume's name.
pub const VOLUME_NAME_PARAMETER: &str = "csi.storage.k8s.io/pv/name";
