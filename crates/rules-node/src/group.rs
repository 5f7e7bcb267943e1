//! `fsGroup`: whether and how the files of a published volume are given to a pod's group (KL-81, KL-82, KL-84).

use api::{AccessMode, CSIDriver, InlineCsi, PersistentVolume, Pod, VolumeMode};
use csi::NodeRpc;

use crate::local::DriverFacts;

/// The default of `CSIDriver.spec.fsGroupPolicy`.
const BY_TYPE: &str = "ReadWriteOnceWithFSType";

/// The files of a volume are given to a group after it was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupChange {
    pub group: u32,
    /// Only if the volume's root is not the group's yet (`fsGroupChangePolicy: OnRootMismatch`).
    pub only_if_root_differs: bool,
}

/// What of a volume says whether its files are given to a group.
#[derive(Clone, Copy)]
pub struct Grouped<'a> {
    /// The filesystem's type; empty if nobody said.
    pub fs_type: &'a str,
    /// The volume's access modes; `None` for a volume in a pod, which is that pod's alone.
    pub access_modes: Option<&'a [AccessMode]>,
    /// It is published read-only.
    pub read_only: bool,
    /// It is a raw device.
    pub block: bool,
}

impl Grouped<'_> {
    /// Of a PersistentVolume, published read-only or not.
    pub fn of(volume: &PersistentVolume, read_only: bool) -> Grouped<'_> {
        Grouped {
            fs_type: volume.spec.csi.as_ref().map(|csi| csi.fs_type.as_str()).unwrap_or_default(),
            access_modes: Some(&volume.spec.access_modes),
            read_only,
            block: *volume.volume_mode() == VolumeMode::Block,
        }
    }

    /// Of a volume in a pod's own spec.
    pub fn inline(csi: &InlineCsi) -> Grouped<'_> {
        let fs_type = csi.fs_type.as_deref().unwrap_or_default();
        Grouped { fs_type, access_modes: None, read_only: csi.read_only == Some(true), block: false }
    }
}

/// The pod's group, as the kernel counts. One that is no number of the kernel's keeps the pod from running anyway.
pub fn fs_group(pod: &Pod) -> Option<u32> {
    pod.spec.security_context.fs_group.and_then(|group| u32::try_from(group).ok()).filter(|group| *group != u32::MAX)
}

/// The group that the driver itself is told, if it takes one.
pub fn for_driver(pod: &Pod, facts: Option<&DriverFacts>) -> Option<u32> {
    fs_group(pod).filter(|_| facts.is_some_and(|facts| facts.can(NodeRpc::VolumeMountGroup)))
}

/// The change that is due after publishing, if any.
pub fn change(
    pod: &Pod,
    volume: &Grouped<'_>,
    driver: Option<&CSIDriver>,
    facts: Option<&DriverFacts>,
) -> Option<GroupChange> {
    let group = fs_group(pod)?;
    if volume.block || volume.read_only || facts.is_some_and(|facts| facts.can(NodeRpc::VolumeMountGroup)) {
        return None;
    }
    let policy = driver.and_then(|driver| driver.spec.fs_group_policy.as_deref()).unwrap_or(BY_TYPE);
    let is_once = |mode: &AccessMode| matches!(mode, AccessMode::ReadWriteOnce | AccessMode::ReadWriteOncePod);
    let once = |modes: &[AccessMode]| modes.iter().any(is_once);
    let applies = match policy {
        "None" => false,
        "File" => true,
        _by_type => !volume.fs_type.is_empty() && volume.access_modes.is_none_or(once),
    };
    let on_mismatch = pod.spec.security_context.fs_group_change_policy.as_deref() == Some("OnRootMismatch");
    applies.then_some(GroupChange { group, only_if_root_differs: on_mismatch })
}
