//! What is kept on disk of a process, and what it means.
//!
//! In `<state dir>/<name>/`:
//! - `spec.json`: what was asked for;
//! - `lock`: locked by the supervisor for as long as it or anything it supervises lives. It is locked before the
//!   supervisor is started and handed over to it, so there is no instant between "asked for" and "locked";
//! - `pid`: written by the supervisor before it starts anything. From then on the process counts as started, for ever;
//! - `exit.json`: how it ended;
//! - `log.0`, `log.1`, …: what it wrote to standard output and standard error, the last files of it.
//!
//! `exit.json` means ended. Otherwise `pid` with the lock held means running, and with the lock free it means lost.
//! Neither file means never started: a crash before that point leaves a process that may be started.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use control::host::{Process, ProcessDevice, ProcessMount, ProcessState, Propagation, Sandbox};
use serde::{Deserialize, Serialize};

use crate::sys;

pub(crate) const SPEC: &str = "spec.json";
pub(crate) const LOCK: &str = "lock";
pub(crate) const PID: &str = "pid";
pub(crate) const EXIT: &str = "exit.json";
/// An empty directory on which the process's root is put together, in the process's own mount namespace.
pub(crate) const ROOT: &str = "root";

/// `spec.json`. It holds the environment, so it is for its owner only and has no `Debug`. What is confidential is not
/// in it at all: the supervisor gets that as [`Handed`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Spec {
    pub command: Vec<String>,
    pub working_dir: String,
    pub environment: BTreeMap<String, String>,
    /// Command and environment are handed over.
    #[serde(default)]
    pub confidential: bool,
    pub mounts: Vec<SpecMount>,
    /// Block devices. Records of before they were kept have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<SpecMount>,
    /// Build the root without overlayfs.
    pub plain_root: bool,
    /// What the process may do. Records of before it was kept have none.
    #[serde(default)]
    pub sandbox: Sandbox,
}

/// What the supervisor of a confidential process gets in memory.
#[derive(Serialize, Deserialize)]
pub(crate) struct Handed {
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

/// A directory or device seen elsewhere.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SpecMount {
    pub source: String,
    pub target: String,
    pub read_only: bool,
    #[serde(default)]
    pub sub_path: String,
    #[serde(default)]
    pub of_machine: bool,
    #[serde(default)]
    pub propagation: Propagation,
}

/// `pid`: the supervisor, and what tells it from another process with its number.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Started {
    pub pid: i32,
    pub start_ticks: u64,
    pub since_millis: u64,
}

/// `exit.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    Exited {
        code: i32,
        since_millis: u64,
        at_millis: u64,
        #[serde(default)]
        out_of_memory: bool,
    },
    NotStarted(String),
}

impl Spec {
    /// What a process's record says it was asked to be.
    pub(crate) fn of(process: &Process, plain_root: bool) -> Spec {
        let mount = |mount: &ProcessMount| SpecMount {
            source: mount.source.clone(),
            target: mount.target.clone(),
            read_only: mount.read_only,
            sub_path: mount.sub_path.clone(),
            of_machine: mount.of_machine,
            propagation: mount.propagation,
        };
        let (command, environment) = match process.confidential {
            true => (Vec::new(), BTreeMap::new()),
            false => (process.command.clone(), process.environment.clone()),
        };
        let device = |device: &ProcessDevice| SpecMount {
            source: device.source.clone(),
            target: device.target.clone(),
            read_only: device.read_only,
            ..SpecMount::default()
        };
        Spec {
            command,
            working_dir: process.working_dir.clone(),
            environment,
            confidential: process.confidential,
            mounts: process.mounts.iter().map(mount).collect(),
            devices: process.devices.iter().map(device).collect(),
            plain_root,
            sandbox: (*process.sandbox).clone(),
        }
    }
}

impl Handed {
    /// What is handed over of a process, as a file in memory; nothing of a process that is not confidential.
    pub(crate) fn of(process: &Process) -> io::Result<Option<File>> {
        if !process.confidential {
            return Ok(None);
        }
        let handed = Handed { command: process.command.clone(), environment: process.environment.clone() };
        let bytes = serde_json::to_vec(&handed).map_err(io::Error::other)?;
        let mut file = File::from(rustix::fs::memfd_create("handed", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Some(file))
    }

    /// Takes over what was handed.
    pub(crate) fn take(mut file: File) -> io::Result<Handed> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(|_| io::Error::other("what it is to run was not handed over"))
    }
}

/// Reads one of the files, `None` if it is not there.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(dir: &Path, name: &str) -> io::Result<Option<T>> {
    match std::fs::read(dir.join(name)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(io::Error::other)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lock file, opened but not locked. `None`: it is not there.
pub(crate) fn open_lock(dir: &Path) -> io::Result<Option<File>> {
    let opened = File::options().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(dir.join(LOCK));
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The supervisor lives, or something it supervises.
pub(crate) fn is_alive(dir: &Path) -> io::Result<bool> {
    open_lock(dir)?.map_or(Ok(false), |lock| sys::is_locked(&lock))
}

/// How a process fares, `None` if it was never started.
pub(crate) fn state(dir: &Path) -> io::Result<Option<ProcessState>> {
    // In this order: what has begun before the lock was found free has ended, and its end was written before that.
    let started: Option<Started> = read(dir, PID)?;
    let alive = is_alive(dir)?;
    let ended = match read(dir, EXIT)? {
        Some(Exit::Exited { code, since_millis, at_millis, out_of_memory }) => {
            Some(ProcessState::Exited { code, since_millis, at_millis, out_of_memory })
        }
        Some(Exit::NotStarted(why)) => Some(ProcessState::NotStarted(why)),
        None => None,
    };
    if ended.is_some() {
        return Ok(ended);
    }
    Ok(started.map(|started| match alive {
        true => ProcessState::Running { since_millis: started.since_millis },
        false => ProcessState::Lost,
    }))
}

/// Every process that was started and is not forgotten.
pub(crate) fn all(state_dir: &Path) -> io::Result<BTreeMap<String, ProcessState>> {
    Ok(each(state_dir)?.into_iter().filter_map(|(name, state)| Some((name, state?))).collect())
}

/// The names of directories in which no process has begun, or none any more.
pub(crate) fn unfinished(state_dir: &Path) -> io::Result<Vec<String>> {
    Ok(each(state_dir)?.into_iter().filter(|(_, state)| state.is_none()).map(|(name, _)| name).collect())
}

fn each(state_dir: &Path) -> io::Result<BTreeMap<String, Option<ProcessState>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(state_dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if entry.file_type()?.is_dir() {
            found.insert(name, state(&entry.path())?);
        }
    }
    Ok(found)
}

/// Milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// When a process began, in clock ticks since the machine did: with the number it names one process and no other.
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything, parentheses too.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_without_its_marker_is_a_process_never_started() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(SPEC), "{}").unwrap();
        std::fs::write(dir.path().join(LOCK), "").unwrap();
        assert_eq!(state(dir.path()).unwrap(), None);
    }

    #[test]
    fn a_marker_with_a_free_lock_is_lost_and_with_a_held_one_running() {
        let dir = tempfile::tempdir().unwrap();
        let started = Started { pid: 1, start_ticks: 1, since_millis: 7 };
        std::fs::write(dir.path().join(PID), serde_json::to_vec(&started).unwrap()).unwrap();
        assert_eq!(state(dir.path()).unwrap(), Some(ProcessState::Lost));
        let lock = File::create(dir.path().join(LOCK)).unwrap();
        assert!(sys::lock(&lock).unwrap());
        assert_eq!(state(dir.path()).unwrap(), Some(ProcessState::Running { since_millis: 7 }));
        drop(lock);
        // A child of another test may hold a copy of the lock until it has become its own program.
        let lost = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            state(dir.path()).unwrap() == Some(ProcessState::Lost)
        });
        assert!(lost);
    }

    #[test]
    fn the_start_of_a_process_tells_it_from_others() {
        let us = i32::try_from(std::process::id()).unwrap();
        assert!(start_ticks(us).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_ticks(-5), None);
    }
}
