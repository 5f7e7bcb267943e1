use alloc::vec::Vec;

use api::{Kind, Object};
use control::{Change, Rules};
use serde_json::json;

use super::world::*;
use crate::{AttachDetach, Key};

fn object(world: &World, kind: Kind, name: &str) -> Object {
    Object::from_json(kind, world.json(kind, name)).unwrap()
}

fn woken(world: &World, before: Option<Object>, after: Option<Object>) -> Vec<Key> {
    AttachDetach::wakes(&Change { before, after }, &world.cache, &Default::default())
}

// AD-7: and a pod without a node wakes nobody, and wants nothing.
#[test]
fn a_pod_wakes_its_volume_on_its_node_coming_and_going() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    let pod = object(&world, Kind::Pod, "p");
    assert_eq!(woken(&world, None, Some(pod.clone())), [on("a")]);
    world.delete(Kind::Pod, "p");
    world.sync();
    assert_eq!(woken(&world, Some(pod), None), [on("a")]);
    world.make("pod q claim=c");
    world.sync();
    assert!(woken(&world, None, Some(object(&world, Kind::Pod, "q"))).is_empty());
    assert!(AttachDetach::keys(&world.cache, &crate::Local::default()).is_empty());
}

// AD-11, AD-13: a claim that is bound later among them, so that nothing has to be looked at every three minutes.
#[test]
fn every_object_a_decision_reads_wakes_it() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.pod("q", "b");
    world.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": true } }));
    world.run(&on("a"));
    let both = [on("a"), on("b")];
    for (kind, name) in [
        (Kind::PersistentVolumeClaim, "c"),
        (Kind::PersistentVolume, "v"),
        (Kind::CSIDriver, DRIVER),
        (Kind::VolumeAttachment, attachment_name("a").as_str()),
        (Kind::Pod, "p"), // The other node waits for this one.
        (Kind::Node, "a"),
    ] {
        let object = object(&world, kind, name);
        assert_eq!(woken(&world, None, Some(object.clone())), both, "new {kind}");
        assert_eq!(woken(&world, Some(object), None), both, "gone {kind}");
    }
    assert_eq!(AttachDetach::keys(&world.cache, &Default::default()), both);
}

// AD-5.
#[test]
fn a_heartbeat_wakes_nobody_but_a_report_does() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.sync();
    let before = object(&world, Kind::Node, "b");
    world.patch_status(Kind::Node, "b", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    world.sync();
    let beat = object(&world, Kind::Node, "b");
    assert!(woken(&world, Some(before), Some(beat.clone())).is_empty());
    world.in_use("b", true);
    world.sync();
    let used = object(&world, Kind::Node, "b");
    assert_eq!(woken(&world, Some(beat), Some(used)), [on("a"), on("b")]);
}

// `explain` tells of a volume on a node only where it was asked about both.
#[test]
fn a_volume_on_a_node_is_about_both_and_their_attachment() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let about = |world: &World, node: &str| AttachDetach::about(&on(node), &world.cache, &Default::default());
    let kinds = |about: Vec<api::ObjectRef>| about.iter().map(|one| one.kind).collect::<Vec<_>>();
    world.pod("p", "a");
    world.run_forgetful(&on("a"));
    let both = [Kind::PersistentVolume, Kind::Node];
    assert_eq!(kinds(about(&world, "a")), [both[0], both[1], Kind::VolumeAttachment]);
    assert_eq!(kinds(about(&world, "b")), both);
}
