//! Dead nodes: what is taken from them, when, and what is not (AD-16 to AD-23).

use alloc::format;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, names};
use control::{Action as _, Attempt, Decision, Narrate, Outcome};
use serde_json::json;

use super::world::*;
use crate::{Action, AttachDetach};

const MINUTE: u64 = 60_000;

/// The volume is in use on `a`, whose pod was deleted and does not end, and a pod on `b` waits for it.
fn stranded() -> World {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.make("pod p node=a claim=c");
    world.run(&on("a"));
    world.attach("a");
    world.run(&on("a"));
    world.in_use("a", true);
    let running = json!([{ "name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": { "running": {} } }]);
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Running", "containerStatuses": running }));
    world.create(Kind::Namespace, json!({ "metadata": { "name": names::NODE_LEASES } }));
    world.create(
        Kind::Lease,
        json!({ "metadata": { "name": "a", "namespace": names::NODE_LEASES },
        "spec": { "holderIdentity": "a", "leaseDurationSeconds": 40 } }),
    );
    beat(&mut world);
    world.delete_within(Kind::Pod, "p", 30);
    world.pod("q", "b");
    world.sync();
    world
}

/// The node renews its Lease.
fn beat(world: &mut World) {
    let at = control::Timestamp(world.now.0).to_time();
    let lease = format!("{}/a", names::NODE_LEASES);
    world.patch(Kind::Lease, &lease, json!({ "spec": { "renewTime": at.0.replace('Z', ".000000Z") } }));
}

fn taint(world: &mut World) {
    let taints = json!([{ "key": names::OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute" }]);
    world.patch(Kind::Node, "a", json!({ "spec": { "taints": taints } }));
    world.sync();
}

/// The node lifecycle controller has noticed that nothing is heard of the node.
fn unheard(world: &mut World) {
    world.patch_status(Kind::Node, "a", json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] }));
    world.sync();
}

fn class(world: &mut World, after: &str) {
    let annotations = json!({ names::FORCE_DETACH_AFTER: after });
    let metadata = json!({ "name": "gold", "annotations": annotations });
    world.create(Kind::StorageClass, json!({ "metadata": metadata, "provisioner": DRIVER }));
    world.patch(Kind::PersistentVolume, "v", json!({ "spec": { "storageClassName": "gold" } }));
    world.sync();
}

/// Lets time pass until nothing is waited for any more; what was done meanwhile.
fn run_until_rest(world: &mut World) -> Vec<&'static str> {
    let mut done = Vec::new();
    for _ in 0..20 {
        done.extend(world.run(&on("a")));
        let Decision::Wait(until, _) = world.decide(&on("a")) else { return done };
        let now = world.now.0;
        world.pass(until.0.saturating_sub(now).max(1));
    }
    panic!("it does not come to rest: {done:?}")
}

// AD-19, AD-21: out of service, not heard of, its Lease expired: at once, and the pod on the other node gets the
// volume.
#[test]
fn a_node_out_of_service_loses_its_volumes_at_once() {
    let mut world = stranded();
    assert_eq!(world.code(&on("a")), "Attached", "a pod that still runs keeps its volume");
    world.pass(MINUTE);
    unheard(&mut world);
    taint(&mut world);
    let began = world.now;
    assert_eq!(world.run(&on("a")), ["ReadLease", "ForceRelease", "DeleteAttachment"]);
    assert_eq!(world.now, began, "not a moment is waited");
    let node = world.real_node("a").unwrap();
    assert!(!node.reports_in_use(&unique_name()) && !world.reported("a"));
    assert!(world.run(&on("b")).is_empty(), "not before the driver has let it go");
    assert_eq!(world.code(&on("b")), "DetachingElsewhere");
    world.release("a");
    assert_eq!(world.run(&on("b")), ["CreateAttachment"]);
}

// A node whose Lease is fresh may have died just now: it loses its volumes once it has missed every renewal.
#[test]
fn a_node_that_died_just_now_is_watched_for_as_long_as_its_lease_counts() {
    let mut world = stranded();
    beat(&mut world);
    taint(&mut world);
    assert_eq!(world.run(&on("a")), ["ReadLease"]);
    assert_eq!(world.code(&on("a")), "AwaitingLease");
    world.pass(39_000);
    assert!(world.run(&on("a")).is_empty());
    world.pass(1_000);
    assert_eq!(
        world.run(&on("a")),
        ["ReadLease", "ForceRelease", "DeleteAttachment"],
        "read again before anything is done"
    );
}

// Never while the node's Lease is alive, whatever anybody says of the node, and it is told (AD-17).
#[test]
fn a_living_node_keeps_its_volumes_though_said_to_be_out_of_service() {
    let mut world = stranded();
    unheard(&mut world);
    taint(&mut world);
    for _ in 0..20 {
        beat(&mut world);
        world.pass(10_000);
        assert!(!world.run(&on("a")).contains(&"ForceRelease"));
    }
    assert_eq!(world.code(&on("a")), "NodeLives");
    assert!(world.reported("a") && world.real_node("a").unwrap().reports_in_use(&unique_name()));
    // The read that finds it renewed is told as a failure.
    let read = Action::ReadLease { node: "a".into(), known: Some("1".into()) };
    let got = world.land(&read);
    let Attempt::Failed(text) = read.attempt(&got) else { panic!() };
    assert!(text.contains("renews its Lease"), "{text}");
    assert_eq!(read.news().failed, Some("FailedDetachVolume"));
}

// Somebody writes to the node in the last moment, perhaps the node itself: its Lease is read again before the next
// attempt, and a node that is back keeps its volume.
#[test]
fn a_node_that_is_written_to_meanwhile_is_looked_at_again() {
    let mut world = stranded();
    world.pass(MINUTE);
    unheard(&mut world);
    taint(&mut world);
    assert_eq!(world.step(&on("a")), Some("ReadLease"));
    beat(&mut world);
    world.patch(Kind::Node, "a", json!({ "metadata": { "labels": { "x": "y" } } }));
    assert_eq!(world.step(&on("a")), Some("ForceRelease"), "it does not know yet, and is refused");
    assert!(world.real_node("a").unwrap().reports_in_use(&unique_name()));
    world.pass(10);
    assert_eq!(world.run(&on("a")), ["ReadLease"]);
    assert!(world.real_node("a").unwrap().reports_in_use(&unique_name()));
    assert!(world.reported("a"));
}

// A read that fails, or is not answered, shows nothing.
#[test]
fn an_unread_lease_kills_nobody() {
    let mut world = stranded();
    world.pass(10 * MINUTE);
    unheard(&mut world);
    taint(&mut world);
    let Some((read, _)) = world.begin(&on("a")) else { panic!() };
    world.hear(&on("a"), &read, &Outcome::Unknown("no answer".into()));
    world.pass(MINUTE);
    let Decision::Do(again, _) = world.decide(&on("a")) else { panic!("{:?}", world.decide(&on("a"))) };
    assert_eq!(again.name(), "ReadLease");
}

// AD-16, AD-18: by default no time is long enough (reliability 27).
#[test]
fn by_default_a_node_that_is_not_heard_of_keeps_its_volumes() {
    let mut world = stranded();
    unheard(&mut world);
    kill_pod(&mut world);
    for _ in 0..50 {
        world.pass(60 * MINUTE);
        assert!(world.run(&on("a")).is_empty());
        assert_eq!(world.code(&on("a")), "InUse");
    }
}

/// The pod's object is taken away by force.
fn kill_pod(world: &mut World) {
    world.delete(Kind::Pod, "p");
    world.sync();
}

// AD-18: a class may say after how long; the time counts from the last sign of life.
#[test]
fn a_class_may_let_its_volumes_go_after_a_while() {
    let mut world = stranded();
    class(&mut world, "5m");
    beat(&mut world);
    let began = world.now;
    let done = run_until_rest(&mut world);
    assert_eq!(done, ["ReadLease", "ReadLease", "ForceRelease", "DeleteAttachment"]);
    assert_eq!(world.now.0 - began.0, 5 * MINUTE);
    // A living node keeps its volumes under such a class for ever.
    let mut world = stranded();
    class(&mut world, "1m");
    for _ in 0..60 {
        beat(&mut world);
        world.pass(10_000);
        assert!(!world.run(&on("a")).contains(&"ForceRelease"));
    }
}

// A time shorter than a Lease would kill nodes that only paused, and what is no time is told.
#[test]
fn a_class_cannot_name_less_than_a_lease_and_not_nonsense() {
    let mut world = stranded();
    class(&mut world, "1s");
    beat(&mut world);
    let began = world.now;
    run_until_rest(&mut world);
    assert_eq!(world.now.0 - began.0, 40_000);
    let mut world = stranded();
    class(&mut world, "soon");
    kill_pod(&mut world);
    let text = format!("{}", world.decide(&on("a")).why());
    assert!(
        text.ends_with(
            "the class's annotation longshore.dev/force-detach-after must be like 5m, or never, and is \"soon\""
        ),
        "{text}"
    );
}

/// The controller was started with a flag.
fn flag(world: &mut World, millis: u64) {
    world.update_local(|local| local.force_after = Some(millis));
}

// AD-16, AD-18, for volumes whose class says nothing: the time counts from the last sign of life, and what is taken is
// told with who allowed it.
#[test]
fn the_flag_lets_volumes_go_from_a_dead_node() {
    let mut world = stranded();
    flag(&mut world, 5 * MINUTE);
    let began = world.now;
    world.pass(MINUTE);
    unheard(&mut world);
    let done = run_until_rest(&mut world);
    assert_eq!(done, ["ReadLease", "ReadLease", "ForceRelease", "DeleteAttachment"]);
    assert_eq!(world.now.0 - began.0, 5 * MINUTE);

    let mut world = stranded();
    flag(&mut world, MINUTE);
    world.pass(2 * MINUTE);
    unheard(&mut world);
    world.step(&on("a"));
    let Some((force, _)) = world.begin(&on("a")) else { panic!() };
    let (reason, text) = force.news().done.unwrap();
    assert_eq!(reason, "ForceDetachVolume");
    for part in ["--force-detach-after lets", "for 60 s", "last renewed its Lease at 2", "Unknown"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let targets = AttachDetach::event_targets(&on("a"), &world.cache, world.local());
    assert_eq!(targets, [ObjectRef::cluster(Kind::PersistentVolume, "v"), ObjectRef::cluster(Kind::Node, "a")]);
}

// Never while the node's Lease is alive, whatever is said of it; of a node that is heard of not even the Lease is read.
#[test]
fn under_the_flag_a_living_node_keeps_its_volumes() {
    let mut world = stranded();
    flag(&mut world, 0);
    for _ in 0..20 {
        world.pass(10_000);
        assert!(world.run(&on("a")).is_empty(), "nobody says that it is Unknown");
    }
    beat(&mut world);
    unheard(&mut world);
    for _ in 0..20 {
        beat(&mut world);
        world.pass(10_000);
        assert!(!world.run(&on("a")).contains(&"ForceRelease"));
    }
    assert_eq!(world.code(&on("a")), "NodeLives");
}

// What a class says counts more than the flag: a longer time, never, or what nobody understands.
#[test]
fn a_class_counts_more_than_the_flag() {
    for (said, policy) in [("never", "InUse"), ("soon", "InUse"), ("10m", "AwaitingLease")] {
        let mut world = stranded();
        flag(&mut world, MINUTE);
        class(&mut world, said);
        kill_pod(&mut world);
        world.pass(5 * MINUTE);
        unheard(&mut world);
        assert!(!world.run(&on("a")).contains(&"ForceRelease"), "{said}");
        assert_eq!(world.code(&on("a")), policy, "{said}");
    }
}

// The pod must be gone or going: nothing is taken from a pod that nobody has deleted.
#[test]
fn a_pod_that_nobody_deleted_keeps_its_volume() {
    let mut world = World::attached();
    world.in_use("a", true);
    world.pass(10 * MINUTE);
    unheard(&mut world);
    taint(&mut world);
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "Attached");
}

// The node comes back before the attachment is deleted and says that it uses the volume: that counts again.
#[test]
fn a_node_that_comes_back_in_time_is_heard() {
    let mut world = stranded();
    world.pass(MINUTE);
    unheard(&mut world);
    taint(&mut world);
    world.step(&on("a"));
    assert_eq!(world.step(&on("a")), Some("ForceRelease"));
    beat(&mut world);
    world.in_use("a", true);
    world.pass(6_000);
    world.sync();
    assert_eq!(world.run(&on("a")), ["ReadLease"]);
    assert_eq!(world.code(&on("a")), "NodeLives");
    assert!(!world.real_attachment("a").unwrap().metadata.is_deleting());
}

// Every volume taken by force is told on the volume and the node, with what shows that the node was dead.
#[test]
fn what_is_taken_by_force_is_told_with_its_evidence() {
    let mut world = stranded();
    world.pass(MINUTE);
    unheard(&mut world);
    taint(&mut world);
    world.step(&on("a"));
    let Some((force, _)) = world.begin(&on("a")) else { panic!() };
    let (reason, text) = force.news().done.unwrap();
    assert_eq!(reason, "ForceDetachVolume");
    for part in ["volume v", "node a", names::OUT_OF_SERVICE_TAINT, "last renewed its Lease at 2", "Unknown"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let targets = AttachDetach::event_targets(&on("a"), &world.cache, &Default::default());
    assert_eq!(targets, [ObjectRef::cluster(Kind::PersistentVolume, "v"), ObjectRef::cluster(Kind::Node, "a")]);
}

// With the memory lost before every look the Lease is read for ever, and nothing is taken.
#[test]
fn a_restart_begins_to_look_anew() {
    let mut world = stranded();
    beat(&mut world);
    taint(&mut world);
    world.run(&on("a"));
    world.pass(39_000);
    world.forget();
    assert_eq!(world.run(&on("a")), ["ReadLease"]);
    world.pass(2_000);
    assert!(world.run(&on("a")).is_empty(), "the forty seconds have begun again");
}
