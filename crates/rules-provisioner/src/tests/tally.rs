//! What is counted of attempts.

use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, SecretReference};
use control::{Cache, Secrets, Timestamp};
use serde_json::json;

use crate::{Action, AttemptGoal, AttemptTally, EndedAttempt, Key, Local, Made, Terms, VolumeRequest};

fn cache() -> Cache {
    let meta = json!({ "name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1" });
    let spec = json!({ "storageClassName": "fast", "dataSource": { "kind": "VolumeSnapshot", "name": "s" } });
    let claim = json!({ "metadata": meta, "spec": spec });
    let meta = json!({ "name": "v", "uid": "w", "resourceVersion": "1" });
    let volume = json!({ "metadata": meta, "spec": { "storageClassName": "fast" } });
    let mut cache = Cache::default();
    for (kind, object) in [(Kind::PersistentVolumeClaim, claim), (Kind::PersistentVolume, volume)] {
        cache.set(Object::from_json(kind, object).unwrap());
    }
    cache
}

fn claim() -> Key {
    Key::Claim { key: ObjectKey::new("n", "c"), uid: "u".into() }
}

fn read() -> Action {
    Action::ReadSecret { uid: "u".into(), secret: SecretReference::default(), needed: true }
}

fn create() -> Action {
    let (driver, request, secrets) = ("d".into(), VolumeRequest::default(), Secrets::default());
    Action::CreateVolume { uid: "u".into(), driver, request, secrets, in_tree: None, in_flight: None }
}

fn record() -> Action {
    let (local, terms, made) = (Local::default(), Terms::default(), Made::default());
    Action::CreatePv { claim: Arc::default(), local, terms, made, in_tree: None }
}

fn delete() -> Action {
    let (driver, volume_id, secrets) = ("d".into(), "v".into(), Secrets::default());
    Action::DeleteVolume { uid: "w".into(), driver, volume_id, secrets, undo: false }
}

/// Each step takes ten milliseconds.
fn counted(key: &Key, steps: &[(Action, bool)]) -> Vec<EndedAttempt> {
    let (mut tally, cache) = (AttemptTally::default(), cache());
    let times = (0..).map(|step| (Timestamp(step * 10), Timestamp(step * 10 + 10)));
    let mut ended = |(times, (action, failed)): (_, &(Action, bool))| tally.ended(times, key, action, *failed, &cache);
    times.zip(steps).filter_map(&mut ended).collect()
}

// Sidecars 2.13.
#[test]
fn an_attempt_is_counted_once_with_the_class_and_what_the_volume_is_made_from() {
    let goal = AttemptGoal::Provision { class: "fast".into(), source: "VolumeSnapshot".into() };
    let failed = EndedAttempt { goal, took: None };
    let steps = [(read(), false), (create(), true), (create(), true), (create(), false), (record(), false)];
    assert_eq!(counted(&claim(), &steps), [failed.clone(), failed.clone(), EndedAttempt { took: Some(20), ..failed }]);
}

#[test]
fn a_volume_is_deleted_when_the_driver_says_so_and_what_is_undone_for_a_claim_does_not_count() {
    let failed = EndedAttempt { goal: AttemptGoal::Delete { class: "fast".into() }, took: None };
    let done = EndedAttempt { took: Some(10), ..failed.clone() };
    assert_eq!(counted(&Key::Volume("v".into()), &[(delete(), true), (delete(), false)]), [failed, done]);
    assert_eq!(counted(&claim(), &[(delete(), false)]), []);
}
