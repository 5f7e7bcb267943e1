//! Directories of pods of which nothing else is left (KL-99): whoever runs the rules finds them, the API itself says
//! that their pods are gone, and then each is swept on its own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::Cache;

use crate::local::Local;
use crate::paths;

/// How deep whoever lists a pod's directory looks: `volume-subpaths/<volume>/<container>/<number>`.
pub const POD_DIR_DEPTH: usize = 4;
/// The directory of a pod's volumes, from which only what is empty is removed.
const VOLUMES: &str = "volumes";
/// Where a kubelet has parts of volumes mounted. What is left there is one empty file or directory for each.
const SUB_PATHS: &str = "volume-subpaths";
/// What a kubelet keeps beside a pod's volumes: nothing of it outlives the pod.
const OF_KUBELET: [&str; 3] = ["containers", "plugins", "etc-hosts"];

/// What is in a pod's directory, by path from there, and whether it is a directory.
pub type PodDir = BTreeMap<String, bool>;

/// Whether whoever lists a pod's directory enters a path in it: what is in the volumes that this agent made goes with
/// them, however much it is.
pub fn is_listed(path: &str) -> bool {
    !paths::OWN_KINDS.iter().any(|kind| path.strip_prefix("volumes/") == Some(*kind))
}

/// Directories of pods that nothing else remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphansView {
    /// Those of which the API has not said yet that their pods are gone, by uid.
    pub unsure: BTreeSet<String>,
    /// Those whose pods are gone, with what keeps them, if that is known.
    pub gone: BTreeMap<String, Option<String>>,
}

/// The directory of a pod that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanView {
    /// The pod's uid.
    pub uid: String,
    /// Where the directory is.
    pub dir: String,
    /// What is in it; `None` if it is not there, or something remembers the pod.
    pub holds: Option<PodDir>,
    /// Filesystems in memory that are volumes of the pod.
    pub own_mounts: Vec<String>,
    /// What keeps it.
    pub kept: Option<String>,
}

/// What is known of all of them.
pub fn all(cache: &Cache, local: &Local) -> OrphansView {
    let (gone, unsure): (BTreeSet<_>, BTreeSet<_>) = candidates(cache, local).partition(|uid| local.gone.contains(uid));
    let gone = gone.into_iter().map(|uid| (uid.clone(), kept(&uid, local))).collect();
    OrphansView { unsure, gone }
}

/// What is known of one of them.
pub fn one(uid: &str, cache: &Cache, local: &Local) -> OrphanView {
    let found = candidates(cache, local).any(|candidate| candidate == uid);
    OrphanView {
        uid: uid.into(),
        dir: paths::pod_dir(&local.root, uid),
        holds: local.pod_dirs.get(uid).filter(|_| found && local.gone.contains(uid)).cloned(),
        own_mounts: mounts(uid, local).filter(|mount| is_own(mount, uid, local)).cloned().collect(),
        kept: kept(uid, local),
    }
}

/// Of the names of directories those of pods of which there is no object, no record and no process here.
pub fn unknown_pods(names: Vec<String>, cache: &Cache, local: &Local) -> impl Iterator<Item = String> {
    let mut known: BTreeSet<String> = cache.pods_by_node(&local.node).map(|pod| pod.metadata.uid.clone()).collect();
    known.extend(local.pod_processes().map(|(name, _)| name.uid));
    known.extend(local.records.values().flat_map(|record| record.publishes.keys().cloned()));
    names.into_iter().filter(move |uid| is_uid(uid) && !known.contains(uid))
}

/// The same of those that were found.
pub fn candidates(cache: &Cache, local: &Local) -> impl Iterator<Item = String> {
    unknown_pods(local.pod_dirs.keys().cloned().collect(), cache, local)
}

/// The name is one that pods have: what else somebody keeps beside them is nobody's to remove.
fn is_uid(name: &str) -> bool {
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A pod of a kubelet's own has a hash for a uid.
    let plain = name.len() == 32 && hex(name);
    plain || (name.len() == 36 && name.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && name.split('-').all(hex))
}

fn mounts<'a>(uid: &str, local: &'a Local) -> impl Iterator<Item = &'a String> {
    let dir = paths::pod_dir(&local.root, uid);
    let inside = format!("{dir}/");
    local.mounts.union(&local.maybe_mounted).filter(move |mount| **mount == dir || mount.starts_with(&inside))
}

/// A volume in memory lies right in the directory of its kind.
fn is_own(mount: &str, uid: &str, local: &Local) -> bool {
    paths::own_dirs(&local.root, uid).contains(&paths::parent(mount))
}

/// Nothing of a directory is touched while it holds a mount that is not ours, or a file nobody can account for.
fn kept(uid: &str, local: &Local) -> Option<String> {
    if let Some(path) = local.unreadable.first() {
        return Some(format!("the record {path} cannot be read and may be about it; restore or remove that"));
    }
    if let Some(mount) = mounts(uid, local).find(|mount| !is_own(mount, uid, local)) {
        return Some(format!("something is mounted at {mount}; unmount it by hand"));
    }
    let dir = paths::pod_dir(&local.root, uid);
    let holds = local.pod_dirs.get(uid)?;
    let file = holds.iter().find(|(path, is_dir)| !**is_dir && !goes(path))?;
    Some(format!("{dir}/{} is not known to be of no use; look at it, and remove it", file.0))
}

/// A path that is no directory and goes all the same.
fn goes(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    first == SUB_PATHS || OF_KUBELET.contains(&first)
}

/// How something in the directory of a pod that is gone is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// With all that is in it.
    Whole,
    /// If it is a plain file.
    File,
    /// If it is an empty file or directory.
    Target,
    /// If it is an empty directory.
    Empty,
}

/// The paths in a pod's directory that are removed one after the other, innermost first, and how.
pub fn removals(holds: &PodDir) -> Vec<(String, Removal)> {
    let mut all: Vec<(String, Removal)> = Vec::new();
    for (path, is_dir) in holds {
        let mut parts = path.split('/');
        let (first, nested) = (parts.next().unwrap_or_default(), parts.next().is_some());
        let how = match (first, is_dir) {
            (first, _) if nested && OF_KUBELET.contains(&first) => continue,
            (first, true) if OF_KUBELET.contains(&first) => Removal::Whole,
            (first, false) if OF_KUBELET.contains(&first) => Removal::File,
            (SUB_PATHS, false) => Removal::Target,
            (VOLUMES, true) if !is_listed(path) => Removal::Whole,
            (_, true) => Removal::Empty,
            (_, false) => continue,
        };
        all.push((path.clone(), how));
    }
    all.sort_by_key(|(path, _)| (core::cmp::Reverse(path.split('/').count()), path.clone()));
    all
}
