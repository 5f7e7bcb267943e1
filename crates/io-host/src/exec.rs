//! A further command in a container that runs, seen from outside.
//!
//! A helper, `longshore process-shim exec`, goes into everything the container is in ([`crate::join`]) and starts the
//! command there. A socket leads to it: the request goes one way, a terminal and how the command ended come back. When
//! the socket closes, the command is made to end, so that none outlives who asked for it.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketFlags, SocketType,
};
use serde::{Deserialize, Serialize};

use crate::error::{HostError, os};
use crate::{Host, SHIM_WORD, process, record, sys};

/// The word after [`SHIM_WORD`] that makes the program such a helper.
pub(crate) const EXEC_WORD: &str = "exec";
/// How long the helper may take until it has a terminal.
const TERMINAL_PATIENCE: Duration = Duration::from_secs(30);
/// The longest message between the two.
const LONGEST: usize = 128 << 10;

/// What is to be run in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// It reads what is sent to it; otherwise its input is at its end.
    pub stdin: bool,
    /// It has a terminal in place of three streams.
    pub terminal: bool,
    /// Nothing is run: the helper only connects, from within, and hands the connection over. It may take so many
    /// milliseconds.
    pub connect: Option<(SocketAddr, u64)>,
}

impl ExecCommand {
    /// One descriptor comes back, a terminal or a connection, in place of three streams.
    fn hands_over(&self) -> bool {
        self.terminal || self.connect.is_some()
    }
}

/// What the helper says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// The terminal, or the connection, comes with this.
    Terminal,
    /// The command could not be started.
    Failed(String),
    /// The command has ended.
    Ended(i32),
}

/// A command that runs in a container.
#[derive(Debug)]
pub struct Exec {
    control: OwnedFd,
    helper: Child,
    /// Where its input is written to.
    pub stdin: Option<OwnedFd>,
    /// Where its output is read from.
    pub stdout: Option<OwnedFd>,
    /// Where its errors are read from.
    pub stderr: Option<OwnedFd>,
    /// The terminal, in place of the three.
    pub terminal: Option<OwnedFd>,
}

/// Why nobody knows with what status a command ended.
#[derive(Debug, thiserror::Error)]
pub enum NoExitStatus {
    /// It could not be started, in the words of who tried.
    #[error("{0}")]
    NotStarted(String),
    /// It was ended before it ended itself.
    #[error("the command was ended")]
    Ended,
    /// What was said of its end could not be read.
    #[error("nobody heard how the command ended: {0}")]
    Unheard(#[from] io::Error),
}

/// Ends a command when it is dropped.
#[derive(Debug)]
pub struct HangUp(OwnedFd);

impl Drop for HangUp {
    fn drop(&mut self) {
        // Closed already is what is wanted.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

impl Exec {
    /// Waits until the command has ended and answers its exit status.
    pub fn wait(mut self) -> Result<i32, NoExitStatus> {
        let said = receive(self.control.as_fd());
        drop(self.control);
        let _ = self.helper.wait();
        match said? {
            (Some(Said::Ended(code)), _) => Ok(code),
            (Some(Said::Failed(why)), _) => Err(NoExitStatus::NotStarted(why)),
            (Some(Said::Terminal) | None, _) => Err(NoExitStatus::Ended),
        }
    }

    /// The terminal or the connection, once the helper has it.
    fn handed_over(&self, name: &str) -> Result<OwnedFd, HostError> {
        let unwell = |why: &str| HostError::Unwell { why: why.to_owned() };
        if !process::ready(&self.control, TERMINAL_PATIENCE).map_err(|error| broken(name, error))? {
            return Err(unwell("neither a terminal nor a connection came in time"));
        }
        match receive(self.control.as_fd()).map_err(|error| broken(name, error))? {
            (Some(Said::Terminal), Some(sent)) => Ok(sent),
            (Some(Said::Failed(why)), _) => Err(unwell(&why)),
            _others => Err(unwell("neither a terminal nor a connection came")),
        }
    }

    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// What ends the command when nobody wants it any more.
    pub fn hang_up(&self) -> io::Result<HangUp> {
        Ok(HangUp(self.control.try_clone()?))
    }
}

impl Host {
    /// Starts a command in a process that runs.
    pub fn exec(&self, name: &str, request: &ExecCommand) -> Result<Exec, HostError> {
        let refused = |why: &str| HostError::Unwell { why: format!("nothing can be run in process {name}: {why}") };
        process::check_name(name)?;
        if request.connect.is_none() && request.command.first().is_none_or(String::is_empty) {
            return Err(refused("no command was given"));
        }
        if request.command.iter().any(|word| word.contains('\0')) {
            return Err(refused("the command holds a NUL byte"));
        }
        let dir = self.process_dir(name);
        if !record::is_alive(&dir).map_err(|error| os("look at process", name, error, false))? {
            return Err(refused("it is not running"));
        }
        let mut exec = self.begin(&dir, request).map_err(|error| broken(name, error))?;
        if request.hands_over() {
            exec.terminal = Some(exec.handed_over(name)?);
        }
        Ok(exec)
    }

    fn begin(&self, dir: &std::path::Path, request: &ExecCommand) -> io::Result<Exec> {
        let (control, far) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = self.shim.command();
        command.arg(SHIM_WORD).arg(EXEC_WORD).arg(dir).arg(far.as_raw_fd().to_string()).current_dir("/").env_clear();
        let piped = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        let streams = !request.hands_over();
        command.stdin(piped(streams && request.stdin)).stdout(piped(streams)).stderr(piped(streams));
        // Only the helper keeps its end over `exec`, whatever else this process starts at the same time.
        sys::before_exec(&mut command, move || Ok(rustix::io::fcntl_setfd(&far, FdFlags::empty())?));
        let mut helper = command.spawn()?;
        drop(command);
        let (stdin, stdout, stderr) = (helper.stdin.take(), helper.stdout.take(), helper.stderr.take());
        let exec = Exec {
            control,
            helper,
            stdin: stdin.map(OwnedFd::from),
            stdout: stdout.map(OwnedFd::from),
            stderr: stderr.map(OwnedFd::from),
            terminal: None,
        };
        let asked = serde_json::to_vec(request).map_err(io::Error::other)?;
        rustix::net::send(&exec.control, &asked, SendFlags::NOSIGNAL)?;
        Ok(exec)
    }
}

/// What the machine refused when a command was to run in a process.
fn broken(name: &str, error: io::Error) -> HostError {
    os("run a command in process", name, error, true)
}

/// The request, at the helper's end.
pub(crate) fn request(control: BorrowedFd<'_>) -> io::Result<ExecCommand> {
    let mut bytes = vec![0; LONGEST];
    let (length, _) = rustix::net::recv(control, bytes.as_mut_slice(), RecvFlags::empty())?;
    serde_json::from_slice(&bytes[..length]).map_err(io::Error::other)
}

/// Tells who asked.
pub(crate) fn say(control: BorrowedFd<'_>, said: &Said, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = serde_json::to_vec(said).map_err(io::Error::other)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    let sent = with.map_or_else(Vec::new, |fd| vec![fd]);
    if !sent.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(&sent)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    rustix::net::sendmsg(control, &[io::IoSlice::new(&bytes)], &mut extra, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next message; none when the other end is closed.
fn receive(control: BorrowedFd<'_>) -> io::Result<(Option<Said>, Option<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut extra = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(control, &mut [io::IoSliceMut::new(&mut bytes)], &mut extra, flags) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?,
        }
    };
    let mut sent = None;
    for message in extra.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            sent = fds.last();
        }
    }
    if got.bytes == 0 {
        return Ok((None, None));
    }
    Ok((Some(serde_json::from_slice(&bytes[..got.bytes]).map_err(io::Error::other)?), sent))
}
