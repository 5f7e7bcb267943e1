//! SC-14 to SC-17: how many volumes of a driver a node has and takes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ObjectKey, PersistentVolume, Pod};
use control::Cache;

use super::claims::reserved;
use crate::DriverRoom;

/// Volumes by driver. A volume that several pods share counts once.
type Volumes = BTreeMap<String, BTreeSet<String>>;

/// SC-15: the volumes of a pod's claims. A claim without one counts for the driver that will make it. Volumes that pods
/// describe themselves are not attached and do not count.
pub(super) fn volumes(pod: &Pod, cache: &Cache) -> Volumes {
    let mut found = Volumes::new();
    for name in pod.claim_names() {
        let key = ObjectKey::new(pod.metadata.namespace.as_str(), &*name);
        let Some(claim) = cache.claim(&key) else { continue };
        let volume = match claim.spec.volume_name.as_str() {
            "" => reserved(&claim, cache),
            name => cache.volume(&ObjectKey::cluster(name)),
        };
        let class = || cache.class(&ObjectKey::cluster(claim.class()?));
        let one = match volume {
            Some(volume) => handle(&volume),
            // Until it has a handle it counts under its claim's name.
            None => class().map(|class| (class.provisioner.clone(), format!("not made yet: {key}"))),
        };
        note(&mut found, one);
    }
    found
}

fn note(found: &mut Volumes, one: Option<(String, String)>) {
    if let Some((driver, handle)) = one {
        found.entry(driver).or_default().insert(handle);
    }
}

fn handle(volume: &PersistentVolume) -> Option<(String, String)> {
    volume.spec.csi.as_ref().map(|csi| (csi.driver.clone(), csi.volume_handle.clone()))
}

/// The drivers that a pod's volumes need, as they are on a node.
pub(super) fn rooms(wanted: &Volumes, node: &str, pods: &[Arc<Pod>], cache: &Cache) -> Vec<DriverRoom> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let installed = cache.csi_node(&ObjectKey::cluster(node));
    let mut there: Option<Volumes> = None;
    let room = |(driver, volumes): (&String, &BTreeSet<String>)| {
        let entry = installed.iter().flat_map(|node| &node.spec.drivers).find(|entry| entry.name == *driver);
        let required = || {
            let object = cache.driver(&ObjectKey::cluster(driver.as_str()));
            object.is_some_and(|object| object.spec.prevent_pod_scheduling_if_missing == Some(true))
        };
        let mut room =
            DriverRoom { driver: driver.clone(), absent: entry.is_none() && required(), ..Default::default() };
        let limit = entry.and_then(|entry| entry.allocatable.as_ref()?.count);
        if let Some(limit) = limit {
            let there = there.get_or_insert_with(|| in_use(node, pods, cache));
            let used = there.get(driver);
            room.limit = Some(usize::try_from(limit).unwrap_or(0));
            room.used = used.map_or(0, BTreeSet::len);
            room.new = volumes.iter().filter(|volume| !used.is_some_and(|used| used.contains(*volume))).count();
        }
        room
    };
    wanted.iter().map(room).collect()
}

/// SC-16: what the node's pods use, and what is attached to it although no pod uses it any more.
fn in_use(node: &str, pods: &[Arc<Pod>], cache: &Cache) -> Volumes {
    let mut found = Volumes::new();
    for pod in pods {
        for (driver, handles) in volumes(pod, cache) {
            found.entry(driver).or_default().extend(handles);
        }
    }
    for attachment in cache.attachments_by_node(node) {
        let volume = attachment.volume().and_then(|name| cache.volume(&ObjectKey::cluster(name)));
        note(&mut found, volume.and_then(|volume| handle(&volume)));
    }
    found
}
