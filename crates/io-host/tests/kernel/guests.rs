//! What keeps a process apart from the machine (H1), seen from inside it.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use control::host::{LinuxCapabilities, Op, Process, ProcessState, Sandbox};
use io_host::Host;

use crate::bench::Bench;
use crate::processes::{News, log_has, log_of, not_started, process, ran, seeing, shell, until};

fn with(mut process: Process, change: impl FnOnce(&mut Sandbox)) -> Process {
    change(&mut process.sandbox);
    process
}

/// A line of /proc/self/status as the process sees it.
#[track_caller]
fn status(bench: &Bench, process_with: impl FnOnce(&mut Sandbox), field: &str) -> String {
    let script = format!("sed -n 's/^{field}:[[:space:]]*//p' /proc/self/status");
    let (code, log) = ran(bench, with(shell("status", &script), process_with));
    assert_eq!(code, 0, "{log}");
    log.trim().to_owned()
}

pub fn a_guest_has_the_default_capabilities_and_a_filter() {
    let bench = Bench::new();
    for (field, expected) in [
        ("CapBnd", "00000000a80425fb"),
        ("CapEff", "00000000a80425fb"),
        ("CapInh", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("Seccomp", "2"),
        ("NoNewPrivs", "0"),
    ] {
        assert_eq!(status(&bench, |_| {}, field), expected, "{field}");
    }
    assert_eq!(status(&bench, |sandbox| sandbox.seccomp = false, "Seccomp"), "0");
    assert_eq!(status(&bench, |sandbox| sandbox.no_new_privileges = true, "NoNewPrivs"), "1");
}

pub fn a_guest_is_the_user_it_is_asked_to_be() {
    let bench = Bench::new();
    let user = |sandbox: &mut Sandbox| {
        sandbox.user = 65_000;
        sandbox.group = Some(65_001);
        sandbox.supplemental_groups = vec![65_002, 65_003];
    };
    let (code, log) = ran(&bench, with(shell("id", "id -u; id -g; id -G; touch /tmp/x && stat -c %u /tmp/x"), user));
    assert_eq!((code, log.as_str()), (0, "65000\n65001\n65001 65002 65003\n65000\n"));
    assert_eq!(status(&bench, user, "CapEff"), "0000000000000000");
    // A setuid program of the machine gives nothing either.
    assert_eq!(ran(&bench, with(shell("su", "su -c 'id -u' root </dev/null"), user)).0, 1);
}

pub fn capabilities_follow_what_is_asked() {
    let bench = Bench::new();
    let none = |sandbox: &mut Sandbox| sandbox.capabilities = LinuxCapabilities::NONE;
    assert_eq!(status(&bench, none, "CapBnd"), "0000000000000000");
    assert_eq!(ran(&bench, with(shell("chown", "touch /tmp/x; chown 7 /tmp/x"), none)).0, 1);
    let admin = |sandbox: &mut Sandbox| {
        sandbox.capabilities = LinuxCapabilities::DEFAULT.with(LinuxCapabilities::named("SYS_ADMIN").unwrap());
    };
    assert_eq!(ran(&bench, shell("mount", "mount -t tmpfs none /mnt")).0, 32);
    assert_eq!(ran(&bench, with(shell("mount", "mount -t tmpfs none /mnt && unshare -m true"), admin)).0, 0);
}

pub fn what_leads_to_the_machine_is_not_there() {
    let bench = Bench::new();
    std::fs::write(bench.path("secret"), "x").unwrap();
    let there = format!("{} /etc/shadow /var/lib/dpkg /dev/loop-control /dev/mem /boot", bench.path("secret"));
    assert_eq!(ran(&bench, shell("ls", &format!("for f in {there}; do test -e $f && echo $f; done; true"))).1, "");
    let (_, log) = ran(&bench, shell("dev", "ls /dev; ls -A /root /home /run"));
    let devices = "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";
    assert_eq!(log, format!("{devices}/home:\n\n/root:\n\n/run:\n"));
    // A device node that it makes itself opens nothing, wherever it makes it.
    let volume = bench.make_dir("volume");
    let make = "mknod /tmp/n c 1 3; mknod /v/n c 1 3; cat /tmp/n || cat /v/n";
    assert_eq!(ran(&bench, seeing(shell("mknod", make), &volume, "/v", false)).0, 1);
    for script in [
        "echo x > /proc/sys/kernel/core_pattern",
        "echo h > /proc/sysrq-trigger",
        "mkdir /sys/fs/cgroup/x",
        "umount /proc/sys",
        "mount -o remount,rw /",
        "dd if=/proc/kcore of=/tmp/k count=1 && test -s /tmp/k",
        "unshare -U true",
        "unshare -n true",
        "hostname x",
        "chmod 600 /dev/null",
        "readlink /proc/1/fd/3 || readlink /proc/1/fd/4",
        "cat /proc/1/environ",
        "tail -n +3 /proc/net/dev | grep -v ' lo:'",
    ] {
        assert_ne!(ran(&bench, shell("attempt", script)).0, 0, "{script}");
    }
}

pub fn the_first_process_gives_nothing_away() {
    let bench = Bench::new();
    // It gives up its rights right after it has started the command.
    let script = "until grep -q '^CapEff:.*020$' /proc/1/status; do sleep 0.01; done; \
                  sed -n 's/^CapEff:[[:space:]]*//p; s/^CapBnd:[[:space:]]*//p' /proc/1/status; readlink /proc/1/exe; \
                  cat /proc/1/environ; readlink /proc/1/fd/*; echo end";
    let (_, log) = ran(&bench, shell("first", &format!("({script}) 2>/dev/null")));
    assert_eq!(log, "0000000000000020\n0000000000000000\nend\n");
}

pub fn a_program_of_ours_cannot_be_written_through_a_guest() {
    let bench = Bench::new();
    // The command is our own program, which then ends with an error; a moment later its file is not busy any more.
    let own = process("own", &["/proc/self/exe", "no-such-word"]);
    let before = std::fs::metadata(std::env::current_exe().unwrap()).unwrap().len();
    let _ = ran(&bench, own);
    let script = "exec 3</proc/self/exe; (sleep 0.1; : >> /proc/self/fd/3) && echo written; true";
    assert!(!ran(&bench, shell("write", script)).1.contains("written"));
    assert_eq!(std::fs::metadata(std::env::current_exe().unwrap()).unwrap().len(), before);
}

pub fn containers_of_a_pod_share_network_and_name() {
    let bench = Bench::new();
    let member = |name: &str, script: &str| {
        with(shell(name, script), |sandbox| {
            sandbox.pod = "pod".into();
            sandbox.hostname = "together".into();
        })
    };
    let ids = "readlink /proc/self/ns/net /proc/self/ns/ipc /proc/self/ns/uts; hostname";
    bench.host.perform(&Op::StartProcess(member("pod_a", &format!("{ids}; echo ready; sleep 1000")))).unwrap();
    until("the first container runs", || log_has(&bench.host, "pod_a", "ready"));
    let (_, second) = ran(&bench, member("pod_b", ids));
    let first = log_of(&bench.host, "pod_a");
    assert_eq!(first, format!("{second}ready\n"));
    assert!(second.ends_with("\ntogether\n"), "{second}");
    let (_, stranger) = ran(&bench, shell("stranger", ids));
    assert!(stranger.lines().take(3).all(|line| !second.contains(line)), "{stranger} {second}");
    let (_, own) = ran(&bench, with(shell("own", ids), |sandbox| sandbox.host_network = true));
    let machine = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(own.lines().next(), machine.to_str());
    bench.host.perform(&Op::StopProcess { name: "pod_a".into(), grace_millis: 0 }).unwrap();
}

pub fn limits_are_enforced_and_groups_go() {
    let bench = Bench::new();
    let small = |sandbox: &mut Sandbox| sandbox.limits.memory = Some(16 << 20);
    if !Path::new("/sys/fs/cgroup/memory").exists() && !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        let why = not_started(&bench, with(process("small", &["true"]), small));
        assert!(why.contains("its limit of memory cannot be enforced"), "{why}");
        return;
    }
    let fill = "head -c 64M /dev/zero > /tmp/fill; echo survived";
    let (_, log) = ran(&bench, with(shell("small", fill), small));
    assert!(!log.contains("survived") || log.contains("Killed"), "{log}");
    assert_eq!(ran(&bench, shell("large", fill)), (0, "survived\n".into()));
    for group in ["pids/longshore/small", "memory/longshore/small", "longshore/small", "pids/longshore/large"] {
        assert!(!Path::new("/sys/fs/cgroup").join(group).exists(), "{group}");
    }
    assert_eq!(ran(&bench, shell("files", "ulimit -n; ulimit -c")).1, "1024\n0\n");
}

pub fn a_root_may_be_written_in_memory() {
    let bench = Bench::new();
    let writable = |sandbox: &mut Sandbox| sandbox.read_only_root = false;
    let script = "echo x > /etc/io-host-test && echo y > /new && cat /etc/io-host-test /new";
    assert_eq!(ran(&bench, with(shell("layer", script), writable)), (0, "x\ny\n".into()));
    assert!(!Path::new("/etc/io-host-test").exists() && !Path::new("/new").exists());
    assert_ne!(ran(&bench, shell("plain", script)).0, 0);
}

pub fn a_privileged_process_has_the_devices() {
    let bench = Bench::new();
    let privileged = |sandbox: &mut Sandbox| {
        sandbox.privileged = true;
        sandbox.capabilities = LinuxCapabilities::ALL;
    };
    let script = "test -e /dev/loop-control && mount -t tmpfs none /mnt && test -w /proc/sys/kernel/core_pattern";
    assert_eq!(ran(&bench, with(shell("privileged", script), privileged)).0, 0);
    assert_eq!(status(&bench, privileged, "Seccomp"), "0");
}

pub fn descriptors_of_the_starter_stay_with_it() {
    let bench = Bench::new();
    let secret = File::create(bench.path("open")).unwrap();
    // As a shell leaves one to what it starts.
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let (_, log) = ran(&bench, shell("fds", "ls -l /proc/$$/fd"));
    assert!(!log.contains(&bench.path("open")), "descriptor {} was passed on: {log}", secret.as_raw_fd());
}

/// What the test below starts as somebody who is not root: one process, whose end and log are printed.
pub fn run_without_root(state_dir: &str, user: &str) {
    let host = Host::new(PathBuf::from(state_dir)).unwrap();
    let news = News::of(&host);
    let script = "id -u; id -g; sed -n 's/^Seccomp:[[:space:]]*//p' /proc/self/status; ls /dev | wc -l; hostname; \
                  ls /home; mount -t tmpfs none /mnt 2>/dev/null || echo confined";
    let asked = with(shell("mine", script), |sandbox| {
        sandbox.pod = "pod".into();
        sandbox.hostname = "guest".into();
        sandbox.user = user.parse().unwrap();
    });
    host.perform(&Op::StartProcess(asked)).unwrap();
    match news.end_of("mine") {
        ProcessState::NotStarted(why) => println!("{why}"),
        _ => print!("{}", log_of(&host, "mine")),
    }
}

pub fn without_root_a_process_has_a_user_namespace() {
    let bench = Bench::new();
    if std::fs::read_to_string("/proc/sys/user/max_user_namespaces").is_ok_and(|most| most.trim() == "0") {
        println!("not run: this machine has no user namespaces");
        return;
    }
    // Where somebody who is not root can read it.
    let program = bench.path("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(bench.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |name: &str, user: &str| {
        let state = bench.make_dir(name);
        chown(&state, Some(65_534), Some(65_534)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program, "rootless", &state, user]);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    };
    assert_eq!(run("as-root", "0"), "0\n0\n2\n14\nguest\nconfined\n");
    let other = run("as-other", "1000");
    assert!(other.contains("does not run as root") && other.contains("runAsUser"), "{other}");
}
