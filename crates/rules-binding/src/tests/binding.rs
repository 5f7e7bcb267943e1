use api::{Kind, names};
use serde_json::json;

use super::world::World;

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

fn nothing() -> serde_json::Value {
    json!({})
}

// PV-36: both annotations in one write, nothing else. PV-40: no status is written on this path.
#[test]
fn a_claim_nothing_fits_calls_the_provisioner_of_its_class() {
    let mut world = World::new().class("fast", "d", nothing()).with_claim("data", Some("fast"), "1Gi", nothing());
    world.settle();
    assert_eq!(world.actions, ["CallProvisioner(n/data)"]);
    let annotations = &world.claim("data")["metadata"]["annotations"];
    assert_eq!(annotations[names::STORAGE_PROVISIONER], "d");
    assert_eq!(annotations[names::STORAGE_PROVISIONER_BETA], "d");
    assert_eq!(world.why_claim("data"), "ExternalProvisioning");
}

// PV-45, PV-47: binding is a look of its own once the volume arrives with its claimRef; PV-20: what is left of the
// four writes, in order.
#[test]
fn a_provisioned_volume_is_bound_in_three_writes() {
    let mut world = World::new().class("fast", "d", nothing()).with_claim("data", Some("fast"), "1Gi", nothing());
    world.settle();
    world.actions.clear();
    let uid = world.claim("data")["metadata"]["uid"].clone();
    let claim_ref = json!({ "namespace": "n", "name": "data", "uid": uid });
    world.add_volume("pvc-1", "fast", "2Gi", json!({ "spec": { "claimRef": claim_ref } }));
    world.settle();
    assert_eq!(world.actions, ["MarkVolumeBound(pvc-1)", "PointClaim(n/data)", "MarkClaimBound(n/data)"]);
    let claim = world.claim("data");
    assert_eq!(claim["spec"]["volumeName"], "pvc-1");
    assert_eq!(claim["metadata"]["annotations"][names::BIND_COMPLETED], "yes");
    assert_eq!(claim["metadata"]["annotations"][names::BOUND_BY_CONTROLLER], "yes");
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "2Gi"); // PV-24: the volume's, not the request
    assert_eq!(world.volume("pvc-1")["status"]["phase"], "Bound");
    assert!(world.volume("pvc-1")["metadata"]["annotations"][names::BOUND_BY_CONTROLLER].is_null());
}

// PV-13, PV-14, reliability 23: exact access modes first, then the smallest that is large enough.
#[test]
fn the_smallest_fitting_volume_of_the_class_is_taken() {
    let many = json!({ "spec": { "accessModes": ["ReadWriteOnce", "ReadOnlyMany"] } });
    let mut world = World::new()
        .with_volume("a-big", "hand", "9Gi", nothing())
        .with_volume("b-right", "hand", "2Gi", nothing())
        .with_volume("c-same", "hand", "2Gi", nothing())
        .with_volume("d-small", "hand", "1Gi", nothing())
        .with_volume("e-modes", "hand", "2Gi", many)
        .with_volume("f-class", "other", "2Gi", nothing())
        .with_volume("g-block", "hand", "2Gi", json!({ "spec": { "volumeMode": "Block" } }))
        .class("hand", names::NO_PROVISIONER, nothing());
    world.settle();
    world = world.with_claim("data", Some("hand"), "1.5Gi", nothing());
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "b-right");
    let volume = world.volume("b-right");
    assert_eq!(volume["metadata"]["annotations"][names::BOUND_BY_CONTROLLER], "yes");
    assert_eq!(volume["spec"]["claimRef"]["uid"], world.claim("data")["metadata"]["uid"]);
}

// PV-13: a volume of just the modes that are asked for comes before a smaller one that offers more; who asks for more
// gets that one.
#[test]
fn pv_13_exact_access_modes_count_for_more_than_size() {
    let both = json!({ "spec": { "accessModes": ["ReadWriteOnce", "ReadOnlyMany"] } });
    for (asked, takes) in [(nothing(), "large-and-exact"), (both.clone(), "small-of-more")] {
        let mut world = World::new().with_volume("large-and-exact", "", "9Gi", nothing()).with_volume(
            "small-of-more",
            "",
            "1Gi",
            both.clone(),
        );
        world.settle();
        world = world.with_claim("data", Some(""), "1Gi", asked.clone());
        world.settle();
        assert_eq!(world.claim("data")["spec"]["volumeName"], takes, "{asked}");
    }
}

#[test]
fn a_volume_that_appears_later_wakes_the_claim_that_wants_it() {
    let mut world =
        World::new().class("hand", names::NO_PROVISIONER, nothing()).with_claim("data", Some("hand"), "1Gi", nothing());
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
    world.add_volume("v", "hand", "1Gi", nothing());
    world.settle();
    assert_eq!(world.claim("data")["status"]["phase"], "Bound");
}

// Reliability 16: two claims, one volume.
#[test]
fn one_volume_is_never_given_to_two_claims() {
    let mut world = World::new()
        .class("hand", names::NO_PROVISIONER, nothing())
        .with_claim("a", Some("hand"), "1Gi", nothing())
        .with_claim("b", Some("hand"), "1Gi", nothing());
    world.add_volume("v", "hand", "1Gi", nothing());
    world.settle();
    let bound = ["a", "b"].map(|name| world.claim(name)["status"]["phase"] == "Bound");
    assert_eq!(bound.iter().filter(|bound| **bound).count(), 1);
}

// PV-8, PV-15, PV-21, PV-42: reserved by name; the class does not count, the mark is not set.
#[test]
fn a_volume_reserved_by_name_is_taken_and_keeps_no_mark_of_ours() {
    let reserved = json!({ "spec": { "claimRef": { "namespace": "n", "name": "data" } } });
    let mut world = World::new()
        .class("late", "d", json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .with_volume("free", "late", "1Gi", nothing())
        .with_volume("mine", "", "5Gi", reserved)
        .with_claim("data", Some("late"), "1Gi", nothing());
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "mine");
    let volume = world.volume("mine");
    assert_eq!(volume["spec"]["claimRef"]["uid"], world.claim("data")["metadata"]["uid"]);
    assert!(volume["metadata"]["annotations"][names::BOUND_BY_CONTROLLER].is_null());
}

#[test]
fn a_volume_reserved_for_somebody_else_is_left_alone() {
    let reserved = json!({ "spec": { "claimRef": { "namespace": "n", "name": "other" } } });
    let stale = json!({ "spec": { "claimRef": { "namespace": "n", "name": "data", "uid": "older" } } });
    let mut world = World::new()
        .with_volume("theirs", "", "1Gi", reserved)
        .with_volume("stale", "", "1Gi", stale)
        .with_claim("data", Some(""), "1Gi", nothing());
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
    assert_eq!(world.claim("data")["status"]["phase"], "Pending");
}

// PV-16, PV-21, PV-43: a claim that names its volume.
#[test]
fn a_claim_that_names_a_volume_gets_that_one_or_none() {
    let mut world = World::new()
        .with_volume("small", "", "1Gi", nothing())
        .with_volume("right", "", "5Gi", nothing())
        .with_claim("a", Some(""), "2Gi", json!({ "spec": { "volumeName": "right" } }))
        .with_claim("b", Some(""), "2Gi", json!({ "spec": { "volumeName": "small" } }))
        .with_claim("c", Some(""), "2Gi", json!({ "spec": { "volumeName": "nowhere" } }))
        .with_claim("d", Some(""), "2Gi", json!({ "spec": { "volumeName": "right" } }));
    world.settle();
    assert_eq!(world.claim("a")["status"]["phase"], "Bound");
    assert!(world.claim("a")["metadata"]["annotations"][names::BOUND_BY_CONTROLLER].is_null());
    assert_eq!(world.why_claim("b"), "VolumeMismatch");
    assert_eq!(world.why_claim("c"), "VolumeNotFound");
    assert_eq!(world.why_claim("d"), "VolumeTaken");
}

// PV-17, reliability 22: only when nothing was named; the newest default wins.
#[test]
fn a_claim_without_class_gets_the_default_one_later_on() {
    let default = json!({ "metadata": { "annotations": { names::DEFAULT_CLASS: "true" } } });
    let mut world = World::new()
        .with_claim("none", None, "1Gi", nothing())
        .with_claim("refuses", Some(""), "1Gi", nothing())
        .class("plain", "x", nothing());
    world.settle();
    assert_eq!(world.why_claim("none"), "NoVolumeFits");
    world = world.class("standard", "d", default);
    world.settle();
    assert_eq!(world.claim("none")["spec"]["storageClassName"], "standard");
    assert_eq!(world.claim("none")["metadata"]["annotations"][names::STORAGE_PROVISIONER], "d");
    assert_eq!(world.claim("refuses")["spec"]["storageClassName"], "");
}

// PV-17: a classless volume comes before the default class.
#[test]
fn a_classless_volume_wins_over_the_default_class() {
    let mut world = World::new().with_claim("data", None, "1Gi", nothing());
    world.add_volume("v", "", "1Gi", nothing());
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "v");
}

// PV-44: which free volume suits the chosen node is the scheduler's to say; one is made unless it reserves one.
#[test]
fn pv_44_a_claim_that_waits_for_its_pod_takes_no_free_volume_by_itself() {
    let mut world = World::new()
        .class("late", "d", json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .class("local", names::NO_PROVISIONER, json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .with_volume("free", "late", "1Gi", nothing())
        .with_volume("disk", "local", "1Gi", nothing());
    world.settle();
    let placed = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "node" } } });
    world =
        world.with_claim("data", Some("late"), "1Gi", placed.clone()).with_claim("disk", Some("local"), "1Gi", placed);
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], "d");
    assert_eq!(world.why_claim("disk"), "NoVolumeFits");
    assert_eq!(world.volume("free")["status"]["phase"], "Available");
}

/// The first write of a binding, as the scheduler makes it for a pod's claim.
fn reserve_as_scheduler(world: &mut World, volume: &str, claim: &str) {
    let uid = world.claim(claim)["metadata"]["uid"].clone();
    let claim_ref = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "n", "name": claim,
        "uid": uid });
    let annotations = json!({ names::BOUND_BY_CONTROLLER: "yes" });
    world.patch(
        VOLUME,
        volume,
        json!({ "metadata": { "annotations": annotations }, "spec": { "claimRef": claim_ref } }),
    );
}

// PV-44, PV-20: a local volume that the scheduler reserved for a pod's claim is bound in the three writes left.
#[test]
fn pv_44_a_volume_that_the_scheduler_reserved_is_bound() {
    let node = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["node"] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [node] }] } });
    let local = json!({ "spec": { "csi": null, "local": { "path": "/disk" }, "nodeAffinity": affinity } });
    let mut world = World::new()
        .class("local", names::NO_PROVISIONER, json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .with_volume("disk", "local", "2Gi", local)
        .with_claim("data", Some("local"), "1Gi", nothing())
        .with_pod("p", "data");
    world.settle();
    assert_eq!(world.why_claim("data"), "WaitForPodScheduled");
    world.actions.clear();
    reserve_as_scheduler(&mut world, "disk", "data");
    world.settle();
    assert_eq!(world.actions, ["MarkVolumeBound(disk)", "PointClaim(n/data)", "MarkClaimBound(n/data)"]);
    assert_eq!(world.claim("data")["spec"]["volumeName"], "disk");

    // Two were reserved, by two schedulers say: one is bound, the other is free again.
    world.add_volume("other", "local", "2Gi", nothing());
    world.settle();
    reserve_as_scheduler(&mut world, "other", "data");
    world.settle();
    assert!(world.volume("other")["spec"]["claimRef"].is_null());
    assert_eq!(world.volume("other")["status"]["phase"], "Available");
}

// PV-38: the claim goes back to waiting, and still names who was asked.
#[test]
fn pv_38_a_claim_whose_node_is_taken_back_waits_for_another() {
    let placed = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "node" } } });
    let mut world = World::new()
        .class("late", "d", json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .with_claim("data", Some("late"), "1Gi", placed)
        .with_pod("p", "data");
    world.settle();
    assert_eq!(world.why_claim("data"), "ExternalProvisioning");
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: null } } }));
    world.settle();
    assert_eq!(world.why_claim("data"), "WaitForPodScheduled");
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], "d");
}

// PV-18, PV-19, PV-37.
#[test]
fn delayed_binding_waits_for_a_node_and_then_calls_the_provisioner() {
    let mut world = World::new()
        .class("late", "d", json!({ "volumeBindingMode": "WaitForFirstConsumer" }))
        .with_volume(
            "free",
            "late",
            "1Gi",
            json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "k", "operator": "In", "values": ["v"] }] }] } } } }),
        )
        .with_claim("data", Some("late"), "1Gi", nothing());
    world.settle();
    assert_eq!(world.why_claim("data"), "WaitForFirstConsumer");
    world = world.with_pod("p", "data");
    world.settle();
    assert_eq!(world.why_claim("data"), "WaitForPodScheduled");
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: "node" } } }));
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], "d");
}

#[test]
fn what_cannot_be_done_is_said() {
    let mut world = World::new()
        .class("tree", "kubernetes.io/rbd", nothing())
        .with_claim("lost-class", Some("nowhere"), "1Gi", nothing())
        .with_claim("in-tree", Some("tree"), "1Gi", nothing());
    world.settle();
    assert_eq!(world.why_claim("lost-class"), "ClassMissing");
    assert_eq!(world.why_claim("in-tree"), "ProvisionerNotSupported"); // PV-35
    assert!(world.actions.is_empty());
}

#[test]
fn a_class_created_later_wakes_its_claims() {
    let mut world = World::new().with_claim("data", Some("fast"), "1Gi", nothing());
    world.settle();
    world = world.class("fast", "d", nothing());
    world.settle();
    assert_eq!(world.actions, ["CallProvisioner(n/data)"]);
}

// A volume in the making belongs to its maker until it is made or undone.
#[test]
fn another_provisioner_is_not_called_while_the_first_is_at_work() {
    let mut world = World::new().class("fast", "d", nothing()).with_claim("data", Some("fast"), "1Gi", nothing());
    world.settle();
    let finalizers = json!([names::PVC_PROTECTION, names::PROVISIONING_INTENT]);
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": finalizers } }));
    world.delete(Kind::StorageClass, "fast");
    world = world.class("fast", "e", nothing());
    world.settle();
    assert_eq!(world.why_claim("data"), "ProvisionerBusy");
    world.patch(CLAIM, "data", json!({ "metadata": { "finalizers": [names::PVC_PROTECTION] } }));
    world.settle();
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::STORAGE_PROVISIONER], "e");
}

// Reliability 16, orchestrator 2.5 last rows: the claim went elsewhere.
#[test]
fn a_surplus_volume_is_released_or_freed() {
    let mut world = World::new().with_claim("data", Some(""), "1Gi", nothing());
    world.add_volume("mine", "", "1Gi", nothing());
    world.settle();
    let uid = world.claim("data")["metadata"]["uid"].clone();
    let claim_ref = json!({ "namespace": "n", "name": "data", "uid": uid });
    let made = json!({
        "metadata": { "annotations": { names::PROVISIONED_BY: "d" } },
        "spec": { "claimRef": claim_ref, "persistentVolumeReclaimPolicy": "Delete" },
    });
    world.add_volume("made", "", "1Gi", made);
    world.add_volume("reserved", "", "1Gi", json!({ "spec": { "claimRef": claim_ref } }));
    world.settle();
    assert_eq!(world.volume("made")["status"]["phase"], "Released");
    assert_eq!(world.volume("reserved")["status"]["phase"], "Available");
    assert!(world.volume("reserved")["spec"]["claimRef"]["uid"].is_null());
    assert_eq!(world.get(VOLUME, "mine").unwrap()["status"]["phase"], "Bound");
}
