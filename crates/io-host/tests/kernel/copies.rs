//! Copies of images, held still meanwhile; growth; device views; trees.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

use control::host::{Copying, Op, Reply, Usage};
use io_host::{Holder, HostError, mounts, mounts_beneath};
use rustix::fs::{Mode, OFlags};

use crate::bench::{Bench, Volume, mount, outsider};

pub const MIB: u64 = 1 << 20;

pub fn copy(from: &str, to: &str, still: Option<&str>) -> Op {
    let still = still.map(str::to_owned);
    Op::CopyTogether { copies: vec![Copying { from: from.into(), to: to.into(), still }] }
}

fn fs_mount(device: &str, target: &str, fstype: &str) -> Op {
    let (device, target, fstype) = (device.into(), target.into(), fstype.into());
    Op::Mount { device, target, fstype, flags: vec![], read_only: false }
}

/// A volume of any filesystem and size.
pub fn volume(bench: &Bench, name: &str, fstype: &str, size: u64) -> Volume {
    let image = bench.path(&format!("{name}.img"));
    bench.twice(Op::CreateImage { path: image.clone(), size });
    let Reply::Device(device) = bench.twice(Op::AttachLoop { image: image.clone() }) else { panic!("no device") };
    bench.twice(Op::MakeFilesystem { device: device.clone(), fstype: fstype.into() });
    let target = bench.make_dir(name);
    bench.twice(fs_mount(&device, &target, fstype));
    Volume { image, device, target }
}

fn usage(bench: &Bench, path: &str) -> Usage {
    match bench.host.perform(&Op::Measure { path: path.into() }).unwrap() {
        Reply::Usage(usage) => usage,
        other => panic!("{other:?}"),
    }
}

pub fn a_copy_keeps_bytes_and_holes() {
    let bench = Bench::new();
    let (from, to) = (bench.path("from.img"), bench.path("to.img"));
    bench.twice(Op::CreateImage { path: from.clone(), size: 10 << 30 });
    let file = File::options().write(true).open(&from).unwrap();
    for at in [0, 5 << 30, (10 << 30) - 5] {
        file.write_all_at(b"bytes", at).unwrap();
    }
    bench.twice(copy(&from, &to, None));
    let (old, new) = (std::fs::metadata(&from).unwrap(), std::fs::metadata(&to).unwrap());
    assert_eq!(old.len(), new.len());
    assert!(new.blocks() <= old.blocks() + 64, "{} blocks of {}", new.blocks(), old.blocks());
    let measured = usage(&bench, &to);
    assert_eq!((measured.bytes, measured.bytes_used), (10 << 30, new.blocks() * 512));
    let copied = File::open(&to).unwrap();
    for at in [0, 5 << 30, (10 << 30) - 5] {
        let mut found = [0; 5];
        copied.read_exact_at(&mut found, at).unwrap();
        assert_eq!(&found, b"bytes");
    }
    // What was cut off before is replaced, and a copy that is there is not written to.
    file.write_all_at(b"other", 0).unwrap();
    std::fs::write(bench.path(".second.img.longshore-partial"), "half").unwrap();
    bench.twice(copy(&from, &to, None));
    let mut found = [0; 5];
    copied.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"bytes");
    bench.twice(copy(&from, &bench.path("second.img"), None));
    assert_eq!(&std::fs::read(bench.path("second.img")).unwrap_or_default()[..5], b"other");
    assert!(matches!(bench.refused(copy(&bench.path("none"), &bench.path("x"), None)), HostError::Missing { .. }));
    assert!(matches!(bench.refused(copy("/dev/null", &bench.path("x"), None)), HostError::WrongKind { .. }));
}

pub fn blocks_are_shared_where_the_filesystem_can() {
    let bench = Bench::new();
    for fstype in ["xfs", "btrfs"] {
        let pool = volume(&bench, fstype, fstype, 512 * MIB);
        let (from, to) = (format!("{}/from.img", pool.target), format!("{}/to.img", pool.target));
        std::fs::write(&from, vec![7; 64 << 20]).unwrap();
        File::open(&from).unwrap().sync_all().unwrap();
        let before = usage(&bench, &pool.target).bytes_used;
        bench.twice(copy(&from, &to, None));
        outsider("sync", &["-f", &to]);
        let grown = usage(&bench, &pool.target).bytes_used.saturating_sub(before);
        assert!(grown < 16 * MIB, "{fstype}: {grown} bytes more for a copy of 64 MiB");
        assert_eq!(std::fs::read(&to).unwrap(), std::fs::read(&from).unwrap());
        bench.remove(&pool);
    }
}

pub fn a_copy_of_a_mounted_filesystem_is_whole() {
    // A writer goes on all the time; the copy must be sound without any repair, and its files complete.
    let bench = Bench::new();
    for fstype in ["ext4", "xfs", "btrfs"] {
        let source = volume(&bench, fstype, fstype, 512 * MIB);
        std::fs::write(format!("{}/kept", source.target), "kept").unwrap();
        let (stop, to) = (AtomicBool::new(false), bench.path(&format!("{fstype}-copy.img")));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0;
                while !stop.load(Ordering::SeqCst) {
                    std::fs::write(format!("{}/busy-{}", source.target, round % 50), vec![1; 100_000]).unwrap();
                    round += 1;
                }
            });
            bench.host.perform(&copy(&source.image, &to, Some(&source.target))).unwrap();
            stop.store(true, Ordering::SeqCst);
        });
        // It runs again.
        std::fs::write(format!("{}/after", source.target), "x").unwrap();
        if fstype == "ext4" {
            outsider("e2fsck", &["-f", "-n", &to]);
        }
        // Mounted beside its source, though both bear the same mark.
        let Reply::Device(device) = bench.twice(Op::AttachLoop { image: to.clone() }) else { panic!() };
        let target = bench.make_dir(&format!("{fstype}-copy"));
        bench.twice(fs_mount(&device, &target, fstype));
        assert_eq!(std::fs::read_to_string(format!("{target}/kept")).unwrap(), "kept");
        assert!(!std::path::Path::new(&format!("{target}/after")).exists());
        bench.remove(&Volume { image: to, device, target });
        bench.remove(&source);
    }
}

pub fn a_failed_copy_lets_the_filesystem_go_on() {
    let bench = Bench::new();
    let source = bench.mounted("source");
    // Something is mounted where the copy is to be made, and cannot be removed.
    let (to, mounted) = (bench.path("to/copy.img"), bench.make_dir("to/.copy.img.longshore-partial/mounted"));
    bench.twice(Op::Bind { source: bench.make_dir("other"), target: mounted.clone(), read_only: false });
    let error = bench.host.perform(&copy(&source.image, &to, Some(&source.target))).unwrap_err();
    assert!(error.to_string().contains("copy.img"), "{error}");
    std::fs::write(format!("{}/after", source.target), "x").unwrap();
    // Onto itself it is refused before anything stands still.
    let inside = bench.refused(copy(&source.image, &format!("{}/copy.img", source.target), Some(&source.target)));
    assert!(matches!(inside, HostError::Busy { .. }), "{inside}");
    std::fs::write(format!("{}/again", source.target), "x").unwrap();
    bench.twice(Op::Unmount { target: mounted });
    bench.remove(&source);
}

pub fn what_an_earlier_life_left_standing_still_goes_on() {
    let bench = Bench::new();
    let (ours, other) = (bench.mounted("ours"), bench.mounted("other"));
    outsider("fsfreeze", &["-f", &ours.target]);
    assert_eq!(io_host::thaw_images_beneath(&bench.path("elsewhere")).unwrap(), Vec::<String>::new());
    let busy = bench.refused(copy(&ours.image, &bench.path("copy.img"), Some(&ours.target)));
    assert!(matches!(busy, HostError::Busy { .. }), "{busy}");
    assert_eq!(io_host::thaw_images_beneath(bench.dir().to_str().unwrap()).unwrap(), vec![ours.target.clone()]);
    std::fs::write(format!("{}/file", ours.target), "x").unwrap();
    bench.remove(&ours);
    bench.remove(&other);
}

pub fn ext4_grows_when_it_is_not_mounted() {
    let bench = Bench::new();
    let old = volume(&bench, "ext4", "ext4", 64 * MIB);
    std::fs::write(format!("{}/file", old.target), "kept").unwrap();
    let before = usage(&bench, &old.target).bytes;
    bench.twice(Op::GrowImage { path: old.image.clone(), size: 256 * MIB });
    bench.twice(Op::GrowImage { path: old.image.clone(), size: 128 * MIB });
    assert_eq!(std::fs::metadata(&old.image).unwrap().len(), 256 * MIB, "never smaller");
    bench.twice(Op::RefreshLoop { image: old.image.clone() });
    let grow = |mounted_at: Option<&String>| Op::GrowFilesystem {
        device: old.device.clone(),
        fstype: "ext4".into(),
        mounted_at: mounted_at.cloned(),
    };
    // While mounted the kernel asks for a capability that machines like this one do not give away.
    match bench.host.perform(&grow(Some(&old.target))) {
        Ok(_) => {
            bench.twice(grow(Some(&old.target)));
        }
        Err(error) => {
            assert!(matches!(error, HostError::CannotGrow { .. }) && error.certain(), "{error}");
            assert!(error.to_string().contains("CAP_SYS_RESOURCE"), "{error}");
            println!("  while mounted: {error}");
        }
    }
    bench.twice(Op::Unmount { target: old.target.clone() });
    bench.twice(grow(None));
    bench.twice(Op::CheckFilesystem { device: old.device.clone(), fstype: "ext4".into() });
    bench.twice(mount(&old.device, &old.target));
    let after = usage(&bench, &old.target).bytes;
    assert!(after > before * 3, "{before} to {after}");
    assert_eq!(std::fs::read_to_string(format!("{}/file", old.target)).unwrap(), "kept");
    // At its size it is grown while mounted too, without asking the kernel for anything.
    bench.twice(grow(Some(&old.target)));
    bench.remove(&old);
}

pub fn xfs_and_btrfs_grow_while_mounted() {
    let bench = Bench::new();
    for fstype in ["xfs", "btrfs"] {
        let old = volume(&bench, fstype, fstype, 320 * MIB);
        let file = File::create(format!("{}/open", old.target)).unwrap();
        let before = usage(&bench, &old.target).bytes;
        bench.twice(Op::GrowImage { path: old.image.clone(), size: 640 * MIB });
        bench.twice(Op::RefreshLoop { image: old.image.clone() });
        let grow = |mounted_at| Op::GrowFilesystem { device: old.device.clone(), fstype: fstype.into(), mounted_at };
        assert!(matches!(bench.refused(grow(None)), HostError::CannotGrow { .. }));
        bench.twice(grow(Some(old.target.clone())));
        let after = usage(&bench, &old.target).bytes;
        assert!(after > before + 200 * MIB, "{fstype}: {before} to {after}");
        drop(file);
        bench.remove(&old);
    }
}

pub fn a_device_is_shown_at_a_file() {
    let bench = Bench::new();
    let (image, device) = bench.attached("block.img");
    let target = bench.path("made/on/the/way/device");
    bench.twice(Op::MakeFile { path: target.clone() });
    let show = |read_only| Op::BindDevice { device: device.clone(), target: target.clone(), read_only };
    bench.twice(show(false));
    assert!(matches!(bench.refused(show(true)), HostError::MountedOtherwise { .. }));
    let block = File::options().write(true).open(&target).unwrap();
    block.write_all_at(b"written", 4096).unwrap();
    block.sync_all().unwrap();
    drop(block);
    let mut found = [0; 7];
    File::open(&image).unwrap().read_exact_at(&mut found, 4096).unwrap();
    assert_eq!(&found, b"written");
    assert_eq!(usage(&bench, &target), Usage { bytes: 64 * MIB, ..Usage::default() });
    // The table says which device is shown.
    let all = mounts().unwrap();
    let entry = mounts_beneath(&target).unwrap().remove(0);
    assert_eq!(Holder::of("/dev", &all).unwrap().shown_by(&entry).as_deref(), Some(device.as_str()));
    // A copy has what was written to the device a moment ago.
    let block = File::options().write(true).open(&target).unwrap();
    block.write_all_at(b"unsynced", 8192).unwrap();
    bench.twice(copy(&image, &bench.path("copy.img"), None));
    let mut found = [0; 8];
    File::open(bench.path("copy.img")).unwrap().read_exact_at(&mut found, 8192).unwrap();
    assert_eq!(&found, b"unsynced");
    drop(block);
    assert!(matches!(bench.refused(Op::RemoveTarget { path: target.clone() }), HostError::MountPoint { .. }));
    bench.twice(Op::Unmount { target: target.clone() });

    // Read-only is read-only: also for root, and also at the device itself.
    bench.twice(show(true));
    let written = File::options().write(true).open(&target).and_then(|block| {
        block.write_all_at(&[1; 512], 0)?;
        block.sync_all()
    });
    assert!(written.is_err());
    bench.twice(Op::Unmount { target: target.clone() });
    bench.twice(show(false));
    File::options().write(true).open(&target).unwrap().write_all_at(b"again", 0).unwrap();
    bench.twice(Op::Unmount { target: target.clone() });
    bench.twice(Op::RemoveTarget { path: target.clone() });
    assert!(!std::path::Path::new(&target).exists());
    assert!(matches!(bench.refused(show(false)), HostError::Missing { .. }));
    bench.twice(Op::DetachLoop { image });
}

pub fn a_read_only_device_leaves_no_trace() {
    // The kernel keeps a device read-only beyond its detaching, for whoever gets it next.
    let bench = Bench::new();
    let (image, device) = bench.attached("read-only.img");
    let target = bench.path("device");
    bench.twice(Op::MakeFile { path: target.clone() });
    bench.twice(Op::BindDevice { device: device.clone(), target: target.clone(), read_only: true });
    bench.twice(Op::Unmount { target });
    bench.twice(Op::DetachLoop { image: image.clone() });
    assert_eq!(outsider("blockdev", &["--getro", &device]), "0");
    // And one that somebody else left so is put right when it is ours.
    outsider("blockdev", &["--setro", &device]);
    let Reply::Device(again) = bench.twice(Op::AttachLoop { image: image.clone() }) else { panic!() };
    assert_eq!(outsider("blockdev", &["--getro", &again]), "0");
    bench.twice(Op::DetachLoop { image });
    outsider("blockdev", &["--setrw", &device]);
}

pub fn what_is_read_ahead_can_be_set() {
    let bench = Bench::new();
    let (image, device) = bench.attached("ahead.img");
    bench.twice(Op::SetReadAhead { device: device.clone(), kib: 4096 });
    assert_eq!(outsider("blockdev", &["--getra", &device]), "8192");
    bench.twice(Op::SetReadAhead { device: device.clone(), kib: 0 });
    assert_eq!(outsider("blockdev", &["--getra", &device]), "0");
    bench.twice(Op::DetachLoop { image });
}

pub fn a_target_with_content_is_not_removed() {
    let bench = Bench::new();
    let (empty, full) = (bench.make_dir("empty"), bench.path("full"));
    std::fs::write(&full, "somebody's").unwrap();
    bench.twice(Op::RemoveTarget { path: empty });
    bench.twice(Op::RemoveTarget { path: bench.path("none/at/all") });
    assert!(matches!(bench.refused(Op::RemoveTarget { path: full.clone() }), HostError::NotEmpty { .. }));
    assert!(matches!(bench.refused(Op::MakeFile { path: bench.make_dir("dir") }), HostError::WrongKind { .. }));
    assert_eq!(std::fs::read_to_string(&full).unwrap(), "somebody's");
}

pub fn a_tree_is_removed_without_leaving_it() {
    // reliability 6: recursive deletion through a live mount
    let bench = Bench::new();
    let (tree, outside) = (bench.make_dir("tree"), bench.make_dir("outside"));
    std::fs::write(bench.path("outside/file"), "kept").unwrap();
    std::os::unix::fs::symlink(&outside, bench.path("tree/link")).unwrap();
    bench.make_dir("tree/a/b");
    std::fs::write(bench.path("tree/a/b/file"), "gone").unwrap();
    outsider("mkfifo", &[&bench.path("tree/a/fifo")]);
    // Deeper than a path can be long and than descriptors could be held open.
    let mut dir = std::os::fd::OwnedFd::from(File::open(&tree).unwrap());
    for _ in 0..3000 {
        rustix::fs::mkdirat(&dir, "deep", Mode::from_raw_mode(0o700)).unwrap();
        dir = rustix::fs::openat(&dir, "deep", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
        rustix::fs::openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o600)).unwrap();
    }
    drop(dir);

    let mounted = bench.make_dir("tree/a/mounted");
    bench.twice(Op::Bind { source: outside.clone(), target: mounted.clone(), read_only: false });
    let error = bench.refused(Op::RemoveTree { path: tree.clone() });
    assert!(matches!(error, HostError::MountPoint { .. }) && error.to_string().contains("mounted"), "{error}");
    assert_eq!(std::fs::read_to_string(bench.path("tree/a/b/file")).unwrap(), "gone", "nothing is removed before");
    bench.twice(Op::Unmount { target: mounted });
    bench.twice(Op::RemoveTree { path: tree.clone() });
    assert!(!std::path::Path::new(&tree).exists());
    assert_eq!(std::fs::read_to_string(bench.path("outside/file")).unwrap(), "kept");
    assert!(matches!(bench.refused(Op::RemoveTree { path: bench.path("outside/file") }), HostError::WrongKind { .. }));
}

pub fn what_a_bind_shows_is_known_from_the_table() {
    let bench = Bench::new();
    let (dir, target) = (bench.make_dir("state/directories/v"), bench.make_dir("target"));
    bench.twice(Op::Bind { source: dir.clone(), target: target.clone(), read_only: true });
    let (all, entry) = (mounts().unwrap(), mounts_beneath(&target).unwrap().remove(0));
    let shown_in = |name: &str| Holder::of(&bench.path(name), &all).unwrap().shown_by(&entry);
    assert_eq!(shown_in("state"), Some(dir));
    assert_eq!(shown_in("other"), None);
    bench.twice(Op::Unmount { target });
}
