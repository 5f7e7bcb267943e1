//! The messages of Kubernetes 1.37, as far as somebody here reads or writes them. `make record-protos` records what
//! Kubernetes publishes about them, and a test compares the tables with that record.

mod container;
mod coordination;
mod core_v1;
mod meta;
mod node;
mod pod;
mod pod_volume;
mod requests;
mod storage;
mod volume;

use api::Kind;

use crate::Message;

pub use container::*;
pub use coordination::*;
pub use core_v1::*;
pub use meta::*;
pub use node::*;
pub use pod::*;
pub use pod_volume::*;
pub use requests::*;
pub use storage::*;
pub use volume::*;

/// The message of a kind that rules read or write. Kinds without one travel as JSON.
pub const fn message(kind: Kind) -> Option<&'static Message> {
    match kind {
        Kind::PersistentVolumeClaim => Some(&PERSISTENT_VOLUME_CLAIM),
        Kind::PersistentVolume => Some(&PERSISTENT_VOLUME),
        Kind::StorageClass => Some(&STORAGE_CLASS),
        Kind::VolumeAttachment => Some(&VOLUME_ATTACHMENT),
        Kind::CSIDriver => Some(&CSI_DRIVER),
        Kind::CSINode => Some(&CSI_NODE),
        Kind::Node => Some(&NODE),
        Kind::Pod => Some(&POD),
        Kind::VolumeAttributesClass => Some(&VOLUME_ATTRIBUTES_CLASS),
        Kind::CSIStorageCapacity => Some(&CSI_STORAGE_CAPACITY),
        Kind::Lease => Some(&LEASE),
        Kind::Secret => Some(&SECRET),
        Kind::ConfigMap => Some(&CONFIG_MAP),
        Kind::Event => Some(&EVENT),
        _others => None,
    }
}
