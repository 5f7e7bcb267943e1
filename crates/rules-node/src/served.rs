//! Volumes as the drivers see them that serve them here: those of in-tree plugins translated before anything is decided
//! about them, under the names that they have in the books (S4-12, S4-23).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CsiSource, ObjectKey, PersistentVolume, Pod, PodVolume, names};
use control::Cache;
use rules_translate::Plugin;

use crate::inline;
use crate::local::Local;
use crate::record::Record;
use crate::uses::ContainerUses;
use crate::view::AttachmentState;

/// A volume as its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiVolume {
    /// The volume, with its own name.
    pub volume: Arc<PersistentVolume>,
    /// The in-tree plugin it was made for.
    pub plugin: Option<Plugin>,
    /// It has no object: pods hold it in their own specs (S4-18).
    pub held: bool,
}

impl CsiVolume {
    /// A PersistentVolume. Otherwise why no driver can serve it.
    pub fn of(volume: Arc<PersistentVolume>) -> Result<CsiVolume, String> {
        if volume.spec.csi.is_some() && volume.spec.in_tree.is_none() {
            return Ok(CsiVolume { volume, plugin: None, held: false });
        }
        if volume.spec.csi.is_none() && volume.spec.in_tree.is_none() {
            return Err(format!("volume {} is not of a CSI driver; use one that is", volume.metadata.name));
        }
        let plugin = rules_translate::plugin_of(&volume);
        let translated = rules_translate::volume_to_csi(&volume).map_err(|error| {
            format!("volume {} cannot be translated for a CSI driver: {error}", volume.metadata.name)
        })?;
        Ok(CsiVolume { volume: Arc::new(translated.object), plugin, held: false })
    }

    /// A volume in a pod's own spec.
    pub fn held(pod: &Pod, volume: &PodVolume) -> Result<CsiVolume, String> {
        let plugin = volume.in_tree.as_deref().and_then(Plugin::of);
        let translated = rules_translate::inline_to_csi(volume, &pod.metadata.namespace);
        let cannot = |error| format!("volume {} cannot be translated for a CSI driver: {error}", volume.name);
        Ok(CsiVolume { volume: Arc::new(translated.map_err(cannot)?.object), plugin, held: true })
    }

    /// Its source, as the driver is told of it.
    pub fn csi(&self) -> CsiSource {
        self.volume.spec.csi.clone().unwrap_or_default()
    }

    /// The name under which nodes report it.
    pub fn unique_name(&self) -> String {
        let csi = self.volume.spec.csi.as_ref();
        csi.map(|csi| names::unique_volume_name(&csi.driver, &csi.volume_handle)).unwrap_or_default()
    }

    /// It is the volume of this handle.
    fn is(&self, driver: &str, handle: &str) -> bool {
        self.volume.spec.csi.as_ref().is_some_and(|csi| csi.driver == driver && csi.volume_handle == handle)
    }

    /// This node leaves it to its driver (S4-1, S4-2).
    pub fn is_left(&self, local: &Local) -> bool {
        self.plugin.is_none_or(|plugin| local.migration.is_migrated(plugin))
    }

    /// Why its driver may not serve it for a pod. What the driver has published already stays its own, whatever was
    /// switched since (S4-33).
    pub fn refusal(&self, pod: &Pod, local: &Local) -> Option<String> {
        let published = || local.records.get(&self.unique_name())?.publishes.get(&pod.metadata.uid);
        if self.is_left(local) || published().is_some() {
            return None;
        }
        let (plugin, node, name) = (self.plugin?, &local.node, &self.volume.metadata.name);
        Some(format!(
            "volume {name} is of plugin {plugin}, which node {node} does not leave to driver {}; drain the node and \
             switch {} on there",
            plugin.driver(),
            plugin.gate()
        ))
    }
}

/// The name under which this node reports a volume; none of one that no driver serves here.
pub fn unique_name(volume: &PersistentVolume, local: &Local) -> Option<String> {
    if let (Some(csi), None) = (&volume.spec.csi, &volume.spec.in_tree) {
        return Some(names::unique_volume_name(&csi.driver, &csi.volume_handle));
    }
    let plugin = rules_translate::plugin_of(volume)?;
    let csi = rules_translate::volume_to_csi(volume).ok()?.object.spec.csi?;
    let name = names::unique_volume_name(&csi.driver, &csi.volume_handle);
    (local.migration.is_migrated(plugin) || local.records.contains_key(&name)).then_some(name)
}

/// The volumes of a handle: one, unless somebody made several objects by hand. Those that pods hold count too.
pub fn of_handle(driver: &str, handle: &str, cache: &Cache, local: &Local) -> Vec<CsiVolume> {
    let objects = cache.volumes_by_handle(&format!("{driver}^{handle}"));
    let mut all: Vec<CsiVolume> = objects.filter_map(|volume| CsiVolume::of(volume).ok()).collect();
    if Plugin::of_driver(driver).is_some() {
        let pods = cache.pods_by_node(&local.node);
        all.extend(pods.flat_map(|pod| held_by(&pod)).find(|(_, held)| held.is(driver, handle)).map(|(_, held)| held));
    }
    all
}

/// The in-tree volumes in a pod's own spec that some container uses, with what the pod calls them.
pub fn held_by(pod: &Pod) -> Vec<(String, CsiVolume)> {
    let held = pod.spec.volumes.iter().filter(|volume| volume.in_tree.is_some());
    let used = held.filter(|volume| ContainerUses::of(pod, &volume.name).any());
    used.filter_map(|volume| Some((volume.name.clone(), CsiVolume::held(pod, volume).ok()?))).collect()
}

/// Some container of the pod uses this volume, which pods hold, as what it is.
pub fn is_held_by(pod: &Pod, held: &CsiVolume) -> bool {
    let csi = held.csi();
    let usable = |name: &str| ContainerUses::of(pod, name).check("", held.volume.volume_mode()).is_ok();
    held_by(pod).iter().any(|(name, own)| own.is(&csi.driver, &csi.volume_handle) && usable(name))
}

/// S4-34: the plugin's migration was switched off here while its driver had the volume mounted.
pub fn undrained(record: &Record, local: &Local) -> Option<String> {
    let plugin = Plugin::of_driver(&record.driver).filter(|plugin| !local.migration.is_migrated(*plugin));
    let (plugin, node) = (plugin.filter(|_| record.migrated)?, &local.node);
    Some(format!(
        "driver {} mounted volume {} on node {node} and takes it away, although {} was switched off there since; drain \
         the node before plugin {plugin} serves",
        record.driver,
        record.volume,
        plugin.gate()
    ))
}

/// How a volume is attached that no pod wants: whoever reports it must not prove less than it will need.
pub fn unwanted(driver: &str, handle: &str, cache: &Cache, local: &Local) -> AttachmentState {
    let needed = driver_object(driver, cache).is_none_or(|driver| driver.attach_required());
    let inline = inline::is_handle(handle) && of_handle(driver, handle, cache, local).is_empty();
    match needed && !inline {
        true => AttachmentState::Waiting(String::from("no pod on this node wants the volume")),
        false => AttachmentState::NotNeeded,
    }
}

/// How a volume that pods want is attached here, and what that told.
pub fn attachment(one: &CsiVolume, cache: &Cache, local: &Local) -> (AttachmentState, BTreeMap<String, String>) {
    let (csi, name) = (one.csi(), one.volume.metadata.name.as_str());
    if !driver_object(&csi.driver, cache).is_none_or(|driver| driver.attach_required()) {
        return (AttachmentState::NotNeeded, BTreeMap::new());
    }
    let mut here = cache.attachments_by_volume(name).filter(|attachment| attachment.spec.node_name == local.node);
    // S4-17: that of a volume without an object is found by the name that follows from its source.
    let found = match one.held {
        true => {
            let named = names::attachment_name(&csi.volume_handle, &csi.driver, &local.node);
            cache.attachment(&ObjectKey::cluster(named))
        }
        false => here.next(),
    };
    let waiting = |text: String| (AttachmentState::Waiting(text), BTreeMap::new());
    match found {
        None => waiting(format!("there is no VolumeAttachment of volume {name} to node {} yet", local.node)),
        Some(found) if found.metadata.is_deleting() => {
            waiting(format!("VolumeAttachment {} is being deleted", found.metadata.name))
        }
        Some(found) if !found.status.attached => match &found.status.attach_error {
            Some(error) => waiting(format!("attaching volume {name} fails: {}", error.message)),
            None => waiting(format!("volume {name} is not attached to node {} yet", local.node)),
        },
        Some(found) => (AttachmentState::Attached, found.status.attachment_metadata.clone()),
    }
}

/// What the cluster knows of a driver.
pub fn driver_object(driver: &str, cache: &Cache) -> Option<Arc<api::CSIDriver>> {
    cache.driver(&ObjectKey::cluster(driver))
}
