//! Which keys a change concerns.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{
    AttachedVolume, CSIDriver, CSINode, CsiSource, InTreeSource, Node, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, Pod, PodVolume, StorageClass, VolumeAttachment, names,
};
use control::{Cache, Route, Sides, routes};
use rules_translate::{Plugin, plugin_volume_name};

use crate::build::{is_managed, nodes_of};
use crate::{AttachDetach, Key, force, inline, lost};

type Woken<'a> = control::Woken<'a, AttachDetach>;

pub(crate) const ROUTES: &[Route<AttachDetach>] = routes![
    Pod => each(pod_wakes),
    PersistentVolumeClaim => each(claim_wakes),
    PersistentVolume => both(volume_wakes),
    VolumeAttachment => each(attachment_wakes),
    Node => both(node_wakes),
    CSIDriver => both(driver_wakes),
    CSINode => both(csi_node_wakes),
    StorageClass => both(class_wakes),
];

fn pod_wakes(pod: &Pod, woken: &mut Woken<'_>) {
    woken.wake_all(Keys::of(woken.cache, |keys| keys.pod(pod)));
}

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_>) {
    woken.wake_all(Keys::of(woken.cache, |keys| {
        keys.everywhere(&claim.spec.volume_name);
        keys.claim(&claim.metadata.namespace, &claim.metadata.name);
    }));
}

fn volume_wakes(volume: Sides<'_, PersistentVolume>, woken: &mut Woken<'_>) {
    woken.wake_all(Keys::of(woken.cache, |keys| {
        volume.iter().for_each(|volume| keys.everywhere(&volume.metadata.name));
        if let (None, Some(one)) | (Some(one), None) = (volume.before, volume.after) {
            keys.reports_of(one);
        }
    }));
}

fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_>) {
    woken.wake_all(Keys::of(woken.cache, |keys| {
        keys.attachment(attachment);
        if let Some(name) = inline::of_attachment(attachment) {
            keys.inline(&name);
            keys.volumes(&name);
        }
        attachment.volume().into_iter().for_each(|volume| keys.everywhere(volume));
    }));
}

fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    if let (Some(before), Some(after)) = (node.before, node.after)
        && same_to_us(before, after)
    {
        // Of a heartbeat there are none. A node with many volumes is written to for each of them: only those whose
        // entries came, changed or went are concerned.
        let names = changed_names(before, after);
        woken.wake_all(Keys::of(woken.cache, |keys| {
            names.into_iter().for_each(|name| keys.reported(name, &after.metadata.name));
        }));
        return;
    }
    woken.wake_all(Keys::of(woken.cache, |keys| node.iter().for_each(|node| keys.node(node))));
}

/// All volumes of the driver, so only where what we read of it is not what it was: that it is there, and whether its
/// volumes are attached.
fn driver_wakes(driver: Sides<'_, CSIDriver>, woken: &mut Woken<'_>) {
    if driver.before.map(CSIDriver::attach_required) == driver.after.map(CSIDriver::attach_required) {
        return;
    }
    let Some(name) = driver.iter().next().map(|driver| driver.metadata.name.clone()) else { return };
    woken.wake_all(Keys::of(woken.cache, |keys| keys.driver(&name)));
}

/// What the node says of in-tree plugins decides who attaches their volumes there, and nowhere else.
fn csi_node_wakes(node: Sides<'_, CSINode>, woken: &mut Woken<'_>) {
    let says =
        |node: Option<&CSINode>| node.map(|node| node.metadata.annotation(names::MIGRATED_PLUGINS).map(String::from));
    if says(node.before) == says(node.after) {
        return;
    }
    let Some(name) = node.iter().next().map(|node| node.metadata.name.clone()) else { return };
    woken.wake_all(Keys::of(woken.cache, |keys| {
        keys.alone = true;
        let cache = keys.cache;
        cache.attachments_by_node(&name).for_each(|attachment| keys.attachment(&attachment));
        cache.pods_by_node(&name).for_each(|pod| keys.pod(&pod));
    }));
}

/// A class matters for what it says of dead nodes alone.
fn class_wakes(class: Sides<'_, StorageClass>, woken: &mut Woken<'_>) {
    let said = |class: Option<&StorageClass>| {
        class.and_then(|class| class.metadata.annotation(names::FORCE_DETACH_AFTER).map(String::from))
    };
    if said(class.before) == said(class.after) {
        return;
    }
    let Some(name) = class.iter().next().map(|class| class.metadata.name.clone()) else { return };
    woken.wake_all(Keys::of(woken.cache, |keys| {
        let volumes = keys.cache.volumes_by_class(&name);
        volumes.for_each(|volume| keys.everywhere(&volume.metadata.name));
    }));
}

pub(crate) fn keys(cache: &Cache) -> Vec<Key> {
    // Every pair is found by its pod, its attachment or its node's report: nobody has to be asked for the others.
    let found = Keys::of(cache, |keys| {
        keys.alone = true;
        cache.pods().for_each(|pod| keys.pod(&pod));
        cache.attachments().for_each(|attachment| keys.attachment(&attachment));
        cache.nodes().for_each(|node| keys.reports(&node));
    });
    found.into_iter().collect()
}

/// Everything we read of a node but for its volumes, versions aside: a write that meets a newer version is repeated by
/// itself.
fn same_to_us(before: &Node, after: &Node) -> bool {
    before.metadata.uid == after.metadata.uid
        && is_managed(before) == is_managed(after)
        && force::is_out_of_service(before) == force::is_out_of_service(after)
        && force::is_unheard(before) == force::is_unheard(after)
}

/// The volumes whose entries in either list of a node's status are not what they were.
fn changed_names<'a>(before: &'a Node, after: &'a Node) -> BTreeSet<&'a str> {
    let (was, is) = between_the_same(&before.status.volumes_attached, &after.status.volumes_attached);
    let entries = |list: &'a [AttachedVolume]| -> BTreeSet<(&'a str, &'a str)> {
        list.iter().map(|volume| (volume.name.as_str(), volume.device_path.as_str())).collect()
    };
    let (was, is) = (entries(was), entries(is));
    let mut changed: BTreeSet<&str> = was.symmetric_difference(&is).map(|(name, _)| *name).collect();
    let (was, is) = between_the_same(&before.status.volumes_in_use, &after.status.volumes_in_use);
    let used = |list: &'a [String]| -> BTreeSet<&'a str> { list.iter().map(String::as_str).collect() };
    let (was, is) = (used(was), used(is));
    changed.extend(was.symmetric_difference(&is));
    changed
}

/// What is left of two lists without the entries that both begin with and those that both end with. A node may list
/// thousands of volumes, and a write to it adds or takes one: only what lies between has to be sorted.
fn between_the_same<'a, T: PartialEq>(was: &'a Option<Vec<T>>, is: &'a Option<Vec<T>>) -> (&'a [T], &'a [T]) {
    let (was, is) = (was.as_deref().unwrap_or_default(), is.as_deref().unwrap_or_default());
    let head = was.iter().zip(is).take_while(|(was, is)| was == is).count();
    let (was, is) = (&was[head..], &is[head..]);
    let tail = was.iter().rev().zip(is.iter().rev()).take_while(|(was, is)| was == is).count();
    (&was[..was.len() - tail], &is[..is.len() - tail])
}

struct Keys<'a> {
    cache: &'a Cache,
    /// What else concerns a volume is found otherwise.
    alone: bool,
    found: BTreeSet<Key>,
}

impl<'a> Keys<'a> {
    /// The keys that `find` finds.
    fn of(cache: &'a Cache, find: impl FnOnce(&mut Keys<'a>)) -> BTreeSet<Key> {
        let mut keys = Keys { cache, alone: false, found: BTreeSet::new() };
        find(&mut keys);
        keys.found
    }

    /// A volume on every node it has something to do with: nodes wait for each other.
    fn everywhere(&mut self, volume: &str) {
        if !volume.is_empty() && !self.alone {
            self.found.extend(nodes_of(self.cache, volume).into_iter().map(|node| Key::new(volume, node)));
        }
    }

    /// By both ends of the binding: either may be missing or still to come.
    fn claim(&mut self, namespace: &str, name: &str) -> Vec<String> {
        let claim = self.cache.claim(&ObjectKey::new(namespace, name));
        let mut volumes: Vec<String> = claim.map(|claim| claim.spec.volume_name.clone()).into_iter().collect();
        let term = format!("{namespace}/{name}");
        volumes.extend(self.cache.volumes_by_claim(&term).map(|volume| volume.metadata.name.clone()));
        volumes.retain(|volume| !volume.is_empty());
        volumes.sort_unstable();
        volumes.dedup();
        volumes.iter().for_each(|volume| self.everywhere(volume));
        volumes
    }

    /// The pod's own node is named as well: a pod that is gone is in no index any more.
    fn pod(&mut self, pod: &Pod) {
        if pod.spec.node_name.is_empty() {
            return;
        }
        for claim in pod.claim_names() {
            for volume in self.claim(&pod.metadata.namespace, &claim) {
                self.found.insert(Key::new(volume, pod.spec.node_name.clone()));
            }
        }
        for (name, _) in inline::of_pod(pod) {
            self.found.insert(Key::new(name.clone(), pod.spec.node_name.clone()));
            self.inline(&name);
        }
    }

    /// A pod's own volume on every node it has something to do with.
    fn inline(&mut self, name: &str) {
        if self.alone {
            return;
        }
        let attached = self.cache.disk_attachments().filter(|one| inline::of_attachment(one).as_deref() == Some(name));
        self.found.extend(attached.map(|one| Key::new(name, one.spec.node_name.clone())));
        self.found.extend(inline::keys(self.cache, |_| true).into_iter().filter(|key| key.volume == name));
    }

    /// The PersistentVolumes, on every node, of the disk that has this name.
    fn volumes(&mut self, name: &str) {
        let Some((driver, handle)) = names::split_unique_volume_name(name) else { return };
        for volume in self.cache.volumes_by_handle(&format!("{driver}^{handle}")) {
            self.everywhere(&volume.metadata.name);
        }
    }

    fn attachment(&mut self, attachment: &VolumeAttachment) {
        if let Some(volume) = attachment.volume() {
            self.found.insert(Key::new(volume, attachment.spec.node_name.clone()));
        }
        if let Some(name) = inline::of_attachment(attachment) {
            self.found.insert(Key::new(name, attachment.spec.node_name.clone()));
        }
    }

    fn node(&mut self, node: &Node) {
        let cache = self.cache;
        cache.attachments_by_node(&node.metadata.name).for_each(|attachment| self.attachment(&attachment));
        cache.pods_by_node(&node.metadata.name).for_each(|pod| self.pod(&pod));
        self.reports(node);
    }

    /// The volumes a node's status names, on this node and wherever somebody waits for them.
    fn reports(&mut self, node: &Node) {
        let attached = node.status.volumes_attached.iter().flatten().map(|volume| volume.name.as_str());
        let in_use = node.status.volumes_in_use.iter().flatten().map(String::as_str);
        attached.chain(in_use).for_each(|name| self.reported(name, &node.metadata.name));
    }

    /// A volume that a node's status names.
    fn reported(&mut self, name: &str, node: &str) {
        let Some((driver, handle)) = names::split_unique_volume_name(name) else { return self.plugins(name) };
        let mut known = false;
        for volume in self.cache.volumes_by_handle(&format!("{driver}^{handle}")) {
            known = true;
            self.found.insert(Key::new(volume.metadata.name.clone(), node));
            self.everywhere(&volume.metadata.name);
        }
        if !known {
            self.found.insert(lost::key(name, node));
            if Plugin::of_driver(driver).is_some() {
                self.inline(name);
            }
        }
    }

    /// A volume that a node's status names by its in-tree plugin. There are few of them, so there is no index.
    fn plugins(&mut self, name: &str) {
        if !Plugin::ALL.iter().any(|plugin| name.starts_with(plugin.name())) || self.alone {
            return;
        }
        let meant = |source: Option<&InTreeSource>| source.and_then(plugin_volume_name).as_deref() == Some(name);
        for volume in self.cache.volumes().filter(|volume| meant(volume.spec.in_tree.as_deref())) {
            self.everywhere(&volume.metadata.name);
        }
        self.found.extend(inline::keys(self.cache, |volume| meant(volume.in_tree.as_deref())));
    }

    /// A volume that is new to us may be named in the status of nodes we have known for long, and so may one that is
    /// gone. Pods that hold the same disk themselves wait for it to go.
    fn reports_of(&mut self, volume: &PersistentVolume) {
        let of_driver = |csi: &CsiSource| format!("{}^{}", csi.driver, csi.volume_handle);
        let handle = volume.spec.csi.as_ref().map(of_driver).or_else(|| rules_translate::handle_of(volume));
        let Some(name) = handle.map(|handle| format!("{}/{handle}", names::CSI_PLUGIN)) else { return };
        for node in self.cache.nodes_by_volume(&name) {
            self.found.insert(Key::new(volume.metadata.name.clone(), node.metadata.name.clone()));
            self.found.insert(lost::key(&name, &node.metadata.name));
        }
        if names::split_unique_volume_name(&name).is_some_and(|(driver, _)| Plugin::of_driver(driver).is_some()) {
            self.inline(&name);
        }
    }

    fn driver(&mut self, name: &str) {
        let serves = |plugin: Option<Plugin>| plugin.is_some_and(|plugin| plugin.driver() == name);
        let owns = |csi: &CsiSource| csi.driver == name;
        for volume in self.cache.volumes() {
            if volume.spec.csi.as_ref().is_some_and(owns) || serves(rules_translate::plugin_of(&volume)) {
                self.everywhere(&volume.metadata.name);
            }
        }
        if Plugin::of_driver(name).is_some() {
            let plugin = |volume: &PodVolume| volume.in_tree.as_deref().and_then(Plugin::of);
            self.found.extend(inline::keys(self.cache, |volume| serves(plugin(volume))));
        }
    }
}
