//! Words for what rules ask of the machine they run on. `io-host` does it on a real kernel.
//!
//! Every operation may be repeated: doing it again when it is done already succeeds and changes nothing.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One operation on this machine. Paths are absolute and never resolve through a symbolic link.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// Make a directory and the missing ones above it.
    MakeDir {
        /// Which.
        path: String,
    },
    /// Remove an empty directory that is no mount point. Missing is done; not empty is refused.
    RemoveDir {
        /// Which.
        path: String,
    },
    /// Make a file hold exactly these bytes, old or new after any crash (written aside, synced, renamed, synced). The
    /// missing directories above it are made.
    WriteFile {
        /// Which.
        path: String,
        /// Its whole content.
        bytes: Vec<u8>,
    },
    /// Remove a plain file, durably. Missing is done.
    RemoveFile {
        /// Which.
        path: String,
    },
    /// Make a sparse file of exactly this size, durably. One of that size is done; one of another size is refused.
    CreateImage {
        /// Which.
        path: String,
        /// How many bytes it can hold.
        size: u64,
    },
    /// Attach a file to a loop device, or find the one it is attached to. Answers [`Reply::Device`].
    AttachLoop {
        /// The file.
        image: String,
    },
    /// Detach a file from its loop device and wait until it is gone. Not attached is done; in use is refused.
    DetachLoop {
        /// The file.
        image: String,
    },
    /// Put a filesystem on a device that bears no signature at all. One of the same type is done; another is refused.
    MakeFilesystem {
        /// The device.
        device: String,
        /// `ext4`, `xfs` or `btrfs`.
        fstype: String,
    },
    /// Mount a device. The same mount there already is done; another one is refused.
    Mount {
        /// The device.
        device: String,
        /// The directory, which must exist.
        target: String,
        /// The filesystem's type.
        fstype: String,
        /// Mount flags from the allow-list of `io-host`.
        flags: Vec<String>,
        /// Mounted read-only.
        read_only: bool,
    },
    /// Show one directory at another place as well.
    Bind {
        /// The directory shown.
        source: String,
        /// Where it is shown too; it must exist.
        target: String,
        /// Read-only there.
        read_only: bool,
    },
    /// Take off whatever is mounted at a path and confirm it. Nothing mounted is done; busy is refused.
    Unmount {
        /// Where.
        target: String,
    },
    /// Start a process that outlives us, in a mount namespace of its own. One of that name running is done.
    StartProcess(Process),
    /// End a process and all it started. One that has ended is done.
    StopProcess {
        /// Its name.
        name: String,
        /// How long it may take after being asked, before it is made to.
        grace_millis: u64,
    },
    /// Remove the traces (log, exit status) of a process that has ended. None is done; running is refused.
    ForgetProcess {
        /// Its name.
        name: String,
    },
}

/// A process to start: the machine's own root filesystem, read-only, with volumes at their places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// A name unique on this machine, and fit for a file name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it starts; empty means `/`.
    pub working_dir: String,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// Directories it sees at other places.
    pub mounts: Vec<ProcessMount>,
}

/// A directory a process sees at another place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessMount {
    /// The directory on this machine.
    pub source: String,
    /// Where the process sees it.
    pub target: String,
    /// Read-only for the process.
    pub read_only: bool,
}

/// How a process fares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// It runs.
    Running {
        /// Since when, in milliseconds since 1970.
        since_millis: u64,
    },
    /// It ended.
    Exited {
        /// Its exit status; 128 and the signal's number if a signal ended it.
        code: i32,
        /// When it started, in milliseconds since 1970.
        since_millis: u64,
        /// When it ended.
        at_millis: u64,
    },
    /// It could not be started. The text is a sentence for the user.
    NotStarted(String),
    /// It was running once and is no longer, and nobody saw it end (the machine went down).
    Lost,
}

/// What the machine answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Done, nothing to tell.
    Done,
    /// The device's path.
    Device(String),
}

/// Paths and names, never file contents or environments, which may hold secrets.
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::MakeDir { path } => write!(f, "MakeDir({path})"),
            Op::RemoveDir { path } => write!(f, "RemoveDir({path})"),
            Op::WriteFile { path, bytes } => write!(f, "WriteFile({path}, {} bytes)", bytes.len()),
            Op::RemoveFile { path } => write!(f, "RemoveFile({path})"),
            Op::CreateImage { path, size } => write!(f, "CreateImage({path}, {size})"),
            Op::AttachLoop { image } => write!(f, "AttachLoop({image})"),
            Op::DetachLoop { image } => write!(f, "DetachLoop({image})"),
            Op::MakeFilesystem { device, fstype } => write!(f, "MakeFilesystem({device}, {fstype})"),
            Op::Mount { device, target, .. } => write!(f, "Mount({device} at {target})"),
            Op::Bind { source, target, .. } => write!(f, "Bind({source} at {target})"),
            Op::Unmount { target } => write!(f, "Unmount({target})"),
            Op::StartProcess(process) => write!(f, "StartProcess({})", process.name),
            Op::StopProcess { name, .. } => write!(f, "StopProcess({name})"),
            Op::ForgetProcess { name } => write!(f, "ForgetProcess({name})"),
        }
    }
}
