use alloc::string::{String, ToString};

use api::{Kind, names};
use control::{Action as _, Decision, Effect, Outcome, Rules};
use csi::{Call, Capabilities};
use serde_json::json;

use super::world::*;
use crate::{Action, Attacher, Key};

#[test]
fn an_attachment_is_made_and_undone() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    assert_eq!(
        world.run(&on("a")),
        ["AddVolumeFinalizer", "AddAttachmentFinalizer", "ControllerPublishVolume", "ConfirmAttached"]
    );
    let attachment = world.real_attachment("a").unwrap();
    assert!(attachment.status.attached);
    assert_eq!(attachment.status.attachment_metadata["at"], "id-a"); // reliability 32
    assert!(world.decide(&on("a")).why().settled);
    match &world.driver.calls[0] {
        Call::ControllerPublishVolume(request) => {
            assert_eq!((request.volume_id.as_str(), request.node_id.as_str()), (HANDLE, "id-a"));
            assert_eq!(request.volume_context["k"], "v");
            assert!(!request.readonly);
        }
        other => panic!("{other:?}"),
    }
    world.unwant("a");
    assert_eq!(world.run(&on("a")), ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]);
    assert!(world.real_attachment("a").is_none() && world.driver.attached.is_empty());
    assert_eq!(world.code(&on("a")), "AttachmentGone");
    assert_eq!(world.driver.calls.len(), 2, "one call each way");
}

// Sidecars 3.5: the volume's finalizer goes when the volume goes and nothing names it.
#[test]
fn the_volume_is_let_go_when_it_is_deleted_and_no_attachment_is_left() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let volume = Key::Volume("v".into());
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    world.run(&on("a"));
    world.sync();
    assert_eq!(world.code(&volume), "VolumeStays");
    world.want("b");
    world.delete(Kind::PersistentVolume, "v");
    assert!(world.run(&volume).is_empty());
    assert_eq!(world.code(&volume), "StillAttached");
    assert_eq!(world.run(&on("b")), ["ReportAttachError"]);
    assert_eq!(world.code(&on("b")), "VolumeLeaving");
    world.unwant("b");
    assert_eq!(world.run(&volume), ["RemoveVolumeFinalizer"]);
    assert!(!world.real_volume().is_some_and(|volume| volume.metadata.has_finalizer(&finalizer())));
}

// The provisioner in the same process lets go of a volume for both; ours is left to us if its own is not there.
#[test]
fn beside_a_provisioner_a_volume_is_let_go_together() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.provisions = true);
    let volume = Key::Volume("v".into());
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    world.run(&on("a"));
    let held = json!({ "metadata": { "finalizers": [names::PROVISIONER_FINALIZER, finalizer()] } });
    world.patch(Kind::PersistentVolume, "v", held);
    world.delete(Kind::PersistentVolume, "v");
    assert!(world.run(&volume).is_empty());
    assert_eq!(world.code(&volume), "ProvisionerHolds");
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": [finalizer()] } }));
    assert_eq!(world.run(&volume), ["RemoveVolumeFinalizer"]);
}

// Sidecars 3.6: a driver that does not publish gets a confirmation and nothing else.
#[test]
fn a_driver_that_does_not_publish_gets_no_call() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.capabilities = Capabilities::NONE);
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ConfirmAttached"]);
    assert!(world.real_attachment("a").unwrap().metadata.finalizers.is_empty());
    world.want("b");
    assert!(world.run(&on("b")).is_empty());
    assert_eq!(world.code(&on("b")), "AttachedElsewhere");
    world.unwant("a");
    assert_eq!(world.run(&on("b")), ["ConfirmAttached"]);
    assert!(world.driver.calls.is_empty());
}

// Reliability 37: the node is gone with its registration; the recorded id still names it.
#[test]
fn an_attachment_to_a_node_that_is_gone_is_undone_with_the_same_id() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.delete(Kind::CSINode, "a");
    world.delete(Kind::Node, "a");
    world.unwant("a");
    world.run(&on("a"));
    assert!(world.real_attachment("a").is_none() && world.driver.attached.is_empty());
}

#[test]
fn the_id_of_a_node_is_found_in_its_annotation_too() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.delete(Kind::CSINode, "a");
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    assert_eq!(world.code(&on("a")), "NodeIdUnknown");
    let mut ids = serde_json::Map::new();
    ids.insert(api::names::NODE_ID.into(), json!(json!({ DRIVER: "old-a" }).to_string()));
    world.patch(Kind::Node, "a", json!({ "metadata": { "annotations": ids } }));
    world.run(&on("a"));
    assert!(world.driver.attached.contains("old-a"));
}

#[test]
fn a_missing_volume_is_waited_for_and_told() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::PersistentVolume, "v");
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    assert_eq!(world.code(&on("a")), "VolumeMissing");
    let marked = json!({ "metadata": { "finalizers": [finalizer()] } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), marked);
    world.unwant("a");
    assert_eq!(world.run(&on("a")), ["ReportDetachError"], "undoing needs the handle");
    assert_eq!(world.code(&on("a")), "DetachStuck");
}

// Sidecars 1.5: a set of access modes that makes no sense is told once, and nothing is called.
#[test]
fn what_cannot_be_attached_is_told_once() {
    let mut world = World::new(&["ReadWriteOnce", "ReadOnlyMany"]);
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    let error = world.real_attachment("a").unwrap().status.attach_error.unwrap();
    assert!(error.message.contains("cannot be combined"), "{}", error.message);
    assert!(world.driver.calls.is_empty());
}

#[test]
fn attachments_of_other_drivers_are_left_alone() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.sync();
    world.update_local(|local| local.driver = "other".into());
    assert_eq!(world.code(&on("a")), "NotOurs");
    assert!(Attacher::keys(&world.cache, world.local()).is_empty());
}

#[test]
fn every_object_a_decision_reads_wakes_it() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    world.want("b");
    world.sync();
    let mut both = alloc::vec![on("a"), on("b"), Key::Volume("v".into())];
    both.sort();
    let change = |kind, name: &str| {
        let object = api::Object::from_json(kind, world.json(kind, name)).unwrap();
        control::Change { before: Some(object), after: None }
    };
    let wakes = |kind, name: &str| Attacher::wakes(&change(kind, name), &world.cache, world.local());
    assert_eq!(wakes(Kind::VolumeAttachment, &attachment_name("a")), both);
    assert_eq!(wakes(Kind::PersistentVolume, "v"), both);
    assert_eq!(wakes(Kind::CSINode, "a"), [on("a")]);
    assert_eq!(wakes(Kind::Node, "b"), [on("b")]);
    let mut keys = Attacher::keys(&world.cache, world.local());
    keys.sort();
    assert_eq!(keys, both);
}

#[test]
fn an_unfilled_cache_decides_nothing() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    for missing in Attacher::watches() {
        world.cache = control::Cache::default();
        Attacher::watches().iter().filter(|kind| *kind != missing).for_each(|kind| world.sync_kind(*kind));
        assert!(matches!(world.decide(&on("a")), Decision::Rest(_)));
        assert_eq!(world.code(&on("a")), "CacheNotSynced", "{missing} was not awaited");
    }
}

// What a driver tells, or was told, may hold secrets and is never printed.
#[test]
fn contexts_are_not_printed() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "labels": { "x": "y" } } }));
    world.want("a");
    world.sync();
    let mut printed = String::new();
    while let Decision::Do(act, _) = world.decide(&on("a")) {
        printed += &alloc::format!("{act:?} {}", world.remembered());
        if let Action::Publish { .. } = act {
            assert!(matches!(act.effect(), Effect::Call { .. }));
        }
        let outcome = world.land(&act);
        assert!(matches!(outcome, Outcome::Done(_)));
        world.hear(&on("a"), &act, &outcome);
    }
    assert!(printed.contains("Publish") && !printed.contains("\"k\""), "{printed}");
}
