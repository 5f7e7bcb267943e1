//! The supervisor of one process, and the first process of its process namespace.
//!
//! `longshore process-shim <dir>` splits off the supervisor and ends. The supervisor belongs to nobody, holds the
//! lock, writes the marker, starts the *first process* in a new process namespace, writes the log, waits for it and
//! writes how it ended. The first process builds the root, starts the command, and reaps orphans. When it ends the
//! kernel ends all in its namespace before the supervisor sees it end; when the supervisor is killed the first
//! process is killed too.
//! Signals to the supervisor: TERM, INT and HUP ask the command to end; USR1 makes it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use rustix::thread::UnshareFlags;

use crate::exec::EXEC_WORD;
use crate::log::{LogLimits, Output};
use crate::process::TAKEN_OVER;
use crate::record::{self, Exit, Handed, Spec, Started};
use crate::sandbox::cgroup::ControlGroups;
use crate::sandbox::confine::{self, Confinement};
use crate::sandbox::{StartError, namespaces, root, step};
use crate::sys::{Forked, Signals};
use crate::{files, join, sys};

/// The entry of the hidden subcommand [`SHIM_WORD`](crate::SHIM_WORD), to be called before any thread is started. The
/// arguments are the process's directory and the limits of its log; standard input is its lock, standard output goes
/// to who starts it. Answers the exit status for the caller.
pub fn shim_main(args: &[String]) -> i32 {
    if let [word, rest @ ..] = args
        && word == EXEC_WORD
    {
        return join::exec_main(rest);
    }
    let [dir, limits @ ..] = args else { return 2 };
    let Some(limits) = LogLimits::parse(limits) else { return 2 };
    // Whoever started us may have left descriptors open to its children. None of them is a pod's business.
    if sys::close_others(&[]).is_err() {
        return 1;
    }
    match split_off(Path::new(dir), limits) {
        Ok(()) => 0,
        Err(error) => {
            let _ = io::stdout().write_all(error.to_string().as_bytes());
            1
        }
    }
}

fn split_off(dir: &Path, limits: LogLimits) -> io::Result<()> {
    let (lock, starter) = (sys::inherited(0)?, File::from(sys::inherited(1)?));
    if !record::is_alive(dir)? || record::state(dir)?.is_some_and(|state| !is_running(&state)) {
        return Err(io::Error::other("its lock was not handed over"));
    }
    match sys::fork()? {
        Forked::Parent(_) => Ok(()),
        Forked::Child => sys::exit_now(supervise(dir, limits, lock, starter)),
    }
}

fn is_running(state: &control::host::ProcessState) -> bool {
    matches!(state, control::host::ProcessState::Running { .. })
}

/// The supervisor's life. The lock is held to the end of it.
fn supervise(dir: &Path, limits: LogLimits, lock: OwnedFd, mut starter: File) -> i32 {
    let taken_over = (|| {
        rustix::process::setsid()?;
        rustix::process::chdir("/")?;
        let handed = File::from(sys::inherited(2)?);
        forget_stdio()?;
        let signals = Signals::hold(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1])?;
        let open = open_dir(dir)?;
        let mut spec: Spec =
            record::read(dir, record::SPEC)?.ok_or_else(|| io::Error::other("its description is missing"))?;
        if spec.confidential {
            Handed { command: spec.command, environment: spec.environment } = Handed::take(handed)?;
        }
        let others = namespaces::enter(dir, &spec.sandbox).map_err(step("the pod's namespaces cannot be entered"))?;
        let started = mark(&open)?;
        drop(others);
        Ok::<_, io::Error>((signals, open, spec, started))
    })();
    let (signals, open, spec, started) = match taken_over {
        Ok(all) => all,
        Err(error) => {
            let _ = starter.write_all(error.to_string().as_bytes());
            return 1;
        }
    };
    let _ = starter.write_all(TAKEN_OVER);
    drop(starter);
    let end = match run(dir, &spec, limits, &lock, signals) {
        Ok(Ended::With { code, out_of_memory }) => {
            Exit::Exited { code, since_millis: started.since_millis, at_millis: record::now_millis(), out_of_memory }
        }
        Ok(Ended::NotStarted(why)) => Exit::NotStarted(why),
        Err(error) => Exit::NotStarted(error.to_string()),
    };
    // Nobody is left to hear of a failure here; the process then counts as lost, which it is.
    let written = serde_json::to_vec(&end).map(|bytes| files::put_at(&open, record::EXIT, &bytes));
    i32::from(!matches!(written, Ok(Ok(()))))
}

pub(crate) fn forget_stdio() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// From here on the process counts as started.
fn mark(dir: &OwnedFd) -> io::Result<Started> {
    let pid = rustix::process::getpid().as_raw_pid();
    let start_ticks = record::start_ticks(pid).ok_or_else(|| io::Error::other("/proc does not show the supervisor"))?;
    let started = Started { pid, start_ticks, since_millis: record::now_millis() };
    let bytes = serde_json::to_vec(&started).map_err(io::Error::other)?;
    files::put_at(dir, record::PID, &bytes).map_err(io::Error::other)?;
    Ok(started)
}

/// How the first process ended.
enum Ended {
    With { code: i32, out_of_memory: bool },
    NotStarted(String),
}

fn run(dir: &Path, spec: &Spec, limits: LogLimits, lock: &OwnedFd, mut signals: Signals) -> Result<Ended, StartError> {
    let failed = || "the process could not be supervised";
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(step(failed()));
    let ((problems, report), (out, out_end), (err, err_end)) = (pipe()?, pipe()?, pipe()?);
    let logged = open_dir(dir).and_then(|dir| Output::open(dir, limits, [out, err]));
    let mut output = logged.map_err(step("the log of the process cannot be opened"))?;
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let groups = ControlGroups::make(name, &spec.sandbox.limits)?;
    sys::unshare(UnshareFlags::NEWPID).map_err(step(failed()))?;
    let first = match sys::fork().map_err(step(failed()))? {
        Forked::Parent(first) => first,
        Forked::Child => {
            drop((problems, output));
            sys::exit_now(first_process(dir, spec, &groups, lock, File::from(report), [out_end, err_end]));
        }
    };
    drop((report, out_end, err_end));
    let watched = rustix::process::pidfd_open(first, PidfdFlags::empty()).map_err(step(failed()))?;
    loop {
        let mut fds = vec![PollFd::new(&signals, PollFlags::IN), PollFd::new(&watched, PollFlags::IN)];
        fds.extend(output.poll_fds());
        let quiet = poll(&mut fds, output.patience()) == Ok(0);
        let ended = !fds[1].revents().is_empty();
        drop(fds);
        if quiet {
            output.give_in()
        } else {
            output.take()
        }
        while let Some(signal) = signals.next() {
            let passed_on = if signal == libc::SIGUSR1 { Signal::KILL } else { Signal::TERM };
            let _ = rustix::process::pidfd_send_signal(&watched, passed_on);
        }
        let told = if ended { rustix::process::waitpid(Some(first), WaitOptions::empty()) } else { Ok(None) };
        if let Some((_, status)) = told.map_err(step(failed()))? {
            output.finish();
            let mut said = String::new();
            File::from(problems).read_to_string(&mut said).map_err(step(failed()))?;
            let ended = Ended::With { code: code(status), out_of_memory: groups.ran_out_of_memory() };
            groups.remove();
            return Ok(if said.is_empty() { ended } else { Ended::NotStarted(said) });
        }
    }
}

/// The exit status as a shell tells it.
pub(crate) fn code(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    }
}

/// The life of the first process; its exit status is the command's.
fn first_process(
    dir: &Path,
    spec: &Spec,
    groups: &ControlGroups,
    lock: &OwnedFd,
    mut report: File,
    written: [OwnedFd; 2],
) -> i32 {
    let begun = begin(dir, spec, groups, &report, written).and_then(|begun| {
        // It is beside the command in its process namespace, so it keeps nothing that the command must not have.
        confine::give_up_almost_all().map_err(confine::refused)?;
        Ok(begun)
    });
    match begun {
        Ok((signals, command)) => {
            drop(report);
            // All that leads out is closed. The lock stays: it shows that something of the process still lives.
            match sys::close_others(&[signals.as_fd(), lock.as_fd()]) {
                Ok(()) => attend(signals, command).unwrap_or(255),
                Err(_) => 255,
            }
        }
        Err(error) => {
            let _ = report.write_all(error.to_string().as_bytes());
            127
        }
    }
}

fn begin(
    dir: &Path,
    spec: &Spec,
    groups: &ControlGroups,
    report: &File,
    written: [OwnedFd; 2],
) -> Result<(Signals, Pid), StartError> {
    let prepared = || "the process could not be prepared";
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(step(prepared()))?;
    if supervisor_is_gone(report) {
        return Err(StartError::Asked("its supervisor was killed".to_owned()));
    }
    let held = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD];
    let signals = Signals::hold(&held).map_err(step(prepared()))?;
    for pipe in &written {
        give(pipe, spec.sandbox.user);
    }
    groups.enter()?;
    sys::unshare(UnshareFlags::NEWCGROUP).map_err(step("no control group namespace can be made"))?;
    rustix::process::umask(rustix::fs::Mode::empty());
    root::enter(dir, spec)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let command = spawn(spec, written)?;
    Ok((signals, command))
}

/// The other end of the pipe is closed: the supervisor died before we asked to die with it.
fn supervisor_is_gone(report: &File) -> bool {
    let mut fds = [PollFd::new(report, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::ERR)
}

/// Lets the user of the process open `/dev/stdout` and `/dev/stderr`, which are the pipes. A user who does not exist
/// here is refused later, with a sentence.
pub(crate) fn give(pipe: &OwnedFd, user: u32) {
    let _ = rustix::fs::fchown(pipe, Some(rustix::fs::Uid::from_raw(user)), None);
}

fn spawn(spec: &Spec, [output, errors]: [OwnedFd; 2]) -> Result<Pid, StartError> {
    let asked = |why: String| StartError::Asked(why);
    let program = spec.command.first().ok_or_else(|| asked("the process has no command".to_owned()))?;
    let working_dir = if spec.working_dir.is_empty() { "/" } else { &spec.working_dir };
    if !Path::new(working_dir).is_dir() {
        return Err(asked(format!("the working directory {working_dir} of the process does not exist")));
    }
    let confinement = Confinement::of(&spec.sandbox)?;
    let mut command = Command::new(program);
    command.args(&spec.command[1..]).env_clear().envs(&spec.environment).current_dir(working_dir);
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    sys::before_exec(&mut command, move || confinement.apply());
    confine::close_to_others().map_err(confine::refused)?;
    match command.spawn() {
        Ok(child) => Pid::from_raw(child.id().cast_signed()).ok_or_else(|| asked("the process has no number".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(asked(format!(
            "the command {program:?} does not exist on this machine where pods look, or the interpreter it names does \
             not; pods see /usr, /bin, /sbin, /lib and /etc"
        ))),
        Err(error) => Err(step(format!("the command {program:?} cannot be executed"))(error)),
    }
}

/// Passes signals on and reaps, until the command has ended. What it left running ends with this process.
fn attend(mut signals: Signals, command: Pid) -> io::Result<i32> {
    loop {
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
        while let Some(signal) = signals.next() {
            if signal != libc::SIGCHLD {
                let _ = rustix::process::kill_process(command, Signal::TERM);
            }
        }
        while let Some((pid, status)) = rustix::process::wait(WaitOptions::NOHANG)? {
            if pid == command {
                return Ok(code(status));
            }
        }
    }
}
