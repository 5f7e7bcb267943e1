//! Filesystems that grow: EX-15 to EX-21, KL-35, KL-39.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Value, names};
use control::{Action as _, Decision, Effect};
use csi::{Call, Code, NodeRpc};
use prove_lab::{Choices, Fault, check_table};
use serde_json::json;

use super::world::{HANDLE, World, unique};
use crate::{Action, DriverFacts, Expand, Growth, GrowthProgress, GrowthSizes};

const GI: i64 = 1 << 30;

/// A claim of one gibibyte that a pod uses, or is about to use.
fn world() -> World {
    asking("2Gi", &json!({}))
}

fn asking(size: &str, source: &Value) -> World {
    let mut world = World::asking(size, source);
    world.machine.size = GI;
    let status = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
    world
}

fn running() -> World {
    let mut world = world();
    world.pod("a");
    world.settle();
    world
}

/// The resizer's part is done: the volume has two gibibytes, and it is the node's turn.
fn hand_over(world: &mut World) {
    world.patch(Kind::PersistentVolume, "pv1", json!({ "spec": { "capacity": { "storage": "2Gi" } } }));
    let conditions = json!([{ "type": names::FILE_SYSTEM_RESIZE_PENDING, "status": "True" }]);
    let status = json!({ "allocatedResources": { "storage": "2Gi" }, "conditions": conditions,
        "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_PENDING } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
}

fn claim(world: &World) -> Value {
    world.get(Kind::PersistentVolumeClaim, "data").unwrap()["status"].clone()
}

fn progress(world: &World) -> Value {
    claim(world)["allocatedResourceStatuses"]["storage"].clone()
}

fn expansions(done: &[String]) -> Vec<&str> {
    done.iter().map(String::as_str).filter(|name| name.contains("Expand")).collect()
}

// EX-16, EX-17, EX-19, EX-21: progress first, then the driver, then the record, then the claim.
#[test]
fn ex_17_a_running_pod_gets_a_larger_filesystem() {
    let mut world = running();
    hand_over(&mut world);
    assert_eq!(world.settle(), ["BeginExpand", "Expand", "WriteRecord", "FinishExpand"]);
    let told = claim(&world);
    assert_eq!(told["capacity"]["storage"], "2Gi");
    assert_eq!(told["allocatedResources"]["storage"], "2Gi", "EX-11: what was allocated stays");
    assert_eq!(progress(&world), Value::Null);
    assert_eq!(told["conditions"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(world.local().records[&unique()].size, Some(2 * GI));
}

// EX-15: at mount, and the pod starts with the size it was promised.
#[test]
fn ex_15_a_pod_starts_after_the_growth_of_its_volume() {
    let mut world = world();
    hand_over(&mut world);
    world.pod("a");
    let done = world.settle();
    let at = |name: &str| done.iter().position(|done| done == name).unwrap();
    assert!(at("Publish") < at("Expand") && at("Expand") < at("Start"), "{done:?}");
}

// EX-20: without a word about progress the size of the volume counts.
#[test]
fn ex_20_a_claim_that_keeps_no_progress_gets_the_size_of_its_volume() {
    let mut world = running();
    world.patch(Kind::PersistentVolume, "pv1", json!({ "spec": { "capacity": { "storage": "2Gi" } } }));
    assert_eq!(world.settle(), ["Expand", "WriteRecord", "FinishExpand"]);
    assert_eq!(claim(&world)["capacity"]["storage"], "2Gi");
    assert_eq!(world.settle(), Vec::<String>::new());
}

// EX-18.
#[test]
fn ex_18_the_driver_is_told_where_the_volume_is_and_how_large_it_becomes() {
    let mut world = running();
    hand_over(&mut world);
    let key = World::volume_key();
    let call = loop {
        match world.decide(&key) {
            Decision::Do(action @ Action::Expand(_), _) if action.name() == "Expand" => break action,
            Decision::Do(..) => drop(world.step(&key)),
            other => panic!("{other:?}"),
        }
    };
    let Effect::Call { call: Call::NodeExpandVolume(request), .. } = call.effect() else { panic!("a call") };
    let record = &world.local().records[&unique()];
    assert_eq!(request.volume_id, HANDLE);
    assert_eq!(request.volume_path, record.publishes.values().next().unwrap().target);
    assert_eq!(request.staging_target_path, record.staging_path.clone().unwrap());
    assert_eq!(request.capacity_range.unwrap().required_bytes, 2 * GI);
    assert!(request.volume_capability.is_some());
}

// EX-18: secrets are read just before the call and are not printed.
#[test]
fn ex_18_the_secret_is_read_for_the_call_and_forgotten() {
    let secret = json!({ "name": "grow", "namespace": "ns" });
    let mut world = asking("2Gi", &json!({ "nodeExpandSecretRef": secret }));
    world.pod("a");
    world.settle();
    world.create(Kind::Secret, json!({ "metadata": { "name": "grow" }, "stringData": { "key": "canary" } }));
    hand_over(&mut world);
    let key = World::volume_key();
    while world.log.last().copied() != Some("ReadExpandSecret") {
        world.step(&key).unwrap();
    }
    let Decision::Do(action, _) = world.decide(&key) else { panic!("calls") };
    assert!(!format!("{action:?}").contains("canary"));
    let Effect::Call { call: Call::NodeExpandVolume(request), .. } = action.effect() else { panic!("a call") };
    assert_eq!(request.secrets["key"], "canary");
    assert_eq!(world.settle(), ["Expand", "WriteRecord", "FinishExpand"]);
    assert_eq!(world.engine.remembered().filter(|(_, memory, _)| memory.expand.secrets.is_some()).count(), 0);
}

// EX-15: the agent dies anywhere, and the driver is asked to stage again before it is asked to grow.
#[test]
fn a_growth_goes_on_in_the_next_life_of_the_agent() {
    for steps in 0..4 {
        let mut world = running();
        hand_over(&mut world);
        for _ in 0..steps {
            world.step(&World::volume_key()).unwrap();
        }
        world.crash("life-2");
        world.settle();
        assert_eq!(claim(&world)["capacity"]["storage"], "2Gi", "after {steps} steps");
        assert_eq!(world.machine.size, 2 * GI);
    }
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again() {
    let mut world = running();
    hand_over(&mut world);
    world.faults.insert("Expand", Fault::AnswerLost);
    assert_eq!(expansions(&world.settle()), ["BeginExpand", "Expand", "Expand", "FinishExpand"]);
}

// EX-19: a refusal for ever is said in the claim, and holds up no pod.
#[test]
fn ex_19_a_size_that_no_node_can_give_is_called_infeasible() {
    for code in [Code::InvalidArgument, Code::OutOfRange, Code::NotFound] {
        let mut world = running();
        world.machine.refuses = Some(code);
        hand_over(&mut world);
        assert_eq!(expansions(&world.settle()), ["BeginExpand", "Expand", "ReportExpandError"], "{code:?}");
        assert_eq!(progress(&world), names::NODE_RESIZE_INFEASIBLE);
        let told = claim(&world);
        assert_eq!(told["conditions"][0]["type"], names::NODE_RESIZE_ERROR);
        assert_eq!(told["capacity"]["storage"], "1Gi");
        world.pod("b");
        assert!(world.settle().iter().any(|name| name == "Start"));
    }
}

// EX-19: what cannot be done while the volume is in use is not tried again before it is staged anew.
#[test]
fn ex_19_a_growth_that_needs_the_volume_unused_waits_for_the_next_pod() {
    let mut world = running();
    world.machine.refuses = Some(Code::FailedPrecondition);
    hand_over(&mut world);
    assert_eq!(expansions(&world.settle()), ["BeginExpand", "Expand", "ReportExpandError"]);
    assert_eq!(progress(&world), names::NODE_RESIZE_IN_PROGRESS);
    let condition = &claim(&world)["conditions"].as_array().unwrap().last().cloned().unwrap();
    assert_eq!(condition["type"], names::NODE_RESIZE_ERROR);
    let why = world.why(&World::volume_key());
    assert_eq!(why.code, "ResizeNeedsRestart");
    assert!(why.text.contains("delete its pods"), "{why}");
    world.pod("b");
    assert!(world.settle().iter().any(|name| name == "Start"), "another pod starts meanwhile");
    world.machine.refuses = None;
    world.delete_pod("a");
    world.delete_pod("b");
    world.settle();
    world.pod("c");
    let done = world.settle();
    assert_eq!(expansions(&done), ["Expand", "FinishExpand"], "{done:?}");
    assert_eq!(claim(&world)["capacity"]["storage"], "2Gi");
    assert_eq!(claim(&world)["conditions"].as_array().map_or(0, Vec::len), 0);
}

// EX-19: another refusal is said and tried again; once the user asks for another size, it is infeasible.
#[test]
fn ex_19_another_refusal_is_tried_again_until_the_user_asks_for_another_size() {
    for (asked, progress_then) in [("2Gi", names::NODE_RESIZE_IN_PROGRESS), ("1536Mi", names::NODE_RESIZE_INFEASIBLE)] {
        let mut world = asking(asked, &json!({}));
        world.pod("a");
        world.settle();
        world.machine.refuses = Some(Code::Internal);
        hand_over(&mut world);
        for _ in 0..3 {
            world.step(&World::volume_key());
        }
        assert_eq!(progress(&world), progress_then);
        let told = claim(&world)["conditions"].as_array().cloned().unwrap();
        assert!(told.iter().any(|condition| condition["type"] == names::NODE_RESIZE_ERROR), "{told:?}");
    }
}

// EX-19: a size that was given up is asked for again once the controller hands it over anew, whatever became of the
// writes in between.
#[test]
fn ex_19_a_size_that_was_refused_once_is_asked_for_again_when_it_is_handed_over_anew() {
    for (asked, code) in [("2Gi", Code::OutOfRange), ("1536Mi", Code::Internal)] {
        for lost in ["", "ReportExpandError", "BeginExpand"] {
            let mut world = asking(asked, &json!({}));
            world.pod("a");
            world.settle();
            world.machine.refuses = Some(code);
            hand_over(&mut world);
            if lost == "ReportExpandError" {
                world.faults.insert(lost, Fault::AnswerLost);
            }
            world.settle();
            assert_eq!(progress(&world), names::NODE_RESIZE_INFEASIBLE, "{asked} {lost}");
            world.machine.refuses = None;
            hand_over(&mut world);
            if lost == "BeginExpand" {
                world.faults.insert(lost, Fault::AnswerLost);
            }
            assert_eq!(expansions(&world.settle()), ["BeginExpand", "Expand", "FinishExpand"], "{asked} {lost}");
            assert_eq!(claim(&world)["capacity"]["storage"], "2Gi", "{asked} {lost}");
        }
    }
}

// EX-19: too far, back, and then as far again: the driver that has room by then is asked.
#[test]
fn ex_19_a_claim_that_was_put_back_grows_to_the_size_that_was_refused() {
    let mut world = running();
    world.machine.refuses = Some(Code::OutOfRange);
    hand_over(&mut world);
    world.settle();
    // The resizer goes for less, and the node finishes that.
    let less = json!({ "allocatedResources": { "storage": "1536Mi" }, "conditions": [],
        "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_PENDING } });
    world.machine.refuses = None;
    world.patch_status(Kind::PersistentVolumeClaim, "data", less);
    world.settle();
    assert_eq!(claim(&world)["capacity"]["storage"], "1536Mi");
    hand_over(&mut world);
    assert_eq!(expansions(&world.settle()), ["BeginExpand", "Expand", "FinishExpand"]);
    assert_eq!(claim(&world)["capacity"]["storage"], "2Gi");
}

// EX-19, EX-21: the filesystem has the size, and its pod goes before the claim is told.
#[test]
fn ex_21_a_claim_is_told_of_its_size_though_the_pod_is_gone() {
    for (last, force) in [("Expand", false), ("Expand", true), ("WriteRecord", false), ("WriteRecord", true)] {
        let mut world = running();
        hand_over(&mut world);
        while world.log.last().copied() != Some(last) {
            world.step(&World::volume_key()).unwrap();
        }
        match force {
            true => world.force_delete_pod("a"),
            false => world.delete_pod("a"),
        }
        let done = world.settle();
        assert_eq!(claim(&world)["capacity"]["storage"], "2Gi", "{last}, by force {force}: {done:?}");
        assert_eq!(progress(&world), Value::Null);
        assert!(done.contains(&"Unstage".to_string()), "{done:?}");
        assert!(!world.node_lists("volumesInUse"));
    }
}

// A write about the size that fails keeps no volume on the node.
#[test]
fn a_volume_is_taken_down_while_its_claim_cannot_be_told_of_its_size() {
    let mut world = running();
    hand_over(&mut world);
    while world.log.last().copied() != Some("WriteRecord") {
        world.step(&World::volume_key()).unwrap();
    }
    world.delete_pod("a");
    let mut done = Vec::new();
    while !done.contains(&"Unstage") {
        assert!(done.len() < 40, "{done:?}");
        world.faults.insert("FinishExpand", Fault::RequestLost);
        done.extend(world.step(&World::volume_key()));
        done.extend(world.step(&World::pod_key("a")));
    }
    assert!(done.contains(&"FinishExpand"), "{done:?}");
    assert_eq!(claim(&world)["capacity"]["storage"], "1Gi", "nobody was told");
}

// KL-43: what backs off is the growth; another pod gets the volume meanwhile, at once.
#[test]
fn kl_43_a_growth_that_backs_off_holds_up_no_mount() {
    let mut world = running();
    world.machine.refuses = Some(Code::Internal);
    hand_over(&mut world);
    while world.log.last().copied() != Some("Expand") {
        world.step(&World::volume_key()).unwrap();
    }
    let failed = world.log.len();
    let when = world.now;
    world.pod("b");
    while !world.log[failed..].contains(&"Publish") {
        world.now = when;
        assert!(world.step(&World::volume_key()).is_some(), "{:?}", &world.log[failed..]);
    }
    assert!(!world.log[failed..].contains(&"Expand"), "{:?}", &world.log[failed..]);
}

// EX-15.
#[test]
fn ex_15_a_read_only_use_grows_nothing_and_says_so() {
    let mut world = world();
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data", "readOnly": true } }]);
    world.pod_with("a", json!({ "volumes": volumes }));
    world.settle();
    hand_over(&mut world);
    assert_eq!(expansions(&world.settle()), Vec::<&str>::new());
    assert_eq!(world.why(&World::volume_key()).code, "ResizeReadOnly");
    let targets = <crate::Node as control::Narrate>::event_targets(&World::volume_key(), &world.cache, world.local());
    assert_eq!(targets.last().unwrap().kind, Kind::PersistentVolumeClaim);
}

#[test]
fn a_driver_that_cannot_grow_filesystems_is_named() {
    let mut world = running();
    world.update_local(|local| {
        local.drivers.values_mut().for_each(|driver| *driver = DriverFacts::new([NodeRpc::StageUnstageVolume]));
    });
    hand_over(&mut world);
    assert_eq!(expansions(&world.settle()), Vec::<&str>::new());
    assert_eq!(world.why(&World::volume_key()).code, "ResizeUnsupported");
}

// EX-16, KL-35: the table of orchestrator 5.4.
#[test]
fn ex_16_every_shape_of_a_growth() {
    check_table(env!("CARGO_MANIFEST_DIR"), "growth", |choices: &mut Choices| {
        let had = choices.one_of("claim-has", &[("1", GI), ("2", 2 * GI)]);
        let allocated = choices.one_of("allocated", &[("none", None), ("2", Some(2 * GI))]);
        let recorded = choices.one_of("recorded", &[("none", None), ("1", Some(GI)), ("2", Some(2 * GI))]);
        let progress = choices.one_of(
            "progress",
            &[
                ("none", GrowthProgress::None),
                ("controllers", GrowthProgress::Controllers),
                ("pending", GrowthProgress::NodePending),
                ("in-progress", GrowthProgress::NodeInProgress),
                ("infeasible", GrowthProgress::NodeInfeasible),
            ],
        );
        let (shared, not_required) = (choices.flag("shared"), choices.flag("not-required"));
        let object = api::ObjectRef::namespaced(Kind::PersistentVolumeClaim, "ns", "data");
        let growth = Growth {
            claim: api::Seen { object, uid: "u".into(), version: "1".into() },
            sizes: GrowthSizes { requested: 2 * GI, volume: 2 * GI, had, allocated, recorded },
            progress,
            conditions: Vec::new(),
            error: None,
            shared,
            not_required,
            secret: None,
            stuck: None,
        };
        growth.plan().map_or_else(|| "nothing".into(), |plan| format!("{} {:?}", plan.size / GI, plan.tell))
    });
}

#[test]
fn every_step_has_a_name_and_a_reason_that_users_know() {
    let object = api::ObjectRef::namespaced(Kind::PersistentVolumeClaim, "ns", "data");
    let claim = api::Seen { object, uid: "u".into(), version: "1".into() };
    let begin = Action::Expand(alloc::boxed::Box::new(Expand::Begin { claim, size: 1 }));
    assert_eq!(begin.news().failed.map(|reason| reason.to_string()).as_deref(), Some("FileSystemResizeFailed"));
}
