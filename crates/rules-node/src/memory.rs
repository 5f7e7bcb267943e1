use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use api::{Node, Object, names};
use control::host::{ProcessState, ShownFile};
use control::{Outcome, Refusal, Reply, Secrets, Timestamp};

use crate::action::{Action, Check, InUse, Publishing};
use crate::contents::{ReadSources, ReadTokens, SourceRead, TokenRead};
use crate::expand::{self, ExpandMemory};
use crate::health;
use crate::local::Local;
use crate::paths;
use crate::tokens::HeldTokens;

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
    /// Pods, by uid, that the API has although nothing here knows them, and when it said so.
    pub alive: BTreeMap<String, Timestamp>,
    /// Processes whose end has begun with a hook, and when.
    pub ending: BTreeMap<String, Timestamp>,
    /// Processes that were asked to end, and when.
    pub asked: BTreeMap<String, Timestamp>,
    /// Processes that were made to end.
    pub stopped: BTreeSet<String>,
    /// What is known of a growth.
    pub expand: ExpandMemory,
    /// What is secret about the next call, and the path it is about; forgotten after it.
    pub secrets: Option<(String, Secrets)>,
    /// Tokens for the next call, and the path it is about; forgotten after it.
    pub tokens: (String, HeldTokens),
    /// When a volume was last published at a target.
    pub published_at: BTreeMap<String, Timestamp>,
    /// When a driver was last asked about a volume's health at a target.
    pub health_at: BTreeMap<String, Timestamp>,
    /// The record was removed: only directories are left.
    pub removed: bool,
    /// Config maps and secrets as they were last read.
    pub sources: ReadSources,
    /// Tokens that the pod's volumes show.
    pub pod_tokens: ReadTokens,
    /// What volumes show, by their paths.
    pub shown: BTreeMap<String, BTreeMap<String, ShownFile>>,
    /// Places of the machine that are what they should be.
    pub places: BTreeSet<String>,
    /// How much `emptyDir` volumes take, by their paths, and when that was found out.
    pub measured: BTreeMap<String, (Timestamp, u64)>,
}

/// What a Node object from the API itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttachProof {
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
            Action::RemoveRecord { .. } => {
                if done {
                    return Memory { removed: true, ..Memory::default() };
                }
            }
            Action::DeletePod { .. } => {
                if done {
                    return Memory::default();
                }
            }
            Action::ReadSecret { purpose, secret } => {
                self.secrets = Secrets::of(secret, got).ok().map(|secrets| (purpose.clone(), secrets));
            }
            Action::RequestToken { purpose, audience, .. } => {
                if self.tokens.0 != *purpose {
                    self.tokens = (purpose.clone(), HeldTokens::default());
                }
                self.tokens.1.add(audience, got);
            }
            Action::SetGroup { .. } => {}
            Action::SweepDevice { path } | Action::SweepFile { path } => self.swept(path, true, got),
            Action::ListPods { uids } => {
                let listed = listed_pods(got);
                let alive = uids.iter().filter(|uid| listed.as_ref().is_some_and(|listed| listed.contains(*uid)));
                self.alive = alive.map(|uid| (uid.clone(), now)).collect();
            }
            Action::MakeDir { path } | Action::MakeScratch { path } => {
                if done {
                    self.made.insert(path.clone());
                    self.swept.remove(path);
                }
            }
            Action::ReadSource { source, need, .. } => {
                if let Some(read) = SourceRead::after(now, self.sources.get(source), need.optional, got) {
                    self.sources.insert(source.clone(), read);
                }
            }
            // One that is still good is kept where no newer one could be had.
            Action::AskToken { token, .. } => {
                if let Some(read) = TokenRead::after(now, got) {
                    self.pod_tokens.insert(token.clone(), read);
                }
            }
            Action::MountMemory { path, .. } => {
                self.shown.remove(path);
            }
            // Whatever became of it, it may no longer show what it did.
            Action::UnmountMemory { path } => {
                self.shown.remove(path);
            }
            Action::ShowFiles { path, files, .. } => {
                self.shown.remove(path);
                if done {
                    self.shown.insert(path.clone(), files.clone());
                }
            }
            Action::EnsureHostPath { path, .. } => {
                if done {
                    self.places.insert(path.clone());
                }
            }
            Action::MeasureScratch { path } => {
                if let Outcome::Done(Reply::Host(control::host::Reply::Usage(usage))) = got {
                    self.measured.insert(path.clone(), (now, usage.bytes_used));
                }
            }
            // What cannot be removed is tried again: nothing else may hold it, since nothing of the pod runs. What was
            // read for the pod is forgotten with it.
            Action::RemoveScratch { path } => {
                self.sources.clear();
                self.pod_tokens.clear();
                self.shown.clear();
                if done {
                    self.swept.insert(path.clone());
                }
            }
            Action::Sweep { path, must } => self.swept(path, *must, got),
            Action::Stage { path, .. } | Action::Publish(Publishing { target: path, .. }) => {
                // Reliability 47: only a refusal with no uncertain call before it leaves the path clean.
                if !refused {
                    self.clean.remove(path);
                }
                self.swept.remove(path);
                self.secrets = None;
                self.tokens = Default::default();
                if done {
                    self.published_at.insert(path.clone(), now);
                }
            }
            Action::Unpublish(there) | Action::Unstage(there) => {
                if done {
                    self.clean.insert(there.path.clone());
                    self.published_at.remove(&there.path);
                }
            }
            Action::NoteVanished { .. } | Action::NoteRecovered { .. } => {}
            Action::AskHealth(asked) => {
                self.health_at.insert(asked.there.path.clone(), now);
            }
            Action::Expand(step) => self.expand = self.expand.after(step, got),
            Action::ReadPod { uid, .. } => self.read_pod(now, uid, got),
            Action::BeginEnd { name } => {
                self.ending.insert(name.clone(), now);
            }
            Action::Check(_) => {}
            Action::Ask { name, .. } => {
                if done {
                    self.asked.insert(name.clone(), now);
                }
            }
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
            // It may be gone, or go yet: whoever needs it makes it again.
            Outcome::Unknown(_) => {
                self.made.remove(path);
            }
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
    if let Action::Check(check) = did {
        return learn_check(local, check, got);
    }
    if let Action::Expand(step) = did {
        expand::learn(local, step, got);
    }
    if let Action::AskHealth(asked) = did {
        health::learn(local, asked, got);
    }
    // Whoever is in none of them has been gone since before it was asked, and for ever.
    if let (Action::ListPods { uids }, Some(listed)) = (did, listed_pods(got)) {
        local.gone.extend(uids.difference(&listed).cloned());
    }
    match got {
        Outcome::Done(_) => learn_done(local, did),
        Outcome::Unknown(_) => learn_unknown(local, did),
        Outcome::Refused(_) => {}
    }
}

/// The uids of all pods that there are; `None` if the API did not say.
fn listed_pods(got: &Outcome) -> Option<BTreeSet<String>> {
    match got {
        Outcome::Done(Reply::Objects(pods)) => Some(pods.iter().map(|pod| pod.meta().uid.clone()).collect()),
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => None,
    }
}

/// An answer counts whatever became of it: no answer is a bad one.
fn learn_check(local: &mut Local, check: &Check, got: &Outcome) {
    let answer = match (&check.handler, got) {
        (Err(why), _) => Err(why.clone()),
        (Ok(_), Outcome::Done(_)) => Ok(()),
        (Ok(_), Outcome::Refused(_) | Outcome::Unknown(_)) => Err(got.failure().unwrap_or_default()),
    };
    let known = local.checks.entry((check.process.clone(), check.kind)).or_default();
    known.count(check.at_millis, check.limits, answer);
}

fn learn_done(local: &mut Local, did: &Action) {
    match did {
        Action::WriteRecord { record, .. } => {
            local.maybe_recorded.remove(&record.unique_name());
            local.records.insert(record.unique_name(), record.clone());
        }
        Action::RemoveRecord { volume, .. } => {
            local.maybe_recorded.remove(volume);
            local.records.remove(volume);
        }
        Action::Stage { path, driver, handle, .. } => {
            local.staged.insert(path.clone());
            local.mounts.insert(path.clone());
            local.stuck.remove(&paths::unique_name(driver, handle));
        }
        Action::Publish(Publishing { target, driver, handle, staging, .. }) => {
            local.mounts.insert(target.clone());
            if staging.is_none() {
                local.stuck.remove(&paths::unique_name(driver, handle));
            }
        }
        Action::SetGroup { target, .. } => {
            local.grouped.insert(target.clone());
        }
        Action::MountMemory { path, .. } => {
            local.maybe_mounted.remove(path);
            local.mounts.insert(path.clone());
        }
        Action::UnmountMemory { path } => {
            local.maybe_mounted.remove(path);
            local.mounts.remove(path);
        }
        Action::Unpublish(there) | Action::Unstage(there) => {
            local.staged.remove(&there.path);
            local.mounts.remove(&there.path);
            local.grouped.remove(&there.path);
            local.vanished.remove(&there.path);
            local.health.remove(&there.path);
            local.recovered.remove(&there.path);
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
        Action::NoteVanished { path } => {
            local.vanished.remove(path);
        }
        Action::NoteRecovered { path } => {
            local.recovered.remove(path);
        }
        Action::BeginEnd { name } => {
            local.ending.insert(name.clone());
        }
        Action::Seal { uid, .. } => {
            local.sealed.insert(uid.clone());
        }
        Action::Sweep { path, .. } => local.removed_dir(path),
        Action::Forget { name } => {
            local.processes.remove(name);
            local.checks.retain(|(process, _), _| process != name);
            local.ending.remove(name);
        }
        Action::ClearInUse(in_use) => {
            local.clearing.remove(&in_use.volume);
        }
        Action::ReportInUse(_)
        | Action::ReadNode(_)
        | Action::MakeDir { .. }
        | Action::MakeScratch { .. }
        | Action::ReadSource { .. }
        | Action::AskToken { .. }
        | Action::ShowFiles { .. }
        | Action::EnsureHostPath { .. }
        | Action::MeasureScratch { .. }
        | Action::RemoveScratch { .. }
        | Action::ListPods { .. }
        | Action::AskHealth(_)
        | Action::Expand(_)
        | Action::SweepDevice { .. }
        | Action::SweepFile { .. }
        | Action::ReadSecret { .. }
        | Action::RequestToken { .. }
        | Action::ReadPod { .. }
        | Action::Ask { .. }
        | Action::Check(_)
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
        Action::WriteRecord { record, .. } => {
            local.maybe_recorded.insert(record.unique_name());
        }
        Action::Start { process, .. } => {
            local.maybe_started.insert(process.name.clone());
        }
        Action::MountMemory { path, .. } => {
            local.maybe_mounted.insert(path.clone());
        }
        // It may be gone by now, so nothing is built on it before the driver has put it there again.
        Action::Unpublish(there) | Action::Unstage(there) => {
            local.staged.remove(&there.path);
            local.mounts.remove(&there.path);
            local.grouped.remove(&there.path);
        }
        Action::ReportInUse(_)
        | Action::ReadNode(_)
        | Action::RemoveRecord { .. }
        | Action::MakeDir { .. }
        | Action::MakeScratch { .. }
        | Action::ReadSource { .. }
        | Action::AskToken { .. }
        | Action::UnmountMemory { .. }
        | Action::ShowFiles { .. }
        | Action::EnsureHostPath { .. }
        | Action::MeasureScratch { .. }
        | Action::RemoveScratch { .. }
        | Action::Sweep { .. }
        | Action::SweepDevice { .. }
        | Action::SweepFile { .. }
        | Action::ListPods { .. }
        | Action::ReadSecret { .. }
        | Action::RequestToken { .. }
        | Action::Stage { .. }
        | Action::Publish(_)
        | Action::SetGroup { .. }
        | Action::NoteVanished { .. }
        | Action::AskHealth(_)
        | Action::NoteRecovered { .. }
        | Action::Expand(_)
        | Action::ReadPod { .. }
        | Action::Ask { .. }
        | Action::BeginEnd { .. }
        | Action::Check(_)
        | Action::Stop { .. }
        | Action::Seal { .. }
        | Action::Forget { .. }
        | Action::SetStatus { .. }
        | Action::DeletePod { .. } => {}
    }
}
