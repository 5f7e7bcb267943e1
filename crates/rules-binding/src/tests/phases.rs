use api::{Kind, ObjectKey, names};
use control::{Cache, Decision, Outcome, Reply, Rules, Tick};
use serde_json::json;

use super::world::World;
use crate::{Binding, Key};

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

fn bound() -> World {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", json!({}));
    world.run();
    assert_eq!(world.claim("data")["status"]["phase"], "Bound");
    world.log.clear();
    world
}

// PV-25: Pending → Available → Bound → Released, and reliability 17.
#[test]
fn a_released_volume_is_not_bound_again_until_a_user_clears_it() {
    let mut world = bound();
    world.delete(CLAIM, "data");
    world.run();
    assert!(world.get(CLAIM, "data").is_none());
    assert_eq!(world.volume("v")["status"]["phase"], "Released");
    assert_eq!(world.log, ["UnprotectClaim(n/data)", "LookForClaim(n/data)", "MarkReleased(v)"]);
    assert_eq!(world.why_volume("v"), "Retained"); // PV-28

    world = world.with_claim("data", Some(""), "1Gi", json!({}));
    world.run();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");

    world.patch(VOLUME, "v", false, json!({ "spec": { "claimRef": null } }));
    world.run();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "v");
}

// Reliability 105: the cache has not shown the claim yet, and the volume is not given away.
#[test]
fn a_claim_only_the_cache_does_not_know_keeps_its_volume() {
    let world = bound();
    let volume = api::Object::from_json(VOLUME, world.volume("v")).unwrap();
    let claim = api::Object::from_json(CLAIM, world.claim("data")).unwrap();
    let mut cache = Cache::default();
    cache.set(volume);
    let key = Key::Volume("v".into());
    let decide = |now, memory: &crate::Memory| Binding::decide(now, &Binding::view(&key, &cache, &()), memory);

    let memory = crate::Memory::default();
    let Decision::Do(action, _) = decide(Tick(0), &memory) else { panic!() };
    let memory = Binding::remember(Tick(0), memory, &action, &Outcome::Done(Reply::Object(claim)));
    assert!(matches!(decide(Tick(0), &memory), Decision::Wait(Tick(1_000), _)));
    assert!(matches!(decide(Tick(1_000), &memory), Decision::Do(crate::Action::LookForClaim { .. }, _)));

    // An unanswered read proves nothing either.
    let memory = Binding::remember(Tick(0), crate::Memory::default(), &action, &Outcome::Unknown("cut off".into()));
    assert!(decide(Tick(0), &memory).why().text.contains("cut off"));
    assert!(matches!(decide(Tick(10_000), &memory), Decision::Do(crate::Action::LookForClaim { .. }, _)));
}

// Reliability 19, PV-22, PV-23.
#[test]
fn a_claim_whose_volume_vanished_is_lost_and_recovers_with_it() {
    let mut world = bound();
    let spec = world.volume("v")["spec"].clone();
    world.patch(VOLUME, "v", false, json!({ "metadata": { "finalizers": null } }));
    world.delete(VOLUME, "v");
    world.run();
    let claim = world.claim("data");
    assert_eq!(claim["status"]["phase"], "Lost");
    assert!(claim["status"]["capacity"].is_null());
    assert_eq!(claim["spec"]["volumeName"], "v");
    assert_eq!(world.why_claim("data"), "VolumeVanished");

    world.create(VOLUME, json!({ "metadata": { "name": "v" }, "spec": spec }));
    world.run();
    assert_eq!(world.claim("data")["status"]["phase"], "Bound");
    assert_eq!(world.claim("data")["status"]["capacity"]["storage"], "1Gi");
}

// Orchestrator 2.4, last row.
#[test]
fn a_claim_whose_volume_went_to_another_claim_is_lost() {
    let mut world = bound();
    let other = json!({ "namespace": "n", "name": "other", "uid": "x" });
    world.patch(VOLUME, "v", false, json!({ "spec": { "claimRef": other } }));
    world.run();
    assert_eq!(world.claim("data")["status"]["phase"], "Lost");
    assert_eq!(world.why_claim("data"), "ClaimMisbound");
}

// Orchestrator 2.4: somebody cleared the volume's side; nobody else may have it meanwhile (reliability 16).
#[test]
fn a_torn_binding_is_mended_before_anybody_else_gets_the_volume() {
    let mut world = bound();
    world.patch(VOLUME, "v", false, json!({ "spec": { "claimRef": null } }));
    world = world.with_claim("a-thief", Some(""), "1Gi", json!({}));
    world.run();
    assert_eq!(world.volume("v")["spec"]["claimRef"]["name"], "data");
    assert_eq!(world.why_claim("a-thief"), "NoVolumeFits");
    assert_eq!(world.why_claim("data"), "Bound");
}

// PV-54, reliability 21.
#[test]
fn a_claim_outlives_its_pods() {
    let mut world = bound().with_pod("p", "data");
    world.delete(CLAIM, "data");
    world.run();
    assert_eq!(world.why_claim("data"), "ClaimInUse");
    let why = world.why(&Key::Claim(ObjectKey::new("n", "data")));
    assert!(why.text.ends_with(": p"), "{}", why.text);
    world.patch(Kind::Pod, "p", true, json!({ "status": { "phase": "Succeeded" } }));
    world.run();
    assert!(world.get(CLAIM, "data").is_none());
}

#[test]
fn a_deleted_pod_lets_its_claim_go() {
    let mut world = bound().with_pod("p", "data");
    world.delete(CLAIM, "data");
    world.run();
    world.delete(Kind::Pod, "p");
    world.run();
    assert!(world.get(CLAIM, "data").is_none());
}

// PV-53, reliability 21.
#[test]
fn a_bound_volume_outlives_its_deletion() {
    let mut world = bound();
    world.delete(VOLUME, "v");
    world.run();
    assert_eq!(world.volume("v")["status"]["phase"], "Bound");
    assert!(world.log.is_empty());
    world.delete(CLAIM, "data");
    world.run();
    assert!(world.get(VOLUME, "v").is_none());
}

#[test]
fn a_free_volume_being_deleted_is_let_go_and_not_bound() {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({}));
    world.run();
    world.patch(VOLUME, "v", false, json!({ "metadata": { "finalizers": [names::PV_PROTECTION, "x/y"] } }));
    world.delete(VOLUME, "v");
    world = world.with_claim("data", Some(""), "1Gi", json!({}));
    world.run();
    assert_eq!(world.volume("v")["metadata"]["finalizers"], json!(["x/y"]));
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
}

// PV-52: objects older than the protection get it.
#[test]
fn missing_protection_is_added() {
    let mut world = bound();
    world.patch(CLAIM, "data", false, json!({ "metadata": { "finalizers": null } }));
    world.patch(VOLUME, "v", false, json!({ "metadata": { "finalizers": null } }));
    world.run();
    assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
    assert_eq!(world.volume("v")["metadata"]["finalizers"], json!([names::PV_PROTECTION]));
}

// PV-24: growth is not binding's to report.
#[test]
fn a_larger_volume_does_not_change_a_bound_claims_capacity() {
    let mut world = bound();
    world.patch(VOLUME, "v", false, json!({ "spec": { "capacity": { "storage": "9Gi" } } }));
    world.run();
    assert_eq!(world.claim("data")["status"]["capacity"]["storage"], "1Gi");
    assert!(world.log.is_empty());
}
