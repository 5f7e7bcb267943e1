//! `kubectl logs`: what a pod's process wrote.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use control::host::ProcessState;
use futures::stream;
use io_apiserver::{LogError, LogRequest, LogSource, LogStream, OpeningLog};
use io_host::Host;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;
/// How often a log that is followed is looked at for more.
const GLANCE: Duration = Duration::from_millis(100);

/// Reads the logs `io-host` keeps.
pub struct ProcessLogs {
    host: Arc<Host>,
}

impl ProcessLogs {
    /// The logs of this machine's processes.
    pub fn new(host: Arc<Host>) -> ProcessLogs {
        ProcessLogs { host }
    }
}

struct Reading {
    host: Arc<Host>,
    process: String,
    file: File,
    follow: bool,
    left: u64,
}

impl LogSource for ProcessLogs {
    fn open(&self, request: LogRequest) -> OpeningLog {
        let host = self.host.clone();
        Box::pin(async move {
            let Some(process) = process_of(&host, &request) else {
                return Err(LogError::NotStarted(request.container));
            };
            let path = host.process_log_path(&process);
            let mut file = File::open(&path).await?;
            if let Some(lines) = request.tail_lines {
                let start = start_of_last_lines(path, lines).await?;
                file.seek(SeekFrom::Start(start)).await?;
            }
            let left = request.limit_bytes.unwrap_or(u64::MAX);
            let reading = Reading { host, process, file, follow: request.follow, left };
            let stream: LogStream = Box::pin(stream::unfold(reading, next));
            Ok(stream)
        })
    }
}

/// The container's last run, or the one before that.
fn process_of(host: &Host, request: &LogRequest) -> Option<String> {
    let processes = host.processes().unwrap_or_default();
    let mut runs: Vec<(u32, String)> = processes
        .into_keys()
        .filter_map(|name| rules_node::ProcessName::parse(&name).map(|parsed| (parsed, name)))
        .filter(|(parsed, _)| parsed.uid == request.uid && parsed.container == request.container)
        .map(|(parsed, name)| (parsed.restart, name))
        .collect();
    runs.sort();
    let back = if request.previous { 2 } else { 1 };
    runs.len().checked_sub(back).map(|index| runs.swap_remove(index).1)
}

async fn next(mut reading: Reading) -> Option<(std::io::Result<Bytes>, Reading)> {
    loop {
        if reading.left == 0 {
            return None;
        }
        // Asked before reading: what is written before the end is then read before we stop.
        let running = reading.follow && is_running(&reading);
        let mut buffer = vec![0; CHUNK.min(usize::try_from(reading.left).unwrap_or(CHUNK))];
        match reading.file.read(&mut buffer).await {
            Ok(0) if running => tokio::time::sleep(GLANCE).await,
            Ok(0) => return None,
            Ok(count) => {
                buffer.truncate(count);
                reading.left -= count as u64;
                return Some((Ok(buffer.into()), reading));
            }
            Err(error) => {
                reading.left = 0;
                return Some((Err(error), reading));
            }
        }
    }
}

fn is_running(reading: &Reading) -> bool {
    let processes = reading.host.processes().unwrap_or_default();
    matches!(processes.get(&reading.process), Some(ProcessState::Running { .. }))
}

/// Where the last so many lines begin, found from the end so that a large log costs no more than its tail.
async fn start_of_last_lines(path: PathBuf, lines: u64) -> std::io::Result<u64> {
    let mut file = File::open(path).await?;
    let mut end = file.metadata().await?.len();
    let mut wanted = lines;
    let mut first = true;
    while end > 0 {
        let size = (CHUNK as u64).min(end);
        file.seek(SeekFrom::Start(end - size)).await?;
        let mut buffer = vec![0; CHUNK.min(usize::try_from(size).unwrap_or(CHUNK))];
        file.read_exact(&mut buffer).await?;
        for (index, byte) in buffer.iter().enumerate().rev() {
            // The newline that ends the last line begins no further one.
            if *byte == b'\n' && !std::mem::take(&mut first) {
                wanted = wanted.saturating_sub(1);
                if wanted == 0 {
                    return Ok(end - size + index as u64 + 1);
                }
            }
            first = false;
        }
        end -= size;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_found_from_the_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut text = String::new();
        for line in 0..20_000 {
            text.push_str(&format!("line {line}\n"));
        }
        std::fs::write(file.path(), &text).unwrap();
        let start = start_of_last_lines(file.path().into(), 3).await.unwrap();
        assert_eq!(&text[usize::try_from(start).unwrap()..], "line 19997\nline 19998\nline 19999\n");
        let all = start_of_last_lines(file.path().into(), 1_000_000).await.unwrap();
        assert_eq!(all, 0);
    }
}
