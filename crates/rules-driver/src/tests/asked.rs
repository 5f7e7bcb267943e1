//! What a request says, and what becomes of it: one field at a time.

use super::*;
use crate::{Bytes, Feature};

/// A request for volume `v` with these parameters.
fn with(parameters: &[(&str, &str)]) -> Call {
    let parameters = parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Call::CreateVolume(v1::CreateVolumeRequest { parameters, ..create_request("v", 320 * MIB, 0) })
}

fn read_ahead(kib: &str) -> Call {
    let mutable_parameters = [("readAheadKiB".to_string(), kib.to_string())].into();
    Call::CreateVolume(v1::CreateVolumeRequest { mutable_parameters, ..create_request("v", 64 * MIB, 0) })
}

/// The record of volume `v` after this call.
fn made(config: Config, call: Call) -> Volume {
    let mut driver = Driver::with(config);
    driver.bring(&[call]);
    driver.facts.volumes()["v"].clone()
}

fn refused(config: Config, call: Call) -> Code {
    Driver::with(config).code(call)
}

#[test]
fn what_a_class_asks_for_is_on_record() {
    assert_eq!(made(config(), with(&[("kind", "image")])).kind, Kind::Image);
    assert_eq!(made(config(), with(&[("kind", "directory")])).kind, Kind::Directory);
    assert_eq!(made(config(), with(&[("fsType", "xfs")])).filesystem.as_deref(), Some("xfs"));
    assert_eq!(made(config(), read_ahead("512")).read_ahead_kib, Some(512));
    // A size is the request's business.
    assert_eq!(refused(config(), with(&[("size", "1Gi")])), Code::InvalidArgument);
    // A driver of directories makes directories, whatever is said, and no images.
    let directories = || Config { kind: Kind::Directory, ..config() };
    assert_eq!(made(directories(), with(&[])).kind, Kind::Directory);
    assert_eq!(made(directories(), with(&[("kind", "directory")])).kind, Kind::Directory);
    assert_eq!(refused(directories(), with(&[("kind", "image")])), Code::InvalidArgument);
    assert_eq!(refused(directories(), read_ahead("512")), Code::InvalidArgument);
    assert_eq!(refused(without(&[Feature::Modify]), read_ahead("512")), Code::InvalidArgument);
    assert_eq!(refused(without(&[Feature::Modify]), with(&[])), Code::Ok);
}

#[test]
fn a_pods_volume_is_as_its_pod_asks_for() {
    let made = |parameters: &[(&str, &str)]| {
        let mut driver = Driver::new();
        // The record before anything is mounted.
        driver.disturbed(pods::inline("pod", "p", parameters), 1, Fault::Crash);
        driver.facts.volumes().values().next().unwrap().clone()
    };
    let directory = made(&[("kind", "directory")]);
    assert_eq!((directory.kind, directory.ephemeral), (Kind::Directory, true));
    let image = made(&[("fsType", "xfs"), ("size", "320Mi")]);
    assert_eq!((image.kind, image.filesystem.as_deref(), image.size), (Kind::Image, Some("xfs"), 320 << 20));
    assert_ne!(image.bytes, Bytes::There, "they come with the first use");
}

#[test]
fn copies_that_are_not_offered_are_refused() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), snapshots::take("v", "s")]);
    for (feature, call) in
        [(Feature::Clone, snapshots::copy("c", "v")), (Feature::Snapshots, snapshots::restore("r", "s"))]
    {
        driver.config = without(&[feature]);
        assert_eq!(driver.code(call.clone()), Code::InvalidArgument, "{feature:?}");
        driver.config = config();
        assert_eq!(driver.code(call), Code::Ok, "{feature:?}");
    }
    let parameters = [("a".to_string(), "b".to_string())].into();
    let request =
        v1::CreateSnapshotRequest { name: "t".into(), source_volume_id: "v".into(), parameters, ..Default::default() };
    assert_eq!(driver.code(Call::CreateSnapshot(request)), Code::InvalidArgument);
}

// What a filesystem was put on is not formatted again, wherever it is copied.
#[test]
fn a_copy_of_what_was_formatted_is_formatted() {
    let mut driver = Driver::new();
    driver.bring(&life("v")[..3]);
    driver.bring(&[snapshots::take("v", "s"), snapshots::copy("c", "v"), snapshots::restore("r", "s")]);
    let of = |id: &str| driver.facts.volumes()[id].formatted.as_deref();
    assert_eq!((of("v"), of("c"), of("r")), (Some("ext4"), Some("ext4"), Some("ext4")));
    assert_eq!(driver.facts.snapshots()["s"].formatted.as_deref(), Some("ext4"));
    let mut fresh = Driver::new();
    fresh.bring(&[create("v"), snapshots::take("v", "s"), snapshots::copy("c", "v")]);
    assert!(fresh.facts.snapshots()["s"].formatted.is_none() && fresh.facts.volumes()["c"].formatted.is_none());
}

// Version 2 and before made the bytes of a volume with the volume: what they had begun is begun anew.
#[test]
fn what_an_earlier_version_began_to_make_is_made_anew() {
    let mut driver = Driver::new();
    let old = br#"{"version":1,"id":"v","name":"v","size":67108864,"state":"creating","nodes":{}}"#;
    driver.world.files.insert(driver.config.record_path("v"), old.to_vec());
    driver.restart();
    driver.bring(&[create("v")]);
    assert_eq!(driver.facts.volumes()["v"].bytes, Bytes::Begun);
}

#[test]
fn a_volume_grows_to_what_was_asked_last() {
    let grown = |asked: i64| {
        let mut driver = Driver::new();
        driver.bring(&life("v")[..3]);
        assert!(driver.disturbed(growth::grow("v", 128 * MIB), 1, Fault::Crash).is_none());
        assert_eq!(driver.facts.volumes()["v"].growing_to, Some(128 << 20));
        driver.bring(&[growth::grow("v", asked)]);
        let volume = &driver.facts.volumes()["v"];
        assert_eq!(volume.growing_to, None);
        volume.size >> 20
    };
    assert_eq!(grown(100 * MIB), 128, "what was begun is finished, if it will do");
    assert_eq!(grown(256 * MIB), 256);
}

#[test]
fn only_an_image_that_is_there_grows_on_disk() {
    for (call, up, grows) in [(create("v"), 1, false), (create("v"), 3, true), (features::directory("v"), 3, false)] {
        let mut driver = Driver::new();
        let mut calls = life("v");
        calls[0] = call;
        driver.bring(&calls[..up]);
        driver.bring(&[growth::grow("v", 128 * MIB)]);
        let image = |op: &Op| matches!(op, Op::GrowImage { .. });
        assert_eq!(driver.ops.iter().any(image), grows, "{:?}", driver.ops);
    }
}

#[test]
fn a_directory_is_attached_and_no_device() {
    let mut driver = Driver::new();
    driver.bring(&[features::directory("d"), create("v")]);
    let as_device = |id: &str| {
        let request =
            v1::ControllerPublishVolumeRequest { volume_capability: Some(block()), ..attach_request(id, "n1") };
        Call::ControllerPublishVolume(request)
    };
    assert_eq!(driver.code(as_device("d")), Code::InvalidArgument);
    assert_eq!(driver.code(attach("d")), Code::Ok);
    assert_eq!(driver.code(as_device("v")), Code::Ok);
}

// Where it is mounted keeps it on that node, and on no other.
#[test]
fn a_volume_is_detached_from_where_it_is_not() {
    let mut driver = Driver::new();
    driver.bring(&life("v")[..3]);
    assert_eq!(driver.code(detach("v", "n1")), Code::FailedPrecondition);
    assert_eq!(driver.code(detach("v", "another")), Code::Ok);
    assert!(driver.facts.volumes()["v"].nodes.contains_key("n1"));
}

#[test]
fn a_path_as_long_as_the_kernel_takes_is_taken() {
    let long = |length: usize| {
        let path = format!("/{}", "x".repeat(length - 1));
        v1::NodeUnpublishVolumeRequest { volume_id: "v".into(), target_path: path }
    };
    for (length, code) in [(4_095, Code::Ok), (4_096, Code::InvalidArgument), (4_097, Code::InvalidArgument)] {
        assert_eq!(refused(config(), Call::NodeUnpublishVolume(long(length))), code, "{length}");
    }
}

#[test]
fn a_target_shows_the_filesystem_that_was_asked_for() {
    let mut driver = Driver::new();
    driver.bring(&life("v")[..4]);
    let again = |capability| {
        let request = publish_request("v", &target("p1"));
        Call::NodePublishVolume(v1::NodePublishVolumeRequest { volume_capability: Some(capability), ..request })
    };
    assert_eq!(driver.code(again(fs("ext4"))), Code::Ok);
    assert_eq!(driver.code(again(fs("xfs"))), Code::AlreadyExists);
    // A directory has none of its own.
    let mut directory = Driver::new();
    directory.bring(&features::directory_life()[..4]);
    assert_eq!(directory.code(again(fs("xfs"))), Code::Ok);
}

#[test]
fn a_device_that_is_not_attached_is_not_staged() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v")]);
    let request = publish_request("v", &target("p1"));
    let call = Call::NodePublishVolume(v1::NodePublishVolumeRequest { volume_capability: Some(block()), ..request });
    let status = driver.call(call).unwrap_err();
    assert!(status.message.contains(&format!("is not staged at {STAGING}")), "{}", status.message);
}

// Only what can be written to gives room back, and only where it is worth the while.
#[test]
fn room_is_given_back_before_an_image_is_put_away() {
    let ops = |capability: VolumeCapability, stale: u64| {
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v")]);
        let request = v1::NodeStageVolumeRequest { volume_capability: Some(capability), ..stage_request("v", STAGING) };
        driver.bring(&[Call::NodeStageVolume(request)]);
        let image = driver.config.image_path("v");
        driver.world.images.get_mut(&image).unwrap().stale = stale;
        driver.bring(&[unstage("v", STAGING)]);
        driver.ops.clone()
    };
    let discards = |ops: &[Op]| ops.iter().any(|op| matches!(op, Op::Discard { .. }));
    assert!(!discards(&ops(writer(), 64 << 20)), "exactly as much as is not worth it");
    assert!(discards(&ops(writer(), (64 << 20) + 1)));
    let mount = MountVolume { mount_flags: vec!["ro".into()], ..Default::default() };
    let read_only = VolumeCapability { access_type: Some(AccessType::Mount(mount)), ..writer() };
    let ops = ops(read_only, 1 << 30);
    assert!(!ops.iter().any(|op| matches!(op, Op::Measure { .. } | Op::Discard { .. })), "{ops:?}");
}

#[test]
fn a_group_is_told_with_its_time_and_a_driver_with_its_version() {
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    let Ok(Response::CreateVolumeGroupSnapshot(answer)) = driver.call(snapshots::take_group(&["v"], "g")) else {
        panic!()
    };
    let time = answer.group_snapshot.unwrap().creation_time.unwrap();
    assert_eq!((time.seconds, time.nanos), (1_700_000_000, 123_000_000));
    let Ok(Response::GetPluginInfo(info)) = driver.call(Call::GetPluginInfo(Default::default())) else { panic!() };
    assert_eq!(info.vendor_version, "1");
}

#[test]
fn a_node_says_its_zone_if_it_has_one() {
    let place = |zone: &str| {
        let mut driver = Driver::with(Config { zone: zone.into(), ..config() });
        let Ok(Response::NodeGetInfo(info)) = driver.call(Call::NodeGetInfo(Default::default())) else { panic!() };
        info.accessible_topology.unwrap().segments.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    let node = "topology.local.csi.longshore/node=n1".to_string();
    let (with, without): (BTreeSet<String>, BTreeSet<String>) = (place("z"), place(""));
    assert_eq!(without, [node.clone()].into());
    assert_eq!(with, [node, "topology.kubernetes.io/zone=z".to_string()].into());
}

#[test]
fn the_health_of_volumes_comes_by_page() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), create("w")]);
    let mut page = |max_entries: i32| {
        let request = v1::ControllerListVolumeHealthRequest { max_entries, ..Default::default() };
        match driver.call(Call::ControllerListVolumeHealth(request)) {
            Ok(Response::ControllerListVolumeHealth(answer)) => (answer.entries.len(), answer.next_token.is_empty()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(page(1), (1, false));
    assert_eq!(page(0), (2, true));
}

/// What the rules measure and then say, for a usage that is made up.
fn measured(driver: &mut Driver, call: Call, usage: control::host::Usage) -> (String, Response) {
    let mut run = Run::new(call, NOW);
    let Step::Do(op @ Op::Measure { .. }) = run.step(&driver.config, &mut driver.facts) else { panic!() };
    run.did(&driver.config, &mut driver.facts, op.clone(), &control::host::Reply::Usage(usage));
    let Op::Measure { path } = op else { panic!() };
    match run.step(&driver.config, &mut driver.facts) {
        Step::Answer(Ok(response)) => (path, response),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_disk_without_room_is_told_of() {
    let told = |bytes_free: u64| {
        let usage = control::host::Usage { bytes: 100, bytes_free, ..Default::default() };
        match measured(&mut Driver::new(), Call::NodeGetStorageHealth(Default::default()), usage) {
            (_, Response::NodeGetStorageHealth(answer)) => answer.backend_health.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((told(0), told(1)), (1, 0));
}

#[test]
fn inodes_are_told_of_a_filesystem_of_ones_own() {
    let units = |first: Call, inodes: u64| {
        let mut driver = Driver::new();
        let mut calls = life("v");
        calls[0] = first;
        driver.bring(&calls[..4]);
        let usage = control::host::Usage { bytes: 100, inodes, ..Default::default() };
        match measured(&mut driver, growth::stats("v", &target("p1")), usage) {
            (_, Response::NodeGetVolumeStats(answer)) => answer.usage.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(units(create("v"), 9), 2);
    assert_eq!(units(create("v"), 0), 1, "there is no count to tell");
    assert_eq!(units(features::directory("v"), 9), 1, "it shares the count with others");
}

#[test]
fn a_volume_is_looked_at_where_it_is() {
    let path = |up: &[Call], staging: &str| {
        let mut driver = Driver::new();
        driver.bring(up);
        let request = v1::NodeGetVolumeHealthRequest {
            volume_id: "v".into(),
            staging_target_path: staging.into(),
            ..Default::default()
        };
        measured(&mut driver, Call::NodeGetVolumeHealth(request), Default::default()).0
    };
    assert_eq!(path(&life("v")[..1], ""), "/state", "there are no bytes yet");
    assert_eq!(path(&life("v")[..3], ""), STAGING);
    assert_eq!(path(&life("v")[..4], &format!("{STAGING}/")), STAGING);
    let down = [&life("v")[..3], &[unstage("v", STAGING)]].concat();
    assert_eq!(path(&down, ""), "/state/images/v.img");
    let mut directory = features::directory_life();
    directory.truncate(3);
    directory.push(unstage("v", STAGING));
    assert_eq!(path(&directory, ""), "/state/directories/v");
}

#[test]
fn a_directory_needs_nothing_done_to_be_larger() {
    let mut driver = Driver::new();
    driver.bring(&features::directory_life()[..4]);
    driver.bring(&[growth::grow("v", 128 * MIB), growth::grow_node("v", &target("p1"))]);
    assert!(driver.ops.is_empty(), "{:?}", driver.ops);
}
