//! Processes and their supervisor.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use control::host::{Op, Process, ProcessMount, ProcessState, Reply};
use io_host::{Host, HostError, LogRecord, Watch, is_mount_root, mounts};

use crate::bench::{Bench, owned};

/// Long enough for any machine; nothing is measured by it.
const LONG: Duration = Duration::from_secs(30);

pub fn process(name: &str, command: &[&str]) -> Process {
    Process {
        name: name.into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        working_dir: String::new(),
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        confidential: false,
        mounts: vec![],
        devices: vec![],
        sandbox: Default::default(),
    }
}

pub fn shell(name: &str, script: &str) -> Process {
    process(name, &["/bin/sh", "-c", script])
}

pub fn seeing(mut process: Process, source: &str, target: &str, read_only: bool) -> Process {
    process.mounts.push(ProcessMount {
        source: source.into(),
        target: target.into(),
        read_only,
        ..ProcessMount::default()
    });
    process
}

/// A watch whose news can be waited for.
pub struct News {
    _watch: Watch,
    heard: Receiver<(String, ProcessState)>,
}

impl News {
    pub fn of(host: &Host) -> News {
        let (say, heard) = channel();
        let watch = host.watch_processes(move |name, state| drop(say.send((name.to_owned(), state)))).unwrap();
        News { _watch: watch, heard }
    }

    #[track_caller]
    pub fn end_of(&self, wanted: &str) -> ProcessState {
        loop {
            match self.heard.recv_timeout(LONG).expect("no news in time") {
                (name, ProcessState::Running { .. }) if name == wanted => {}
                (name, state) if name == wanted => return state,
                _ => {}
            }
        }
    }
}

/// Starts a process, waits for its end, and answers its end and its log.
#[track_caller]
fn run(bench: &Bench, process: Process) -> (ProcessState, String) {
    let (news, name) = (News::of(&bench.host), process.name.clone());
    bench.twice(Op::StartProcess(process));
    let end = news.end_of(&name);
    let log = log_of(&bench.host, &name);
    bench.twice(Op::ForgetProcess { name: name.clone() });
    assert!(!bench.host.processes().unwrap().contains_key(&name));
    (end, log)
}

/// The exit status and the log of a process that ran.
#[track_caller]
pub fn ran(bench: &Bench, process: Process) -> (i32, String) {
    match run(bench, process) {
        (ProcessState::Exited { code, .. }, log) => (code, log),
        (other, log) => panic!("{other:?}: {log}"),
    }
}

#[track_caller]
pub fn not_started(bench: &Bench, process: Process) -> String {
    match run(bench, process) {
        (ProcessState::NotStarted(why), _) => why,
        (other, log) => panic!("{other:?}: {log}"),
    }
}

/// Waits for something that another process does.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what} did not come about");
}

pub fn log_has(host: &Host, name: &str, text: &str) -> bool {
    log_of(host, name).contains(text)
}

/// What a process has written so far, without times.
pub fn log_of(host: &Host, name: &str) -> String {
    let mut text = Vec::new();
    let Ok(mut reader) = host.open_log(name, None) else { return String::new() };
    let mut note = |record: LogRecord<'_>| {
        text.extend_from_slice(record.text);
        text.extend_from_slice(if record.whole { b"\n" } else { b"" });
    };
    while reader.read(&mut note).unwrap() {}
    String::from_utf8_lossy(&text).into_owned()
}

/// Processes of the machine that have this word in their command line.
fn with_word(word: &str) -> Vec<PathBuf> {
    let numbers = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let has = |dir: &PathBuf| std::fs::read(dir.join("cmdline")).is_ok_and(|line| contains(&line, word.as_bytes()));
    numbers.filter(|dir| dir.join("cmdline").exists() && !dir.ends_with("self")).filter(has).collect()
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}

fn supervisor_pid(bench: &Bench, name: &str) -> i32 {
    let marker = std::fs::read_to_string(bench.dir().join("processes").join(name).join("pid")).unwrap();
    marker.trim_start_matches("{\"pid\":").split(',').next().unwrap().parse().unwrap()
}

pub fn a_process_runs_logs_and_ends() {
    let bench = Bench::new();
    let (code, log) = ran(&bench, shell("greeter", "echo out; pwd; exit 7"));
    assert_eq!((code, log.as_str()), (7, "out\n/\n"));
    assert_eq!(ran(&bench, process("true", &["true"])).0, 0);
    let mut elsewhere = process("pwd", &["pwd"]);
    elsewhere.working_dir = "/usr".into();
    assert_eq!(ran(&bench, elsewhere), (0, "/usr\n".into()));
    // It is the second process of a namespace of its own.
    assert_eq!(ran(&bench, shell("number", "echo $$; ls -d /proc/[0-9]* | wc -l")).1.split('\n').next(), Some("2"));
    let dir = bench.dir().join("processes");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "forgetting leaves nothing");
}

/// A kill while a process was being started or forgotten leaves its directory, and no process by which anybody would
/// find it.
pub fn what_was_cut_off_between_starting_and_forgetting_is_settled_at_the_next_start() {
    let bench = Bench::new();
    let processes = bench.dir().join("processes");
    let news = News::of(&bench.host);
    bench.twice(Op::StartProcess(shell("runs", "sleep 1000")));
    bench.twice(Op::StartProcess(shell("ended", "exit 3")));
    news.end_of("ended");
    std::fs::create_dir(processes.join("half-forgotten")).unwrap();
    std::fs::create_dir(processes.join("half-started")).unwrap();
    for file in ["spec.json", "lock"] {
        std::fs::write(processes.join("half-started").join(file), "").unwrap();
    }
    // Not ours: it stays and is told of.
    std::fs::create_dir_all(processes.join("strange/somebody's")).unwrap();

    let before = bench.host.processes().unwrap();
    let failed = bench.host.settle().unwrap();
    assert!(matches!(&failed[..], [HostError::NotEmpty { path }] if path.ends_with("/strange")), "{failed:?}");
    assert_eq!(bench.host.processes().unwrap(), before);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["ended", "runs"]);
    let mut left: Vec<_> = std::fs::read_dir(&processes).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["ended", "runs", "strange"]);

    bench.twice(Op::StopProcess { name: "runs".into(), grace_millis: 0 });
    for name in ["runs", "ended"] {
        bench.twice(Op::ForgetProcess { name: name.into() });
    }
}

pub fn starting_twice_starts_once() {
    let bench = Bench::new();
    let (news, dir) = (News::of(&bench.host), bench.make_dir("volume"));
    let once = seeing(shell("once", "echo started >> /volume/count"), &dir, "/volume", false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| bench.host.perform(&Op::StartProcess(once.clone())).unwrap());
        }
    });
    news.end_of("once");
    // It has ended, and is not forgotten: starting it is done.
    bench.twice(Op::StartProcess(once.clone()));
    assert!(matches!(bench.host.processes().unwrap()["once"], ProcessState::Exited { code: 0, .. }));
    assert_eq!(std::fs::read_to_string(bench.path("volume/count")).unwrap(), "started\n");
    let other = bench.refused(Op::StartProcess(shell("once", "echo another")));
    assert!(matches!(other, HostError::ProcessSpec { .. }), "{other}");
    bench.twice(Op::ForgetProcess { name: "once".into() });
}

pub fn a_process_ended_by_a_signal_says_so() {
    let bench = Bench::new();
    assert_eq!(ran(&bench, shell("killed", "kill -KILL $$")).0, 137);
    assert_eq!(ran(&bench, shell("asked", "kill -TERM $$")).0, 143);
}

pub fn a_command_that_does_not_exist_is_named() {
    let bench = Bench::new();
    let why = not_started(&bench, process("none", &["no-such-program"]));
    assert!(why.contains("no-such-program") && why.contains("does not exist"), "{why}");
    let why = not_started(&bench, process("data", &["/etc/passwd"]));
    assert!(why.contains("/etc/passwd") && why.contains("cannot be executed"), "{why}");
    let error = bench.refused(Op::StartProcess(process("empty", &[])));
    assert!(error.to_string().contains("no command"), "{error}");
    assert!(matches!(bench.refused(Op::StartProcess(process("../x", &["true"]))), HostError::ProcessName { .. }));
}

pub fn a_missing_working_directory_is_named() {
    let bench = Bench::new();
    let mut lost = process("lost", &["true"]);
    lost.working_dir = "/no/such/place".into();
    let why = not_started(&bench, lost);
    assert!(why.contains("/no/such/place"), "{why}");
}

pub fn a_missing_volume_is_named() {
    let bench = Bench::new();
    let why = not_started(&bench, seeing(process("lacking", &["true"]), &bench.path("none"), "/data", false));
    assert!(why.contains("/data") && why.contains(&bench.path("none")), "{why}");
    std::os::unix::fs::symlink("/etc", bench.path("link")).unwrap();
    let why = not_started(&bench, seeing(process("linked", &["true"]), &bench.path("link"), "/data", false));
    assert!(why.contains("symbolic link"), "{why}");
}

pub fn the_root_is_read_only_and_tmp_is_its_own() {
    let bench = Bench::new();
    let script = "for d in / /etc /usr /var /dev /sys; do touch $d/io-host-test && echo \"wrote $d\"; done 2>/dev/null
        echo mine > /tmp/io-host-test && echo mine > /run/io-host-test && echo mine > /dev/shm/io-host-test && echo own
        test -r /proc/self/stat && test -c /dev/null && test -d /sys/block && echo system";
    assert_eq!(ran(&bench, shell("writer", script)).1, "own\nsystem\n");
    for dir in ["/tmp", "/run", "/dev/shm"] {
        assert!(!owned(dir).join("io-host-test").exists());
    }
}

pub fn a_volume_appears_where_the_machine_has_no_directory() {
    let bench = Bench::new();
    let volume = bench.mounted("volume");
    let target = "/no-such-place-on-this-machine/data";
    let script = format!("echo hello > {target}/file; touch /seen/file 2>/dev/null || echo refused; cat /seen/file");
    let both = seeing(shell("user", &script), &volume.target, target, false);
    let (code, log) = ran(&bench, seeing(both, &volume.target, "/seen", true));
    assert_eq!((code, log.as_str()), (0, "refused\nhello\n"));
    assert_eq!(std::fs::read_to_string(bench.path("volume/file")).unwrap(), "hello\n");
    assert!(!owned("/no-such-place-on-this-machine").exists() && !owned("/seen").exists());
    bench.remove(&volume);
}

pub fn a_volume_inside_a_volume_and_through_a_link() {
    let bench = Bench::new();
    let (outer, inner) = (bench.make_dir("outer"), bench.make_dir("inner"));
    let script = "echo x > /outer/a/b/file; cat /mnt/file";
    let nested = seeing(shell("nested", script), &inner, "/outer/a/b", false);
    let nested = seeing(seeing(nested, &inner, "/outer/link", true), &outer, "/outer", false);
    // A link in a volume does not lead the next mount out of the process's root, whoever put it there.
    std::os::unix::fs::symlink("../../../mnt", bench.path("outer/link")).unwrap();
    assert_eq!(ran(&bench, nested.clone()), (0, "x\n".into()));
    assert!(!is_mount_root(&owned("/mnt")).unwrap());
    std::fs::remove_file(bench.path("outer/link")).unwrap();
    std::os::unix::fs::symlink(bench.make_dir("outside"), bench.path("outer/link")).unwrap();
    let why = not_started(&bench, nested);
    assert!(why.contains("/outer/link") && why.contains("symbolic link"), "{why}");
}

pub fn without_overlay_mount_points_must_exist() {
    let bench = Bench::new();
    let plain = Host::new(bench.dir().join("plain")).unwrap().without_overlay();
    let volume = bench.make_dir("volume");
    let news = News::of(&plain);
    let start = |process: Process| plain.perform(&Op::StartProcess(process)).unwrap();
    start(seeing(shell("there", "touch /etc/io-host-test || echo x > /mnt/file"), &volume, "/mnt", false));
    assert!(matches!(news.end_of("there"), ProcessState::Exited { code: 0, .. }));
    assert_eq!(std::fs::read_to_string(bench.path("volume/file")).unwrap(), "x\n");
    start(seeing(process("new", &["test", "-e", "/new/file"]), &volume, "/new", false));
    assert!(matches!(news.end_of("new"), ProcessState::Exited { code: 0, .. }), "the root itself is in memory");
    start(seeing(process("nowhere", &["true"]), &volume, "/usr/no-such-place", false));
    let ProcessState::NotStarted(why) = news.end_of("nowhere") else { panic!("it started") };
    assert!(why.contains("/usr/no-such-place") && why.contains("read-only"), "{why}");
    assert!(!owned("/usr/no-such-place").exists());
    // H1: what is hidden is hidden without overlayfs too.
    start(shell("shadow", "test ! -s /etc/shadow"));
    assert!(matches!(news.end_of("shadow"), ProcessState::Exited { code: 0, .. }));
}

pub fn no_mount_of_the_machine_is_kept_busy() {
    let bench = Bench::new();
    let (used, other) = (bench.mounted("used"), bench.mounted("other"));
    let user = seeing(shell("user", "echo ready; sleep 1000"), &used.target, "/used", false);
    bench.twice(Op::StartProcess(user));
    until("the process", || log_has(&bench.host, "user", "ready"));
    // The other volume goes completely while the process runs.
    bench.remove(&other);
    // The used one can be unmounted here, but its device is not let go before the process has ended.
    bench.twice(Op::Unmount { target: used.target.clone() });
    let error = bench.refused(Op::DetachLoop { image: used.image.clone() });
    assert!(matches!(error, HostError::Busy { .. }), "{error}");
    bench.twice(Op::StopProcess { name: "user".into(), grace_millis: 20_000 });
    bench.remove(&used);
    bench.twice(Op::ForgetProcess { name: "user".into() });
}

pub fn no_mount_of_a_process_comes_to_the_machine() {
    let bench = Bench::new();
    let before = mounts().unwrap();
    let dir = bench.make_dir("volume");
    bench.twice(Op::StartProcess(seeing(shell("quiet", "echo ready; sleep 1000"), &dir, "/volume", false)));
    until("the process", || log_has(&bench.host, "quiet", "ready"));
    assert_eq!(mounts().unwrap(), before);
    bench.twice(Op::StopProcess { name: "quiet".into(), grace_millis: 20_000 });
    assert_eq!(mounts().unwrap(), before);
}

pub fn stopping_takes_everything_with_it() {
    let bench = Bench::new();
    let word = format!("10{}", std::process::id());
    // A grandchild in a session of its own that ignores the request.
    let script =
        format!("setsid sh -c 'trap \"\" TERM; echo ready; sleep {word}; sleep {word}' & trap 'exit 3' TERM; wait");
    bench.twice(Op::StartProcess(shell("family", &script)));
    until("the family", || log_has(&bench.host, "family", "ready"));
    assert!(!with_word(&word).is_empty());
    bench.twice(Op::StopProcess { name: "family".into(), grace_millis: 20_000 });
    assert_eq!(with_word(&word), Vec::<PathBuf>::new());
    assert!(matches!(bench.host.processes().unwrap()["family"], ProcessState::Exited { code: 3, .. }));
    bench.twice(Op::StopProcess { name: "never-was".into(), grace_millis: 0 });
}

pub fn a_process_that_ignores_the_request_is_made_to_end() {
    let bench = Bench::new();
    bench.twice(Op::StartProcess(shell("deaf", "trap '' TERM; echo ready; while :; do sleep 1; done")));
    until("the process", || log_has(&bench.host, "deaf", "ready"));
    bench.twice(Op::StopProcess { name: "deaf".into(), grace_millis: 50 });
    assert!(matches!(bench.host.processes().unwrap()["deaf"], ProcessState::Exited { code: 137, .. }));
    // One that does not ignore it ends at once, though it is (almost) the first of its namespace.
    bench.twice(Op::StartProcess(process("plain", &["sleep", "1000"])));
    until("the process", || matches!(bench.host.processes().unwrap()["plain"], ProcessState::Running { .. }));
    bench.twice(Op::StopProcess { name: "plain".into(), grace_millis: 20_000 });
    assert!(matches!(bench.host.processes().unwrap()["plain"], ProcessState::Exited { code: 143, .. }));
}

/// Another program that starts a process and is then killed: the first argument is its state directory.
pub fn start_and_wait(state_dir: &str) -> ! {
    let host = Host::new(owned(state_dir)).unwrap();
    let script = "echo ready; while ! test -e /volume/go; do sleep 0.01; done; exit 5";
    let volume = owned(state_dir).parent().unwrap().join("volume");
    let survivor = seeing(shell("survivor", script), volume.to_str().unwrap(), "/volume", false);
    host.perform(&Op::StartProcess(survivor)).unwrap();
    println!("started");
    loop {
        std::thread::sleep(LONG);
    }
}

pub fn a_process_outlives_the_kill_of_its_starter() {
    let bench = Bench::new();
    bench.make_dir("volume");
    let mut starter = Command::new(std::env::current_exe().unwrap());
    starter.arg("starter").arg(bench.path("processes")).stdout(Stdio::piped());
    let mut starter = starter.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(starter.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    starter.kill().unwrap();
    starter.wait().unwrap();

    // The next incarnation finds it running, though it is no child of it, and hears of its end.
    let news = News::of(&bench.host);
    until("the process", || log_has(&bench.host, "survivor", "ready"));
    assert!(matches!(bench.host.processes().unwrap()["survivor"], ProcessState::Running { .. }));
    std::fs::write(bench.path("volume/go"), "").unwrap();
    assert!(matches!(news.end_of("survivor"), ProcessState::Exited { code: 5, .. }));
}

pub fn a_killed_supervisor_takes_its_process_along() {
    let bench = Bench::new();
    let (news, word) = (News::of(&bench.host), format!("20{}", std::process::id()));
    bench.twice(Op::StartProcess(shell("orphan", &format!("echo ready; sleep {word}"))));
    until("the process", || log_has(&bench.host, "orphan", "ready"));
    let pid = rustix::process::Pid::from_raw(supervisor_pid(&bench, "orphan")).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(news.end_of("orphan"), ProcessState::Lost);
    until("the end of the command", || with_word(&word).is_empty());
    // Lost is an end: it is not started again under that name, it can be stopped, and it can be forgotten.
    bench.twice(Op::StopProcess { name: "orphan".into(), grace_millis: 0 });
    bench.twice(Op::ForgetProcess { name: "orphan".into() });
}

pub fn a_crash_before_the_start_can_be_repeated() {
    let bench = Bench::new();
    let dir = bench.make_dir("processes/half");
    std::fs::write(format!("{dir}/spec.json"), "{\"half\":").unwrap();
    std::fs::write(format!("{dir}/lock"), "").unwrap();
    assert!(bench.host.processes().unwrap().is_empty());
    bench.twice(Op::StopProcess { name: "half".into(), grace_millis: 0 });
    assert_eq!(ran(&bench, shell("half", "echo whole")), (0, "whole\n".into()));
    // A supervisor that cannot be started leaves a name that can be.
    let broken = Host::new(owned(&bench.path("processes"))).unwrap().with_shim("/no/such/program".into());
    let error = broken.perform(&Op::StartProcess(shell("half", "echo whole"))).unwrap_err();
    assert!(error.certain(), "{error}");
    let silent = Host::new(owned(&bench.path("processes"))).unwrap().with_shim("/bin/true".into());
    let error = silent.perform(&Op::StartProcess(shell("half", "echo whole"))).unwrap_err();
    assert!(error.certain() && matches!(error, HostError::Supervisor { .. }), "{error}");
    assert_eq!(ran(&bench, shell("half", "echo whole")), (0, "whole\n".into()));
}

pub fn what_runs_is_not_forgotten() {
    let bench = Bench::new();
    bench.twice(Op::StartProcess(process("busy", &["sleep", "1000"])));
    let error = bench.refused(Op::ForgetProcess { name: "busy".into() });
    assert!(matches!(error, HostError::Busy { .. }), "{error}");
    bench.twice(Op::StopProcess { name: "busy".into(), grace_millis: 20_000 });
    bench.twice(Op::ForgetProcess { name: "busy".into() });
    bench.twice(Op::ForgetProcess { name: "never-was".into() });
}

pub fn the_end_is_heard_without_asking() {
    let bench = Bench::new();
    let news = News::of(&bench.host);
    assert_eq!(bench.host.perform(&Op::StartProcess(shell("a", "exit 1"))).unwrap(), Reply::Done);
    assert_eq!(bench.host.perform(&Op::StartProcess(shell("b", "exit 2"))).unwrap(), Reply::Done);
    assert!(matches!(news.end_of("b"), ProcessState::Exited { code: 2, .. }));
    // One who begins to watch later hears of those that have ended already.
    assert!(matches!(News::of(&bench.host).end_of("a"), ProcessState::Exited { code: 1, .. }));
}

pub fn an_environment_is_given_exactly_and_kept_private() {
    let bench = Bench::new();
    let mut secret = process("secret", &["/usr/bin/env"]);
    secret.environment = BTreeMap::from([("TOKEN".to_owned(), "s3cret with space".to_owned())]);
    let news = News::of(&bench.host);
    bench.twice(Op::StartProcess(secret));
    assert!(matches!(news.end_of("secret"), ProcessState::Exited { code: 0, .. }));
    assert_eq!(log_of(&bench.host, "secret"), "TOKEN=s3cret with space\n");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = bench.dir().join("processes/secret");
    assert_eq!(mode(dir.clone()), 0o700);
    for file in ["spec.json", "log.0", "exit.json", "pid", "lock"] {
        assert_eq!(mode(dir.join(file)), 0o600, "{file}");
    }
}
