//! Probes and hooks: a command, a connection or a request in the sandbox of a process.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use control::host::Handler;

use crate::error::HostError;
use crate::exec::{Exec, ExecCommand, NoExitStatus};
use crate::{Host, process};

/// How much of what a command or a server says is told.
const TOLD: usize = 1024;
/// How much of it is read at most.
const READ: usize = 10 << 10;

/// What is bad about the answer of a process to a probe or a hook.
#[derive(Debug, thiserror::Error)]
enum BadAnswer {
    #[error("the command {command:?} did not end in time")]
    CommandLate { command: String },
    #[error("the command {command:?} ended with exit code {code}{said}")]
    CommandFailed { command: String, code: i32, said: String },
    #[error(transparent)]
    NotRun(#[from] HostError),
    #[error(transparent)]
    Ended(#[from] NoExitStatus),
    #[error(transparent)]
    Os(#[from] io::Error),
    #[error("the host {host:?} of a probe must be an address")]
    NoAddress { host: String },
    #[error("no connection came")]
    NoConnection,
    #[error("the path or a header of the probe holds a character that HTTP does not allow there")]
    Unspeakable,
    #[error("no answer over HTTP from port {port} in time")]
    HttpLate { port: u16 },
    #[error("no answer over HTTP from port {port}: {source}")]
    NoHttp { port: u16, source: io::Error },
    #[error("port {port} answered with status {code} over HTTP")]
    Status { port: u16, code: u16 },
    #[error("what port {port} answered is not HTTP")]
    NotHttp { port: u16 },
}

impl From<BadAnswer> for HostError {
    fn from(bad: BadAnswer) -> HostError {
        HostError::Unwell { why: bad.to_string() }
    }
}

impl Host {
    /// Asks a process something. What it answers badly, or not in time, is an error with a sentence.
    pub(crate) fn handle(&self, name: &str, handler: &Handler, millis: u64) -> Result<(), HostError> {
        let until = Instant::now() + Duration::from_millis(millis);
        match handler {
            Handler::Exec { command } => Ok(self.command(name, command, until)?),
            Handler::TcpSocket { host, port } => Ok(self.connect(name, host, *port, until).map(drop)?),
            Handler::HttpGet { host, port, path, headers } => {
                let socket = self.connect(name, host, *port, until)?;
                Ok(get(&socket, host, *port, path, headers, until)?)
            }
            Handler::Sleep { millis: time } => {
                // It sleeps as long as the process lives.
                let until = until.min(Instant::now() + Duration::from_millis(*time));
                while Instant::now() < until && self.is_running(name) {
                    std::thread::sleep(Duration::from_millis(50).min(until.saturating_duration_since(Instant::now())));
                }
                Ok(())
            }
        }
    }

    fn is_running(&self, name: &str) -> bool {
        crate::record::is_alive(&self.process_dir(name)).unwrap_or(false)
    }

    fn command(&self, name: &str, command: &[String], until: Instant) -> Result<(), BadAnswer> {
        let asked = ExecCommand { command: command.to_vec(), ..ExecCommand::default() };
        let mut exec = self.exec(name, &asked)?;
        let hang_up = exec.hang_up()?;
        let streams = [exec.stdout.take(), exec.stderr.take()];
        // Both streams in threads of their own: they end with the command, and the command with this.
        let readers = streams.map(|stream| std::thread::spawn(move || stream.map_or_else(Vec::new, read_some)));
        let late = !exec.ready(until.saturating_duration_since(Instant::now())).unwrap_or(true);
        if late {
            drop(hang_up);
        }
        let ended = exec.wait();
        if late {
            return Err(BadAnswer::CommandLate { command: command.join(" ") });
        }
        match ended? {
            0 => Ok(()),
            code => {
                let said: Vec<u8> = readers.into_iter().flat_map(|one| one.join().unwrap_or_default()).collect();
                Err(BadAnswer::CommandFailed { command: command.join(" "), code, said: text(&said) })
            }
        }
    }

    /// A connection from within the network of a process.
    fn connect(&self, name: &str, host: &str, port: u16, until: Instant) -> Result<TcpStream, BadAnswer> {
        let address: IpAddr = match host {
            "" | "localhost" => Ipv4Addr::LOCALHOST.into(),
            host => host.parse().map_err(|_| BadAnswer::NoAddress { host: host.to_owned() })?,
        };
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let asked = ExecCommand { connect: Some((SocketAddr::new(address, port), millis)), ..ExecCommand::default() };
        let mut exec = self.exec(name, &asked)?;
        exec.terminal.take().map(TcpStream::from).ok_or(BadAnswer::NoConnection)
    }
}

impl Exec {
    /// Waits until the command has ended. `false`: not in this time.
    pub(crate) fn ready(&self, time: Duration) -> io::Result<bool> {
        process::ready(self.control(), time)
    }
}

fn read_some(stream: OwnedFd) -> Vec<u8> {
    let mut said = Vec::new();
    let mut stream = File::from(stream);
    let _ = (&mut stream).take(READ as u64).read_to_end(&mut said);
    // The rest is read and thrown away, so that nobody waits to be heard.
    let _ = io::copy(&mut stream, &mut io::sink());
    said
}

/// What was said, as the end of a sentence.
fn text(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let said = said.trim();
    match said.char_indices().nth(TOLD) {
        _ if said.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", &said[..end]),
        None => format!(": {said}"),
    }
}

fn get(
    mut socket: &TcpStream,
    host: &str,
    port: u16,
    path: &str,
    headers: &[(String, String)],
    until: Instant,
) -> Result<(), BadAnswer> {
    let failed = |source: io::Error| BadAnswer::NoHttp { port, source };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let plain = |text: &str| !text.chars().any(|c| c.is_ascii_control() || c == ' ');
    if !plain(&path) || headers.iter().any(|(name, value)| !plain(name) || value.contains(['\r', '\n'])) {
        return Err(BadAnswer::Unspeakable);
    }
    let named = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let mut request = format!("GET {path} HTTP/1.1\r\n");
    let host = if host.is_empty() { "localhost" } else { host };
    let usual =
        [("Host", format!("{host}:{port}")), ("User-Agent", "kube-probe/1.32".into()), ("Accept", "*/*".into())];
    for (name, value) in usual.iter().filter(|(name, _)| !named(name)) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("Connection: close\r\n\r\n");
    let left = || Some(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    socket.set_write_timeout(left()).and_then(|()| socket.write_all(request.as_bytes())).map_err(failed)?;
    let (mut answer, mut some) = (Vec::new(), [0; 512]);
    while !answer.contains(&b'\n') && answer.len() < READ {
        if Instant::now() >= until {
            return Err(BadAnswer::HttpLate { port });
        }
        socket.set_read_timeout(left()).map_err(failed)?;
        match socket.read(&mut some).map_err(failed)? {
            0 => break,
            length => answer.extend_from_slice(&some[..length]),
        }
    }
    judge(&answer, port)
}

fn judge(answer: &[u8], port: u16) -> Result<(), BadAnswer> {
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let mut words = line.split_ascii_whitespace();
    let http = words.next().is_some_and(|word| word.starts_with("HTTP/"));
    match words.next().and_then(|code| code.parse::<u16>().ok()).filter(|_| http) {
        Some(200..400) => Ok(()),
        Some(code) => Err(BadAnswer::Status { port, code }),
        None => Err(BadAnswer::NotHttp { port }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_its_status() {
        for good in ["HTTP/1.1 200 OK\r\n", "HTTP/1.0 204\r\nX: y\r\n\r\n", "HTTP/1.1 302 Found\n"] {
            assert!(judge(good.as_bytes(), 80).is_ok());
        }
        let refused = judge(b"HTTP/1.1 503 No\r\n", 80).unwrap_err();
        assert_eq!(refused.to_string(), "port 80 answered with status 503 over HTTP");
        for bad in [&b""[..], b"SSH-2.0 200", b"HTTP/1.1 abc", b"\xff\xff 200"] {
            assert_eq!(judge(bad, 1).unwrap_err().to_string(), "what port 1 answered is not HTTP");
        }
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!((text(b""), text(b" a\n")), (String::new(), ": a".into()));
        assert_eq!(text("ä".repeat(5000).as_bytes()).chars().count(), TOLD + 3);
    }
}
