//! What users see on their claims while they wait, and what is said about claims that are not as they should be.

use alloc::format;
use alloc::string::String;

use api::{Kind, ObjectKey, names};
use control::{EventType, Narrate, Rules, Timestamp};
use serde_json::json;

use super::world::World;
use crate::{Binding, Key, Local, Memory};

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

/// The event about a key that rests, as `kubectl describe` shows it; `-` for none.
fn told(world: &World, key: Key) -> String {
    let view = Binding::view(&key, &world.cache, &Local::default());
    let decision = Binding::decide(Timestamp(0), &view, &Memory::default());
    let why = decision.why();
    match Binding::rest_event(&key, why) {
        None => format!("- {}", why.text),
        Some((EventType::Normal, reason)) => format!("Normal {reason} {}", why.text),
        Some((EventType::Warning, reason)) => format!("Warning {reason} {}", why.text),
    }
}

fn claim_told(world: &mut World, name: &str) -> String {
    world.settle();
    told(world, Key::Claim(ObjectKey::new("n", name)))
}

fn starts(said: &str, start: &str) {
    assert!(said.starts_with(start), "{said}");
}

#[test]
fn a_claim_that_waits_says_so_under_upstreams_reasons() {
    let late = json!({ "volumeBindingMode": "WaitForFirstConsumer" });
    let mut world = World::new()
        .class("fast", "d", json!({}))
        .class("late", "d", late)
        .class("old", "kubernetes.io/rbd", json!({}))
        .class("manual", "kubernetes.io/no-provisioner", json!({}));
    for (name, class, event) in [
        ("a", Some("missing"), "Warning ProvisioningFailed storage class missing does not exist"),
        ("b", Some("late"), "Normal WaitForFirstConsumer class late"),
        ("c", Some("fast"), "Normal ExternalProvisioning waiting for provisioner d"),
        ("d", None, "Normal FailedBinding no volume fits the claim and it has no storage class"),
        ("e", Some("manual"), "Normal FailedBinding no volume fits the claim and class manual makes none"),
        ("f", Some("old"), "Warning ProvisioningFailed class old names kubernetes.io/rbd"),
    ] {
        world = world.with_claim(name, class, "1Gi", json!({}));
        starts(&claim_told(&mut world, name), event);
    }
    world = world.with_pod("p", "b");
    starts(&claim_told(&mut world, "b"), "Normal WaitForPodScheduled class late waits for one of these pods");
    let selector = json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } });
    world = world.with_claim("g", Some(""), "1Gi", selector);
    starts(&claim_told(&mut world, "g"), "Normal FailedBinding no volume fits the claim");
    world = world.with_claim("h", Some(""), "1Gi", json!({ "spec": { "volumeName": "nowhere" } }));
    starts(&claim_told(&mut world, "h"), "Warning FailedBinding volume nowhere, which the claim names, does not exist");
}

#[test]
fn a_claim_that_cannot_have_its_volume_says_whose_it_is() {
    let names = |volume: &str| json!({ "spec": { "volumeName": volume } });
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("mine", Some(""), "1Gi", names("v"));
    starts(&claim_told(&mut world, "mine"), "- the claim is bound");
    world = world.with_claim("thief", Some(""), "1Gi", names("v"));
    let taken = "Warning FailedBinding volume v, which the claim names, belongs to claim n/mine";
    assert_eq!(claim_told(&mut world, "thief"), taken);

    // A namesake of the claim that had a retained volume.
    world.delete(CLAIM, "mine");
    world.settle();
    world = world.with_claim("mine", Some(""), "1Gi", names("v"));
    let earlier = "Warning FailedBinding volume v, which the claim names, belongs to an earlier claim of the same \
                   name; clear spec.claimRef";
    starts(&claim_told(&mut world, "mine"), earlier);

    world = world.with_volume("small", "", "1Gi", json!({})).with_claim("big", Some(""), "2Gi", names("small"));
    starts(&claim_told(&mut world, "big"), "Warning VolumeMismatch volume small");
}

// PV-22, PV-23.
#[test]
fn a_claim_that_lost_its_volume_says_so() {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    world.patch(VOLUME, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(VOLUME, "v");
    assert_eq!(claim_told(&mut world, "data"), "Warning ClaimLost volume v does not exist any more");
    let other = json!({ "spec": { "claimRef": { "namespace": "n", "name": "x", "uid": "x" } } });
    world.add_volume("v", "", "1Gi", other);
    assert_eq!(claim_told(&mut world, "data"), "Warning ClaimMisbound volume v belongs to claim n/x now");
}

// Nothing is called settled while somebody has work left.
#[test]
fn deletion_that_others_hold_up_names_their_finalizers() {
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    let mut world =
        World::new().with_volume("v", "", "1Gi", held.clone()).with_claim("data", Some(""), "1Gi", held.clone());
    world.settle();
    world.delete(VOLUME, "v");
    world.settle();
    let waits = "- the volume is being deleted once claim n/data, to which it is bound, is gone";
    assert_eq!(told(&world, Key::Volume("v".into())), waits);
    world.delete(CLAIM, "data");
    world.settle();
    let text = "is being deleted and waits for the owners of these finalizers to remove them: example.com/hold";
    let key = Key::Claim(ObjectKey::new("n", "data"));
    assert_eq!(told(&world, key.clone()), format!("- the claim {text}"));
    assert!(!world.why(&key).settled);
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": null } }));
    world.settle();
    assert_eq!(told(&world, Key::Volume("v".into())), format!("- the volume {text}"));
    assert!(!world.why(&Key::Volume("v".into())).settled);
}

// EX-5, EX-6, EX-8: each change of the claim is looked at; it says so once, and no longer than it is true.
#[test]
fn a_claim_that_asks_for_more_than_it_has_is_not_settled() {
    let grows = json!({ "allowVolumeExpansion": true });
    let mut world = World::new().class("fast", "d", grows).with_volume("v", "fast", "1Gi", json!({})).with_claim(
        "data",
        Some("fast"),
        "1Gi",
        json!({}),
    );
    starts(&claim_told(&mut world, "data"), "- the claim is bound");
    world.patch(CLAIM, "data", json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }));
    let waits = "Normal ExternalExpanding the claim is bound to volume v and waits for d to grow it from 1Gi to 2Gi";
    assert_eq!(claim_told(&mut world, "data"), waits);
    world.patch_status(CLAIM, "data", json!({ "capacity": { "storage": "2Gi" } }));
    starts(&claim_told(&mut world, "data"), "- the claim is bound");
}

// EX-7, S4-20, S4-22: the driver that has taken over a plugin is named on the claim; EX-8: any other is not.
#[test]
fn ex_7_a_claim_of_a_migrated_volume_that_asks_for_more_names_the_driver() {
    let grows = json!({ "allowVolumeExpansion": true });
    let disk = json!({ "spec": { "csi": null, "awsElasticBlockStore": { "volumeID": "vol-1" } } });
    let mut world = World::new().class("fast", "d", grows).with_volume("v", "fast", "1Gi", disk).with_claim(
        "data",
        Some("fast"),
        "1Gi",
        json!({}),
    );
    starts(&claim_told(&mut world, "data"), "- the claim is bound");
    world.actions.clear();
    world.patch(CLAIM, "data", json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }));
    starts(
        &claim_told(&mut world, "data"),
        "Normal ExternalExpanding the claim is bound to volume v and waits for ebs",
    );
    assert_eq!(world.actions, ["CallResizer(n/data)"]);
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_RESIZER], "ebs.csi.aws.com");
}

// PV-24: a growth that an earlier claim did not see finished is finished under the next one.
#[test]
fn pv_24_a_volume_that_has_not_grown_into_its_size_gives_the_claim_the_size_it_had() {
    for (said, has) in [("1Gi", "1Gi"), ("much", "2Gi")] {
        let before = json!({ "metadata": { "annotations": { names::PRE_RESIZE_CAPACITY: said } } });
        let mut world = World::new().with_volume("v", "", "2Gi", before).with_claim("data", Some(""), "1Gi", json!({}));
        world.settle();
        assert_eq!(world.claim("data")["status"]["capacity"]["storage"], has, "{said}");
    }
}
