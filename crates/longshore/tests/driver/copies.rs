//! Copies that take longer than a caller waits: told as such, finished without anybody asking, begun anew after a crash.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use csi::v1;
use csi::v1::volume_content_source::{SnapshotSource, Type as SourceType, VolumeSource};
use csi::{Call, Code, Response};

use crate::bench::{Bench, Driver, MIB, Volume, block, writer};

/// A copy of what is written here takes about two seconds, and nobody waits for it longer than a tenth of one.
const SLOW: &[&str] = &["--without", "publish", "--copy-patience-millis", "100", "--copy-bytes-per-second", "3000000"];
const CONTENT: usize = 6 << 20;

/// Every kind of volume there is.
fn kinds(bench: &Bench) -> [Volume; 3] {
    [
        Volume::new(bench, "blocks", block()),
        Volume::new(bench, "files", writer("")),
        Volume { parameters: &[("kind", "directory")], ..Volume::new(bench, "directory", writer("")) },
    ]
}

fn is_block(volume: &Volume) -> bool {
    volume.capability == block()
}

fn content() -> Vec<u8> {
    (0..CONTENT).map(|at| (at / 4096 % 251) as u8 + 1).collect()
}

fn write(volume: &Volume) {
    if is_block(volume) {
        let device = File::options().write(true).open(&volume.target).unwrap();
        device.write_all_at(&content(), MIB as u64).unwrap();
        device.sync_all().unwrap();
    } else {
        std::fs::write(volume.file("file"), content()).unwrap();
    }
}

fn holds_all(volume: &Volume) -> bool {
    let mut found = vec![0; CONTENT];
    if is_block(volume) {
        File::open(&volume.target).unwrap().read_exact_at(&mut found, MIB as u64).unwrap();
    } else {
        found = std::fs::read(volume.file("file")).unwrap();
    }
    found == content()
}

fn take(volume: &Volume) -> Call {
    let (source_volume_id, name) = (volume.id.into(), "s".into());
    Call::CreateSnapshot(v1::CreateSnapshotRequest { source_volume_id, name, ..Default::default() })
}

fn taken(driver: &Driver, volume: &Volume) -> v1::Snapshot {
    match driver.call(take(volume)) {
        Ok(Response::CreateSnapshot(answer)) => answer.snapshot.unwrap(),
        other => panic!("{}: {other:?}", volume.id),
    }
}

fn dropped() -> Call {
    Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id: "s".into(), ..Default::default() })
}

fn restored(volume: &Volume, copy: &Volume) -> Call {
    let snapshot = SourceType::Snapshot(SnapshotSource { snapshot_id: "s".into() });
    from(snapshot, &Volume { capability: volume.capability.clone(), parameters: volume.parameters, ..copy.clone() })
}

fn from(source: SourceType, volume: &Volume) -> Call {
    let volume_content_source = Some(v1::VolumeContentSource { r#type: Some(source) });
    Call::CreateVolume(v1::CreateVolumeRequest { volume_content_source, ..volume.create() })
}

/// What the list says of the one snapshot.
fn listed(driver: &Driver) -> Option<bool> {
    let Ok(Response::ListSnapshots(all)) = driver.call(Call::ListSnapshots(Default::default())) else { panic!() };
    assert!(all.entries.len() <= 1, "{} snapshots", all.entries.len());
    Some(all.entries.into_iter().next()?.snapshot?.ready_to_use)
}

fn becomes_ready(driver: &Driver, volume: &Volume) {
    for _ in 0..600 {
        if listed(driver) == Some(true) {
            // The list knows before the copy has let go of the volume.
            return driver.patiently(&take(volume));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the copy does not come to an end");
}

/// Waits until some of a copy is on disk.
fn is_under_way(bench: &Bench) {
    for _ in 0..1000 {
        if bytes_of_snapshots(bench).iter().any(|name| name.starts_with(".s")) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the copy was not begun: {:?}", bytes_of_snapshots(bench));
}

fn capacity(driver: &Driver) -> i64 {
    let Ok(Response::GetCapacity(answer)) = driver.call(Call::GetCapacity(Default::default())) else { panic!() };
    answer.available_capacity
}

/// Names in the folders of snapshots' bytes, and of what is half written.
fn bytes_of_snapshots(bench: &Bench) -> Vec<String> {
    let folders = ["snapshot-images", "snapshot-directories"].map(|name| bench.path(&format!("state/{name}")));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A new volume in use, with something in it.
fn filled(driver: &Driver, volume: &Volume) {
    driver.all(&[volume.made()]);
    up(driver, volume);
    write(volume);
}

/// Kills the driver in the middle of a copy.
fn cut_off(driver: &mut Driver, bench: &Bench, volume: &Volume) {
    assert!(!taken(driver, volume).ready_to_use);
    is_under_way(bench);
    driver.kill();
}

/// The snapshot can be used, and leaves nothing behind.
fn is_whole_and_goes(driver: &Driver, bench: &Bench, volume: &Volume, room: i64) {
    is_whole(driver, bench, volume);
    down(driver, volume);
    driver.all(&[dropped()]);
    assert_eq!((bytes_of_snapshots(bench), capacity(driver)), (vec![], room), "{}", volume.id);
}

fn up(driver: &Driver, volume: &Volume) {
    driver.all(&[volume.staged(), volume.published()]);
}

fn down(driver: &Driver, volume: &Volume) {
    for call in [volume.unpublished(), volume.unstaged(), volume.deleted()] {
        driver.patiently(&call);
    }
}

/// A new volume from the snapshot holds what the volume held.
fn is_whole(driver: &Driver, bench: &Bench, volume: &Volume) {
    let copy = Volume::new(bench, "copy", volume.capability.clone());
    driver.all(&[restored(volume, &copy)]);
    up(driver, &copy);
    assert!(holds_all(&copy), "{}", volume.id);
    down(driver, &copy);
}

#[test]
fn a_copy_that_takes_long_is_told_as_not_ready_and_finished_by_itself() {
    let Some(bench) = Bench::new() else { return };
    let driver = bench.start("d", SLOW);
    let room = capacity(&driver);
    for volume in kinds(&bench) {
        filled(&driver, &volume);
        let first = taken(&driver, &volume);
        assert!(!first.ready_to_use, "{}: the call waited for the copy", volume.id);
        assert_eq!(listed(&driver), Some(false), "{}", volume.id);
        let again = taken(&driver, &volume);
        assert_eq!((again.ready_to_use, &again.snapshot_id), (false, &first.snapshot_id), "{}", volume.id);
        // Nothing is made of half a copy, and nothing is taken away under it.
        let copy = Volume::new(&bench, "copy", volume.capability.clone());
        assert_eq!(driver.code(restored(&volume, &copy)), Code::Aborted);
        assert_eq!([driver.code(dropped()), driver.code(volume.deleted())], [Code::Aborted, Code::Aborted]);
        // Others do not wait for it.
        let other = Volume::new(&bench, "other", writer(""));
        driver.all(&[other.made(), other.deleted()]);
        becomes_ready(&driver, &volume);
        let ready = taken(&driver, &volume);
        assert_eq!((ready.ready_to_use, ready.creation_time), (true, first.creation_time), "{}", volume.id);
        is_whole_and_goes(&driver, &bench, &volume, room);
    }
}

// Reliability 77 and 82.
#[test]
fn a_copy_that_a_crash_cut_off_is_made_anew_without_anybody_asking() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", SLOW);
    let room = capacity(&driver);
    for volume in kinds(&bench) {
        filled(&driver, &volume);
        cut_off(&mut driver, &bench, &volume);
        let left = bytes_of_snapshots(&bench);
        assert!(left.len() == 1 && left[0].starts_with(".s"), "{}: killed after the copy: {left:?}", volume.id);
        driver.restart();
        becomes_ready(&driver, &volume);
        let left = bytes_of_snapshots(&bench);
        assert!(left.len() == 1 && left[0].starts_with('s'), "{}: {left:?}", volume.id);
        // Whatever stood still for the copy goes on.
        write(&volume);
        is_whole_and_goes(&driver, &bench, &volume, room);
    }
}

#[test]
fn a_snapshot_that_is_still_copied_after_a_crash_can_be_dropped() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", SLOW);
    let room = capacity(&driver);
    for volume in kinds(&bench) {
        filled(&driver, &volume);
        cut_off(&mut driver, &bench, &volume);
        driver.restart();
        driver.patiently(&dropped());
        down(&driver, &volume);
        assert_eq!((listed(&driver), capacity(&driver)), (None, room), "{}", volume.id);
        assert_eq!(bytes_of_snapshots(&bench), Vec::<String>::new(), "{}", volume.id);
    }
}

// A clone has no state in between for its caller: the call, or its repetition, ends with the copy.
#[test]
fn a_clone_that_takes_long_or_is_cut_off_ends_whole() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.start("d", SLOW);
    for volume in kinds(&bench) {
        filled(&driver, &volume);
        let copy = Volume { parameters: volume.parameters, ..Volume::new(&bench, "copy", volume.capability.clone()) };
        let clone = from(SourceType::Volume(VolumeSource { volume_id: volume.id.into() }), &copy);
        driver.kill_during(clone.clone(), Duration::from_millis(700));
        driver.patiently(&clone);
        up(&driver, &copy);
        assert!(holds_all(&copy), "{}", volume.id);
        down(&driver, &copy);
        down(&driver, &volume);
    }
    for folder in ["volumes", "images", "directories"] {
        assert_eq!(std::fs::read_dir(bench.path(&format!("state/{folder}"))).unwrap().count(), 0, "{folder}");
    }
    assert!(Path::new(&bench.path("state")).exists());
}
