//! The conformance list of the attacher, item by item (sidecars 8.1).

use alloc::format;
use alloc::vec::Vec;

use api::{Kind, names};
use control::{Action as _, Decision, Outcome, Refusal, Rules};
use csi::v1::volume_capability::AccessType;
use csi::{Call, Capabilities, Code, ControllerRpc, v1};
use serde_json::json;

use super::world::*;
use crate::{Action, Attacher, Key};

fn publish_request(world: &World) -> &v1::ControllerPublishVolumeRequest {
    let mut requests = world.driver.calls.iter().rev().filter_map(|call| match call {
        Call::ControllerPublishVolume(request) => Some(request),
        _other => None,
    });
    requests.next().unwrap()
}

fn attached(world: &World, node: &str) -> bool {
    world.real_attachment(node).is_some_and(|attachment| attachment.status.attached)
}

fn fs_type(world: &World) -> &str {
    match &publish_request(world).volume_capability.as_ref().unwrap().access_type {
        Some(AccessType::Mount(mount)) => &mount.fs_type,
        other => panic!("{}", other.is_some()),
    }
}

// A1 and S0-35.
#[test]
fn a1_trivial_mode_confirms_without_finalizers_and_calls() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.capabilities = Capabilities::NONE);
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ConfirmAttached"]);
    let attachment = world.real_attachment("a").unwrap();
    assert!(attachment.metadata.finalizers.is_empty() && attachment.status.attachment_metadata.is_empty());
    assert!(world.driver.calls.is_empty() && !world.real_volume().unwrap().metadata.has_finalizer(&finalizer()));
}

// A2, S0-37 to S0-39.
#[test]
fn a2_volume_then_attachment_then_call_then_status() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    assert_eq!(
        world.run(&on("a")),
        ["AddVolumeFinalizer", "AddAttachmentFinalizer", "ControllerPublishVolume", "ConfirmAttached"]
    );
    let attachment = world.real_attachment("a").unwrap();
    assert!(attachment.metadata.has_finalizer(&finalizer()));
    assert_eq!(attachment.metadata.annotation(names::ATTACHMENT_NODE_ID), Some("id-a"));
    assert!(world.real_volume().unwrap().metadata.has_finalizer(&finalizer()));
}

// A3.
#[test]
fn a3_a_volume_that_is_being_deleted_is_refused_and_told() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": ["keep/it"] } }));
    world.delete(Kind::PersistentVolume, "v");
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    let error = world.real_attachment("a").unwrap().status.attach_error.unwrap();
    assert!(error.message.contains("being deleted"), "{}", error.message);
    assert!(world.driver.calls.is_empty());
}

// A4.
#[test]
fn a4_readonly_is_passed_only_to_drivers_that_know_it() {
    for knows in [false, true] {
        let mut world = World::with(&["ReadWriteOnce"], json!({ "readOnly": true }));
        world.update_local(|local| local.capabilities.extend(knows.then_some(ControllerRpc::PublishReadonly)));
        world.want("a");
        world.run(&on("a"));
        assert_eq!(publish_request(&world).readonly, knows);
    }
}

// A5.
#[test]
fn a5_the_default_fstype_fills_in_where_the_volume_names_none() {
    for (named, expected) in [("", "xfs"), ("ext4", "ext4")] {
        let mut world = World::with(&["ReadWriteOnce"], json!({ "fsType": named }));
        world.update_local(|local| local.default_fs_type = "xfs".into());
        world.want("a");
        world.run(&on("a"));
        assert_eq!(fs_type(&world), expected);
    }
}

// Sidecars 1.5: the driver's word about writers.
#[test]
fn the_access_mode_follows_what_the_driver_can_tell_apart() {
    use v1::volume_capability::access_mode::Mode;
    for (apart, expected) in [(false, Mode::SingleNodeWriter), (true, Mode::SingleNodeMultiWriter)] {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.update_local(|local| local.capabilities.extend(apart.then_some(ControllerRpc::SingleNodeMultiWriter)));
        world.want("a");
        world.run(&on("a"));
        let capability = publish_request(&world).volume_capability.as_ref().unwrap();
        assert_eq!(capability.access_mode.as_ref().unwrap().mode, expected as i32);
    }
}

// A6: neither CSINode nor the seed's annotation names the node; it is told, and goes on when the driver registers.
#[test]
fn a6_attaching_without_a_node_id_fails_until_it_comes() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.patch(Kind::CSINode, "a", json!({ "spec": { "drivers": [] } }));
    world.want("a");
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    assert!(world.driver.calls.is_empty() && !world.real_attachment("a").unwrap().metadata.has_finalizer(&finalizer()));
    let driver = json!({ "name": DRIVER, "nodeID": "id-a", "topologyKeys": null });
    world.patch(Kind::CSINode, "a", json!({ "spec": { "drivers": [driver] } }));
    world.run(&on("a"));
    let status = world.real_attachment("a").unwrap().status;
    assert!(status.attached && status.attach_error.is_none());
}

// A7, for a CSINode that is gone and one without the driver.
#[test]
fn a7_detaching_uses_the_recorded_id() {
    for gone in [true, false] {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.want("a");
        world.run(&on("a"));
        match gone {
            true => world.delete(Kind::CSINode, "a"),
            false => world.patch(Kind::CSINode, "a", json!({ "spec": { "drivers": [] } })),
        }
        world.unwant("a");
        world.run(&on("a"));
        assert!(world.driver.attached.is_empty() && world.real_attachment("a").is_none());
    }
}

// A8.
#[test]
fn a8_detaching_without_any_id_is_told_and_nothing_is_called() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), json!({ "metadata": { "finalizers": [finalizer()] } }));
    world.delete(Kind::CSINode, "a");
    world.unwant("a");
    assert_eq!(world.run(&on("a")), ["ReportDetachError"]);
    assert!(world.driver.calls.is_empty() && world.real_attachment("a").is_some());
    assert!(world.real_attachment("a").unwrap().status.detach_error.is_some());
}

// A9.
#[test]
fn a9_an_attachment_without_our_finalizer_is_done() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let others = json!({ "metadata": { "finalizers": ["somebody/else"] } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), others);
    world.unwant("a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "NothingToUndo");
}

// A10: one write where nobody else holds the attachment (Go: two), and the finalizer first where somebody does.
#[test]
fn a10_the_finalizer_goes_before_the_status() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    let both = json!({ "metadata": { "finalizers": [finalizer(), "somebody/else"] } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), both);
    world.unwant("a");
    let undone = ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer", "ConfirmDetached"];
    assert_eq!(world.run(&on("a")), undone);
    let status = world.real_attachment("a").unwrap().status;
    assert!(!status.attached && status.attachment_metadata.is_empty());
}

// A11.
#[test]
fn a11_an_attachment_that_is_gone_meanwhile_is_no_failure() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.run(&on("a"));
    let both = json!({ "metadata": { "finalizers": [finalizer(), "somebody/else"] } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), both);
    world.unwant("a");
    world.sync();
    while world.step(&on("a")) != Some("RemoveAttachmentFinalizer") {
        world.sync();
    }
    let none = json!({ "metadata": { "finalizers": null } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), none);
    let Decision::Do(act @ Action::Detached(_), _) = world.decide(&on("a")) else {
        panic!("{:?}", world.decide(&on("a")))
    };
    let outcome = world.land(&act);
    assert_eq!(outcome, Outcome::Refused(Refusal::NotFound));
    world.hear(&on("a"), &act, &outcome);
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "AttachmentGone");
}

// A12: our own report, or anybody's change, does not end the pause before the next attempt.
#[test]
fn a12_a_change_of_the_error_alone_does_not_hasten_the_next_attempt() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.sync();
    while world.step(&on("a")) != Some("AddAttachmentFinalizer") {
        world.sync();
    }
    let Decision::Do(publish, _) = world.decide(&on("a")) else { panic!() };
    world.hear(&on("a"), &publish, &Outcome::Refused(Refusal::Driver(Code::Internal, "broken".into())));
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    let error = json!({ "attachError": { "message": "somebody else's" } });
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), error);
    world.sync();
    assert_eq!(world.code(&on("a")), "BackOff");
    assert!(matches!(world.decide(&on("a")), Decision::Wait(..)));
}

// A13, S0-40, S0-45 and S0-52.
#[test]
fn a13_the_code_is_told_when_attaching_only() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let refusal = Outcome::Refused(Refusal::Driver(Code::ResourceExhausted, "full".into()));
    let fail = |world: &mut World, call: &str| {
        world.sync();
        loop {
            let Decision::Do(act, _) = world.decide(&on("a")) else { panic!("{:?}", world.decide(&on("a"))) };
            if act.name() == call {
                return world.hear(&on("a"), &act, &refusal);
            }
            world.step(&on("a"));
            world.sync();
        }
    };
    fail(&mut world, "ControllerPublishVolume");
    world.run(&on("a"));
    let status = world.real_attachment("a").unwrap().status;
    let error = status.attach_error.unwrap();
    assert_eq!((error.error_code, status.attached), (Some(8), false));
    assert!(error.message.contains("full") && error.time.is_some());
    world.pass(100_000);
    world.run(&on("a"));
    world.unwant("a");
    fail(&mut world, "ControllerUnpublishVolume");
    world.run(&on("a"));
    let status = world.real_attachment("a").unwrap().status;
    assert_eq!((status.detach_error.unwrap().error_code, status.attached), (None, true));
}

// API-5: an error that is longer than the API takes is told as far as it goes, and told once.
#[test]
fn api_5_a_long_error_is_shortened() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    let refusal = Outcome::Refused(Refusal::Driver(Code::Internal, "é".repeat(2_000)));
    world.sync();
    loop {
        let Decision::Do(act, _) = world.decide(&on("a")) else { panic!("{:?}", world.decide(&on("a"))) };
        if act.name() == "ControllerPublishVolume" {
            world.hear(&on("a"), &act, &refusal);
            break;
        }
        world.step(&on("a"));
        world.sync();
    }
    world.run(&on("a"));
    let message = world.real_attachment("a").unwrap().status.attach_error.unwrap().message;
    assert!(message.len() <= 1024 && message.len() > 1000 && message.ends_with("é…"), "{message}");
    assert!(matches!(world.decide(&on("a")), Decision::Wait(..)), "{:?}", world.decide(&on("a")));
}

fn listing() -> Key {
    Key::Listing(DRIVER.into())
}

fn listing_world() -> World {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.list_every_millis = 60_000);
    world.want("a");
    world.run(&on("a"));
    world
}

// A14, attaching: what the driver lost is published again, over several pages, and the status is not written needlessly.
#[test]
fn a14_what_the_driver_does_not_list_is_published_again() {
    let mut world = listing_world();
    assert_eq!(world.run(&listing()), ["ListVolumes", "ListVolumes"], "two pages");
    assert!(world.run(&on("a")).is_empty(), "the list agrees");
    world.driver.attached.clear();
    world.pass(60_000);
    world.run(&listing());
    let Decision::Wait(next, why) = world.decide(&listing()) else { panic!() };
    assert_eq!((next, why.settled), (world.now.after_millis(60_000), true));
    assert!(attached(&world, "a"), "the status is not touched");
    assert_eq!(world.run(&on("a")), ["ControllerPublishVolume"]);
    assert!(world.driver.attached.contains("id-a"));
    assert!(world.run(&on("a")).is_empty());
}

// A14: only those that disagree are woken, and never other drivers'.
#[test]
fn a14_a_list_wakes_the_attachments_it_does_not_agree_with() {
    let mut world = listing_world();
    world.driver.attached.clear();
    let other = json!({ "attacher": "other", "nodeName": "b", "source": { "persistentVolumeName": "v" } });
    world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": "others" }, "spec": other }));
    world.patch_status(Kind::VolumeAttachment, "others", json!({ "attached": true }));
    world.sync();
    let queued: Vec<Key> = world.engine.queued().cloned().collect();
    queued.iter().for_each(|key| world.engine.rest(key));
    while world.step(&listing()).is_some() {}
    let woken: Vec<&Key> = world.engine.queued().filter(|key| **key != listing()).collect();
    assert_eq!(woken, [&on("a")]);
}

// A14, detaching: an attachment on its way out that we do not hold, but the driver has.
#[test]
fn a14_what_the_driver_still_lists_is_unpublished() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.list_every_millis = 60_000);
    world.want("a");
    let others = json!({ "metadata": { "finalizers": ["somebody/else"] } });
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), others);
    world.unwant("a");
    assert!(world.run(&on("a")).is_empty());
    world.driver.attached.insert("id-a".into());
    world.run(&listing());
    assert_eq!(world.run(&on("a")), ["RecheckAttachment", "ControllerUnpublishVolume"]);
    assert!(world.driver.attached.is_empty());
}

// A14: a list that fails is begun anew, and says nothing until it is whole.
#[test]
fn a14_half_a_list_says_nothing() {
    let mut world = listing_world();
    world.driver.attached.clear();
    assert_eq!(world.step(&listing()), Some("ListVolumes"));
    assert!(world.run(&on("a")).is_empty());
    let Decision::Do(second, _) = world.decide(&listing()) else { panic!() };
    world.hear(&listing(), &second, &Outcome::Unknown("lost".into()));
    assert!(world.run(&on("a")).is_empty());
    world.pass(100_000);
    let Decision::Do(Action::List { token, .. }, _) = world.decide(&listing()) else { panic!() };
    assert_eq!(token, "");
}

// A14: a volume published while the list is being made is not published again.
#[test]
fn a14_calls_made_meanwhile_count() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.update_local(|local| local.list_every_millis = 60_000);
    world.sync();
    assert_eq!(world.step(&listing()), Some("ListVolumes"));
    world.want("a");
    world.run(&on("a"));
    let calls = world.driver.calls.len();
    world.driver.attached.clear(); // The page was made before.
    world.step(&listing());
    world.driver.attached.insert("id-a".into());
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.driver.calls.len(), calls + 1);
}

// A14: a driver that cannot list is not asked.
#[test]
fn a14_no_list_without_the_capability() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.sync();
    assert!(!Attacher::keys(&world.cache, world.local()).contains(&listing()));
    assert!(matches!(world.decide(&listing()), Decision::Rest(_)));
}

// A15 and S0-38.
#[test]
fn a15_the_volume_keeps_its_finalizer_until_it_goes_and_nothing_names_it() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let volume = Key::Volume("v".into());
    world.want("a");
    world.run(&on("a"));
    world.unwant("a");
    world.run(&on("a"));
    assert!(world.run(&volume).is_empty(), "it is not being deleted");
    world.want("b");
    world.delete(Kind::PersistentVolume, "v");
    assert!(world.run(&volume).is_empty(), "an attachment names it");
    world.unwant("b");
    assert_eq!(world.run(&volume), ["RemoveVolumeFinalizer"]);
}

// A16.
#[test]
fn a16_a_conflict_is_looked_at_again() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.want("a");
    world.sync();
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "labels": { "x": "y" } } }));
    assert_eq!(world.step(&on("a")), Some("AddVolumeFinalizer"));
    assert!(!world.real_volume().unwrap().metadata.has_finalizer(&finalizer()), "somebody else was faster");
    world.pass(10);
    assert_eq!(world.run(&on("a")).len(), 4);
    assert_eq!(world.real_volume().unwrap().metadata.labels["x"], "y");
}

// S0-83 to S0-85 and S0-88: for both calls, read each time, never printed; a missing one is told (sidecars 9.33).
#[test]
fn secrets_are_read_for_every_call_and_never_printed() {
    let reference = json!({ "name": "s", "namespace": "n" });
    let mut world = World::with(&["ReadWriteOnce"], json!({ "controllerPublishSecretRef": reference }));
    world.want("a");
    let done = world.run(&on("a"));
    assert_eq!(done, ["AddVolumeFinalizer", "AddAttachmentFinalizer", "ReadSecret", "ReportAttachError"]);
    let error = world.real_attachment("a").unwrap().status.attach_error.unwrap();
    assert!(error.message.contains("secret n/s does not exist"), "{}", error.message);
    let data = json!({ "user": "dQ==", "password": "Y2FuYXJ5" });
    world.create(Kind::Secret, json!({ "metadata": { "name": "s", "namespace": "n" }, "data": data }));
    world.pass(100_000);
    world.step(&on("a"));
    assert!(!format!("{} {:?}", world.remembered(), world.decide(&on("a"))).contains("canary"));
    assert_eq!(world.run(&on("a")), ["ControllerPublishVolume", "ConfirmAttached"]);
    assert_eq!(publish_request(&world).secrets["password"], "canary");
    assert_eq!(publish_request(&world).secrets["user"], "u");
    world.unwant("a");
    let undone = ["RecheckAttachment", "ReadSecret", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"];
    assert_eq!(world.run(&on("a")), undone);
    let Some(Call::ControllerUnpublishVolume(request)) = world.driver.calls.last() else { panic!() };
    assert_eq!(request.secrets["password"], "canary");
    assert!(!world.remembered().contains("canary"));
}

// S0-48: the volume in the attachment itself; there is no object to put a finalizer on.
#[test]
fn an_inline_volume_is_attached_without_an_object() {
    let mut world = World::new(&["ReadWriteOnce"]);
    let inline = |node: &str| {
        let csi = json!({ "driver": DRIVER, "volumeHandle": "inline", "volumeAttributes": { "in": "line" } });
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "csi": csi });
        let spec = json!({ "attacher": DRIVER, "nodeName": node, "source": { "inlineVolumeSpec": spec } });
        json!({ "metadata": { "name": format!("inline-{node}") }, "spec": spec })
    };
    world.create(Kind::VolumeAttachment, inline("a"));
    let key = Key::Attachment("inline-a".into());
    assert_eq!(world.run(&key), ["AddAttachmentFinalizer", "ControllerPublishVolume", "ConfirmAttached"]);
    let request = publish_request(&world);
    assert_eq!((request.volume_id.as_str(), request.volume_context["in"].as_str()), ("inline", "line"));
    // Reliability 24 holds for it as well.
    world.create(Kind::VolumeAttachment, inline("b"));
    let other = Key::Attachment("inline-b".into());
    assert!(world.run(&other).is_empty());
    assert_eq!(world.code(&other), "AttachedElsewhere");
    world.delete(Kind::VolumeAttachment, "inline-a");
    assert_eq!(world.run(&key), ["RecheckAttachment", "ControllerUnpublishVolume", "RemoveAttachmentFinalizer"]);
    assert_eq!(world.run(&other).len(), 3);
}

// Sidecars 7.1: the writes, counted. Go: three for the first attachment, two for a later one, two for detaching.
#[test]
fn the_writes_are_counted() {
    let mut world = World::new(&["ReadWriteMany"]);
    let is_write =
        |name: &&str| !["ControllerPublishVolume", "ControllerUnpublishVolume", "RecheckAttachment"].contains(name);
    let count = |done: Vec<&'static str>| done.iter().filter(|name| is_write(name)).count();
    world.want("a");
    assert_eq!(count(world.run(&on("a"))), 3);
    world.want("b");
    assert_eq!(count(world.run(&on("b"))), 2);
    world.unwant("a");
    assert_eq!(count(world.run(&on("a"))), 1);
}
