//! `kubectl exec` and `kubectl cp`: commands in the containers of this machine.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use control::host::ProcessState;
use io_apiserver::{ExecError, ExecRequest, ExecSession, ExecSource, OpeningExec};
use io_host::{Exec, Host};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::Winsize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// Bytes read at once.
const CHUNK: usize = 32 << 10;
/// How many pieces wait on their way.
const QUEUE: usize = 8;
/// What a terminal takes for the end of its input.
const END_OF_TRANSMISSION: u8 = 4;
/// How often a terminal that shows nothing is left to see whether anybody still looks at it.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Runs commands in the processes that `io-host` keeps.
pub struct ProcessExec {
    hosts: Vec<Arc<Host>>,
}

impl ProcessExec {
    /// For the processes of this machine's nodes.
    pub fn new(hosts: Vec<Arc<Host>>) -> ProcessExec {
        ProcessExec { hosts }
    }
}

impl ExecSource for ProcessExec {
    fn exec(&self, request: ExecRequest) -> OpeningExec {
        let hosts = self.hosts.clone();
        Box::pin(async move {
            let begun = tokio::task::spawn_blocking(move || begin(&hosts, &request));
            let exec = begun.await.map_err(failed)??;
            session(exec).map_err(|error| failed(format!("the command cannot be spoken to: {error}")))
        })
    }
}

fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExecError {
    ExecError::Failed(why.into())
}

/// Starts the command in the container's latest run.
fn begin(hosts: &[Arc<Host>], request: &ExecRequest) -> Result<Exec, ExecError> {
    let mut ours = Vec::new();
    for host in hosts {
        let unread = |error| failed(format!("the state of processes cannot be read: {error}"));
        let processes = host.processes().map_err(unread)?;
        let runs = processes.into_iter().filter(|(_, state)| matches!(state, ProcessState::Running { .. }));
        let runs = runs.filter_map(|(name, _)| rules_node::ProcessName::parse(&name).map(|parsed| (parsed, name)));
        let of_pod = runs.filter(|(parsed, _)| parsed.uid == request.uid && parsed.container == request.container);
        ours.extend(of_pod.map(|(parsed, name)| (parsed.restart, name, host)));
    }
    let Some((_, name, host)) = ours.into_iter().max_by_key(|(restart, ..)| *restart) else {
        return Err(ExecError::NotRunning { container: request.container.clone(), pod: request.name.clone() });
    };
    let asked = io_host::ExecCommand {
        command: request.command.clone(),
        stdin: request.stdin,
        terminal: request.tty,
        connect: None,
    };
    host.exec(&name, &asked).map_err(failed)
}

/// Carries streams to and from the command, until the session is dropped.
fn session(mut exec: Exec) -> io::Result<ExecSession> {
    let hang_up = exec.hang_up()?;
    let (stdin, input) = mpsc::channel(QUEUE);
    let (output, stdout) = mpsc::channel(QUEUE);
    let (errors, stderr) = mpsc::channel(QUEUE);
    let (size, sizes) = mpsc::channel(QUEUE);
    let (tell, ended) = oneshot::channel();
    let has_input = exec.stdin.is_some() || exec.terminal.is_some();
    if let Some(fd) = exec.stdin.take() {
        tokio::spawn(write(pipe::Sender::from_owned_fd(fd)?, input));
    } else if let Some(terminal) = &exec.terminal {
        let terminal = terminal.try_clone()?;
        tokio::task::spawn_blocking(move || type_in(&terminal, input));
    }
    if let Some(fd) = exec.stdout.take() {
        tokio::spawn(read(pipe::Receiver::from_owned_fd(fd)?, output));
    } else if let Some(terminal) = &exec.terminal {
        let terminal = terminal.try_clone()?;
        tokio::task::spawn_blocking(move || show(&terminal, &output));
    }
    if let Some(fd) = exec.stderr.take() {
        tokio::spawn(read(pipe::Receiver::from_owned_fd(fd)?, errors));
    }
    if let Some(terminal) = exec.terminal.take() {
        tokio::spawn(resize(terminal, sizes));
    }
    tokio::spawn(async move {
        let mut tell = tell;
        let waiting = tokio::task::spawn_blocking(move || exec.wait());
        tokio::select! {
            // Nobody wants it any more: it is ended, and its end is still waited for in its thread.
            () = tell.closed() => drop(hang_up),
            ended = waiting => {
                let ended = ended.map_err(failed).and_then(|ended| ended.map_err(failed));
                drop(tell.send(ended));
            }
        }
    });
    Ok(ExecSession { stdin: has_input.then_some(stdin), stdout, stderr, size, ended })
}

/// Reads until the end, or until nobody listens.
async fn read(mut from: pipe::Receiver, to: mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let got = tokio::select! {
            got = from.read(&mut buffer) => got,
            () = to.closed() => return,
        };
        match got {
            Ok(0) | Err(_) => return,
            Ok(length) => {
                if to.send(Bytes::copy_from_slice(&buffer[..length])).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Writes all that comes, and closes the command's input at the end of it.
async fn write(mut to: pipe::Sender, mut from: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = from.recv().await {
        // A command that reads no more is none that fails.
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// The same for a terminal, whose other end is closed when it says so with an error. In a thread, because a terminal
/// can be waited for in no other way here.
fn show(from: &OwnedFd, to: &mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; CHUNK];
    while !to.is_closed() {
        let mut fds = [PollFd::new(from, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&GLANCE)), Ok(0) | Err(Errno::INTR)) {
            continue;
        }
        match rustix::io::read(from, &mut buffer) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return,
            Ok(length) => {
                if to.blocking_send(Bytes::copy_from_slice(&buffer[..length])).is_err() {
                    return;
                }
            }
        }
    }
}

fn type_in(to: &OwnedFd, mut from: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = from.blocking_recv() {
        if write_all(to, &bytes).is_err() {
            return;
        }
    }
    let _ = write_all(to, &[END_OF_TRANSMISSION]);
}

fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

async fn resize(terminal: OwnedFd, mut sizes: mpsc::Receiver<(u16, u16)>) {
    while let Some((columns, rows)) = sizes.recv().await {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        // A terminal that is gone has no size.
        let _ = rustix::termios::tcsetwinsize(&terminal, size);
    }
}
