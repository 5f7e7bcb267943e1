//! Reading the log of a process, while it is written and after.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::log::{PREFIX, numbers};

/// Bytes read at once.
const CHUNK: usize = 64 << 10;
/// How long the time of a record is, and where it says whether the line ends with it.
const TIME: usize = 30;
const TAG: usize = 38;

/// One record: a line, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// RFC 3339 in UTC with nanoseconds. Always as long, so that the order of texts is the order of times.
    pub time: &'a str,
    /// It was written to standard error.
    pub stderr: bool,
    /// The line ends with it.
    pub whole: bool,
    /// What was written, without the end of the line.
    pub text: &'a [u8],
}

impl<'a> LogRecord<'a> {
    /// `None` for what no writer of ours wrote, such as the rest of a record that a crash cut off.
    fn parse(line: &'a [u8]) -> Option<LogRecord<'a>> {
        let (head, text) = (line.get(..TAG + 2)?, line.get(TAG + 2..)?);
        let head = std::str::from_utf8(head).ok()?;
        let (time, rest) = head.split_at_checked(TIME)?;
        let (stderr, whole) = match rest {
            " stdout F " => (false, true),
            " stdout P " => (false, false),
            " stderr F " => (true, true),
            " stderr P " => (true, false),
            _ => return None,
        };
        Some(LogRecord { time, stderr, whole, text })
    }
}

/// Reads the files of a log one after the other, also while it is written.
#[derive(Debug)]
pub struct LogReader {
    dir: PathBuf,
    number: u64,
    file: File,
    /// The beginning of a record whose end was not read yet.
    rest: Vec<u8>,
}

impl LogReader {
    /// From the beginning of what is kept, or from that many lines before its end.
    pub(crate) fn open(dir: &Path, tail: Option<u64>) -> io::Result<LogReader> {
        let (number, offset) = match tail {
            None => (first_from(dir, 0)?.ok_or(io::ErrorKind::NotFound)?, 0),
            Some(lines) => start_of_last_lines(dir, lines)?,
        };
        // The file may have gone since; then the next one is the oldest.
        let (opened, mut file) = open_from(dir, number)?.ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(if opened == number { offset } else { 0 }))?;
        Ok(LogReader { dir: dir.to_owned(), number: opened, file, rest: Vec::new() })
    }

    /// Hands over the next records. `false`: nothing more is there now.
    pub fn read(&mut self, each: &mut impl FnMut(LogRecord<'_>)) -> io::Result<bool> {
        loop {
            // Asked before reading: a file is complete once the next one is there.
            let next = first_from(&self.dir, self.number + 1)?;
            let before = self.rest.len();
            self.rest.resize(before + CHUNK, 0);
            let read = self.file.read(&mut self.rest[before..]);
            self.rest.truncate(before + *read.as_ref().unwrap_or(&0));
            if read? > 0 {
                self.hand_over(each);
                return Ok(true);
            }
            let Some((number, file)) = next.map_or(Ok(None), |next| open_from(&self.dir, next))? else {
                return Ok(false);
            };
            (self.number, self.file) = (number, file);
            self.rest.clear();
        }
    }

    fn hand_over(&mut self, each: &mut impl FnMut(LogRecord<'_>)) {
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            // No record is as long as this: the file is not ours, or broken.
            if self.rest.len() > CHUNK {
                self.rest.clear();
            }
            return;
        };
        self.rest[..end].split(|byte| *byte == b'\n').filter_map(LogRecord::parse).for_each(each);
        self.rest.drain(..=end);
    }
}

fn first_from(dir: &Path, number: u64) -> io::Result<Option<u64>> {
    Ok(numbers(dir)?.into_iter().find(|found| *found >= number))
}

fn open_file(dir: &Path, number: u64) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(dir.join(format!("{PREFIX}{number}")))
}

/// The first file from this number on that is still there.
fn open_from(dir: &Path, mut number: u64) -> io::Result<Option<(u64, File)>> {
    loop {
        match open_file(dir, number) {
            Ok(file) => return Ok(Some((number, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match first_from(dir, number + 1)? {
                Some(next) => number = next,
                None => return Ok(None),
            },
            Err(error) => return Err(error),
        }
    }
}

/// The file and the place in it where the last so many lines begin, found from the end so that a large log costs no
/// more than its tail.
fn start_of_last_lines(dir: &Path, lines: u64) -> io::Result<(u64, u64)> {
    let numbers = numbers(dir)?;
    let newest = *numbers.last().ok_or(io::ErrorKind::NotFound)?;
    let mut start = (newest, open_file(dir, newest)?.metadata()?.len());
    let (mut found, mut last) = (0, true);
    for number in numbers.into_iter().rev() {
        let file = match open_file(dir, number) {
            Ok(file) => file,
            // What is older is gone, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(start),
            Err(error) => return Err(error),
        };
        let mut enough = false;
        each_start_from_the_end(&file, |at, whole| {
            // An unfinished line at the very end is a line as well.
            if whole || std::mem::take(&mut last) {
                enough = found == lines;
                found += 1;
            }
            last = false;
            if !enough {
                start = (number, at);
            }
            !enough
        })?;
        if enough {
            break;
        }
    }
    Ok(start)
}

/// Tells where each record begins and whether a line ends with it, the last one first, as long as the answer is yes.
fn each_start_from_the_end(file: &File, mut go_on: impl FnMut(u64, bool) -> bool) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut tell = |at: u64| -> io::Result<bool> {
        let mut tag = [0];
        // Less than a record after the last newline: it is being written, or was cut off.
        Ok(file.read_at(&mut tag, at + TAG as u64)? == 0 || go_on(at, tag == *b"F"))
    };
    let mut end = length;
    while end > 0 {
        let size = end.min(CHUNK as u64);
        let mut block = vec![0; usize::try_from(size).unwrap_or(CHUNK)];
        file.read_exact_at(&mut block, end - size)?;
        end -= size;
        for (index, byte) in block.iter().enumerate().rev() {
            if *byte == b'\n' && !tell(end + index as u64 + 1)? {
                return Ok(());
            }
        }
    }
    tell(0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "2026-11-18T00:09:41.123456789Z";

    fn write(dir: &Path, number: u64, records: &[&str]) {
        let text: String = records.iter().map(|record| format!("{AT} stdout {record}\n")).collect();
        std::fs::write(dir.join(format!("{PREFIX}{number}")), text).unwrap();
    }

    fn all(mut reader: LogReader) -> String {
        let mut text = String::new();
        let mut note = |record: LogRecord<'_>| {
            assert_eq!(record.time, AT);
            text.push_str(std::str::from_utf8(record.text).unwrap());
            text.push(if record.whole { '\n' } else { '~' });
        };
        while reader.read(&mut note).unwrap() {}
        text
    }

    #[test]
    fn the_last_lines_are_found_over_files_and_parts() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 4, &["F a", "F b"]);
        write(dir.path(), 5, &["P c", "F d", "F e"]);
        write(dir.path(), 6, &["F f", "P g"]);
        let cases = [
            (None, "a\nb\nc~d\ne\nf\ng~"),
            (Some(0), ""),
            (Some(1), "g~"),
            (Some(2), "f\ng~"),
            (Some(3), "e\nf\ng~"),
            (Some(4), "c~d\ne\nf\ng~"),
            (Some(5), "b\nc~d\ne\nf\ng~"),
            (Some(100), "a\nb\nc~d\ne\nf\ng~"),
        ];
        for (tail, expected) in cases {
            assert_eq!(all(LogReader::open(dir.path(), tail).unwrap()), expected, "{tail:?}");
        }
    }

    #[test]
    fn who_reads_along_goes_over_to_the_next_file() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 0, &["F a"]);
        let mut reader = LogReader::open(dir.path(), None).unwrap();
        let mut text = Vec::new();
        let mut read = |reader: &mut LogReader| {
            while reader.read(&mut |record| text.extend_from_slice(record.text)).unwrap() {}
            text.clone()
        };
        assert_eq!(read(&mut reader), b"a");
        write(dir.path(), 0, &["F a", "F b"]);
        write(dir.path(), 1, &["F c"]);
        assert_eq!(read(&mut reader), b"abc");
        // It was slow: two files came and the one it was to read next went.
        write(dir.path(), 3, &["F e"]);
        assert_eq!(read(&mut reader), b"abce");
    }

    #[test]
    fn what_a_crash_cut_off_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log.0"), format!("{AT} stdout F a\n{AT} stdo")).unwrap();
        write(dir.path(), 1, &["F b"]);
        assert_eq!(all(LogReader::open(dir.path(), None).unwrap()), "a\nb\n");
        assert_eq!(all(LogReader::open(dir.path(), Some(2)).unwrap()), "a\nb\n");
        std::fs::write(dir.path().join("log.1"), vec![b'x'; 3 * CHUNK]).unwrap();
        assert_eq!(all(LogReader::open(dir.path(), None).unwrap()), "a\n");
        assert!(LogReader::open(&dir.path().join("none"), None).is_err());
    }
}
