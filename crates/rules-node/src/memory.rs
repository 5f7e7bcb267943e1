use alloc::collections::BTreeSet;
use alloc::string::String;

use api::{Node, Object, names};
use control::host::ProcessState;
use control::{Outcome, Refusal, Reply, Timestamp};

use crate::action::{Action, InUse};
use crate::local::Local;

/// What is kept in mind about a volume or a pod. All of it can be found out again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// How many steps have failed since one succeeded: which pod comes first turns with each.
    pub turn: u32,
    /// What the API itself last said about the volume on this node.
    pub proof: Option<AttachProof>,
    /// Directories that were made.
    pub made: BTreeSet<String>,
    /// Paths where the driver certainly has nothing: it was never called for them, or refused, or took it down.
    pub clean: BTreeSet<String>,
    /// Directories that were removed.
    pub swept: BTreeSet<String>,
    /// Uids of pods that are certainly gone from the API.
    pub gone: BTreeSet<String>,
    /// When the API last said that a pod missing from the cache is not gone: the cache is behind.
    pub alive_at: Option<Timestamp>,
    /// Processes that were told to end.
    pub stopped: BTreeSet<String>,
}

/// What a Node object from the API itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttachProof {
    /// Its version.
    pub version: u64,
    /// It carries this incarnation, lists the volume in use and, where needed, as attached.
    pub holds: bool,
}

impl Memory {
    /// Keeps an outcome in mind.
    pub fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        let turn = if matches!(got, Outcome::Done(_)) { 0 } else { self.turn.saturating_add(1) };
        Memory { turn, ..self.with(now, did, got) }
    }

    fn with(mut self, now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        let done = matches!(got, Outcome::Done(_));
        let refused = matches!(got, Outcome::Refused(Refusal::Driver(..)));
        match did {
            Action::ReportInUse(in_use) | Action::ReadNode(in_use) => {
                if let Some(proof) = proof(in_use, got) {
                    self.proof = Some(proof);
                }
            }
            // Whatever became of it, the volume may no longer be reported.
            Action::ClearInUse(_) => return Memory::default(),
            Action::WriteRecord { fresh, .. } => {
                if done {
                    self.clean.extend(fresh.iter().cloned());
                }
            }
            // Nothing of it is left.
            Action::RemoveRecord { .. } | Action::DeletePod { .. } => {
                if done {
                    return Memory::default();
                }
            }
            Action::MakeDir { path } | Action::MakeScratch { path } => {
                if done {
                    self.made.insert(path.clone());
                    self.swept.remove(path);
                }
            }
            // What cannot be removed is tried again: nothing else may hold it, since nothing of the pod runs.
            Action::RemoveScratch { path } => {
                if done {
                    self.swept.insert(path.clone());
                }
            }
            Action::Sweep { path, must } => self.swept(path, *must, got),
            Action::Stage { path, .. } | Action::Publish { target: path, .. } => {
                // Reliability 47: only a refusal with no uncertain call before it leaves the path clean.
                if !refused {
                    self.clean.remove(path);
                }
                self.swept.remove(path);
            }
            Action::Unpublish(there) | Action::Unstage(there) => {
                if done {
                    self.clean.insert(there.path.clone());
                }
            }
            Action::ReadPod { uid, .. } => self.read_pod(now, uid, got),
            Action::Stop { name, .. } => {
                if done {
                    self.stopped.insert(name.clone());
                }
            }
            Action::Start { .. } | Action::Seal { .. } | Action::Forget { .. } | Action::SetStatus { .. } => {}
        }
        self
    }

    fn swept(&mut self, path: &str, must: bool, got: &Outcome) {
        match got {
            Outcome::Done(_) => {
                self.swept.insert(path.into());
                self.made.remove(path);
            }
            // Something is there after all, so the driver is asked again to take it down.
            Outcome::Refused(_) if must => {
                self.clean.remove(path);
            }
            Outcome::Refused(_) => {
                self.swept.insert(path.into());
            }
            Outcome::Unknown(_) => {}
        }
    }

    fn read_pod(&mut self, now: Timestamp, uid: &str, got: &Outcome) {
        match got {
            Outcome::Done(Reply::Gone) => {
                self.gone.insert(uid.into());
            }
            Outcome::Done(Reply::Object(object)) if object.meta().uid != uid => {
                self.gone.insert(uid.into());
            }
            Outcome::Done(Reply::Object(_)) => self.alive_at = Some(now),
            Outcome::Done(Reply::Nothing | Reply::Objects(_) | Reply::Csi(_) | Reply::Host(_))
            | Outcome::Refused(_)
            | Outcome::Unknown(_) => {}
        }
    }
}

fn proof(in_use: &InUse, got: &Outcome) -> Option<AttachProof> {
    match got {
        Outcome::Done(Reply::Object(Object::Node(node))) => {
            Some(AttachProof { version: node.metadata.version(), holds: holds(in_use, node) })
        }
        Outcome::Done(Reply::Gone) => Some(AttachProof { version: in_use.version.number().unwrap_or(0), holds: false }),
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => None,
    }
}

/// Reliability 29, on one committed state of the Node.
fn holds(in_use: &InUse, node: &Node) -> bool {
    node.metadata.annotation(names::AGENT_INCARNATION) == Some(&in_use.incarnation)
        && node.reports_in_use(&in_use.volume)
        && (!in_use.attach_needed || node.reports_attached(&in_use.volume))
}

/// Keeps the facts about this machine true.
pub fn learn(local: &mut Local, did: &Action, got: &Outcome) {
    match got {
        Outcome::Done(_) => learn_done(local, did),
        Outcome::Unknown(_) => learn_unknown(local, did),
        Outcome::Refused(_) => {}
    }
}

fn learn_done(local: &mut Local, did: &Action) {
    match did {
        Action::WriteRecord { record, .. } => {
            local.records.insert(record.unique_name(), record.clone());
        }
        Action::RemoveRecord { volume, .. } => {
            local.records.remove(volume);
        }
        Action::Stage { path, .. } => {
            local.staged.insert(path.clone());
            local.mounts.insert(path.clone());
        }
        Action::Publish { target, .. } => {
            local.mounts.insert(target.clone());
        }
        Action::Unpublish(there) | Action::Unstage(there) => {
            local.staged.remove(&there.path);
            local.mounts.remove(&there.path);
        }
        Action::Start { process, at_millis } => {
            local.maybe_started.remove(&process.name);
            // It may have ended already, and whoever watches processes may have said so.
            let running = ProcessState::Running { since_millis: *at_millis };
            local.processes.entry(process.name.clone()).or_insert(running);
        }
        Action::Stop { name, .. } => {
            local.maybe_started.remove(name);
        }
        Action::Seal { uid, .. } => {
            local.sealed.insert(uid.clone());
        }
        Action::Forget { name } => {
            local.processes.remove(name);
        }
        Action::ClearInUse(in_use) => {
            local.clearing.remove(&in_use.volume);
        }
        Action::ReportInUse(_)
        | Action::ReadNode(_)
        | Action::MakeDir { .. }
        | Action::MakeScratch { .. }
        | Action::RemoveScratch { .. }
        | Action::Sweep { .. }
        | Action::ReadPod { .. }
        | Action::SetStatus { .. }
        | Action::DeletePod { .. } => {}
    }
}

/// It may have happened, or may yet: what must not be taken for granted afterwards.
fn learn_unknown(local: &mut Local, did: &Action) {
    match did {
        Action::ClearInUse(in_use) => {
            let version = in_use.version.number().unwrap_or(u64::MAX);
            let entry = local.clearing.entry(in_use.volume.clone()).or_default();
            *entry = version.max(*entry);
        }
        Action::Start { process, .. } => {
            local.maybe_started.insert(process.name.clone());
        }
        // It may be gone by now, so nothing is built on it before the driver has put it there again.
        Action::Unpublish(there) | Action::Unstage(there) => {
            local.staged.remove(&there.path);
            local.mounts.remove(&there.path);
        }
        Action::ReportInUse(_)
        | Action::ReadNode(_)
        | Action::WriteRecord { .. }
        | Action::RemoveRecord { .. }
        | Action::MakeDir { .. }
        | Action::MakeScratch { .. }
        | Action::RemoveScratch { .. }
        | Action::Sweep { .. }
        | Action::Stage { .. }
        | Action::Publish { .. }
        | Action::ReadPod { .. }
        | Action::Stop { .. }
        | Action::Seal { .. }
        | Action::Forget { .. }
        | Action::SetStatus { .. }
        | Action::DeletePod { .. } => {}
    }
}
