//! This node's pods: their volumes from attachment to mount and back, and their processes.
//!
//! Owns: the node's `volumesInUse`; the staging and publish paths under its root directory with the record beside them
//! (`vol_data.json`); the processes of the pods on this node; the status of those pods; the end of a deleting pod.
//!
//! Writes: Node status (`volumesInUse` only, and only while the Node carries this incarnation of the agent), Pod
//! status, Pod deletion with grace 0, the status of claims whose filesystem grows (their size, their progress from the
//! node's turn on, their conditions about it).
//!
//! Only reads: volumes, attachments, drivers, `volumesAttached`, secrets (just before a call, never kept).
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
//! - a record that cannot be read means in use: nothing of that volume is touched;
//! - NodeExpandVolume only for a volume that is published here and that this incarnation had the driver stage; a claim
//!   gets its new size only after the record says that the filesystem has it (reliability 56).
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
mod checks;
mod conditions;
mod container_status;
mod contents;
mod decide;
mod expand;
mod group;
mod growth;
mod health;
mod in_use;
mod inline;
mod lives;
mod local;
mod memory;
mod orphans;
mod paths;
mod publishing;
mod reason;
mod record;
mod sandbox;
mod served;
mod spec;
mod stats;
mod status;
#[cfg(test)]
mod tests;
mod tokens;
mod uses;
mod view;
mod wakes;

pub use action::{Action, Check};
pub use checks::{CheckKey, CheckKind, CheckSpec, CheckView, Checked};
pub use contents::{PodSource, PodToken, SourceNeed, SourceRead, TokenRead};
pub use expand::{Expand, ExpandCall, ExpandFailure, ExpandMemory};
pub use group::GroupChange;
pub use growth::{Growth, GrowthPlan, GrowthProgress, GrowthSizes, Tell};
pub use health::{AskHealth, VolumeAilments, unwell_claims};
pub use local::{DriverFacts, Local};
pub use memory::{AttachProof, Memory};
pub use orphans::{OrphanView, OrphansView, POD_DIR_DEPTH, PodDir, is_listed, unknown_pods};
pub use paths::{Paths, ProcessName, RECORD_FILE, plugin_dir, pods_dir, process_name, target_path, volumes_dir};
pub use reason::Reason;
pub use record::{BadRecord, Publish, Record};
pub use spec::VolumeSpec;
pub use stats::{ManagedVolumes, PublishedVolume, managed_volumes, published_volumes};
pub use tokens::{HeldTokens, TokenWishes};
pub use view::{
    AttachmentState, ContainerView, MemoryVolume, MountState, NodeSide, OnNode, OwnVolume, PodView, PodVolumeView,
    RecordSide, Remains, ToldOfNode, User, UserState, View, VolumeView,
};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectKey, ObjectRef};
use control::{Cache, Decision, EventType, HandleOf, Narrate, Outcome, Route, Rules, Timestamp, Why};

use crate::action::{Publishing, There};

/// How long directories of pods that are gone may still be there before that is told.
const ORPHAN_PATIENCE_MILLIS: u64 = 10_000;

/// The node agent's rules.
pub struct Node;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A volume, by unique name.
    Volume(String),
    Pod(ObjectKey),
    /// A probe or hook of a container.
    Check(CheckKey),
    /// Directories of pods that nothing else remembers, all together.
    Orphans,
    /// The directory of a pod that is gone, by the pod's uid.
    Orphan(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Volume(name) => write!(f, "volume {name}"),
            Key::Pod(pod) => write!(f, "pod {pod}"),
            Key::Check(CheckKey { pod, container, kind }) => write!(f, "{} of {container} in pod {pod}", kind.name()),
            Key::Orphans => write!(f, "directories of unknown pods"),
            Key::Orphan(uid) => write!(f, "directory of pod {uid}"),
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
    const HANDLE_OF: Option<HandleOf> = Some(rules_translate::handle_of);

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        wakes::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        match key {
            Key::Volume(name) => build::volume(name, cache, local),
            Key::Pod(pod) => build::pod(pod, cache, local),
            Key::Check(check) => build::check(check, cache, local),
            Key::Orphans => View::Orphans(alloc::boxed::Box::new(orphans::all(cache, local))),
            Key::Orphan(uid) => View::Orphan(alloc::boxed::Box::new(orphans::one(uid, cache, local))),
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
        let orphaned = matches!(did, Action::Sweep { path, .. } if local.is_pod_dir(path));
        memory::learn(local, did, got);
        match did {
            Action::Publish(Publishing { target, .. })
            | Action::SetGroup { target, .. }
            | Action::Unpublish(There { path: target, .. }) => {
                let all = local.records.values().flat_map(|record| record.publishes.values());
                let there = all.filter(|publish| publish.target == *target);
                there.map(|p| Key::Pod(ObjectKey::new(p.pod_namespace.clone(), p.pod_name.clone()))).collect()
            }
            // A record no longer names the pods that wait for it to forget them.
            Action::WriteRecord { .. } | Action::RemoveRecord { .. } | Action::Seal { .. } => Self::keys(cache, local),
            Action::BeginEnd { name } | Action::Check(Check { process: name, .. }) => {
                let Some(name) = ProcessName::parse(name) else { return Vec::new() };
                let pod = cache.pod(&name.pod);
                let checks = pod.iter().flat_map(|pod| checks::keys(pod)).map(Key::Check);
                checks.chain([Key::Pod(name.pod.clone())]).collect()
            }
            // Each is swept on its own, and all of them together are told of.
            Action::ListPods { uids } => uids.iter().map(|uid| Key::Orphan(uid.clone())).collect(),
            Action::Sweep { .. } if orphaned => alloc::vec![Key::Orphans],
            // A pod that waited for a growth that cannot be had now goes on without it.
            Action::Expand(step) if matches!(**step, Expand::Call(_)) => Self::keys(cache, local),
            Action::ReportInUse(_)
            | Action::ClearInUse(_)
            | Action::ReadNode(_)
            | Action::MakeDir { .. }
            | Action::MakeScratch { .. }
            | Action::ReadSource { .. }
            | Action::AskToken { .. }
            | Action::MountMemory { .. }
            | Action::UnmountMemory { .. }
            | Action::ShowFiles { .. }
            | Action::EnsureHostPath { .. }
            | Action::MeasureScratch { .. }
            | Action::RemoveScratch { .. }
            | Action::Sweep { .. }
            | Action::SweepDevice { .. }
            | Action::SweepFile { .. }
            | Action::ReadSecret { .. }
            | Action::RequestToken { .. }
            | Action::Stage { .. }
            | Action::Unstage(_)
            | Action::Expand(_)
            | Action::NoteVanished { .. }
            | Action::AskHealth(_)
            | Action::NoteRecovered { .. }
            | Action::ReadPod { .. }
            | Action::Start { .. }
            | Action::Ask { .. }
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
            Key::Pod(pod) | Key::Check(CheckKey { pod, .. }) => ObjectRef { kind: Kind::Pod, key: pod.clone() },
            // The node's own name is not in the key: see `about` and `event_targets`.
            Key::Orphans | Key::Orphan(_) => ObjectRef::cluster(Kind::Node, ""),
        }
    }

    /// A volume is one of this node, whatever the PersistentVolume with its handle is called.
    fn about(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectRef> {
        let name = match key {
            Key::Volume(name) => name,
            Key::Orphans | Key::Orphan(_) => return alloc::vec![ObjectRef::cluster(Kind::Node, &*local.node)],
            Key::Pod(_) | Key::Check(_) => return alloc::vec![Self::object(key)],
        };
        let (driver, handle) = paths::split_unique_name(name).unwrap_or_default();
        let mut all = served::of_handle(driver, handle, cache, local).into_iter().filter(|one| !one.held);
        let volume = all.next().map_or_else(
            || Self::object(key),
            |one| ObjectRef::cluster(Kind::PersistentVolume, &*one.volume.metadata.name),
        );
        alloc::vec![volume, ObjectRef::cluster(Kind::Node, &*local.node)]
    }
}

impl Narrate for Node {
    /// Users look at their pods, not at volumes.
    fn event_targets(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectRef> {
        match Self::view(key, cache, local) {
            View::Volume(view) if !view.users.is_empty() => {
                let pods = view.users.values().map(|user| ObjectRef { kind: Kind::Pod, key: user.pod.clone() });
                // EX-19: a growth is told on the claim as well.
                let growing = view.growth.filter(|growth| growth.plan().is_some());
                pods.chain(growing.map(|growth| growth.claim.object)).collect()
            }
            View::Volume(_) | View::Pod(_) | View::Check(_) => alloc::vec![Self::object(key)],
            View::Orphans(_) | View::Orphan(_) => Self::about(key, cache, local),
        }
    }

    /// What keeps a pod from running, by kubelet's reasons. Waiting that is part of every life is said once it lasts.
    fn rest_event(_key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        match why.code {
            Reason::VolumeNotSupported
            | Reason::VolumeKindNotSupported
            | Reason::NodeAffinityMismatch
            | Reason::DriverNotRegistered
            | Reason::NotAttached
            | Reason::NotReportedAttached
            | Reason::UsedByAnotherPod
            | Reason::RecordUnreadable
            | Reason::VolumeContentsMissing
            | Reason::VolumeMountUnknown => Some((EventType::Warning, "FailedMount")),
            Reason::NodeNotDrained => Some((EventType::Warning, "NodeNotDrained")),
            Reason::ResizeReadOnly | Reason::ResizeNeedsRestart | Reason::ResizeUnsupported => {
                Some((EventType::Warning, "FileSystemResizeFailed"))
            }
            Reason::PodFailed
            | Reason::Evicted
            | Reason::CreateContainerConfigError
            | Reason::SecurityContextNotSupported => Some((EventType::Warning, "Failed")),
            Reason::OrphanedPods => Some((EventType::Warning, "OrphanedPods")),
            _ => None,
        }
    }

    /// Sweeping takes a moment.
    fn patience(why: &Why<Reason>) -> u64 {
        if why.code == Reason::OrphanedPods { ORPHAN_PATIENCE_MILLIS } else { 2_000 }
    }
}
