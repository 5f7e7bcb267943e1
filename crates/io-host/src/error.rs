//! What can go wrong, one variant per cause, one sentence each.

use std::io;

use control::host::{Failure, FailureKind};
use rustix::io::Errno;

/// Why an operation was not done. [`HostError::certain`] says whether it surely was not.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The path is not one this crate touches.
    #[error("the path {path:?} {why}")]
    Path {
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A component of the path is a symbolic link.
    #[error("{path} leads through a symbolic link, which is never followed here; give the real path")]
    Symlink { path: String },
    /// A directory, file or device that must exist does not.
    #[error("{path} does not exist")]
    Missing { path: String },
    /// Something else is there than a directory, plain file or block device.
    #[error("{path} is not {wanted}")]
    WrongKind {
        path: String,
        /// What it should be, with its article.
        wanted: &'static str,
    },
    /// A directory to be removed holds something.
    #[error("the directory {path} is not empty; nothing in it is deleted, so move its content away first")]
    NotEmpty { path: String },
    /// A directory or file to be removed is a mount point.
    #[error("{path} is a mount point and must be unmounted before it can be removed")]
    MountPoint { path: String },
    /// An image of another size is there.
    #[error("the image {path} has {found} bytes and {wanted} were asked for")]
    WrongSize {
        path: String,
        /// What it has.
        found: u64,
        /// What was asked for.
        wanted: u64,
    },
    /// Somebody uses it. It may be tried again.
    #[error("{what} is busy: {why}")]
    Busy {
        what: String,
        /// Who or what keeps it so.
        why: String,
    },
    /// More than one loop device shows the same file, or one shows a part of it: writing would corrupt it.
    #[error("{image} is attached to {devices} in a way that would corrupt it; detach that by hand with losetup -d")]
    ForeignLoop { image: String, devices: String },
    /// The device bears a signature of something else.
    #[error(
        "{device} holds {found} and is not formatted as {wanted}; wipe it by hand with wipefs if its data is not needed"
    )]
    ForeignSignature {
        device: String,
        /// What is on it.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// Another mount is there already.
    #[error("{target} has another mount than the one asked for: {found}")]
    MountedOtherwise {
        target: String,
        /// What is mounted there, and how it differs.
        found: String,
    },
    /// The mount flag is not on the allow-list.
    #[error("the mount flag {flag:?} is not allowed; allowed are {}", crate::mount::ALLOWED_FLAGS.join(", "))]
    FlagNotAllowed { flag: String },
    /// Not a filesystem we make or mount.
    #[error("the filesystem type {fstype:?} is not supported; use ext4, xfs or btrfs")]
    UnknownFilesystem { fstype: String },
    /// A program is not installed.
    #[error("the program {tool} is missing; install the package {package} (its name in Debian)")]
    ToolMissing {
        tool: String,
        /// Where it comes from.
        package: &'static str,
    },
    /// A program ran and failed.
    #[error("{tool} failed on {device}: {said}")]
    ToolFailed {
        tool: String,
        device: String,
        /// Its own words.
        said: String,
    },
    /// The kernel refused to make or attach a filesystem, in the filesystem's own words.
    #[error("mounting {device} at {target} failed: {said}")]
    MountFailed {
        device: String,
        target: String,
        /// The kernel's words.
        said: String,
    },
    /// A filesystem cannot be made larger as it is now.
    #[error("the filesystem on {device} cannot grow: {why}")]
    CannotGrow {
        device: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A filesystem cannot give room back.
    #[error("the filesystem at {path} cannot give back room: {why}")]
    CannotDiscard {
        /// Where it is mounted.
        path: String,
        why: String,
    },
    /// What is mounted at a path is seen by nobody who has a copy of it.
    #[error(
        "{path} is on the mount {mount}, which is not shared, so that no container would see a volume mounted there; \
         run mount --make-shared {mount}, or give a container this path with bidirectional mount propagation"
    )]
    NotShared {
        path: String,
        /// The mount that holds it.
        mount: String,
    },
    /// An operation has not ended in time. It goes on.
    #[error("{op} has not ended after {} s and goes on", .waited.as_secs())]
    UnderWay {
        op: String,
        /// How long it was waited for.
        waited: std::time::Duration,
    },
    /// An earlier operation on the same thing has not ended in time, so this one was not begun.
    #[error(
        "nothing is begun on {what} while an earlier operation on it hangs ({op}); look at the filesystem it is on and \
         unmount or repair that"
    )]
    Hung {
        /// What it was to work on.
        what: String,
        /// The earlier operation.
        op: String,
    },
    /// All workers are taken by operations that hang, so this one was not begun.
    #[error("nothing more is begun: all {workers} workers are taken, {hung} of them by operations that hang")]
    NoWorker {
        /// How many there are.
        workers: usize,
        /// How many hang.
        hung: usize,
    },
    /// The name cannot be a process's.
    #[error("{name:?} cannot name a process; use letters, digits, '-', '_' and '.', not beginning with '.'")]
    ProcessName { name: String },
    /// A process was asked for in a way that cannot be started.
    #[error("the process {name} cannot be started: {why}")]
    ProcessSpec { name: String, why: String },
    /// A process gave a bad answer to a probe or a hook, or none in time.
    #[error("{why}")]
    Unwell {
        /// A clause for people.
        why: String,
    },
    /// The supervisor of a process did not take over or did not let go.
    #[error("the supervisor of process {name} {why}")]
    Supervisor {
        name: String,
        /// What it did.
        why: String,
        /// Nothing was started or ended for certain.
        certain: bool,
    },
    /// It seemed to be done, and a second look did not confirm it.
    #[error("{what} could not be confirmed: {why}")]
    Unconfirmed {
        what: String,
        /// What was seen instead.
        why: String,
    },
    /// The kernel said no.
    #[error("cannot {doing} {path}: {source}")]
    Os {
        doing: &'static str,
        path: String,
        /// In the kernel's words.
        source: io::Error,
        /// The operation had begun to change things.
        begun: bool,
    },
}

impl HostError {
    /// The operation surely changed nothing that matters. Otherwise it may have been done, or half done.
    pub fn certain(&self) -> bool {
        match self {
            HostError::Path { .. }
            | HostError::Symlink { .. }
            | HostError::Missing { .. }
            | HostError::WrongKind { .. }
            | HostError::NotEmpty { .. }
            | HostError::MountPoint { .. }
            | HostError::WrongSize { .. }
            | HostError::Busy { .. }
            | HostError::ForeignLoop { .. }
            | HostError::ForeignSignature { .. }
            | HostError::MountedOtherwise { .. }
            | HostError::FlagNotAllowed { .. }
            | HostError::UnknownFilesystem { .. }
            | HostError::ToolMissing { .. }
            | HostError::MountFailed { .. }
            | HostError::CannotGrow { .. }
            | HostError::CannotDiscard { .. }
            | HostError::NotShared { .. }
            | HostError::Hung { .. }
            | HostError::NoWorker { .. }
            | HostError::ProcessName { .. }
            | HostError::ProcessSpec { .. }
            | HostError::Unwell { .. } => true,
            HostError::ToolFailed { .. } | HostError::Unconfirmed { .. } | HostError::UnderWay { .. } => false,
            HostError::Supervisor { certain, .. } => *certain,
            HostError::Os { begun, .. } => !begun,
        }
    }

    /// The kind of refusal, for whoever does not care for the details.
    pub fn kind(&self) -> FailureKind {
        match self {
            HostError::Path { .. } => FailureKind::Path,
            HostError::Symlink { .. } => FailureKind::Symlink,
            HostError::Missing { .. } => FailureKind::Missing,
            HostError::WrongKind { .. } => FailureKind::WrongKind,
            HostError::NotEmpty { .. } => FailureKind::NotEmpty,
            HostError::MountPoint { .. } => FailureKind::MountPoint,
            HostError::WrongSize { .. } => FailureKind::WrongSize,
            HostError::Busy { .. } => FailureKind::Busy,
            HostError::ForeignLoop { .. } => FailureKind::ForeignLoop,
            HostError::ForeignSignature { .. } => FailureKind::ForeignSignature,
            HostError::MountedOtherwise { .. } => FailureKind::MountedOtherwise,
            HostError::FlagNotAllowed { .. } => FailureKind::FlagNotAllowed,
            HostError::UnknownFilesystem { .. } => FailureKind::UnknownFilesystem,
            HostError::ToolMissing { .. } => FailureKind::ToolMissing,
            HostError::ToolFailed { .. } => FailureKind::ToolFailed,
            HostError::MountFailed { .. } => FailureKind::MountFailed,
            HostError::CannotGrow { .. } => FailureKind::CannotGrow,
            HostError::CannotDiscard { .. } => FailureKind::CannotDiscard,
            HostError::NotShared { .. } => FailureKind::NotShared,
            HostError::ProcessName { .. } => FailureKind::ProcessName,
            HostError::ProcessSpec { .. } => FailureKind::ProcessSpec,
            HostError::Unwell { .. } => FailureKind::Unwell,
            HostError::Supervisor { .. } => FailureKind::Supervisor,
            HostError::Unconfirmed { .. } => FailureKind::Unconfirmed,
            HostError::UnderWay { .. } | HostError::Hung { .. } | HostError::NoWorker { .. } => FailureKind::Hung,
            HostError::Os { source, .. } => match Errno::from_io_error(source) {
                Some(Errno::NOSPC | Errno::DQUOT) => FailureKind::NoSpace,
                Some(Errno::ROFS) => FailureKind::ReadOnly,
                Some(_) | None => FailureKind::Kernel,
            },
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure { kind: error.kind(), certain: error.certain(), why: error.to_string() }
    }
}

/// The kernel refused a call that came before any change.
pub(crate) fn refused(doing: &'static str, path: &str) -> impl FnOnce(rustix::io::Errno) -> HostError {
    move |errno| os(doing, path, errno.into(), false)
}

/// A call failed after a change, or in the middle of one.
pub(crate) fn begun(doing: &'static str, path: &str) -> impl FnOnce(rustix::io::Errno) -> HostError {
    move |errno| os(doing, path, errno.into(), true)
}

/// An error of the operating system, with what was tried.
pub(crate) fn os(doing: &'static str, path: &str, source: io::Error, begun: bool) -> HostError {
    HostError::Os { doing, path: path.to_owned(), source, begun }
}
