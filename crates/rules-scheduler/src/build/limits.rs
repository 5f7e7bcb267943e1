//! SC-14 to SC-17: how many volumes of a driver a node has and takes.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CSINode, ObjectKey, PersistentVolume, Pod};
use control::Cache;
use rules_translate::{NodeSays, Plugin, handle_of, inline_to_csi, plugin_of};

use super::claims::reserved;
use crate::DriverRoom;

/// Volumes by driver. A volume that several pods share counts once.
type Volumes = BTreeMap<String, BTreeSet<String>>;

/// The volumes of a pod. Those of an in-tree plugin count where the node leaves the plugin to its driver (S4-25).
#[derive(Default)]
pub(super) struct Wanted {
    of_drivers: Volumes,
    of_plugins: Vec<(Plugin, String)>,
}

impl Wanted {
    fn note(&mut self, plugin: Option<Plugin>, one: Option<(String, String)>) {
        match (plugin, one) {
            (Some(plugin), Some((_, handle))) => self.of_plugins.push((plugin, handle)),
            (None, one) => note(&mut self.of_drivers, one),
            (Some(_), None) => {}
        }
    }

    /// As they count on a node.
    fn on(&self, node: Option<&CSINode>) -> Cow<'_, Volumes> {
        let says = NodeSays::of(node);
        let mut counted = Cow::Borrowed(&self.of_drivers);
        for (plugin, handle) in self.of_plugins.iter().filter(|(plugin, _)| says.leaves_to_csi(*plugin)) {
            note(counted.to_mut(), Some((plugin.driver().into(), handle.clone())));
        }
        counted
    }
}

/// SC-15: the volumes of a pod's claims. A claim without one counts for the driver that will make it. Of volumes that
/// pods describe themselves those of in-tree plugins are attached and count (SC-14).
pub(super) fn volumes(pod: &Pod, cache: &Cache) -> Wanted {
    let mut found = Wanted::default();
    for name in pod.claim_names() {
        let key = ObjectKey::new(pod.metadata.namespace.as_str(), &*name);
        let Some(claim) = cache.claim(&key) else { continue };
        let volume = match claim.spec.volume_name.as_str() {
            "" => reserved(&claim, cache),
            name => cache.volume(&ObjectKey::cluster(name)),
        };
        let class = || cache.class(&ObjectKey::cluster(claim.class()?));
        match volume {
            Some(volume) => found.note(plugin_of(&volume), handle(&volume)),
            // Until it has a handle it counts under its claim's name.
            None => {
                let made_by = class().map(|class| class.provisioner.clone());
                let plugin = made_by.as_deref().and_then(Plugin::named);
                found.note(plugin, made_by.map(|driver| (driver, format!("not made yet: {key}"))));
            }
        }
    }
    for volume in pod.spec.volumes.iter().filter(|volume| volume.in_tree.is_some()) {
        let seen = inline_to_csi(volume, &pod.metadata.namespace).ok().and_then(|seen| seen.object.spec.csi);
        let plugin = volume.in_tree.as_deref().and_then(Plugin::of);
        found.note(plugin, seen.map(|csi| (csi.driver, csi.volume_handle)));
    }
    found
}

fn note(found: &mut Volumes, one: Option<(String, String)>) {
    if let Some((driver, handle)) = one {
        found.entry(driver).or_default().insert(handle);
    }
}

fn handle(volume: &PersistentVolume) -> Option<(String, String)> {
    match &volume.spec.csi {
        Some(csi) => Some((csi.driver.clone(), csi.volume_handle.clone())),
        None => handle_of(volume)?.split_once('^').map(|(driver, handle)| (driver.into(), handle.into())),
    }
}

/// The drivers that a pod's volumes need, as they are on a node.
pub(super) fn rooms(wanted: &Wanted, node: &str, pods: &[Arc<Pod>], cache: &Cache) -> Vec<DriverRoom> {
    if wanted.of_drivers.is_empty() && wanted.of_plugins.is_empty() {
        return Vec::new();
    }
    let installed = cache.csi_node(&ObjectKey::cluster(node));
    let wanted = wanted.on(installed.as_deref());
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
            let there = there.get_or_insert_with(|| in_use(node, installed.as_deref(), pods, cache));
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
fn in_use(node: &str, says: Option<&CSINode>, pods: &[Arc<Pod>], cache: &Cache) -> Volumes {
    let mut found = Volumes::new();
    for pod in pods {
        for (driver, handles) in volumes(pod, cache).on(says).into_owned() {
            found.entry(driver).or_default().extend(handles);
        }
    }
    for attachment in cache.attachments_by_node(node) {
        let volume = attachment.volume().and_then(|name| cache.volume(&ObjectKey::cluster(name)));
        let held = attachment.spec.source.inline_volume_spec.as_ref().and_then(|spec| spec.csi.as_ref());
        let held = held.map(|csi| (csi.driver.clone(), csi.volume_handle.clone()));
        note(&mut found, volume.and_then(|volume| handle(&volume)).or(held));
    }
    found
}
