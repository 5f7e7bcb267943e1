use alloc::vec::Vec;

use api::{Kind, ObjectKey, names};
use control::{Cache, Decision, Engine, Outcome, Reply, Rules, Timestamp};
use serde_json::json;

use super::world::World;
use crate::{Binding, Key, Local};

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

fn bound() -> World {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    assert_eq!(world.claim("data")["status"]["phase"], "Bound");
    world.actions.clear();
    world
}

// PV-25: Pending → Available → Bound → Released, and reliability 17.
#[test]
fn a_released_volume_is_not_bound_again_until_a_user_clears_it() {
    let mut world = bound();
    world.delete(CLAIM, "data");
    world.settle();
    assert!(world.get(CLAIM, "data").is_none());
    assert_eq!(world.volume("v")["status"]["phase"], "Released");
    let (looks, ends) =
        (["LookForUsers(n/data)", "RemoveClaimFinalizer(n/data)"], ["LookForClaim(n/data)", "MarkReleased(v)"]);
    assert_eq!(world.actions, [looks, ends].concat());
    assert_eq!(world.why_volume("v"), "Retained"); // PV-28

    world = world.with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");

    world.patch(VOLUME, "v", json!({ "spec": { "claimRef": null } }));
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "v");
}

// Reliability 105: the cache has not shown the claim yet, and the volume is not given away.
#[test]
fn a_claim_only_the_cache_does_not_know_keeps_its_volume() {
    let world = bound();
    let volume = api::Object::from_json(VOLUME, world.volume("v")).unwrap();
    let claim = api::Object::from_json(CLAIM, world.claim("data")).unwrap();
    let mut cache = Cache::default();
    Binding::watches().iter().for_each(|kind| drop(cache.replace(*kind, 0, Vec::new())));
    cache.set(volume);
    let (key, mut engine) = (Key::Volume("v".into()), Engine::<Binding>::new(Local::default()));
    let ask = |engine: &mut Engine<Binding>, now, cache: &Cache| {
        let Decision::Do(action, why) = engine.decide(now, &key, cache) else { panic!() };
        assert!(matches!(action, crate::Action::LookForClaim { .. }));
        engine.begin(&key, action, why);
    };

    ask(&mut engine, Timestamp(0), &cache);
    engine.ended(Timestamp(0), &key, &Outcome::Done(Reply::Object(claim)), &cache);
    assert!(matches!(engine.decide(Timestamp(0), &key, &cache), Decision::Wait(Timestamp(1_000), _)));
    ask(&mut engine, Timestamp(1_000), &cache);

    // An unanswered read proves nothing either.
    engine.ended(Timestamp(1_000), &key, &Outcome::Unknown("cut off".into()), &cache);
    assert!(engine.decide(Timestamp(1_000), &key, &cache).why().text.contains("cut off"));
    ask(&mut engine, Timestamp(10_000), &cache);
}

// Reliability 19, PV-22, PV-23.
#[test]
fn a_claim_whose_volume_vanished_is_lost_and_recovers_with_it() {
    let mut world = bound();
    let spec = world.volume("v")["spec"].clone();
    world.patch(VOLUME, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(VOLUME, "v");
    world.settle();
    let claim = world.claim("data");
    assert_eq!(claim["status"]["phase"], "Lost");
    assert!(claim["status"]["capacity"].is_null());
    assert_eq!(claim["spec"]["volumeName"], "v");
    assert_eq!(world.why_claim("data"), "VolumeVanished");

    world.create(VOLUME, json!({ "metadata": { "name": "v" }, "spec": spec }));
    world.settle();
    assert_eq!(world.claim("data")["status"]["phase"], "Bound");
    assert_eq!(world.claim("data")["status"]["capacity"]["storage"], "1Gi");
}

// Orchestrator 2.4, last row.
#[test]
fn a_claim_whose_volume_went_to_another_claim_is_lost() {
    let mut world = bound();
    let other = json!({ "namespace": "n", "name": "other", "uid": "x" });
    world.patch(VOLUME, "v", json!({ "spec": { "claimRef": other } }));
    world.settle();
    assert_eq!(world.claim("data")["status"]["phase"], "Lost");
    assert_eq!(world.why_claim("data"), "ClaimMisbound");
}

// Orchestrator 2.4: somebody cleared the volume's side; nobody else may have it meanwhile (reliability 16).
#[test]
fn a_torn_binding_is_mended_before_anybody_else_gets_the_volume() {
    let mut world = bound();
    world.patch(VOLUME, "v", json!({ "spec": { "claimRef": null } }));
    world = world.with_claim("a-thief", Some(""), "1Gi", json!({}));
    world.settle();
    assert_eq!(world.volume("v")["spec"]["claimRef"]["name"], "data");
    assert_eq!(world.why_claim("a-thief"), "NoVolumeFits");
    assert_eq!(world.why_claim("data"), "Bound");
}

// PV-54, reliability 21.
#[test]
fn a_claim_outlives_its_pods() {
    let mut world = bound().with_pod_on("a", "p", "data");
    world.delete(CLAIM, "data");
    world.settle();
    assert_eq!(world.why_claim("data"), "ClaimInUse");
    let why = world.why(&Key::Claim(ObjectKey::new("n", "data")));
    assert!(why.text.ends_with(": p"), "{}", why.text);
    // PV-55: one that has ended holds it as well, until it is deleted.
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    world.settle();
    assert_eq!(world.why_claim("data"), "ClaimInUse");
    world.delete(Kind::Pod, "p");
    world.settle();
    assert!(world.get(CLAIM, "data").is_none());
}

// PV-55: a pod without a node has mounted nothing and gets no node any more.
#[test]
fn pv_55_a_pod_without_a_node_does_not_hold_a_claim() {
    let mut world = bound().with_pod("p", "data");
    world.actions.clear();
    world.delete(CLAIM, "data");
    world.settle();
    assert!(world.get(CLAIM, "data").is_none());
    // The list past the cache, which shows the pod, is judged in the same way.
    assert_eq!(world.actions[..2], ["LookForUsers(n/data)", "RemoveClaimFinalizer(n/data)"]);
}

#[test]
fn a_deleted_pod_lets_its_claim_go() {
    let mut world = bound().with_pod_on("a", "p", "data");
    world.delete(CLAIM, "data");
    world.settle();
    world.delete(Kind::Pod, "p");
    world.settle();
    assert!(world.get(CLAIM, "data").is_none());
}

// PV-53, reliability 21.
#[test]
fn a_bound_volume_outlives_its_deletion() {
    let mut world = bound();
    world.delete(VOLUME, "v");
    world.settle();
    assert_eq!(world.volume("v")["status"]["phase"], "Bound");
    assert!(world.actions.is_empty());
    world.delete(CLAIM, "data");
    world.settle();
    assert!(world.get(VOLUME, "v").is_none());
}

#[test]
fn a_free_volume_being_deleted_is_let_go_and_not_bound() {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({}));
    world.settle();
    world.patch(VOLUME, "v", json!({ "metadata": { "finalizers": [names::PV_PROTECTION, "x/y"] } }));
    world.delete(VOLUME, "v");
    world = world.with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    assert_eq!(world.volume("v")["metadata"]["finalizers"], json!(["x/y"]));
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
}

// PV-52: objects older than the protection get it.
#[test]
fn missing_protection_is_added() {
    let mut world = bound();
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": null } }));
    world.patch(VOLUME, "v", json!({ "metadata": { "finalizers": null } }));
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
    assert_eq!(world.volume("v")["metadata"]["finalizers"], json!([names::PV_PROTECTION]));
}

// PV-24: growth is not binding's to report.
#[test]
fn a_larger_volume_does_not_change_a_bound_claims_capacity() {
    let mut world = bound();
    world.patch(VOLUME, "v", json!({ "spec": { "capacity": { "storage": "9Gi" } } }));
    world.settle();
    assert_eq!(world.claim("data")["status"]["capacity"]["storage"], "1Gi");
    assert!(world.actions.is_empty());
}
