//! What the node itself puts into volumes, and parts of volumes, seen by processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use control::host::{HostPathKind, Op, Process, ProcessMount, Propagation, Reply, ShownFile};
use io_host::{HostError, mounts_beneath};

use crate::bench::Bench;
use crate::processes::{News, log_has, not_started, process, ran, seeing, shell, until};

fn files(of: &[(&str, &str, u32)]) -> BTreeMap<String, ShownFile> {
    let file = |(name, text, mode): &(&str, &str, u32)| {
        let bytes = text.as_bytes().to_vec().into();
        ((*name).to_owned(), ShownFile { bytes, mode: *mode, user: None })
    };
    of.iter().map(file).collect()
}

fn part(mut process: Process, mount: ProcessMount) -> Process {
    process.mounts.push(mount);
    process
}

pub fn files_are_shown_all_at_once_in_the_layout_of_kubernetes() {
    let bench = Bench::new();
    let path = bench.path("v/w");
    let show = |of: &[(&str, &str, u32)]| Op::ShowFiles { path: path.clone(), files: files(of), group: None };
    bench.twice(show(&[("a", "1", 0o400), ("dir/b", "2", 0o644)]));
    let at = |name: &str| Path::new(&path).join(name);
    assert_eq!(fs::read_link(at("a")).unwrap().to_str(), Some("..data/a"));
    assert_eq!(fs::read_link(at("dir")).unwrap().to_str(), Some("..data/dir"));
    assert_eq!(
        (fs::read_to_string(at("a")).unwrap(), fs::read_to_string(at("dir/b")).unwrap()),
        ("1".into(), "2".into())
    );
    assert_eq!(fs::metadata(at("a")).unwrap().mode() & 0o777, 0o400);
    let first = fs::read_link(at("..data")).unwrap();
    bench.twice(show(&[("a", "1", 0o400), ("dir/b", "2", 0o644)]));
    assert_eq!(fs::read_link(at("..data")).unwrap(), first, "what is shown already is left alone");
    bench.twice(show(&[("a", "3", 0o600), ("c", "", 0o644)]));
    let mut names: Vec<String> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let second = fs::read_link(at("..data")).unwrap();
    assert_eq!(names, [second.to_str().unwrap(), "..data", "a", "c"]);
    assert_eq!(
        (fs::read_to_string(at("a")).unwrap().as_str(), fs::metadata(at("a")).unwrap().mode() & 0o777),
        ("3", 0o600)
    );
    // A mode or an owner alone is a change, too.
    bench.twice(Op::ShowFiles { path: path.clone(), files: files(&[("a", "3", 0o600)]), group: Some(4321) });
    let seen = fs::metadata(at("a")).unwrap();
    assert_eq!((seen.gid(), seen.mode() & 0o777), (4321, 0o640));
    for bad in ["..x", "../x", "a/../b", "/x", "a//b", "."] {
        assert!(matches!(bench.refused(show(&[(bad, "", 0o644)])), HostError::Path { .. }), "{bad}");
    }
    bench.twice(Op::RemoveTree { path: bench.path("v") });
}

pub fn nobody_sees_half_a_change() {
    let bench = Bench::new();
    let path = bench.path("v");
    let show = |text: &str| Op::ShowFiles {
        path: path.clone(),
        files: files(&[("one", text, 0o644), ("two", text, 0o644)]),
        group: None,
    };
    bench.twice(show("0"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..200).for_each(|number| drop(bench.host.perform(&show(&number.to_string())).unwrap()));
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            // Whoever opens the directory once reads one state from it.
            let Ok(dir) = fs::canonicalize(Path::new(&path).join("..data")) else { continue };
            let both = (fs::read_to_string(dir.join("one")), fs::read_to_string(dir.join("two")));
            if let (Ok(one), Ok(two)) = both {
                assert_eq!(one, two);
            }
        }
    });
}

pub fn a_volume_in_memory_has_its_size_and_is_never_on_a_disk() {
    let bench = Bench::new();
    let target = bench.path("m/n");
    bench.twice(Op::MountMemory { target: target.clone(), size: Some(1 << 20), mode: 0o777 });
    let entry = mounts_beneath(&target).unwrap().remove(0);
    assert_eq!((entry.fstype.as_str(), entry.read_only), ("tmpfs", false));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o777);
    let script = "head -c 900000 /dev/zero > /v/x && ! head -c 900000 /dev/zero 2>/dev/null > /v/y";
    assert_eq!(ran(&bench, seeing(shell("full", script), &target, "/v", false)).0, 0, "no more than its size");
    let other = bench.make_dir("other");
    bench.twice(Op::Bind { source: bench.make_dir("from"), target: other.clone(), read_only: false });
    let refused = bench.refused(Op::MountMemory { target: other.clone(), size: None, mode: 0o755 });
    assert!(matches!(refused, HostError::MountedOtherwise { .. }), "{refused}");
    bench.twice(Op::Unmount { target: other });
    bench.twice(Op::Unmount { target });
}

pub fn places_of_the_machine_are_what_they_should_be() {
    let bench = Bench::new();
    let ensure = |name: &str, kind| Op::HostPath { path: bench.path(name), kind };
    for (name, kind) in [("d/e", HostPathKind::DirectoryOrCreate), ("any", HostPathKind::Any)] {
        bench.twice(ensure(name, kind));
        bench.twice(ensure(name, HostPathKind::Directory));
    }
    bench.twice(ensure("d/f", HostPathKind::FileOrCreate));
    bench.twice(ensure("d/f", HostPathKind::File));
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("s")).unwrap();
    bench.twice(ensure("s", HostPathKind::Socket));
    bench.twice(Op::HostPath { path: "/dev/null".into(), kind: HostPathKind::CharDevice });
    for (name, kind) in [
        ("d/f", HostPathKind::Directory),
        ("d", HostPathKind::File),
        ("d", HostPathKind::Socket),
        ("d", HostPathKind::CharDevice),
        ("d", HostPathKind::BlockDevice),
    ] {
        assert!(matches!(bench.refused(ensure(name, kind)), HostError::WrongKind { .. }), "{name} {kind:?}");
    }
    for kind in [HostPathKind::Directory, HostPathKind::File, HostPathKind::Socket, HostPathKind::BlockDevice] {
        assert!(matches!(bench.refused(ensure("none", kind)), HostError::Missing { .. }), "{kind:?}");
    }
}

pub fn a_tree_is_measured_without_leaving_it() {
    let bench = Bench::new();
    let dir = bench.make_dir("t/deep");
    fs::write(format!("{dir}/a"), vec![1; 100_000]).unwrap();
    fs::hard_link(format!("{dir}/a"), format!("{dir}/b")).unwrap();
    symlink("/usr", format!("{dir}/out")).unwrap();
    let Reply::Usage(usage) = bench.twice(Op::MeasureTree { path: bench.path("t") }) else { panic!("no usage") };
    assert!((100_000..1_000_000).contains(&usage.bytes_used), "{usage:?}");
    assert_eq!(bench.twice(Op::MeasureTree { path: bench.path("none") }), Reply::Usage(Default::default()));
}

// KL-51: what a process sees of a volume is mounted for it alone, so that nothing is left to clean up on the machine.
pub fn a_part_of_a_volume_is_all_a_process_sees() {
    let bench = Bench::new();
    let volume = bench.mounted("v");
    let see = |script: &str, sub_path: &str, target: &str| {
        let mount = ProcessMount {
            source: volume.target.clone(),
            target: target.into(),
            sub_path: sub_path.into(),
            ..ProcessMount::default()
        };
        part(shell("part", script), mount)
    };
    assert_eq!(
        ran(&bench, see("echo here > /data/x && ls -A /data/..data 2>/dev/null; ls /data", "a/b", "/data")).1,
        "x\n"
    );
    assert_eq!(fs::read_to_string(format!("{}/a/b/x", volume.target)).unwrap(), "here\n");
    // A file, at a place that does not exist and at one that does.
    for target in ["/data/file", "/etc/hostname"] {
        assert_eq!(ran(&bench, see(&format!("cat {target}"), "a/b/x", target)).1, "here\n", "{target}");
    }
    symlink("a/b", format!("{}/inner", volume.target)).unwrap();
    assert_eq!(ran(&bench, see("cat /data/x", "inner", "/data")).1, "here\n", "links within the volume are followed");
    for (name, to) in [("etc", "/etc"), ("up", "../../../../etc"), ("magic", "/proc/1/root")] {
        symlink(to, format!("{}/{name}", volume.target)).unwrap();
        let why = not_started(&bench, see("cat /data/passwd", name, "/data"));
        assert!(why.contains("leads out of the volume through a link") || why.contains("cannot be used"), "{why}");
    }
    for bad in ["/etc", "../x"] {
        let refused = bench.refused(Op::StartProcess(see("true", bad, "/data")));
        assert!(matches!(refused, HostError::ProcessSpec { .. }), "{refused}");
    }
    bench.remove(&volume);
}

/// A neighbour on the same volume turns the directory into a link to the machine's and back, as fast as he can.
pub fn a_part_that_is_swapped_meanwhile_never_shows_the_machine() {
    let bench = Bench::new();
    let dir = bench.make_dir("v");
    fs::create_dir(format!("{dir}/real")).unwrap();
    symlink("/etc", format!("{dir}/link")).unwrap();
    let news = News::of(&bench.host);
    let script = "mv -T /v/real /v/x && mv -T /v/link /v/real && mv -T /v/x /v/link; ";
    let racer = shell("racer", &format!("while :; do {script} done"));
    bench.twice(Op::StartProcess(seeing(racer, &dir, "/v", false)));
    for round in 0..20 {
        let mount = ProcessMount {
            source: dir.clone(),
            target: "/data".into(),
            sub_path: "real".into(),
            ..ProcessMount::default()
        };
        let name = format!("victim-{round}");
        let mut victim = part(process(&name, &["/bin/sh", "-c", "test ! -e /data/passwd"]), mount);
        victim.sandbox.pod = String::new();
        bench.host.perform(&Op::StartProcess(victim)).unwrap();
        match news.end_of(&name) {
            control::host::ProcessState::Exited { code, .. } => assert_eq!(code, 0, "it saw the machine's /etc"),
            control::host::ProcessState::NotStarted(_) => {}
            other => panic!("{other:?}"),
        }
    }
    bench.twice(Op::StopProcess { name: "racer".into(), grace_millis: 0 });
}

pub fn a_place_of_the_machine_is_seen_with_its_links_and_files() {
    let bench = Bench::new();
    let dir = bench.make_dir("host");
    fs::write(format!("{dir}/file"), "text").unwrap();
    symlink(&dir, bench.path("link")).unwrap();
    let see = |script: &str, source: String, target: &str| {
        let mount = ProcessMount { source, target: target.into(), of_machine: true, ..ProcessMount::default() };
        part(shell("host", script), mount)
    };
    assert_eq!(ran(&bench, see("cat /h/file", bench.path("link"), "/h")).1, "text");
    assert_eq!(ran(&bench, see("cat /h", format!("{dir}/file"), "/h")).1, "text");
    let why = not_started(&bench, see("true", bench.path("none"), "/h"));
    assert!(why.contains("cannot be used for /h"), "{why}");
}

pub fn later_mounts_travel_as_asked() {
    let bench = Bench::new();
    let dir = bench.make_dir("shared");
    let inner = bench.make_dir("shared/inner");
    bench.twice(Op::Bind { source: dir.clone(), target: dir.clone(), read_only: false });
    crate::bench::outsider("mount", &["--make-shared", &dir]);
    for (number, propagation) in [(0, Propagation::None), (1, Propagation::HostToContainer)] {
        let mount = ProcessMount {
            source: dir.clone(),
            target: "/s".into(),
            of_machine: true,
            propagation,
            ..ProcessMount::default()
        };
        let name = format!("waits-{number}");
        let script = "echo ready; until [ -e /s/go ]; do sleep 0.05; done; ls /s/inner; echo end";
        bench.twice(Op::StartProcess(part(process(&name, &["/bin/sh", "-c", script]), mount)));
        until("the process runs", || log_has(&bench.host, &name, "ready"));
        crate::bench::outsider("mount", &["-t", "tmpfs", "none", &inner]);
        fs::write(format!("{inner}/mounted"), "").unwrap();
        fs::write(format!("{dir}/go"), "").unwrap();
        until("the process ends", || log_has(&bench.host, &name, "end"));
        let seen = log_has(&bench.host, &name, "mounted");
        assert_eq!(seen, propagation == Propagation::HostToContainer, "{propagation:?}");
        bench.twice(Op::StopProcess { name: name.clone(), grace_millis: 0 });
        bench.twice(Op::ForgetProcess { name });
        crate::bench::outsider("umount", &[&inner]);
        fs::remove_file(format!("{dir}/go")).unwrap();
    }
    let mount = ProcessMount {
        source: dir.clone(),
        target: "/s".into(),
        of_machine: true,
        propagation: Propagation::Bidirectional,
        ..ProcessMount::default()
    };
    let mut mounter = part(shell("mounter", "mount -t tmpfs none /s/inner && : > /s/inner/from-inside"), mount);
    mounter.sandbox.privileged = true;
    mounter.sandbox.capabilities = control::host::LinuxCapabilities::ALL;
    assert_eq!(ran(&bench, mounter).0, 0);
    assert!(Path::new(&format!("{inner}/from-inside")).exists(), "the machine sees what the process mounted");
    crate::bench::outsider("umount", &[&inner]);
    bench.twice(Op::Unmount { target: dir });
}

pub fn what_is_confidential_reaches_the_process_and_no_disk() {
    let bench = Bench::new();
    let mut process = shell("quiet", "echo \"$SECRET\" | tr a-z A-Z; exec sleep 1000");
    process.environment.insert("SECRET".into(), "canary-in-env".into());
    process.command.push("canary-in-command".into());
    process.confidential = true;
    assert!(!format!("{process:?}").contains("canary"), "{process:?}");
    bench.twice(Op::StartProcess(process.clone()));
    until("it has its environment", || log_has(&bench.host, "quiet", "CANARY-IN-ENV"));
    let mut left = vec![bench.dir().to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => left.push(entry.path()),
                kind if kind.is_file() => {
                    let bytes = fs::read(entry.path()).unwrap();
                    let found = String::from_utf8_lossy(&bytes).contains("canary");
                    assert!(!found, "{}", entry.path().display());
                }
                _link => {}
            }
        }
    }
    // What a secret says may have changed: it is the same process all the same.
    process.environment.insert("SECRET".into(), "another".into());
    bench.twice(Op::StartProcess(process));
    bench.twice(Op::StopProcess { name: "quiet".into(), grace_millis: 0 });
}
