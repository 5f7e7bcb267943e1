//! What must hold whatever happens, on a real store.

use alloc::format;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, Value, names};
use control::{Rules, Timestamp};
use prove_lab::Lab;
use serde_json::json;

use crate::{Key, NodeLifecycle};

type World = Lab<NodeLifecycle>;

/// Two nodes with Leases of ten seconds, and a pod on the first.
fn world() -> World {
    let mut world = World::new("n", ());
    world.create(Kind::Namespace, json!({ "metadata": { "name": names::NODE_LEASES } }));
    for node in ["a", "b"] {
        world.make(&format!("node {node} ready=true"));
        let metadata = json!({ "name": node, "namespace": names::NODE_LEASES });
        let spec = json!({ "holderIdentity": node, "leaseDurationSeconds": 10 });
        world.create(Kind::Lease, json!({ "metadata": metadata, "spec": spec }));
        beat(&mut world, node, 0);
    }
    world.make("pod p");
    world.place("p", "a");
    let status = json!({ "phase": "Running" });
    world.patch_status(Kind::Pod, "p", status);
    world
}

/// A node renews its Lease, by a clock that is so many milliseconds behind.
fn beat(world: &mut World, node: &str, behind: u64) {
    let at = Timestamp(world.now.0 - behind).to_time().0.replace('Z', ".000000Z");
    let lease = format!("{}/{node}", names::NODE_LEASES);
    world.patch(Kind::Lease, &lease, json!({ "spec": { "renewTime": at } }));
}

fn ready(world: &World, node: &str) -> Value {
    world.json(Kind::Node, node)["status"]["conditions"][0]["status"].clone()
}

fn out_of_service(world: &mut World) {
    let taints = json!([{ "key": names::OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute" }]);
    world.patch(Kind::Node, "a", json!({ "spec": { "taints": taints } }));
}

/// Seconds go by; `a` and `b` beat when they say so.
fn live(world: &mut World, seconds: u64, beats: &[&str]) {
    for _ in 0..seconds {
        beats.iter().for_each(|node| beat(world, node, 0));
        work(world);
        world.pass(1_000);
    }
    work(world);
}

/// All that is to be done now is done.
fn work(world: &mut World) {
    for _ in 0..20 {
        let keys = NodeLifecycle::keys(&world.cache, &());
        if keys.iter().filter(|key| world.step(key).is_some()).count() == 0 {
            return;
        }
    }
    panic!("it does not come to rest: {:?}", world.actions);
}

#[test]
fn a_node_is_unknown_after_its_lease_by_our_clock_and_not_before() {
    let mut world = world();
    live(&mut world, 9, &["b"]);
    assert_eq!(ready(&world, "a"), "True");
    live(&mut world, 2, &["b"]);
    assert_eq!(ready(&world, "a"), "Unknown");
    assert_eq!(ready(&world, "b"), "True");
}

// The node's own clock may be wrong: it lives as long as its Lease changes.
#[test]
fn a_node_whose_clock_is_an_hour_behind_lives() {
    let mut world = world();
    for _ in 0..60 {
        beat(&mut world, "a", 3_600_000);
        live(&mut world, 5, &["b"]);
        assert_eq!(ready(&world, "a"), "True");
    }
}

// A restart knows nothing, so it takes another whole Lease.
#[test]
fn what_is_forgotten_makes_it_later_and_never_sooner() {
    let mut world = world();
    live(&mut world, 9, &["b"]);
    world.forget();
    live(&mut world, 9, &["b"]);
    assert_eq!(ready(&world, "a"), "True");
    live(&mut world, 3, &["b"]);
    assert_eq!(ready(&world, "a"), "Unknown");
}

// Never while the Lease is renewed, whatever is said of the node, and whatever we forget.
#[test]
fn no_pod_is_removed_while_its_node_lives() {
    let mut world = world();
    let unknown = json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] });
    world.patch_status(Kind::Node, "a", unknown);
    out_of_service(&mut world);
    for round in 0..40 {
        live(&mut world, 3, &["a", "b"]);
        if round % 7 == 0 {
            world.forget();
        }
    }
    let pod = world.json(Kind::Pod, "p");
    assert!(!pod.is_null(), "{:?}", world.actions);
    assert!(!pod["metadata"]["deletionTimestamp"].is_null(), "it is evicted in the ordinary way");
    assert!(world.actions.iter().any(|action| action.starts_with("ReadLease")));
    // Then it dies.
    live(&mut world, 12, &["b"]);
    assert!(world.json(Kind::Pod, "p").is_null(), "{:?}", world.actions);
}

// A node that is gone for a moment comes back with its pods.
#[test]
fn no_pod_is_removed_when_its_node_is_made_anew() {
    let mut world = world();
    world.delete(Kind::Node, "a");
    live(&mut world, 20, &["b"]);
    world.make("node a ready=true");
    live(&mut world, 60, &["a", "b"]);
    assert!(!world.json(Kind::Pod, "p").is_null(), "{:?}", world.actions);
    // The node is gone for good, but its agent still shows that it lives.
    world.delete(Kind::Node, "a");
    live(&mut world, 60, &["a", "b"]);
    assert!(!world.json(Kind::Pod, "p").is_null(), "{:?}", world.actions);
    live(&mut world, 12, &["b"]);
    assert!(world.json(Kind::Pod, "p").is_null(), "{:?}", world.actions);
}

// A cache that does not hear of renewals shows nothing: the read past it does.
#[test]
fn a_watch_that_is_late_makes_no_node_unknown() {
    let mut world = world();
    work(&mut world);
    world.frozen.insert(Kind::Lease);
    for _ in 0..40 {
        live(&mut world, 1, &["a", "b"]);
        assert_eq!(ready(&world, "a"), "True");
    }
    assert!(world.actions.iter().any(|action| action.starts_with("ReadLease(a)")));
}

// While nobody is heard of it may be us.
#[test]
fn nobody_is_evicted_while_no_other_node_is_ready() {
    let mut world = world();
    live(&mut world, 600, &[]);
    let taints = |world: &World, node: &str| -> Vec<Value> {
        let node = world.json(Kind::Node, node);
        node["spec"]["taints"].as_array().into_iter().flatten().map(|taint| taint["effect"].clone()).collect()
    };
    let both = [taints(&world, "a"), taints(&world, "b")];
    assert!(both.iter().any(|one| *one == ["NoSchedule"]), "the last one is only closed: {both:?}");
    // Whoever was first may have been evicted from while the other still was ready.
    live(&mut world, 5, &["b"]);
    world.patch_status(Kind::Node, "b", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    live(&mut world, 5, &["b"]);
    assert_eq!(taints(&world, "a"), ["NoSchedule", "NoExecute"]);
    assert!(taints(&world, "b").is_empty());
}

// The default tolerations are five minutes, and a pod that tolerates all stays.
#[test]
fn pods_leave_when_their_time_is_up() {
    let mut world = world();
    let all = json!([{ "operator": "Exists" }]);
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "tolerations": all });
    world.create(Kind::Pod, json!({ "metadata": { "name": "daemon" }, "spec": spec }));
    world.place("daemon", "a");
    live(&mut world, 305, &["b"]);
    let going = |world: &World, pod: &str| !world.json(Kind::Pod, pod)["metadata"]["deletionTimestamp"].is_null();
    assert!(!going(&world, "p"), "{:?}", world.actions);
    live(&mut world, 10, &["b"]);
    assert!(going(&world, "p") && !going(&world, "daemon"));
    // It waits for the word of its node, which is not heard of, for as long as that takes.
    live(&mut world, 300, &["b"]);
    assert!(going(&world, "p"));
    let text = format!("{}", world.decide(&Key::Pod(ObjectKey::new("n", "p"))).why());
    assert!(text.contains("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"), "{text}");
}

// A pod that asks for no time to end would be gone before its node has ended it.
#[test]
fn an_evicted_pod_that_asks_for_no_time_still_waits_for_its_node() {
    let mut world = world();
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "terminationGracePeriodSeconds": 0 });
    world.create(Kind::Pod, json!({ "metadata": { "name": "hasty" }, "spec": spec }));
    world.place("hasty", "a");
    world.patch(Kind::Node, "a", json!({ "spec": { "taints": [{ "key": "mine", "effect": "NoExecute" }] } }));
    live(&mut world, 3, &["a", "b"]);
    assert!(world.actions.contains(&"Evict(n/hasty)".into()), "{:?}", world.actions);
    assert!(!world.json(Kind::Pod, "hasty").is_null());
}
