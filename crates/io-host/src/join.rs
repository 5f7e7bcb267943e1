//! The helper that runs a further command in a container: it goes into everything the container is in, and the command
//! gives up everything the container does not have, before it begins.
//!
//! The order matters. Nobody can look into the helper from the moment it is beside the container's processes. The doors
//! of the control groups are opened first, since the container's own root does not show them; the command goes through
//! them. It is started like the container's own: same user, capabilities, filter of system calls and environment; it
//! can never do more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};
use rustix::pty::OpenptFlags;
use rustix::thread::ThreadNameSpaceType;

use crate::exec::{ExecCommand, Said, request, say};
use crate::record::{self, Spec, Started};
use crate::sandbox::confine::{self, Confinement};
use crate::sandbox::{StartError, cgroup, step};
use crate::{process, shim, sys};

/// How long a container that was just started may take to begin.
const BEGINNING: Duration = Duration::from_secs(10);
/// What the kernel calls the filesystem of terminals.
const DEVPTS: u64 = 0x1cd1;

/// The entry of the helper. The arguments are the process's directory and the number of the socket to who asks.
pub(crate) fn exec_main(args: &[String]) -> i32 {
    let [dir, number] = args else { return 2 };
    let Some(control) = number.parse().ok().and_then(|number| sys::inherited(number).ok()) else { return 2 };
    if sys::close_others(&[control.as_fd()]).is_err() {
        return 1;
    }
    let said = match run(Path::new(dir), control.as_fd()) {
        Ok(code) => Said::Ended(code),
        Err(error) => Said::Failed(error.to_string()),
    };
    i32::from(say(control.as_fd(), &said, None).is_err())
}

fn run(dir: &Path, control: BorrowedFd<'_>) -> Result<i32, StartError> {
    let asked = |why: &str| StartError::Asked(why.to_owned());
    let request = request(control).map_err(step("the request cannot be read"))?;
    confine::close_to_others().map_err(confine::refused)?;
    let spec: Option<Spec> = record::read(dir, record::SPEC).map_err(step("the container cannot be read"))?;
    let mut spec = spec.ok_or_else(|| asked("the container is gone"))?;
    let first = begun_process(dir).map_err(step("the container cannot be found"))?;
    let (first, pid) = first.ok_or_else(|| asked("the container is not running"))?;
    if spec.confidential {
        spec.environment = environment_in(pid).map_err(step("the environment of the container cannot be read"))?;
    }
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The helper stays outside: what runs out of memory inside must not take it along, or nobody would tell of it.
    let doors = cgroup::doors(name)?;
    let alone = !rustix::process::geteuid().is_root();
    rustix::thread::move_into_thread_name_spaces(first.as_fd(), namespaces(alone))
        .map_err(step("the container cannot be entered"))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    if let Some((address, millis)) = request.connect {
        let failed = step(format!("no connection to {address}"));
        let socket = TcpStream::connect_timeout(&address, Duration::from_millis(millis.max(1))).map_err(failed)?;
        say(control, &Said::Terminal, Some(socket.as_fd())).map_err(step("the connection cannot be handed over"))?;
        return Ok(0);
    }
    let terminal = match request.terminal {
        true => Some(terminal(control, spec.sandbox.user).map_err(step("no terminal can be made"))?),
        false => None,
    };
    let command = spawn(&spec, &request, terminal, doors, alone)?;
    attend(control, command).map_err(step("the command could not be waited for"))
}

fn namespaces(alone: bool) -> ThreadNameSpaceType {
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::CONTROL_GROUP;
    if alone { all | ThreadNameSpaceType::USER } else { all }
}

/// The first process of a container, once it has started the command. Before that it is on its way out of the machine's
/// own namespaces, and whoever joined it then would be where no container is. `None`: none lives.
fn begun_process(dir: &Path) -> io::Result<Option<(OwnedFd, Pid)>> {
    let until = Instant::now() + BEGINNING;
    loop {
        match first_process(dir)? {
            First::Gone => return Ok(None),
            // It has no child before the command, which it starts when it is all the way in; once the command runs,
            // it gives up its own rights.
            First::Lives(first, pid) if oldest_child(pid.as_raw_pid())?.is_some() && has_given_up(pid) => {
                return Ok(Some((first, pid)));
            }
            First::Lives(..) | First::NotSeen => {}
        }
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its command has not begun yet"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What is known of the first process of a container.
enum First {
    /// There is no supervisor, so there is none.
    Gone,
    /// The supervisor lives and has no child: it has not made it yet, or is about to end because it has ended.
    NotSeen,
    Lives(OwnedFd, Pid),
}

fn has_given_up(first: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", first.as_raw_pid())).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("NoNewPrivs:").is_some_and(|told| told.trim() == "1"))
}

/// A descriptor of the first process of a container, never of another that got its number.
fn first_process(dir: &Path) -> io::Result<First> {
    let Some(started) = record::read::<Started>(dir, record::PID)? else { return Ok(First::Gone) };
    let Some(_supervisor) = process::supervisor(dir, &started)? else { return Ok(First::Gone) };
    let Some(pid) = oldest_child(started.pid)?.and_then(Pid::from_raw) else { return Ok(First::NotSeen) };
    let first = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(first) => first,
        Err(rustix::io::Errno::SRCH) => return Ok(First::NotSeen),
        Err(errno) => return Err(errno.into()),
    };
    // The supervisor lived when we looked, and the number was its child's after we took hold of it.
    let ours = parent_of(pid.as_raw_pid()) == Some(started.pid) && process::supervisor(dir, &started)?.is_some();
    Ok(if ours { First::Lives(first, pid) } else { First::NotSeen })
}

fn oldest_child(of: i32) -> io::Result<Option<i32>> {
    match std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(children) => Ok(children.split_ascii_whitespace().next().and_then(|pid| pid.parse().ok())),
        // A kernel that keeps no such list.
        Err(error) if error.kind() == io::ErrorKind::NotFound => child_of(of),
        Err(error) => Err(error),
    }
}

/// What the command of a container was started with, where no record keeps it: the command is the first that the first
/// process started.
fn environment_in(first: Pid) -> io::Result<BTreeMap<String, String>> {
    let command = oldest_child(first.as_raw_pid())?.ok_or_else(|| io::Error::other("its command has ended"))?;
    let bytes = std::fs::read(format!("/proc/{command}/environ"))?;
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='));
    Ok(entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn child_of(parent: i32) -> io::Result<Option<i32>> {
    for entry in std::fs::read_dir("/proc")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = number.filter(|pid| parent_of(*pid) == Some(parent)) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A terminal of the container's own; its other end goes to who asks.
fn terminal(control: BorrowedFd<'_>, user: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let near = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty())?;
    // The container may have put something else there, if it can write at all.
    if u64::try_from(rustix::fs::fstatfs(&near)?.f_type).ok() != Some(DEVPTS) {
        return Err(io::Error::other("/dev/pts/ptmx of the container is not one"));
    }
    rustix::pty::unlockpt(&near)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let far = rustix::pty::ioctl_tiocgptpeer(&near, flags)?;
    shim::give(&far, user);
    say(control, &Said::Terminal, Some(near.as_fd()))?;
    Ok(far)
}

fn spawn(
    spec: &Spec,
    request: &ExecCommand,
    terminal: Option<OwnedFd>,
    doors: Vec<File>,
    alone: bool,
) -> Result<Pid, StartError> {
    let failed = || "the command cannot be prepared";
    let confinement = Confinement::with(&spec.sandbox, alone)?;
    let mut environment = spec.environment.clone();
    if terminal.is_some() {
        environment.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
    }
    let working_dir = if spec.working_dir.is_empty() { "/" } else { &spec.working_dir };
    let [program, words @ ..] = request.command.as_slice() else {
        return Err(StartError::Asked("no command was given".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(words).env_clear().envs(&environment).current_dir(working_dir);
    let controls = terminal.is_some();
    if let Some(terminal) = terminal {
        let copy = || terminal.try_clone().map_err(step(failed()));
        command.stdin(Stdio::from(copy()?)).stdout(Stdio::from(copy()?)).stderr(Stdio::from(copy()?));
    } else {
        // They were made for the helper; the container's user may open them again by name.
        for stream in [sys::inherited(1), sys::inherited(2)] {
            shim::give(&stream.map_err(step(failed()))?, spec.sandbox.user);
        }
    }
    sys::before_exec(&mut command, move || {
        for door in &doors {
            rustix::io::write(door, b"0")?;
        }
        rustix::process::setsid()?;
        if controls {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        confinement.apply()?;
        // Last, since giving up rights takes it back.
        Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
    });
    match command.spawn() {
        Ok(child) => Pid::from_raw(child.id().cast_signed())
            .ok_or_else(|| StartError::Asked("the command has no number".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StartError::Asked(format!(
            "the command {program:?} does not exist in the container, or the interpreter it names does not"
        ))),
        Err(error) => Err(step(format!("the command {program:?} cannot be executed"))(error)),
    }
}

/// Waits for the command, or ends it when nobody waits for it any more.
fn attend(control: BorrowedFd<'_>, command: Pid) -> io::Result<i32> {
    // Nobody but the command holds its streams, so that they end with it.
    shim::forget_stdio()?;
    let watched = pidfd_open(command, PidfdFlags::empty())?;
    let mut gone = false;
    loop {
        let mut fds = vec![PollFd::new(&watched, PollFlags::IN)];
        if !gone {
            fds.push(PollFd::new(&control, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
            gone = true;
            let _ = pidfd_send_signal(&watched, Signal::KILL);
        }
        if let Some((_, status)) = rustix::process::waitpid(Some(command), WaitOptions::NOHANG)? {
            return Ok(shim::code(status));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hook right after the start must wait: a supervisor that has marked itself makes its child a moment later.
    #[test]
    fn a_supervisor_without_a_child_is_about_to_have_one_and_without_its_lock_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        // A process that lives and has no children.
        let mut stands_in = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = stands_in.id().cast_signed();
        let started = Started { pid, start_ticks: record::start_ticks(pid).unwrap(), since_millis: 0 };
        std::fs::write(dir.path().join(record::PID), serde_json::to_vec(&started).unwrap()).unwrap();
        let lock = File::create(dir.path().join(record::LOCK)).unwrap();
        assert!(sys::lock(&lock).unwrap());
        let held = first_process(dir.path());
        drop(lock);
        // A child of another test may hold a copy of the lock until it has become its own program.
        let gone = || matches!(first_process(dir.path()), Ok(First::Gone));
        let free = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            gone()
        });
        stands_in.kill().unwrap();
        stands_in.wait().unwrap();
        assert!(matches!(held, Ok(First::NotSeen)));
        assert!(free);
    }
}
