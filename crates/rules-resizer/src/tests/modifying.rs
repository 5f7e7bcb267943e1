use alloc::format;
use alloc::vec::Vec;

use api::{Kind, names};
use control::{Decision, Outcome};
use csi::{Call, Code};
use serde_json::json;

use super::world::*;
use crate::Expansion;

/// A claim that asks for class `gold`, which is there.
fn asking() -> World {
    let mut world = World::new(Expansion::Controller);
    world.make_class("gold", DRIVER);
    world.ask_class("gold");
    world
}

fn modify_status(world: &World) -> (alloc::string::String, alloc::string::String) {
    let status = world.claim().status.modify_volume_status.unwrap_or_default();
    (status.status, status.target_volume_attributes_class_name)
}

fn modified(world: &World) -> Vec<alloc::string::String> {
    let classes = world.backend.calls.iter().map(|call| match call {
        Call::ControllerModifyVolume(request) => request.mutable_parameters["iops"].clone(),
        other => panic!("{other:?}"),
    });
    classes.collect()
}

#[test]
fn the_straight_path() {
    let mut world = asking();
    let path = ["BeginModify", "ControllerModifyVolume", "SetVolumeAttributesClass", "FinishModify"];
    assert_eq!(world.run(), path);
    let status = world.claim().status;
    assert_eq!(status.current_volume_attributes_class_name.as_deref(), Some("gold"));
    assert!(status.modify_volume_status.is_none() && status.conditions.is_empty());
    assert_eq!(world.volume().spec.volume_attributes_class_name.as_deref(), Some("gold"));
    assert_eq!(world.writes, 3);
    assert!(world.look().why().settled);
}

// R18: what the driver calls impossible is left alone for a while, unless another class is asked for.
#[test]
fn r18_an_infeasible_class_is_left_alone() {
    let mut world = asking();
    world.make_class("silver", DRIVER);
    world.backend.answers.push_back(refused(Code::InvalidArgument));
    assert_eq!(world.run(), ["BeginModify", "ControllerModifyVolume", "ReportModifyError"]);
    assert_eq!(modify_status(&world), ("Infeasible".into(), "gold".into()));
    let mut other = world.clone();
    other.ask_class("silver");
    assert_eq!(other.run().len(), 4, "another class is tried at once");
    world.pass(200_000);
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "ModifyInfeasible");
    world.pass(200_000);
    assert_eq!(world.run()[..2], ["BeginModify", "ControllerModifyVolume"]);
}

// R19: nothing asked for and nothing under way, or what is asked for is there.
#[test]
fn r19_nothing_is_done_when_the_claim_has_what_it_asks_for() {
    let mut world = World::new(Expansion::Controller);
    assert!(world.run().is_empty() && world.look().why().settled);
    let mut world = asking();
    world.run();
    world.forget();
    assert!(world.run().is_empty() && world.look().why().settled);
}

// R20: the wish is taken back while nothing is under way.
#[test]
fn r20_a_wish_that_is_taken_back_is_rolled_back() {
    for status in ["Infeasible", "Pending"] {
        let mut world = asking();
        let conditions = json!([{ "type": names::MODIFYING_VOLUME, "status": "True" }]);
        let modify = json!({ "status": status, "targetVolumeAttributesClassName": "gold" });
        world.status(json!({ "modifyVolumeStatus": modify, "conditions": conditions }));
        world.ask_class("");
        assert_eq!(world.run(), ["CancelModify"], "{status}");
        assert_eq!(modify_status(&world), (status.into(), "gold".into()), "what was under way stays on record");
        assert!(world.conditions().is_empty() && world.backend.calls.is_empty());
        assert!(world.look().why().settled);
    }
}

// R20: while it is under way it goes on, because it may have happened.
#[test]
fn r20_what_is_under_way_goes_on_when_the_wish_is_taken_back() {
    let mut world = asking();
    world.backend.answers.push_back(Outcome::Unknown("lost".into()));
    world.run();
    world.ask_class("");
    world.pass(100_000);
    world.run();
    assert_eq!(modified(&world), ["gold", "gold"]);
    assert_eq!(world.claim().status.current_volume_attributes_class_name.as_deref(), Some("gold"));
}

// R21 and reliability 61: after a restart what is under way is uncertain, and repeated before anything else.
#[test]
fn r21_a_new_life_repeats_what_is_under_way_first() {
    let mut world = asking();
    world.make_class("silver", DRIVER);
    world.backend.answers.push_back(refused(Code::Internal));
    world.run();
    world.ask_class("silver");
    world.forget();
    world.run();
    assert_eq!(modified(&world), ["gold", "gold", "silver"]);
    assert_eq!(world.claim().status.current_volume_attributes_class_name.as_deref(), Some("silver"));
}

// R21: an unknown answer is repeated, whatever is asked for by then.
#[test]
fn r21_an_uncertain_class_is_repeated_first() {
    let mut world = asking();
    world.make_class("silver", DRIVER);
    world.backend.answers.extend([Outcome::Unknown("lost".into()), refused(Code::Internal)]);
    world.run();
    world.ask_class("silver");
    world.pass(100_000);
    world.run();
    world.pass(100_000);
    world.run();
    assert_eq!(modified(&world), ["gold", "gold", "silver"]);
}

// R21: the class under way is gone; nothing else may be tried before it is known what became of it.
#[test]
fn r21_a_missing_class_under_way_is_waited_for() {
    let mut world = asking();
    world.make_class("silver", DRIVER);
    world.backend.answers.push_back(Outcome::Unknown("lost".into()));
    world.run();
    world.patch(Kind::VolumeAttributesClass, "gold", json!({ "metadata": { "finalizers": null } }));
    world.delete(Kind::VolumeAttributesClass, "gold");
    world.ask_class("silver");
    world.pass(100_000);
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "AttributesClassMissing");
}

// R22: a class that is not there yet; and sidecars 9.46 the other way round: it is noticed when it comes.
#[test]
fn r22_a_missing_class_is_pending_until_it_comes() {
    let mut world = World::new(Expansion::Controller);
    world.ask_class("gold");
    assert_eq!(world.run(), ["PendModify"]);
    assert_eq!(modify_status(&world), ("Pending".into(), "".into()));
    assert!(world.conditions().is_empty());
    assert!(matches!(world.look(), Decision::Rest(_)), "it is not asked again and again");
    assert_eq!(world.code(), "AttributesClassMissing");
    world.make_class("gold", DRIVER);
    assert_eq!(world.run().len(), 4);
}

// R22: the target of an earlier change stays on record.
#[test]
fn r22_a_missing_class_keeps_the_earlier_target() {
    let mut world = asking();
    world.backend.answers.push_back(refused(Code::InvalidArgument));
    world.run();
    world.ask_class("silver");
    world.pass(1_000);
    assert_eq!(world.run(), ["PendModify"]);
    assert_eq!(modify_status(&world), ("Pending".into(), "gold".into()));
}

// R22, as Kubernetes' own storage suite expects it: whose class it is only the driver can say. Its refusal is on the
// claim, and a claim that then names a class the driver knows goes on.
#[test]
fn r22_a_class_of_another_driver_is_refused_by_the_driver() {
    let mut world = World::new(Expansion::Controller);
    world.make_class("gold", "other");
    world.make_class("silver", DRIVER);
    world.ask_class("gold");
    world.backend.answers.push_back(refused(Code::InvalidArgument));
    world.run();
    assert_eq!(modify_status(&world), ("Infeasible".into(), "gold".into()));
    assert_eq!(world.conditions(), ["ModifyingVolume", "ModifyVolumeError"]);
    world.ask_class("silver");
    world.pass(1_000);
    world.run();
    assert_eq!(modified(&world), ["gold", "silver"]);
}

// R23: parameters, extra metadata, and the secret by its own annotation or that of growing.
#[test]
fn r23_what_the_driver_is_told() {
    let mut world = World::with_secret(Expansion::Controller);
    world.update_local(|local| local.extra_metadata = true);
    for (name, value) in [("s", "Z3Jvdw=="), ("m", "bW9kaWZ5")] {
        let body = json!({ "metadata": { "name": name }, "data": { "k": value } });
        world.create(Kind::Secret, body);
    }
    world.make_class("gold", DRIVER);
    world.make_class("silver", DRIVER);
    world.ask_class("gold");
    world.run();
    world.annotate_volume(names::MODIFY_SECRET_NAME, "m");
    world.annotate_volume(names::MODIFY_SECRET_NAMESPACE, "n");
    world.ask_class("silver");
    world.run();
    for (call, (class, secret)) in world.backend.calls.iter().zip([("gold", "grow"), ("silver", "modify")]) {
        let Call::ControllerModifyVolume(request) = call else { panic!("{call:?}") };
        assert_eq!((request.volume_id.as_str(), request.secrets["k"].as_str()), ("h", secret));
        let parameters = [
            ("iops", class),
            ("csi.storage.k8s.io/pvc/name", "c"),
            ("csi.storage.k8s.io/pvc/namespace", "n"),
            ("csi.storage.k8s.io/pv/name", "v"),
        ];
        assert_eq!(request.mutable_parameters, parameters.map(|(k, v)| (k.into(), v.into())).into());
    }
}

// R24: the volume first, then the claim; a crash in between repeats the call and goes on.
#[test]
fn r24_the_volume_is_written_before_the_claim() {
    let mut world = asking();
    world.sync();
    while world.step() != Some("SetVolumeAttributesClass") {
        world.sync();
    }
    assert_eq!(world.claim().status.current_volume_attributes_class_name, None);
    world.forget();
    assert_eq!(world.run(), ["AdoptResize", "ControllerModifyVolume", "FinishModify"]);
}

// R25 and sidecars 7.2: every code, as what it is told.
#[test]
fn r25_every_code_is_told_as_what_it_is() {
    for code in Code::ALL.into_iter().filter(|code| *code != Code::Ok) {
        let mut world = asking();
        world.make_class("silver", DRIVER);
        let status = csi::Status::from_driver(code, "no");
        let answer = match csi::classify(csi::Method::ControllerModifyVolume, &status) {
            csi::Finality::Done => panic!("{code:?}"),
            csi::Finality::Refused => refused(code),
            csi::Finality::Unknown => Outcome::Unknown(format!("{status}")),
        };
        world.backend.answers.push_back(answer);
        assert_eq!(world.run(), ["BeginModify", "ControllerModifyVolume", "ReportModifyError"], "{code:?}");
        let word = if code == Code::InvalidArgument { "Infeasible" } else { "InProgress" };
        assert_eq!(modify_status(&world), (word.into(), "gold".into()), "{code:?}");
        assert_eq!(world.conditions(), [names::MODIFYING_VOLUME, names::MODIFY_VOLUME_ERROR]);
        let uncertain =
            [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::ResourceExhausted, Code::Aborted];
        world.ask_class("silver");
        world.pass(100_000);
        world.run();
        let expected: &[&str] =
            if uncertain.contains(&code) { &["gold", "gold", "silver"] } else { &["gold", "silver"] };
        assert_eq!(modified(&world), expected, "{code:?}");
        assert!(world.conditions().is_empty());
    }
}

#[test]
fn r25_the_same_failure_is_written_once() {
    let mut world = asking();
    world.backend.answers.extend((0..5).map(|_| refused(Code::Internal)));
    for _ in 0..5 {
        world.run();
        world.pass(1_000_000);
    }
    assert_eq!(world.writes, 2);
}

// R26: a secret that is missing is no word of the driver's: nothing is written, it is just tried again.
#[test]
fn r26_a_missing_secret_is_only_retried() {
    let mut world = World::with_secret(Expansion::Controller);
    world.make_class("gold", DRIVER);
    world.ask_class("gold");
    assert_eq!(world.run(), ["BeginModify", "ReadSecret"]);
    assert!(matches!(world.look(), Decision::Wait(..)));
    assert_eq!(world.conditions(), [names::MODIFYING_VOLUME]);
    world.create(Kind::Secret, json!({ "metadata": { "name": "s" }, "data": { "k": "dg==" } }));
    world.pass(100_000);
    assert_eq!(world.run().len(), 4);
}

// Reliability 68: one call at a time; and what fails in one does not hold up the other.
#[test]
fn growing_and_modifying_take_turns() {
    let mut world = asking();
    world.request("2Gi");
    world.backend.answers.push_back(refused(Code::Internal));
    let done = world.run();
    assert!(done.ends_with(&["BeginModify", "ControllerModifyVolume", "SetVolumeAttributesClass", "FinishModify"]));
    assert_eq!(world.code(), "BackOff");
    world.pass(100_000);
    assert_eq!(world.run(), ["ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
}

#[test]
fn a_driver_that_cannot_modify_is_not_asked() {
    let mut world = asking();
    world.update_local(|local| local.attributes_classes = false);
    assert!(world.run().is_empty() && world.look().why().settled);
}
