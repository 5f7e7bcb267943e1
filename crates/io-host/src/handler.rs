//! Probes and hooks: a command, a connection or a request in the sandbox of a process.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use control::host::Handler;

use crate::error::HostError;
use crate::exec::{Exec, ExecCommand};
use crate::{Host, process};

/// How much of what a command or a server says is told.
const TOLD: usize = 1024;
/// How much of it is read at most.
const READ: usize = 10 << 10;

impl Host {
    /// Asks a process something. What it answers badly, or not in time, is an error with a sentence.
    pub(crate) fn handle(&self, name: &str, handler: &Handler, millis: u64) -> Result<(), HostError> {
        let until = Instant::now() + Duration::from_millis(millis);
        let unwell = |why: String| HostError::Unwell { why };
        match handler {
            Handler::Exec { command } => self.command(name, command, until).map_err(unwell),
            Handler::TcpSocket { host, port } => self.connect(name, host, *port, until).map(drop).map_err(unwell),
            Handler::HttpGet { host, port, path, headers } => {
                let socket = self.connect(name, host, *port, until).map_err(unwell)?;
                get(&socket, host, *port, path, headers, until).map_err(unwell)
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

    fn command(&self, name: &str, command: &[String], until: Instant) -> Result<(), String> {
        let asked = ExecCommand { command: command.to_vec(), ..ExecCommand::default() };
        let mut exec = self.exec(name, &asked).map_err(|error| error.to_string())?;
        let hang_up = exec.hang_up().map_err(|error| error.to_string())?;
        let streams = [exec.stdout.take(), exec.stderr.take()];
        // Both streams in threads of their own: they end with the command, and the command with this.
        let readers = streams.map(|stream| std::thread::spawn(move || stream.map_or_else(Vec::new, read_some)));
        let late = !exec.ready(until.saturating_duration_since(Instant::now())).unwrap_or(true);
        if late {
            drop(hang_up);
        }
        let ended = exec.wait();
        if late {
            return Err(format!("the command {:?} did not end in time", command.join(" ")));
        }
        match ended? {
            0 => Ok(()),
            code => {
                let said: Vec<u8> = readers.into_iter().flat_map(|one| one.join().unwrap_or_default()).collect();
                let said = text(&said);
                Err(format!("the command {:?} ended with exit code {code}{said}", command.join(" ")))
            }
        }
    }

    /// A connection from within the network of a process.
    fn connect(&self, name: &str, host: &str, port: u16, until: Instant) -> Result<TcpStream, String> {
        let address: IpAddr = match host {
            "" | "localhost" => Ipv4Addr::LOCALHOST.into(),
            host => host.parse().map_err(|_| format!("the host {host:?} of a probe must be an address"))?,
        };
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let asked = ExecCommand { connect: Some((SocketAddr::new(address, port), millis)), ..ExecCommand::default() };
        let mut exec = self.exec(name, &asked).map_err(|error| error.to_string())?;
        exec.terminal.take().map(TcpStream::from).ok_or_else(|| "no connection came".to_owned())
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
) -> Result<(), String> {
    let failed = |error: io::Error| format!("no answer over HTTP from port {port}: {error}");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let plain = |text: &str| !text.chars().any(|c| c.is_ascii_control() || c == ' ');
    if !plain(&path) || headers.iter().any(|(name, value)| !plain(name) || value.contains(['\r', '\n'])) {
        return Err("the path or a header of the probe holds a character that HTTP does not allow there".to_owned());
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
            return Err(format!("no answer over HTTP from port {port} in time"));
        }
        socket.set_read_timeout(left()).map_err(failed)?;
        match socket.read(&mut some).map_err(failed)? {
            0 => break,
            length => answer.extend_from_slice(&some[..length]),
        }
    }
    judge(&answer, port)
}

fn judge(answer: &[u8], port: u16) -> Result<(), String> {
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let mut words = line.split_ascii_whitespace();
    let http = words.next().is_some_and(|word| word.starts_with("HTTP/"));
    match words.next().and_then(|code| code.parse::<u16>().ok()).filter(|_| http) {
        Some(200..400) => Ok(()),
        Some(code) => Err(format!("port {port} answered with status {code} over HTTP")),
        None => Err(format!("what port {port} answered is not HTTP")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_its_status() {
        for good in ["HTTP/1.1 200 OK\r\n", "HTTP/1.0 204\r\nX: y\r\n\r\n", "HTTP/1.1 302 Found\n"] {
            assert_eq!(judge(good.as_bytes(), 80), Ok(()));
        }
        assert_eq!(judge(b"HTTP/1.1 503 No\r\n", 80), Err("port 80 answered with status 503 over HTTP".into()));
        for bad in [&b""[..], b"SSH-2.0 200", b"HTTP/1.1 abc", b"\xff\xff 200"] {
            assert_eq!(judge(bad, 1), Err("what port 1 answered is not HTTP".into()));
        }
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!((text(b""), text(b" a\n")), (String::new(), ": a".into()));
        assert_eq!(text("ä".repeat(5000).as_bytes()).chars().count(), TOLD + 3);
    }
}
