//! Volumes of in-tree plugins whose drivers serve them on this node (seed 004).

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use csi::Call;
use prove_lab::Fault;
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use super::world::{MIGRATED, World};
use crate::{Key, Node, UserState, View};

fn disk() -> Value {
    json!({ "gcePersistentDisk": { "pdName": "disk-1", "fsType": "ext4" } })
}

fn migrated() -> World {
    World::in_tree("1Gi", &disk())
}

/// A pod whose own spec has the disk.
fn holding(world: &mut World, name: &str, read_only: bool) {
    let mut source = disk();
    source["gcePersistentDisk"]["readOnly"] = read_only.into();
    source["name"] = "v".into();
    world.pod_with(name, json!({ "volumes": [source] }));
}

/// The attachment of such a volume, as the controller makes it: by name alone, with the volume in it.
fn attach_held(world: &mut World) {
    let (driver, handle) = MIGRATED;
    let name = names::attachment_name(handle, driver, "n");
    let spec = json!({ "csi": { "driver": driver, "volumeHandle": handle }, "accessModes": ["ReadWriteOnce"] });
    world.create(
        Kind::VolumeAttachment,
        json!({ "metadata": { "name": name }, "spec": { "attacher": driver, "nodeName": "n",
            "source": { "inlineVolumeSpec": spec } } }),
    );
    world.patch_status(Kind::VolumeAttachment, &name, json!({ "attached": true }));
    world.report_attached(true);
}

fn switch(world: &mut World, phase: Phase) {
    world.update_local(|local| local.migration = Migration::default().with(Plugin::GcePd, phase));
}

fn names_of(calls: &[Call]) -> Vec<&'static str> {
    calls.iter().map(|call| call.method().name()).collect()
}

/// Every call is about the driver's own volume.
fn check_handles(calls: &[Call]) {
    for call in calls {
        assert_eq!(call.volume(), MIGRATED.1, "{call:?}");
    }
}

// S4-12, S4-13, S4-23: the driver sees the CSI source alone; paths, record and reports are those of the volume's own
// name, and the record says that it was migrated (S4-24).
#[test]
fn a_volume_of_a_plugin_is_translated_before_each_call() {
    let mut world = migrated();
    world.pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeStageVolume", "NodePublishVolume"]);
    check_handles(&calls);
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(stage.volume_context.get("partition").map(String::as_str), Some(""));
    assert_eq!(stage.publish_context.get("lun").map(String::as_str), Some("3"));
    let uid = world.uid("a");
    assert_eq!(publish.target_path, alloc::format!("/r/pods/{uid}/volumes/kubernetes.io~csi/pv1/mount"));
    let record = world.local().records[&world.unique()].clone();
    assert_eq!((record.volume.as_str(), record.migrated), ("pv1", true));
    assert!(world.node_lists("volumesInUse"));
    assert_eq!(world.status("a")["phase"], "Running");
    world.delete_pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    check_handles(&calls);
    assert!(world.local().records.is_empty() && !world.node_lists("volumesInUse"));
}

// S4-23: raw devices likewise, staged under the volume's own name.
#[test]
fn a_raw_device_of_a_plugin_is_translated() {
    let mut source = disk();
    source["volumeMode"] = "Block".into();
    let mut world = World::in_tree("1Gi", &source);
    world.pod_with(
        "a",
        json!({ "containers": [{ "name": "c", "image": "i", "command": ["/bin/true"],
                                 "volumeDevices": [{ "name": "v", "devicePath": "/dev/x" }] }] }),
    );
    let calls = world.calls();
    check_handles(&calls);
    let Some(Call::NodeStageVolume(stage)) = calls.first() else { panic!("{calls:?}") };
    assert_eq!(stage.staging_target_path, "/r/plugins/kubernetes.io/csi/volumeDevices/staging/pv1");
    let record = world.local().records[&world.unique()].clone();
    assert!(record.block && record.migrated);
}

// S4-22: the filesystem grows by the translated handle.
#[test]
fn the_filesystem_of_a_volume_of_a_plugin_grows() {
    let mut world = World::in_tree("2Gi", &disk());
    world.machine.size = 1 << 30;
    let status = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
    world.pod("a");
    world.calls();
    world.patch(Kind::PersistentVolume, "pv1", json!({ "spec": { "capacity": { "storage": "2Gi" } } }));
    let status = json!({ "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_PENDING } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeExpandVolume"]);
    check_handles(&calls);
}

// S4-18: a volume in the pod's own spec, through the attachment that has the volume in it; two pods share it.
#[test]
fn a_volume_in_a_pods_own_spec_is_found_by_the_name_of_its_attachment() {
    let mut world = World::bare(MIGRATED);
    holding(&mut world, "a", false);
    assert!(world.calls().is_empty(), "it is not attached");
    let why = world.why(&Key::Volume(world.unique()));
    assert!(why.text.contains("there is no VolumeAttachment of volume pd.csi.storage.gke.io-disk-1"), "{why:?}");
    attach_held(&mut world);
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeStageVolume", "NodePublishVolume"]);
    check_handles(&calls);
    holding(&mut world, "b", false);
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodePublishVolume"]);
    let record = world.local().records[&world.unique()].clone();
    assert_eq!((record.volume.as_str(), record.migrated), ("pd.csi.storage.gke.io-disk-1", true));
    assert_eq!((record.publishes.len(), record.lifecycle.as_str()), (2, "Persistent"));
    world.crash("life-2");
    assert!(world.calls().is_empty(), "a restart at rest does nothing");
    world.delete_pod("a");
    world.delete_pod("b");
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]);
    check_handles(&calls);
}

// What the volume in a pod's spec says of itself is the use.
#[test]
fn a_volume_in_a_pods_own_spec_is_published_read_only_if_it_says_so() {
    for read_only in [false, true] {
        let mut world = World::bare(MIGRATED);
        attach_held(&mut world);
        holding(&mut world, "a", read_only);
        let calls = world.calls();
        let Some(Call::NodePublishVolume(publish)) = calls.last() else { panic!("{calls:?}") };
        assert_eq!(publish.readonly, read_only);
    }
}

// S4-2, S4-12: where the plugin is not left to its driver, nothing is asked of that, and the pod says why it waits.
#[test]
fn a_plugin_that_is_not_left_to_its_driver_is_waited_for_in_words() {
    for (held, name) in [(false, "pv1"), (true, "pd.csi.storage.gke.io-disk-1")] {
        let mut world = if held { World::bare(MIGRATED) } else { migrated() };
        switch(&mut world, Phase::Off);
        if held {
            attach_held(&mut world);
            holding(&mut world, "a", false);
        } else {
            world.pod("a");
        }
        assert!(world.calls().is_empty());
        let why = world.why(&World::pod_key("a"));
        let said = alloc::format!(
            "pod ns/a waits: volume {name} is of plugin kubernetes.io/gce-pd, which node n does not leave to driver \
             pd.csi.storage.gke.io; drain the node and switch CSIMigrationGCE on there"
        );
        assert_eq!((why.code, &*why.text), ("VolumeNotSupported", &*said));
        switch(&mut world, Phase::On);
        assert_eq!(names_of(&world.calls()), ["NodeStageVolume", "NodePublishVolume"]);
    }
}

// S4-11, S4-12: a volume that cannot be translated is told in the words of the translation.
#[test]
fn an_untranslatable_volume_is_a_wait_with_its_reason() {
    let mut world = World::bare(MIGRATED);
    world.create(
        Kind::PersistentVolumeClaim,
        json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": "pv1",
            "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } } }),
    );
    let uid = world.get(Kind::PersistentVolumeClaim, "data").unwrap()["metadata"]["uid"].clone();
    world.create(
        Kind::PersistentVolume,
        json!({ "metadata": { "name": "pv1", "labels": { names::ZONE: "a__b" } }, "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": "ns", "name": "data", "uid": uid },
            "gcePersistentDisk": { "pdName": "disk-1" } } }),
    );
    world.pod("a");
    assert!(world.calls().is_empty());
    let why = world.why(&World::pod_key("a"));
    assert!(why.text.contains("volume pv1 cannot be translated for a CSI driver: the zones a, b of"), "{why:?}");
}

// S4-24, S4-33, S4-34: the gate was switched off without draining, and the agent was killed: the driver still has the
// volume, says so, takes it away with its pod, and serves no pod that comes later.
#[test]
fn what_the_driver_mounted_it_takes_away_although_the_gate_is_off() {
    let mut world = migrated();
    world.pod("a");
    world.calls();
    switch(&mut world, Phase::Off);
    world.crash("life-2");
    assert!(world.calls().is_empty(), "a restart at rest does nothing");
    assert_eq!(world.status("a")["phase"], "Running");
    let key = Key::Volume(world.unique());
    let View::Volume(view) = <Node as control::Rules>::view(&key, &world.cache, world.local()) else { panic!() };
    assert!(view.users.values().all(|user| user.standing == UserState::Wanted), "{:?}", view.users);
    let why = world.why(&key);
    let said = "driver pd.csi.storage.gke.io mounted volume pv1 on node n and takes it away, although CSIMigrationGCE \
                was switched off there since; drain the node before plugin kubernetes.io/gce-pd serves";
    assert_eq!((why.code, &*why.text), ("NodeNotDrained", said));
    world.pod("b");
    assert!(world.calls().is_empty());
    assert!(world.why(&World::pod_key("b")).text.contains("does not leave to driver"));
    world.delete_pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    check_handles(&calls);
    assert!(world.local().records.is_empty() && !world.node_lists("volumesInUse"));
}

// S4-24: also when it was killed before an answer, and the volume's object is gone.
#[test]
fn reconstruction_needs_neither_gate_nor_object() {
    let mut world = migrated();
    world.faults.insert("Publish", Fault::AnswerLost);
    world.pod("a");
    for _ in 0..40 {
        let keys = <Node as control::Rules>::keys(&world.cache, world.local());
        for key in &keys {
            world.step(key);
        }
        if !world.machine.published.is_empty() {
            break;
        }
    }
    assert!(!world.machine.published.is_empty());
    switch(&mut world, Phase::Off);
    world.patch(Kind::PersistentVolume, "pv1", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "pv1");
    world.crash("life-2");
    world.force_delete_pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    check_handles(&calls);
    assert!(world.machine.published.is_empty() && world.machine.staged.is_empty());
}

// S4-27, S4-50: nothing falls back to the plugin while the driver is away; that is told, and all goes on once it is
// there.
#[test]
fn a_driver_that_is_away_is_waited_for() {
    let mut world = migrated();
    let facts = world.local().drivers[MIGRATED.0].clone();
    world.update_local(|local| local.drivers.clear());
    world.pod("a");
    assert!(world.calls().is_empty());
    let why = world.why(&Key::Volume(world.unique()));
    assert_eq!(why.code, "DriverNotRegistered");
    world.update_local(|local| local.drivers.extend([(MIGRATED.0.into(), facts)]));
    assert_eq!(names_of(&world.calls()), ["NodeStageVolume", "NodePublishVolume"]);
}
