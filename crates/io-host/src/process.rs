//! Processes seen from outside: starting the supervisor, asking it to end, clearing up.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use control::host::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::{HostError, os};
use crate::record::{self, Handed, Spec, Started};
use crate::{Host, SHIM_WORD, files, log, path, sys};

/// What the supervisor says when it has taken over.
pub(crate) const TAKEN_OVER: &[u8] = b"ok";
/// How long the supervisor may take to take over, and to let go after it was told to.
const HANDOVER: Duration = Duration::from_secs(30);
/// How long we wait for a lock that is about to be let go.
const LETTING_GO: Duration = Duration::from_secs(10);

/// The program that supervises processes. It is started through a mount of its own that is read-only: a process in a
/// pod can be made to run it (`/proc/self/exe`), and must not get a way to write to it from that (CVE-2019-5736).
#[derive(Debug)]
pub(crate) struct Shim {
    path: PathBuf,
    /// `None` without the right to mount; then nobody in a pod is root on the machine either.
    mount: Option<OwnedFd>,
}

impl Shim {
    pub(crate) fn new(path: PathBuf) -> Shim {
        let mount = path.to_str().and_then(|path| crate::sandbox::root::clone_tree(rustix::fs::CWD, path, false).ok());
        let mount = mount.filter(|mount| sys::set_mount_attributes(mount, libc::MOUNT_ATTR_RDONLY, false).is_ok());
        Shim { path, mount }
    }

    pub(crate) fn command(&self) -> Command {
        let Some(mount) = &self.mount else { return Command::new(&self.path) };
        // The child has the descriptor until it executes what it leads to.
        let mut command = Command::new(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        command.arg0(&self.path);
        command
    }
}

impl Host {
    /// Starts a process, once.
    pub(crate) fn start(&self, process: &Process) -> Result<(), HostError> {
        check(process)?;
        let dir = self.process_dir(&process.name);
        let spec = serde_json::to_vec(&Spec::of(process, self.plain_root))
            .map_err(|error| os("describe", &process.name, io::Error::other(error), false))?;
        let _alone = self.names.hold(&process.name);
        let open = prepare(&dir)?;
        let lock = lock_file(&dir).map_err(|error| os("open the lock of", &process.name, error, false))?;
        let locked = sys::lock(&lock).map_err(|error| os("lock", &process.name, error, false))?;
        let state = record::state(&dir).map_err(|error| os("read the state of", &process.name, error, false))?;
        if !locked || state.is_some() {
            return same_spec(&dir, &process.name, &spec);
        }
        files::put_loosely_at(&open, record::SPEC, &spec)?;
        let handed = Handed::of(process).map_err(|error| os("hand over", &process.name, error, false))?;
        let answer = self.launch(&dir, lock, handed, &process.name);
        self.watchers.look_at(&process.name);
        answer
    }

    /// Hands the lock to a supervisor and waits until it has taken over.
    fn launch(&self, dir: &Path, lock: File, handed: Option<File>, name: &str) -> Result<(), HostError> {
        let failed = |error| os("start the supervisor of process", name, error, false);
        let mut command = self.shim.command();
        command.arg(SHIM_WORD).arg(dir).args(self.log_limits.print()).current_dir("/").env_clear();
        command.stdin(Stdio::from(lock)).stdout(Stdio::piped()).stderr(handed.map_or_else(Stdio::null, Stdio::from));
        let mut child = command.spawn().map_err(failed)?;
        // Our copy of the lock is in the command; it must go, or the process would seem to run as long as we do.
        drop(command);
        let said =
            child.stdout.take().map_or(Ok(Vec::new()), |pipe| read_until_closed(File::from(OwnedFd::from(pipe))));
        // What we started has split off the supervisor and ended at once, so this does not wait for the process.
        let waited = child.wait();
        match (said, waited) {
            (Ok(said), Ok(_)) if said == TAKEN_OVER => Ok(()),
            (Ok(said), _) if !said.is_empty() => {
                Err(HostError::ProcessSpec { name: name.to_owned(), why: String::from_utf8_lossy(&said).into_owned() })
            }
            (said, waited) => {
                let why = match (said.err(), waited.err()) {
                    (Some(error), _) | (None, Some(error)) => format!("did not take over: {error}"),
                    (None, None) => "ended before it took over".to_owned(),
                };
                let certain = matches!(record::state(dir), Ok(None)) && matches!(record::is_alive(dir), Ok(false));
                Err(HostError::Supervisor { name: name.to_owned(), why, certain })
            }
        }
    }

    /// Asks a process to end.
    pub(crate) fn ask(&self, name: &str) -> Result<(), HostError> {
        check_name(name)?;
        let dir = self.process_dir(name);
        let failed = |error| os("ask to end process", name, error, true);
        let Some(started) = wait_for_marker(&dir).map_err(failed)? else { return Ok(()) };
        let Some(supervisor) = supervisor(&dir, &started).map_err(failed)? else { return Ok(()) };
        match pidfd_send_signal(&supervisor, Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Ends a process and all it started, and returns when they are gone.
    pub(crate) fn stop(&self, name: &str, grace_millis: u64) -> Result<(), HostError> {
        check_name(name)?;
        let dir = self.process_dir(name);
        let failed = |error| os("stop process", name, error, true);
        let Some(started) = wait_for_marker(&dir).map_err(failed)? else { return Ok(()) };
        if let Some(supervisor) = supervisor(&dir, &started).map_err(failed)? {
            end(&supervisor, Duration::from_millis(grace_millis)).map_err(failed)?;
        }
        if wait_until_dead(&dir).map_err(failed)? {
            return Ok(());
        }
        let why =
            "could not be ended; a process in an uninterruptible wait, such as on a hung filesystem, stays".into();
        Err(HostError::Supervisor { name: name.to_owned(), why, certain: false })
    }

    /// Finishes what an earlier incarnation was doing when it was cut off, before anything is started here: a
    /// supervisor that it launched writes its marker, so that [`Host::processes`] tells of it, and what is kept of a
    /// process that never began, or was half forgotten, goes. Nobody would ask for that: no process has this name.
    /// Returns what could not be done.
    pub fn settle(&self) -> io::Result<Vec<HostError>> {
        let mut failed = Vec::new();
        for name in record::unfinished(&self.state_dir)? {
            let dir = self.process_dir(&name);
            let settled = match wait_for_marker(&dir) {
                Ok(Some(_)) => Ok(()),
                Ok(None) if matches!(record::state(&dir), Ok(None)) => self.forget(&name),
                Ok(None) => Ok(()),
                Err(error) => Err(os("settle process", &name, error, true)),
            };
            failed.extend(settled.err());
        }
        Ok(failed)
    }

    /// Removes what is kept of a process that has ended.
    pub(crate) fn forget(&self, name: &str) -> Result<(), HostError> {
        check_name(name)?;
        let _alone = self.names.hold(name);
        let dir = self.process_dir(name);
        let failed = |error| os("forget process", name, error, true);
        if !dir.exists() {
            return Ok(());
        }
        let ended = dir.join(record::EXIT).exists();
        // Between writing the end and letting go of the lock there is an instant.
        let dead = if ended { wait_until_dead(&dir) } else { record::is_alive(&dir).map(|alive| !alive) };
        if !dead.map_err(failed)? {
            return Err(HostError::Busy {
                what: format!("process {name}"),
                why: "it is running; stop it first".into(),
            });
        }
        // In this order a crash in the middle leaves either an ended process or one never started, and never a lost one.
        crate::sandbox::cgroup::forget(name);
        let open = open_dir(&text(&dir)?)?;
        let logs = log::numbers(&dir).map_err(failed)?.into_iter().map(|number| format!("{}{number}", log::PREFIX));
        let others = [log::OLD_NAME, record::PID, record::SPEC, record::EXIT, record::LOCK].map(str::to_owned);
        for file in logs.chain(others) {
            files::drop_at(&open, &file, AtFlags::empty())?;
        }
        files::drop_at(&open, record::ROOT, AtFlags::REMOVEDIR)?;
        files::remove_dir(&text(&dir)?)
    }
}

fn text(path: &Path) -> Result<String, HostError> {
    let lossy = path.to_string_lossy().into_owned();
    path.to_str().map(str::to_owned).ok_or(HostError::Path { path: lossy, why: "is not UTF-8" })
}

pub(crate) fn check_name(name: &str) -> Result<(), HostError> {
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(fit) {
        return Err(HostError::ProcessName { name: name.to_owned() });
    }
    Ok(())
}

/// What can be refused before anything is written.
fn check(process: &Process) -> Result<(), HostError> {
    check_name(&process.name)?;
    let refuse = |why: &str| Err(HostError::ProcessSpec { name: process.name.clone(), why: why.to_owned() });
    if process.command.first().is_none_or(String::is_empty) {
        return refuse("it has no command");
    }
    let nul = |text: &String| text.contains('\0');
    if process.command.iter().any(nul) || process.environment.iter().any(|(key, value)| nul(key) || nul(value)) {
        return refuse("its command or environment holds a NUL byte");
    }
    if process.environment.keys().any(|key| key.is_empty() || key.contains('=')) {
        return refuse("a name in its environment is empty or holds '='");
    }
    if !process.working_dir.is_empty() && !process.working_dir.starts_with('/') {
        return refuse("its working directory is not absolute");
    }
    for mount in &process.mounts {
        // A place of the machine may be its root.
        if !mount.of_machine || mount.source != "/" {
            path::components(&mount.source)?;
        }
        if mount.sub_path.starts_with('/') || mount.sub_path.split('/').any(|part| part == "..") {
            return refuse("a part of a volume is not named by a path within it");
        }
        path::components(&mount.target)?;
    }
    for device in &process.devices {
        path::components(&device.source)?;
        path::components(&device.target)?;
    }
    Ok(())
}

/// Makes the process's directory, for its owner only: it holds the environment and the log.
fn prepare(dir: &Path) -> Result<OwnedFd, HostError> {
    let path = text(dir)?;
    files::make_dir(&path)?;
    let open = open_dir(&path)?;
    rustix::fs::fchmod(&open, Mode::RWXU).map_err(crate::error::begun("restrict", &path))?;
    Ok(open)
}

fn open_dir(path: &str) -> Result<OwnedFd, HostError> {
    path::open_existing(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn lock_file(dir: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(dir.join(record::LOCK))
}

/// The name is taken. By the same process: then it is started already. What it was asked to be may have been lost when
/// the machine went down; the process went with it, so that it counts as the same.
fn same_spec(dir: &Path, name: &str, wanted: &[u8]) -> Result<(), HostError> {
    match record::read::<Spec>(dir, record::SPEC) {
        Ok(Some(there)) if serde_json::to_vec(&there).is_ok_and(|there| there != wanted) => {}
        Ok(Some(_) | None) | Err(_) => return Ok(()),
    }
    let why = "another process of that name was started and is not forgotten yet".to_owned();
    Err(HostError::ProcessSpec { name: name.to_owned(), why })
}

fn read_until_closed(mut pipe: File) -> io::Result<Vec<u8>> {
    let (mut said, until) = (Vec::new(), Instant::now() + HANDOVER);
    loop {
        if !ready(&pipe, until.saturating_duration_since(Instant::now()))? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        let mut some = [0; 512];
        match pipe.read(&mut some)? {
            0 => return Ok(said),
            length => said.extend_from_slice(&some[..length]),
        }
    }
}

/// Waits until a descriptor can be read. `false`: not in this time.
pub(crate) fn ready(fd: impl AsFd, time: Duration) -> io::Result<bool> {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The marker of a process that lives, `None` if none lives. A supervisor an earlier incarnation has just launched may
/// hold the lock and not have written its marker yet.
fn wait_for_marker(dir: &Path) -> io::Result<Option<Started>> {
    let until = Instant::now() + HANDOVER;
    loop {
        if !record::is_alive(dir)? {
            return Ok(None);
        }
        if let Some(started) = record::read(dir, record::PID)? {
            return Ok(Some(started));
        }
        if Instant::now() > until {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "its supervisor holds the lock and does not take over",
            ));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A descriptor of the supervisor itself, never of another process that got its number.
pub(crate) fn supervisor(dir: &Path, started: &Started) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(started.pid) else { return Ok(None) };
    let fd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let ours = record::start_ticks(started.pid) == Some(started.start_ticks) && record::is_alive(dir)?;
    Ok(ours.then_some(fd))
}

/// Asks the process to end, then makes it, then ends the supervisor itself, which takes everything with it.
pub(crate) fn end(supervisor: &OwnedFd, grace: Duration) -> io::Result<()> {
    for (signal, time) in [(Signal::TERM, grace), (Signal::USR1, LETTING_GO), (Signal::KILL, LETTING_GO)] {
        if signal == Signal::TERM && grace.is_zero() {
            continue;
        }
        match pidfd_send_signal(supervisor, signal) {
            Ok(()) => {}
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        if ready(supervisor, time)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits until neither the supervisor nor anything beneath it holds the lock. `false`: not in time.
fn wait_until_dead(dir: &Path) -> io::Result<bool> {
    let until = Instant::now() + LETTING_GO;
    while record::is_alive(dir)? {
        if Instant::now() > until {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_file_names_are_refused() {
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\0"] {
            assert!(matches!(check_name(bad), Err(HostError::ProcessName { .. })), "{bad:?}");
        }
        assert!(check_name("pod-uid_container.1").is_ok());
    }
}
