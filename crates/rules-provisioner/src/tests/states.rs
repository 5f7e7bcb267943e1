use alloc::format;
use alloc::string::ToString;

use api::{Kind, names};
use control::{Outcome, Refusal};
use csi::{Code, Finality, Method, Status, classify};
use serde_json::json;

use super::driver::Mood;
use super::world::{CLAIM, VOLUME, World};
use crate::{Intent, Stage};

/// As the hands read an answer of the driver.
fn outcome(code: Code) -> Outcome {
    match classify(Method::CreateVolume, &Status::from_driver(code, "no")) {
        Finality::Done => unreachable!(),
        Finality::Refused => Outcome::Refused(Refusal::Driver(code, "no".into())),
        Finality::Unknown => Outcome::Unknown("no".into()),
    }
}

/// What upstream calls the state after a code.
fn expected(code: Code, topology: bool, selected: bool) -> &'static str {
    match code {
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => "background",
        Code::ResourceExhausted if topology && selected => "reschedule",
        Code::InvalidArgument => "infeasible",
        _ => "finished",
    }
}

// P46: 16 codes, with and without topology, with and without a selected node, under upstream's protocol.
#[test]
fn every_code_leads_to_its_state() {
    for code in &Code::ALL[1..] {
        for (topology, selected) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut world = World::new().able().with(|settings| {
                settings.intent = Intent::InMemory;
                settings.topology = topology;
            });
            world.node("x", &[("zone", "a")]);
            let node = if selected { json!("x") } else { json!(null) };
            let claim = json!({ "metadata": { "annotations": { names::SELECTED_NODE: node } } });
            world = world.class("fast", "d", json!({})).with_claim("data", claim);
            world.driver.answer = Some(outcome(*code));
            world.run_for(1);
            let memory = world.engine.memory(&world.key());
            let state = match (&memory.stage, &memory.in_flight) {
                (Stage::Nothing, Some(_)) => "background",
                (Stage::Refused { exhausted: true }, None) if topology && selected => "reschedule",
                (Stage::Refused { .. }, None) if memory.infeasible.is_some() => "infeasible",
                (Stage::Refused { .. } | Stage::Nothing, None) => "finished",
                (stage, _) => panic!("{code:?}: {stage:?}"),
            };
            // A name that is taken is kept in mind, where upstream forgets it: the arguments stay the same either way.
            let known = if *code == Code::AlreadyExists { "background" } else { expected(*code, topology, selected) };
            assert_eq!(state, known, "{code:?} topology {topology} selected {selected}");
            world.driver.answer = None;
            world.run_for(1);
            let rescheduled = world.log.last().unwrap().starts_with("Reschedule");
            assert_eq!(rescheduled, state == "reschedule", "{code:?}: {:?}", world.log);
        }
    }
}

// P46, reliability 7: the same codes with an intent: a final one lets a deleted claim go, another one does not.
#[test]
fn only_a_final_answer_ends_an_intent() {
    for code in &Code::ALL[1..] {
        let mut world = World::asked();
        world.driver.answer = Some(outcome(*code));
        world.run_for(2);
        world.delete_claim();
        let ended = world.run_for(20);
        let pending = expected(*code, false, false) == "background" || *code == Code::AlreadyExists;
        assert_eq!(ended, !pending, "{code:?}: {:?}", world.log);
        assert_eq!(world.get(CLAIM, "data").is_none(), !pending, "{code:?}");
    }
}

// P47, upstream: work in the background goes on after the claim is gone, and its volume is recorded.
#[test]
fn upstreams_protocol_goes_on_from_memory_when_the_claim_is_gone() {
    let mut world = World::asked().with(|settings| settings.intent = Intent::InMemory);
    let name = world.pv_name();
    world.driver.mood = Mood::Down;
    world.run_for(2);
    world.delete_claim();
    assert!(world.get(CLAIM, "data").is_none());
    world.driver.mood = Mood::Well;
    world.run();
    assert_eq!(world.volume(&name)["spec"]["claimRef"]["name"], "data");
    assert_eq!(world.driver.volumes.len(), 1);
}

// P47: a namesake is served once the work for its predecessor has ended.
#[test]
fn upstreams_protocol_serves_a_namesake_as_well() {
    let mut world = World::asked().with(|settings| settings.intent = Intent::InMemory);
    let first = world.pv_name();
    world.driver.mood = Mood::Down;
    world.run_for(2);
    world.delete_claim();
    world = world.with_claim("data", json!({}));
    world.driver.mood = Mood::Well;
    world.run();
    assert!(world.get(VOLUME, &first).is_some() && world.get(VOLUME, &world.pv_name()).is_some(), "{:?}", world.log);
}

// P47, with an intent: the claim stays until the volume is undone.
#[test]
fn an_intent_keeps_the_claim_until_the_volume_is_undone() {
    let mut world = World::asked();
    world.lose_answer = Some(1);
    world.run_for(2);
    world.delete_claim();
    assert!(world.get(CLAIM, "data").is_some());
    world.run_to_the_end();
    assert!(world.is_empty(), "{:?}", world.log);
}

// The known leak (reliability 0.2): a crash between CreateVolume and the PersistentVolume. With an intent it is none.
#[test]
fn a_crash_leaks_a_volume_under_upstreams_protocol_and_none_with_an_intent() {
    for (intent, left) in [(Intent::InMemory, 1), (Intent::OnClaim, 0)] {
        let mut world = World::asked().with(|settings| settings.intent = intent);
        world.lose_answer = Some(usize::from(intent == Intent::OnClaim));
        world.run_for(1 + usize::from(intent == Intent::OnClaim));
        assert_eq!(world.driver.volumes.len(), 1);
        world.delete_claim();
        world.restart();
        world.run_to_the_end();
        assert_eq!(world.driver.volumes.len(), left, "{intent:?}");
        assert!(world.get(CLAIM, "data").is_none());
    }
}

// Upstream's protocol takes two steps, and at rest does nothing.
#[test]
fn upstreams_protocol_makes_a_volume_in_two_steps() {
    let mut world = World::asked().with(|settings| settings.intent = Intent::InMemory);
    let name = world.pv_name();
    world.run();
    assert_eq!(world.log, [format!("CreateVolume({name})"), "CreatePv(n/data)".to_string()]);
    assert!(world.volume(&name)["metadata"]["finalizers"].to_string().contains(names::PROVISIONER_FINALIZER));
    world.log.clear();
    world.restart();
    world.run();
    assert!(world.log.is_empty(), "{:?}", world.log);
}

// An intent recorded before the setting changed is seen to its end.
#[test]
fn an_intent_is_seen_to_its_end_under_either_setting() {
    let mut world = World::asked();
    world.run_for(2);
    world = world.with(|settings| settings.intent = Intent::InMemory);
    world.restart();
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
}

// P48: an impossible request is not repeated for five minutes, or until its class is replaced.
#[test]
fn an_impossible_request_waits_five_minutes_or_for_another_class() {
    let refusing = || {
        let mut world = World::asked();
        world.driver.mood = Mood::Refusing(Code::InvalidArgument, "no such pool".into());
        world.run_for(2);
        assert_eq!(world.why_claim(), "CreateRefused");
        world
    };
    let mut world = refusing();
    let before = world.now.0;
    world.driver.mood = Mood::Well;
    world.run();
    assert!(world.now.0 - before >= 300_000, "{}", world.now.0 - before);
    assert_eq!(world.why_claim(), "VolumeMade");

    let mut world = refusing();
    let before = world.now.0;
    world.driver.mood = Mood::Well;
    world.delete(Kind::StorageClass, "fast");
    world = world.class("fast", "d", json!({ "parameters": { "pool": "right" } }));
    world.run();
    assert!(world.now.0 - before < 1_000, "{}", world.now.0 - before);
    assert_eq!(world.request().parameters["pool"], "right");
}

// P79: a volume that cannot be recorded is never deleted; recording is tried for ever.
#[test]
fn a_volume_that_cannot_be_recorded_is_kept() {
    for intent in [Intent::OnClaim, Intent::InMemory] {
        let mut world = World::asked().with(|settings| settings.intent = intent);
        world.forbidden = [VOLUME].into();
        assert!(!world.run_for(20));
        assert_eq!(world.log.iter().filter(|line| line.starts_with("CreateVolume")).count(), 1);
        assert!(world.log.iter().all(|line| !line.starts_with("DeleteVolume")));
        assert!(world.why(&world.key()).text.contains("forbidden"));
        world.forbidden.clear();
        world.run();
        assert_eq!(world.why_claim(), "VolumeMade");
    }
}

// P79: recorded already, by a write whose answer was lost: that is success.
#[test]
fn a_volume_recorded_already_is_success() {
    for intent in [Intent::OnClaim, Intent::InMemory] {
        let mut world = World::asked().with(|settings| settings.intent = intent);
        world.lose_answer = Some(1 + usize::from(intent == Intent::OnClaim));
        world.run();
        assert_eq!(world.why_claim(), "VolumeMade");
        assert_eq!(world.driver.volumes.len(), 1);
    }
}

// Sidecars 2.9, "PV written": who made it, and read-only where only readers are asked for.
#[test]
fn the_volume_says_who_made_it_and_that_it_is_read_only() {
    let mut world = World::new().with(|settings| {
        settings.identity = "me-1".into();
        settings.controller_publish_readonly = true;
    });
    world =
        world.class("fast", "d", json!({})).with_claim("data", json!({ "spec": { "accessModes": ["ReadOnlyMany"] } }));
    world.run();
    let source = &world.volume(&world.pv_name())["spec"]["csi"];
    assert_eq!(source["volumeAttributes"], json!({ "k": "v", names::PROVISIONER_IDENTITY: "me-1" }));
    assert_eq!(source["readOnly"], true);
}

// P2, P6: under another prefix and length the volume is found again by its real name.
#[test]
fn a_volume_of_another_prefix_is_found_again() {
    let mut world = World::asked().with(|settings| {
        settings.volume_name_prefix = "vol".into();
        settings.volume_name_uuid_length = Some(20);
    });
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    world.log.clear();
    world.restart();
    world.run();
    assert!(world.log.is_empty());
}

// P14.
#[test]
fn a_raw_device_has_no_filesystem_type() {
    let parameters = json!({ "parameters": { "fstype": "xfs" } });
    let block = json!({ "spec": { "volumeMode": "Block" } });
    let mut world = World::new().class("fast", "d", parameters).with_claim("data", block);
    world.run();
    let volume = world.volume(&world.pv_name());
    assert!(volume["spec"]["csi"]["fsType"].is_null());
    assert_eq!(volume["spec"]["volumeMode"], "Block");
}
