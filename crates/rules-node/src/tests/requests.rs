//! Everything the driver and the disk get for one volume of one pod, compared whole: a field that is left out, or
//! comes from somewhere else, is a difference.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, names};
use control::host::{Op, Process, ProcessMount};
use control::{Action as _, Effect, Endpoint};
use csi::v1::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
use csi::{Call, v1};
use prove_lab::print_call;
use serde_json::json;

use super::world::{DRIVER, HANDLE, World, unique};
use crate::action::InUse;
use crate::paths::{EMPTY_DIR, own_volume, pod_dirs};
use crate::{Action, Paths, Publish, Record, VolumeSpec, target_path};

const STAGED: &str = "/r/plugins/kubernetes.io/csi/d.example/HASH/globalmount";

fn staging() -> String {
    STAGED.replace("HASH", &names::staging_hash(HANDLE))
}

fn context(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn capability(mode: Mode) -> Option<v1::VolumeCapability> {
    let mount =
        MountVolume { fs_type: "ext4".into(), mount_flags: alloc::vec!["noatime".into()], ..MountVolume::default() };
    Some(v1::VolumeCapability {
        access_mode: Some(AccessMode { mode: mode as i32 }),
        access_type: Some(AccessType::Mount(mount)),
    })
}

/// Every effect on driver and machine that a pod's life comes to, in order.
fn life(mut world: World) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut watch = |world: &mut World| {
        for _ in 0..60 {
            for key in [World::volume_key(), World::pod_key("a")] {
                if let Some((action, effect)) = world.begin(&key) {
                    let outcome = world.perform(&effect);
                    effects.push(action.effect());
                    world.finish(&key, &outcome);
                    world.pass(1);
                }
            }
            world.watch_processes();
        }
    };
    watch(&mut world);
    world.delete_pod("a");
    watch(&mut world);
    assert!(world.get(Kind::Pod, "a").is_none(), "the pod's life ends");
    effects
}

fn calls(effects: &[Effect]) -> Vec<(Endpoint, Call)> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { to, call } => Some((to.clone(), call.clone())),
        Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Host(_)
        | Effect::Nothing => None,
    });
    calls.collect()
}

fn target(uid: &str) -> String {
    alloc::format!("/r/pods/{uid}/volumes/kubernetes.io~csi/pv1/mount")
}

fn uid(world: &World) -> String {
    world.get(Kind::Pod, "a").unwrap()["metadata"]["uid"].as_str().unwrap().into()
}

fn compare(got: &[(Endpoint, Call)], wanted: &[Call]) {
    let print = |calls: &[Call]| calls.iter().map(print_call).collect::<Vec<_>>();
    let calls: Vec<Call> = got.iter().map(|(_, call)| call.clone()).collect();
    assert_eq!(print(&calls), print(wanted));
    assert!(calls == wanted, "the printed form leaves something out");
    assert!(got.iter().all(|(to, _)| *to == Endpoint::Driver(DRIVER.into())), "{got:?}");
}

// KL-66, KL-71: volume id, both contexts, capability and paths of all four calls.
// KL-69.
#[test]
fn the_four_calls_of_a_life_are_complete() {
    let mut world = World::new();
    world.pod("a");
    let target_path = target(&uid(&world));
    let calls = calls(&life(world));
    let wanted = [
        Call::NodeStageVolume(v1::NodeStageVolumeRequest {
            volume_id: HANDLE.into(),
            publish_context: context(&[("lun", "3")]),
            staging_target_path: staging(),
            volume_capability: capability(Mode::SingleNodeWriter),
            secrets: BTreeMap::new(),
            volume_context: context(&[("made", "here")]),
        }),
        Call::NodePublishVolume(v1::NodePublishVolumeRequest {
            volume_id: HANDLE.into(),
            publish_context: context(&[("lun", "3")]),
            staging_target_path: staging(),
            target_path: target_path.clone(),
            volume_capability: capability(Mode::SingleNodeWriter),
            readonly: false,
            secrets: BTreeMap::new(),
            volume_context: context(&[("made", "here")]),
        }),
        Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id: HANDLE.into(), target_path }),
        Call::NodeUnstageVolume(v1::NodeUnstageVolumeRequest {
            volume_id: HANDLE.into(),
            staging_target_path: staging(),
        }),
    ];
    compare(&calls, &wanted);
}

// Read-only where the pod says so; podInfoOnMount adds to the volume context (KL-78).
// KL-32.
#[test]
fn what_pod_and_driver_ask_for_is_in_the_request_to_publish() {
    let mut world = World::new();
    world.create(
        Kind::CSIDriver,
        json!({ "metadata": { "name": DRIVER }, "spec": { "podInfoOnMount": true, "attachRequired": true } }),
    );
    let claim = json!({ "claimName": "data", "readOnly": true });
    world.pod_with(
        "a",
        json!({ "serviceAccountName": "robot",
        "volumes": [{ "name": "v", "persistentVolumeClaim": claim }] }),
    );
    let uid = uid(&world);
    let calls = calls(&life(world));
    let Call::NodePublishVolume(request) = &calls[1].1 else { panic!("{calls:?}") };
    let info = context(&[
        ("made", "here"),
        ("csi.storage.k8s.io/pod.name", "a"),
        ("csi.storage.k8s.io/pod.namespace", "ns"),
        ("csi.storage.k8s.io/pod.uid", &uid),
        ("csi.storage.k8s.io/serviceAccount.name", "robot"),
        ("csi.storage.k8s.io/ephemeral", "false"),
    ]);
    assert_eq!(request.volume_context, info);
    assert!(request.readonly);
    let Call::NodeStageVolume(stage) = &calls[0].1 else { panic!("{calls:?}") };
    assert_eq!(stage.volume_context, context(&[("made", "here")]), "staging is for every pod");
}

// KL-73.
#[test]
fn access_modes_become_the_modes_of_csi() {
    let spec = |modes: &[&str]| {
        let body = json!({ "metadata": { "name": "v" }, "spec": {
            "accessModes": modes, "mountOptions": ["noatime"],
            "csi": { "driver": "d", "volumeHandle": "h", "fsType": "ext4" },
        } });
        VolumeSpec::of(&serde_json::from_value(body).unwrap(), None)
    };
    let first = [
        (&["ReadWriteOnce"][..], Mode::SingleNodeWriter, false),
        (&["ReadWriteOncePod"], Mode::SingleNodeWriter, true),
        (&["ReadOnlyMany", "ReadWriteMany"], Mode::MultiNodeReaderOnly, false),
        (&["ReadWriteMany", "ReadOnlyMany"], Mode::MultiNodeMultiWriter, false),
        (&["ReadWriteOncePod", "ReadWriteOnce"], Mode::SingleNodeWriter, false),
        (&[], Mode::SingleNodeWriter, false),
    ];
    for (modes, mode, one_pod) in first {
        let spec = spec(modes);
        assert!(Some(spec.capability.to_csi()) == capability(mode), "{modes:?}");
        assert_eq!(spec.one_pod, one_pod, "{modes:?}");
    }
}

// 4.6, KL-61: the paths on this machine, as Kubernetes has them.
#[test]
fn paths_are_where_kubernetes_has_them() {
    let dir = staging().replace("/globalmount", "");
    let paths = Paths::of("/r", DRIVER, HANDLE);
    let (record, published) = (alloc::format!("{dir}/vol_data.json"), String::new());
    assert_eq!(paths, Paths { staging: staging(), record, dir, published });
    assert_eq!(target_path("/r", "u", "a/b"), "/r/pods/u/volumes/kubernetes.io~csi/a~b/mount");
    assert_eq!(own_volume("/r", "u", EMPTY_DIR, "tmp"), "/r/pods/u/volumes/kubernetes.io~empty-dir/tmp");
    assert_eq!(pod_dirs("/r", "u"), ["/r/pods/u/volumes/kubernetes.io~csi", "/r/pods/u/volumes", "/r/pods/u"]);
}

// Reliability 41, 48: the record says everything before it may exist, and goes last.
// KL-75.
#[test]
fn the_record_grows_with_the_volume_and_every_directory_goes() {
    let mut world = World::new();
    world.pod("a");
    let uid = uid(&world);
    let effects = life(world);
    let record_path = staging().replace("globalmount", "vol_data.json");
    let publish = Publish { target: target(&uid), pod_namespace: "ns".into(), pod_name: "a".into(), read_only: false };
    let whole = Record {
        attachment: names::attachment_name(HANDLE, DRIVER, "n"),
        driver: DRIVER.into(),
        migrated: false,
        node: "n".into(),
        publishes: [(uid.clone(), publish)].into(),
        size: None,
        volume: "pv1".into(),
        staging_path: Some(staging()),
        version: 1,
        handle: HANDLE.into(),
        lifecycle: "Persistent".into(),
        block: false,
    };
    assert_eq!(whole.unique_name(), unique());
    let without = Record { publishes: BTreeMap::new(), ..whole.clone() };
    let written: Vec<(String, Record)> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Host(Op::WriteFile { path, bytes }) => Some((path.clone(), Record::parse(bytes).unwrap())),
            _other => None,
        })
        .collect();
    assert_eq!(written, [(record_path.clone(), whole), (record_path.clone(), without)]);
    let changed: Vec<&Op> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Host(op @ (Op::MakeDir { .. } | Op::RemoveDir { .. } | Op::RemoveFile { .. })) => Some(op),
            _other => None,
        })
        .collect();
    let parent = target(&uid).replace("/mount", "");
    let (made, gone) = (|path: String| Op::MakeDir { path }, |path: String| Op::RemoveDir { path });
    assert_eq!(changed[..2], [&made(staging()), &made(parent.clone())]);
    for path in [target(&uid), parent, staging(), staging().replace("/globalmount", "")] {
        assert!(changed.contains(&&gone(path.clone())), "{path} stays: {changed:?}");
    }
    assert!(changed.contains(&&Op::RemoveFile { path: record_path }));
}

// KL-88: also a driver that could mount with a label is given the options of the volume and no other.
#[test]
fn kl_88_volumes_are_mounted_without_a_label() {
    let mut world = World::new();
    world.driver(json!({ "attachRequired": true, "seLinuxMount": true }));
    world.pod("a");
    let asked = calls(&life(world));
    let capabilities = asked.iter().filter_map(|(_, call)| match call {
        Call::NodeStageVolume(request) => Some(request.volume_capability.clone()),
        Call::NodePublishVolume(request) => Some(request.volume_capability.clone()),
        _other => None,
    });
    let capabilities: Vec<_> = capabilities.collect();
    assert!(capabilities == [capability(Mode::SingleNodeWriter), capability(Mode::SingleNodeWriter)]);
}

// What a container's process is started with.
#[test]
fn a_process_is_started_with_its_command_and_mounts() {
    let mut world = World::new();
    world.pod("a");
    let uid = uid(&world);
    let effects = life(world);
    let mut started = effects.iter().filter_map(|effect| match effect {
        Effect::Host(Op::StartProcess(process)) => Some(process),
        _other => None,
    });
    let Some(Process { name, command, mounts, .. }) = started.next() else { panic!("nothing was started") };
    assert_eq!(*name, alloc::format!("{uid}_ns_a_c_0"));
    assert_eq!(command, &["/bin/true"]);
    let wanted = ProcessMount { source: target(&uid), target: "/data".into(), ..ProcessMount::default() };
    assert_eq!(mounts, &[wanted]);
    assert!(effects.contains(&Effect::Host(Op::ForgetProcess { name: name.clone() })));
}

// Reliability 29, 30: what the node tests with each report, and the list it writes.
#[test]
fn reports_of_volumes_in_use_test_life_list_and_version() {
    let in_use = |seen: Option<&[&str]>| InUse {
        node: "n".into(),
        incarnation: "life-1".into(),
        volume: unique(),
        seen: seen.map(|seen| seen.iter().map(|name| (*name).into()).collect()),
        version: "7".into(),
        attach_needed: true,
    };
    let body = |action: Action| match action.effect() {
        Effect::Write(api::Write::Patch { target, patch, subresource: Some(api::Subresource::Status) }) => {
            assert_eq!((target.kind, target.key.name.as_str()), (Kind::Node, "n"));
            patch.to_json()
        }
        other => panic!("{other:?}"),
    };
    let test = |path: &str, value: api::Value| json!({ "op": "test", "path": path, "value": value });
    let life = test("/metadata/annotations/longshore.dev~1agent-life", json!("life-1"));
    let version = test("/metadata/resourceVersion", json!("7"));
    let list = |names: &[&str]| json!({ "op": "add", "path": "/status/volumesInUse", "value": names });
    let seen = |names: &[&str]| test("/status/volumesInUse", json!(names));
    let name = unique();
    assert_eq!(body(Action::ReportInUse(in_use(None))), json!([life, version, list(&[&name])]));
    let report = body(Action::ReportInUse(in_use(Some(&["x"]))));
    assert_eq!(report, json!([life, seen(&["x"]), list(&["x", &name])]));
    let clear = body(Action::ClearInUse(in_use(Some(&["x", &name]))));
    assert_eq!(clear, json!([life, seen(&["x", &name]), version, list(&["x"])]));
}
