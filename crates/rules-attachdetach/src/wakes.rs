//! Which keys a change concerns.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Node, Object, ObjectKey, PersistentVolume, Pod, VolumeAttachment, names};
use control::{Cache, Change};

use crate::Key;
use crate::build::{is_managed, nodes_of};

/// The kinds a decision looks at.
pub(crate) const WATCHES: [Kind; 6] = [
    Kind::Pod,
    Kind::PersistentVolumeClaim,
    Kind::PersistentVolume,
    Kind::VolumeAttachment,
    Kind::Node,
    Kind::CSIDriver,
];

pub(crate) fn wakes(change: &Change, cache: &Cache) -> Vec<Key> {
    let mut keys = Keys { cache, found: BTreeSet::new() };
    if let (Some(Object::Node(before)), Some(Object::Node(after))) = (&change.before, &change.after)
        && same_to_us(before, after)
    {
        return Vec::new(); // A heartbeat.
    }
    for side in change.sides() {
        match side {
            Object::Pod(pod) => keys.pod(pod),
            Object::PersistentVolumeClaim(claim) => {
                keys.everywhere(&claim.spec.volume_name);
                keys.claim(&claim.metadata.namespace, &claim.metadata.name);
            }
            Object::PersistentVolume(volume) => {
                keys.everywhere(&volume.metadata.name);
                if change.before.is_none() {
                    keys.reports_of(volume);
                }
            }
            Object::VolumeAttachment(attachment) => {
                keys.attachment(attachment);
                attachment.volume().into_iter().for_each(|volume| keys.everywhere(volume));
            }
            Object::Node(node) => keys.node(node),
            Object::CSIDriver(driver) => keys.driver(&driver.metadata.name),
            Object::StorageClass(_)
            | Object::CSINode(_)
            | Object::Secret(_)
            | Object::VolumeAttributesClass(_)
            | Object::CSIStorageCapacity(_)
            | Object::VolumeSnapshot(_)
            | Object::VolumeSnapshotContent(_)
            | Object::ReferenceGrant(_)
            | Object::Lease(_) => {}
        }
    }
    keys.found.into_iter().collect()
}

pub(crate) fn keys(cache: &Cache) -> Vec<Key> {
    let mut keys = Keys { cache, found: BTreeSet::new() };
    cache.pods().for_each(|pod| keys.pod(pod));
    cache.attachments().for_each(|attachment| keys.attachment(attachment));
    cache.nodes().for_each(|node| keys.reports(node));
    keys.found.into_iter().collect()
}

/// Everything we read of a node, versions aside: a write that meets a newer version is repeated by itself.
fn same_to_us(before: &Node, after: &Node) -> bool {
    before.metadata.uid == after.metadata.uid
        && is_managed(before) == is_managed(after)
        && before.status.volumes_attached == after.status.volumes_attached
        && before.status.volumes_in_use == after.status.volumes_in_use
}

struct Keys<'a> {
    cache: &'a Cache,
    found: BTreeSet<Key>,
}

impl Keys<'_> {
    /// A volume on every node it has something to do with: nodes wait for each other.
    fn everywhere(&mut self, volume: &str) {
        if !volume.is_empty() {
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
        volumes.iter().for_each(|volume| self.everywhere(volume));
        volumes
    }

    /// The pod's own node is named as well: a pod that is gone is in no index any more.
    fn pod(&mut self, pod: &Pod) {
        if pod.spec.node_name.is_empty() {
            return;
        }
        for claim in pod.claim_names() {
            for volume in self.claim(&pod.metadata.namespace, claim) {
                self.found.insert(Key::new(volume, pod.spec.node_name.clone()));
            }
        }
    }

    fn attachment(&mut self, attachment: &VolumeAttachment) {
        if let Some(volume) = attachment.volume() {
            self.found.insert(Key::new(volume, attachment.spec.node_name.clone()));
        }
    }

    fn node(&mut self, node: &Node) {
        let cache = self.cache;
        cache.attachments_by_node(&node.metadata.name).for_each(|attachment| self.attachment(attachment));
        cache.pods_by_node(&node.metadata.name).for_each(|pod| self.pod(pod));
        self.reports(node);
    }

    /// The volumes a node's status names, on this node and wherever somebody waits for them.
    fn reports(&mut self, node: &Node) {
        let attached = node.status.volumes_attached.iter().flatten().map(|volume| volume.name.as_str());
        let in_use = node.status.volumes_in_use.iter().flatten().map(String::as_str);
        let prefix = format!("{}/", names::CSI_PLUGIN);
        for handle in attached.chain(in_use).filter_map(|name| name.strip_prefix(&prefix)) {
            for volume in self.cache.volumes_by_handle(handle) {
                self.found.insert(Key::new(volume.metadata.name.clone(), node.metadata.name.clone()));
                self.everywhere(&volume.metadata.name);
            }
        }
    }

    /// A volume that is new to us may be named in the status of nodes we have known for long.
    fn reports_of(&mut self, volume: &PersistentVolume) {
        let Some(csi) = &volume.spec.csi else { return };
        let name = names::unique_volume_name(&csi.driver, &csi.volume_handle);
        let nodes = self.cache.nodes().filter(|node| node.reports_attached(&name) || node.reports_in_use(&name));
        self.found.extend(nodes.map(|node| Key::new(volume.metadata.name.clone(), node.metadata.name.clone())));
    }

    fn driver(&mut self, name: &str) {
        let volumes = self.cache.volumes().filter(|v| v.spec.csi.as_ref().is_some_and(|csi| csi.driver == name));
        for volume in volumes {
            self.everywhere(&volume.metadata.name);
        }
    }
}
