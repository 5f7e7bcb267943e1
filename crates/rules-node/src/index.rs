use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use api::{
    CSIDriver, Kind, ObjectKey, ObjectRef, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment, names,
};
use control::{BackOff, Cache, Decision, Narrate, Outcome, Route, Rules, Sides, Tick, Woken, routes};

use crate::act::{Action, There};
use crate::learn::{self, Memory};
use crate::local::Local;
use crate::view::View;
use crate::{decide, find, paths};

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
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = routes![
        api::Node => both(node_wakes),
        Pod => each(pod_wakes),
        PersistentVolumeClaim => each(claim_wakes),
        PersistentVolume => each(volume_wakes),
        VolumeAttachment => each(attachment_wakes),
        CSIDriver => each(driver_wakes),
    ];

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        let mut keys = volume_keys(cache, local);
        for pod in cache.pods_by_node(&local.node) {
            keys.extend(keys_of_pod(&pod, cache, local));
        }
        keys.extend(local.pod_processes().map(|(name, _)| Key::Pod(name.pod)));
        for publish in local.records.values().flat_map(|record| record.publishes.values()) {
            keys.insert(Key::Pod(ObjectKey::new(publish.pod_namespace.clone(), publish.pod_name.clone())));
        }
        keys.into_iter().collect()
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Volume(name) => find::volume(name, cache, local),
            Key::Pod(pod) => find::pod(pod, cache, local),
        }
    }

    fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Action> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Tick, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory.after(now, did, got)
    }

    /// Volume keys say *mounted* and *recorded*, pod keys say *sealed*: whoever waits for that must look again.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        learn::learn(local, did, got);
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

fn pod_wakes(pod: &Pod, woken: &mut Woken<'_, Node>) {
    if pod.spec.node_name == woken.local.node {
        woken.wake_all(keys_of_pod(pod, woken.cache, woken.local));
    }
}

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_, Node>) {
    users_of_claim(&claim.metadata.key(), woken);
    named_volume_wakes(&claim.spec.volume_name, woken);
}

fn volume_wakes(volume: &PersistentVolume, woken: &mut Woken<'_, Node>) {
    woken.wake_all(volume_key(volume));
    if let Some(claim) = &volume.spec.claim_ref {
        users_of_claim(&ObjectKey::new(claim.namespace.clone(), claim.name.clone()), woken);
    }
}

fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_, Node>) {
    if attachment.spec.node_name == woken.local.node {
        named_volume_wakes(attachment.volume().unwrap_or_default(), woken);
    }
}

fn driver_wakes(driver: &CSIDriver, woken: &mut Woken<'_, Node>) {
    let prefix = names::unique_volume_name(&driver.metadata.name, "");
    let of_driver = |key: &Key| match key {
        Key::Volume(name) => name.starts_with(&prefix),
        Key::Pod(_) => false,
    };
    woken.wake_all(Node::keys(woken.cache, woken.local).into_iter().filter(of_driver));
}

/// Every volume: each decision about one reads the Node's version and lists.
fn node_wakes(node: Sides<'_, api::Node>, woken: &mut Woken<'_, Node>) {
    if !node.iter().any(|node| node.metadata.name == woken.local.node) {
        return;
    }
    let is_volume = |key: &Key| match key {
        Key::Volume(_) => true,
        Key::Pod(_) => false,
    };
    woken.wake_all(Node::keys(woken.cache, woken.local).into_iter().filter(is_volume));
    let listed = node.iter().flat_map(|node| node.status.volumes_in_use.iter().flatten());
    woken.wake_all(listed.map(|name| Key::Volume(name.clone())));
}

fn keys_of_pod(pod: &Pod, cache: &Cache, local: &Local) -> Vec<Key> {
    let claimed = pod.claim_names().filter_map(|claim| {
        let volume = find::volume_of_claim(&pod.metadata.namespace, claim, cache).ok()?;
        volume_key(&volume)
    });
    let recorded = local.records.iter().filter(|(_, record)| record.publishes.contains_key(&pod.metadata.uid));
    let recorded = recorded.map(|(name, _)| Key::Volume(name.clone()));
    claimed.chain(recorded).chain([Key::Pod(pod.metadata.key())]).collect()
}

fn users_of_claim(claim: &ObjectKey, woken: &mut Woken<'_, Node>) {
    woken.cache.pods_by_claim(&claim.to_string()).for_each(|pod| pod_wakes(&pod, woken));
}

fn named_volume_wakes(name: &str, woken: &mut Woken<'_, Node>) {
    let volume = woken.cache.volume(&ObjectKey::cluster(name));
    woken.wake_all(volume.and_then(|volume| volume_key(&volume)));
}

fn volume_keys(cache: &Cache, local: &Local) -> BTreeSet<Key> {
    let node = cache.node(&ObjectKey::cluster(local.node.clone()));
    let listed = node.iter().flat_map(|node| node.status.volumes_in_use.iter().flatten());
    let ours = listed.filter(|name| paths::split_unique_name(name).is_some());
    ours.chain(local.records.keys()).map(|name| Key::Volume(name.clone())).collect()
}

fn volume_key(volume: &PersistentVolume) -> Option<Key> {
    let csi = volume.spec.csi.as_ref()?;
    Some(Key::Volume(names::unique_volume_name(&csi.driver, &csi.volume_handle)))
}
