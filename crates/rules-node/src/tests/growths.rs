//! A growth where one fact of several decides alone, and what is kept in mind of it: EX-15 to EX-21.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, Seen, Time, Value, names};
use control::{Action as _, Capability, Decision, Outcome, Refusal, Reply, Rules as _, Secrets};
use csi::Code;
use serde_json::json;

use super::plain::cache;
use super::world::{World, unique};
use crate::{
    Action, Expand, ExpandCall, ExpandFailure, ExpandMemory, Growth, GrowthPlan, GrowthProgress, GrowthSizes, Key,
    Node, Tell,
};

const GI: i64 = 1 << 30;

fn seen() -> Seen {
    let object = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "ns", "data");
    Seen { object, uid: "u".into(), version: "1".into() }
}

/// A growth from one gibibyte to two that the claim keeps no progress of.
fn growth() -> Growth {
    Growth {
        claim: seen(),
        sizes: GrowthSizes { requested: 2 * GI, volume: 2 * GI, had: GI, allocated: None, recorded: None },
        progress: GrowthProgress::None,
        conditions: Vec::new(),
        error: None,
        shared: false,
        not_required: false,
        secret: None,
        stuck: None,
    }
}

// EX-16, KL-35: a node grows what it has of a shared volume, and not what has the size that was handed over.
#[test]
fn ex_16_a_filesystem_that_has_what_was_allocated_is_not_grown_beyond() {
    let shared = |recorded: Option<i64>| Growth {
        sizes: GrowthSizes { requested: 3 * GI, volume: 3 * GI, had: 2 * GI, allocated: Some(2 * GI), recorded },
        shared: true,
        ..growth()
    };
    let plan = Some(GrowthPlan { size: 2 * GI, tell: Tell::Nothing });
    for (recorded, planned) in [(Some(GI), plan), (Some(2 * GI), None), (None, None)] {
        assert_eq!(shared(recorded).plan(), planned, "{recorded:?}");
    }
}

// EX-15, EX-19: pods wait for the size they were promised, once it can be had and as long as it is not there.
#[test]
fn ex_15_a_growth_holds_up_pods_until_the_filesystem_has_the_size() {
    for (what, recorded, stuck, had, holds_up) in [
        ("nothing done yet", None, None, GI, true),
        ("a smaller one recorded", Some(GI), None, GI, true),
        ("the size recorded, the claim not told", Some(2 * GI), None, GI, false),
        ("refused while in use", None, Some(2 * GI), GI, false),
        ("another size refused while in use", None, Some(GI), GI, true),
        ("nothing to do", None, None, 2 * GI, false),
    ] {
        let sizes = GrowthSizes { recorded, had, ..growth().sizes };
        assert_eq!(Growth { sizes, stuck, ..growth() }.holds_up(), holds_up, "{what}");
    }
}

#[test]
fn only_a_claim_that_many_nodes_may_write_to_is_grown_on_each() {
    for (modes, shared) in [
        (json!(["ReadWriteOnce"]), false),
        (json!(["ReadOnlyMany", "ReadWriteOnce"]), false),
        (json!(["ReadWriteMany"]), true),
        (json!(["ReadOnlyMany", "ReadWriteMany"]), true),
    ] {
        let size = json!({ "storage": "1Gi" });
        let spec = json!({ "accessModes": modes, "resources": { "requests": size } });
        let claim = serde_json::from_value(json!({ "spec": spec, "status": { "capacity": size } })).unwrap();
        let volume = serde_json::from_value(json!({ "spec": { "capacity": size } })).unwrap();
        assert_eq!(Growth::of(&claim, &volume, None, None).unwrap().shared, shared, "{modes}");
    }
}

fn call() -> ExpandCall {
    ExpandCall {
        driver: "d".into(),
        volume: unique(),
        handle: "h".into(),
        target: "/t".into(),
        staging: None,
        size: 2 * GI,
        capability: Capability::default(),
        secrets: Secrets::default(),
    }
}

fn report(infeasible: bool) -> Expand {
    let (message, at) = ("no".into(), Time::from_unix_millis(1_000));
    Expand::Report { claim: seen(), size: 2 * GI, infeasible, gone: Vec::new(), message, at }
}

// EX-18, EX-19: a secret is forgotten with the call, whatever came of it, and a refusal until it is told or tried anew.
#[test]
fn ex_19_each_step_of_a_growth_leaves_in_mind_what_the_next_one_needs() {
    let secrets = || Some(Secrets([("k".into(), "canary".into())].into()));
    let failed = |code: Code, infeasible: bool| {
        let message = format!("the driver refused with {code:?}: not now");
        Some(ExpandFailure { size: 2 * GI, message, infeasible })
    };
    let grown = Some(2 * GI);
    let known = || ExpandMemory { secrets: secrets(), grown, failure: failed(Code::Internal, false) };
    let without_failure = || ExpandMemory { failure: None, ..known() };
    let finish = Expand::Finish { claim: seen(), size: 2 * GI, progress: true, gone: Vec::new() };
    let begin = Expand::Begin { claim: seen(), size: 2 * GI };
    let done = || Outcome::Done(Reply::Nothing);
    let lost = || Outcome::Unknown("no answer".into());
    let said = |code: Code| Outcome::Refused(Refusal::Driver(code, "not now".into()));
    let call = || Expand::Call(call());
    for (did, got, kept) in [
        (call(), done(), ExpandMemory { grown, ..ExpandMemory::default() }),
        (
            call(),
            said(Code::Internal),
            ExpandMemory { failure: failed(Code::Internal, false), ..ExpandMemory::default() },
        ),
        (
            call(),
            said(Code::OutOfRange),
            ExpandMemory { failure: failed(Code::OutOfRange, true), ..ExpandMemory::default() },
        ),
        (call(), lost(), ExpandMemory { secrets: None, ..known() }),
        (call(), Outcome::Refused(Refusal::Conflict), ExpandMemory { secrets: None, ..known() }),
        (finish.clone(), done(), ExpandMemory::default()),
        (finish.clone(), lost(), known()),
        (finish, Outcome::Refused(Refusal::Conflict), known()),
        (begin.clone(), done(), without_failure()),
        (begin, lost(), without_failure()),
        (report(true), done(), without_failure()),
        (report(true), lost(), known()),
        (report(false), done(), known()),
    ] {
        assert_eq!(known().after(&did, &got), kept, "{did:?} {got:?}");
    }
}

#[test]
fn ex_18_a_growth_that_is_done_is_told_with_the_size() {
    let done = |step: Expand| Action::Expand(Box::new(step)).news().done;
    let told = Some(("FileSystemResizeSuccessful", "the filesystem has 2Gi".into()));
    assert_eq!(done(Expand::Call(call())), told);
    assert_eq!(done(Expand::Begin { claim: seen(), size: 2 * GI }), None);
    assert_eq!(done(report(true)), None);
}

// EX-19: what the driver says of a growth is news to the pods that wait for it.
#[test]
fn ex_19_the_answer_to_a_growth_wakes_those_who_wait_for_it() {
    let mut world = World::new();
    world.pod("a");
    let woken = |step: Expand| {
        let got = Outcome::Refused(Refusal::Driver(Code::FailedPrecondition, "in use".into()));
        let mut local = world.local().clone();
        Node::learn(&mut local, &Action::Expand(Box::new(step)), &got, &world.cache)
    };
    assert!(woken(Expand::Call(call())).contains(&World::pod_key("a")));
    for step in [Expand::Begin { claim: seen(), size: 2 * GI }, report(true)] {
        assert_eq!(woken(step), Vec::<Key>::new());
    }
    assert!(!Node::keys(&cache([]), world.local()).contains(&World::pod_key("a")));
}

/// The claim has one gibibyte, its volume two, and it is the node's turn.
fn hand_over(world: &mut World) {
    world.patch(Kind::PersistentVolume, "pv1", json!({ "spec": { "capacity": { "storage": "2Gi" } } }));
    let status = json!({ "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_PENDING } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
}

fn of_one_gibibyte(source: &Value) -> World {
    let mut world = World::asking("2Gi", source);
    world.machine.size = GI;
    let status = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    world.patch_status(Kind::PersistentVolumeClaim, "data", status);
    world
}

// EX-15: nothing is grown for a pod that goes, nor for one that has to wait for the volume.
#[test]
fn ex_15_a_filesystem_grows_for_a_pod_that_has_it_and_wants_it() {
    let mut world = of_one_gibibyte(&json!({}));
    world.patch(Kind::PersistentVolume, "pv1", json!({ "spec": { "accessModes": ["ReadWriteOncePod"] } }));
    world.pod("a");
    world.settle();
    world.machine.deaf = true;
    world.delete_pod("a");
    world.pod("b");
    hand_over(&mut world);
    let decided = world.decide(&World::volume_key());
    assert!(matches!(&decided, Decision::Rest(_)), "{decided:?}");
    assert!(!world.machine.processes.is_empty(), "the first pod is still there");
}

// EX-21, KL-35: what a new filesystem has is what the claim says, and every step names the size.
#[test]
fn ex_21_sizes_are_recorded_and_told_as_users_write_them() {
    let mut world = of_one_gibibyte(&json!({}));
    world.pod("a");
    world.settle();
    assert_eq!(world.local().records[&unique()].size, Some(GI));
    hand_over(&mut world);
    let mut told = Vec::new();
    while let Decision::Do(_, why) = world.decide(&World::volume_key()) {
        told.push(why.text);
        world.step(&World::volume_key());
    }
    assert_eq!(
        told,
        [
            "recording that the filesystem of claim ns/data is being grown",
            "driver d.example grows the filesystem of volume pv1 to 2Gi",
            "recording that the filesystem of volume pv1 has 2Gi",
            "recording that claim ns/data has 2Gi on node n",
        ]
    );
}
