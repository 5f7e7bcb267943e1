//! Volumes as the drivers see them that serve them here: those of in-tree plugins translated before anything is decided
//! about them, under the names that they have in the books (S4-12, S4-23). Where a plugin is at work in this process,
//! it serves them under its own name instead: whoever mounted a volume unmounts it (S4-33), and the gate decides about
//! one that nobody has mounted.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CsiSource, InTreeSource, ObjectKey, PersistentVolume, Pod, PodVolume, VolumeAttachment, names};
use control::Cache;
use rules_translate::Plugin;

use crate::inline;
use crate::local::Local;
use crate::paths::{self, Paths};
use crate::record::Record;
use crate::uses::ContainerUses;
use crate::view::{AttachmentState, PodVolumeView};

/// A volume as whoever serves it here sees it: its driver, or the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiVolume {
    /// The volume, with its own name.
    pub volume: Arc<PersistentVolume>,
    /// The in-tree plugin it was made for.
    pub plugin: Option<Plugin>,
    /// The plugin serves it here. This is what its driver would be told.
    pub kept_from: Option<CsiSource>,
    /// It has no object: pods hold it in their own specs (S4-18).
    pub held: bool,
}

impl CsiVolume {
    /// A PersistentVolume. Otherwise why no driver can serve it.
    pub fn of(volume: Arc<PersistentVolume>, local: &Local) -> Result<CsiVolume, String> {
        if volume.spec.csi.is_some() && volume.spec.in_tree.is_none() {
            return Ok(CsiVolume { volume, plugin: None, kept_from: None, held: false });
        }
        if volume.spec.csi.is_none() && volume.spec.in_tree.is_none() {
            return Err(format!("volume {} is not of a CSI driver; use one that is", volume.metadata.name));
        }
        let plugin = rules_translate::plugin_of(&volume);
        let translated = rules_translate::volume_to_csi(&volume).map_err(|error| {
            format!("volume {} cannot be translated for a CSI driver: {error}", volume.metadata.name)
        })?;
        let one = CsiVolume { volume: Arc::new(translated.object), plugin, kept_from: None, held: false };
        Ok(one.by_who_serves(volume.spec.in_tree.as_deref(), local))
    }

    /// A volume in a pod's own spec.
    pub fn held(pod: &Pod, volume: &PodVolume, local: &Local) -> Result<CsiVolume, String> {
        let plugin = volume.in_tree.as_deref().and_then(Plugin::of);
        let translated = rules_translate::inline_to_csi(volume, &pod.metadata.namespace);
        let cannot = |error| format!("volume {} cannot be translated for a CSI driver: {error}", volume.name);
        let object = Arc::new(translated.map_err(cannot)?.object);
        let one = CsiVolume { volume: object, plugin, kept_from: None, held: true };
        Ok(one.by_who_serves(volume.in_tree.as_deref(), local))
    }

    /// Under the plugin's name, where the plugin serves it.
    fn by_who_serves(mut self, source: Option<&InTreeSource>, local: &Local) -> CsiVolume {
        let name = source.and_then(rules_translate::plugin_volume_name);
        let Some((plugin, disk)) = name.as_deref().and_then(paths::split_unique_name) else { return self };
        let of_driver = self.csi();
        if is_with_plugin(plugin, disk, &of_driver, local) {
            Arc::make_mut(&mut self.volume).spec.csi = Some(CsiSource {
                driver: plugin.into(),
                volume_handle: disk.into(),
                volume_attributes: BTreeMap::new(),
                ..of_driver.clone()
            });
            self.kept_from = Some(of_driver);
        }
        self
    }

    /// Its source, as the driver is told of it.
    pub fn csi(&self) -> CsiSource {
        self.volume.spec.csi.clone().unwrap_or_default()
    }

    /// The name under which nodes report it.
    pub fn unique_name(&self) -> String {
        let csi = self.volume.spec.csi.as_ref();
        csi.map(|csi| paths::unique_name(&csi.driver, &csi.volume_handle)).unwrap_or_default()
    }

    /// It is the volume of this handle.
    fn is(&self, driver: &str, handle: &str) -> bool {
        self.volume.spec.csi.as_ref().is_some_and(|csi| csi.driver == driver && csi.volume_handle == handle)
    }

    /// This node leaves it to its driver (S4-1, S4-2).
    pub fn is_left(&self, local: &Local) -> bool {
        self.plugin.is_none_or(|plugin| local.migration.is_migrated(plugin))
    }

    /// It is published for the pod, as far as the record knows.
    fn is_published(&self, pod: &Pod, local: &Local) -> bool {
        local.records.get(&self.unique_name()).is_some_and(|record| record.publishes.contains_key(&pod.metadata.uid))
    }

    /// Where a pod has it, as a filesystem.
    pub fn target(&self, root: &str, pod_uid: &str) -> String {
        let name = &self.volume.metadata.name;
        match self.plugin.filter(|_| self.kept_from.is_some()) {
            Some(plugin) => paths::plugin_target(root, pod_uid, plugin, name),
            None => paths::target_path(root, pod_uid, name),
        }
    }

    /// What keeps it from being served for a pod.
    pub fn hindered(&self, pod: &Pod, cache: &Cache, local: &Local) -> Option<PodVolumeView> {
        let refused = self.refusal(pod, local).map(PodVolumeView::Impossible);
        refused.or_else(|| self.awaited(pod, cache, local).map(PodVolumeView::Waiting))
    }

    /// Why it may not be served for a pod. What was published already stays with whoever did that, whatever was
    /// switched since (S4-33).
    fn refusal(&self, pod: &Pod, local: &Local) -> Option<String> {
        let plugin = self.plugin.filter(|_| self.is_left(local) == self.kept_from.is_some())?;
        let (node, name) = (&local.node, &self.volume.metadata.name);
        if self.is_published(pod, local) {
            return None;
        }
        Some(match self.kept_from {
            None => format!(
                "volume {name} is of plugin {plugin}, which node {node} does not leave to driver {}; drain the node \
                 and switch {} on there",
                plugin.driver(),
                plugin.gate()
            ),
            Some(_) => format!(
                "volume {name} is still mounted by plugin {plugin} on node {node}, which leaves it to driver {} since; \
                 drain the node",
                plugin.driver()
            ),
        })
    }

    /// Why the plugin does not serve it for a pod yet: wherever the driver has it attached, the driver may have it
    /// mounted.
    fn awaited(&self, pod: &Pod, cache: &Cache, local: &Local) -> Option<String> {
        let (csi, name) = (self.kept_from.as_ref()?, &self.volume.metadata.name);
        if self.is_published(pod, local) {
            return None;
        }
        let found = cache.attachments().find(|attachment| is_of(attachment, csi, name))?;
        Some(format!(
            "VolumeAttachment {} of driver {} has volume {name} on node {}; plugin {} waits until it is gone",
            found.metadata.name, csi.driver, found.spec.node_name, self.plugin?
        ))
    }
}

/// An attachment is of this volume, by its object's name or as the driver calls it.
fn is_of(attachment: &VolumeAttachment, csi: &CsiSource, name: &str) -> bool {
    let held = attachment.spec.source.inline_volume_spec.as_ref().and_then(|spec| spec.csi.as_ref());
    let same = |held: &CsiSource| {
        held.driver == csi.driver && rules_translate::same_volume(&csi.driver, &held.volume_handle, &csi.volume_handle)
    };
    attachment.volume() == Some(name) || held.is_some_and(same)
}

/// The plugin serves the disk here: it has mounted it, or is at work in this process for one that nobody has mounted
/// and that is not left to its driver.
fn is_with_plugin(plugin: &str, disk: &str, csi: &CsiSource, local: &Local) -> bool {
    let is_recorded = |driver: &str, handle: &str| {
        let name = paths::unique_name(driver, handle);
        local.records.contains_key(&name)
            || local.maybe_recorded.contains(&name)
            || local.unreadable.contains(&Paths::of(&local.root, driver, handle).record)
    };
    is_recorded(plugin, disk)
        || (local.drivers.contains_key(plugin)
            && !is_recorded(&csi.driver, &csi.volume_handle)
            && Plugin::named(plugin).is_some_and(|plugin| !local.migration.is_migrated(plugin)))
}

/// The name under which this node reports a volume; none of one that no driver serves here.
pub fn unique_name(volume: &PersistentVolume, local: &Local) -> Option<String> {
    if let (Some(csi), None) = (&volume.spec.csi, &volume.spec.in_tree) {
        return Some(names::unique_volume_name(&csi.driver, &csi.volume_handle));
    }
    let one = CsiVolume::of(Arc::new(volume.clone()), local).ok()?;
    let name = one.unique_name();
    let served = one.kept_from.is_some() || one.is_left(local) || local.records.contains_key(&name);
    served.then_some(name)
}

/// The volumes of a handle: one, unless somebody made several objects by hand. Those that pods hold count too.
pub fn of_handle(driver: &str, handle: &str, cache: &Cache, local: &Local) -> Vec<CsiVolume> {
    let objects: Vec<Arc<PersistentVolume>> = match Plugin::named(driver) {
        // A stand-in has few volumes, so there is no index.
        Some(_) => cache.volumes().filter(|volume| volume.spec.in_tree.is_some()).collect(),
        None => cache.volumes_by_handle(&format!("{driver}^{handle}")).collect(),
    };
    let objects = objects.into_iter().filter_map(|volume| CsiVolume::of(volume, local).ok());
    let mut all: Vec<CsiVolume> = objects.filter(|one| one.is(driver, handle)).collect();
    if Plugin::of_driver(driver).or(Plugin::named(driver)).is_some() {
        let pods = cache.pods_by_node(&local.node);
        let held = pods.flat_map(|pod| held_by(&pod, local)).find(|(_, held)| held.is(driver, handle));
        all.extend(held.map(|(_, held)| held));
    }
    all
}

/// The in-tree volumes in a pod's own spec that some container uses, with what the pod calls them.
pub fn held_by(pod: &Pod, local: &Local) -> Vec<(String, CsiVolume)> {
    let held = pod.spec.volumes.iter().filter(|volume| volume.in_tree.is_some());
    let used = held.filter(|volume| ContainerUses::of(pod, &volume.name).any());
    used.filter_map(|volume| Some((volume.name.clone(), CsiVolume::held(pod, volume, local).ok()?))).collect()
}

/// Some container of the pod uses this volume, which pods hold, as what it is.
pub fn is_held_by(pod: &Pod, held: &CsiVolume, local: &Local) -> bool {
    let csi = held.csi();
    let usable = |name: &str| ContainerUses::of(pod, name).check("", held.volume.volume_mode()).is_ok();
    held_by(pod, local).iter().any(|(name, own)| own.is(&csi.driver, &csi.volume_handle) && usable(name))
}

/// S4-34: the plugin's migration was switched here while the volume was mounted by the one or the other.
pub fn undrained(record: &Record, local: &Local) -> Option<String> {
    let (volume, node) = (&record.volume, &local.node);
    let switched = |plugin: Plugin, on: bool| local.migration.is_migrated(plugin) == on;
    if let Some(plugin) = Plugin::named(&record.driver).filter(|plugin| switched(*plugin, true)) {
        return Some(format!(
            "plugin {plugin} mounted volume {volume} on node {node} and takes it away, although {} was switched on \
             there since; drain the node before driver {} serves",
            plugin.gate(),
            plugin.driver()
        ));
    }
    let plugin = Plugin::of_driver(&record.driver).filter(|plugin| record.migrated && switched(*plugin, false))?;
    Some(format!(
        "driver {} mounted volume {volume} on node {node} and takes it away, although {} was switched off there since; \
         drain the node before plugin {plugin} serves",
        record.driver,
        plugin.gate()
    ))
}

/// How a volume is attached that no pod wants: whoever reports it must not prove less than it will need.
pub fn unwanted(driver: &str, handle: &str, cache: &Cache, local: &Local) -> AttachmentState {
    let needed =
        Plugin::named(driver).is_none() && driver_object(driver, cache).is_none_or(|driver| driver.attach_required());
    let inline = inline::is_handle(handle) && of_handle(driver, handle, cache, local).is_empty();
    match needed && !inline {
        true => AttachmentState::Waiting(String::from("no pod on this node wants the volume")),
        false => AttachmentState::NotNeeded,
    }
}

/// How a volume that pods want is attached here, and what that told.
pub fn attachment(one: &CsiVolume, cache: &Cache, local: &Local) -> (AttachmentState, BTreeMap<String, String>) {
    let (csi, name) = (one.csi(), one.volume.metadata.name.as_str());
    // A plugin attaches itself.
    if one.kept_from.is_some() || !driver_object(&csi.driver, cache).is_none_or(|driver| driver.attach_required()) {
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
