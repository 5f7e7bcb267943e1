use std::collections::{BTreeMap, BTreeSet};

use control::host::{Op, ProcessState, Reply as HostReply, Usage};
use control::{Outcome, Refusal, Reply};

/// A machine with files, directories and processes, as far as pods and their volumes need one. What is mounted is the
/// driver's to know.
#[derive(Clone, Debug, Default)]
pub struct ScriptedMachine {
    pub files: BTreeMap<String, Vec<u8>>,
    pub dirs: BTreeSet<String>,
    /// How each process fares, and the directories it was given.
    pub processes: BTreeMap<String, (ProcessState, Vec<String>)>,
    /// Processes do not listen when they are asked to end.
    pub deaf: bool,
    /// Filesystems in memory, by where they are mounted.
    pub memory: BTreeSet<String>,
    /// What is said of every directory that is measured.
    pub usage: Usage,
    /// Processes answer badly when probes and hooks ask them.
    pub unwell: bool,
}

impl ScriptedMachine {
    /// Does something at a moment. `mounted` says whether a path is a mount point.
    pub fn perform(&mut self, now_millis: u64, op: &Op, mounted: impl Fn(&str) -> bool) -> Outcome {
        match op {
            Op::MakeDir { path } | Op::MakePlace { path } | Op::MakeScratch { path } => {
                self.dirs.insert(path.clone());
            }
            Op::SetGroup { path, .. } => assert!(mounted(path), "{path} is given to a group while nothing is mounted"),
            Op::RemoveTarget { path } if mounted(path) => {
                return Outcome::Refused(Refusal::Host(format!("{path} is a mount point")));
            }
            Op::RemoveTarget { path } => {
                self.dirs.remove(path);
                self.files.retain(|file, bytes| file != path || !bytes.is_empty());
            }
            Op::MountMemory { target, .. } => {
                self.dirs.insert(target.clone());
                self.memory.insert(target.clone());
            }
            Op::HostPath { path, .. } => drop(self.dirs.insert(path.clone())),
            Op::ShowFiles { path, files, .. } => {
                let names = files.iter().map(|(name, file)| (format!("{path}/{name}"), file.bytes.0.to_vec()));
                let inside = format!("{path}/");
                self.files.retain(|name, _| !name.starts_with(&inside));
                self.files.extend(names.collect::<Vec<_>>());
                self.dirs.insert(path.clone());
            }
            Op::Unmount { target } => {
                let inside = format!("{target}/");
                self.memory.remove(target);
                self.files.retain(|name, _| !name.starts_with(&inside));
            }
            Op::MeasureTree { .. } => return Outcome::Done(Reply::Host(HostReply::Usage(self.usage))),
            Op::RemoveDir { path } => match self.obstacle(path, mounted) {
                Some(text) => return Outcome::Refused(Refusal::Host(text)),
                None => drop(self.dirs.remove(path)),
            },
            Op::RemoveTree { path } => {
                let beneath = format!("{path}/");
                if self.memory.iter().any(|mount| mount.starts_with(&beneath)) {
                    return Outcome::Refused(Refusal::Host(format!("{path} has a mount in it")));
                }
                self.dirs.retain(|dir| dir != path && !dir.starts_with(&beneath));
                self.files.retain(|file, _| !file.starts_with(&beneath));
            }
            Op::WriteFile { path, bytes } => drop(self.files.insert(path.clone(), bytes.clone())),
            Op::RemoveFile { path } => drop(self.files.remove(path)),
            Op::StartProcess(process) => {
                let mounts = process.mounts.iter().map(|mount| mount.source.clone());
                let sources = mounts.chain(process.devices.iter().map(|device| device.source.clone())).collect();
                let state = match process.command.first().map(String::as_str) {
                    Some("/missing") => ProcessState::NotStarted("/missing does not exist on this machine".into()),
                    Some(_) | None => ProcessState::Running { since_millis: now_millis },
                };
                self.processes.entry(process.name.clone()).or_insert((state, sources));
            }
            Op::AskProcess { .. } if self.deaf => {}
            Op::RunHandler { .. } if self.unwell => return Outcome::Refused(Refusal::Host("no answer".into())),
            Op::RunHandler { .. } => {}
            Op::AskProcess { name } | Op::StopProcess { name, .. } => self.end(name, 143, now_millis),
            Op::ForgetProcess { name } => {
                assert!(!self.runs(name), "{name} is forgotten while it runs");
                self.processes.remove(name);
            }
            other => panic!("{other:?} is nothing that pods need"),
        }
        Outcome::Done(Reply::Host(HostReply::Done))
    }

    /// Why a directory cannot be removed.
    fn obstacle(&self, path: &str, mounted: impl Fn(&str) -> bool) -> Option<String> {
        let inside = format!("{path}/");
        if mounted(path) {
            return Some(format!("{path} is a mount point"));
        }
        let holds = self.dirs.iter().chain(self.files.keys()).any(|entry| entry.starts_with(&inside));
        holds.then(|| format!("{path} is not empty"))
    }

    /// A process ends, if it runs.
    pub fn end(&mut self, name: &str, code: i32, at_millis: u64) {
        if let Some((state, _)) = self.processes.get_mut(name)
            && let ProcessState::Running { since_millis } = *state
        {
            *state = ProcessState::Exited { code, since_millis, at_millis, out_of_memory: false };
        }
    }

    /// Whether a process runs.
    pub fn runs(&self, name: &str) -> bool {
        matches!(self.processes.get(name), Some((ProcessState::Running { .. }, _)))
    }

    /// How each process fares.
    pub fn states(&self) -> BTreeMap<String, ProcessState> {
        self.processes.iter().map(|(name, (state, _))| (name.clone(), state.clone())).collect()
    }
}
