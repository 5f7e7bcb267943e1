//! What cannot be shown on a real machine: the loss of power, broken disks, and that one history has one outcome.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use control::host::{Copying, FailureKind, Machine, Op, Process, ProcessState, Reply, Usage};

use crate::{Kernel, KernelFault};

const MIB: u64 = 1 << 20;

fn done(kernel: &mut Kernel, op: Op) -> Reply {
    kernel.perform(&op).unwrap_or_else(|failure| panic!("{op:?}: {failure}"))
}

fn image(path: &str) -> Op {
    Op::CreateImage { path: path.into(), size: 64 * MIB }
}

fn mount(device: &str, target: &str) -> Op {
    Op::Mount { device: device.into(), target: target.into(), fstype: "ext4".into(), flags: vec![], read_only: false }
}

/// An image at `/v.img` with ext4 on it, mounted at `/stage`.
fn mounted() -> Kernel {
    let mut kernel = Kernel::new(false);
    done(&mut kernel, image("/v.img"));
    let Reply::Device(device) = done(&mut kernel, Op::AttachLoop { image: "/v.img".into() }) else { panic!() };
    done(&mut kernel, Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    done(&mut kernel, Op::MakeDir { path: "/stage".into() });
    done(&mut kernel, mount(&device, "/stage"));
    kernel
}

fn usage(kernel: &mut Kernel, path: &str) -> Usage {
    match done(kernel, Op::Measure { path: path.into() }) {
        Reply::Usage(usage) => usage,
        other => panic!("{other:?}"),
    }
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn hash(kernel: &Kernel) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    kernel.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn one_history_has_one_outcome_and_what_is_undone_leaves_no_trace() {
    let (first, second) = (mounted(), mounted());
    assert_eq!((&first, hash(&first)), (&second, hash(&second)));
    let mut kernel = first.clone();
    done(&mut kernel, Op::MakeDir { path: "/published".into() });
    let bind = Op::Bind { source: "/stage".into(), target: "/published".into(), read_only: false };
    done(&mut kernel, bind.clone());
    assert_ne!(kernel, first);
    done(&mut kernel, Op::Unmount { target: "/published".into() });
    done(&mut kernel, Op::RemoveDir { path: "/published".into() });
    assert_eq!((&kernel, hash(&kernel)), (&first, hash(&first)));
    // A refused operation changes nothing.
    assert!(kernel.perform(&bind).is_err());
    assert_eq!(kernel, first);
}

#[test]
fn power_lost_takes_mounts_loops_and_what_was_not_synced() {
    let mut kernel = mounted();
    done(&mut kernel, Op::WriteFile { path: "/record".into(), bytes: b"kept".to_vec() });
    kernel.user_writes("/stage/loose", b"user").unwrap();
    done(&mut kernel, Op::MakeDir { path: "/stage/dir".into() });
    kernel.user_writes("/stage/dir/gone", b"user").unwrap();
    done(&mut kernel, Op::WriteFile { path: "/stage/synced".into(), bytes: b"kept".to_vec() });
    let sleep = Process {
        name: "p".into(),
        command: vec!["sleep".into()],
        working_dir: String::new(),
        confidential: false,
        environment: Default::default(),
        mounts: vec![],
        devices: Default::default(),
        sandbox: Default::default(),
    };
    done(&mut kernel, Op::StartProcess(sleep));
    kernel.lose_power();
    assert_eq!(kernel.loops().unwrap(), []);
    assert_eq!(kernel.mounts().unwrap().len(), 2, "the root and /dev");
    assert_eq!(kernel.processes().unwrap()["p"], ProcessState::Lost);
    assert_eq!(kernel.read_file("/record").unwrap().unwrap(), b"kept");
    assert_eq!(kernel.list_dir("/stage").unwrap(), Vec::<String>::new());
    // The image is enough to come back to what was durable in it.
    let Reply::Device(device) = done(&mut kernel, Op::AttachLoop { image: "/v.img".into() }) else { panic!() };
    done(&mut kernel, mount(&device, "/stage"));
    assert_eq!(kernel.list_dir("/stage").unwrap(), ["dir", "loose", "lost+found", "synced"]);
    assert_eq!(kernel.list_dir("/stage/dir").unwrap(), Vec::<String>::new());
    assert_eq!(kernel.read_file("/stage/synced").unwrap().unwrap(), b"kept");
    assert_eq!(kernel.read_file("/stage/loose").unwrap().unwrap(), b"", "its name was synced with the directory");
}

#[test]
fn what_was_unmounted_or_held_still_is_durable() {
    let mut kernel = mounted();
    kernel.user_writes("/stage/file", b"user").unwrap();
    let copy = |to: &str, still: Option<&str>| Op::CopyTogether {
        copies: vec![Copying { from: "/v.img".into(), to: to.into(), still: still.map(ToString::to_string) }],
    };
    done(&mut kernel, copy("/torn.img", None));
    done(&mut kernel, copy("/whole.img", Some("/stage")));
    kernel.user_writes("/stage/later", b"user").unwrap();
    done(&mut kernel, Op::Unmount { target: "/stage".into() });
    kernel.lose_power();
    for (image, files) in [
        ("/torn.img", &["lost+found"][..]),
        ("/whole.img", &["file", "lost+found"]),
        ("/v.img", &["file", "later", "lost+found"]),
    ] {
        let Reply::Device(device) = done(&mut kernel, Op::AttachLoop { image: image.into() }) else { panic!() };
        done(&mut kernel, mount(&device, "/stage"));
        assert_eq!(kernel.list_dir("/stage").unwrap(), files, "{image}");
        done(&mut kernel, Op::Unmount { target: "/stage".into() });
    }
}

#[test]
fn a_full_disk_refuses_and_changes_nothing() {
    let mut kernel = mounted();
    kernel.break_at("/pool", KernelFault::NoSpace);
    let before = kernel.clone();
    let failure = kernel.perform(&Op::WriteFile { path: "/pool/record".into(), bytes: vec![1] }).unwrap_err();
    assert!(failure.kind == FailureKind::NoSpace && failure.certain);
    assert_eq!(kernel, before);
    // What somebody uses is refused as well.
    kernel.break_at("/used", KernelFault::Busy);
    let failure = kernel.perform(&Op::RemoveDir { path: "/used".into() }).unwrap_err();
    assert!(failure.kind == FailureKind::Busy && failure.certain);
    kernel.mend("/used");
    assert_eq!(kernel, before);
    // Elsewhere there is room, and what frees room is done.
    done(&mut kernel, Op::WriteFile { path: "/record".into(), bytes: vec![1] });
    done(&mut kernel, Op::RemoveFile { path: "/pool/record".into() });
    kernel.mend("/pool");
    done(&mut kernel, Op::WriteFile { path: "/pool/record".into(), bytes: vec![1] });
}

#[test]
fn a_broken_disk_and_a_hung_filesystem_leave_it_open_what_was_done() {
    for (fault, kind) in [
        (KernelFault::Io { done: false }, FailureKind::Kernel),
        (KernelFault::Io { done: true }, FailureKind::Kernel),
        (KernelFault::Hung { done: false }, FailureKind::Hung),
        (KernelFault::Hung { done: true }, FailureKind::Hung),
    ] {
        let mut kernel = mounted();
        kernel.break_at("/stage", fault);
        let failure = kernel.perform(&Op::Unmount { target: "/stage".into() }).unwrap_err();
        assert!(failure.kind == kind && !failure.certain, "{fault:?}: {failure}");
        let happened = matches!(fault, KernelFault::Io { done: true } | KernelFault::Hung { done: true });
        assert_eq!(kernel.mounts().unwrap().len(), if happened { 2 } else { 3 });
        // Others go on.
        done(&mut kernel, Op::MakeDir { path: "/other".into() });
        kernel.mend("/stage");
        done(&mut kernel, Op::Unmount { target: "/stage".into() });
    }
}

#[test]
fn deleted_files_take_room_until_it_is_given_back() {
    let mut kernel = mounted();
    let empty = usage(&mut kernel, "/v.img").bytes_used;
    kernel.user_writes("/stage/big", &vec![1; 5 << 20]).unwrap();
    let full = usage(&mut kernel, "/v.img").bytes_used;
    assert!(full >= empty + 5 * MIB);
    kernel.user_removes("/stage/big").unwrap();
    assert_eq!(usage(&mut kernel, "/v.img").bytes_used, full);
    done(&mut kernel, Op::Discard { path: "/stage".into() });
    assert_eq!(usage(&mut kernel, "/v.img").bytes_used, empty);
}

#[test]
fn a_shared_mount_shows_its_copies_what_is_mounted_in_it() {
    for shared in [false, true] {
        let mut kernel = Kernel::new(shared);
        for path in ["/pods/volume", "/container", "/source"] {
            done(&mut kernel, Op::MakeDir { path: path.into() });
        }
        let bind =
            |source: &str, target: &str| Op::Bind { source: source.into(), target: target.into(), read_only: false };
        done(&mut kernel, bind("/pods", "/container"));
        done(&mut kernel, bind("/source", "/pods/volume"));
        kernel.user_writes("/source/file", b"x").unwrap();
        let seen = kernel.list_dir("/container/volume").unwrap();
        assert_eq!(seen, if shared { vec!["file"] } else { vec![] });
        done(&mut kernel, Op::Unmount { target: "/pods/volume".into() });
        assert_eq!(kernel.mounts().unwrap().len(), 3);
    }
}
