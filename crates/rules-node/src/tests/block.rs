//! Raw block volumes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value};
use control::Effect;
use control::host::{Op, ProcessDevice};
use csi::v1::volume_capability::AccessType;
use csi::{Call, NodeRpc};
use serde_json::json;

use super::world::World;
use crate::DriverFacts;

const STAGING: &str = "/r/plugins/kubernetes.io/csi/volumeDevices/staging/pv1";
const PUBLISHED: &str = "/r/plugins/kubernetes.io/csi/volumeDevices/publish/pv1";

fn with_device() -> Value {
    json!({ "containers": [{ "name": "c", "image": "i", "command": ["/bin/true"],
                             "volumeDevices": [{ "name": "v", "devicePath": "/dev/xvda" }] }] })
}

fn world() -> World {
    let mut world = World::new();
    world.volume_with(|spec| spec["volumeMode"] = json!("Block"));
    world
}

/// The devices that processes were started with.
fn started(world: &mut World) -> Vec<ProcessDevice> {
    let mut devices = Vec::new();
    for _ in 0..60 {
        for key in [World::volume_key(), World::pod_key("a")] {
            let Some((_, effect)) = world.begin(&key) else { continue };
            if let Effect::Host(Op::StartProcess(process)) = &effect {
                devices.extend(process.devices.clone());
            }
            let outcome = world.perform(&effect);
            world.finish(&key, &outcome);
            world.pass(1);
            world.watch_processes();
        }
    }
    devices
}

// KL-91, KL-92, KL-93: staged and published at kubelet's paths, as a device without mount flags.
#[test]
fn kl_91_a_raw_device_is_staged_and_published_where_kubelet_does() {
    let mut world = world();
    world.pod_with("a", with_device());
    let calls = world.calls();
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(stage.staging_target_path, STAGING);
    assert_eq!(publish.staging_target_path, STAGING);
    assert_eq!(publish.target_path, format!("{PUBLISHED}/{}", world.uid("a")));
    for capability in [&stage.volume_capability, &publish.volume_capability] {
        assert!(matches!(capability.as_ref().unwrap().access_type, Some(AccessType::Block(_))));
    }
    assert!(!publish.readonly);
    assert_eq!(world.status("a")["phase"], "Running");
}

// KL-92: the staging path is told even to a driver that does not stage.
#[test]
fn kl_92_a_driver_that_does_not_stage_is_told_the_staging_path_of_a_device() {
    let mut world = world();
    world.driver_can(|facts| *facts = DriverFacts::new([NodeRpc::ExpandVolume]));
    world.pod_with("a", with_device());
    let calls = world.calls();
    let [Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(publish.staging_target_path, STAGING);
}

// KL-96: the container has the device at its path, read-only if the claim is used so.
#[test]
fn kl_96_the_container_has_the_device() {
    for read_only in [false, true] {
        let mut world = world();
        let claim = json!({ "claimName": "data", "readOnly": read_only });
        let mut spec = with_device();
        spec["volumes"] = json!([{ "name": "v", "persistentVolumeClaim": claim }]);
        world.pod_with("a", spec);
        let source = format!("{PUBLISHED}/{}", world.uid("a"));
        assert_eq!(started(&mut world), [ProcessDevice { source, target: "/dev/xvda".into(), read_only }]);
    }
}

// KL-94, KL-95: nothing is left of the device, its directories or its record.
#[test]
fn kl_94_a_raw_device_is_taken_down_without_a_trace() {
    let mut world = world();
    world.pod_with("a", with_device());
    world.settle();
    world.delete_pod("a");
    let calls = world.calls();
    let [Call::NodeUnpublishVolume(unpublish), Call::NodeUnstageVolume(unstage)] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert!(unpublish.target_path.starts_with(PUBLISHED));
    assert_eq!(unstage.staging_target_path, STAGING);
    assert!(world.get(Kind::Pod, "a").is_none());
    assert!(world.machine.files.is_empty(), "{:?}", world.machine.files.keys());
    assert!(world.machine.dirs.is_empty(), "left behind: {:?}", world.machine.dirs);
    assert!(!world.node_lists("volumesInUse"));
}

// KL-55, KL-59, KL-60: after a restart the record says that it is a device; it is staged again, and the pod runs on.
#[test]
fn kl_59_a_raw_device_is_found_again_after_a_restart() {
    let mut world = world();
    world.pod_with("a", with_device());
    world.settle();
    world.crash("life-2");
    // Nothing is mounted where a device is staged.
    world.update_local(|local| {
        local.mounts.remove(STAGING);
    });
    let calls = world.calls();
    assert!(matches!(&calls[..], [Call::NodeStageVolume(stage)] if stage.staging_target_path == STAGING), "{calls:?}");
    assert_eq!(world.status("a")["phase"], "Running");
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.dirs.is_empty() && world.machine.files.is_empty(), "{:?}", world.machine.dirs);
}

// Reliability 45: the directory of a device that no record explains is left alone.
#[test]
fn a_device_without_a_record_is_a_stray_mount() {
    let mut world = world();
    world.update_local(|local| {
        local.mounts.insert(format!("{PUBLISHED}/somebody"));
    });
    world.patch_status(Kind::Node, "n", json!({ "volumesInUse": [super::world::unique()] }));
    world.settle();
    assert_eq!(world.why(&World::volume_key()).code, "MountedWithoutRecord");
    let text: String = world.why(&World::volume_key()).text;
    assert!(text.contains(PUBLISHED), "{text}");
}
