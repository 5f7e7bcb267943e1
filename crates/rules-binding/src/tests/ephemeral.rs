//! Claims that are made from the templates in pods: PV-59 to PV-61.

use api::{Kind, ObjectKey};
use control::{Narrate, Rules, Timestamp};
use serde_json::{Value, json};

use super::world::World;
use crate::{Binding, Key, Local, Memory};

const CLAIM: Kind = Kind::PersistentVolumeClaim;

fn pod() -> Value {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let template = json!({ "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } }, "spec": spec });
    let volume = json!({ "name": "scratch", "ephemeral": { "volumeClaimTemplate": template } });
    let containers = json!([{ "name": "c", "image": "i" }]);
    json!({ "metadata": { "name": "p" }, "spec": { "containers": containers, "volumes": [volume] } })
}

// PV-59.
#[test]
fn pv_59_a_claim_is_made_with_the_pod_as_its_owner() {
    let mut world = World::new();
    world.create(Kind::Pod, pod());
    world.settle();
    let (claim, owner) = (world.claim("p-scratch"), world.get(Kind::Pod, "p").unwrap());
    let meta = &claim["metadata"];
    assert_eq!((&meta["labels"]["a"], &meta["annotations"]["c"]), (&json!("b"), &json!("d")));
    let wanted = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true });
    assert_eq!(meta["ownerReferences"], json!([wanted]));
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "1Gi");
    let made = world.actions.iter().filter(|action| action.starts_with("MakeClaim")).count();
    assert_eq!(made, 1);
}

// PV-60: somebody else's claim is not used, and the pod says so.
#[test]
fn pv_60_a_claim_of_another_is_a_conflict_that_is_told_on_the_pod() {
    let mut world = World::new().with_claim("p-scratch", Some(""), "1Gi", json!({}));
    world.create(Kind::Pod, pod());
    world.settle();
    let key = Key::Pod(ObjectKey::new("n", "p"));
    let view = Binding::view(&key, &world.cache, &Local::default());
    let decision = Binding::decide(Timestamp(0), &view, &Memory::default());
    assert!(decision.why().text.contains("is there already and is not the pod's"), "{}", decision.why());
    assert_eq!(Binding::rest_event(&key, decision.why()).map(|(_, reason)| reason), Some("FailedBinding"));
    assert_eq!(Binding::object(&key).kind, Kind::Pod);
    // Once it is gone the pod gets its own.
    world.delete(CLAIM, "p-scratch");
    world.settle();
    assert!(world.claim("p-scratch")["metadata"]["ownerReferences"].is_array());
}

// PV-60: nothing is made for a pod that goes; its claim goes with it.
#[test]
fn pv_60_the_claim_goes_with_the_pod() {
    let mut world = World::new();
    world.create(Kind::Pod, pod());
    world.settle();
    world.delete(Kind::Pod, "p");
    world.settle();
    assert!(world.get(CLAIM, "p-scratch").is_none());
}

// PV-61: a pod is found by the claims it names and by those it brings the templates of, and by no other of the name.
#[test]
fn pv_61_a_pod_is_found_by_both_sorts_of_claims() {
    let mut world = World::new().with_claim("named", Some(""), "1Gi", json!({}));
    let mut both = pod();
    let named = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "named" } });
    both["spec"]["volumes"].as_array_mut().unwrap().push(named);
    world.create(Kind::Pod, both);
    world.settle();
    let found = |claim: &str| world.cache.pods_by_claim(claim).count();
    assert_eq!([found("n/named"), found("n/p-scratch")], [1, 1]);
    assert_eq!([found("n/scratch"), found("n/p-data"), found("other/named")], [0, 0, 0]);
}
