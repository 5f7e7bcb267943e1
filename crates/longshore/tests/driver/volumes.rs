//! What volumes hold: data across snapshots, clones, growth, devices, directories, restarts.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use csi::v1;
use csi::v1::volume_content_source::{SnapshotSource, Type as SourceType, VolumeSource};
use csi::{Call, Code, Response};

use crate::bench::{Bench, Driver, MIB, Volume, block, writer};

fn take(volume: &Volume, name: &str) -> Call {
    let (source_volume_id, name) = (volume.id.into(), name.into());
    Call::CreateSnapshot(v1::CreateSnapshotRequest { source_volume_id, name, ..Default::default() })
}

fn drop_snapshot(id: &str) -> Call {
    Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id: id.into(), ..Default::default() })
}

fn from(volume: &Volume, source: SourceType) -> Call {
    let volume_content_source = Some(v1::VolumeContentSource { r#type: Some(source) });
    Call::CreateVolume(v1::CreateVolumeRequest { volume_content_source, ..volume.create() })
}

fn grow(volume: &Volume, required_bytes: i64) -> Call {
    Call::ControllerExpandVolume(v1::ControllerExpandVolumeRequest {
        volume_id: volume.id.into(),
        capacity_range: Some(v1::CapacityRange { required_bytes, limit_bytes: 0 }),
        ..Default::default()
    })
}

fn grow_node(volume: &Volume) -> Call {
    let (volume_id, volume_path) = (volume.id.into(), volume.target.clone());
    Call::NodeExpandVolume(v1::NodeExpandVolumeRequest { volume_id, volume_path, ..Default::default() })
}

fn total(driver: &Driver, volume: &Volume) -> i64 {
    let (volume_id, volume_path) = (volume.id.into(), volume.target.clone());
    let request = v1::NodeGetVolumeStatsRequest { volume_id, volume_path, ..Default::default() };
    let Ok(Response::NodeGetVolumeStats(answer)) = driver.call(Call::NodeGetVolumeStats(request)) else { panic!() };
    answer.usage[0].total
}

fn up(driver: &Driver, volume: &Volume) {
    driver.all(&[volume.attached(), volume.staged(), volume.published()]);
}

fn down(driver: &Driver, volume: &Volume) {
    driver.all(&[volume.unpublished(), volume.unstaged(), volume.detached(), volume.deleted()]);
}

const DIRECTORY: &str = "directory";

fn volume_of(bench: &Bench, id: &'static str, filesystem: &str) -> Volume {
    match filesystem {
        DIRECTORY => Volume { parameters: &[("kind", "directory")], ..Volume::new(bench, id, writer("")) },
        filesystem => Volume::new(bench, id, writer(filesystem)),
    }
}

#[test]
fn data_survives_snapshot_restore_and_clone_in_every_filesystem() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &[]);
    for fstype in ["ext4", "xfs", "btrfs", DIRECTORY] {
        let volume = volume_of(&bench, "v", fstype);
        driver.all(&[volume.made()]);
        up(&driver, &volume);
        std::fs::write(volume.file("file"), "first").unwrap();
        driver.all(&[take(&volume, "s")]);
        std::fs::write(volume.file("file"), "second").unwrap();
        let (restored, cloned) = (volume_of(&bench, "r", fstype), volume_of(&bench, "c", fstype));
        driver.kill_and_restart();
        driver.all(&[
            from(&restored, SourceType::Snapshot(SnapshotSource { snapshot_id: "s".into() })),
            from(&cloned, SourceType::Volume(VolumeSource { volume_id: "v".into() })),
        ]);
        // All three at once, though they bear the same mark.
        up(&driver, &restored);
        up(&driver, &cloned);
        assert_eq!(std::fs::read_to_string(restored.file("file")).unwrap(), "first", "{fstype}");
        assert_eq!(std::fs::read_to_string(cloned.file("file")).unwrap(), "second", "{fstype}");
        std::fs::write(cloned.file("file"), "third").unwrap();
        assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "second", "{fstype}");
        down(&driver, &restored);
        down(&driver, &cloned);
        down(&driver, &volume);
        driver.all(&[drop_snapshot("s")]);
    }
}

#[test]
fn a_group_of_volumes_is_taken_together() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &[]);
    let (a, b) = (Volume::new(&bench, "a", writer("")), Volume::new(&bench, "b", writer("xfs")));
    let c = volume_of(&bench, "c", DIRECTORY);
    for volume in [&a, &b, &c] {
        driver.all(&[volume.made()]);
        up(&driver, volume);
        std::fs::write(volume.file("file"), format!("of {}", volume.id)).unwrap();
    }
    let source_volume_ids = ["a", "b", "c"].map(String::from).to_vec();
    let group = v1::CreateVolumeGroupSnapshotRequest { name: "g".into(), source_volume_ids, ..Default::default() };
    let Ok(Response::CreateVolumeGroupSnapshot(answer)) = driver.call(Call::CreateVolumeGroupSnapshot(group)) else {
        panic!("not taken")
    };
    let snapshots = answer.group_snapshot.unwrap().snapshots;
    let of_b = snapshots.iter().find(|one| one.source_volume_id == "b").unwrap();
    std::fs::write(a.file("after"), "x").unwrap();
    let restored = Volume::new(&bench, "r", writer("xfs"));
    driver.all(&[from(&restored, SourceType::Snapshot(SnapshotSource { snapshot_id: of_b.snapshot_id.clone() }))]);
    up(&driver, &restored);
    assert_eq!(std::fs::read_to_string(restored.file("file")).unwrap(), "of b");
    let of_c = snapshots.iter().find(|one| one.source_volume_id == "c").unwrap();
    let directory = volume_of(&bench, "rc", DIRECTORY);
    driver.all(&[from(&directory, SourceType::Snapshot(SnapshotSource { snapshot_id: of_c.snapshot_id.clone() }))]);
    up(&driver, &directory);
    assert_eq!(std::fs::read_to_string(directory.file("file")).unwrap(), "of c");
    for volume in [&a, &b, &c, &restored, &directory] {
        down(&driver, volume);
    }
    let group_snapshot_id = "g".to_string();
    let drop_group = v1::DeleteVolumeGroupSnapshotRequest { group_snapshot_id, ..Default::default() };
    driver.all(&[Call::DeleteVolumeGroupSnapshot(drop_group)]);
    for folder in ["snapshot-images", "snapshot-directories"] {
        assert_eq!(std::fs::read_dir(bench.path(&format!("state/{folder}"))).unwrap().count(), 0);
    }
}

#[test]
fn volumes_grow_in_use_or_at_the_next_staging() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &[]);
    for fstype in ["ext4", "xfs", "btrfs"] {
        let volume = Volume::new(&bench, "v", writer(fstype));
        driver.all(&[volume.made()]);
        up(&driver, &volume);
        std::fs::write(volume.file("file"), "kept").unwrap();
        let before = total(&driver, &volume);
        driver.all(&[grow(&volume, 640 * MIB)]);
        let answer = driver.code(grow_node(&volume));
        if answer == Code::Ok {
            driver.all(&[grow_node(&volume)]);
        } else {
            // This kernel wants CAP_SYS_RESOURCE for it.
            assert_eq!((fstype, answer), ("ext4", Code::FailedPrecondition));
            driver.all(&[
                volume.unpublished(),
                volume.unstaged(),
                volume.staged(),
                volume.published(),
                grow_node(&volume),
            ]);
        }
        let after = total(&driver, &volume);
        assert!(after > before + 250 * MIB, "{fstype}: {before} to {after}");
        assert_eq!(std::fs::read_to_string(volume.file("file")).unwrap(), "kept");
        down(&driver, &volume);
    }
}

#[test]
fn a_device_is_given_as_it_is() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &[]);
    let volume = Volume::new(&bench, "v", block());
    driver.all(&[volume.made()]);
    up(&driver, &volume);
    let write = |text: &[u8]| {
        let device = File::options().write(true).open(&volume.target)?;
        device.write_all_at(text, 4096)?;
        device.sync_all()
    };
    write(b"written").unwrap();
    driver.all(&[grow(&volume, 640 * MIB), grow_node(&volume)]);
    assert_eq!(total(&driver, &volume), 640 * MIB);
    driver.kill_and_restart();
    driver.all(&[volume.staged(), volume.published(), volume.unpublished()]);
    // Read-only is read-only, and the bytes are there.
    let reader = Call::NodePublishVolume(v1::NodePublishVolumeRequest { readonly: true, ..volume.publish() });
    driver.all(&[reader]);
    assert!(write(b"changed").is_err());
    let mut found = [0; 7];
    File::open(&volume.target).unwrap().read_exact_at(&mut found, 4096).unwrap();
    assert_eq!(&found, b"written");
    down(&driver, &volume);
}

#[test]
fn a_directory_and_a_read_only_view() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &[]);
    let plain = Volume { parameters: &[("kind", "directory")], ..Volume::new(&bench, "plain", writer("")) };
    let image = Volume::new(&bench, "image", writer(""));
    for volume in [&plain, &image] {
        driver.all(&[volume.made()]);
        up(&driver, volume);
        std::fs::create_dir_all(volume.file("deep/er")).unwrap();
        std::fs::write(volume.file("deep/file"), "kept").unwrap();
        driver.kill_and_restart();
        driver.all(&[volume.staged(), volume.published()]);
        let seen = Volume { target: bench.path("pods/seen"), ..volume.clone() };
        let request = v1::NodePublishVolumeRequest { readonly: true, ..seen.publish() };
        driver.all(&[Call::NodePublishVolume(request.clone())]);
        assert_eq!(std::fs::read_to_string(seen.file("deep/file")).unwrap(), "kept");
        assert!(std::fs::write(seen.file("deep/file"), "x").is_err());
        // The same target in another way.
        let other = v1::NodePublishVolumeRequest { readonly: false, ..request };
        assert_eq!(driver.code(Call::NodePublishVolume(other)), Code::AlreadyExists);
        assert_eq!(driver.code(volume.deleted()), Code::FailedPrecondition);
        driver.all(&[seen.unpublished()]);
        down(&driver, volume);
    }
    assert_eq!(std::fs::read_dir(bench.path("state/directories")).unwrap().count(), 0);
}

#[test]
fn what_is_read_ahead_is_the_users_choice() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", &[]);
    let volume = Volume::new(&bench, "v", writer(""));
    driver.all(&[volume.made()]);
    up(&driver, &volume);
    let mutable_parameters = [("readAheadKiB".to_string(), "2048".to_string())].into();
    let modify = v1::ControllerModifyVolumeRequest { volume_id: "v".into(), mutable_parameters, ..Default::default() };
    driver.all(&[Call::ControllerModifyVolume(modify)]);
    let ahead = || {
        let image = bench.path("state/images/v.img");
        let entry = io_host::loops().unwrap().into_iter().find(|entry| entry.backing_path == image).unwrap();
        let name = entry.device.trim_start_matches("/dev/").to_string();
        std::fs::read_to_string(format!("/sys/block/{name}/queue/read_ahead_kb")).unwrap()
    };
    assert_eq!(ahead().trim(), "2048");
    driver.all(&[volume.unpublished(), volume.unstaged(), volume.staged()]);
    assert_eq!(ahead().trim(), "2048");
    driver.all(&[volume.published()]);
    down(&driver, &volume);
}

/// Reliability 77 and 82: killed at any moment, everything that was acknowledged is there, and the rest can be repeated.
#[test]
fn killed_at_any_moment_it_goes_on() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", &[]);
    let volume = Volume::new(&bench, "v", writer(""));
    for round in 0..6_u64 {
        let calls = [
            volume.made(),
            volume.attached(),
            volume.staged(),
            volume.published(),
            take(&volume, "s"),
            drop_snapshot("s"),
            volume.unpublished(),
            volume.unstaged(),
            volume.detached(),
            volume.deleted(),
        ];
        for (step, call) in calls.into_iter().enumerate() {
            // The call is under way when the driver is killed, a little later each round.
            let pause = std::time::Duration::from_micros(300 * (round + 1) + 150 * step as u64);
            driver.kill_during(call.clone(), pause);
            driver.patiently(&call);
        }
    }
}
