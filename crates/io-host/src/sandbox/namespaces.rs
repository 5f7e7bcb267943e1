//! The namespaces that the containers of a pod share: network, IPC and host name.
//!
//! They live as long as the supervisor of one of the pod's processes does: whoever starts next joins them there, and
//! whoever finds nobody makes new ones. Nothing has to be kept or cleared up for that, also not over a crash.
//!
//! Without root they belong to a user namespace, in which the user who started us is root and nobody else exists.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use control::host::Sandbox;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags};

use crate::record::{self, Started};
use crate::{process, sys};

/// Moves this process, which has one thread, into its pod's namespaces. What is answered must be held until the
/// process's marker is written, so that the next one of the pod finds it.
pub(crate) fn enter(dir: &Path, sandbox: &Sandbox) -> io::Result<Option<OwnedFd>> {
    if sandbox.pod.is_empty() {
        make(sandbox)?;
        return Ok(None);
    }
    let state_dir = dir.parent().ok_or_else(|| io::Error::other("the process's directory has no parent"))?;
    // One supervisor at a time looks for the others of its pod, makes or joins namespaces and says that it is there.
    let lock = rustix::fs::open(state_dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    match another(state_dir, dir, &sandbox.pod)? {
        Some(other) => rustix::thread::move_into_thread_name_spaces(other.as_fd(), shared(sandbox))?,
        None => make(sandbox)?,
    }
    Ok(Some(lock))
}

fn shared(sandbox: &Sandbox) -> ThreadNameSpaceType {
    let mut types = ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    if !rustix::process::geteuid().is_root() {
        types |= ThreadNameSpaceType::USER;
    }
    if !sandbox.host_network {
        types |= ThreadNameSpaceType::NETWORK;
    }
    if !sandbox.host_ipc {
        types |= ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
    }
    types
}

/// The supervisor of another process of the pod, if one lives.
fn another(state_dir: &Path, own: &Path, pod: &str) -> io::Result<Option<OwnedFd>> {
    let prefix = format!("{pod}_");
    for entry in std::fs::read_dir(state_dir)? {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        if !ours || entry.path() == own {
            continue;
        }
        let Ok(Some(started)) = record::read::<Started>(&entry.path(), record::PID) else { continue };
        if let Some(supervisor) = process::supervisor(&entry.path(), &started)? {
            return Ok(Some(supervisor));
        }
    }
    Ok(None)
}

fn make(sandbox: &Sandbox) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if !user.is_root() {
        sys::unshare(UnshareFlags::NEWUSER)?;
        // The kernel wants groups to be given up before the map of groups is written by somebody who is not root.
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
        std::fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))?;
    }
    let mut flags = UnshareFlags::NEWUTS;
    if !sandbox.host_network {
        flags |= UnshareFlags::NEWNET;
    }
    if !sandbox.host_ipc {
        flags |= UnshareFlags::NEWIPC;
    }
    sys::unshare(flags)?;
    if !sandbox.hostname.is_empty() {
        // The kernel takes 64 bytes; a pod's name may be longer.
        let name = sandbox.hostname.as_bytes();
        rustix::system::sethostname(&name[..name.len().min(63)])?;
    }
    if !sandbox.host_network {
        sys::loopback_up()?;
    }
    Ok(())
}
