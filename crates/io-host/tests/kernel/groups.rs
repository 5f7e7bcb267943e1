//! Volumes for pods: files given to a group, and raw devices in a container.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use control::host::{FailureKind, Op, Process, ProcessDevice, Reply};

use crate::bench::Bench;
use crate::processes::{process, ran, shell};

const GROUP: u32 = 4711;

fn mode(path: &Path) -> (u32, u32) {
    let seen = std::fs::symlink_metadata(path).unwrap();
    (seen.gid(), seen.mode() & 0o7777)
}

fn set(bench: &Bench, path: &str, only_if_root_differs: bool) {
    bench.twice(Op::SetGroup { path: bench.path(path), group: GROUP, only_if_root_differs });
}

fn file(path: &Path, mode: u32) {
    std::fs::write(path, "x").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory with some things in it.
fn tree(bench: &Bench) -> std::path::PathBuf {
    let top = std::path::PathBuf::from(bench.path("v"));
    std::fs::create_dir_all(top.join("d/e")).unwrap();
    for dir in [top.clone(), top.join("d"), top.join("d/e")] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    file(&top.join("d/e/f"), 0o600);
    file(&top.join("run"), 0o4755);
    top
}

// KL-83: group and modes as kubelet sets them, setgid on directories, owners kept; what links lead to is left alone.
pub fn kl_83_everything_is_given_to_the_group_and_links_are_not_followed() {
    let bench = Bench::new();
    let top = tree(&bench);
    let outside = std::path::PathBuf::from(bench.path("outside"));
    file(&outside, 0o600);
    symlink(&outside, top.join("link")).unwrap();
    symlink("/nowhere", top.join("broken")).unwrap();
    set(&bench, "v", false);
    for dir in [top.clone(), top.join("d"), top.join("d/e")] {
        assert_eq!(mode(&dir), (GROUP, 0o2770), "{}", dir.display());
    }
    assert_eq!(mode(&top.join("d/e/f")), (GROUP, 0o660));
    assert_eq!(mode(&top.join("run")), (GROUP, 0o4775), "what is there is added to");
    assert_eq!(mode(&outside), (0, 0o600));
    assert_eq!(std::fs::symlink_metadata(top.join("link")).unwrap().gid(), GROUP, "the link itself");
    assert_eq!(std::fs::symlink_metadata(&top).unwrap().uid(), 0);
}

// KL-84.
pub fn kl_84_a_root_that_is_the_groups_is_taken_for_all_of_it() {
    let bench = Bench::new();
    let top = tree(&bench);
    set(&bench, "v", true);
    assert_eq!(mode(&top.join("d/e/f")), (GROUP, 0o660), "the root was not the group's");
    file(&top.join("new"), 0o600);
    std::os::unix::fs::chown(top.join("new"), None, Some(0)).unwrap();
    set(&bench, "v", true);
    assert_eq!(mode(&top.join("new")), (0, 0o600), "and is now");
    set(&bench, "v", false);
    assert_eq!(mode(&top.join("new")), (GROUP, 0o660));
}

// The root comes last, so that one cut short shows there.
pub fn a_change_that_was_cut_short_is_finished() {
    let bench = Bench::new();
    let top = tree(&bench);
    set(&bench, "v/d", false);
    assert_ne!(mode(&top).0, GROUP);
    set(&bench, "v", true);
    assert_eq!((mode(&top), mode(&top.join("run"))), ((GROUP, 0o2770), (GROUP, 0o4775)));
}

pub fn a_mount_within_is_not_crossed() {
    let bench = Bench::new();
    let top = tree(&bench);
    std::fs::create_dir(top.join("inner")).unwrap();
    std::fs::create_dir(bench.path("other")).unwrap();
    let other = std::path::PathBuf::from(bench.path("other"));
    file(&other.join("f"), 0o600);
    let (source, target) = (bench.path("other"), bench.path("v/inner"));
    bench.twice(Op::Bind { source, target: target.clone(), read_only: false });
    let op = Op::SetGroup { path: bench.path("v"), group: GROUP, only_if_root_differs: false };
    let error = bench.host.perform(&op).unwrap_err().to_string();
    assert!(error.contains("something is mounted in it"), "{error}");
    assert_eq!(mode(&other.join("f")), (0, 0o600));
    bench.twice(Op::Unmount { target });
}

pub fn a_file_is_nothing_to_give() {
    let bench = Bench::new();
    file(Path::new(&bench.path("f")), 0o600);
    let op = |name: &str| Op::SetGroup { path: bench.path(name), group: GROUP, only_if_root_differs: false };
    let kind = |op: Op| control::host::Failure::from(bench.host.perform(&op).unwrap_err()).kind;
    assert_eq!(kind(op("f")), FailureKind::WrongKind);
    assert_eq!(kind(op("none")), FailureKind::Missing);
}

/// A device of 16 MiB, shown at a file as a driver shows it.
fn device(bench: &Bench, read_only: bool) -> (String, String) {
    let image = bench.path("img");
    bench.twice(Op::CreateImage { path: image.clone(), size: 16 << 20 });
    let Reply::Device(device) = bench.host.perform(&Op::AttachLoop { image: image.clone() }).unwrap() else { panic!() };
    let target = bench.path("published");
    bench.twice(Op::MakeFile { path: target.clone() });
    bench.twice(Op::BindDevice { device, target: target.clone(), read_only });
    (image, target)
}

fn given(mut process: Process, source: &str, target: &str, read_only: bool) -> Process {
    process.devices.push(ProcessDevice { source: source.into(), target: target.into(), read_only });
    process
}

// KL-96: in /dev and elsewhere, also for a link to a device; nothing else of the machine's devices is there.
pub fn kl_96_a_process_has_the_device_at_its_path() {
    let bench = Bench::new();
    let (image, source) = device(&bench, false);
    symlink(&source, bench.path("link")).unwrap();
    let write = "echo kept | dd of=/dev/disk/raw conv=notrunc,fsync 2>/dev/null; ls /dev | grep -c loop; \
                 test -b /block; head -c 4 /block";
    let process = given(shell("p1", write), &source, "/dev/disk/raw", false);
    let (code, log) = ran(&bench, given(process, &bench.path("link"), "/block", false));
    assert_eq!((code, log.as_str()), (0, "0\nkept"));
    let other = given(shell("p2", "head -c 4 /dev/xvda; test -e /dev/disk"), &source, "/dev/xvda", false);
    assert_eq!(ran(&bench, other), (1, "kept".to_owned()));
    bench.twice(Op::Unmount { target: source });
    bench.twice(Op::DetachLoop { image });
}

// KL-96: nothing in a mount keeps a device from being written, so the device itself must.
pub fn kl_96_a_device_that_can_be_written_is_not_given_for_reading() {
    for protected in [false, true] {
        let bench = Bench::new();
        let (image, source) = device(&bench, protected);
        let process =
            given(shell("p", "echo no | dd of=/dev/x 2>/dev/null; head -c 1 /dev/x | wc -c"), &source, "/dev/x", true);
        let news = crate::processes::News::of(&bench.host);
        bench.twice(Op::StartProcess(process));
        let told = format!("{:?}", news.end_of("p"));
        match protected {
            true => assert!(told.contains("code: 0"), "{told}"),
            false => assert!(told.contains("published it writable"), "{told}"),
        }
        bench.twice(Op::ForgetProcess { name: "p".into() });
        bench.twice(Op::Unmount { target: source });
        bench.twice(Op::DetachLoop { image });
    }
}

pub fn what_is_no_device_is_not_given() {
    let bench = Bench::new();
    file(Path::new(&bench.path("f")), 0o600);
    for (source, why) in [(bench.path("f"), "is not a block device"), (bench.path("none"), "No such file")] {
        let news = crate::processes::News::of(&bench.host);
        bench.twice(Op::StartProcess(given(process("p", &["/bin/true"]), &source, "/dev/x", false)));
        let told = format!("{:?}", news.end_of("p"));
        assert!(told.contains(why), "{told}");
        bench.twice(Op::ForgetProcess { name: "p".into() });
    }
}
