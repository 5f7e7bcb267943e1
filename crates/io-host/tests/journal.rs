//! What the log promises, on a real filesystem. A loss of power is played by undoing what was never synced.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::fs;
use std::path::{Path, PathBuf};

use io_host::Journal;

/// A directory with a log and a folder for records.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().canonicalize().unwrap().join("records")).unwrap();
        Bench { dir }
    }

    fn root(&self) -> String {
        self.dir.path().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    fn record(&self, name: &str) -> String {
        format!("{}/records/{name}", self.root())
    }

    fn open(&self) -> Journal {
        Journal::open(&self.root()).unwrap()
    }

    fn holds(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.record(name)).ok()
    }
}

/// A copy of the whole directory, as a disk may hold it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() { copy(&path, &to.join(name)) } else { assert!(fs::copy(&path, to.join(name)).is_ok()) }
    }
}

// Reliability 77: what was acknowledged survives, although neither the file nor its name was ever synced.
#[test]
fn acknowledged_records_are_there_after_power_is_lost() {
    let bench = Bench::new();
    let log = bench.open();
    for (name, content) in [("kept", "one"), ("changed", "old"), ("gone", "x"), ("empty", "")] {
        log.write(&bench.record(name), content.as_bytes()).unwrap();
    }
    log.write(&bench.record("changed"), b"new").unwrap();
    log.remove(&bench.record("gone")).unwrap();
    drop(log);
    // What a disk may hold instead: nothing of a file, none of its bytes, its old bytes, one that was removed.
    fs::remove_file(bench.record("kept")).unwrap();
    fs::write(bench.record("changed"), "").unwrap();
    fs::write(bench.record("gone"), "x").unwrap();
    let _log = bench.open();
    assert_eq!(bench.holds("kept").unwrap(), b"one");
    assert_eq!(bench.holds("changed").unwrap(), b"new");
    assert_eq!(bench.holds("gone"), None);
    assert_eq!(bench.holds("empty").unwrap(), b"");
}

// The log is far smaller than what passes through it: every record must be on disk before its entry is overwritten.
#[test]
fn a_log_that_went_round_many_times_still_says_what_was_last() {
    let bench = Bench::new();
    let log = bench.open();
    let content = |round: usize| vec![u8::try_from(round % 251).unwrap(); 3_000];
    for round in 0..400 {
        log.write(&bench.record(&format!("r{}", round % 7)), &content(round)).unwrap();
    }
    drop(log);
    // Only files that were written last can be lost: those are in the log.
    for number in 0..7 {
        fs::write(bench.record(&format!("r{number}")), "").unwrap();
    }
    let _log = bench.open();
    for number in 0..7 {
        let last = (0..400).rfind(|round| round % 7 == number).unwrap();
        assert_eq!(bench.holds(&format!("r{number}")).unwrap(), content(last), "r{number}");
    }
}

#[test]
fn a_torn_end_takes_nothing_that_was_acknowledged_before_it() {
    let bench = Bench::new();
    let log = bench.open();
    log.write(&bench.record("a"), b"first").unwrap();
    log.write(&bench.record("a"), b"second").unwrap();
    drop(log);
    let segment = PathBuf::from(bench.root()).join("journal-0");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[512 + 20] ^= 1;
    fs::write(&segment, bytes).unwrap();
    fs::remove_file(bench.record("a")).unwrap();
    let _log = bench.open();
    assert_eq!(bench.holds("a").unwrap(), b"first", "the second entry is torn, as if its sync had never returned");
}

#[test]
fn a_log_of_another_size_is_read_and_not_thrown_away() {
    let bench = Bench::new();
    let log = bench.open();
    log.write(&bench.record("a"), b"content").unwrap();
    drop(log);
    for name in ["journal-0", "journal-1"] {
        let segment = fs::OpenOptions::new().write(true).open(Path::new(&bench.root()).join(name)).unwrap();
        let size = segment.metadata().unwrap().len();
        segment.set_len(size * 2).unwrap();
    }
    fs::remove_file(bench.record("a")).unwrap();
    let _log = bench.open();
    assert_eq!(bench.holds("a").unwrap(), b"content");
}

// A crash between bringing the log to the files and clearing it, at every moment: doing it again does no harm.
#[test]
fn a_log_may_be_brought_to_the_files_twice() {
    let bench = Bench::new();
    let log = bench.open();
    log.write(&bench.record("a"), b"old").unwrap();
    log.remove(&bench.record("a")).unwrap();
    log.write(&bench.record("a"), b"new").unwrap();
    log.remove(&bench.record("b")).unwrap();
    drop(log);
    let saved = tempfile::tempdir().unwrap();
    copy(Path::new(&bench.root()), saved.path());
    drop(bench.open());
    for name in ["journal-0", "journal-1"] {
        fs::copy(saved.path().join(name), Path::new(&bench.root()).join(name)).unwrap();
    }
    let _log = bench.open();
    assert_eq!((bench.holds("a").unwrap().as_slice(), bench.holds("b")), (&b"new"[..], None));
}

#[test]
fn one_process_has_the_log_and_nothing_outside_is_written() {
    let bench = Bench::new();
    let log = bench.open();
    let refused = Journal::open(&bench.root()).unwrap_err().to_string();
    assert!(refused.contains("another driver process uses this directory; stop it first"), "{refused}");
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("x");
    assert!(log.write(path.to_str().unwrap(), b"x").is_err());
    assert!(!path.exists());
}

#[test]
fn records_written_side_by_side_are_all_there() {
    let bench = Bench::new();
    let log = bench.open();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (log, bench) = (&log, &bench);
            scope.spawn(move || {
                for round in 0..40 {
                    let name = bench.record(&format!("w{worker}"));
                    log.write(&name, format!("{worker} {round}").as_bytes()).unwrap();
                }
            });
        }
    });
    drop(log);
    for worker in 0..8 {
        fs::remove_file(bench.record(&format!("w{worker}"))).unwrap();
    }
    let _log = bench.open();
    for worker in 0..8 {
        assert_eq!(bench.holds(&format!("w{worker}")).unwrap(), format!("{worker} 39").as_bytes());
    }
}
