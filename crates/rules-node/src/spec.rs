use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use api::{AccessMode, CSIDriver, InlineCsi, ObjectKey, PersistentVolume, Pod, PodVolume, SecretReference, VolumeMode};
use control::{Access, Cache, Capability, Mode};
use csi::NodeRpc;

use crate::local::{DriverFacts, Local};
use crate::tokens::TokenWishes;

/// What a driver is told about a volume: plain data taken from the PersistentVolume, or from the pod for a volume in
/// its own spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeSpec {
    /// The PersistentVolume's name, or the volume's name in its pod (KL-61).
    pub volume: String,
    /// How it is going to be used.
    pub capability: Capability,
    /// It was made for an in-tree plugin whose work the driver has taken over.
    pub migrated: bool,
    /// Only one pod at a time may use it.
    pub one_pod: bool,
    /// It is in a pod's own spec: nothing is attached or staged.
    pub ephemeral: bool,
    /// Context from the volume's creation.
    pub volume_context: BTreeMap<String, String>,
    /// Context from the attachment.
    pub publish_context: BTreeMap<String, String>,
    /// The CSIDriver asks for the pod (`podInfoOnMount`).
    pub pod_info: bool,
    /// The driver wants to publish again and again while the pod runs (`requiresRepublish`).
    pub republish: bool,
    /// What NodeStageVolume takes along.
    pub stage_secret: Option<SecretReference>,
    /// What NodePublishVolume takes along.
    pub publish_secret: Option<SecretReference>,
    /// Tokens of the pod's service account that NodePublishVolume takes along.
    pub tokens: TokenWishes,
    /// A reason why such a volume cannot be mounted.
    pub refused: Option<String>,
}

impl VolumeSpec {
    /// The volume's part of the spec (KL-66, KL-71).
    pub fn of(volume: &PersistentVolume, facts: Option<&DriverFacts>) -> VolumeSpec {
        let csi = volume.spec.csi.clone().unwrap_or_default();
        let first = volume.spec.access_modes.first();
        VolumeSpec {
            volume: volume.metadata.name.clone(),
            capability: Capability::new(
                mode(first, facts),
                volume.volume_mode(),
                &csi.fs_type,
                &volume.spec.mount_options,
            ),
            one_pod: volume.spec.access_modes == [AccessMode::ReadWriteOncePod],
            volume_context: csi.volume_attributes,
            stage_secret: csi.node_stage_secret_ref,
            publish_secret: csi.node_publish_secret_ref,
            ..VolumeSpec::default()
        }
    }

    /// The same of a volume in a pod's own spec (KL-71, KL-80, KL-103).
    pub fn inline(pod: &Pod, volume: &PodVolume, csi: &InlineCsi, facts: Option<&DriverFacts>) -> VolumeSpec {
        let fs_type = csi.fs_type.as_deref().unwrap_or_default();
        let secret = csi.node_publish_secret_ref.as_ref();
        VolumeSpec {
            volume: volume.name.clone(),
            capability: Capability::new(mode(None, facts), &VolumeMode::Filesystem, fs_type, &[]),
            ephemeral: true,
            volume_context: csi.volume_attributes.clone(),
            publish_secret: secret
                .map(|secret| SecretReference { name: secret.name.clone(), namespace: pod.metadata.namespace.clone() }),
            ..VolumeSpec::default()
        }
    }

    /// What the driver's object asks for.
    #[must_use]
    pub fn by(self, driver: Option<&CSIDriver>) -> VolumeSpec {
        let asks = |flag: fn(&api::DriverSpec) -> Option<bool>| driver.and_then(|d| flag(&d.spec)).unwrap_or(false);
        VolumeSpec {
            pod_info: asks(|spec| spec.pod_info_on_mount),
            republish: asks(|spec| spec.requires_republish),
            refused: lifecycle_refused(self.ephemeral, driver),
            // Raw devices come without.
            tokens: driver.filter(|_| !self.is_block()).map(|d| TokenWishes::of(&d.spec)).unwrap_or_default(),
            ..self
        }
    }

    /// It is a raw device.
    pub fn is_block(&self) -> bool {
        match self.capability.access {
            Access::Block => true,
            Access::Mount { .. } => false,
        }
    }
}

/// KL-70: which ways of asking for a volume the driver takes. Without an object only claims.
fn lifecycle_refused(ephemeral: bool, driver: Option<&CSIDriver>) -> Option<String> {
    let mode = if ephemeral { "Ephemeral" } else { "Persistent" };
    match driver {
        None if ephemeral => Some(String::from(
            "there is no CSIDriver object of its driver, so pods cannot ask for its volumes in their own spec; use a \
             claim",
        )),
        None => None,
        Some(driver) => {
            let listed = &driver.spec.volume_lifecycle_modes;
            let offered = if listed.is_empty() { !ephemeral } else { listed.iter().any(|one| one == mode) };
            let name = &driver.metadata.name;
            (!offered).then(|| format!("volumeLifecycleModes of CSIDriver {name} does not list {mode}"))
        }
    }
}

/// KL-50: a pod that named its node itself was looked at by no scheduler, so the node looks.
pub fn out_of_reach(volume: &PersistentVolume, cache: &Cache, local: &Local) -> Option<String> {
    let node = cache.node(&ObjectKey::cluster(local.node.clone()))?;
    let affinity = volume.spec.node_affinity.as_ref()?;
    let name = &volume.metadata.name;
    (!affinity.admits(&local.node, &node.metadata.labels)).then(|| {
        format!(
            "volume {name} cannot be reached from node {}: no term of its node affinity matches the node",
            local.node
        )
    })
}

/// KL-73: the first access mode counts, and none means ReadWriteOnce.
fn mode(first: Option<&AccessMode>, facts: Option<&DriverFacts>) -> Mode {
    let several = facts.is_some_and(|facts| facts.can(NodeRpc::SingleNodeMultiWriter));
    match (first, several) {
        (Some(AccessMode::ReadOnlyMany), _) => Mode::MultiNodeReader,
        (Some(AccessMode::ReadWriteMany), _) => Mode::MultiNodeWriter,
        (Some(AccessMode::ReadWriteOncePod), true) => Mode::SingleNodeSingleWriter,
        (Some(_) | None, true) => Mode::SingleNodeMultiWriter,
        (Some(_) | None, false) => Mode::SingleNodeWriter,
    }
}
