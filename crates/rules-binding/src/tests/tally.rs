//! What is counted of waits.

use alloc::string::{String, ToString};
use alloc::sync::Arc;

use api::{PersistentVolume, PersistentVolumeClaim, names};
use control::Timestamp;
use serde_json::json;

use crate::{Action, EndedWait, WaitTally};

fn claim(uid: &str) -> Arc<PersistentVolumeClaim> {
    let annotations = json!({ names::STORAGE_PROVISIONER: "d" });
    let metadata = json!({ "name": "c", "namespace": "n", "uid": uid, "annotations": annotations });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
}

fn volume(uid: &str, policy: &str) -> Arc<PersistentVolume> {
    let metadata = json!({ "name": "v", "uid": uid, "annotations": { names::PROVISIONED_BY: "d" } });
    let spec = json!({ "persistentVolumeReclaimPolicy": policy });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
}

fn call(uid: &str) -> Action {
    Action::CallProvisioner { claim: claim(uid), provisioner: "d".to_string() }
}

fn bound(uid: &str) -> Action {
    Action::MarkClaimBound { claim: claim(uid), volume: volume("w", "Delete"), usage: None }
}

fn ended(operation: &'static str, took: Option<u64>) -> Option<EndedWait> {
    Some(EndedWait { operation, plugin: "d".into(), took })
}

/// An action that took from one moment to the next.
fn at(tally: &mut WaitTally, millis: u64, action: &Action) -> Option<EndedWait> {
    tally.ended((Timestamp(millis), Timestamp(millis + 1)), action, false)
}

#[test]
fn pv_46_a_claim_waits_from_the_first_call_until_it_is_bound() {
    let mut tally = WaitTally::default();
    assert_eq!(at(&mut tally, 100, &call("u")), None);
    assert_eq!(at(&mut tally, 200, &call("u")), None);
    assert_eq!(at(&mut tally, 499, &bound("u")), ended("provision", Some(400)));
    assert_eq!(at(&mut tally, 600, &bound("u")), None, "once");
    assert_eq!(at(&mut tally, 600, &bound("by-hand")), None, "nobody was asked for its volume");
    // A failure is counted, and does not end the wait.
    assert_eq!(at(&mut tally, 100, &call("x")), None);
    assert_eq!(tally.ended((Timestamp(1), Timestamp(2)), &call("x"), true), ended("provision", None));
    assert_eq!(tally.ended((Timestamp(1), Timestamp(2)), &bound("x"), true), None);
    assert_eq!(at(&mut tally, 199, &bound("x")), ended("provision", Some(100)));
}

#[test]
fn pv_46_a_claim_that_goes_is_forgotten() {
    let mut tally = WaitTally::default();
    at(&mut tally, 100, &call("u"));
    assert_eq!(at(&mut tally, 200, &Action::RemoveClaimFinalizer(claim("u"))), None);
    assert_eq!(at(&mut tally, 300, &bound("u")), None);
}

#[test]
fn pv_46_a_volume_waits_from_its_release_until_it_is_let_go() {
    let (mut tally, gone) = (WaitTally::default(), String::from("w"));
    let release = |policy: &str| Action::MarkReleased(volume(&gone, policy));
    let removal = Action::RemoveVolumeFinalizer(volume(&gone, "Delete"));
    assert_eq!(at(&mut tally, 100, &release("Retain")), None);
    assert_eq!(at(&mut tally, 200, &removal), None, "nobody was asked to delete it");
    assert_eq!(at(&mut tally, 300, &release("Delete")), None);
    let failed = Action::MarkFailed { volume: volume(&gone, "Delete"), message: String::new() };
    assert_eq!(at(&mut tally, 400, &failed), ended("delete", None));
    assert_eq!(at(&mut tally, 499, &removal), ended("delete", Some(200)));
}

#[test]
fn pv_46_only_a_failure_that_was_put_down_is_counted() {
    let failed = Action::MarkFailed { volume: volume("w", "Delete"), message: String::new() };
    let times = (Timestamp(1), Timestamp(2));
    assert_eq!(WaitTally::default().ended(times, &failed, false), ended("delete", None));
    assert_eq!(WaitTally::default().ended(times, &failed, true), None);
}
