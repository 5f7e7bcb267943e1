//! What becomes of a volume whose claim is gone: PV-27 to PV-32.

use api::{Kind, names};
use control::{EventType, Narrate, Rules};
use serde_json::{Value, json};

use super::world::World;
use crate::{Binding, Key, Local, Memory};

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

/// A volume whose claim is gone.
fn released(more: Value) -> World {
    let mut world = World::new().with_volume("v", "", "1Gi", more).with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    world.delete(CLAIM, "data");
    world.settle();
    world
}

fn event(world: &World) -> Option<(EventType, &'static str)> {
    let key = Key::Volume("v".into());
    let view = Binding::view(&key, &world.cache, &Local::default());
    Binding::rest_event(&key, Binding::decide(world.now, &view, &Memory::default()).why())
}

fn nfs(policy: &str) -> Value {
    let nfs = json!({ "server": "s", "path": "/p" });
    json!({ "spec": { "persistentVolumeReclaimPolicy": policy, "csi": null, "nfs": nfs } })
}

fn made_by(provisioner: &str, policy: &str) -> Value {
    let mut volume = nfs(policy);
    volume["metadata"] = json!({ "annotations": { names::PROVISIONED_BY: provisioner } });
    volume
}

// PV-29, PV-30, PV-32: Failed, with a message and a warning, where nobody can do what the policy asks for.
#[test]
fn pv_29_a_volume_that_nobody_can_recycle_or_delete_is_failed_and_says_so() {
    for (volume, reason) in [
        (json!({ "spec": { "persistentVolumeReclaimPolicy": "Recycle" } }), "VolumeFailedRecycle"),
        (nfs("Recycle"), "VolumeFailedRecycle"),
        (nfs("Delete"), "VolumeFailedDelete"),
        (made_by("kubernetes.io/rbd", "Delete"), "VolumeFailedDelete"),
        (made_by("kubernetes.io/host-path", "Delete"), "VolumeFailedDelete"),
    ] {
        let world = released(volume.clone());
        let status = world.volume("v")["status"].clone();
        assert_eq!(status["phase"], "Failed", "{volume}");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("claim n/data is gone, and ") && message.contains("by hand"), "{message}");
        assert_eq!(event(&world), Some((EventType::Warning, reason)), "{volume}");
    }
}

// PV-29: a pod that has not ended keeps a volume whose claim was taken away by force from being given up; one of a
// claim that has the name since is no user of it, nor is anything asked for other policies.
#[test]
fn pv_29_a_volume_to_recycle_waits_for_the_pods_that_use_it() {
    let forced = |policy: &str| {
        let mut world = World::new()
            .with_volume("v", "", "1Gi", nfs(policy))
            .with_claim("data", Some(""), "1Gi", json!({}))
            .with_pod_on("node", "p", "data");
        world.settle();
        world.delete(CLAIM, "data");
        world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": null } }));
        world.settle();
        world
    };
    let phase = |world: &World| world.volume("v")["status"]["phase"].clone();
    assert_eq!(phase(&forced("Delete")), "Failed");
    let mut world = forced("Recycle");
    assert_eq!((phase(&world), world.why_volume("v")), (json!("Released"), "VolumeUsed"));
    assert_eq!(event(&world), Some((EventType::Normal, "VolumeFailedRecycle")));
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    world.settle();
    assert_eq!((phase(&world), world.why_volume("v")), (json!("Failed"), "VolumeFailedRecycle"));

    let mut world = forced("Recycle").with_claim("data", Some("other"), "1Gi", json!({}));
    world.settle();
    assert_eq!(phase(&world), "Failed", "the pod is the new claim's");
}

// PV-25, PV-28: Failed stays, and is told once; a user who clears the reference has a free volume again.
#[test]
fn pv_25_a_failed_volume_stays_failed_until_it_is_cleared() {
    let mut world = released(nfs("Recycle"));
    world.actions.clear();
    world.patch(VOLUME, "v", json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } }));
    world.settle();
    assert!(world.actions.is_empty());
    assert_eq!(world.volume("v")["status"]["phase"], "Failed");
    assert_eq!((world.why_volume("v"), event(&world)), ("Retained", None));
    world.patch(VOLUME, "v", json!({ "spec": { "claimRef": null } }));
    world.settle();
    let status = world.volume("v")["status"].clone();
    assert_eq!((&status["phase"], &status["message"]), (&json!("Available"), &Value::Null));
}

// PV-27, PV-30, PV-31: what a driver is to delete is left to it without a word.
#[test]
fn pv_31_a_volume_of_a_driver_is_left_to_the_driver() {
    for volume in [
        json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } }),
        made_by("d", "Delete"),
        made_by("kubernetes.io/aws-ebs", "Delete"),
        made_by("kubernetes.io/aws-ebs", "Recycle"),
    ] {
        let world = released(volume.clone());
        assert_eq!(world.volume("v")["status"]["phase"], "Released", "{volume}");
        assert_eq!((world.why_volume("v"), event(&world)), ("Released", None), "{volume}");
    }
}

// Orchestrator 2.5: one is a filesystem, the other a raw device; both objects say so.
#[test]
fn a_volume_of_another_mode_than_its_claim_is_told_on_both() {
    let mut world = World::new().with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    let uid = world.claim("data")["metadata"]["uid"].clone();
    let claim_ref = json!({ "namespace": "n", "name": "data", "uid": uid });
    world.add_volume("v", "", "1Gi", json!({ "spec": { "volumeMode": "Block", "claimRef": claim_ref } }));
    world.settle();
    assert_eq!(event(&world), Some((EventType::Warning, "VolumeMismatch")));
    assert_eq!(world.why_claim("data"), "VolumeMismatch");
}
