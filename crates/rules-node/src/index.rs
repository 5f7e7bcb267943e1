use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Object, ObjectKey, ObjectRef, PersistentVolume, Pod, names};
use control::{BackOff, Cache, Change, Decision, Narrate, Outcome, Rules, Tick};

use crate::action::{Action, There};
use crate::local::Local;
use crate::memory::{self, Memory};
use crate::view::View;
use crate::{Reason, build, decide, paths};

/// The node agent's rules.
pub struct Node;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A volume, by unique name.
    Volume(String),
    /// A pod.
    Pod(ObjectKey),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Volume(name) => write!(f, "volume {name}"),
            Key::Pod(pod) => write!(f, "pod {pod}"),
        }
    }
}

impl Rules for Node {
    const NAME: &'static str = "node";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    fn watches() -> &'static [Kind] {
        &[
            Kind::Node,
            Kind::Pod,
            Kind::PersistentVolumeClaim,
            Kind::PersistentVolume,
            Kind::VolumeAttachment,
            Kind::CSIDriver,
        ]
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        let mut keys = BTreeSet::new();
        for object in change.sides() {
            wake(object, cache, local, &mut keys);
        }
        if let Some(Object::Node(_)) = change.object() {
            keys.extend(node_wakes(change, cache, local));
        }
        keys.into_iter().collect()
    }

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        let mut keys = volume_keys(cache, local);
        for pod in cache.pods_by_node(&local.node) {
            pod_wakes(pod, cache, local, &mut keys);
        }
        keys.extend(local.pod_processes().map(|(name, _)| Key::Pod(name.pod)));
        for publish in local.records.values().flat_map(|record| record.publishes.values()) {
            keys.insert(Key::Pod(ObjectKey::new(publish.pod_namespace.clone(), publish.pod_name.clone())));
        }
        keys.into_iter().collect()
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Volume(name) => build::volume(name, cache, local),
            Key::Pod(pod) => build::pod(pod, cache, local),
        }
    }

    fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Tick, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    /// Volume keys say *mounted* and *recorded*, pod keys say *sealed*: whoever waits for that must look again.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        memory::learn(local, did, got);
        match did {
            Action::Publish { target, .. } | Action::Unpublish(There { path: target, .. }) => {
                let all = local.records.values().flat_map(|record| record.publishes.values());
                let there = all.filter(|publish| publish.target == *target);
                there.map(|p| Key::Pod(ObjectKey::new(p.pod_namespace.clone(), p.pod_name.clone()))).collect()
            }
            // A record no longer names the pods that wait for it to forget them.
            Action::WriteRecord { .. } | Action::RemoveRecord { .. } | Action::Seal { .. } => Self::keys(cache, local),
            Action::ReportInUse(_)
            | Action::ClearInUse(_)
            | Action::ReadNode(_)
            | Action::MakeDir { .. }
            | Action::Sweep { .. }
            | Action::Stage { .. }
            | Action::Unstage(_)
            | Action::ReadPod { .. }
            | Action::Start { .. }
            | Action::Stop { .. }
            | Action::Forget { .. }
            | Action::SetStatus { .. }
            | Action::DeletePod { .. } => Vec::new(),
        }
    }

    fn back_off(_local: &Local) -> BackOff {
        BackOff::default()
    }

    /// A unique volume name holds the driver's name for the volume, which is the PersistentVolume's name for volumes
    /// that Longshore's own driver made.
    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::Volume(name) => {
                let handle = paths::split_unique_name(name).map_or(name.as_str(), |(_, handle)| handle);
                ObjectRef::cluster(Kind::PersistentVolume, handle)
            }
            Key::Pod(pod) => ObjectRef { kind: Kind::Pod, key: pod.clone() },
        }
    }
}

impl Narrate for Node {
    /// Users look at their pods, not at volumes.
    fn event_targets(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectRef> {
        match Self::view(key, cache, local) {
            View::Volume(view) if !view.users.is_empty() => {
                view.users.values().map(|user| ObjectRef { kind: Kind::Pod, key: user.pod.clone() }).collect()
            }
            View::Volume(_) | View::Pod(_) => alloc::vec![Self::object(key)],
        }
    }
}

fn wake(object: &Object, cache: &Cache, local: &Local, keys: &mut BTreeSet<Key>) {
    match object {
        Object::Pod(pod) => {
            if pod.spec.node_name == local.node {
                pod_wakes(pod, cache, local, keys);
            }
        }
        Object::PersistentVolumeClaim(claim) => {
            claim_wakes(&claim.metadata.namespace, &claim.metadata.name, cache, local, keys);
            let volume = cache.volume(&ObjectKey::cluster(claim.spec.volume_name.clone()));
            keys.extend(volume.and_then(|volume| volume_key(volume)));
        }
        Object::PersistentVolume(volume) => {
            keys.extend(volume_key(volume));
            if let Some(claim) = &volume.spec.claim_ref {
                claim_wakes(&claim.namespace, &claim.name, cache, local, keys);
            }
        }
        Object::VolumeAttachment(attachment) => {
            if attachment.spec.node_name == local.node {
                let volume = attachment.volume().and_then(|name| cache.volume(&ObjectKey::cluster(name)));
                keys.extend(volume.and_then(|volume| volume_key(volume)));
            }
        }
        Object::CSIDriver(driver) => {
            let prefix = names::unique_volume_name(&driver.metadata.name, "");
            let of_driver = |key: &Key| match key {
                Key::Volume(name) => name.starts_with(&prefix),
                Key::Pod(_) => false,
            };
            keys.extend(Node::keys(cache, local).into_iter().filter(of_driver));
        }
        // Handled with both sides at once; nothing here depends on the other kinds.
        Object::Node(_)
        | Object::StorageClass(_)
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

/// Every volume: each decision about one reads the Node's version and lists.
fn node_wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
    let ours = |object: &&Object| object.meta().name == local.node;
    let listed = |object: &Object| match object {
        Object::Node(node) => node.status.volumes_in_use.clone().unwrap_or_default(),
        Object::PersistentVolumeClaim(_)
        | Object::PersistentVolume(_)
        | Object::StorageClass(_)
        | Object::VolumeAttachment(_)
        | Object::CSIDriver(_)
        | Object::CSINode(_)
        | Object::Pod(_)
        | Object::Secret(_)
        | Object::VolumeAttributesClass(_)
        | Object::CSIStorageCapacity(_)
        | Object::VolumeSnapshot(_)
        | Object::VolumeSnapshotContent(_)
        | Object::ReferenceGrant(_)
        | Object::Lease(_) => Vec::new(),
    };
    if change.sides().filter(ours).count() == 0 {
        return Vec::new();
    }
    let is_volume = |key: &Key| match key {
        Key::Volume(_) => true,
        Key::Pod(_) => false,
    };
    let before = change.sides().flat_map(listed).map(Key::Volume);
    Node::keys(cache, local).into_iter().filter(is_volume).chain(before).collect()
}

fn pod_wakes(pod: &Pod, cache: &Cache, local: &Local, keys: &mut BTreeSet<Key>) {
    keys.insert(Key::Pod(pod.metadata.key()));
    for claim in pod.claim_names() {
        let volume = build::volume_of_claim(&pod.metadata.namespace, claim, cache);
        keys.extend(volume.ok().and_then(|volume| volume_key(volume)));
    }
    let recorded = local.records.iter().filter(|(_, record)| record.publishes.contains_key(&pod.metadata.uid));
    keys.extend(recorded.map(|(name, _)| Key::Volume(name.clone())));
}

fn claim_wakes(namespace: &str, name: &str, cache: &Cache, local: &Local, keys: &mut BTreeSet<Key>) {
    for pod in cache.pods_by_claim(&format!("{namespace}/{name}")) {
        if pod.spec.node_name == local.node {
            pod_wakes(pod, cache, local, keys);
        }
    }
}

fn volume_keys(cache: &Cache, local: &Local) -> BTreeSet<Key> {
    let node = cache.node(&ObjectKey::cluster(local.node.clone()));
    let listed = node.into_iter().flat_map(|node| node.status.volumes_in_use.iter().flatten());
    let ours = listed.filter(|name| paths::split_unique_name(name).is_some());
    ours.chain(local.records.keys()).map(|name| Key::Volume(name.clone())).collect()
}

fn volume_key(volume: &PersistentVolume) -> Option<Key> {
    let csi = volume.spec.csi.as_ref()?;
    Some(Key::Volume(names::unique_volume_name(&csi.driver, &csi.volume_handle)))
}
