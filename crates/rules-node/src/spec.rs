use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::PersistentVolume;
use csi::v1;

/// What a driver is told about a volume: plain data taken from the PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeSpec {
    /// The PersistentVolume's name.
    pub volume: String,
    /// Filesystem type as it stands there, perhaps empty.
    pub fs_type: String,
    /// Mount flags.
    pub mount_flags: Vec<String>,
    /// Access mode.
    pub access: Access,
    /// Only one pod at a time may use it.
    pub one_pod: bool,
    /// Context from the volume's creation.
    pub volume_context: BTreeMap<String, String>,
    /// Context from the attachment.
    pub publish_context: BTreeMap<String, String>,
    /// The driver wants to know for which pod it publishes.
    pub pod_info: bool,
    /// A reason why such a volume cannot be mounted yet.
    pub unsupported: Option<&'static str>,
}

/// How a volume may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// By one node.
    #[default]
    OneWriter,
    /// By many nodes, read-only.
    ManyReaders,
    /// By many nodes.
    ManyWriters,
}

impl VolumeSpec {
    /// The volume's part of the spec (KL-66, KL-71).
    pub fn of(volume: &PersistentVolume) -> VolumeSpec {
        let csi = volume.spec.csi.clone().unwrap_or_default();
        let secrets = csi.node_stage_secret_ref.is_some() || csi.node_publish_secret_ref.is_some();
        VolumeSpec {
            volume: volume.metadata.name.clone(),
            fs_type: csi.fs_type,
            mount_flags: volume.spec.mount_options.clone(),
            access: access(&volume.spec.access_modes),
            one_pod: volume.spec.access_modes == ["ReadWriteOncePod"],
            volume_context: csi.volume_attributes,
            publish_context: BTreeMap::new(),
            pod_info: false,
            unsupported: match (volume.volume_mode(), secrets) {
                ("Block", _) => Some("raw block volumes are not supported yet; use volumeMode Filesystem"),
                (_, true) => Some("volumes that need secrets on the node are not supported yet"),
                (_, false) => None,
            },
        }
    }

    /// The capability as CSI says it.
    pub fn capability(&self) -> v1::VolumeCapability {
        use v1::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
        let mode = match self.access {
            Access::OneWriter => Mode::SingleNodeWriter,
            Access::ManyReaders => Mode::MultiNodeReaderOnly,
            Access::ManyWriters => Mode::MultiNodeMultiWriter,
        };
        v1::VolumeCapability {
            access_mode: Some(AccessMode { mode: mode as i32 }),
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: self.fs_type.clone(),
                mount_flags: self.mount_flags.clone(),
                ..MountVolume::default()
            })),
        }
    }
}

/// KL-73 for drivers without SINGLE_NODE_MULTI_WRITER: the first mode counts, and none means ReadWriteOnce.
fn access(modes: &[String]) -> Access {
    match modes.first().map(String::as_str) {
        Some("ReadOnlyMany") => Access::ManyReaders,
        Some("ReadWriteMany") => Access::ManyWriters,
        Some(_) | None => Access::OneWriter,
    }
}
