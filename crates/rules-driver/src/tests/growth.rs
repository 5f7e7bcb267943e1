use super::*;

pub fn grow(id: &str, required_bytes: i64) -> Call {
    Call::ControllerExpandVolume(v1::ControllerExpandVolumeRequest {
        volume_id: id.into(),
        capacity_range: Some(v1::CapacityRange { required_bytes, limit_bytes: 0 }),
        ..Default::default()
    })
}

pub fn grow_node(id: &str, path: &str) -> Call {
    let (volume_id, volume_path) = (id.into(), path.into());
    Call::NodeExpandVolume(v1::NodeExpandVolumeRequest { volume_id, volume_path, ..Default::default() })
}

pub fn stats(id: &str, path: &str) -> Call {
    let (volume_id, volume_path) = (id.into(), path.into());
    Call::NodeGetVolumeStats(v1::NodeGetVolumeStatsRequest { volume_id, volume_path, ..Default::default() })
}

fn modify(id: &str, kib: &str) -> Call {
    let mutable_parameters = [("readAheadKiB".to_string(), kib.to_string())].into();
    Call::ControllerModifyVolume(v1::ControllerModifyVolumeRequest {
        volume_id: id.into(),
        mutable_parameters,
        ..Default::default()
    })
}

fn capability(kind: &str) -> VolumeCapability {
    if kind == "block" { block() } else { fs(kind) }
}

fn up(kind: &str) -> Vec<Call> {
    let mut made = create_request("v", 320 * MIB, 0);
    made.volume_capabilities = vec![capability(kind)];
    let mut staged = stage_request("v", STAGING);
    staged.volume_capability = Some(capability(kind));
    let mut published = publish_request("v", &target("p1"));
    published.volume_capability = Some(capability(kind));
    vec![Call::CreateVolume(made), attach("v"), Call::NodeStageVolume(staged), Call::NodePublishVolume(published)]
}

/// A volume that grows and changes while it is used.
pub fn life(kind: &str) -> Vec<Call> {
    let used = vec![
        grow("v", 640 * MIB),
        grow_node("v", &target("p1")),
        modify("v", "512"),
        stats("v", &target("p1")),
        unpublish("v", "p1"),
        grow("v", 700 * MIB),
        unstage("v", STAGING),
    ];
    let [_, _, stage, publish] = up(kind).try_into().unwrap_or_else(|_| panic!());
    let again = vec![stage, publish, unpublish("v", "p1"), unstage("v", STAGING), detach("v", "n1"), delete("v")];
    [up(kind), used, again].concat()
}

fn size(driver: &Driver) -> u64 {
    driver.world.images[&driver.config.image_path("v")].size
}

fn filesystem(driver: &Driver) -> u64 {
    driver.world.images[&driver.config.image_path("v")].filesystem.as_ref().unwrap().1
}

// Reliability 3.1, ControllerExpandVolume.
#[test]
fn a_volume_grows_and_never_shrinks() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v"), stage("v"), unstage("v", STAGING)]);
    let range = |id: &str, required_bytes, limit_bytes| {
        let capacity_range = Some(v1::CapacityRange { required_bytes, limit_bytes });
        let request = v1::ControllerExpandVolumeRequest { volume_id: id.into(), capacity_range, ..Default::default() };
        Call::ControllerExpandVolume(request)
    };
    let no_range = v1::ControllerExpandVolumeRequest { volume_id: "v".into(), ..Default::default() };
    for (call, code) in [
        (range("", 128 * MIB, 0), Code::InvalidArgument),
        (Call::ControllerExpandVolume(no_range), Code::InvalidArgument),
        (range("unknown", 128 * MIB, 0), Code::NotFound),
        (range("v", 0, 32 * MIB), Code::OutOfRange),
        (range("v", 128 * MIB, 64 * MIB), Code::OutOfRange),
        (range("v", -1, 0), Code::OutOfRange),
        (range("v", 8 << 30, 0), Code::OutOfRange),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
        assert!(driver.ops.is_empty());
    }
    driver.bring(&[create("w"), Call::CreateVolume(create_request("x", 3 << 30, 0))]);
    assert_eq!(driver.code(grow("v", 2 << 30)), Code::ResourceExhausted);
    for again in [grow("v", 128 * MIB - 5), grow("v", 1), range("v", 0, 128 * MIB)] {
        let Ok(Response::ControllerExpandVolume(answer)) = driver.call(again) else { panic!() };
        assert_eq!((answer.capacity_bytes, answer.node_expansion_required), (128 * MIB, true));
    }
    assert_eq!(size(&driver), 128 << 20);
    driver.restart();
    assert_eq!(driver.facts.volumes()["v"].size, 128 << 20);
}

#[test]
fn a_filesystem_in_use_grows_where_the_kernel_can() {
    for kind in ["xfs", "btrfs"] {
        let mut driver = Driver::new();
        driver.world.no_online_ext4 = true;
        driver.bring(&up(kind));
        driver.bring(&[grow("v", 640 * MIB)]);
        assert_eq!(filesystem(&driver), 320 << 20);
        driver.bring(&[grow_node("v", &target("p1")), grow_node("v", STAGING)]);
        assert_eq!(filesystem(&driver), 640 << 20, "{kind}");
    }
}

#[test]
fn ext4_that_cannot_grow_in_use_grows_when_it_is_staged_next() {
    let mut driver = Driver::new();
    driver.world.no_online_ext4 = true;
    driver.bring(&up("ext4"));
    driver.bring(&[grow("v", 640 * MIB)]);
    let status = driver.call(grow_node("v", &target("p1"))).unwrap_err();
    assert_eq!(status.code, Code::FailedPrecondition);
    assert!(status.message.contains("CAP_SYS_RESOURCE"), "{}", status.message);
    driver.bring(&[unpublish("v", "p1"), unstage("v", STAGING), stage("v")]);
    assert_eq!(filesystem(&driver), 640 << 20);
    driver.bring(&[publish("v", "p1"), grow_node("v", &target("p1"))]);
}

#[test]
fn a_read_only_view_grows_through_a_writable_one() {
    let mut driver = Driver::new();
    let mut calls = up("xfs");
    let Some(Call::NodePublishVolume(request)) = calls.last_mut() else { panic!() };
    request.readonly = true;
    driver.bring(&calls);
    driver.bring(&[grow("v", 640 * MIB), grow_node("v", &target("p1"))]);
    let Some(Op::GrowFilesystem { mounted_at, .. }) = driver.ops.last() else { panic!() };
    assert_eq!(mounted_at.as_deref(), Some(STAGING));
}

#[test]
fn a_device_grows_with_its_image() {
    let mut driver = Driver::new();
    driver.bring(&up("block"));
    driver.bring(&[grow("v", 640 * MIB), grow_node("v", &target("p1"))]);
    assert_eq!(driver.world.loops.values().next().unwrap().1, 640 << 20);
    assert!(matches!(driver.ops.as_slice(), [Op::RefreshLoop { .. }]));
    assert!(driver.world.filesystems().is_empty(), "nobody's device is formatted");
}

// Reliability 3.1, NodeExpandVolume and NodeGetVolumeStats.
#[test]
fn what_is_not_here_is_neither_grown_nor_measured() {
    let mut driver = Driver::new();
    driver.bring(&up("ext4"));
    for (call, code) in [
        (grow_node("", "/x"), Code::InvalidArgument),
        (grow_node("v", ""), Code::InvalidArgument),
        (stats("", "/x"), Code::InvalidArgument),
        (stats("v", ""), Code::InvalidArgument),
        (stats("v", "some/path"), Code::NotFound),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
    let mut too_much = v1::NodeExpandVolumeRequest { volume_id: "v".into(), ..Default::default() };
    too_much.volume_path = target("p1");
    too_much.capacity_range = Some(v1::CapacityRange { required_bytes: 640 * MIB, limit_bytes: 0 });
    assert_eq!(driver.code(Call::NodeExpandVolume(too_much)), Code::OutOfRange);
    let Ok(Response::NodeGetVolumeStats(answer)) = driver.call(stats("v", &target("p1"))) else { panic!() };
    assert_eq!(answer.usage.len(), 2);
    assert_eq!((answer.usage[0].total, answer.usage[0].used), (320 * MIB, 1));
    let mut driver = Driver::new();
    driver.bring(&up("block"));
    let Ok(Response::NodeGetVolumeStats(answer)) = driver.call(stats("v", &target("p1"))) else { panic!() };
    assert_eq!((answer.usage.len(), answer.usage[0].total), (1, 320 * MIB));
}

#[test]
fn what_is_read_ahead_changes_at_once_and_stays() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), modify("v", "128"), attach("v"), stage("v")]);
    let device = driver.world.loops.values().next().unwrap().0.clone();
    assert_eq!(driver.world.read_ahead[&device], 128);
    driver.bring(&[modify("v", "4096")]);
    assert_eq!(driver.world.read_ahead[&device], 4096);
    driver.bring(&[unstage("v", STAGING)]);
    driver.restart();
    driver.bring(&[stage("v")]);
    assert_eq!(driver.world.read_ahead[&device], 4096);
    for (call, code) in [
        (modify("", "1"), Code::InvalidArgument),
        (modify("unknown", "1"), Code::NotFound),
        (modify("v", "-1"), Code::InvalidArgument),
        (modify("v", "+1"), Code::InvalidArgument),
        (modify("v", "65537"), Code::InvalidArgument),
        (modify("v", "fast"), Code::InvalidArgument),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
    let Call::ControllerModifyVolume(mut other) = modify("v", "1") else { panic!() };
    other.mutable_parameters = [("colour".to_string(), "red".to_string())].into();
    assert_eq!(driver.code(Call::ControllerModifyVolume(other)), Code::InvalidArgument);
}
