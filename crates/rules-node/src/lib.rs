//! This node's pods: their volumes from attachment to mount and back, and their processes.
//!
//! Owns: the node's `volumesInUse`; the staging and publish paths under its root directory with the record beside them
//! (`vol_data.json`); the processes of the pods on this node; the status of those pods; the end of a deleting pod.
//!
//! Writes: Node status (`volumesInUse` only, and only while the Node carries this incarnation of the agent), Pod
//! status, Pod deletion with grace 0.
//!
//! Only reads: claims, volumes, attachments, drivers, `volumesAttached`.
//!
//! Laws (reliability 29, 30, 39 to 50):
//! - the first node call for a volume is made only on proof: a Node object from the API itself (the answer to our own
//!   write, or a fresh read) that carries this incarnation, reports the volume in use and, where needed, attached;
//! - the record is durable before the first node call and goes only after the last confirmed one; the volume stays in
//!   `volumesInUse` at least as long as the record;
//! - NodeUnstage only when no publish is in the record;
//! - a process starts only when each of its volumes is mounted; a volume is unpublished only after the pod is sealed:
//!   all its processes have ended and none will be started again;
//! - a pod that is merely missing from the cache is not gone: that takes a fresh read;
//! - a record that cannot be read means in use: nothing of that volume is touched.
//!
//! Volume and pod keys are looked at independently of each other, so that a hung volume delays no other. They meet only
//! in [`Local`]: a pod key says *sealed*, a volume key says *mounted*.
//!
//! Does not know: how drivers register, who attaches, what a mount is, or what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod local;
mod memory;
mod paths;
mod reason;
mod record;
mod sandbox;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod wakes;

pub use action::Action;
pub use local::{DriverFacts, Local};
pub use memory::{AttachProof, Memory};
pub use paths::{Paths, ProcessName, RECORD_FILE, process_name, record_path, staging_path, target_path, volumes_dir};
pub use reason::Reason;
pub use record::{BadRecord, Publish, Record};
pub use spec::VolumeSpec;
pub use view::{
    AttachmentState, ContainerView, MountState, NodeSide, OnNode, PodView, PodVolumeView, RecordSide, Remains, User,
    UserState, View, VolumeView,
};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};

use crate::action::There;

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

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        wakes::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Volume(name) => build::volume(name, cache, local),
            Key::Pod(pod) => build::pod(pod, cache, local),
        }
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
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
            | Action::MakeScratch { .. }
            | Action::RemoveScratch { .. }
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

    /// A volume is one of this node, whatever the PersistentVolume with its handle is called.
    fn about(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectRef> {
        let Key::Volume(name) = key else { return alloc::vec![Self::object(key)] };
        let handle = paths::split_unique_name(name).map(|(driver, handle)| alloc::format!("{driver}^{handle}"));
        let volume = handle.and_then(|handle| cache.volumes_by_handle(&handle).next());
        let volume = volume
            .map_or_else(|| Self::object(key), |one| ObjectRef::cluster(Kind::PersistentVolume, &*one.metadata.name));
        alloc::vec![volume, ObjectRef::cluster(Kind::Node, &*local.node)]
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

    /// What keeps a pod from running, by kubelet's reasons. Waiting that is part of every life is said once it lasts.
    fn rest_event(_key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        match why.code {
            Reason::VolumeNotSupported
            | Reason::VolumeKindNotSupported
            | Reason::DriverNotRegistered
            | Reason::NotAttached
            | Reason::NotReportedAttached
            | Reason::UsedByAnotherPod
            | Reason::RecordUnreadable
            | Reason::SubPathNotSupported
            | Reason::VolumeMountUnknown => Some((EventType::Warning, "FailedMount")),
            Reason::PodFailed
            | Reason::InitContainersNotSupported
            | Reason::EnvSourceNotSupported
            | Reason::CreateContainerConfigError
            | Reason::SecurityContextNotSupported => Some((EventType::Warning, "Failed")),
            _ => None,
        }
    }
}
