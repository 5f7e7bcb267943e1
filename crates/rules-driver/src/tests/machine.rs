//! What the process around the rules asks them: what to look at, what to lock, what is promised, what a failure means.

use control::host::FailureKind;
use csi::Thing;

use super::*;
use crate::check::{ephemeral_id, smallest};
use crate::{Look, State, locks, look, outlasts_callers, promises, under_way};

fn ids(of: &[&str]) -> Vec<String> {
    of.iter().flat_map(|id| [id.to_string(), ephemeral_id(id)]).collect()
}

// Each volume under its own name and as one of a pod, which is kept under another.
#[test]
fn a_call_looks_at_the_volumes_and_paths_it_names() {
    assert!(ephemeral_id("v").starts_with("eph-") && ephemeral_id("v") != ephemeral_id("w"));
    assert_eq!(look(&create("v")), Look { volumes: ids(&["v"]), paths: vec![] });
    assert_eq!(look(&snapshots::restore("v", "s")).volumes, ids(&["v"]));
    assert_eq!(look(&snapshots::copy("v", "source")).volumes, ids(&["source"]));
    assert_eq!(look(&snapshots::take_group(&["v", "w"], "g")).volumes, ids(&["v", "w"]));
    let Call::NodeStageVolume(mut staged) = stage("v") else { panic!() };
    staged.staging_target_path.push('/');
    assert_eq!(look(&Call::NodeStageVolume(staged)), Look { volumes: ids(&["v"]), paths: vec![STAGING.into()] });
    assert!(!look(&create("v")).is_empty());
    assert!(!Look { paths: vec![STAGING.into()], ..Look::default() }.is_empty());
    // The records know all of it, or there is nothing to know.
    for call in [attach("v"), growth::grow("v", MIB), Call::ListVolumes(Default::default())] {
        assert!(look(&call).is_empty(), "{call:?}");
    }
}

#[test]
fn what_promises_bytes_and_what_outlasts_its_caller() {
    for call in [
        create("v"),
        snapshots::take("v", "s"),
        snapshots::take_group(&["v"], "g"),
        growth::grow("v", MIB),
        pods::inline("v", "p", &[]),
    ] {
        assert!(promises(&call), "{call:?}");
    }
    for call in [delete("v"), publish("v", "p"), attach("v"), stage("v")] {
        assert!(!promises(&call), "{call:?}");
    }
    assert!(outlasts_callers(&snapshots::take("v", "s")));
    assert!(!outlasts_callers(&create("v")));
}

// Reliability 81; a copy holds its filesystem still, which two cannot do at once.
#[test]
fn two_copies_of_a_volume_exclude_each_other() {
    for call in [snapshots::take("v", "s"), snapshots::copy("c", "v")] {
        let all = locks(&call);
        let volume = all.iter().find(|lock| lock.thing == Thing::Volume && lock.id == "v").unwrap();
        assert!(!volume.shared, "{all:?}");
    }
}

/// A driver whose snapshot `s` of volume `v` is being copied.
fn copying() -> Driver {
    let mut driver = Driver::new();
    driver.bring(&life("v")[..3]);
    assert!(driver.disturbed(snapshots::take("v", "s"), 1, Fault::Crash).is_none());
    assert_eq!(driver.facts.snapshots()["s"].state, State::Creating);
    driver
}

#[test]
fn whoever_asks_again_for_a_snapshot_that_is_being_copied_is_told_so() {
    let mut driver = copying();
    let told = |driver: &Driver, call: &Call| match under_way(call, &driver.facts) {
        Some(Response::CreateSnapshot(answer)) => answer.snapshot.map(|one| (one.snapshot_id, one.ready_to_use)),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    let same = snapshots::take("v", "s");
    assert_eq!(told(&driver, &same), Some(("s".into(), false)));
    assert_eq!(told(&driver, &snapshots::take("w", "s")), None, "of another volume");
    assert_eq!(told(&driver, &snapshots::take("v", "t")), None, "under another name");
    assert_eq!(under_way(&create("s"), &driver.facts), None);
    assert_eq!(driver.code(snapshots::restore("r", "s")), Code::Aborted, "there is nothing to copy yet");
    // Before its record is on disk it is not under way, and afterwards it is there.
    let mut unsaved = Driver::new();
    unsaved.bring(&life("v")[..3]);
    let Step::Do(_) = Run::new(same.clone(), NOW).step(&unsaved.config, &mut unsaved.facts) else { panic!() };
    assert_eq!(told(&unsaved, &same), None);
    driver.bring(core::slice::from_ref(&same));
    assert_eq!(told(&driver, &same), None);
    // One of a group is the group's.
    let mut group = Driver::new();
    group.bring(&life("v")[..3]);
    assert!(group.disturbed(snapshots::take_group(&["v"], "g"), 2, Fault::Crash).is_none());
    let member = group.facts.snapshots().values().next().unwrap().name.clone();
    assert_eq!(told(&group, &snapshots::take("v", &member)), None);
}

// A snapshot that is going is nothing to copy from any more.
#[test]
fn a_snapshot_that_is_going_is_no_source() {
    let mut driver = Driver::new();
    driver.bring(&life("v")[..3]);
    driver.bring(&[snapshots::take("v", "s")]);
    assert!(driver.disturbed(snapshots::drop_snapshot("s"), 1, Fault::Crash).is_none());
    assert_eq!(driver.facts.snapshots()["s"].state, State::Deleting);
    assert_eq!(driver.code(snapshots::restore("r", "s")), Code::NotFound);
}

/// What comes of an operation that fails: `None` if the call goes on.
fn failed(call: &Call, op: &Op, trouble: Trouble) -> Option<Code> {
    Run::new(call.clone(), NOW).failed(op, "why", trouble).map(|status| status.code)
}

#[test]
fn what_a_failed_operation_means_for_its_call() {
    let write = Op::WriteFile { path: "/state/volumes/v.json".into(), bytes: vec![] };
    let remove = Op::RemoveFile { path: "/state/images/v.img".into() };
    let check = Op::CheckFilesystem { device: "/dev/loop0".into(), fstype: "ext4".into() };
    let image = Op::CreateImage { path: "/state/images/v.img".into(), size: 1 };
    let (full, other) = (Trouble::DiskFull, Trouble::Other);
    // What was begun is undone, and a deletion does without its mark.
    for call in [create("v"), snapshots::take("v", "s"), snapshots::take_group(&["v"], "g")] {
        assert_eq!(failed(&call, &write, full), None, "{call:?}");
        assert_eq!(failed(&call, &write, other), Some(Code::Unavailable), "{call:?}");
    }
    for call in [delete("v"), snapshots::drop_snapshot("s"), snapshots::drop_group("g"), unpublish("v", "p")] {
        assert_eq!(failed(&call, &write, full), None, "{call:?}");
        assert_eq!(failed(&call, &remove, full), Some(Code::Unavailable), "{call:?}");
    }
    // The second time in one call it is over.
    let mut run = Run::new(create("v"), NOW);
    assert!(run.failed(&write, "why", full).is_none() && run.failed(&remove, "why", full).is_some());
    for call in [growth::grow("v", MIB), stage("v"), publish("v", "p")] {
        assert_eq!(failed(&call, &image, full), Some(Code::ResourceExhausted), "{call:?}");
        assert_eq!(failed(&call, &image, other), Some(Code::Unavailable), "{call:?}");
    }
    assert_eq!(failed(&unstage("v", STAGING), &image, full), Some(Code::Unavailable));
    // Only a person can repair it.
    assert_eq!(failed(&stage("v"), &check, other), Some(Code::FailedPrecondition));
    assert_eq!(Trouble::from(FailureKind::NoSpace), full);
    assert_eq!(Trouble::from(FailureKind::Missing), other);
}

#[test]
fn a_loop_device_that_comes_or_goes_by_itself_is_noticed() {
    let mut facts = Facts::default();
    facts.observe_loop("/state/images/v.img", Some("/dev/loop7".into()));
    assert_eq!(facts.device("/state/images/v.img"), Some("/dev/loop7"));
    facts.observe_loop("/state/images/v.img", None);
    assert_eq!(facts.device("/state/images/v.img"), None);
}

#[test]
fn who_works_on_the_state_and_what_is_offered() {
    let of = |services, peers: &[&str]| {
        let peers = peers.iter().map(|node| (node.to_string(), String::new())).collect();
        Config { services, peers, ..config() }.alone()
    };
    assert!(of(Services::All, &[]) && of(Services::NodeWithoutController, &[]));
    assert!(!of(Services::All, &["n2"]) && !of(Services::Node, &[]) && !of(Services::Controller, &[]));
    assert_eq!(config().images_dir(), "/state/images");
    let directories = Config { kind: Kind::Directory, ..config() };
    assert!(config().offers(Feature::Modify) && config().offers(Feature::Clone));
    assert!(!directories.offers(Feature::Modify) && directories.offers(Feature::Clone));
}

#[test]
fn each_filesystem_has_its_least() {
    let mebibytes = ["ext4", "xfs", "btrfs"].map(|filesystem| smallest(filesystem) >> 20);
    assert_eq!(mebibytes, [16, 300, 128]);
}
