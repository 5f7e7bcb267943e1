//! Volumes that a pod's own spec asks a driver for (`volumes[].csi`), made by publishing and gone with unpublishing
//! (KL-103).

use alloc::string::String;
use alloc::sync::Arc;

use api::{InlineCsi, Pod, PodVolume, names};
use control::Cache;

use crate::local::Local;
use crate::uses::ContainerUses;

/// The inline volumes of a pod that some container uses, with the name the driver is given for each.
pub fn of_pod(pod: &Pod) -> impl Iterator<Item = (&PodVolume, &InlineCsi, String)> {
    pod.spec.volumes.iter().filter_map(|volume| {
        let csi = volume.csi.as_ref().filter(|_| ContainerUses::of(pod, &volume.name).any())?;
        Some((volume, csi, names::inline_volume_handle(&pod.metadata.uid, &volume.name)))
    })
}

/// The handle has the form of an inline volume's.
pub fn is_handle(handle: &str) -> bool {
    let hash = handle.strip_prefix("csi-").unwrap_or_default();
    hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The pod of this node and the name of its volume with this handle.
pub fn find(driver: &str, handle: &str, cache: &Cache, local: &Local) -> Option<(Arc<Pod>, String)> {
    if !is_handle(handle) {
        return None;
    }
    cache.pods_by_node(&local.node).find_map(|pod| {
        let name = of_pod(&pod).find(|(_, csi, own)| csi.driver == driver && own == handle)?.0.name.clone();
        Some((pod.clone(), name))
    })
}
