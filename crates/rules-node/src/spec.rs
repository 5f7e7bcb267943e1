use alloc::collections::BTreeMap;
use alloc::string::String;

use api::PersistentVolume;
use control::{Capability, Mode};

/// What a driver is told about a volume: plain data taken from the PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VolumeSpec {
    /// The PersistentVolume's name.
    pub volume: String,
    /// How it is going to be used.
    pub capability: Capability,
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

impl VolumeSpec {
    /// The volume's part of the spec (KL-66, KL-71).
    pub fn of(volume: &PersistentVolume) -> VolumeSpec {
        let csi = volume.spec.csi.clone().unwrap_or_default();
        let secrets = csi.node_stage_secret_ref.is_some() || csi.node_publish_secret_ref.is_some();
        VolumeSpec {
            volume: volume.metadata.name.clone(),
            capability: Capability::new(
                mode(&volume.spec.access_modes),
                volume.volume_mode(),
                &csi.fs_type,
                &volume.spec.mount_options,
            ),
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
}

/// KL-73 for drivers without SINGLE_NODE_MULTI_WRITER: the first mode counts, and none means ReadWriteOnce.
fn mode(modes: &[String]) -> Mode {
    match modes.first().map(String::as_str) {
        Some("ReadOnlyMany") => Mode::MultiNodeReader,
        Some("ReadWriteMany") => Mode::MultiNodeWriter,
        Some(_) | None => Mode::SingleNodeWriter,
    }
}
