use super::*;

fn created(driver: &mut Driver, call: Call) -> (String, i64) {
    let Ok(Response::CreateVolume(response)) = driver.call(call) else { panic!("not created") };
    let volume = response.volume.unwrap();
    (volume.volume_id, volume.capacity_bytes)
}

fn sized(name: &str, least: i64, most: i64) -> Call {
    Call::CreateVolume(create_request(name, least, most))
}

// Reliability 3.1, CreateVolume.
#[test]
fn what_cannot_be_made_is_refused_and_leaves_no_trace() {
    let request = || create_request("v", 64 * MIB, 0);
    let with = |change: &dyn Fn(&mut v1::CreateVolumeRequest)| {
        let mut request = request();
        change(&mut request);
        Call::CreateVolume(request)
    };
    let parameter: BTreeMap<String, String> = [("colour".to_string(), "red".to_string())].into();
    for (call, code) in [
        (with(&|r| r.name.clear()), Code::InvalidArgument),
        (with(&|r| r.name = "x".repeat(129)), Code::InvalidArgument),
        (with(&|r| r.volume_capabilities.clear()), Code::InvalidArgument),
        (with(&|r| r.volume_capabilities.push(mode(Mode::MultiNodeMultiWriter))), Code::InvalidArgument),
        (with(&|r| r.volume_capabilities.push(mode(Mode::Unknown))), Code::InvalidArgument),
        (with(&|r| r.volume_capabilities.push(fs("ntfs"))), Code::InvalidArgument),
        (with(&|r| r.volume_capabilities.push(VolumeCapability::default())), Code::InvalidArgument),
        (with(&|r| r.parameters = parameter.clone()), Code::InvalidArgument),
        (with(&|r| r.mutable_parameters = parameter.clone()), Code::InvalidArgument),
        (with(&|r| r.volume_content_source = Some(Default::default())), Code::InvalidArgument),
        (sized("v", -1, 0), Code::OutOfRange),
        (sized("v", 0, -1), Code::OutOfRange),
        (sized("v", 65 * MIB, 64 * MIB), Code::OutOfRange),
        (sized("v", 0, MIB), Code::OutOfRange),
        (sized("v", 64 * MIB + 1, 64 * MIB + 2), Code::OutOfRange),
        (sized("v", i64::MAX, 0), Code::OutOfRange),
        (sized("v", (4 << 30) + 1, 0), Code::OutOfRange),
    ] {
        let mut driver = Driver::new();
        let before = driver.world.clone();
        assert_eq!(driver.code(call), code);
        assert_eq!(driver.world, before);
        assert!(driver.facts.volumes().is_empty());
    }
}

#[test]
fn sizes_are_whole_mebibytes_within_the_range() {
    for (least, most, size) in [
        (0, 0, 1 << 30),
        (1, 0, 16 * MIB),
        (64 * MIB, 64 * MIB, 64 * MIB),
        (64 * MIB + 1, 0, 65 * MIB),
        (0, 100 * MIB + 5, 100 * MIB),
        (4 << 30, 0, 4 << 30),
    ] {
        assert_eq!(created(&mut Driver::new(), sized("v", least, most)), ("v".into(), size), "{least} {most}");
    }
    let mut request = create_request("v", 1, 0);
    request.volume_capabilities = vec![fs("xfs")];
    request.parameters = [("csi.storage.k8s.io/pvc/name".to_string(), "data".to_string())].into();
    assert_eq!(created(&mut Driver::new(), Call::CreateVolume(request)).1, 300 * MIB);
    let request = v1::CreateVolumeRequest { capacity_range: None, ..create_request("v", 0, 0) };
    assert_eq!(created(&mut Driver::new(), Call::CreateVolume(request)).1, 1 << 30);
}

// Reliability 76 and 3.1: same name, same answer; another size, ALREADY_EXISTS.
#[test]
fn a_name_means_one_volume() {
    let mut driver = Driver::new();
    let first = created(&mut driver, create("v"));
    let world = driver.world.clone();
    for again in [create("v"), sized("v", 1, 0), sized("v", 64 * MIB, 64 * MIB), sized("v", 0, 0)] {
        assert_eq!(created(&mut driver, again), first);
        assert!(driver.ops.is_empty());
    }
    assert_eq!(driver.code(sized("v", 65 * MIB, 0)), Code::AlreadyExists);
    assert_eq!(driver.code(sized("v", 1, 63 * MIB)), Code::AlreadyExists);
    assert_eq!(driver.world, world);
}

// Reliability 80.
#[test]
fn the_pool_is_never_promised_twice() {
    let mut driver = Driver::new();
    driver.bring(&[sized("a", 3 << 30, 0)]);
    assert_eq!(driver.code(sized("b", (1 << 30) + 1, 0)), Code::ResourceExhausted);
    driver.bring(&[sized("b", 1 << 30, 0)]);
    assert_eq!(driver.code(create("c")), Code::ResourceExhausted);
    driver.bring(&[delete("a"), create("c")]);

    // Two calls at the same time: the first one to be decided has the bytes, before anything is on disk.
    let mut driver = Driver::new();
    let (a, b) = (Run::new(sized("a", 3 << 30, 0), NOW), Run::new(sized("b", 3 << 30, 0), NOW));
    assert!(matches!(a.step(&driver.config, &mut driver.facts), Step::Do(Op::WriteFile { .. })));
    let Step::Answer(Err(status)) = b.step(&driver.config, &mut driver.facts) else { panic!("promised twice") };
    assert_eq!(status.code, Code::ResourceExhausted);
}

// Reliability 79 and 3.1, DeleteVolume.
#[test]
fn a_volume_goes_only_when_nobody_uses_it() {
    let mut driver = Driver::new();
    assert_eq!(driver.code(delete("")), Code::InvalidArgument);
    assert_eq!(driver.code(delete("unknown")), Code::Ok);
    driver.bring(&[create("v"), attach("v")]);
    assert_eq!(driver.code(delete("v")), Code::FailedPrecondition);
    driver.bring(&[stage("v")]);
    assert_eq!(driver.code(delete("v")), Code::FailedPrecondition);
    assert_eq!(driver.code(detach("v", "n1")), Code::FailedPrecondition, "still staged");
    driver.bring(&[unstage("v", STAGING), detach("v", "n1"), delete("v"), delete("v")]);
    assert!(driver.world.files.is_empty() && driver.world.images.is_empty());

    // Without attaching, the mounts alone protect it.
    let mut driver = Driver::with(without(&[Feature::Publish]));
    driver.bring(&[create("v"), stage("v")]);
    assert_eq!(driver.code(delete("v")), Code::FailedPrecondition);
}

#[test]
fn a_loop_device_left_from_a_cut_off_staging_does_not_keep_a_volume() {
    let mut driver = Driver::with(without(&[Feature::Publish]));
    driver.bring(&[create("v")]);
    assert_eq!(driver.disturbed(stage("v"), 5, Fault::Crash), None);
    assert_eq!(driver.world.loops.len(), 1);
    driver.bring(&[delete("v")]);
    assert!(driver.world.loops.is_empty() && driver.world.images.is_empty());
}

// Reliability 3.1, ControllerPublishVolume and ControllerUnpublishVolume.
#[test]
fn attaching_is_kept_per_node() {
    let mut driver = Driver::new();
    let with = |change: &dyn Fn(&mut v1::ControllerPublishVolumeRequest)| {
        let mut request = attach_request("v", "n1");
        change(&mut request);
        Call::ControllerPublishVolume(request)
    };
    driver.bring(&[create("v"), create("w"), create("x")]);
    for (call, code) in [
        (with(&|r| r.volume_id.clear()), Code::InvalidArgument),
        (with(&|r| r.node_id.clear()), Code::InvalidArgument),
        (with(&|r| r.volume_capability = None), Code::InvalidArgument),
        (with(&|r| r.volume_id = "unknown".into()), Code::NotFound),
        (with(&|r| r.node_id = "unknown".into()), Code::NotFound),
        (detach("", "n1"), Code::InvalidArgument),
        (detach("unknown", "n1"), Code::Ok),
        (detach("v", "n1"), Code::Ok),
        (attach("v"), Code::Ok),
        (attach("v"), Code::Ok),
        (with(&|r| r.readonly = true), Code::AlreadyExists),
        (attach("w"), Code::Ok),
        // Two are as many as the node takes.
        (attach("x"), Code::ResourceExhausted),
        (attach("v"), Code::Ok),
        (detach("w", "other"), Code::Ok),
        (attach("x"), Code::ResourceExhausted),
        (detach("w", ""), Code::Ok),
        (detach("w", ""), Code::Ok),
        (attach("x"), Code::Ok),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
    driver.restart();
    assert_eq!(driver.code(with(&|r| r.readonly = true)), Code::AlreadyExists, "attachments survive");

    // The machine got another name: the old attachment stands until it is taken back.
    driver.config.node_id = "n2".into();
    assert_eq!(driver.code(with(&|r| r.node_id = "n2".into())), Code::FailedPrecondition);
    assert_eq!(driver.code(detach("v", "n1")), Code::Ok);
    assert_eq!(driver.code(with(&|r| r.node_id = "n2".into())), Code::Ok);
}

#[test]
fn without_attaching_the_methods_for_it_are_not_there() {
    let mut driver = Driver::with(without(&[Feature::Publish]));
    driver.bring(&[create("v")]);
    assert_eq!(driver.code(attach("v")), Code::Unimplemented);
    assert_eq!(driver.code(detach("v", "n1")), Code::Unimplemented);
    let count = |driver: &mut Driver| match driver.call(Call::ControllerGetCapabilities(Default::default())) {
        Ok(Response::ControllerGetCapabilities(answer)) => answer.capabilities.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&mut driver) + 3, count(&mut Driver::new()));
}

// Reliability 3.1, ValidateVolumeCapabilities.
#[test]
fn capabilities_are_confirmed_or_explained() {
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    let ask = |id: &str, volume_capabilities: Vec<VolumeCapability>| {
        let volume_id = id.to_string();
        let request = v1::ValidateVolumeCapabilitiesRequest { volume_id, volume_capabilities, ..Default::default() };
        Call::ValidateVolumeCapabilities(request)
    };
    assert_eq!(driver.code(ask("", vec![writer()])), Code::InvalidArgument);
    assert_eq!(driver.code(ask("v", vec![])), Code::InvalidArgument);
    assert_eq!(driver.code(ask("unknown", vec![writer()])), Code::NotFound);
    for (capabilities, good) in [
        (vec![writer(), fs("xfs"), block()], true),
        (vec![writer(), mode(Mode::MultiNodeMultiWriter)], false),
        (vec![fs("ntfs")], false),
    ] {
        let Ok(Response::ValidateVolumeCapabilities(answer)) = driver.call(ask("v", capabilities)) else { panic!() };
        assert_eq!((answer.confirmed.is_some(), answer.message.is_empty()), (good, good));
    }
}

#[test]
fn calls_on_one_volume_share_a_lock() {
    let locks: BTreeSet<_> = life("v").iter().map(crate::locks).collect();
    assert_eq!(locks.len(), 1, "{locks:?}");
    let made = crate::locks(&create("Ä"));
    let Ok(Response::CreateVolume(answer)) = Driver::new().call(create("Ä")) else { panic!() };
    assert_eq!(made, crate::locks(&delete(&answer.volume.unwrap().volume_id)));
    assert_eq!(crate::locks(&Call::Probe(Default::default())), vec![]);
    assert_eq!(crate::busy(&create("v")).code, Code::Aborted);
}

/// Three nodes of one machine, two of them in one zone.
fn three_nodes() -> Driver {
    let peers = [("n2", "a"), ("n3", "b")].map(|(node, zone)| (node.into(), zone.into())).into();
    Driver::with(Config { zone: "a".into(), peers, ..config() })
}

#[test]
fn a_volume_goes_from_node_to_node_of_its_zone_one_at_a_time() {
    let mut driver = three_nodes();
    let to = |node: &str| Call::ControllerPublishVolume(attach_request("v", node));
    driver.bring(&[create("v")]);
    for (call, code) in [
        (to("n1"), Code::Ok),
        // Multi-attach.
        (to("n2"), Code::FailedPrecondition),
        (detach("v", "n1"), Code::Ok),
        (to("n2"), Code::Ok),
        (to("n1"), Code::FailedPrecondition),
        (detach("v", "n2"), Code::Ok),
        (to("n3"), Code::FailedPrecondition),
        (to("n4"), Code::NotFound),
    ] {
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
    }
}

#[test]
fn a_volume_is_made_in_the_zone_that_is_asked_for_first() {
    let mut driver = three_nodes();
    let (node, zone) = ("topology.local.csi.longshore/node", "topology.kubernetes.io/zone");
    let term = |segments: &[(&str, &str)]| v1::Topology {
        segments: segments.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
    };
    let mut made = |name: &str, preferred: Vec<v1::Topology>, requisite: Vec<v1::Topology>| {
        let Call::CreateVolume(mut request) = create(name) else { panic!() };
        request.accessibility_requirements = Some(v1::TopologyRequirement { requisite, preferred });
        match driver.call(Call::CreateVolume(request)) {
            Ok(Response::CreateVolume(answer)) => {
                let [reach] = answer.volume.unwrap().accessible_topology.try_into().unwrap_or_else(|_| panic!());
                Ok(reach.segments.into_iter().collect::<Vec<_>>())
            }
            Err(status) => Err(status.code),
            other => panic!("{other:?}"),
        }
    };
    let in_zone = |home: &str| Ok(vec![(zone.to_string(), home.to_string())]);
    let whole = |id: &str, home: &str| term(&[(node, id), (zone, home)]);
    let all = || vec![whole("n1", "a"), whole("n2", "a"), whole("n3", "b")];
    assert_eq!(made("v", vec![whole("n3", "b")], all()), in_zone("b"));
    // Asked again with another wish, it stays where it is.
    assert_eq!(made("v", vec![whole("n1", "a")], all()), in_zone("b"));
    assert_eq!(made("w", vec![], vec![term(&[(zone, "b")])]), in_zone("b"));
    assert_eq!(made("x", vec![], vec![]), in_zone("a"));
    assert_eq!(made("y", vec![], vec![whole("n1", "b")]), Err(Code::ResourceExhausted));
}
