//! A program in its own process group, with its output in a file, that never outlives its owner.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

const TAIL_LINES: usize = 30;
const TAIL_BYTES: u64 = 16 * 1024;
const ONLY_BELOW: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

/// A running program. Dropping it kills its whole process group and waits for the end.
pub struct PeerProcess {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl fmt::Debug for PeerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.child.id())
    }
}

impl PeerProcess {
    /// Starts the program with nothing but `HOME` and `PATH` in its environment, its output going to
    /// `<directory>/<name>.log`.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        args: &[A],
        directory: &Path,
    ) -> Result<PeerProcess, Error> {
        let log = directory.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(Error::io(format!("write {}", log.display())))?;
        let errors = output.try_clone().map_err(Error::io(format!("write {}", log.display())))?;
        // The parent-death signal is set by setpriv because setting it between fork and exec needs unsafe code. It
        // does not come for a parent that died before it was set, so the shell looks whose child it is by then.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "sh", "-c", ONLY_BELOW]).arg(std::process::id().to_string());
        command.arg(program).args(args);
        command.env_clear().env("HOME", directory).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(directory).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let child = spawn(command).map_err(|source| refused(name, source))?;
        Ok(PeerProcess { name: name.to_string(), child, log, ended: None })
    }

    /// What it was called at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process number, which is its group's too.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with what it wrote.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines it wrote.
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|error| format!("(its log cannot be read: {error})"))
    }

    /// Is it running still? If not, the error says how it ended and what it said last.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => {
                Err(Error::Ended { program: self.name.clone(), status: status.to_string(), log: self.log_tail() })
            }
        }
    }

    /// Asks it to end (SIGTERM) and waits; kills it when it takes longer than `patience`.
    pub fn terminate(&mut self, patience: Duration) -> Result<ExitStatus, Error> {
        self.signal_group("TERM");
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.kill()
    }

    /// Ends it and everything it started, at once (SIGKILL).
    pub fn kill(&mut self) -> Result<ExitStatus, Error> {
        self.signal_group("KILL");
        let status = match self.ended {
            Some(status) => status,
            None => self.child.wait().map_err(Error::io(format!("wait for the end of {}", self.name)))?,
        };
        self.ended = Some(status);
        Ok(status)
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            // Once the leader is waited for, its number may be given to others: what is left of the group goes first.
            if is_zombie(self.child.id()) {
                self.signal_group("KILL");
            }
            self.ended = self.child.try_wait().map_err(Error::io(format!("look after {}", self.name)))?;
        }
        Ok(self.ended)
    }

    /// Signals the group, as long as its leader has not been waited for and so its number is ours.
    pub(crate) fn signal_group(&mut self, signal: &str) {
        if self.ended.is_some() {
            return;
        }
        let group = self.child.id();
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} -{group}")]).stderr(Stdio::null()).status();
        if signal == "KILL" && !sent.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn refused(name: &str, source: io::Error) -> Error {
    let doing = if source.kind() == io::ErrorKind::NotFound {
        format!("start {name} through setpriv; install it with: apt-get install util-linux")
    } else {
        format!("start {name}")
    };
    Error::Io { doing, source }
}

/// Has the process ended without having been waited for?
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

type Job = (Command, Sender<io::Result<Child>>);

/// Starts the command from a thread that lives as long as this process. The parent-death signal comes when the
/// *thread* that started a program ends, and a test's thread ends long before a control plane that several tests share.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = channel();
        thread::spawn(move || spawn_all(queue));
        Mutex::new(jobs)
    });
    let (answer, answered) = channel();
    let gone = |_| io::Error::other("the thread that starts programs is gone");
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).map_err(|_| gone(()))?;
    answered.recv().map_err(|_| gone(()))?
}

fn spawn_all(queue: Receiver<Job>) {
    for (mut command, answer) in queue {
        if let Err(unheard) = answer.send(command.spawn())
            && let Ok(mut child) = unheard.0
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An argument list of mixed strings and paths.
pub(crate) fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    fn shell(script: &str, scratch: &Scratch) -> PeerProcess {
        PeerProcess::start("script", Path::new("/bin/sh"), &["-c", script], scratch.path()).unwrap()
    }

    fn alive(pid: u32) -> bool {
        Path::new("/proc").join(pid.to_string()).exists() && !is_zombie(pid)
    }

    fn wait_for(mut happened: impl FnMut() -> bool) {
        while !happened() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number that the script wrote to the file `child`.
    fn child_of(scratch: &Scratch) -> u32 {
        let written = || fs::read_to_string(scratch.path().join("child")).ok()?.trim().parse().ok();
        wait_for(|| written().is_some());
        written().unwrap()
    }

    #[test]
    fn a_program_that_ends_tells_its_status_and_last_words() {
        let scratch = Scratch::new("ends").unwrap();
        let mut process = shell("seq 1 100; echo no such flag >&2; exit 3", &scratch);
        wait_for(|| process.check().is_err());
        let said = process.check().unwrap_err().to_string();
        assert!(said.contains("script ended by itself (exit status: 3)"), "{said}");
        assert!(said.ends_with("no such flag") && said.contains("\n100\n") && !said.contains("\n10\n"), "{said}");
    }

    #[test]
    fn dropping_kills_what_the_program_started_too() {
        let scratch = Scratch::new("group").unwrap();
        let process = shell("sleep 1000 & echo $! > child; wait", &scratch);
        let (leader, child) = (process.id(), child_of(&scratch));
        assert!(alive(leader) && alive(child));
        drop(process);
        wait_for(|| !alive(leader) && !alive(child));
    }

    #[test]
    fn a_leader_that_ended_leaves_no_follower_behind() {
        let scratch = Scratch::new("orphan").unwrap();
        let mut process = shell("sleep 1000 & echo $! > child", &scratch);
        let child = child_of(&scratch);
        wait_for(|| process.check().is_err());
        wait_for(|| !alive(child));
    }

    #[test]
    fn a_program_outlives_the_thread_that_asked_for_it() {
        let scratch = Scratch::new("thread").unwrap();
        let mut process = thread::scope(|scope| scope.spawn(|| shell("exec sleep 1000", &scratch)).join().unwrap());
        thread::sleep(Duration::from_millis(50));
        assert!(process.check().is_ok());
    }

    #[test]
    fn a_program_does_not_start_below_a_parent_that_is_gone() {
        let starts = |parent: u32| {
            let status = Command::new("sh").args(["-c", ONLY_BELOW, &parent.to_string(), "true"]).status();
            status.unwrap().success()
        };
        assert!(starts(std::process::id()));
        assert!(!starts(1));
    }

    #[test]
    fn a_program_that_heeds_no_request_is_killed() {
        let scratch = Scratch::new("stubborn").unwrap();
        let mut process = shell("trap '' TERM; echo $$ > child; while :; do sleep 0.01; done", &scratch);
        child_of(&scratch);
        let status = process.terminate(Duration::from_millis(100)).unwrap();
        assert_eq!(status.to_string(), "signal: 9 (SIGKILL)");
    }

    #[test]
    fn the_environment_of_the_test_is_not_handed_on() {
        let scratch = Scratch::new("environment").unwrap();
        let mut process = shell("env", &scratch);
        wait_for(|| process.check().is_err());
        assert!(!process.log_tail().contains("CARGO"), "{}", process.log_tail());
    }
}
