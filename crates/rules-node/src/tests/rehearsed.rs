//! Volumes that an in-tree plugin itself serves on this node, as in a rehearsal of its migration (seed 004).

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use csi::{Call, NodeRpc};
use prove_lab::Fault;
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use super::world::{MIGRATED, PLUGIN, World};
use crate::{DriverFacts, Key};

const RECORD: &str = "/r/plugins/kubernetes.io/gce-pd/mounts/";

fn rehearsed() -> World {
    World::rehearsed(&json!({ "gcePersistentDisk": { "pdName": "disk-1", "fsType": "ext4", "partition": 0 } }))
}

fn switch(world: &mut World, phase: Phase) {
    world.update_local(|local| local.migration = Migration::default().with(Plugin::GcePd, phase));
}

/// The plugin's driver is registered as well.
fn with_driver(world: &mut World) {
    world.update_local(|local| {
        let facts = DriverFacts::new([NodeRpc::StageUnstageVolume]);
        local.drivers.insert(MIGRATED.0.into(), facts);
    });
}

fn attach_to(world: &mut World, node: &str) {
    world.create(
        Kind::VolumeAttachment,
        json!({ "metadata": { "name": "va" }, "spec": {
            "attacher": MIGRATED.0, "nodeName": node, "source": { "persistentVolumeName": "pv1" } } }),
    );
    world.patch_status(Kind::VolumeAttachment, "va", json!({ "attached": true }));
}

fn names_of(calls: &[Call]) -> Vec<&'static str> {
    calls.iter().map(|call| call.method().name()).collect()
}

const UP: [&str; 2] = ["NodeStageVolume", "NodePublishVolume"];
const DOWN: [&str; 2] = ["NodeUnpublishVolume", "NodeUnstageVolume"];

// S4-2, S4-46: with the gate off the plugin serves, under its own names, and the record says who did.
#[test]
fn the_plugin_serves_what_is_not_left_to_its_driver() {
    for phase in [Phase::Off, Phase::On] {
        let mut world = rehearsed();
        with_driver(&mut world);
        if phase == Phase::On {
            world.served = MIGRATED;
            switch(&mut world, phase);
            world.attach();
        }
        world.pod("a");
        let calls = world.calls();
        assert_eq!(names_of(&calls), UP, "{phase:?}");
        let volume = world.served.1;
        assert!(calls.iter().all(|call| call.volume() == volume), "{calls:?}");
        assert!(world.node_lists("volumesInUse"));
        let record = world.local().records[&world.unique()].clone();
        assert_eq!((record.driver.as_str(), record.migrated), (world.served.0, phase == Phase::On));
        assert_eq!(world.status("a")["phase"], "Running");
    }
}

#[test]
fn what_the_plugin_mounts_is_where_kubelet_has_it() {
    let mut world = rehearsed();
    world.pod("a");
    let calls = world.calls();
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    assert!(stage.staging_target_path.starts_with(RECORD), "{}", stage.staging_target_path);
    assert_eq!((stage.volume_id.as_str(), stage.volume_context.len()), ("disk-1", 0));
    let uid = world.uid("a");
    assert_eq!(publish.target_path, alloc::format!("/r/pods/{uid}/volumes/kubernetes.io~gce-pd/pv1"));
    assert_eq!(world.unique(), "kubernetes.io/gce-pd/disk-1");
    world.delete_pod("a");
    assert_eq!(names_of(&world.calls()), DOWN);
    assert!(world.local().records.is_empty() && !world.node_lists("volumesInUse"));
}

// S4-33, S4-36: while the driver has the volume attached anywhere, the plugin neither claims nor mounts it.
#[test]
fn the_plugin_waits_until_the_driver_has_the_volume_nowhere() {
    for node in ["n", "other"] {
        let mut world = rehearsed();
        attach_to(&mut world, node);
        world.pod("a");
        assert!(world.calls().is_empty() && !world.node_lists("volumesInUse"), "{node}");
        let why = world.why(&World::pod_key("a"));
        let said = alloc::format!("VolumeAttachment va of driver {} has volume pv1 on node {node}; plugin", MIGRATED.0);
        assert!(why.text.contains(&said), "{why:?}");
        world.patch(Kind::VolumeAttachment, "va", json!({ "metadata": { "finalizers": null } }));
        world.delete(Kind::VolumeAttachment, "va");
        assert_eq!(names_of(&world.calls()), UP);
    }
}

// S4-24, S4-33, S4-34: the gate was switched on without draining, and the agent was killed: the plugin still has the
// volume, says so, takes it away with its pod, and only then does the driver serve the pod that waits.
#[test]
fn what_the_plugin_mounted_it_takes_away_although_the_gate_is_on() {
    let mut world = rehearsed();
    with_driver(&mut world);
    world.pod("a");
    world.calls();
    switch(&mut world, Phase::On);
    world.crash("life-2");
    assert!(world.calls().is_empty(), "a restart at rest does nothing");
    assert_eq!(world.status("a")["phase"], "Running");
    let why = world.why(&Key::Volume(world.unique()));
    let said = "plugin kubernetes.io/gce-pd mounted volume pv1 on node n and takes it away, although CSIMigrationGCE \
                was switched on there since; drain the node before driver pd.csi.storage.gke.io serves";
    assert_eq!((why.code, &*why.text), ("NodeNotDrained", said));
    world.pod("b");
    assert!(world.calls().is_empty());
    assert!(world.why(&World::pod_key("b")).text.contains("is still mounted by plugin"));
    world.delete_pod("a");
    assert_eq!(names_of(&world.calls()), DOWN);
    assert!(world.local().records.is_empty() && !world.node_lists("volumesInUse"));
    world.served = MIGRATED;
    world.attach();
    assert_eq!(names_of(&world.calls()), UP);
}

// S4-33: the other way round, the plugin serves nothing that the driver still has mounted.
#[test]
fn what_the_driver_mounted_is_not_the_plugins() {
    let mut world = rehearsed();
    with_driver(&mut world);
    switch(&mut world, Phase::On);
    world.served = MIGRATED;
    world.attach();
    world.pod("a");
    assert_eq!(names_of(&world.calls()), UP);
    switch(&mut world, Phase::Off);
    world.crash("life-2");
    world.pod("b");
    assert!(world.calls().is_empty());
    world.delete_pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), DOWN);
    assert!(calls.iter().all(|call| call.volume() == MIGRATED.1), "{calls:?}");
    world.report_attached(false);
    world.patch(Kind::VolumeAttachment, "va", json!({ "metadata": { "finalizers": null } }));
    world.served = PLUGIN;
    world.delete(Kind::VolumeAttachment, "va");
    let calls = world.calls();
    assert_eq!(names_of(&calls), UP);
    assert!(calls.iter().all(|call| call.volume() == PLUGIN.1), "{calls:?}");
}

// S4-24: killed before an answer; the record alone tells who mounted.
#[test]
fn a_restart_knows_by_the_record_that_the_plugin_mounted() {
    let mut world = rehearsed();
    world.faults.insert("Publish", Fault::AnswerLost);
    world.pod("a");
    for _ in 0..40 {
        for key in <crate::Node as control::Rules>::keys(&world.cache, world.local()) {
            world.step(&key);
        }
        if !world.machine.published.is_empty() {
            break;
        }
    }
    assert!(!world.machine.published.is_empty());
    world.crash("life-2");
    world.force_delete_pod("a");
    let calls = world.calls();
    assert_eq!(names_of(&calls), DOWN);
    assert!(calls.iter().all(|call| call.volume() == PLUGIN.1), "{calls:?}");
}

// S4-2: a disk in the pod's own spec, which the driver may have attached for another pod under a name of its own.
#[test]
fn the_plugin_serves_a_disk_in_a_pods_own_spec() {
    let mut world = rehearsed();
    world.patch(Kind::PersistentVolume, "pv1", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "pv1");
    let csi = json!({ "driver": MIGRATED.0, "volumeHandle": "projects/p/zones/z/disks/disk-1" });
    world.create(
        Kind::VolumeAttachment,
        json!({ "metadata": { "name": "va" }, "spec": { "attacher": MIGRATED.0, "nodeName": "other",
            "source": { "inlineVolumeSpec": { "csi": csi, "accessModes": ["ReadWriteOnce"] } } } }),
    );
    let source: Value = json!({ "name": "v", "gcePersistentDisk": { "pdName": "disk-1", "fsType": "ext4" } });
    world.pod_with("a", json!({ "volumes": [source] }));
    assert!(world.calls().is_empty());
    world.patch(Kind::VolumeAttachment, "va", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::VolumeAttachment, "va");
    assert_eq!(names_of(&world.calls()), UP);
    world.delete_pod("a");
    assert_eq!(names_of(&world.calls()), DOWN);
}

// S4-23, S4-33: raw devices of the plugin are its own, in its own place, also after a restart.
#[test]
fn s4_23_a_raw_device_of_the_plugin_is_where_its_own_are() {
    let mut world = World::rehearsed(
        &json!({ "volumeMode": "Block", "gcePersistentDisk": { "pdName": "disk-1", "partition": 0 } }),
    );
    world.pod_with(
        "a",
        json!({ "containers": [{ "name": "c", "image": "i", "command": ["/bin/true"],
                                 "volumeDevices": [{ "name": "v", "devicePath": "/dev/x" }] }] }),
    );
    let calls = world.calls();
    let [Call::NodeStageVolume(stage), Call::NodePublishVolume(publish)] = &calls[..] else { panic!("{calls:?}") };
    let devices = "/r/plugins/kubernetes.io/gce-pd/volumeDevices";
    assert_eq!(stage.staging_target_path, alloc::format!("{devices}/staging/pv1"));
    assert_eq!(publish.target_path, alloc::format!("{devices}/publish/pv1/{}", world.uid("a")));
    let record = world.local().records[&world.unique()].clone();
    assert!(record.block && !record.migrated && record.driver == PLUGIN.0);
    switch(&mut world, Phase::On);
    world.crash("life-2");
    world.delete_pod("a");
    let calls = world.calls();
    let staged_again = usize::from(matches!(calls[0], Call::NodeStageVolume(_)));
    assert_eq!(names_of(&calls[staged_again..]), DOWN);
    assert!(calls.iter().all(|call| call.volume() == PLUGIN.1), "{calls:?}");
    assert!(world.machine.files.is_empty() && world.machine.dirs.is_empty(), "{:?}", world.machine.dirs);
}

// S4-20, S4-22, S4-40: the node's part of growing is the plugin's too, by its own name for the disk.
#[test]
fn s4_20_the_plugin_grows_the_filesystem_of_what_it_mounted() {
    let mut world = rehearsed();
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
    let [Call::NodeExpandVolume(grow)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(grow.volume_id, PLUGIN.1);
    assert!(grow.staging_target_path.starts_with(RECORD), "{}", grow.staging_target_path);
}

#[test]
fn names_say_who_serves() {
    for (driver, handle) in [PLUGIN, MIGRATED, ("d", "a/b^c")] {
        let name: String = crate::paths::unique_name(driver, handle);
        assert_eq!(crate::paths::split_unique_name(&name), Some((driver, handle)));
    }
    assert_eq!(crate::paths::unique_name("d", "h"), names::unique_volume_name("d", "h"));
}
