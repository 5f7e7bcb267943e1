//! Volumes that are gone and attached all the same (AD-33, AD-49), and what is reported without a volume.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use api::Kind;
use control::Rules;
use serde_json::json;

use super::world::*;
use crate::{AttachDetach, Key};

/// The key of the report that nobody's volume stands behind.
fn report_on(node: &str) -> Key {
    Key::new(unique_name(), node)
}

fn drop_volume(world: &mut World) {
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "v");
    world.sync();
}

fn keys(world: &World) -> Vec<Key> {
    AttachDetach::keys(&world.cache, &Default::default())
}

// AD-33, AD-37: the name in the node's status tells driver and handle; what nobody uses is detached.
#[test]
fn an_attachment_of_a_volume_that_is_gone_is_deleted() {
    let mut world = World::attached();
    drop_volume(&mut world);
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    assert!(world.real_attachment("a").unwrap().metadata.is_deleting() && !world.reported("a"));
    world.release("a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "VolumeGone");
}

// Never while the node uses it, whoever has taken the volume's object away (reliability 26).
#[test]
fn a_volume_that_is_gone_and_in_use_stays_attached() {
    for key in [on("a"), report_on("a")] {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.pod("p", "a");
        world.run(&on("a"));
        world.attach("a");
        world.run(&on("a"));
        world.in_use("a", true);
        drop_volume(&mut world);
        world.forget();
        assert!(world.run(&key).is_empty(), "{key}");
        assert_eq!(world.code(&key), "InUse");
        world.in_use("a", false);
        world.sync();
        assert_eq!(world.run(&key), ["TakeReportBack", "DeleteAttachment"]);
    }
}

// The same with nothing in the node's status: then the node was never told of it.
#[test]
fn an_attachment_that_was_never_reported_is_deleted_as_well() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    drop_volume(&mut world);
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
}

// The name of an attachment made by hand says nothing about the handle: it is left, and the reason told.
#[test]
fn an_attachment_with_a_name_of_its_own_is_left() {
    let mut world = World::new(&["ReadWriteOnce"]);
    for name in ["mine", OLDEST_NAME] {
        let source = json!({ "persistentVolumeName": "v" });
        let spec = json!({ "attacher": DRIVER, "nodeName": "a", "source": source });
        world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": name }, "spec": spec }));
        drop_volume(&mut world);
        assert!(world.run(&on("a")).is_empty());
        assert_eq!(world.code(&on("a")), "VolumeMissing");
        world = World::new(&["ReadWriteOnce"]);
    }
}

// AD-48: what a node was told by an earlier incarnation is taken back, though nothing else is left of the volume.
#[test]
fn a_report_without_volume_and_attachment_is_taken_back() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let reports =
        json!([{ "name": unique_name(), "devicePath": "" }, { "name": "kubernetes.io/nfs/x", "devicePath": "" }]);
    world.patch_status(Kind::Node, "a", json!({ "volumesAttached": reports }));
    drop_volume(&mut world);
    assert_eq!(keys(&world), vec![report_on("a")], "it is found after a restart, and no other plugin's");
    assert_eq!(world.run(&report_on("a")), ["TakeReportBack"]);
    let left = world.real_node("a").unwrap().status.volumes_attached.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(world.code(&report_on("a")), "VolumeGone");
}

// A report whose attachment holds its volume itself, or names an in-tree volume that is there, is somebody's.
#[test]
fn a_report_that_somebody_cares_for_is_left() {
    let sources = [
        json!({ "inlineVolumeSpec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "csi": { "driver": DRIVER, "volumeHandle": HANDLE } } }),
        json!({ "persistentVolumeName": "old" }),
    ];
    for source in sources {
        let mut world = World::new(&["ReadWriteOnce"]);
        drop_volume(&mut world);
        let spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": { "volumeID": "vol-1" } });
        world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "old" }, "spec": spec }));
        let attachment = json!({ "attacher": DRIVER, "nodeName": "a", "source": source });
        let metadata = json!({ "name": attachment_name("a") });
        world.create(Kind::VolumeAttachment, json!({ "metadata": metadata, "spec": attachment }));
        let reports = json!([{ "name": unique_name(), "devicePath": "" }]);
        world.patch_status(Kind::Node, "a", json!({ "volumesAttached": reports }));
        assert!(world.run(&report_on("a")).is_empty());
        assert_eq!(world.code(&report_on("a")), "KnownOtherwise");
        assert!(world.reported("a"));
    }
}

// The volume comes and goes, and each time the keys of its reports are looked at.
#[test]
fn a_volume_that_goes_wakes_its_reports() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.in_use("a", true);
    world.sync();
    let volume = world.object(&api::ObjectRef::cluster(Kind::PersistentVolume, "v"));
    drop_volume(&mut world);
    let change = control::Change { before: volume, after: None };
    let woken = AttachDetach::wakes(&change, &world.cache, &Default::default());
    assert!(woken.contains(&report_on("a")), "{}", format!("{woken:?}"));
}
