//! Logs of real processes: bounded whatever the process does, and complete when it has ended.

use std::time::Instant;

use control::host::{Op, ProcessState, Sandbox};
use io_host::{Host, LogLimits, LogRecord};

use crate::bench::{Bench, owned};
use crate::processes::{News, log_has, log_of, ran, seeing, shell, until};

/// A host with small logs on the same state as the bench's.
fn small(bench: &Bench, limits: LogLimits) -> Host {
    Host::new(owned(&bench.path("processes"))).unwrap().with_log_limits(limits)
}

fn on_disk(bench: &Bench, name: &str) -> Vec<u64> {
    let files = std::fs::read_dir(bench.dir().join("processes").join(name)).unwrap();
    let logs = files.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("log"));
    logs.map(|file| file.metadata().unwrap().len()).collect()
}

/// KL log rotation: as kubelet's containerLogMaxSize and containerLogMaxFiles.
pub fn a_log_has_a_bound() {
    let bench = Bench::new();
    let limits = LogLimits { bytes: 100_000, files: 4 };
    let host = small(&bench, limits);
    let news = News::of(&host);
    // 3 MB, and a descriptor of the pipe opened anew, as programs do that write to /dev/stdout.
    let script = "seq -f 'line number %.0f of many' 100000; echo last > /dev/stdout; echo err >&2";
    host.perform(&Op::StartProcess(shell("chatty", script))).unwrap();
    assert!(matches!(news.end_of("chatty"), ProcessState::Exited { code: 0, .. }));
    let files = on_disk(&bench, "chatty");
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|length| *length <= limits.bytes), "{files:?}");
    let log = log_of(&host, "chatty");
    assert!(log.contains("line number 100000 of many\n") && log.contains("last\n") && log.contains("err\n"));
    assert!(!log.contains("line number 1 of many\n"), "the beginning is gone");
    let mut tail = Vec::new();
    let mut reader = host.open_log("chatty", Some(4000)).unwrap();
    while reader.read(&mut |record: LogRecord<'_>| tail.push(record.text.to_vec())).unwrap() {}
    assert_eq!(tail.len(), 4000, "over more than one file");
    bench.twice(Op::ForgetProcess { name: "chatty".into() });
    assert!(!bench.dir().join("processes/chatty").exists());
}

pub fn streams_and_times_are_recorded() {
    let bench = Bench::new();
    let news = News::of(&bench.host);
    bench.twice(Op::StartProcess(shell("both", "echo out; echo err >&2; printf unfinished")));
    news.end_of("both");
    let mut found = Vec::new();
    let mut reader = bench.host.open_log("both", None).unwrap();
    let mut note = |record: LogRecord<'_>| {
        assert!(record.time.len() == 30 && record.time.starts_with("20") && record.time.ends_with('Z'));
        found.push((String::from_utf8_lossy(record.text).into_owned(), record.stderr, record.whole));
    };
    while reader.read(&mut note).unwrap() {}
    found.sort();
    let expected = [("err", true, true), ("out", false, true), ("unfinished", false, false)];
    assert_eq!(found, expected.map(|(text, stderr, whole)| (text.to_owned(), stderr, whole)));
}

/// A pod's user may write to `/dev/stderr` by its name.
pub fn any_user_may_open_its_output() {
    let bench = Bench::new();
    let mut process = shell("user", "echo named > /dev/stdout; echo too > /proc/self/fd/2");
    *process.sandbox = Sandbox { user: 65534, group: Some(65534), ..Sandbox::default() };
    let (code, log) = ran(&bench, process);
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("named\n") && log.contains("too\n"), "{log}");
}

/// A line that has no end yet is seen soon, and once.
pub fn a_line_without_an_end_is_seen_and_a_closed_output_ends_nothing() {
    let bench = Bench::new();
    bench.make_dir("volume");
    let script = "printf 'name? '; while [ ! -e /volume/go ]; do sleep 0.05; done; echo me; exec >&- 2>&-; \
                  touch /volume/closed; while [ ! -e /volume/end ]; do sleep 0.05; done; exit 3";
    let news = News::of(&bench.host);
    bench.twice(Op::StartProcess(seeing(shell("asks", script), &bench.path("volume"), "/volume", false)));
    until("the question", || log_has(&bench.host, "asks", "name? "));
    std::fs::write(bench.path("volume/go"), "").unwrap();
    until("the answer", || log_of(&bench.host, "asks") == "name? me\n");
    until("the closing", || bench.dir().join("volume/closed").exists());
    std::fs::write(bench.path("volume/end"), "").unwrap();
    assert!(matches!(news.end_of("asks"), ProcessState::Exited { code: 3, .. }));
}

/// Measures; asserts nothing about time.
pub fn much_output_is_taken_in() {
    let bench = Bench::new();
    let (news, began) = (News::of(&bench.host), Instant::now());
    bench.twice(Op::StartProcess(shell(
        "flood",
        "yes 'sixty-three letters and an end, as a log line may well have been' | head -c 64000000",
    )));
    assert!(matches!(news.end_of("flood"), ProcessState::Exited { code: 0, .. }));
    println!("64 MB of lines took {:?}", began.elapsed());
    let files = on_disk(&bench, "flood");
    assert!(files.len() == 5 && files.iter().all(|length| *length <= 10 << 20), "{files:?}");
    let total: u64 = files.iter().sum();
    assert!(total <= 50 << 20, "{total}");
}
