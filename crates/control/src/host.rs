//! Words for what rules ask of the machine they run on ([`Op`]), and what a machine is ([`Machine`]): `io-host` is one on
//! a real kernel, `prove-kernel` one that is a plain value.
//!
//! Every operation may be repeated: doing it again when it is done already succeeds and changes nothing.

mod contents;
mod handler;
mod sandbox;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use contents::{ContentBytes, HostPathKind, Propagation, ShownFile};
pub use handler::Handler;
pub use sandbox::{LinuxCapabilities, ProcessLimits, Sandbox};

/// One operation on this machine. Paths are absolute and never resolve through a symbolic link.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// Make a directory and the missing ones above it.
    MakeDir { path: String },
    /// Make a directory to mount at, and the missing ones above it. Not durable, as no mount is.
    MakePlace { path: String },
    /// Make a directory that every user may write to, and the missing ones above it, which not every user may read.
    MakeScratch {
        /// The directory that is open to all.
        path: String,
    },
    /// Give a directory and everything in it to a group, which may read and write it: children first, itself last, so
    /// that one cut short is not taken for done. No link is followed and no mount crossed.
    SetGroup {
        /// The directory given away, with everything in it.
        path: String,
        /// The number of the group that gets it.
        group: u32,
        /// The directory itself being the group's means that everything is.
        only_if_root_differs: bool,
    },
    /// Mount a filesystem in memory, which never reaches a disk, at a directory that is made with those above it. One
    /// that is there already is done.
    MountMemory {
        /// Where the volume will be.
        target: String,
        /// How many bytes it may hold; as much as the kernel lets it otherwise.
        size: Option<u64>,
        /// The mode of its root.
        mode: u32,
    },
    /// Make a directory show exactly these files, all at once, as Kubernetes shows a config map: they are written to a
    /// new directory beside, and a link is turned over to it. Shown already is done.
    ShowFiles {
        /// The directory, which is made with those above it.
        path: String,
        /// The files, by their paths in it.
        files: BTreeMap<String, ShownFile>,
        /// The group that may read them beside their owner.
        group: Option<u32>,
    },
    /// Look whether a place of the machine is what a pod takes it for, and make it where it asks for that. Links are
    /// followed, as whoever names a place of the machine expects.
    HostPath {
        /// The place, by its path.
        path: String,
        /// What it must be.
        kind: HostPathKind,
    },
    /// Add up what a directory and all in it take on the disk. Answers [`Reply::Usage`]. Missing is nothing.
    MeasureTree {
        /// The directory, by its path.
        path: String,
    },
    /// Remove an empty directory that is no mount point. Missing is done; not empty is refused.
    RemoveDir { path: String },
    /// Make a file hold exactly these bytes, old or new after any crash (written aside, synced, renamed, synced). The
    /// missing directories above it are made.
    WriteFile {
        path: String,
        /// Its whole content.
        bytes: Vec<u8>,
    },
    /// Remove a plain file, durably. Missing is done.
    RemoveFile { path: String },
    /// Make a sparse file of exactly this size, durably. One of that size is done; one of another size is refused.
    CreateImage {
        path: String,
        /// How many bytes it can hold.
        size: u64,
    },
    /// Copy images, and directories with everything in them, as they all are at one and the same moment, durably: blocks
    /// are shared where the filesystem can, holes stay holes, and a copy appears whole or not at all. No link is followed
    /// and no mount crossed. A copy that is there already is done. Refused where a directory does not stop changing.
    CopyTogether {
        /// Which, and where to.
        copies: Vec<Copying>,
    },
    /// Make an image larger, durably. As large or larger is done.
    GrowImage {
        path: String,
        /// How many bytes it can hold from now on.
        size: u64,
    },
    /// Give back to what lies beneath it the room a mounted filesystem does not use (any more), so that a thin image
    /// takes no more than what is in it. Refused where the filesystem or its device cannot.
    Discard {
        /// Where the filesystem is mounted.
        path: String,
    },
    /// Remove a directory and everything in it. Follows no link and crosses no mount: a mount in it is refused. Missing is
    /// done.
    RemoveTree { path: String },
    /// Make an empty plain file, as a place to show a device at. One that is there is done. Not durable, as no mount is.
    MakeFile { path: String },
    /// Remove an empty directory or an empty plain file that nothing is mounted at any more. Missing is done; anything
    /// else is refused. Not durable, as no mount is.
    RemoveTarget { path: String },
    /// Attach a file to a loop device, or find the one it is attached to. Answers [`Reply::Device`].
    AttachLoop { image: String },
    /// Detach a file from its loop device and wait until it is gone. Not attached is done; in use is refused.
    DetachLoop { image: String },
    /// Make a loop device as large as its image.
    RefreshLoop { image: String },
    /// Have the kernel read this much ahead of a reader of a device.
    SetReadAhead {
        device: String,
        /// How much, in KiB.
        kib: u32,
    },
    /// Check a filesystem that is not mounted and repair what is safe to repair.
    CheckFilesystem {
        device: String,
        /// `ext4`, `xfs` or `btrfs`.
        fstype: String,
    },
    /// Make a filesystem as large as its device. As large is done. Refused, with the reason, where the kernel cannot do it
    /// while mounted.
    GrowFilesystem {
        device: String,
        /// `ext4`, `xfs` or `btrfs`.
        fstype: String,
        /// Where it is mounted, if it is.
        mounted_at: Option<String>,
    },
    /// Put a filesystem on a device that bears no signature at all. One of the same type is done; another is refused.
    MakeFilesystem {
        device: String,
        /// `ext4`, `xfs` or `btrfs`.
        fstype: String,
    },
    /// Mount a device. The same mount there already is done; another one is refused.
    Mount {
        device: String,
        /// The directory, which must exist.
        target: String,
        /// The filesystem's type.
        fstype: String,
        /// Mount flags from the allow-list of `io-host`.
        flags: Vec<String>,
        read_only: bool,
    },
    /// Show one directory at another place as well.
    Bind {
        /// The directory shown.
        source: String,
        /// Where it is shown too; it must exist.
        target: String,
        read_only: bool,
    },
    /// Show a block device at a plain file, which must exist.
    BindDevice {
        device: String,
        target: String,
        /// Not writable there.
        read_only: bool,
    },
    /// Ask how full a filesystem is, how large a block device, or how large an image and how much of it is in use.
    /// Answers [`Reply::Usage`].
    Measure {
        /// The path it is at.
        path: String,
    },
    /// Take off whatever is mounted at a path and confirm it. Nothing mounted is done; busy is refused.
    Unmount { target: String },
    /// Start a process that outlives us, in a mount namespace of its own. One of that name running is done.
    StartProcess(Process),
    /// Ask a process to end, with SIGTERM, and do not wait for it. One that has ended is done.
    AskProcess {
        /// Its name, as it was started.
        name: String,
    },
    /// Ask something of a process that runs, as probes and hooks do. A bad answer, or none in time, is refused.
    RunHandler {
        /// The process that is asked.
        name: String,
        /// What is asked, and in which way.
        handler: Handler,
        /// How long the answer may take.
        timeout_millis: u64,
    },
    /// End a process and all it started. One that has ended is done.
    StopProcess {
        name: String,
        /// How long it may take after being asked, before it is made to.
        grace_millis: u64,
    },
    /// Remove the traces (log, exit status) of a process that has ended. None is done; running is refused.
    ForgetProcess { name: String },
}

/// An image or a directory, and where its copy goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copying {
    /// The image or directory copied.
    pub from: String,
    pub to: String,
    /// Where the filesystem in the image is mounted, if it is: it is held still for as long as the copies take.
    pub still: Option<String>,
}

/// A process to start: programs and configuration of the machine, read-only, with volumes at their places.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// A name unique on this machine, and fit for a file name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it starts; empty means `/`.
    pub working_dir: String,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// The command and the environment hold what must not be on a disk: they are handed over in memory, and a process
    /// of this name that runs is taken for the same.
    pub confidential: bool,
    /// Directories it sees at other places.
    pub mounts: Vec<ProcessMount>,
    /// Block devices it sees at other places.
    pub devices: Vec<ProcessDevice>,
    /// What it may do.
    pub sandbox: Box<Sandbox>,
}

/// A directory a process sees at another place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessMount {
    /// The directory on this machine.
    pub source: String,
    /// Where the process sees it.
    pub target: String,
    /// Read-only for the process.
    pub read_only: bool,
    /// What of it is seen; empty means all. A directory that is missing is made. No link leads out of the source.
    pub sub_path: String,
    /// The source is a place of the machine that a user named: it may be a file, links in its path are followed, and
    /// what is mounted in it comes along.
    pub of_machine: bool,
    /// Which later mounts are seen on the other side.
    pub propagation: Propagation,
}

/// A block device a process sees at another place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessDevice {
    /// The device, or a link to it, on this machine.
    pub source: String,
    /// Where the process sees it.
    pub target: String,
    /// The process must not be able to write to it.
    pub read_only: bool,
}

/// How a process fares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProcessState {
    Running {
        /// Since when, in milliseconds since 1970.
        since_millis: u64,
    },
    Exited {
        /// Its exit status; 128 and the signal's number if a signal ended it.
        code: i32,
        /// When it started, in milliseconds since 1970.
        since_millis: u64,
        /// When it ended.
        at_millis: u64,
        /// The kernel ended it, or something it started, because its limit of memory was reached.
        out_of_memory: bool,
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
    /// How much there is and how much of it is used.
    Usage(Usage),
}

/// How full a filesystem is, or how large a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Usage {
    pub bytes: u64,
    /// ContentBytes in use; 0 for a block device, which does not say.
    pub bytes_used: u64,
    /// ContentBytes a user may still take.
    pub bytes_free: u64,
    /// All inodes; 0 where the filesystem does not count them.
    pub inodes: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes a user may still take.
    pub inodes_free: u64,
}

/// Paths and names, never file contents or environments, which may hold secrets.
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::MakeDir { path } => write!(f, "MakeDir({path})"),
            Op::MakePlace { path } => write!(f, "MakePlace({path})"),
            Op::MakeScratch { path } => write!(f, "MakeScratch({path})"),
            Op::SetGroup { path, group, .. } => write!(f, "SetGroup({path}, {group})"),
            Op::MountMemory { target, .. } => write!(f, "MountMemory({target})"),
            Op::ShowFiles { path, files, .. } => write!(f, "ShowFiles({path}, {} files)", files.len()),
            Op::HostPath { path, .. } => write!(f, "HostPath({path})"),
            Op::MeasureTree { path } => write!(f, "MeasureTree({path})"),
            Op::RemoveDir { path } => write!(f, "RemoveDir({path})"),
            Op::WriteFile { path, bytes } => write!(f, "WriteFile({path}, {} bytes)", bytes.len()),
            Op::RemoveFile { path } => write!(f, "RemoveFile({path})"),
            Op::CreateImage { path, size } => write!(f, "CreateImage({path}, {size})"),
            Op::CopyTogether { copies } => {
                write!(f, "CopyTogether(")?;
                for copy in copies {
                    write!(f, "{} to {};", copy.from, copy.to)?;
                }
                write!(f, ")")
            }
            Op::GrowImage { path, size } => write!(f, "GrowImage({path}, {size})"),
            Op::Discard { path } => write!(f, "Discard({path})"),
            Op::RemoveTree { path } => write!(f, "RemoveTree({path})"),
            Op::RemoveTarget { path } => write!(f, "RemoveTarget({path})"),
            Op::SetReadAhead { device, kib } => write!(f, "SetReadAhead({device}, {kib} KiB)"),
            Op::MakeFile { path } => write!(f, "MakeFile({path})"),
            Op::RefreshLoop { image } => write!(f, "RefreshLoop({image})"),
            Op::CheckFilesystem { device, fstype } => write!(f, "CheckFilesystem({device}, {fstype})"),
            Op::GrowFilesystem { device, fstype, .. } => write!(f, "GrowFilesystem({device}, {fstype})"),
            Op::BindDevice { device, target, .. } => write!(f, "BindDevice({device} at {target})"),
            Op::Measure { path } => write!(f, "Measure({path})"),
            Op::AttachLoop { image } => write!(f, "AttachLoop({image})"),
            Op::DetachLoop { image } => write!(f, "DetachLoop({image})"),
            Op::MakeFilesystem { device, fstype } => write!(f, "MakeFilesystem({device}, {fstype})"),
            Op::Mount { device, target, .. } => write!(f, "Mount({device} at {target})"),
            Op::Bind { source, target, .. } => write!(f, "Bind({source} at {target})"),
            Op::Unmount { target } => write!(f, "Unmount({target})"),
            Op::StartProcess(process) => write!(f, "StartProcess({})", process.name),
            Op::AskProcess { name } => write!(f, "AskProcess({name})"),
            Op::RunHandler { name, .. } => write!(f, "RunHandler({name})"),
            Op::StopProcess { name, .. } => write!(f, "StopProcess({name})"),
            Op::ForgetProcess { name } => write!(f, "ForgetProcess({name})"),
        }
    }
}

impl Op {
    /// What the operation works on: the path of which only one thing is done at a time. For most it is the volume's image
    /// or where the volume is shown.
    pub fn works_on(&self) -> &str {
        match self {
            Op::MakeDir { path }
            | Op::MakePlace { path }
            | Op::MakeScratch { path }
            | Op::SetGroup { path, .. }
            | Op::RemoveDir { path }
            | Op::WriteFile { path, .. }
            | Op::RemoveFile { path }
            | Op::CreateImage { path, .. }
            | Op::GrowImage { path, .. }
            | Op::Discard { path }
            | Op::RemoveTree { path }
            | Op::MakeFile { path }
            | Op::RemoveTarget { path }
            | Op::ShowFiles { path, .. }
            | Op::HostPath { path, .. }
            | Op::MeasureTree { path }
            | Op::Measure { path } => path,
            Op::AttachLoop { image } | Op::DetachLoop { image } | Op::RefreshLoop { image } => image,
            Op::SetReadAhead { device, .. }
            | Op::CheckFilesystem { device, .. }
            | Op::GrowFilesystem { device, .. }
            | Op::MakeFilesystem { device, .. } => device,
            Op::Mount { target, .. }
            | Op::Bind { target, .. }
            | Op::BindDevice { target, .. }
            | Op::MountMemory { target, .. }
            | Op::Unmount { target } => target,
            Op::CopyTogether { copies } => copies.first().map_or("", |copy| &copy.to),
            Op::StartProcess(process) => &process.name,
            Op::AskProcess { name }
            | Op::RunHandler { name, .. }
            | Op::StopProcess { name, .. }
            | Op::ForgetProcess { name } => name,
        }
    }
}

/// A machine: it does operations, and can be looked at. One door, with a real kernel or a pretend one behind it.
pub trait Machine {
    /// Does one operation and answers when it is done, or says why not.
    fn perform(&mut self, op: &Op) -> Result<Reply, Failure>;

    /// Every mount, those made first first. An error means "cannot tell", and never "nothing is mounted".
    fn mounts(&mut self) -> Result<Vec<Mounted>, Failure>;

    /// Every loop device that shows a file.
    fn loops(&mut self) -> Result<Vec<Looped>, Failure>;

    /// The content of a plain file; `None` if it is not there.
    fn read_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, Failure>;

    /// The names in a directory, sorted; none if it is not there.
    fn list_dir(&mut self, path: &str) -> Result<Vec<String>, Failure>;

    /// Every process started and not forgotten.
    fn processes(&mut self) -> Result<BTreeMap<String, ProcessState>, Failure>;
}

/// A mount, as the machine's table has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mounted {
    /// Where it is.
    pub target: String,
    /// The device, or whatever the filesystem calls its source.
    pub source: String,
    /// The filesystem's type.
    pub fstype: String,
    /// What of the filesystem is shown there; `/` unless it is a bind.
    pub root: String,
    /// Read-only, as a mount or as a whole filesystem.
    pub read_only: bool,
    /// What is mounted in it is seen by those who have a copy of it, such as containers, and the other way round.
    pub shared: bool,
}

/// A loop device and the file it shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Looped {
    pub device: String,
    /// The file's path when the kernel last knew it.
    pub image: String,
    /// The file has no name any more and lives on behind the device only.
    pub deleted: bool,
}

/// Why an operation was not done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What kind of refusal it is.
    pub kind: FailureKind,
    /// It surely changed nothing that matters. Otherwise it may have been done, or half done, or is under way.
    pub certain: bool,
    /// A sentence for people.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The path is not one that is ever touched.
    Path,
    /// A component of the path is a symbolic link.
    Symlink,
    /// What must exist does not.
    Missing,
    /// Something else is there than what is wanted.
    WrongKind,
    /// A directory or file to be removed holds something.
    NotEmpty,
    /// What is to be removed is a mount point.
    MountPoint,
    /// An image of another size is there.
    WrongSize,
    /// Somebody uses it.
    Busy,
    /// A loop device of somebody else shows the file.
    ForeignLoop,
    /// The device holds something else.
    ForeignSignature,
    /// Another mount is there.
    MountedOtherwise,
    /// A mount flag is not allowed.
    FlagNotAllowed,
    /// Not a filesystem we make or mount.
    UnknownFilesystem,
    /// A program is not installed.
    ToolMissing,
    /// A program failed.
    ToolFailed,
    /// The kernel would not mount it.
    MountFailed,
    /// A filesystem cannot be made larger as it is now.
    CannotGrow,
    /// The filesystem or its device cannot give room back.
    CannotDiscard,
    /// Mounts made there reach nobody else.
    NotShared,
    /// The name cannot be a process's.
    ProcessName,
    /// A process was asked for in a way that cannot be started.
    ProcessSpec,
    /// The supervisor of a process failed.
    Supervisor,
    /// A process gave a bad answer, or none in time.
    Unwell,
    /// It seemed to be done, and a second look did not confirm it.
    Unconfirmed,
    /// It, or an earlier operation on the same thing, has not ended in time and goes on.
    Hung,
    /// No room is left.
    NoSpace,
    /// It may only be read.
    ReadOnly,
    /// The kernel refused for another reason, such as an error of the disk.
    Kernel,
}
