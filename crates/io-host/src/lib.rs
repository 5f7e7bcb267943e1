//! The only hands on the kernel: directories, files, loop devices, filesystems, mounts and processes.
//!
//! Owns: the directory of process state given to [`Host::new`], and the processes started from it.
//! Writes: what an [`Op`](control::host::Op) names, and nothing else on the machine.
//! Only reads: `/proc/self/mountinfo`, `/sys/block`, the signatures of a device.
//!
//! Laws:
//! - every operation may be repeated; done already is done (and changes nothing);
//! - no path is resolved through a symbolic link, and nothing is checked by name and then used by name: parents are held
//!   open, and the last step is relative to them;
//! - nothing is removed but one plain file, one empty directory or, where a tree is named, a tree without a mount in it;
//!   never a mount point, never the file behind a loop device;
//! - a filesystem held still for a copy goes on however the copy ends, and after a crash by [`thaw_images_beneath`];
//! - a copy of a directory shows it as it was at one moment, or is refused because somebody did not stop writing to it;
//! - a device with any signature is never formatted; one file has at most one loop device; a target at most one mount;
//! - unmounting is never lazy and is confirmed; detaching is confirmed;
//! - no byte of the user reaches a shell or a comma-joined option string;
//! - a process is started at most once under a name until it is forgotten, outlives us, and ends with all it started.
//!
//! Does not know: volumes, pods, drivers, Kubernetes, tokio. Calls of [`Host`] block, and a hung filesystem hangs
//! the calling thread; [`Workers`] gives each call a thread and a deadline.
//!
//! The file `sys.rs` holds all unsafe code.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod copy;
mod error;
mod exec;
mod facts;
mod files;
mod format;
mod group;
mod grow;
mod handler;
mod hostpath;
mod join;
mod journal;
mod journal_entry;
mod keyed;
mod listing;
mod locks;
mod log;
mod log_reader;
mod loops;
mod machine;
mod mount;
mod mountinfo;
mod numbered;
mod orphans;
mod path;
mod process;
mod record;
mod sandbox;
mod shim;
mod shown;
mod sys;
mod tree;
mod watch;
mod workers;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use control::host::{Op, ProcessState, Reply};

pub use copy::thaw_images_beneath;
pub use error::HostError;
pub use exec::{Exec, ExecCommand, HangUp, NoExitStatus};
pub use facts::{MachineLook, look_at_machine};
pub use files::{copied_so_far, list_dir, read_file, remove_partials};
pub use journal::Journal;
pub use listing::list_tree;
pub use locks::{LockHeld, Locks};
pub use log::LogLimits;
pub use log_reader::{LogReader, LogRecord};
pub use loops::{LoopEntry, loop_of, loops};
pub use mount::is_mount_root;
pub use mountinfo::{Holder, MountEntry, mounts, mounts_beneath, require_shared, watch_mounts};
pub use numbered::{mount_at, mounts_since};
pub use orphans::{OrphanProcess, Orphans};
pub use shim::shim_main;
pub use watch::Watch;
pub use workers::{Hung, Pending, Workers};

/// The word after the program's name that makes it the supervisor of one process: `main` must hand over to
/// [`shim_main`] when its first argument is this, before it starts any thread.
pub const SHIM_WORD: &str = "process-shim";

/// This machine, as far as operations act on it.
#[derive(Debug)]
pub struct Host {
    /// Where the state of processes is kept, one directory each.
    state_dir: PathBuf,
    /// The program started as supervisor, with [`SHIM_WORD`] and the process's directory as its arguments.
    shim: process::Shim,
    /// Processes get a root without overlayfs.
    plain_root: bool,
    /// How much is kept of what a process writes.
    log_limits: LogLimits,
    /// How fast anything is copied.
    pace: copy::Pace,
    /// One start or removal of state at a time for a process, so that a name is never started twice.
    names: keyed::Keyed,
    /// One mount, bind or unmount at a time for a target, so that mounts never stack.
    targets: keyed::Keyed,
    /// Who wants to hear of processes.
    watchers: Arc<watch::Watchers>,
}

impl Host {
    /// This machine, with process state kept beneath `state_dir`, which is made if missing (for its owner only).
    pub fn new(state_dir: PathBuf) -> io::Result<Host> {
        let made = state_dir.to_str().ok_or_else(|| io::Error::other("the state directory's path is not UTF-8"));
        files::make_dir(made?).map_err(io::Error::other)?;
        let shim = process::Shim::new(std::env::current_exe()?);
        let (names, targets, watchers) = (keyed::Keyed::default(), keyed::Keyed::default(), Arc::default());
        let (log_limits, pace) = (LogLimits::default(), copy::Pace::default());
        Ok(Host { state_dir, shim, plain_root: false, log_limits, pace, names, targets, watchers })
    }

    /// The same, with another program as supervisor of processes than the one that is running.
    pub fn with_shim(mut self, program: PathBuf) -> Host {
        self.shim = process::Shim::new(program);
        self
    }

    /// The same, with process roots that are the machine's own root bound read-only, without overlayfs. A process's
    /// mount points must then exist on the machine. A kernel without overlayfs is treated so anyway.
    pub fn without_overlay(mut self) -> Host {
        self.plain_root = true;
        self
    }

    /// The same, with other limits for the logs of processes that are started from now on.
    pub fn with_log_limits(mut self, limits: LogLimits) -> Host {
        self.log_limits = limits;
        self
    }

    /// The same, with copies that share no blocks and are made no faster than this: for tests of what happens meanwhile.
    pub fn with_slow_copies(mut self, bytes_per_second: NonZeroU64) -> Host {
        self.pace = copy::Pace(Some(bytes_per_second));
        self
    }

    /// Does one operation and answers when it is done, or says why not.
    pub fn perform(&self, op: &Op) -> Result<Reply, HostError> {
        match op {
            Op::MakeDir { path } => files::make_dir(path).map(done),
            Op::MakePlace { path } => files::make_place(path).map(done),
            Op::MakeScratch { path } => files::make_scratch(path).map(done),
            Op::SetGroup { path, group, only_if_root_differs } => {
                group::set_group(path, *group, *only_if_root_differs).map(done)
            }
            Op::MountMemory { target, size, mode } => {
                let _alone = self.targets.hold(target);
                mount::mount_memory(target, *size, *mode).map(done)
            }
            Op::ShowFiles { path, files, group } => {
                let _alone = self.targets.hold(path);
                shown::show(path, files, *group).map(done)
            }
            Op::HostPath { path, kind } => hostpath::ensure(path, *kind).map(done),
            Op::MeasureTree { path } => hostpath::measure_tree(path).map(Reply::Usage),
            Op::RemoveDir { path } => files::remove_dir(path).map(done),
            Op::WriteFile { path, bytes } => files::write_file(path, bytes).map(done),
            Op::RemoveFile { path } => files::remove_file(path).map(done),
            Op::CreateImage { path, size } => files::create_image(path, *size).map(done),
            Op::CopyTogether { copies } => {
                // In one order for all, so that two never wait for each other.
                let mut names: Vec<&String> = copies.iter().map(|copy| &copy.to).collect();
                names.sort();
                names.dedup();
                let _alone: Vec<_> = names.into_iter().map(|name| self.targets.hold(name)).collect();
                copy::copy_together(copies, self.pace).map(done)
            }
            Op::GrowImage { path, size } => files::grow_image(path, *size).map(done),
            Op::Discard { path } => grow::discard(path).map(done),
            Op::RemoveTree { path } => tree::remove_tree(path).map(done),
            Op::MakeFile { path } => files::make_file(path).map(done),
            Op::RemoveTarget { path } => files::remove_target(path).map(done),
            Op::RefreshLoop { image } => loops::refresh(image).map(done),
            Op::SetReadAhead { device, kib } => loops::set_read_ahead(device, *kib).map(done),
            Op::CheckFilesystem { device, fstype } => grow::check_filesystem(device, fstype).map(done),
            Op::GrowFilesystem { device, fstype, mounted_at } => {
                grow::grow_filesystem(device, fstype, mounted_at.as_deref()).map(done)
            }
            Op::BindDevice { device, target, read_only } => {
                let _alone = self.targets.hold(target);
                mount::bind_device(device, target, *read_only).map(done)
            }
            Op::Measure { path } => mount::measure(path).map(Reply::Usage),
            Op::AttachLoop { image } => loops::attach(image).map(Reply::Device),
            Op::DetachLoop { image } => loops::detach(image).map(done),
            Op::MakeFilesystem { device, fstype } => format::make_filesystem(device, fstype).map(done),
            Op::Mount { device, target, fstype, flags, read_only } => {
                let _alone = self.targets.hold(target);
                mount::mount(device, target, fstype, flags, *read_only).map(done)
            }
            Op::Bind { source, target, read_only } => {
                let _alone = self.targets.hold(target);
                mount::bind(source, target, *read_only).map(done)
            }
            Op::Unmount { target } => {
                let _alone = self.targets.hold(target);
                mount::unmount(target).map(done)
            }
            Op::StartProcess(process) => self.start(process).map(done),
            Op::AskProcess { name } => self.ask(name).map(done),
            Op::RunHandler { name, handler, timeout_millis } => self.handle(name, handler, *timeout_millis).map(done),
            Op::StopProcess { name, grace_millis } => self.stop(name, *grace_millis).map(done),
            Op::ForgetProcess { name } => self.forget(name).map(done),
        }
    }

    /// Every process started here and not forgotten, of this and of earlier incarnations.
    pub fn processes(&self) -> io::Result<BTreeMap<String, ProcessState>> {
        record::all(&self.state_dir)
    }

    /// What a process has written, as far as it is kept: all of it, or so many last lines.
    pub fn open_log(&self, name: &str, tail: Option<u64>) -> io::Result<LogReader> {
        LogReader::open(&self.process_dir(name), tail)
    }

    fn process_dir(&self, name: &str) -> PathBuf {
        Path::new(&self.state_dir).join(name)
    }
}

fn done((): ()) -> Reply {
    Reply::Done
}
