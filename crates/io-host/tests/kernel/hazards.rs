//! The hazards of mounting (reliability 6), row by row, each with the tests that show what becomes of it here. Rows that
//! no other test is about have theirs in this file, under the hazard's name.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use control::host::{Op, Reply};
use io_host::{HostError, is_mount_root, mounts, mounts_beneath, require_shared};

use crate::bench::{Bench, mount, outsider, owned};
use crate::copies::{MIB, volume};

/// A hazard and the tests of it.
const HAZARDS: &[(&str, &[&str])] = &[
    (
        "recursive delete through a live mount",
        &["hazards::recursive_delete_through_a_live_mount", "copies::a_tree_is_removed_without_leaving_it"],
    ),
    ("device-number comparison misses bind mounts", &["mounts::a_bind_within_one_filesystem_is_seen"]),
    ("rmdir or rename under another mount namespace", &["hazards::removal_from_another_mount_namespace"]),
    ("torn view of the mount table", &["hazards::a_torn_view_of_the_mount_table"]),
    (
        "hung filesystem wedges the node agent",
        &["hung::others_go_on_while_one_filesystem_hangs", "hung::hung_operations_are_bounded"],
    ),
    ("unmount busy", &["mounts::a_busy_mount_is_refused_by_name"]),
    ("lazy unmount hides use", &["hazards::a_lazy_unmount_hides_use", "mounts::a_busy_mount_is_refused_by_name"]),
    (
        "loop device: deleted backing file",
        &[
            "volumes::a_file_behind_a_loop_device_is_not_removed",
            "volumes::a_loop_device_whose_file_is_gone_is_detached",
        ],
    ),
    (
        "loop device: detached while mounted",
        &["volumes::a_mounted_loop_device_is_not_detached", "volumes::a_detaching_that_waits_is_taken_back"],
    ),
    (
        "loop device: one file, two loops",
        &["volumes::one_file_gets_one_loop_device", "volumes::two_loop_devices_made_by_others_are_refused"],
    ),
    ("loop lost after reboot, and leaks", &["hazards::loops_lost_or_left_by_an_earlier_life"]),
    ("mkfs on data", &["volumes::a_device_with_data_is_not_formatted"]),
    ("stale mounts", &["mounts::a_mount_whose_server_hangs_or_died_is_seen_and_taken_off"]),
    ("mount propagation missing", &["hazards::mount_propagation_missing"]),
    ("writes after unmount make rmdir fail", &["hazards::writes_after_unmount_make_the_removal_fail"]),
];

pub fn every_hazard_has_a_test() {
    let known = |test: &&str| crate::TESTS.iter().any(|(name, _)| name == test);
    for (hazard, tests) in HAZARDS {
        assert!(!tests.is_empty() && tests.iter().all(known), "{hazard}: {tests:?}");
    }
}

// KL-100.
pub fn recursive_delete_through_a_live_mount() {
    // Somebody mounts a volume into the tree while it is being removed: whatever becomes of the tree, the volume stays.
    let bench = Bench::new();
    let outside = bench.make_dir("outside");
    std::fs::write(bench.path("outside/file"), "kept").unwrap();
    for round in 0..10 {
        let tree = bench.make_dir(&format!("tree-{round}"));
        for n in 0..40 {
            std::fs::create_dir_all(format!("{tree}/{n}/a/b")).unwrap();
        }
        let target = format!("{tree}/20/a/b");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let op = Op::Bind { source: outside.clone(), target: target.clone(), read_only: false };
                let _ = bench.host.perform(&op);
            });
            let _ = bench.host.perform(&Op::RemoveTree { path: tree.clone() });
        });
        assert_eq!(std::fs::read_to_string(bench.path("outside/file")).unwrap(), "kept", "round {round}");
        for entry in mounts_beneath(&tree).unwrap() {
            bench.twice(Op::Unmount { target: entry.target });
        }
        bench.twice(Op::RemoveTree { path: tree });
    }
}

pub fn removal_from_another_mount_namespace() {
    let bench = Bench::new();
    let private = bench.make_dir("private");
    let volume = bench.mounted("private/target");
    assert!(matches!(bench.refused(Op::RemoveDir { path: volume.target.clone() }), HostError::MountPoint { .. }));
    // Nobody but the owner and the group gets there from elsewhere, and only the owner may remove anything.
    assert_eq!(std::fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o750);
    // The kernel lets it happen, and the mount is gone here too. We believe what is, and all can be cleared up.
    let script = format!("umount '{0}' && rmdir '{0}'", volume.target);
    outsider("unshare", &["--mount", "--propagation", "private", "sh", "-c", &script]);
    assert!(!is_mount_root(&owned(&volume.target)).unwrap());
    assert_eq!(mounts_beneath(&volume.target).unwrap(), []);
    let error = bench.refused(mount(&volume.device, &volume.target));
    assert!(matches!(error, HostError::Missing { .. }), "{error}");
    bench.remove(&volume);
}

// KL-98.
pub fn a_torn_view_of_the_mount_table() {
    let bench = Bench::new();
    let source = bench.make_dir("source");
    // More than one page of the table.
    let kept: Vec<String> = (0..30).map(|n| bench.make_dir(&format!("kept-{n}-{}", "x".repeat(200)))).collect();
    for target in &kept {
        bench.twice(Op::Bind { source: source.clone(), target: target.clone(), read_only: false });
    }
    let whole = || match mounts() {
        Ok(all) => {
            let there = |target: &&String| all.iter().any(|entry| entry.target == **target);
            assert_eq!(kept.iter().filter(there).count(), kept.len(), "a mount was missed");
            true
        }
        // It cannot tell, and says so.
        Err(_) => false,
    };
    let (stop, churned) = (AtomicBool::new(false), bench.make_dir("churned"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let (source, target) = (source.clone(), churned.clone());
                bench.host.perform(&Op::Bind { source, target, read_only: false }).unwrap();
                bench.host.perform(&Op::Unmount { target: churned.clone() }).unwrap();
            }
        });
        for _ in 0..100 {
            whole();
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(whole());
    for target in kept {
        bench.twice(Op::Unmount { target });
    }
}

pub fn a_lazy_unmount_hides_use() {
    // Ours is never lazy (a busy mount stays). Somebody else's is seen through: the device is in use until it is not.
    let bench = Bench::new();
    let volume = bench.mounted("lazy");
    let open = File::create(bench.path("lazy/file")).unwrap();
    outsider("umount", &["--lazy", &volume.target]);
    assert!(!is_mount_root(&owned(&volume.target)).unwrap());
    let error = bench.refused(Op::DetachLoop { image: volume.image.clone() });
    assert!(matches!(error, HostError::Busy { .. }), "{error}");
    assert!(matches!(bench.refused(Op::RemoveFile { path: volume.image.clone() }), HostError::Busy { .. }));
    drop(open);
    bench.remove(&volume);
}

pub fn loops_lost_or_left_by_an_earlier_life() {
    // Lost: mounts and loop devices are gone, as after a boot. The image alone is enough to come back.
    let bench = Bench::new();
    let volume = bench.mounted("lost");
    std::fs::write(bench.path("lost/file"), "data").unwrap();
    outsider("umount", &[&volume.target]);
    outsider("losetup", &["-d", &volume.device]);
    bench.twice(Op::Unmount { target: volume.target.clone() });
    let Reply::Device(device) = bench.twice(Op::AttachLoop { image: volume.image.clone() }) else { panic!() };
    bench.twice(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    bench.twice(mount(&device, &volume.target));
    assert_eq!(std::fs::read_to_string(bench.path("lost/file")).unwrap(), "data");
    bench.remove(&volume);

    // Left: devices nobody asked for any more are on the list with their file, there or deleted, and can be detached.
    let (image, gone) = (bench.path("left.img"), bench.path("gone.img"));
    for path in [&image, &gone] {
        bench.twice(Op::CreateImage { path: path.clone(), size: MIB });
        outsider("losetup", &["-f", path]);
    }
    std::fs::remove_file(&gone).unwrap();
    let listed = |path: &str| io_host::loops().unwrap().iter().filter(|entry| entry.backing_path == path).count();
    assert_eq!((listed(&image), listed(&format!("{gone} (deleted)"))), (1, 1));
    bench.twice(Op::DetachLoop { image: image.clone() });
    bench.twice(Op::DetachLoop { image: gone.clone() });
    assert_eq!((listed(&image), listed(&format!("{gone} (deleted)"))), (0, 0));
}

pub fn loops_do_direct_io_where_the_filesystem_can() {
    let bench = Bench::new();
    let direct = |image: &str| {
        let entries = io_host::loops().unwrap();
        entries.iter().find(|entry| entry.backing_path == image).unwrap().direct_io
    };
    let pool = volume(&bench, "pool", "ext4", 64 * MIB);
    let memory = bench.make_dir("memory");
    outsider("mount", &["-t", "ramfs", "ramfs", &memory]);
    for (dir, can) in [(&pool.target, true), (&memory, false)] {
        let image = format!("{dir}/inner.img");
        bench.twice(Op::CreateImage { path: image.clone(), size: MIB });
        bench.twice(Op::AttachLoop { image: image.clone() });
        assert_eq!(direct(&image), can, "{dir}");
        bench.twice(Op::DetachLoop { image: image.clone() });
        bench.twice(Op::RemoveFile { path: image });
    }
    bench.twice(Op::Unmount { target: memory });
    bench.remove(&pool);
}

pub fn mount_propagation_missing() {
    let bench = Bench::new();
    let (root, inside) = (bench.make_dir("root"), bench.make_dir("root/pods/volume"));
    outsider("mount", &["--bind", &root, &root]);
    outsider("mount", &["--make-private", &root]);
    for path in [&root, &inside] {
        let error = require_shared(path).unwrap_err();
        assert!(matches!(error, HostError::NotShared { .. }) && error.certain(), "{error}");
        assert!(error.to_string().contains(&format!("mount --make-shared {root}")), "{error}");
    }
    outsider("mount", &["--make-shared", &root]);
    require_shared(&root).unwrap();
    require_shared(&inside).unwrap();
    // What the sentence promises: a copy of the mount sees what is mounted in it later.
    let copy = bench.make_dir("copy");
    bench.twice(Op::Bind { source: root.clone(), target: copy.clone(), read_only: false });
    let source = bench.make_dir("source");
    bench.twice(Op::Bind { source, target: inside.clone(), read_only: false });
    assert!(is_mount_root(&owned(&format!("{copy}/pods/volume"))).unwrap());
    bench.twice(Op::Unmount { target: inside });
    bench.twice(Op::Unmount { target: copy });
    bench.twice(Op::Unmount { target: root });
}

pub fn writes_after_unmount_make_the_removal_fail() {
    let bench = Bench::new();
    let volume = bench.mounted("published");
    bench.twice(Op::Unmount { target: volume.target.clone() });
    std::fs::write(bench.path("published/late"), "written after the unmount").unwrap();
    for op in [Op::RemoveDir { path: volume.target.clone() }, Op::RemoveTarget { path: volume.target.clone() }] {
        let error = bench.refused(op);
        assert!(matches!(error, HostError::NotEmpty { .. }) && error.to_string().contains("published"), "{error}");
    }
    assert!(std::fs::read_to_string(bench.path("published/late")).is_ok(), "content is reported, not deleted");
    std::fs::remove_file(bench.path("published/late")).unwrap();
    bench.remove(&volume);
}
