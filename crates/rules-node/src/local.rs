use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use control::host::ProcessState;
use csi::{Capabilities, NodeRpc};
use rules_translate::Migration;

use crate::checks::{CheckKind, Checked};
use crate::health::VolumeAilments;
use crate::orphans::PodDir;
use crate::paths::ProcessName;
use crate::record::{BadRecord, Record};

/// What this machine knows outside the API. Whoever runs the rules builds it at start from the record files, the mount
/// table and the running processes, and keeps `drivers` and `processes` up to date; the rules keep the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// The node's name.
    pub node: String,
    /// This incarnation of the agent.
    pub incarnation: String,
    /// The directory everything is under.
    pub root: String,
    /// Which plugins this node leaves to their drivers.
    pub migration: Migration,
    /// Registered drivers by name.
    pub drivers: BTreeMap<String, DriverFacts>,
    /// Records by unique volume name.
    pub records: BTreeMap<String, Record>,
    /// Paths of records that are there but cannot be read (reliability 48).
    pub unreadable: BTreeSet<String>,
    /// Volumes, by unique name, whose record was written without an answer: one may be there that [`Local::records`]
    /// does not have. Starts empty, since a start reads what is there.
    pub maybe_recorded: BTreeSet<String>,
    /// Mount points under the root directory.
    pub mounts: BTreeSet<String>,
    /// Staging paths this incarnation had the driver stage. A mount found at start does not count: an unstage begun by
    /// an earlier incarnation may still be under way in the driver. Starts empty.
    pub staged: BTreeSet<String>,
    /// Targets whose files this incarnation gave to the pod's fsGroup. Starts empty: one left half done is done again.
    pub grouped: BTreeSet<String>,
    /// Volumes in memory whose mounting was never answered: they may be there. Starts empty.
    pub maybe_mounted: BTreeSet<String>,
    /// Processes by name.
    pub processes: BTreeMap<String, ProcessState>,
    /// Processes whose start was never answered: they may run. Starts empty.
    pub maybe_started: BTreeSet<String>,
    /// What probes and hooks said, by process. Starts empty.
    pub checks: BTreeMap<(String, CheckKind), Checked>,
    /// Processes that are to end. Starts empty.
    pub ending: BTreeSet<String>,
    /// Pods, by uid, whose processes have ended and of which none will be started again in this incarnation. Starts
    /// empty.
    pub sealed: BTreeSet<String>,
    /// Volumes, by unique name, whose clearing from `volumesInUse` was never answered, with the Node version it was sent
    /// for: until the Node is newer than that, the write may still land. Starts empty.
    pub clearing: BTreeMap<String, u64>,
    /// Paths where a volume was mounted and is no longer, without our asking. Starts empty.
    pub vanished: BTreeSet<String>,
    /// What drivers said of the health of volumes, by target. Starts empty.
    pub health: BTreeMap<String, VolumeAilments>,
    /// Targets of volumes that were unwell and are well again, which is not told yet. Starts empty.
    pub recovered: BTreeSet<String>,
    /// Directories found beside those of known pods, by their names, and what is in each (KL-99).
    pub pod_dirs: BTreeMap<String, PodDir>,
    /// Pods, by uid, that the API itself has not. A uid never comes back. Starts empty.
    pub gone: BTreeSet<String>,
    /// Volumes, by unique name, whose filesystem the driver cannot give this size while it is in use. Starts empty.
    pub stuck: BTreeMap<String, i64>,
}

/// What the node needs to know about a registered driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DriverFacts {
    /// What it can do on a node.
    pub capabilities: Capabilities,
    /// Its registrar asked for pod information (`requires_publish_pod`).
    pub wants_pod: bool,
}

impl DriverFacts {
    /// A driver that can do this.
    pub fn new(capabilities: impl IntoIterator<Item = NodeRpc>) -> DriverFacts {
        DriverFacts { capabilities: capabilities.into_iter().collect(), wants_pod: false }
    }

    /// Whether the driver has a capability.
    pub fn can(&self, one: NodeRpc) -> bool {
        self.capabilities.has(one)
    }
}

impl Local {
    /// Takes in a record file found at start, or why it could not be read. The volume of a record that cannot be
    /// used is left alone, as if it were in use (reliability 48).
    pub fn load_record(&mut self, path: &str, read: Result<Vec<u8>, String>) -> Result<(), BadRecord> {
        match read.map_err(BadRecord).and_then(|bytes| Record::parse(&bytes)) {
            Ok(record) => drop(self.records.insert(record.unique_name(), record)),
            Err(bad) => {
                self.unreadable.insert(path.into());
                return Err(bad);
            }
        }
        Ok(())
    }

    /// The mount table has changed from what it was seen to hold to what it holds now. A driver may stage a volume
    /// without a mount: only what was seen in the table can vanish from it.
    pub fn remounted(&mut self, before: &BTreeSet<String>, now: &BTreeSet<String>) {
        for path in before.difference(now) {
            if self.mounts.remove(path) && self.is_published(path) {
                self.vanished.insert(path.clone());
            }
        }
        self.mounts.extend(now.iter().cloned());
        self.vanished.retain(|path| !now.contains(path));
    }

    fn is_published(&self, path: &str) -> bool {
        self.records.values().any(|record| record.publishes.values().any(|publish| publish.target == path))
    }

    /// A node on which nothing is mounted and nothing runs.
    pub fn new(node: impl Into<String>, incarnation: impl Into<String>, root: impl Into<String>) -> Local {
        Local { node: node.into(), incarnation: incarnation.into(), root: root.into(), ..Local::default() }
    }

    /// Processes of pods, with what their names say. One that may have been started counts as running.
    pub(crate) fn pod_processes(&self) -> impl Iterator<Item = (ProcessName, ProcessState)> {
        let unsure = self.maybe_started.iter().filter(|name| !self.processes.contains_key(*name));
        let unsure = unsure.map(|name| (name, ProcessState::Running { since_millis: 0 }));
        let known = self.processes.iter().map(|(name, state)| (name, state.clone()));
        known.chain(unsure).filter_map(|(name, state)| Some((ProcessName::parse(name)?, state)))
    }

    /// The path is that of a directory that was found.
    pub(crate) fn is_pod_dir(&self, path: &str) -> bool {
        self.uid_of_dir(path).is_some_and(|uid| self.pod_dirs.contains_key(uid))
    }

    /// A directory is gone: if it was a pod's, nothing is left of that.
    pub(crate) fn removed_dir(&mut self, path: &str) {
        if let Some(uid) = self.uid_of_dir(path) {
            self.pod_dirs.remove(uid);
            self.gone.remove(uid);
        }
    }

    fn uid_of_dir<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.root)?.strip_prefix("/pods/")
    }

    /// Some record lists a publish for this pod.
    pub(crate) fn is_recorded(&self, uid: &str) -> bool {
        self.records.values().any(|record| record.publishes.contains_key(uid))
    }
}
