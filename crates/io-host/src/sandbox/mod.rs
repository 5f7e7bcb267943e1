//! What keeps a process of a pod apart from the machine: namespaces ([`namespaces`]), a root of its own ([`root`]) with
//! its own devices ([`devices`]), limits ([`cgroup`]), and a user, capabilities and a filter of system calls
//! ([`confine`], [`seccomp`]).
//!
//! The order matters. The supervisor makes or joins the pod's namespaces. The first process, which is process 1 of a
//! new process namespace, enters its control groups and builds the root while it still may do everything; then it
//! starts the command, which gives up its rights between `fork` and `exec`, and at last gives up its own.

pub(crate) mod cgroup;
pub(crate) mod confine;
mod devices;
pub(crate) mod namespaces;
pub(crate) mod root;
mod seccomp;
mod volumes;

use std::io;

use rustix::io::Errno;

/// Why a process cannot be started: a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The kernel refused a step.
    #[error("{step}: {error}")]
    Kernel { step: String, error: io::Error },
    /// The process asks for something that is not there.
    #[error("{0}")]
    Asked(String),
}

/// Says which step the kernel refused.
pub(crate) fn step<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> StartError {
    let step = step.into();
    move |error| StartError::Kernel { step, error: error.into() }
}

impl From<StartError> for io::Error {
    fn from(error: StartError) -> io::Error {
        io::Error::other(error)
    }
}

/// Whether the kernel or the machine's setup lacks what an error speaks of, rather than refusing it this once.
pub(crate) fn is_missing(errno: Errno) -> bool {
    matches!(errno, Errno::NODEV | Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::OPNOTSUPP)
}
