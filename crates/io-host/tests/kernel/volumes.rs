//! Images, loop devices, filesystems.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use control::host::{Op, Reply};
use io_host::HostError;

use crate::bench::{Bench, mount, outsider};

pub fn a_whole_life_leaves_nothing() {
    // reliability 117; the bench checks that nothing is left
    let bench = Bench::new();
    let volume = bench.mounted("staged");
    let published = bench.make_dir("published");
    bench.twice(Op::Bind { source: volume.target.clone(), target: published.clone(), read_only: false });
    std::fs::write(bench.path("published/file"), "data").unwrap();
    assert_eq!(std::fs::read_to_string(bench.path("staged/file")).unwrap(), "data");
    bench.twice(Op::Unmount { target: published.clone() });
    bench.twice(Op::RemoveDir { path: published });

    // The data survives detaching and attaching, and formatting again is done already.
    bench.twice(Op::Unmount { target: volume.target.clone() });
    bench.twice(Op::DetachLoop { image: volume.image.clone() });
    let Reply::Device(device) = bench.twice(Op::AttachLoop { image: volume.image.clone() }) else { panic!() };
    bench.twice(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    bench.twice(mount(&device, &volume.target));
    assert_eq!(std::fs::read_to_string(bench.path("staged/file")).unwrap(), "data");
    bench.remove(&volume);
    assert!(!bench.dir().join("staged.img").exists() && !bench.dir().join("staged").exists());
}

pub fn every_filesystem_we_offer_is_made_and_mounted() {
    let bench = Bench::new();
    for (fstype, package) in [("ext4", "e2fsprogs"), ("xfs", "xfsprogs"), ("btrfs", "btrfs-progs")] {
        let image = bench.path(&format!("{fstype}.img"));
        bench.twice(Op::CreateImage { path: image.clone(), size: 512 << 20 });
        let Reply::Device(device) = bench.twice(Op::AttachLoop { image: image.clone() }) else { panic!() };
        let target = bench.make_dir(fstype);
        let make = Op::MakeFilesystem { device: device.clone(), fstype: fstype.into() };
        match bench.host.perform(&make) {
            Ok(_) => {
                bench.twice(make);
                let (device, target) = (device.clone(), target.clone());
                bench.twice(Op::Mount { device, target, fstype: fstype.into(), flags: vec![], read_only: false });
                std::fs::write(bench.path(&format!("{fstype}/file")), "data").unwrap();
                bench.twice(Op::Unmount { target: bench.path(fstype) });
            }
            // A machine without the program gets a sentence that names the package.
            Err(error) => {
                assert!(matches!(error, HostError::ToolMissing { .. }), "{error}");
                assert!(error.to_string().contains(package), "{error}");
                println!("  {fstype}: {error}");
            }
        }
        bench.twice(Op::DetachLoop { image });
    }
}

pub fn one_file_gets_one_loop_device() {
    // reliability 112; found by inode, so a second name for the file finds the same device
    let bench = Bench::new();
    let (image, device) = bench.attached("one.img");
    let other = bench.path("other-name.img");
    std::fs::hard_link(&image, &other).unwrap();
    assert_eq!(bench.twice(Op::AttachLoop { image: other.clone() }), Reply::Device(device.clone()));
    let entries = io_host::loops().unwrap();
    let entry = entries.iter().find(|entry| entry.device == device).unwrap();
    assert_eq!(entry.backing_path, image);
    assert!(entry.whole && !entry.autoclear);
    bench.twice(Op::DetachLoop { image: other });
    assert!(io_host::loops().unwrap().iter().all(|entry| entry.backing_path != image));
}

pub fn threads_that_attach_one_file_at_once_share_a_device() {
    let bench = Bench::new();
    let image = bench.path("shared.img");
    bench.twice(Op::CreateImage { path: image.clone(), size: 1 << 20 });
    let attach = Op::AttachLoop { image: image.clone() };
    let answers: Vec<Reply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| bench.host.perform(&attach).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    bench.twice(Op::DetachLoop { image });
}

pub fn two_loop_devices_made_by_others_are_refused() {
    // reliability 6: the kernel lets one file have two devices, and both be mounted
    let bench = Bench::new();
    let image = bench.path("twice.img");
    bench.twice(Op::CreateImage { path: image.clone(), size: 1 << 20 });
    let (a, b) = (outsider("losetup", &["-f", "--show", &image]), outsider("losetup", &["-f", "--show", &image]));
    let error = bench.refused(Op::AttachLoop { image: image.clone() });
    assert!(matches!(error, HostError::ForeignLoop { .. }), "{error}");
    assert!(error.to_string().contains(&a) && error.to_string().contains(&b), "{error}");
    bench.twice(Op::DetachLoop { image: image.clone() });
    // One that shows a part only is no device of ours either.
    let part = outsider("losetup", &["-f", "--show", "-o", "4096", &image]);
    assert!(bench.refused(Op::AttachLoop { image: image.clone() }).to_string().contains(&part));
    bench.twice(Op::DetachLoop { image });
}

pub fn a_mounted_loop_device_is_not_detached() {
    // reliability 6: the kernel would say yes and do it later
    let bench = Bench::new();
    let volume = bench.mounted("held");
    let error = bench.refused(Op::DetachLoop { image: volume.image.clone() });
    assert!(matches!(error, HostError::Busy { .. }) && error.to_string().contains(&volume.device), "{error}");
    let entries = io_host::loops().unwrap();
    assert!(!entries.iter().find(|entry| entry.device == volume.device).unwrap().autoclear);
    bench.remove(&volume);
}

pub fn a_detaching_that_waits_is_taken_back() {
    let bench = Bench::new();
    let volume = bench.mounted("back");
    outsider("losetup", &["-d", &volume.device]);
    let autoclear = || io_host::loops().unwrap().into_iter().find(|e| e.device == volume.device).unwrap().autoclear;
    assert!(autoclear());
    bench.twice(Op::AttachLoop { image: volume.image.clone() });
    assert!(!autoclear());
    bench.remove(&volume);
}

pub fn a_loop_device_whose_file_is_gone_is_detached() {
    let bench = Bench::new();
    let (image, device) = bench.attached("gone.img");
    std::fs::remove_file(&image).unwrap();
    let entries = io_host::loops().unwrap();
    let entry = entries.iter().find(|entry| entry.device == device).unwrap();
    assert_eq!(entry.backing_path, format!("{image} (deleted)"));
    bench.twice(Op::DetachLoop { image });
    assert!(io_host::loops().unwrap().iter().all(|entry| entry.device != device));
}

pub fn a_file_behind_a_loop_device_is_not_removed() {
    let bench = Bench::new();
    let (image, device) = bench.attached("used.img");
    let error = bench.refused(Op::RemoveFile { path: image.clone() });
    assert!(matches!(error, HostError::Busy { .. }) && error.to_string().contains(&device), "{error}");
    bench.twice(Op::DetachLoop { image: image.clone() });
    bench.twice(Op::RemoveFile { path: image });
}

pub fn a_device_with_data_is_not_formatted() {
    // reliability 112: no mkfs on any signature
    let bench = Bench::new();
    let make = |device: &str, fstype: &str| Op::MakeFilesystem { device: device.into(), fstype: fstype.into() };
    let (image, device) = bench.attached("data.img");
    bench.twice(make(&device, "ext4"));
    let before = outsider("blkid", &["-p", "-s", "UUID", "-o", "value", &device]);
    let error = bench.refused(make(&device, "xfs"));
    assert!(matches!(error, HostError::ForeignSignature { .. }) && error.to_string().contains("ext4"), "{error}");
    assert_eq!(outsider("blkid", &["-p", "-s", "UUID", "-o", "value", &device]), before);
    bench.twice(Op::DetachLoop { image });

    // A partition table, and a swap area, which is a signature and no filesystem.
    let (image, device) = bench.attached("table.img");
    let mut sector = [0; 512];
    (sector[446 + 4], sector[446 + 8], sector[446 + 12]) = (0x83, 1, 100);
    (sector[510], sector[511]) = (0x55, 0xaa);
    File::options().write(true).open(&device).unwrap().write_all_at(&sector, 0).unwrap();
    let error = bench.refused(make(&device, "ext4"));
    assert!(error.to_string().contains("partition table"), "{error}");
    bench.twice(Op::DetachLoop { image });

    let (image, device) = bench.attached("swap.img");
    outsider("mkswap", &[&device]);
    assert!(matches!(bench.refused(make(&device, "ext4")), HostError::ForeignSignature { .. }));
    bench.twice(Op::DetachLoop { image });
}

pub fn what_is_no_block_device_is_not_formatted() {
    let bench = Bench::new();
    let path = bench.path("plain.img");
    bench.twice(Op::CreateImage { path: path.clone(), size: 64 << 20 });
    let make = |device: &str, fstype: &str| Op::MakeFilesystem { device: device.into(), fstype: fstype.into() };
    assert!(matches!(bench.refused(make(&path, "ext4")), HostError::WrongKind { .. }));
    assert!(matches!(bench.refused(make("/dev/null", "ext4")), HostError::WrongKind { .. }));
    assert!(matches!(bench.refused(make(&bench.path("none"), "ext4")), HostError::Missing { .. }));
    assert!(matches!(bench.refused(make(&path, "vfat -n x")), HostError::UnknownFilesystem { .. }));
    // A loop device that shows nothing has no room, and is not blank.
    let free = outsider("losetup", &["-f"]);
    assert!(matches!(bench.refused(make(&free, "ext4")), HostError::WrongKind { .. }));
}

// Reliability 83: nothing is formatted that holds a byte of anybody, also where that is not on disk yet.
pub fn a_byte_that_waits_in_the_devices_cache_is_seen() {
    let bench = Bench::new();
    let (image, device) = bench.attached("cached.img");
    // A partition table, by a writer who goes on: the kernel has no reason yet to write it out.
    let block = File::options().write(true).open(&device).unwrap();
    let mut sector = [0; 512];
    (sector[446 + 4], sector[446 + 8], sector[446 + 12]) = (0x83, 1, 100);
    (sector[510], sector[511]) = (0x55, 0xaa);
    block.write_all_at(&sector, 0).unwrap();
    let error = bench.refused(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    assert!(error.to_string().contains("partition table"), "{error}");
    drop(block);
    bench.twice(Op::DetachLoop { image });
}

pub fn an_ext4_is_sound_whatever_its_size() {
    let bench = Bench::new();
    // Small and large ones have blocks, groups and journals of other sizes; the last is too large to be made in memory.
    for (number, size) in [16 << 20, 100 << 20, 700 << 20, 5 << 30, 80 << 30_u64].into_iter().enumerate() {
        let image = bench.path(&format!("{number}.img"));
        bench.twice(Op::CreateImage { path: image.clone(), size });
        let Reply::Device(device) = bench.twice(Op::AttachLoop { image: image.clone() }) else { panic!("no device") };
        bench.twice(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
        outsider("e2fsck", &["-f", "-n", &device]);
        let target = bench.make_dir(&format!("{number}"));
        bench.twice(mount(&device, &target));
        std::fs::write(format!("{target}/file"), vec![7; 1 << 20]).unwrap();
        bench.twice(Op::Unmount { target });
        outsider("e2fsck", &["-f", "-n", &device]);
        bench.twice(Op::DetachLoop { image });
    }
}

// Whoever starts a process in a mount namespace of its own has a copy of every mount until it lets go of them.
pub fn a_device_held_for_a_moment_by_a_process_being_started_is_waited_for() {
    let bench = Bench::new();
    let volume = bench.mounted("held");
    let copied = bench.path("copied");
    let script = format!("touch {copied}; sleep 0.4");
    let mut starting = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .spawn()
        .unwrap();
    while !std::path::Path::new(&copied).exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    bench.twice(Op::Unmount { target: volume.target });
    bench.twice(Op::DetachLoop { image: volume.image });
    starting.wait().unwrap();
}
