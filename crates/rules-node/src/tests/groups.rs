//! `fsGroup`.

use alloc::vec::Vec;

use api::{CSIDriver, Kind, PersistentVolume, Pod, Value};
use control::Effect;
use control::host::Op;
use csi::v1::volume_capability::AccessType;
use csi::{Call, NodeRpc};
use serde_json::json;

use super::world::World;
use crate::group::{self, Grouped};
use crate::{DriverFacts, GroupChange};

fn pod(context: Value) -> Pod {
    serde_json::from_value(json!({ "spec": { "securityContext": context } })).unwrap()
}

fn volume(mode: &str, fs_type: &str) -> PersistentVolume {
    serde_json::from_value(json!({ "spec": { "accessModes": [mode], "csi": { "fsType": fs_type } } })).unwrap()
}

// KL-82: every policy with every kind of volume.
#[test]
fn kl_82_the_policy_of_the_driver_decides() {
    let asked = pod(json!({ "fsGroup": 2000 }));
    for (policy, mode, fs_type, applies) in [
        (None, "ReadWriteOnce", "ext4", true),
        (None, "ReadWriteOncePod", "ext4", true),
        (None, "ReadWriteOnce", "", false),
        (None, "ReadWriteMany", "ext4", false),
        (Some("ReadWriteOnceWithFSType"), "ReadWriteOnce", "ext4", true),
        (Some("ReadWriteOnceWithFSType"), "ReadOnlyMany", "ext4", false),
        (Some("File"), "ReadWriteMany", "", true),
        (Some("None"), "ReadWriteOnce", "ext4", false),
    ] {
        let driver: CSIDriver = serde_json::from_value(json!({ "spec": { "fsGroupPolicy": policy } })).unwrap();
        let volume = volume(mode, fs_type);
        let plain = Grouped::of(&volume, false);
        let change = |grouped: &Grouped<'_>| group::change(&asked, grouped, Some(&driver), None);
        let wanted = applies.then_some(GroupChange { group: 2000, only_if_root_differs: false });
        assert_eq!(change(&plain), wanted, "{policy:?} {mode} {fs_type}");
        for other in [Grouped { read_only: true, ..plain }, Grouped { block: true, ..plain }] {
            assert_eq!(change(&other), None, "read-only volumes and devices keep their groups");
        }
        assert_eq!(group::change(&pod(json!({})), &plain, Some(&driver), None), None, "nobody asked");
    }
    let (ours, with_type) =
        (api::InlineCsi::default(), api::InlineCsi { fs_type: Some("ext4".into()), ..Default::default() });
    assert_eq!(group::change(&asked, &Grouped::inline(&ours), None, None), None);
    assert!(group::change(&asked, &Grouped::inline(&with_type), None, None).is_some(), "a type suffices in a pod");
}

// KL-81, KL-84.
#[test]
fn kl_84_the_pod_says_whether_the_root_alone_is_looked_at() {
    let volume = volume("ReadWriteOnce", "ext4");
    let plain = Grouped::of(&volume, false);
    for (policy, only_if_root_differs) in [("OnRootMismatch", true), ("Always", false)] {
        let asked = pod(json!({ "fsGroup": 7, "fsGroupChangePolicy": policy }));
        assert_eq!(group::change(&asked, &plain, None, None), Some(GroupChange { group: 7, only_if_root_differs }));
        let able = DriverFacts::new([NodeRpc::VolumeMountGroup]);
        assert_eq!(group::change(&asked, &plain, None, Some(&able)), None, "the driver does it");
        assert_eq!(group::for_driver(&asked, Some(&able)), Some(7));
        assert_eq!(group::for_driver(&asked, Some(&DriverFacts::default())), None);
    }
}

/// Everything done on the machine until rest.
fn ops(world: &mut World) -> Vec<Op> {
    let mut ops = Vec::new();
    for _ in 0..60 {
        for key in [World::volume_key(), World::pod_key("a")] {
            let Some((_, effect)) = world.begin(&key) else { continue };
            let outcome = world.perform(&effect);
            world.finish(&key, &outcome);
            world.pass(1);
            world.watch_processes();
            if let Effect::Host(op) = effect {
                ops.push(op);
            }
        }
    }
    ops
}

fn grouped(ops: &[Op]) -> Vec<(u32, bool)> {
    let groups = ops.iter().filter_map(|op| match op {
        Op::SetGroup { group, only_if_root_differs, .. } => Some((*group, *only_if_root_differs)),
        _other => None,
    });
    groups.collect()
}

// KL-76, KL-83: given to the group after publishing, and the pod starts after that, with the group.
#[test]
fn kl_83_a_pod_starts_when_its_files_are_its_groups() {
    let mut world = World::new();
    let context = json!({ "fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch" });
    world.pod_with("a", json!({ "securityContext": context }));
    let ops = ops(&mut world);
    assert_eq!(grouped(&ops), [(2000, true)]);
    let place = |wanted: fn(&Op) -> bool| ops.iter().position(wanted).unwrap();
    assert!(place(|op| matches!(op, Op::SetGroup { .. })) < place(|op| matches!(op, Op::StartProcess(_))));
    let Some(Op::StartProcess(process)) = ops.iter().find(|op| matches!(op, Op::StartProcess(_))) else { panic!() };
    assert_eq!(process.sandbox.supplemental_groups, [2000]);
}

// Reliability 51: a change that was cut short by a crash is done again; the pod does not start on half of it.
#[test]
fn kl_83_a_crash_in_the_middle_is_made_good() {
    let mut world = World::new();
    world.pod_with("a", json!({ "securityContext": { "fsGroup": 2000 } }));
    let key = World::volume_key();
    while world.log.last().copied() != Some("Publish") {
        world.step(&key);
    }
    world.faults.insert("SetGroup", prove_lab::Fault::RequestLost);
    world.step(&key);
    assert_eq!(world.step(&World::pod_key("a")).filter(|name| *name == "Start"), None);
    world.crash("life-2");
    assert_eq!(grouped(&ops(&mut world)), [(2000, false)]);
    assert_eq!(world.status("a")["phase"], "Running");
}

// KL-81: a driver with VOLUME_MOUNT_GROUP is told the group in both calls, and nobody else changes anything.
#[test]
fn kl_81_a_driver_that_can_is_told_the_group() {
    let mut world = World::new();
    world.driver_can(|facts| facts.capabilities.extend([NodeRpc::VolumeMountGroup]));
    world.pod_with("a", json!({ "securityContext": { "fsGroup": 2000 } }));
    let calls = world.calls();
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    for capability in [&stage.volume_capability, &publish.volume_capability] {
        let Some(AccessType::Mount(mount)) = &capability.as_ref().unwrap().access_type else { panic!("a mount") };
        assert_eq!(mount.volume_mount_group, "2000");
    }
    assert!(!world.log.contains(&"SetGroup"));
    assert_eq!(world.status("a")["phase"], "Running");
}

// KL-86.
#[test]
fn kl_86_a_volume_adds_its_group_to_the_processes_of_its_pods() {
    let mut world = World::new();
    world.patch(
        Kind::PersistentVolume,
        "pv1",
        json!({ "metadata": { "annotations": { "pv.beta.kubernetes.io/gid": "1234" } } }),
    );
    world.pod("a");
    let ops = ops(&mut world);
    let Some(Op::StartProcess(process)) = ops.iter().find(|op| matches!(op, Op::StartProcess(_))) else { panic!() };
    assert_eq!(process.sandbox.supplemental_groups, [1234]);
}
