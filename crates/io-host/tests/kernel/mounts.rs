//! Mounts, binds, the mount table.

use std::fs::File;

use control::host::Op;
use io_host::{HostError, is_mount_root, mounts, mounts_beneath};

use crate::bench::{Bench, mount, outsider, owned};
use crate::hung::Silent;

fn bind(source: &str, target: &str, read_only: bool) -> Op {
    Op::Bind { source: source.into(), target: target.into(), read_only }
}

pub fn a_bind_within_one_filesystem_is_seen() {
    // reliability 6: device numbers do not show it
    let bench = Bench::new();
    let (source, target) = (bench.make_dir("source"), bench.make_dir("target"));
    assert!(!is_mount_root(&owned(&target)).unwrap());
    bench.twice(bind(&source, &target, false));
    assert!(is_mount_root(&owned(&target)).unwrap());
    assert!(!is_mount_root(&owned(&bench.path("none"))).unwrap());
    assert_eq!(mounts_beneath(&target).unwrap().len(), 1, "bound once");
    bench.twice(Op::Unmount { target: target.clone() });
    assert!(!is_mount_root(&owned(&target)).unwrap());
}

pub fn another_mount_at_the_target_is_refused() {
    // reliability 112: at most one mount per target
    let bench = Bench::new();
    let (a, b) = (bench.mounted("a"), bench.mounted("b"));
    let target = bench.make_dir("target");
    let other_device = bench.refused(mount(&a.device, &b.target));
    assert!(matches!(other_device, HostError::MountedOtherwise { .. }), "{other_device}");
    assert!(other_device.to_string().contains(&b.device), "{other_device}");
    let read_only = Op::Mount {
        device: a.device.clone(),
        target: a.target.clone(),
        fstype: "ext4".into(),
        flags: vec![],
        read_only: true,
    };
    assert!(matches!(bench.refused(read_only), HostError::MountedOtherwise { .. }));

    bench.twice(bind(&a.target, &target, false));
    for other in [bind(&b.target, &target, false), bind(&a.target, &target, true), mount(&b.device, &target)] {
        assert!(matches!(bench.refused(other), HostError::MountedOtherwise { .. }));
    }
    assert_eq!(mounts_beneath(&target).unwrap().len(), 1);
    bench.twice(Op::Unmount { target });
    bench.remove(&a);
    bench.remove(&b);
}

pub fn flags_come_from_the_list() {
    // reliability 124
    let bench = Bench::new();
    let (image, device) = bench.attached("flags.img");
    bench.twice(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    let target = bench.make_dir("target");
    let with = |flags: &[&str], read_only| Op::Mount {
        device: device.clone(),
        target: target.clone(),
        fstype: "ext4".into(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        read_only,
    };
    for bad in ["remount", "noatime,suid", "data=journal", "", "NOATIME", "ro"] {
        let error = bench.refused(with(&["noexec", bad], false));
        assert!(matches!(&error, HostError::FlagNotAllowed { flag } if flag == bad), "{error}");
    }
    for all in [["noatime", "nodev", "noexec", "nosuid"], ["relatime", "sync", "dirsync", "discard"]] {
        bench.twice(with(&all, false));
        let entry = mounts_beneath(&target).unwrap().remove(0);
        assert!(all.iter().all(|flag| entry.options.iter().any(|option| option == flag)), "{entry:?}");
        assert!(!entry.read_only);
        // The same device with a flag more is another mount.
        let more = bench.refused(with(&["nodiratime"], false));
        assert!(matches!(more, HostError::MountedOtherwise { .. }), "{more}");
        bench.twice(Op::Unmount { target: target.clone() });
    }
    bench.twice(with(&["nodiratime"], true));
    assert!(mounts_beneath(&target).unwrap()[0].read_only);
    assert!(std::fs::write(bench.path("target/file"), "x").is_err());
    bench.twice(Op::Unmount { target: target.clone() });
    bench.twice(Op::DetachLoop { image });
}

pub fn a_read_only_bind_cannot_be_written() {
    let bench = Bench::new();
    let (source, target) = (bench.make_dir("source"), bench.make_dir("target"));
    bench.twice(bind(&source, &target, true));
    assert!(std::fs::write(bench.path("target/file"), "x").is_err());
    std::fs::write(bench.path("source/file"), "x").unwrap();
    assert_eq!(std::fs::read_to_string(bench.path("target/file")).unwrap(), "x");
    bench.twice(Op::Unmount { target });
}

pub fn a_writable_bind_of_a_read_only_mount_is_refused() {
    let bench = Bench::new();
    let (source, middle, target) = (bench.make_dir("source"), bench.make_dir("middle"), bench.make_dir("target"));
    bench.twice(bind(&source, &middle, true));
    let error = bench.refused(bind(&middle, &target, false));
    assert!(matches!(error, HostError::MountedOtherwise { .. }), "{error}");
    assert!(!is_mount_root(&owned(&target)).unwrap());
    bench.twice(bind(&middle, &target, true));
    bench.twice(Op::Unmount { target });
    bench.twice(Op::Unmount { target: middle });
}

pub fn a_target_swapped_for_a_link_leads_nowhere_else() {
    // reliability 78 and 123: somebody swaps the target for a link to another place while it is being mounted at
    let bench = Bench::new();
    let (source, outside) = (bench.make_dir("source"), bench.make_dir("outside"));
    let (target, aside, link) = (bench.make_dir("target"), bench.path("aside"), bench.path("link"));
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                // The directory out and the link in, and back. A directory with a mount stays, which is fine.
                if std::fs::rename(&target, &aside).is_ok() {
                    let _ = std::fs::rename(&link, &target);
                    let _ = std::fs::rename(&target, &link);
                    let _ = std::fs::rename(&aside, &target);
                }
            }
        });
        for _ in 0..500 {
            let _ = bench.host.perform(&bind(&source, &target, false));
            assert!(!is_mount_root(&owned(&outside)).unwrap());
            let _ = bench.host.perform(&Op::Unmount { target: target.clone() });
            let _ = bench.host.perform(&Op::Unmount { target: aside.clone() });
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    for left in [&target, &aside] {
        let _ = bench.host.perform(&Op::Unmount { target: left.clone() });
    }
    assert_eq!(mounts_beneath(&outside).unwrap().len(), 0);
}

pub fn stacked_mounts_are_all_taken_off() {
    let bench = Bench::new();
    let target = bench.make_dir("target");
    for _ in 0..3 {
        outsider("mount", &["-t", "tmpfs", "tmpfs", &target]);
    }
    assert_eq!(mounts_beneath(&target).unwrap().len(), 3);
    bench.twice(Op::Unmount { target: target.clone() });
    assert_eq!(mounts_beneath(&target).unwrap().len(), 0);
    bench.twice(Op::Unmount { target: bench.path("none/at/all") });
}

pub fn a_busy_mount_is_refused_by_name() {
    let bench = Bench::new();
    let volume = bench.mounted("busy");
    let open = File::create(bench.path("busy/file")).unwrap();
    let error = bench.refused(Op::Unmount { target: volume.target.clone() });
    assert!(matches!(error, HostError::Busy { .. }) && error.to_string().contains(&volume.target), "{error}");
    assert!(is_mount_root(&owned(&volume.target)).unwrap(), "never lazily unmounted");
    drop(open);
    bench.remove(&volume);
}

pub fn odd_names_are_read_from_the_mount_table() {
    let bench = Bench::new();
    let source = bench.make_dir("source");
    for name in ["a b", "tab\there", "new\nline", "back\\slash", "\\040", "hash#", "ünï"] {
        let target = bench.make_dir(name);
        bench.twice(bind(&source, &target, false));
        assert!(mounts().unwrap().iter().any(|entry| entry.target == target), "{name:?}");
        bench.twice(Op::Unmount { target });
    }
}

pub fn a_filesystem_the_kernel_refuses_is_explained() {
    let bench = Bench::new();
    let (image, device) = bench.attached("blank.img");
    let target = bench.make_dir("target");
    let error = bench.refused(mount(&device, &target));
    assert!(matches!(error, HostError::MountFailed { .. }), "{error}");
    assert!(error.to_string().contains("ext4"), "{error}");
    let missing = bench.refused(mount(&device, &bench.path("none")));
    assert!(matches!(missing, HostError::Missing { .. }), "{missing}");
    bench.twice(Op::DetachLoop { image });
}

pub fn a_mount_whose_server_hangs_or_died_is_seen_and_taken_off() {
    // reliability 6: hung filesystems, stale mounts
    let bench = Bench::new();
    let target = bench.make_dir("target");
    for dies in [false, true] {
        let mut server = Silent::mount(&target);
        if dies {
            server.abort();
        }
        assert!(is_mount_root(&owned(&target)).unwrap_or(true), "cannot tell means mounted");
        assert!(bench.host.perform(&Op::RemoveDir { path: target.clone() }).is_err());
        bench.twice(Op::Unmount { target: target.clone() });
        assert!(!is_mount_root(&owned(&target)).unwrap());
    }
}
