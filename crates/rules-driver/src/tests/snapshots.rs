use super::*;

pub fn take(source: &str, name: &str) -> Call {
    let (source_volume_id, name) = (source.into(), name.into());
    Call::CreateSnapshot(v1::CreateSnapshotRequest { source_volume_id, name, ..Default::default() })
}

pub fn drop_snapshot(id: &str) -> Call {
    Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id: id.into(), ..Default::default() })
}

pub fn take_group(sources: &[&str], name: &str) -> Call {
    let source_volume_ids = sources.iter().map(|id| id.to_string()).collect();
    Call::CreateVolumeGroupSnapshot(v1::CreateVolumeGroupSnapshotRequest {
        name: name.into(),
        source_volume_ids,
        ..Default::default()
    })
}

pub fn drop_group(id: &str) -> Call {
    let group_snapshot_id = id.into();
    Call::DeleteVolumeGroupSnapshot(v1::DeleteVolumeGroupSnapshotRequest { group_snapshot_id, ..Default::default() })
}

fn from(name: &str, size: i64, source: v1::volume_content_source::Type) -> Call {
    let volume_content_source = Some(v1::VolumeContentSource { r#type: Some(source) });
    Call::CreateVolume(v1::CreateVolumeRequest { volume_content_source, ..create_request(name, size, 0) })
}

pub fn restore(name: &str, snapshot: &str) -> Call {
    let snapshot_id = snapshot.into();
    from(name, 0, v1::volume_content_source::Type::Snapshot(v1::volume_content_source::SnapshotSource { snapshot_id }))
}

pub fn copy(name: &str, volume: &str) -> Call {
    let volume_id = volume.into();
    from(name, 96 * MIB, v1::volume_content_source::Type::Volume(v1::volume_content_source::VolumeSource { volume_id }))
}

/// Snapshots, restored volumes, clones and groups, of a volume that is mounted.
pub fn life() -> Vec<Call> {
    vec![
        create("v"),
        create("w"),
        attach("v"),
        stage("v"),
        take("v", "s"),
        restore("r", "s"),
        copy("c", "v"),
        take_group(&["v", "w"], "g"),
        delete("r"),
        delete("c"),
        drop_snapshot("s"),
        drop_group("g"),
        unstage("v", STAGING),
        detach("v", "n1"),
        delete("v"),
        delete("w"),
    ]
}

fn taken(driver: &mut Driver, call: Call) -> v1::Snapshot {
    let Ok(Response::CreateSnapshot(answer)) = driver.call(call) else { panic!("not taken") };
    answer.snapshot.unwrap()
}

fn write(driver: &mut Driver, id: &str, content: &str) {
    let image = driver.config.image_path(id);
    driver.world.images.get_mut(&image).unwrap().content = content.into();
}

fn read(driver: &Driver, id: &str) -> String {
    driver.world.images[&driver.config.image_path(id)].content.clone()
}

// Reliability 3.1, CreateSnapshot and CreateVolume from a source.
#[test]
fn a_snapshot_keeps_what_a_volume_held() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v"), stage("v")]);
    write(&mut driver, "v", "first");
    let snapshot = taken(&mut driver, take("v", "s"));
    assert!(snapshot.ready_to_use);
    assert_eq!((snapshot.snapshot_id.as_str(), snapshot.source_volume_id.as_str()), ("s", "v"));
    assert_eq!(snapshot.size_bytes, 64 * MIB);
    let time = snapshot.creation_time.unwrap();
    assert_eq!((time.seconds, time.nanos), (1_700_000_000, 123_000_000));
    write(&mut driver, "v", "second");
    let world = driver.world.clone();
    assert!(taken(&mut driver, take("v", "s")) == snapshot);
    assert!(driver.ops.is_empty());
    assert_eq!(driver.world, world);

    driver.bring(&[restore("r", "s"), copy("c", "v")]);
    assert_eq!((read(&driver, "r").as_str(), read(&driver, "c").as_str()), ("first", "second"));
    assert_eq!(driver.world.images[&driver.config.image_path("c")].size, 96 << 20);
    // The source may go before what was copied from it, and a repetition still finds it.
    driver.bring(&[drop_snapshot("s"), drop_snapshot("s"), restore("r", "s")]);
    assert_eq!(driver.code(restore("other", "s")), Code::NotFound);
    let Ok(Response::CreateVolume(answer)) = driver.call(copy("c", "v")) else { panic!() };
    assert!(answer.volume.unwrap().content_source.is_some());
}

#[test]
fn what_cannot_be_taken_or_copied_is_refused() {
    let mut driver = Driver::new();
    let mut directory = create_request("d", 0, 0);
    directory.parameters = [("kind".to_string(), "directory".to_string())].into();
    driver.bring(&[create("v"), create("w"), take("v", "s"), Call::CreateVolume(directory)]);
    let small = |name: &str| {
        let Call::CreateVolume(mut request) = restore(name, "s") else { panic!() };
        request.capacity_range = Some(v1::CapacityRange { required_bytes: 0, limit_bytes: 32 * MIB });
        Call::CreateVolume(request)
    };
    for (call, code) in [
        (take("", "x"), Code::InvalidArgument),
        (take("v", ""), Code::InvalidArgument),
        (take("v", &"x".repeat(129)), Code::InvalidArgument),
        (take("w", "s"), Code::AlreadyExists),
        (take("unknown", "x"), Code::NotFound),
        (drop_snapshot(""), Code::InvalidArgument),
        (drop_snapshot("unknown"), Code::Ok),
        (copy("v", "w"), Code::AlreadyExists),
        (copy("x", "d"), Code::InvalidArgument),
        (features::as_directory(copy("x", "v")), Code::InvalidArgument),
        (features::as_directory(restore("x", "s")), Code::InvalidArgument),
        (copy("x", ""), Code::InvalidArgument),
        (restore("x", ""), Code::InvalidArgument),
        (small("x"), Code::OutOfRange),
        (take_group(&[], "g"), Code::InvalidArgument),
        (take_group(&["v", "v"], "g"), Code::InvalidArgument),
        (take_group(&["v"], ""), Code::InvalidArgument),
        (take_group(&["v", "unknown"], "g"), Code::NotFound),
        (drop_group(""), Code::InvalidArgument),
        (drop_group("unknown"), Code::Ok),
    ] {
        let world = driver.world.clone();
        assert_eq!(driver.code(call.clone()), code, "{call:?}");
        assert_eq!(driver.world, world);
    }
}

// Reliability 80: copies take room too.
#[test]
fn snapshots_count_against_the_pool() {
    let mut driver = Driver::new();
    driver.bring(&[Call::CreateVolume(create_request("v", 3 << 30, 0))]);
    assert_eq!(driver.code(take("v", "s")), Code::ResourceExhausted);
    assert_eq!(driver.code(copy("c", "v")), Code::ResourceExhausted);
    assert!(driver.facts.snapshots().is_empty());
}

fn listed(driver: &mut Driver, request: v1::ListSnapshotsRequest) -> (Vec<String>, String) {
    let Ok(Response::ListSnapshots(answer)) = driver.call(Call::ListSnapshots(request)) else { panic!() };
    (answer.entries.into_iter().map(|entry| entry.snapshot.unwrap().snapshot_id).collect(), answer.next_token)
}

// Reliability 3.1, ListSnapshots.
#[test]
fn snapshots_are_listed_by_page_id_and_source() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), create("w"), take("v", "a"), take("w", "b"), take("v", "c")]);
    let all = v1::ListSnapshotsRequest::default();
    assert_eq!(listed(&mut driver, all.clone()).0, ["a", "b", "c"]);
    let (first, token) = listed(&mut driver, v1::ListSnapshotsRequest { max_entries: 2, ..all.clone() });
    driver.bring(&[drop_snapshot("b")]);
    let (rest, end) = listed(&mut driver, v1::ListSnapshotsRequest { starting_token: token, ..all.clone() });
    assert_eq!((first, rest, end.as_str()), (vec!["a".to_string(), "b".to_string()], vec!["c".to_string()], ""));
    let by = |source: &str, id: &str| v1::ListSnapshotsRequest {
        source_volume_id: source.into(),
        snapshot_id: id.into(),
        ..Default::default()
    };
    assert_eq!(listed(&mut driver, by("v", "")).0, ["a", "c"]);
    assert_eq!(listed(&mut driver, by("", "c")).0, ["c"]);
    assert_eq!(listed(&mut driver, by("unknown", "")).0, Vec::<String>::new());
    assert_eq!(listed(&mut driver, by("w", "c")).0, Vec::<String>::new());
    let get = |id: &str| Call::GetSnapshot(v1::GetSnapshotRequest { snapshot_id: id.into(), ..Default::default() });
    assert_eq!(
        [driver.code(get("a")), driver.code(get("b")), driver.code(get(""))],
        [Code::Ok, Code::NotFound, Code::InvalidArgument]
    );
}

#[test]
fn a_group_is_taken_at_one_moment_and_goes_as_one() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), create("w"), attach("v"), attach("w")]);
    driver.bring(&[Call::NodeStageVolume(stage_request("w", "/w")), unstage("w", "/w"), stage("v")]);
    let Ok(Response::CreateVolumeGroupSnapshot(answer)) = driver.call(take_group(&["w", "v"], "g")) else { panic!() };
    let group = answer.group_snapshot.unwrap();
    let copies = driver.ops.iter().filter(|op| matches!(op, Op::CopyTogether { copies } if copies.len() == 2)).count();
    assert_eq!((copies, group.snapshots.len(), group.ready_to_use), (1, 2, true));
    assert!(group.snapshots.iter().all(|one| one.group_snapshot_id == "g" && one.ready_to_use));
    assert_eq!(driver.code(take_group(&["v", "w"], "g")), Code::Ok);
    assert!(driver.ops.is_empty());
    assert_eq!(driver.code(take_group(&["v"], "g")), Code::AlreadyExists);
    let member = group.snapshots[0].snapshot_id.clone();
    assert_eq!(driver.code(drop_snapshot(&member)), Code::FailedPrecondition);
    driver.bring(&[restore("r", &member)]);
    let get = |id: &str, snapshot_ids: Vec<String>| {
        let group_snapshot_id = id.into();
        let request = v1::GetVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, ..Default::default() };
        Call::GetVolumeGroupSnapshot(request)
    };
    assert_eq!(driver.code(get("g", vec![])), Code::Ok);
    assert_eq!(driver.code(get("g", vec![member])), Code::InvalidArgument);
    assert_eq!(driver.code(get("unknown", vec![])), Code::NotFound);
    assert_eq!(driver.code(get("", vec![])), Code::InvalidArgument);
    driver.bring(&[drop_group("g"), drop_group("g")]);
    assert!(driver.facts.snapshots().is_empty() && driver.facts.groups().is_empty());
    assert_eq!(driver.world.images.len(), 3);
}

#[test]
fn a_directory_is_copied_as_an_image_is() {
    let mut driver = Driver::new();
    let path = |id: &str| format!("/state/directories/{id}");
    driver.bring(&[features::directory("v"), attach("v"), stage("v"), publish("v", "p1")]);
    driver.world.contents.insert(path("v"), "first".into());
    assert!(taken(&mut driver, take("v", "s")).ready_to_use);
    driver.world.contents.insert(path("v"), "second".into());
    let copies = [restore("r", "s"), copy("c", "v")].map(features::as_directory);
    driver.bring(&copies);
    driver.restart();
    driver.bring(&copies);
    assert_eq!(
        (driver.world.contents[&path("r")].as_str(), driver.world.contents[&path("c")].as_str()),
        ("first", "second")
    );
    // They are in use as any other.
    driver.bring(&[
        attach("r"),
        Call::NodeStageVolume(stage_request("r", "/r")),
        unstage("r", "/r"),
        detach("r", "n1"),
    ]);
    driver.bring(&[drop_snapshot("s"), delete("r"), delete("c"), unpublish("v", "p1"), unstage("v", STAGING)]);
    driver.bring(&[detach("v", "n1"), delete("v")]);
    assert!(driver.world.contents.is_empty() && driver.world.files.is_empty());
    assert!(!driver.world.dirs.iter().any(|dir| dir.starts_with("/state/directories/")));
}

// A snapshot that was begun and can never be finished is not left in the way, nor in the pool.
#[test]
fn a_copy_that_was_cut_off_goes_with_its_volume() {
    for group in [false, true] {
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v"), stage("v"), unstage("v", STAGING), detach("v", "n1")]);
        let call = if group { take_group(&["v"], "s") } else { take("v", "s") };
        assert_eq!(driver.disturbed(call, 3, Fault::Crash), None);
        let resumed = crate::resumed(&driver.facts);
        driver.bring(&[delete("v")]);
        assert!(driver.facts.promised() > 0);
        assert_eq!(resumed.len(), 1);
        assert_eq!(driver.code(resumed[0].clone()), Code::NotFound);
        assert_eq!(driver.facts.promised(), 0);
        assert!(driver.world.files.is_empty() && driver.world.images.is_empty(), "{:?}", driver.world);
    }
}

// What a copy that was cut off left is of another moment than the one that is acknowledged.
#[test]
fn a_snapshot_that_was_cut_off_is_taken_anew() {
    let mut driver = Driver::new();
    driver.bring(&[create("v"), attach("v"), stage("v")]);
    write(&mut driver, "v", "first");
    // After the copy, before the record says so.
    assert_eq!(driver.disturbed(take("v", "s"), 3, Fault::Crash), None);
    let image = driver.config.snapshot_path(crate::Kind::Image, "s");
    assert_eq!(driver.world.images[&image].content, "first");
    write(&mut driver, "v", "second");
    driver.bring(&[take("v", "s")]);
    assert_eq!(driver.world.images[&image].content, "second");
}
