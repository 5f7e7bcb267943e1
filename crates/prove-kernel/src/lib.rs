//! A machine that is a plain value: the model kernel.
//!
//! It answers every [`Op`](control::host::Op) as the real kernel answers it through `io-host`, refusals included, so that
//! rules can be run against it, millions of times, with power cuts and broken disks. `tests/agree` runs the same
//! operations on both and compares every answer and all that is left.
//!
//! Owns: directories, files, loop devices, filesystems, mounts and processes of a machine that does not exist.
//! Laws: it is deterministic, can be cloned, compared and hashed; what is not synced is lost when power is ([`Kernel::lose_power`]);
//! an operation is done whole or not at all, also when it [fails](KernelFault), but for mounts stacked at one place.
//! Does not know: time, any real machine, any rules. Not modelled: slave mounts, users and permissions, what a filesystem
//! needs for itself, a file with two names in two directories that are moved.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod contents;
mod fault;
mod files;
mod loops;
mod mounts;
mod outside;
mod process;
mod tree;
mod volumes;

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Failure, FailureKind, Looped, Machine, Mounted, Op, ProcessState, Reply};

pub use fault::KernelFault;
use loops::Loop;
use mounts::{Mount, Super};
use tree::{Ino, Node};

/// A machine with mounts, loop devices and files, in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Everything with a name, or kept alive by a mount or a loop device.
    nodes: BTreeMap<Ino, Node>,
    /// The same, as it is after power was lost.
    disk: BTreeMap<Ino, Node>,
    /// Those made first first.
    mounts: Vec<Mount>,
    /// Mounted filesystems, by the loop device they are on.
    supers: BTreeMap<u32, Super>,
    loops: BTreeMap<u32, Loop>,
    /// Loop devices nobody may write to.
    read_only_devices: BTreeSet<u32>,
    /// By loop device, in KiB.
    read_ahead: BTreeMap<u32, u32>,
    /// Files held open, by a name for the holding, and the mount they were opened through.
    held: BTreeMap<String, u32>,
    processes: BTreeMap<String, process::Known>,
    /// By the path it is at and beneath.
    faults: BTreeMap<String, KernelFault>,
    /// ext4 grows while it is mounted, which takes CAP_SYS_RESOURCE.
    grows_mounted_ext4: bool,
}

/// A refusal before anything changed.
pub(crate) fn refused(kind: FailureKind, why: impl Into<String>) -> Failure {
    Failure { kind, certain: true, why: why.into() }
}

/// A failure of something that had begun to change things.
pub(crate) fn begun(kind: FailureKind, why: impl Into<String>) -> Failure {
    Failure { kind, certain: false, why: why.into() }
}

impl Kernel {
    /// A machine with an empty root and `/dev`, whose mounts are private or shared.
    pub fn new(shared: bool) -> Kernel {
        let mut kernel = Kernel {
            nodes: BTreeMap::new(),
            disk: BTreeMap::new(),
            mounts: Vec::new(),
            supers: BTreeMap::new(),
            loops: BTreeMap::new(),
            read_only_devices: BTreeSet::new(),
            read_ahead: BTreeMap::new(),
            held: BTreeMap::new(),
            processes: BTreeMap::new(),
            faults: BTreeMap::new(),
            grows_mounted_ext4: false,
        };
        kernel.plant_roots();
        kernel.mount_roots(shared);
        kernel
    }

    /// The same, able to grow ext4 while it is mounted.
    #[must_use]
    pub fn with_mounted_ext4_growth(mut self) -> Kernel {
        self.grows_mounted_ext4 = true;
        self
    }

    /// Every mount, those made first first.
    pub fn mount_table(&self) -> Vec<Mounted> {
        self.mounts.iter().map(|mount| self.told(mount)).collect()
    }

    /// Every loop device that shows a file.
    pub fn loop_table(&self) -> Vec<Looped> {
        self.loops.iter().map(|(number, entry)| self.looped(*number, entry)).collect()
    }

    /// The content of a plain file; `None` if it is not there.
    pub fn bytes_of(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(at) = self.walk(path)? else { return Ok(None) };
        match &self.nodes[&at.ino] {
            Node::File(file) => Ok(Some(file.bytes())),
            Node::Dir(_) | Node::Link(_) | Node::Device(_) => {
                Err(refused(FailureKind::WrongKind, alloc::format!("{path} is not a plain file")))
            }
        }
    }

    /// The names in a directory, sorted; none if it is not there.
    pub fn names_in(&self, path: &str) -> Result<Vec<String>, Failure> {
        let Some(at) = self.walk(path)? else { return Ok(Vec::new()) };
        Ok(self.entries(at.ino, path)?.keys().map(ToString::to_string).collect())
    }

    fn done(&mut self, op: &Op) -> Result<Reply, Failure> {
        let done = |()| Reply::Done;
        match op {
            Op::MakeDir { path } => self.make_dir(path).map(|_| Reply::Done),
            Op::MakePlace { path } | Op::MakeScratch { path } => self.make_place(path).map(|_| Reply::Done),
            Op::SetGroup { path, .. } => self.set_group(path).map(done),
            Op::MountMemory { target, .. } => self.mount_memory(target).map(done),
            Op::ShowFiles { path, files, .. } => self.show_files(path, files).map(done),
            Op::HostPath { path, kind } => self.host_path(path, *kind).map(done),
            Op::MeasureTree { path } => self.measure_tree(path).map(Reply::Usage),
            Op::RemoveDir { path } => self.remove_dir(path).map(done),
            Op::WriteFile { path, bytes } => self.write_file(path, bytes).map(done),
            Op::RemoveFile { path } => self.remove_file(path).map(done),
            Op::CreateImage { path, size } => self.create_image(path, *size).map(done),
            Op::CopyTogether { copies } => self.copy_together(copies).map(done),
            Op::GrowImage { path, size } => self.grow_image(path, *size).map(done),
            Op::Discard { path } => self.discard(path).map(done),
            Op::RemoveTree { path } => self.remove_tree(path).map(done),
            Op::MakeFile { path } => self.make_file(path).map(done),
            Op::RemoveTarget { path } => self.remove_target(path).map(done),
            Op::AttachLoop { image } => self.attach_loop(image).map(Reply::Device),
            Op::DetachLoop { image } => self.detach_loop(image).map(done),
            Op::RefreshLoop { image } => self.refresh_loop(image).map(done),
            Op::SetReadAhead { device, kib } => self.set_read_ahead(device, *kib).map(done),
            Op::CheckFilesystem { device, fstype } => self.check_filesystem(device, fstype).map(done),
            Op::GrowFilesystem { device, fstype, mounted_at } => {
                self.grow_filesystem(device, fstype, mounted_at.as_deref()).map(done)
            }
            Op::MakeFilesystem { device, fstype } => self.make_filesystem(device, fstype).map(done),
            Op::Mount { device, target, fstype, flags, read_only } => {
                self.mount(device, target, fstype, flags, *read_only).map(done)
            }
            Op::Bind { source, target, read_only } => self.bind(source, target, *read_only).map(done),
            Op::BindDevice { device, target, read_only } => self.bind_device(device, target, *read_only).map(done),
            Op::Measure { path } => self.measure(path).map(Reply::Usage),
            Op::Unmount { target } => self.unmount(target).map(done),
            Op::StartProcess(process) => self.start_process(process).map(done),
            Op::RunHandler { name, .. } => self.run_handler(name).map(done),
            Op::AskProcess { name } | Op::StopProcess { name, .. } => self.stop_process(name).map(done),
            Op::ForgetProcess { name } => self.forget_process(name).map(done),
        }
    }
}

impl Machine for Kernel {
    fn perform(&mut self, op: &Op) -> Result<Reply, Failure> {
        match self.fault_of(op) {
            None => {
                // Whole or not at all: what a refused operation had begun is not seen. Of stacked mounts, though, those
                // above one that is busy are off.
                let before = self.clone();
                let stacked = matches!(op, Op::Unmount { .. });
                self.done(op).inspect_err(|_| {
                    if !stacked {
                        *self = before;
                    }
                })
            }
            Some(fault) => self.fail(op, fault),
        }
    }

    fn mounts(&mut self) -> Result<Vec<Mounted>, Failure> {
        Ok(self.mount_table())
    }

    fn loops(&mut self) -> Result<Vec<Looped>, Failure> {
        Ok(self.loop_table())
    }

    fn read_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.bytes_of(path)
    }

    fn list_dir(&mut self, path: &str) -> Result<Vec<String>, Failure> {
        self.names_in(path)
    }

    fn processes(&mut self) -> Result<BTreeMap<String, ProcessState>, Failure> {
        Ok(self.processes.iter().map(|(name, known)| (name.clone(), known.state.clone())).collect())
    }
}
