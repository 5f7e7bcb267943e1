//! What a driver is told when it stages and publishes a volume.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use control::Secrets;
use csi::v1::volume_capability::AccessType;
use csi::{Call, v1};

use crate::spec::VolumeSpec;

/// What NodePublishVolume is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Publishing {
    /// The driver that is called.
    pub driver: String,
    /// The driver's name for the volume.
    pub handle: String,
    /// Where it is staged.
    pub staging: Option<String>,
    /// Where the pod's containers find it.
    pub target: String,
    /// The pod may only read it.
    pub read_only: bool,
    /// What the driver is told of the volume.
    pub spec: VolumeSpec,
    /// What the driver is told about the pod.
    pub pod_info: BTreeMap<String, String>,
    /// The group it is to mount for.
    pub mount_group: Option<u32>,
    /// What nobody else is told.
    pub secrets: Secrets,
    /// Tokens of the pod's service account.
    pub tokens: Secrets,
}

impl Publishing {
    pub(crate) fn call(&self) -> Call {
        let mut volume_context = self.spec.volume_context.clone();
        volume_context.extend(self.pod_info.clone());
        let mut secrets = self.secrets.0.clone();
        let tokens = self.tokens.0.clone();
        if self.spec.tokens.in_secrets {
            secrets.extend(tokens)
        } else {
            volume_context.extend(tokens)
        }
        Call::NodePublishVolume(v1::NodePublishVolumeRequest {
            volume_id: self.handle.clone(),
            publish_context: self.spec.publish_context.clone(),
            staging_target_path: self.staging.clone().unwrap_or_default(),
            target_path: self.target.clone(),
            volume_capability: Some(capability(&self.spec, self.mount_group)),
            readonly: self.read_only,
            secrets,
            volume_context,
        })
    }
}

/// NodeStageVolume for a volume.
pub(crate) fn stage(handle: &str, path: &str, spec: &VolumeSpec, mount_group: Option<u32>, secrets: &Secrets) -> Call {
    Call::NodeStageVolume(v1::NodeStageVolumeRequest {
        volume_id: handle.into(),
        publish_context: spec.publish_context.clone(),
        staging_target_path: path.into(),
        volume_capability: Some(capability(spec, mount_group)),
        secrets: secrets.0.clone(),
        volume_context: spec.volume_context.clone(),
    })
}

/// KL-81: a driver that can gives the volume to the pod's group itself.
fn capability(spec: &VolumeSpec, mount_group: Option<u32>) -> v1::VolumeCapability {
    let mut capability = spec.capability.to_csi();
    if let (Some(AccessType::Mount(mount)), Some(group)) = (&mut capability.access_type, mount_group) {
        mount.volume_mount_group = format!("{group}");
    }
    capability
}
