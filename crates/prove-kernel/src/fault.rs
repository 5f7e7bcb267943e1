//! What breaks: full and broken disks, hung filesystems, the loss of power.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Failure, FailureKind, Machine as _, Op, ProcessState, Reply};

use crate::tree::{DEVICES, Node, ROOT};
use crate::{Kernel, begun, refused};

/// What is wrong with a path and all beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelFault {
    /// No room: what would take any is refused, and nothing changes.
    NoSpace,
    /// Somebody uses it: refused, and nothing changes.
    Busy,
    /// An error of the disk. It is told after the operation was done, or before.
    Io {
        /// It was done all the same.
        done: bool,
    },
    /// No answer. Later it turns out to have been done, or not.
    Hung {
        /// It was done all the same.
        done: bool,
    },
}

impl Kernel {
    /// From now on this is wrong with a path and everything beneath it.
    pub fn break_at(&mut self, path: &str, fault: KernelFault) {
        self.faults.insert(path.to_string(), fault);
    }

    /// Nothing is wrong with that path any more.
    pub fn mend(&mut self, path: &str) {
        self.faults.remove(path);
    }

    /// The machine loses its power and starts again: no mount, no loop device, no process, and of files only what was
    /// made durable.
    pub fn lose_power(&mut self) {
        let shared = self.mounts.first().is_some_and(|mount| mount.group.is_some());
        let devices = Node::Dir(BTreeMap::new());
        self.nodes = self.disk.clone();
        self.nodes.insert(DEVICES, devices);
        self.read_ahead.clear();
        self.held.clear();
        self.mounts.clear();
        self.supers.clear();
        self.loops.clear();
        self.read_only_devices.clear();
        self.faults.clear();
        for known in self.processes.values_mut() {
            if matches!(known.state, ProcessState::Running { .. }) {
                known.state = ProcessState::Lost;
            }
        }
        self.mount_roots(shared);
        debug_assert!(self.nodes.contains_key(&ROOT));
        self.forget_unreachable();
    }

    /// What is wrong with anything an operation touches.
    pub(crate) fn fault_of(&self, op: &Op) -> Option<KernelFault> {
        let touches = paths(op);
        let hit = |broken: &str| touches.iter().any(|path| path == broken || path.starts_with(&format!("{broken}/")));
        self.faults.iter().find(|(broken, _)| hit(broken)).map(|(_, fault)| *fault)
    }

    pub(crate) fn fail(&mut self, op: &Op, fault: KernelFault) -> Result<Reply, Failure> {
        let (path, kind, done, why) = match fault {
            KernelFault::NoSpace if takes_room(op) => {
                return Err(refused(FailureKind::NoSpace, format!("{op:?}: no space left on device")));
            }
            KernelFault::NoSpace => return self.whole(op),
            KernelFault::Busy => {
                return Err(refused(FailureKind::Busy, format!("{} is busy", op.works_on())));
            }
            KernelFault::Io { done } => (op.works_on(), FailureKind::Kernel, done, "input/output error"),
            KernelFault::Hung { done } => (op.works_on(), FailureKind::Hung, done, "has not ended and goes on"),
        };
        let why = format!("{path}: {why}");
        if done {
            // What it would have answered nobody hears.
            self.whole(op)?;
        }
        Err(begun(kind, why))
    }

    /// Does an operation past every fault.
    fn whole(&mut self, op: &Op) -> Result<Reply, Failure> {
        let faults = core::mem::take(&mut self.faults);
        let answer = self.perform(op);
        self.faults = faults;
        answer
    }
}

/// Every path in an operation.
fn paths(op: &Op) -> Vec<String> {
    match op {
        Op::CopyTogether { copies } => {
            let all = copies.iter().flat_map(|copy| [Some(&copy.from), Some(&copy.to), copy.still.as_ref()]);
            all.flatten().cloned().collect()
        }
        Op::Bind { source, target, .. } => [source, target].map(String::clone).into(),
        Op::Mount { device, target, .. } | Op::BindDevice { device, target, .. } => {
            [device, target].map(String::clone).into()
        }
        Op::GrowFilesystem { device, mounted_at, .. } => core::iter::once(device).chain(mounted_at).cloned().collect(),
        other => [other.works_on().to_string()].into(),
    }
}

/// The operation needs room that was not taken before.
fn takes_room(op: &Op) -> bool {
    match op {
        Op::MakeDir { .. }
        | Op::MakePlace { .. }
        | Op::MakeScratch { .. }
        | Op::ShowFiles { .. }
        | Op::HostPath { .. }
        | Op::WriteFile { .. }
        | Op::CreateImage { .. }
        | Op::CopyTogether { .. }
        | Op::GrowImage { .. }
        | Op::MakeFile { .. }
        | Op::MakeFilesystem { .. }
        | Op::GrowFilesystem { .. }
        | Op::StartProcess(_) => true,
        Op::SetGroup { .. }
        | Op::RemoveDir { .. }
        | Op::RemoveFile { .. }
        | Op::Discard { .. }
        | Op::RemoveTree { .. }
        | Op::RemoveTarget { .. }
        | Op::AttachLoop { .. }
        | Op::DetachLoop { .. }
        | Op::RefreshLoop { .. }
        | Op::SetReadAhead { .. }
        | Op::CheckFilesystem { .. }
        | Op::Mount { .. }
        | Op::MountMemory { .. }
        | Op::MeasureTree { .. }
        | Op::Bind { .. }
        | Op::BindDevice { .. }
        | Op::Measure { .. }
        | Op::Unmount { .. }
        | Op::AskProcess { .. }
        | Op::RunHandler { .. }
        | Op::StopProcess { .. }
        | Op::ForgetProcess { .. } => false,
    }
}
