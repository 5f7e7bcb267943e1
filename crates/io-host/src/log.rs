//! What a process writes, kept in a bounded number of files of bounded size.
//!
//! Standard output and standard error are pipes that the supervisor empties. Each line becomes a record in the format
//! that container runtimes write for kubelet: `TIME stdout F line`, or `P` for a part of a line. Files are called
//! `log.0`, `log.1` and so on; a new one is begun when the last is full, and the oldest goes when there are too many.
//! So nothing is ever renamed, and who reads along sees what comes next by its number.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// A log file's name is this and its number.
pub(crate) const PREFIX: &str = "log.";
/// The name before logs had several files.
pub(crate) const OLD_NAME: &str = "log";
/// The longest part of a line in one record, as container runtimes have it.
const LONGEST: usize = 16 << 10;
/// How much is written at once.
const BATCH: usize = 32 << 10;
/// How long a line without an end waits for it before it is written as it is.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How much is kept of what a process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// The largest size of one file.
    pub bytes: u64,
    /// The largest number of files.
    pub files: u32,
}

impl Default for LogLimits {
    /// As kubelet's `containerLogMaxSize` and `containerLogMaxFiles`.
    fn default() -> LogLimits {
        LogLimits { bytes: 10 << 20, files: 5 }
    }
}

impl LogLimits {
    /// As arguments of the supervisor.
    pub(crate) fn print(self) -> [String; 2] {
        [self.bytes.to_string(), self.files.to_string()]
    }

    pub(crate) fn parse(words: &[String]) -> Option<LogLimits> {
        let [bytes, files] = words else { return None };
        Some(LogLimits { bytes: bytes.parse().ok()?, files: files.parse().ok()? })
    }
}

/// The numbers of a process's log files, in order.
pub(crate) fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// Writes records, and begins a new file when one is full.
struct Writer {
    dir: OwnedFd,
    limits: LogLimits,
    number: u64,
    file: Option<File>,
    size: u64,
    batch: Vec<u8>,
    /// Bytes that could not be written since something was.
    lost: usize,
}

impl Writer {
    fn open(dir: OwnedFd, limits: LogLimits) -> io::Result<Writer> {
        let mut writer =
            Writer { dir, limits, number: 0, file: None, size: 0, batch: Vec::with_capacity(2 * BATCH), lost: 0 };
        writer.begin(0)?;
        Ok(writer)
    }

    fn begin(&mut self, number: u64) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{PREFIX}{number}");
        let file = File::from(rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)?);
        (self.size, self.number, self.file) = (file.metadata()?.len(), number, Some(file));
        if let Some(old) = number.checked_sub(self.limits.files.max(1).into()) {
            let _ = rustix::fs::unlinkat(&self.dir, format!("{PREFIX}{old}"), AtFlags::empty());
        }
        Ok(())
    }

    fn put(&mut self, at: &str, stream: &str, whole: bool, text: &[u8]) {
        let tag = if whole { "F" } else { "P" };
        for part in [at.as_bytes(), b" ", stream.as_bytes(), b" ", tag.as_bytes(), b" ", text, b"\n"] {
            self.batch.extend_from_slice(part);
        }
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Writes what is collected. What cannot be written is lost: a full disk must not hold up the process, nor may a
    /// file grow beyond its limit because the next one cannot be made.
    fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let length = self.batch.len();
        if self.write().is_err() {
            self.lost += length;
        }
        self.batch.clear();
    }

    fn write(&mut self) -> io::Result<()> {
        if self.lost > 0 {
            let note = format!("longshore: {} bytes of the log could not be written and are lost", self.lost);
            let line = format!("{} stderr F {note}\n", now());
            self.batch.splice(0..0, line.into_bytes());
        }
        let length = self.batch.len() as u64;
        if self.size > 0 && self.size + length > self.limits.bytes {
            self.begin(self.number + 1)?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(&self.batch) {
            // Half a record would be read as one.
            let _ = file.set_len(self.size);
            return Err(error);
        }
        (self.size, self.lost) = (self.size + length, 0);
        Ok(())
    }
}

/// One end of a pipe that a process writes to.
struct Stream {
    name: &'static str,
    /// `None` once the other end is closed.
    pipe: Option<OwnedFd>,
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
}

/// What a process writes, on its way to the files.
pub(crate) struct Output {
    writer: Writer,
    streams: [Stream; 2],
}

impl Output {
    /// Takes the reading ends of standard output and standard error.
    pub(crate) fn open(dir: OwnedFd, limits: LogLimits, pipes: [OwnedFd; 2]) -> io::Result<Output> {
        for pipe in &pipes {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        let [out, err] = pipes;
        let stream = |name, pipe| Stream { name, pipe: Some(pipe), pending: Vec::new() };
        let streams = [stream("stdout", out), stream("stderr", err)];
        Ok(Output { writer: Writer::open(dir, limits)?, streams })
    }

    /// What to wait for until [`Output::take`] has something to do.
    pub(crate) fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(|pipe| PollFd::new(pipe, PollFlags::IN))
    }

    /// How long to wait before [`Output::give_in`].
    pub(crate) fn patience(&self) -> Option<&'static Timespec> {
        self.streams.iter().any(|stream| !stream.pending.is_empty()).then_some(&PATIENCE)
    }

    /// Takes what is there, a bounded amount of it, so that its caller can look at something else in between.
    pub(crate) fn take(&mut self) {
        for stream in &mut self.streams {
            stream.read(LONGEST, &mut self.writer);
        }
        self.writer.flush();
    }

    /// Nothing came for a while: lines that have no end yet are shown as far as they are.
    pub(crate) fn give_in(&mut self) {
        for stream in &mut self.streams {
            stream.end(&mut self.writer);
        }
        self.writer.flush();
    }

    /// The process and all it started have ended. What is in the pipes now is the end of the log, even if somebody else
    /// was handed a pipe and goes on writing.
    pub(crate) fn finish(mut self) {
        for stream in &mut self.streams {
            let mut left = stream.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
            while left > 0 {
                let took = stream.read(LONGEST.min(usize::try_from(left).unwrap_or(LONGEST)), &mut self.writer);
                left = if took == 0 { 0 } else { left.saturating_sub(took as u64) };
            }
            stream.end(&mut self.writer);
        }
        self.writer.flush();
    }
}

impl Stream {
    /// Reads at most so much, once. Answers how much.
    fn read(&mut self, most: usize, writer: &mut Writer) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let mut buffer = [0; LONGEST];
        let read = match rustix::io::read(pipe, &mut buffer[..most.min(LONGEST)]) {
            Ok(0) => {
                self.pipe = None;
                return 0;
            }
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return 0,
            Err(_) => {
                self.pipe = None;
                return 0;
            }
        };
        let at = now();
        let mut lines = buffer[..read].split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let whole = lines.peek().is_some();
            self.take(line, whole, &at, writer);
        }
        read
    }

    fn take(&mut self, line: &[u8], whole: bool, at: &str, writer: &mut Writer) {
        if self.pending.len() + line.len() > LONGEST {
            writer.put(at, self.name, false, &self.pending);
            self.pending.clear();
        }
        match (whole, self.pending.is_empty()) {
            (true, true) => writer.put(at, self.name, true, line),
            (true, false) => {
                self.pending.extend_from_slice(line);
                writer.put(at, self.name, true, &self.pending);
                self.pending.clear();
            }
            (false, _) => self.pending.extend_from_slice(line),
        }
    }

    fn end(&mut self, writer: &mut Writer) {
        if !self.pending.is_empty() {
            writer.put(&now(), self.name, false, &self.pending);
            self.pending.clear();
        }
    }
}

/// The time, to the nanosecond and always as long, so that the order of texts is the order of times.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let second = control::Timestamp(millis).to_time().0;
    format!("{}.{:09}Z", second.trim_end_matches('Z'), since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_reader::LogReader;

    struct Trial {
        dir: tempfile::TempDir,
        output: Output,
        ends: [OwnedFd; 2],
    }

    impl Trial {
        fn new(limits: LogLimits) -> Trial {
            let dir = tempfile::tempdir().unwrap();
            let pipes = [(); 2].map(|()| rustix::pipe::pipe().unwrap());
            let [(out, out_end), (err, err_end)] = pipes;
            let open = OwnedFd::from(File::open(dir.path()).unwrap());
            Trial { output: Output::open(open, limits, [out, err]).unwrap(), dir, ends: [out_end, err_end] }
        }

        fn write(&mut self, stream: usize, text: &str) {
            assert_eq!(rustix::io::write(&self.ends[stream], text.as_bytes()), Ok(text.len()));
            self.output.take();
        }

        fn records(&self) -> Vec<(bool, bool, String)> {
            let mut found = Vec::new();
            let mut reader = LogReader::open(self.dir.path(), None).unwrap();
            let mut note = |record: crate::LogRecord<'_>| {
                found.push((record.stderr, record.whole, String::from_utf8_lossy(record.text).into_owned()));
            };
            while reader.read(&mut note).unwrap() {}
            found
        }
    }

    fn record(stderr: bool, whole: bool, text: &str) -> (bool, bool, String) {
        (stderr, whole, text.to_owned())
    }

    #[test]
    fn streams_are_told_apart_and_a_line_without_an_end_waits_for_it() {
        let mut trial = Trial::new(LogLimits::default());
        trial.write(0, "one\ntw");
        trial.write(1, "oops\n\n");
        assert!(trial.output.patience().is_some());
        trial.write(0, "o\nthree");
        trial.output.give_in();
        assert!(trial.output.patience().is_none());
        let shown = [
            record(false, true, "one"),
            record(true, true, "oops"),
            record(true, true, ""),
            record(false, true, "two"),
            record(false, false, "three"),
        ];
        assert_eq!(trial.records(), shown);
        trial.write(0, " four\n");
        assert_eq!(trial.records().last(), Some(&record(false, true, " four")));
    }

    #[test]
    fn a_long_line_comes_in_parts_and_memory_stays_bounded() {
        let mut trial = Trial::new(LogLimits::default());
        for _ in 0..40 {
            trial.write(0, &"x".repeat(1000));
            assert!(trial.output.streams[0].pending.len() <= LONGEST);
        }
        trial.write(0, "\n");
        let records = trial.records();
        assert_eq!(records.iter().map(|(_, _, text)| text.len()).sum::<usize>(), 40_000);
        assert_eq!(records.iter().map(|(_, whole, _)| *whole).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn files_have_a_size_and_a_number() {
        let limits = LogLimits { bytes: 4096, files: 3 };
        let mut trial = Trial::new(limits);
        for number in 0..1000 {
            trial.write(0, &format!("line {number}\n"));
        }
        let numbers = numbers(trial.dir.path()).unwrap();
        assert_eq!(numbers.len(), 3);
        for number in &numbers {
            let length = std::fs::metadata(trial.dir.path().join(format!("{PREFIX}{number}"))).unwrap().len();
            assert!(length <= limits.bytes, "{length}");
        }
        let kept = trial.records();
        assert_eq!(kept.last(), Some(&record(false, true, "line 999")));
        assert!(kept.len() > 100 && kept.len() < 1000, "{}", kept.len());
    }

    #[test]
    fn what_could_not_be_written_is_told() {
        let mut trial = Trial::new(LogLimits::default());
        trial.write(0, "before\n");
        let file = trial.output.writer.file.replace(File::options().write(true).open("/dev/full").unwrap());
        trial.write(0, "during\n");
        trial.output.writer.file = file;
        trial.write(0, "after\n");
        let records = trial.records();
        let told = "longshore: 47 bytes of the log could not be written and are lost";
        assert_eq!(records, [record(false, true, "before"), record(true, true, told), record(false, true, "after")]);
    }

    #[test]
    fn the_end_is_what_is_in_the_pipe_even_if_somebody_holds_it() {
        let mut trial = Trial::new(LogLimits::default());
        assert!(rustix::io::write(&trial.ends[0], b"last words").is_ok());
        let Trial { dir, output, ends } = trial;
        output.finish();
        let mut all = Vec::new();
        LogReader::open(dir.path(), None).unwrap().read(&mut |record| all.extend_from_slice(record.text)).unwrap();
        assert_eq!(all, b"last words");
        drop(ends);
        trial = Trial::new(LogLimits::default());
        drop(trial.ends);
        trial.output.take();
        assert_eq!(trial.output.poll_fds().count(), 0, "a closed pipe is not waited for");
    }
}
