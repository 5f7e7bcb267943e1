use super::*;

fn attached() -> Driver {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v")]);
    driver
}

fn staged() -> Driver {
    let mut driver = attached();
    driver.bring(&[stage("v")]);
    driver
}

fn staging(change: &dyn Fn(&mut v1::NodeStageVolumeRequest)) -> Call {
    let mut request = stage_request("v", STAGING);
    change(&mut request);
    Call::NodeStageVolume(request)
}

fn publishing(change: &dyn Fn(&mut v1::NodePublishVolumeRequest)) -> Call {
    let mut request = publish_request("v", &target("p1"));
    change(&mut request);
    Call::NodePublishVolume(request)
}

fn foreign() -> Mount {
    Mount { source: "/dev/sda1".into(), fstype: "ext4".into(), read_only: false, block: false }
}

// Reliability 3.1, NodeStageVolume.
#[test]
fn staging_needs_everything_and_a_volume_attached_here() {
    for (call, code) in [
        (staging(&|r| r.volume_id.clear()), Code::InvalidArgument),
        (staging(&|r| r.staging_target_path.clear()), Code::InvalidArgument),
        (staging(&|r| r.volume_capability = None), Code::InvalidArgument),
        (staging(&|r| r.volume_id = "unknown".into()), Code::NotFound),
    ] {
        let mut driver = attached();
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
        assert!(driver.ops.is_empty());
    }
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    assert_eq!(driver.code(stage("v")), Code::FailedPrecondition);
    driver.config.without.insert(Feature::Publish);
    assert_eq!(driver.code(stage("v")), Code::Ok);
}

#[test]
fn staging_makes_a_filesystem_and_mounts_it_once() {
    let mut driver = attached();
    let mut capability = fs("xfs");
    let Some(AccessType::Mount(mount)) = &mut capability.access_type else { panic!() };
    mount.mount_flags = vec!["noatime".into()];
    let call = staging(&|r| r.volume_capability = Some(capability.clone()));
    assert_eq!(driver.code(call.clone()), Code::Ok);
    let kinds: Vec<String> = driver.ops.iter().map(|op| format!("{op:?}").split('(').next().unwrap().into()).collect();
    let bytes = ["MakePlace", "WriteFile", "RemoveFile", "CreateImage"];
    assert_eq!(kinds[..4], bytes);
    assert_eq!(kinds[4..], ["AttachLoop", "MakeFilesystem", "WriteFile", "Mount", "GrowFilesystem"]);
    let Some(Op::Mount { flags, fstype, .. }) = driver.ops.get(7) else { panic!() };
    assert_eq!((flags[0].as_str(), fstype.as_str()), ("noatime", "xfs"));
    let world = driver.world.clone();
    // Reliability 76; also with a slash at the end.
    for again in [
        call.clone(),
        staging(&|r| (r.volume_capability, r.staging_target_path) = (Some(fs("xfs")), format!("{STAGING}/"))),
    ] {
        assert_eq!(driver.code(again), Code::Ok);
        // It may have grown since, and that is asked every time; nothing else is done.
        assert!(matches!(driver.ops.as_slice(), [Op::GrowFilesystem { .. }]), "{:?}", driver.ops);
    }
    assert_eq!(driver.code(stage("v")), Code::AlreadyExists, "ext4 asked, xfs there");
    assert_eq!(driver.code(staging(&|r| r.staging_target_path = "/elsewhere".into())), Code::FailedPrecondition);
    assert_eq!(driver.world, world);
    // An image that bears another filesystem is never made anew.
    driver.bring(&[unstage("v", STAGING)]);
    assert_eq!(driver.code(stage("v")), Code::FailedPrecondition);
    assert_eq!(driver.world.filesystems(), ["xfs"]);
}

#[test]
fn nothing_is_mounted_over_or_taken_off_that_is_not_ours() {
    let mut driver = attached();
    driver.world.mounts.insert(STAGING.into(), foreign());
    driver.restart();
    assert_eq!(driver.code(stage("v")), Code::FailedPrecondition);
    assert_eq!(driver.code(unstage("v", STAGING)), Code::FailedPrecondition);
    assert_eq!(driver.code(publish("v", "p1")), Code::FailedPrecondition, "that is not the volume");
    assert_eq!(driver.code(unstage("unknown", STAGING)), Code::NotFound);

    let mut driver = staged();
    driver.world.mounts.insert(target("p1"), foreign());
    driver.restart();
    assert_eq!(driver.code(publish("v", "p1")), Code::FailedPrecondition);
    assert_eq!(driver.code(unpublish("v", "p1")), Code::FailedPrecondition);
    assert_eq!(driver.code(unpublish("unknown", "p1")), Code::NotFound);
    assert_eq!(driver.world.mounts.get(&target("p1")), Some(&foreign()));
}

// Reliability 3.1, NodePublishVolume.
#[test]
fn publishing_needs_everything_and_a_staged_volume() {
    for (call, code) in [
        (publishing(&|r| r.volume_id.clear()), Code::InvalidArgument),
        (publishing(&|r| r.target_path.clear()), Code::InvalidArgument),
        (publishing(&|r| r.volume_capability = None), Code::InvalidArgument),
        (publishing(&|r| r.staging_target_path.clear()), Code::FailedPrecondition),
        (publishing(&|r| r.volume_id = "unknown".into()), Code::NotFound),
        (publishing(&|r| r.target_path = STAGING.into()), Code::InvalidArgument),
        (publishing(&|r| r.target_path = format!("{STAGING}/sub")), Code::InvalidArgument),
        (publishing(&|r| r.staging_target_path = "/elsewhere".into()), Code::FailedPrecondition),
    ] {
        let mut driver = staged();
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
        assert!(driver.ops.is_empty());
    }
    assert_eq!(attached().code(publish("v", "p1")), Code::FailedPrecondition);
}

#[test]
fn publishing_is_read_only_if_anybody_says_so() {
    type Change = fn(&mut v1::NodePublishVolumeRequest);
    let read_only: [(Change, bool); 4] = [
        (|_| {}, false),
        (|r| r.readonly = true, true),
        (|r| r.volume_capability = Some(mode(Mode::SingleNodeReaderOnly)), true),
        (|r| r.publish_context = [("readonly".to_string(), "true".to_string())].into(), true),
    ];
    for (change, expected) in read_only {
        let mut driver = staged();
        driver.bring(&[publishing(&change), publishing(&change)]);
        assert!(driver.ops.is_empty(), "the second time nothing is done");
        assert_eq!(driver.world.mounts[&target("p1")].read_only, expected);
        let other = publishing(&|r| r.readonly = !expected);
        assert_eq!(driver.code(other), Code::AlreadyExists);
    }
    let mut request = attach_request("v", "n1");
    request.readonly = true;
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    let Ok(Response::ControllerPublishVolume(answer)) = driver.call(Call::ControllerPublishVolume(request)) else {
        panic!()
    };
    assert_eq!(answer.publish_context.get("readonly").map(String::as_str), Some("true"));
}

#[test]
fn a_volume_mounted_read_only_is_published_read_only() {
    let mut capability = writer();
    let Some(AccessType::Mount(mount)) = &mut capability.access_type else { panic!() };
    mount.mount_flags = vec!["noatime".into(), "ro".into()];
    let mut driver = attached();
    driver.bring(&[staging(&|r| r.volume_capability = Some(capability.clone())), publish("v", "p1")]);
    // A class with `mountOptions: [ro]`: the machine refuses a writable view of a read-only mount.
    assert!(matches!(driver.ops.last(), Some(Op::Bind { read_only: true, .. })), "{:?}", driver.ops);
    driver.bring(&[publish("v", "p1")]);
    assert!(driver.ops.is_empty());
    assert!(driver.world.mounts[STAGING].read_only && driver.world.mounts[&target("p1")].read_only);
}

// Reliability 3.1: a second target for a single writer.
#[test]
fn a_single_writer_stays_single() {
    let single = |pod: &str| {
        let pod = target(pod);
        publishing(&move |r| {
            r.target_path = pod.clone();
            r.volume_capability = Some(mode(Mode::SingleNodeSingleWriter));
        })
    };
    let mut driver = staged();
    driver.bring(&[single("p1"), single("p1")]);
    assert_eq!(driver.code(single("p2")), Code::FailedPrecondition);
    driver.bring(&[unpublish("v", "p1"), single("p2")]);
    let mut driver = staged();
    driver.bring(&[publish("v", "p1"), publish("v", "p2")]);
}

// Reliability 3.1, NodeUnpublishVolume and NodeUnstageVolume.
#[test]
fn taking_down_goes_in_order_and_may_be_repeated() {
    let mut driver = staged();
    driver.bring(&[publish("v", "p1"), publish("v", "p2")]);
    for (call, code) in [
        (unpublish("", "p1"), Code::InvalidArgument),
        (
            Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id: "v".into(), target_path: "".into() }),
            Code::InvalidArgument,
        ),
        (unstage("", STAGING), Code::InvalidArgument),
        (unstage("v", ""), Code::InvalidArgument),
        (unstage("v", STAGING), Code::FailedPrecondition),
        (unpublish("v", "p1"), Code::Ok),
        (unpublish("v", "p1"), Code::Ok),
        (unstage("v", STAGING), Code::FailedPrecondition),
        (unpublish("v", "never"), Code::Ok),
        (unpublish("v", "p2"), Code::Ok),
        (unstage("v", STAGING), Code::Ok),
        (unstage("v", STAGING), Code::Ok),
        (unpublish("unknown", "p1"), Code::Ok),
        (unstage("unknown", STAGING), Code::Ok),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
    assert!(driver.world.mounts.is_empty() && driver.world.loops.is_empty());
    assert!(!driver.world.dirs.contains(&target("p1")));
}

// Reliability 82: after a reboot mounts and loop devices are gone, and staging again brings them back.
#[test]
fn a_reboot_is_staged_anew_without_a_new_filesystem() {
    let mut driver = staged();
    driver.bring(&[publish("v", "p1")]);
    let before = driver.world.clone();
    driver.world.mounts.clear();
    driver.world.loops.clear();
    driver.restart();
    driver.bring(&[stage("v"), publish("v", "p1")]);
    assert_eq!(driver.world, before);
}

#[test]
fn an_image_gives_back_the_room_of_what_was_deleted_in_it_when_it_is_put_away() {
    let discards = |driver: &Driver| driver.ops.iter().filter(|op| matches!(op, Op::Discard { .. })).count();
    for (stale, expected) in [(1 << 20, 0), (512 << 20, 1)] {
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v"), stage("v")]);
        let image = driver.config.image_path("v");
        driver.world.images.get_mut(&image).unwrap().stale = stale;
        driver.bring(&[unstage("v", STAGING)]);
        assert_eq!(discards(&driver), expected);
        assert_eq!(driver.world.images[&image].stale, if expected == 1 { 0 } else { stale });
        assert!(driver.world.mounts.is_empty() && driver.world.loops.is_empty());
    }
    // One that cannot does not keep the volume from being put away.
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v"), stage("v")]);
    let mut run = crate::Run::new(unstage("v", STAGING), NOW);
    let refused = Op::Discard { path: STAGING.into() };
    assert!(run.failed(&refused, "cannot", crate::Trouble::Other).is_none());
}

// A node that was dead comes back and clears what it had: the volume has moved to another node of this machine since,
// where it is mounted.
#[test]
fn a_node_that_lost_a_volume_unstages_its_own_path_and_nothing_else() {
    let mut driver = staged();
    driver.bring(&[publishing(&|_| ())]);
    let (mounts, loops) = driver.world.seen();
    driver.config.node_id = "n2".into();
    driver.ops.clear();
    assert_eq!(driver.code(unstage("v", "/kubelet-2/staging/globalmount")), Code::Ok);
    assert!(driver.ops.is_empty(), "{:?}", driver.ops);
    assert_eq!(driver.world.seen(), (mounts, loops));
    // Between the other node's attaching and mounting it the device is that node's all the same.
    let mut driver = staged();
    driver.world.perform(&Op::Unmount { target: STAGING.into() }).unwrap();
    driver.config.node_id = "n2".into();
    driver.ops.clear();
    assert_eq!(driver.code(unstage("v", "/kubelet-2/staging/globalmount")), Code::Ok);
    assert!(driver.ops.is_empty(), "{:?}", driver.ops);
    // The node that has the volume may not leave a place behind.
    driver.config.node_id = "n1".into();
    assert_eq!(driver.code(unstage("v", STAGING)), Code::Ok);
    assert!(driver.world.seen().1.is_empty());
}
