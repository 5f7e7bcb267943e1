//! Volumes of in-tree plugins that pods hold themselves (S4-16, S4-17).
//!
//! The key of one is the name under which nodes report it: driver and handle are those of its translation, so that
//! every pod with the disk has the same, and the attachment, which holds the translated volume itself, tells it again
//! when the pods are gone and the controller was started anew. Few pods have such volumes, so all of those are looked
//! at.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{AttachmentSource, ObjectKey, PersistentVolume, Pod, PodVolume, VolumeAttachment, names};
use control::Cache;
use rules_translate::{Plugin, inline_to_csi, inline_to_in_tree, plugin_volume_name};

use crate::build::{Disk, Known, needs_volumes, pair, unattachable};
use crate::{Key, View};

/// The volumes of in-tree plugins that the pod holds itself, each with the name that it has in keys. One that cannot be
/// translated is known by its pod: no object's name and no driver's name for a volume looks like that.
pub(crate) fn of_pod(pod: &Pod) -> impl Iterator<Item = (String, &PodVolume)> {
    let volumes = pod.spec.volumes.iter().filter(|volume| volume.in_tree.is_some());
    volumes.map(|volume| {
        let seen = inline_to_csi(volume, &pod.metadata.namespace).ok().and_then(|seen| seen.object.spec.csi);
        let name = match seen {
            Some(csi) => names::unique_volume_name(&csi.driver, &csi.volume_handle),
            None => format!("{}/{}/{}", pod.metadata.namespace, pod.metadata.name, volume.name),
        };
        (name, volume)
    })
}

/// The name in keys of the volume that an attachment holds itself. Only of those of plugins, and under the name that is
/// made for them: others are not of this controller's making.
pub(crate) fn of_attachment(attachment: &VolumeAttachment) -> Option<String> {
    let source = &attachment.spec.source;
    let csi = match (&source.persistent_volume_name, &source.inline_volume_spec) {
        (None, Some(spec)) => spec.csi.as_ref()?,
        (Some(_), Some(_) | None) | (None, None) => return None,
    };
    let proper = names::attachment_name(&csi.volume_handle, &csi.driver, &attachment.spec.node_name);
    let ours = Plugin::of_driver(&csi.driver).is_some() && attachment.metadata.name == proper;
    ours.then(|| names::unique_volume_name(&csi.driver, &csi.volume_handle))
}

/// The name is one that a pod's own volume has in keys. Those of PersistentVolumes that are gone are looked at as well,
/// and must not cost a look at every pod.
fn is_name(name: &str) -> bool {
    match names::split_unique_volume_name(name) {
        Some((driver, _)) => Plugin::of_driver(driver).is_some(),
        None => name.contains('/'),
    }
}

/// The pods, on any node, that hold the volume of this key themselves.
pub(crate) fn users(key: &Key, known: Known<'_>) -> Vec<Arc<Pod>> {
    if !is_name(&key.volume) {
        return Vec::new();
    }
    let holds = |pod: &Pod| of_pod(pod).any(|(name, _)| name == key.volume);
    known.0.disk_pods().filter(|pod| holds(pod) && needs_volumes(pod, known, "")).collect()
}

/// The facts about such a volume; `None` if the key is of no pod's and of no attachment's.
pub(crate) fn view(key: &Key, known: Known<'_>) -> Option<View> {
    let (cache, _) = known;
    let users = users(key, known);
    let Some((driver, handle)) = names::split_unique_volume_name(&key.volume) else {
        return untranslatable(key, known, &users);
    };
    if !is_name(&key.volume) {
        return None;
    }
    let attachments: Vec<_> =
        cache.disk_attachments().filter(|attachment| of_attachment(attachment).as_ref() == Some(&key.volume)).collect();
    let held = users.iter().find_map(|pod| {
        let (_, volume) = of_pod(pod).find(|(name, _)| *name == key.volume)?;
        let seen = inline_to_csi(volume, &pod.metadata.namespace).ok()?;
        Some((seen.object, volume.in_tree.as_deref().and_then(plugin_volume_name)))
    });
    let (volume, plugin_name) = match (held, attachments.first()) {
        (Some(held), _) => held,
        // Its pods are gone: the attachment says all there is to know.
        (None, Some(attachment)) => {
            let spec = attachment.spec.source.inline_volume_spec.as_deref()?.clone();
            let volume = PersistentVolume { spec, ..PersistentVolume::default() };
            let held = inline_to_in_tree("", &volume).ok().and_then(|held| held.object.in_tree);
            (volume, held.as_deref().and_then(plugin_volume_name))
        }
        (None, None) => return None,
    };
    let here = attachments.iter().any(|attachment| attachment.spec.node_name == key.node);
    if let Some(other) = cache.volumes_by_handle(&format!("{driver}^{handle}")).next().filter(|_| !here) {
        let name = &other.metadata.name;
        let problem = format!("the disk is volume {name} as well; have the pod use a claim of volume {name}");
        return Some(unattachable(key, known, Plugin::of_driver(driver), &users, problem));
    }
    let source =
        AttachmentSource { inline_volume_spec: Some(Box::new(volume.spec.clone())), ..AttachmentSource::default() };
    let plugin = Plugin::of_driver(driver).zip(plugin_name);
    Some(pair(key, known, &Disk { volume: Cow::Owned(volume), plugin, source, users, attachments }))
}

fn untranslatable(key: &Key, known: Known<'_>, users: &[Arc<Pod>]) -> Option<View> {
    let (pod, volume) = users.iter().find_map(|pod| {
        let (_, volume) = of_pod(pod).find(|(name, _)| *name == key.volume)?;
        Some((pod, volume))
    })?;
    let problem = inline_to_csi(volume, &pod.metadata.namespace).err()?.to_string();
    let plugin = volume.in_tree.as_deref().and_then(Plugin::of);
    Some(unattachable(key, known, plugin, users, problem))
}

/// Why a PersistentVolume is not attached here: a pod's own volume of the same disk is, under the same name.
pub(crate) fn in_the_way(key: &Key, (cache, _): Known<'_>, disk: &Disk<'_>) -> Option<String> {
    let (csi, _) = disk.volume.spec.csi.as_ref().zip(disk.plugin.as_ref())?;
    let name = names::attachment_name(&csi.volume_handle, &csi.driver, &key.node);
    let theirs = cache.attachment(&ObjectKey::cluster(name)).filter(|theirs| of_attachment(theirs).is_some())?;
    let (name, node) = (&theirs.metadata.name, &key.node);
    Some(format!("its disk is attached to node {node} for a pod that holds it itself, as {name}"))
}

/// The pods' own volumes, on whatever nodes, that `meant` means.
pub(crate) fn keys(cache: &Cache, meant: impl Fn(&PodVolume) -> bool) -> Vec<Key> {
    let mut keys = Vec::new();
    for pod in cache.disk_pods() {
        for (name, _) in of_pod(&pod).filter(|(_, volume)| meant(volume)) {
            keys.push(Key::new(name, pod.spec.node_name.clone()));
        }
    }
    keys
}
