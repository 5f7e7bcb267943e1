use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use control::host::ProcessState;

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
    /// Registered drivers by name.
    pub drivers: BTreeMap<String, DriverFacts>,
    /// Records by unique volume name.
    pub records: BTreeMap<String, Record>,
    /// Paths of records that are there but cannot be read (reliability 48).
    pub unreadable: BTreeSet<String>,
    /// Mount points under the root directory.
    pub mounts: BTreeSet<String>,
    /// Staging paths this incarnation had the driver stage. A mount found at start does not count: an unstage begun by
    /// an earlier incarnation may still be under way in the driver. Starts empty.
    pub staged: BTreeSet<String>,
    /// Processes by name.
    pub processes: BTreeMap<String, ProcessState>,
    /// Processes whose start was never answered: they may run. Starts empty.
    pub maybe_started: BTreeSet<String>,
    /// Pods, by uid, whose processes have ended and of which none will be started again in this incarnation. Starts
    /// empty.
    pub sealed: BTreeSet<String>,
    /// Volumes, by unique name, whose clearing from `volumesInUse` was never answered, with the Node version it was sent
    /// for: until the Node is newer than that, the write may still land. Starts empty.
    pub clearing: BTreeMap<String, u64>,
}

/// What the node needs to know about a registered driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DriverFacts {
    /// It stages volumes before it publishes them.
    pub stages: bool,
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

    /// Some record lists a publish for this pod.
    pub(crate) fn is_recorded(&self, uid: &str) -> bool {
        self.records.values().any(|record| record.publishes.contains_key(uid))
    }
}
