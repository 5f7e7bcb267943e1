//! `kubectl logs`: what a pod's process wrote.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::Time;
use bytes::Bytes;
use control::host::ProcessState;
use futures::stream;
use io_apiserver::{LogError, LogRequest, LogSource, LogStream, OpeningLog};
use io_host::{Host, LogReader, LogRecord};

/// How often a log that is followed is looked at for more.
const GLANCE: Duration = Duration::from_millis(100);

/// Reads the logs `io-host` keeps.
pub struct ProcessLogs {
    hosts: Vec<Arc<Host>>,
}

impl ProcessLogs {
    /// The logs of the processes of this machine's nodes.
    pub fn new(hosts: Vec<Arc<Host>>) -> ProcessLogs {
        ProcessLogs { hosts }
    }
}

struct Reading {
    host: Arc<Host>,
    process: String,
    reader: LogReader,
    follow: bool,
    shown: Shown,
}

impl LogSource for ProcessLogs {
    fn open(&self, request: LogRequest) -> OpeningLog {
        let hosts = self.hosts.clone();
        Box::pin(async move {
            let opening = tokio::task::spawn_blocking(move || open(&hosts, &request));
            let reading = opening.await.map_err(std::io::Error::other)??;
            let stream: LogStream = Box::pin(stream::unfold(Some(reading), next));
            Ok(stream)
        })
    }
}

/// A pod's processes are on one node; the others have none of its.
fn open(hosts: &[Arc<Host>], request: &LogRequest) -> Result<Reading, LogError> {
    let mut found = Err(LogError::NotStarted { container: request.container.clone(), pod: request.name.clone() });
    for host in hosts {
        match process_of(host, request) {
            Err(LogError::NotStarted { .. }) => {}
            other => found = other.map(|process| (host.clone(), process)),
        }
    }
    let (host, process) = found?;
    let reader = host.open_log(&process, request.tail_lines)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Reading { host, process, reader, follow: request.follow, shown: Shown::of(request, now) })
}

/// The container's last run, or the one before that. While a container waits to be started again, its last run is the
/// previous one.
fn process_of(host: &Host, request: &LogRequest) -> Result<String, LogError> {
    let processes = host.processes()?;
    let mut runs: Vec<(u32, String)> = processes
        .into_keys()
        .filter_map(|name| rules_node::ProcessName::parse(&name).map(|parsed| (parsed, name)))
        .filter(|(parsed, _)| parsed.uid == request.uid && parsed.container == request.container)
        .map(|(parsed, name)| (parsed.restart, name))
        .collect();
    runs.sort();
    let (container, pod) = (request.container.clone(), request.name.clone());
    let missing = match request.previous && !runs.is_empty() {
        true => LogError::NoPrevious { container, pod },
        false => LogError::NotStarted { container, pod },
    };
    if request.previous && !request.waits {
        runs.pop();
    }
    runs.pop().map(|(_, name)| name).ok_or(missing)
}

async fn next(reading: Option<Reading>) -> Option<(std::io::Result<Bytes>, Option<Reading>)> {
    let mut reading = reading?;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            // Asked before reading: what is written before the end is then read before we stop.
            let running = reading.follow && is_running(&reading);
            let mut text = Vec::new();
            let more = reading.reader.read(&mut |record| reading.shown.put(&record, &mut text));
            more.map(|more| (more, running, text, reading))
        });
        let (more, running, text) = match read.await.map_err(std::io::Error::other).flatten() {
            Ok((more, running, text, back)) => {
                reading = back;
                (more, running, text)
            }
            Err(error) => return Some((Err(error), None)),
        };
        match (text.is_empty(), more, running) {
            (false, ..) => return Some((Ok(text.into()), Some(reading))),
            _ if reading.shown.left == 0 => return None,
            (true, true, _) => {}
            (true, false, true) => tokio::time::sleep(GLANCE).await,
            (true, false, false) => return None,
        }
    }
}

fn is_running(reading: &Reading) -> bool {
    let processes = reading.host.processes().unwrap_or_default();
    matches!(processes.get(&reading.process), Some(ProcessState::Running { .. }))
}

/// What of a log is shown, and how.
struct Shown {
    timestamps: bool,
    /// Nothing that is older.
    since: String,
    /// So many bytes may still come.
    left: u64,
    /// What was shown last was the end of a line.
    at_line_start: bool,
}

impl Shown {
    fn of(request: &LogRequest, now: Duration) -> Shown {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let ago = request.since_seconds.map(|seconds| now.saturating_sub(seconds.saturating_mul(1000)));
        let since = request.since_millis.or(ago).map(|millis| Time::micro_from_unix_millis(millis).0);
        Shown {
            timestamps: request.timestamps,
            // Without what ends it the text is before every time of the same moment.
            since: since.unwrap_or_default().trim_end_matches('Z').to_owned(),
            left: request.limit_bytes.unwrap_or(u64::MAX),
            at_line_start: true,
        }
    }

    fn put(&mut self, record: &LogRecord<'_>, text: &mut Vec<u8>) {
        if record.time < self.since.as_str() {
            return;
        }
        if self.timestamps && self.at_line_start {
            self.add(record.time.as_bytes(), text);
            self.add(b" ", text);
        }
        self.add(record.text, text);
        if record.whole {
            self.add(b"\n", text);
        }
        self.at_line_start = record.whole;
    }

    fn add(&mut self, bytes: &[u8], text: &mut Vec<u8>) {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        text.extend_from_slice(&bytes[..room]);
        self.left -= room as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(request: &LogRequest) -> String {
        // 2026-11-18T00:09:50Z
        let mut shown = Shown::of(request, Duration::from_secs(1_794_960_590));
        let mut text = Vec::new();
        let records = [
            ("41.000000001", true, "old"),
            ("45.500000000", false, "be"),
            ("45.500000009", true, "gun"),
            ("49.0", true, "new"),
        ];
        for (second, whole, line) in records {
            let time = format!("2026-11-18T00:09:{second:0<12}Z");
            shown.put(&LogRecord { time: &time, stderr: false, whole, text: line.as_bytes() }, &mut text);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn times_parts_and_limits_are_honoured() {
        let plain = LogRequest::default();
        assert_eq!(show(&plain), "old\nbegun\nnew\n");
        assert_eq!(show(&LogRequest { limit_bytes: Some(6), ..plain.clone() }), "old\nbe");
        assert_eq!(show(&LogRequest { since_seconds: Some(5), ..plain.clone() }), "begun\nnew\n");
        assert_eq!(show(&LogRequest { since_seconds: Some(4), ..plain.clone() }), "new\n");
        let moment = Time("2026-11-18T00:09:45.5Z".into()).unix_millis();
        assert_eq!(show(&LogRequest { since_millis: moment, ..plain.clone() }), "begun\nnew\n");
        assert_eq!(
            show(&LogRequest { timestamps: true, since_seconds: Some(5), ..plain }),
            "2026-11-18T00:09:45.500000000Z begun\n2026-11-18T00:09:49.000000000Z new\n"
        );
    }
}
