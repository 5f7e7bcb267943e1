//! In-tree plugins: code in this process that serves volumes as kubelet's own plugins did, with no driver behind a
//! socket. What they are asked has the words of CSI, since the same rules ask it; the volume has the plugin's own name.

use std::future::Future;
use std::pin::Pin;

use csi::{Call, Code, Response, Status, v1};

/// How an operation of a plugin ends.
pub type Done<'a> = Pin<Box<dyn Future<Output = Result<(), Status>> + Send + 'a>>;

/// An in-tree plugin of a node.
pub trait InTreePlugin: Send + Sync {
    /// Attaches the disk to this node, and mounts it where all its pods have it from.
    fn mount_device(&self, asked: v1::NodeStageVolumeRequest) -> Done<'_>;
    /// Takes that mount away, and detaches the disk.
    fn unmount_device(&self, asked: v1::NodeUnstageVolumeRequest) -> Done<'_>;
    /// Shows the disk to a pod.
    fn set_up(&self, asked: v1::NodePublishVolumeRequest) -> Done<'_>;
    /// Takes it from a pod.
    fn tear_down(&self, asked: v1::NodeUnpublishVolumeRequest) -> Done<'_>;
}

/// Has a plugin do what the rules ask of whoever serves a volume.
pub(crate) async fn perform(plugin: &dyn InTreePlugin, call: Call) -> Result<Response, Status> {
    match call {
        Call::NodeStageVolume(asked) => {
            plugin.mount_device(asked).await.map(|()| Response::NodeStageVolume(v1::NodeStageVolumeResponse {}))
        }
        Call::NodeUnstageVolume(asked) => {
            plugin.unmount_device(asked).await.map(|()| Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {}))
        }
        Call::NodePublishVolume(asked) => {
            plugin.set_up(asked).await.map(|()| Response::NodePublishVolume(v1::NodePublishVolumeResponse {}))
        }
        Call::NodeUnpublishVolume(asked) => {
            plugin.tear_down(asked).await.map(|()| Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {}))
        }
        other => {
            let text = format!("an in-tree plugin is not asked for {}", other.method().name());
            Err(Status::from_driver(Code::Unimplemented, text))
        }
    }
}
