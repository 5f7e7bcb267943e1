//! PV-57: whether a claim is used.

use api::{Kind, names};
use serde_json::{Value, json};

use super::world::World;
use crate::Local;

const CLAIM: Kind = Kind::PersistentVolumeClaim;

fn told(world: &World) -> Value {
    let claim = world.claim("data");
    let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == names::UNUSED).unwrap_or_default()
}

fn world() -> World {
    let mut world = World::new();
    world.restart(Local { tells_use: true, ..Local::default() });
    world
}

fn claim() -> World {
    world().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", json!({}))
}

#[test]
fn pv_57_a_bound_claim_says_whether_a_pod_uses_it() {
    let mut world = claim();
    world.settle();
    // It costs no write of its own while the claim is being bound.
    assert!(!world.log.contains(&"TellUse"));
    assert_eq!((&told(&world)["status"], &told(&world)["reason"]), (&json!("True"), &json!("NoPodsUsingPVC")));
    let unused_since = told(&world)["lastTransitionTime"].clone();

    // A pod without a node is a user.
    world.now.0 += 60_000;
    world = world.with_pod("p", "data");
    world.settle();
    assert_eq!((&told(&world)["status"], &told(&world)["reason"]), (&json!("False"), &json!("PodUsingPVC")));
    assert_ne!(told(&world)["lastTransitionTime"], unused_since);

    // Another user is no change.
    world.actions.clear();
    world = world.with_pod("q", "data");
    world.settle();
    assert!(world.actions.is_empty());

    // Those that have ended are none.
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    world.patch_status(Kind::Pod, "q", json!({ "phase": "Failed" }));
    world.settle();
    assert_eq!(told(&world)["status"], "True");
    assert_eq!(world.actions, ["TellUse(n/data)"]);
}

#[test]
fn pv_57_conditions_of_others_stay_and_claims_that_wait_or_go_say_nothing() {
    let mut world = world().with_claim("data", Some(""), "1Gi", json!({})).with_pod_on("a", "p", "data");
    world.settle();
    assert!(told(&world).is_null());
    let others = json!([{ "type": "Resizing", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    world.patch_status(CLAIM, "data", json!({ "conditions": others }));
    world.add_volume("v", "", "1Gi", json!({}));
    world.settle();
    assert_eq!(told(&world)["status"], "False");
    assert_eq!(world.claim("data")["status"]["conditions"][0]["type"], "Resizing");

    world.delete(CLAIM, "data");
    world.settle();
    world.actions.clear();
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    world.settle();
    assert!(world.actions.is_empty());
}
