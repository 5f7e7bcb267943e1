//! Reliability 78: whatever bytes come as name, id or path, only the state directory and the given path are touched.

use super::*;

const HOSTILE: &[&str] = &[
    "",
    ".",
    "..",
    "/",
    "//",
    "../../etc/passwd",
    "/etc/../etc",
    "a/b",
    "a/../../b",
    "-rf",
    "vol-0000000000000000000000000000000000000000",
    "a\0b",
    "a\nb",
    "a,b",
    "a b",
    "%2e%2e%2f",
    "..\u{2215}etc",
    "Ünïcode",
    "UPPER",
    "v.json",
    "\u{202e}v",
    "/state",
    "/state/images",
    "/state/images/v.img",
    "/stat",
    "/state/",
    "relative/path",
    "/kubelet/./x",
    "/kubelet//x",
    "/kubelet/x\u{7f}",
];

fn paths(op: &Op) -> Vec<&str> {
    match op {
        Op::MakeDir { path }
        | Op::MakePlace { path }
        | Op::MakeScratch { path }
        | Op::SetGroup { path, .. }
        | Op::RemoveDir { path }
        | Op::Discard { path }
        | Op::RemoveTree { path }
        | Op::RemoveTarget { path }
        | Op::MakeFile { path }
        | Op::WriteFile { path, .. }
        | Op::RemoveFile { path }
        | Op::CreateImage { path, .. }
        | Op::GrowImage { path, .. }
        | Op::Measure { path } => vec![path],
        Op::CopyTogether { copies } => {
            let all = copies.iter().flat_map(|copy| [Some(&copy.from), Some(&copy.to), copy.still.as_ref()]);
            all.flatten().map(String::as_str).collect()
        }
        Op::AttachLoop { image } | Op::DetachLoop { image } | Op::RefreshLoop { image } => vec![image],
        Op::MakeFilesystem { device, .. }
        | Op::CheckFilesystem { device, .. }
        | Op::SetReadAhead { device, .. }
        | Op::GrowFilesystem { device, mounted_at: None, .. } => {
            assert!(device.starts_with("/dev/loop:/state/images/"), "{device}");
            vec![]
        }
        Op::GrowFilesystem { mounted_at: Some(path), .. } => vec![path],
        Op::Mount { target, .. } | Op::Unmount { target } | Op::BindDevice { target, .. } => vec![target],
        Op::Bind { source, target, .. } => vec![source, target],
        Op::MountMemory { .. }
        | Op::ShowFiles { .. }
        | Op::HostPath { .. }
        | Op::MeasureTree { .. }
        | Op::StartProcess(_)
        | Op::AskProcess { .. }
        | Op::RunHandler { .. }
        | Op::StopProcess { .. }
        | Op::ForgetProcess { .. } => vec!["/no driver's business"],
    }
}

/// Every path touched is a file or directory of the state directory with a plain name, or one of the given paths as they
/// stand.
fn check_touched(ops: &[Op], given: &[&str]) {
    const FILES: [&str; 5] =
        ["/state/volumes/", "/state/images/", "/state/snapshots/", "/state/snapshot-images/", "/state/groups/"];
    const DIRS: [&str; 3] = ["/state/directories/", "/state/snapshot-directories/", "/state/mounts/"];
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let named =
        |name: &str, dots| name.chars().all(plain) && !name.starts_with('.') && name.matches('.').count() == dots;
    for path in ops.iter().flat_map(paths) {
        let file = FILES.iter().find_map(|dir| path.strip_prefix(dir)).is_some_and(|name| named(name, 1));
        let dir = DIRS.iter().find_map(|dir| path.strip_prefix(dir)).is_some_and(|name| named(name, 0));
        assert!(file || dir || given.contains(&path), "{path:?} is touched");
        assert!(!path.split('/').any(|part| part == ".."), "{path:?}");
    }
}

#[test]
fn names_become_ids_that_are_fit_for_file_names_and_differ() {
    let mut driver = Driver::with(Config { pool_bytes: 64 << 30, ..config() });
    let mut ids = BTreeSet::new();
    let long = ["x".repeat(63), "x".repeat(64), "x".repeat(128)];
    let names = HOSTILE.iter().copied().filter(|name| !name.is_empty()).chain(long.iter().map(String::as_str));
    for name in names {
        let Ok(Response::CreateVolume(answer)) = driver.call(create(name)) else { panic!("{name:?}") };
        check_touched(&driver.ops, &[]);
        assert!(ids.insert(answer.volume.unwrap().volume_id), "{name:?}");
    }
    driver.restart();
    assert_eq!(driver.facts.volumes().len(), ids.len());
    for id in ids {
        driver.bring(&[delete(&id)]);
        check_touched(&driver.ops, &[]);
    }
    assert!(driver.world.files.is_empty() && driver.world.images.is_empty());
}

#[test]
fn unknown_ids_touch_nothing() {
    for id in HOSTILE.iter().filter(|id| !id.is_empty()) {
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v"), stage("v")]);
        let world = driver.world.clone();
        for (call, code) in [
            (delete(id), Code::Ok),
            (attach(id), Code::NotFound),
            (detach(id, "n1"), Code::Ok),
            (stage(id), Code::NotFound),
            (publish(id, "p1"), Code::NotFound),
            (unpublish(id, "p1"), Code::Ok),
            (unstage(id, "/kubelet/other"), Code::Ok),
        ] {
            assert_eq!(driver.code(call.clone()), code, "{call:?}");
            assert!(driver.ops.is_empty());
        }
        assert_eq!(driver.world, world);
    }
}

#[test]
fn odd_paths_are_refused() {
    let mut refused = 0;
    for path in HOSTILE {
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v"), stage("v")]);
        let target = Call::NodePublishVolume(publish_request("v", path));
        let mut staging = publish_request("v", "/kubelet/t");
        staging.staging_target_path = path.to_string();
        let unpublish = v1::NodeUnpublishVolumeRequest { volume_id: "v".into(), target_path: path.to_string() };
        for call in [
            target,
            Call::NodePublishVolume(staging),
            Call::NodeUnpublishVolume(unpublish),
            Call::NodeStageVolume(stage_request("v", path)),
            unstage("v", path),
        ] {
            let code = driver.code(call.clone());
            check_touched(&driver.ops, &[path, STAGING, "/kubelet/t"]);
            // The one path of the list that is as good as any.
            if *path != "/stat" {
                assert!(
                    [Code::InvalidArgument, Code::FailedPrecondition].contains(&code),
                    "{call:?} {path:?} {code:?}"
                );
                assert!(driver.ops.is_empty());
                refused += 1;
            }
        }
    }
    assert_eq!(refused, (HOSTILE.len() - 1) * 5);
}

#[test]
fn names_of_snapshots_and_groups_touch_nothing_else() {
    for name in HOSTILE.iter().filter(|name| !name.is_empty()) {
        let mut driver = Driver::with(Config { pool_bytes: 64 << 30, ..config() });
        driver.bring(&[create("v"), create("w")]);
        let Ok(Response::CreateSnapshot(made)) = driver.call(snapshots::take("v", name)) else { panic!("{name:?}") };
        check_touched(&driver.ops, &[]);
        let Ok(Response::CreateVolumeGroupSnapshot(group)) = driver.call(snapshots::take_group(&["v", "w"], name))
        else {
            panic!("{name:?}")
        };
        check_touched(&driver.ops, &[]);
        let snapshot = made.snapshot.unwrap().snapshot_id;
        driver.bring(&[snapshots::restore("copy", &snapshot), delete("copy"), snapshots::drop_snapshot(&snapshot)]);
        check_touched(&driver.ops, &[]);
        driver.bring(&[snapshots::drop_group(&group.group_snapshot.unwrap().group_snapshot_id)]);
        check_touched(&driver.ops, &[]);
        driver.bring(&[delete("v"), delete("w")]);
        assert!(driver.world.files.is_empty() && driver.world.images.is_empty(), "{name:?}");
    }
}

#[test]
fn unknown_snapshots_groups_and_sources_touch_nothing() {
    for id in HOSTILE.iter().filter(|id| !id.is_empty()) {
        let mut driver = Driver::new();
        driver.bring(&[create("v")]);
        let world = driver.world.clone();
        for (call, code) in [
            (snapshots::take(id, "s"), Code::NotFound),
            (snapshots::take_group(&["v", id], "g"), Code::NotFound),
            (snapshots::drop_snapshot(id), Code::Ok),
            (snapshots::drop_group(id), Code::Ok),
            (snapshots::restore("w", id), Code::NotFound),
            (snapshots::copy("w", id), Code::NotFound),
            (growth::grow(id, 128 * MIB), Code::NotFound),
            (growth::grow_node(id, "/kubelet/x"), Code::NotFound),
            (growth::grow_node("v", id), Code::NotFound),
            (growth::stats(id, "/kubelet/x"), Code::NotFound),
            (growth::stats("v", id), Code::NotFound),
        ] {
            assert_eq!(driver.code(call.clone()), code, "{call:?} {id:?}");
            assert!(driver.ops.is_empty());
        }
        assert_eq!(driver.world, world);
    }
}

#[test]
fn a_pods_volume_may_have_any_id() {
    for id in HOSTILE.iter().filter(|id| !id.is_empty()) {
        let mut driver = Driver::new();
        let (up, down) = (pods::inline(id, "p1", &[]), unpublish(id, "p1"));
        driver.bring(&[up.clone(), up]);
        let target = target("p1");
        check_touched(&driver.ops, &[&target]);
        driver.bring(core::slice::from_ref(&down));
        check_touched(&driver.ops, &[&target]);
        driver.bring(&[down]);
        assert!(driver.world.files.is_empty() && driver.world.images.is_empty() && driver.world.mounts.is_empty());
    }
}

// Reliability 124.
#[test]
fn only_known_mount_flags_are_taken() {
    for flag in ["", "a,b", "a b", "noatime,suid", "a\0", "a\n", "context=\"x\"", "ä", "upperdir=/etc", "suid", "RO"] {
        let mut capability = writer();
        let Some(AccessType::Mount(mount)) = &mut capability.access_type else { panic!() };
        mount.mount_flags = vec![flag.to_string()];
        let mut request = stage_request("v", STAGING);
        request.volume_capability = Some(capability);
        let mut driver = Driver::new();
        driver.bring(&[create("v"), attach("v")]);
        assert_eq!(driver.code(Call::NodeStageVolume(request)), Code::InvalidArgument, "{flag:?}");
    }
}

// Who wrote it finds it; a value may be secret, and is not repeated.
#[test]
fn what_is_refused_is_named_without_its_value() {
    let mut capability = writer();
    let Some(AccessType::Mount(mount)) = &mut capability.access_type else { panic!() };
    mount.mount_flags = vec!["noatime".to_string(), "password=canary".to_string()];
    let refused = crate::check::capability(Some(&capability)).unwrap_err().message;
    assert!(refused.starts_with("the mount flag \"password\" is not offered; choose from ro, rw"), "{refused}");
    let parameters = [("kind".to_string(), "image".to_string()), ("colour".to_string(), "canary".to_string())].into();
    let refused = crate::check::parameters(&config(), &parameters, false).unwrap_err().message;
    assert_eq!(refused, "this driver takes no parameter \"colour\"; it takes kind and fsType");
}

// Reliability 121: what the driver keeps and says holds no secret.
#[test]
fn secrets_go_nowhere() {
    let canary = "canary-71aa";
    let secrets: BTreeMap<String, String> = [("key".to_string(), canary.to_string())].into();
    let mut driver = Driver::new();
    let mut shown = String::new();
    for mut call in life("v") {
        match &mut call {
            Call::CreateVolume(r) => r.secrets = secrets.clone(),
            Call::ControllerPublishVolume(r) => (r.secrets, r.volume_context) = (secrets.clone(), secrets.clone()),
            Call::NodeStageVolume(r) => (r.secrets, r.publish_context) = (secrets.clone(), secrets.clone()),
            Call::NodePublishVolume(r) => (r.secrets, r.volume_context) = (secrets.clone(), secrets.clone()),
            Call::DeleteVolume(r) => r.secrets = secrets.clone(),
            _ => {}
        }
        shown += &format!("{:?} {call:?}", Run::new(call.clone(), NOW));
        shown += &format!("{:?} {:?} {:?}", driver.call(call), driver.ops, driver.facts);
        for bytes in driver.world.files.values() {
            shown += core::str::from_utf8(bytes).unwrap();
        }
    }
    assert!(!shown.contains(canary));
}
