//! What happens behind the driver's back: mounts and devices taken away, disks that are full, filesystems that are damaged.

use std::process::Command;

use csi::v1;
use csi::{Call, Code, Response};

use crate::bench::{Bench, Driver, MIB, Volume, block, writer};

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn device(bench: &Bench, volume: &Volume) -> String {
    let image = bench.path(&format!("state/images/{}.img", volume.id));
    io_host::loops().unwrap().into_iter().find(|entry| entry.backing_path == image).unwrap().device
}

fn listed(driver: &Driver) -> Vec<String> {
    let Ok(Response::ListVolumes(all)) = driver.call(Call::ListVolumes(Default::default())) else { panic!() };
    all.entries.into_iter().filter_map(|entry| Some(entry.volume?.volume_id)).collect()
}

// Reliability 112: what is mounted is asked of the kernel for every call, whoever changed it.
#[test]
fn what_others_unmount_and_detach_between_two_calls_is_seen() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &["--without", "publish"]);
    let volume = Volume::new(&bench, "v", writer(""));
    driver.all(&[volume.made(), volume.staged(), volume.published()]);
    std::fs::write(volume.file("file"), "kept").unwrap();
    run("umount", &[&volume.target]);
    driver.all(&[volume.published()]);
    assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
    let device = device(&bench, &volume);
    run("umount", &[&volume.target]);
    run("umount", &[&volume.staging]);
    run("losetup", &["-d", &device]);
    assert_eq!(driver.code(volume.published()), Code::FailedPrecondition);
    driver.all(&[volume.staged(), volume.published()]);
    assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
    // Somebody shows it at a place the driver never heard of.
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    run("mount", &["--bind", &volume.staging, &elsewhere]);
    driver.all(&[volume.unpublished()]);
    assert_eq!(driver.code(volume.unstaged()), Code::FailedPrecondition);
    assert_eq!(driver.code(volume.deleted()), Code::FailedPrecondition);
    run("umount", &[&elsewhere]);
    driver.all(&[volume.unstaged(), volume.deleted()]);
}

#[test]
fn a_device_somebody_else_attached_is_found() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &["--without", "publish"]);
    let volume = Volume::new(&bench, "v", block());
    driver.all(&[volume.made(), volume.staged(), volume.unstaged()]);
    run("losetup", &["--direct-io=on", "-f", &bench.path("state/images/v.img")]);
    driver.all(&[volume.staged(), volume.published(), volume.unpublished(), volume.unstaged(), volume.deleted()]);
}

// Reliability 83 and 117: a filesystem only a person can repair is refused in words and never made anew.
#[test]
fn a_damaged_filesystem_is_refused_and_kept() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &["--without", "publish"]);
    let volume = Volume::new(&bench, "v", writer("ext4"));
    driver.all(&[volume.made(), volume.staged(), volume.unstaged()]);
    let image = bench.path("state/images/v.img");
    // Not unmounted properly: repaired without anybody's help.
    run("debugfs", &["-w", "-R", "ssv state 0", &image]);
    driver.all(&[volume.staged(), volume.unstaged()]);
    run("debugfs", &["-w", "-R", "clri <2>", &image]);
    run("debugfs", &["-w", "-R", "ssv state 2", &image]);
    let before = std::fs::read(&image).unwrap();
    let status = driver.call(volume.staged()).unwrap_err();
    assert_eq!(status.code, Code::FailedPrecondition, "{}", status.message);
    assert!(status.message.contains("e2fsck"), "{}", status.message);
    assert_eq!(before[1024 + 0x68..1024 + 0x78], std::fs::read(&image).unwrap()[1024 + 0x68..1024 + 0x78], "made anew");
    driver.all(&[volume.unstaged(), volume.deleted()]);
}

// A disk beneath the images that is full: refused in the right words, nothing harmed, and on with it when there is room.
#[test]
fn a_full_disk_harms_nothing() {
    let Some(bench) = Bench::new() else { return };
    let (disk, state) = (bench.path("disk.img"), bench.path("state"));
    std::fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    std::fs::create_dir(&state).unwrap();
    run("mkfs.ext4", &["-q", "-F", "-m", "0", &disk]);
    run("mount", &["-o", "loop", &disk, &state]);
    {
        let mut driver = bench.start("d", &["--without", "publish"]);
        let volume = Volume::new(&bench, "v", writer(""));
        driver.all(&[volume.made(), volume.staged(), volume.published()]);
        std::fs::write(volume.file("file"), vec![7; 4 * MIB as usize]).unwrap();
        let filler = bench.path("state/filler");
        run("sync", &["-f", &volume.target]);
        // More than once: what was set aside for the writing itself is free again afterwards; and down to the last block.
        for block in ["bs=64k", "bs=4k", "bs=1k", "bs=1k"] {
            let output = ["if=/dev/zero", &format!("of={filler}"), block, "oflag=append", "conv=notrunc,fsync"];
            let _ = Command::new("dd").args(output).output().unwrap();
        }
        let another = Volume::new(&bench, "another", writer(""));
        assert_eq!(driver.code(another.made()), Code::ResourceExhausted);
        let (source_volume_id, name) = ("v".to_string(), "s".to_string());
        let take = v1::CreateSnapshotRequest { source_volume_id, name, ..Default::default() };
        assert_eq!(driver.code(Call::CreateSnapshot(take.clone())), Code::ResourceExhausted);
        assert_eq!(listed(&driver), ["v"]);
        driver.kill_and_restart();
        assert_eq!(listed(&driver), ["v"]);
        std::fs::remove_file(filler).unwrap();
        driver.all(&[another.made(), Call::CreateSnapshot(take), another.deleted()]);
        let drop = v1::DeleteSnapshotRequest { snapshot_id: "s".into(), ..Default::default() };
        driver.all(&[Call::DeleteSnapshot(drop), volume.unpublished(), volume.unstaged(), volume.deleted()]);
    }
    run("umount", &[&state]);
}
