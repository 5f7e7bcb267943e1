//! Which volumes suit a claim: labels, attributes, access modes, classes.

use alloc::format;

use api::{Kind, names};
use serde_json::{Value, json};

use super::world::World;

const CLAIM: Kind = Kind::PersistentVolumeClaim;
const VOLUME: Kind = Kind::PersistentVolume;

fn labelled(labels: Value) -> Value {
    json!({ "metadata": { "labels": labels } })
}

fn selecting(selector: Value) -> Value {
    json!({ "spec": { "selector": selector } })
}

fn asks(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] })
}

// PV-14: labels and requirements are filters among the free volumes; an empty selector filters nothing.
#[test]
fn pv_14_a_claim_takes_a_volume_that_its_selector_selects() {
    for (selector, takes) in [
        (json!({ "matchLabels": { "disk": "fast" } }), "b"),
        (json!({ "matchLabels": { "disk": "fast", "zone": "2" } }), "c"),
        (asks("disk", "In", &["slow", "slower"]), "d"),
        (asks("disk", "NotIn", &["fast", "slow"]), "a"),
        (asks("zone", "Exists", &[]), "c"),
        (asks("disk", "DoesNotExist", &[]), "a"),
        (json!({}), "a"),
    ] {
        let mut world = World::new()
            .with_volume("a", "", "1Gi", json!({}))
            .with_volume("b", "", "1Gi", labelled(json!({ "disk": "fast" })))
            .with_volume("c", "", "2Gi", labelled(json!({ "disk": "fast", "zone": "2" })))
            .with_volume("d", "", "3Gi", labelled(json!({ "disk": "slow" })));
        world.settle();
        world = world.with_claim("data", Some(""), "1Gi", selecting(selector.clone()));
        world.settle();
        assert_eq!(world.claim("data")["spec"]["volumeName"], takes, "{selector}");
    }
}

// PV-14: nothing selected, nothing taken; labels that come later are news.
#[test]
fn pv_14_a_claim_waits_until_a_volume_is_labelled_as_it_wants() {
    let wanted = selecting(json!({ "matchLabels": { "disk": "fast" } }));
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", wanted);
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
    world.patch(VOLUME, "v", labelled(json!({ "disk": "fast" })));
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "v");
}

// PV-15, PV-16: what a user has tied together is not asked for labels.
#[test]
fn pv_15_a_selector_does_not_count_for_a_volume_that_is_meant_for_the_claim() {
    let wanted = json!({ "matchLabels": { "disk": "fast" } });
    let mut names_it = selecting(wanted.clone());
    names_it["spec"]["volumeName"] = "named".into();
    let reserved = json!({ "spec": { "claimRef": { "namespace": "n", "name": "reserves" } } });
    let mut world = World::new()
        .with_volume("named", "", "1Gi", json!({}))
        .with_volume("reserved", "", "1Gi", reserved)
        .with_claim("names", Some(""), "1Gi", names_it)
        .with_claim("reserves", Some(""), "1Gi", selecting(wanted));
    world.settle();
    assert_eq!(world.claim("names")["spec"]["volumeName"], "named");
    assert_eq!(world.claim("reserves")["spec"]["volumeName"], "reserved");
}

// PV-15: nor for a phase or a class; but what it is must suit the claim, or the claim goes without.
#[test]
fn pv_15_a_volume_that_is_meant_for_the_claim_must_suit_it_all_the_same() {
    let block = json!({ "spec": { "volumeMode": "Block" } });
    let more = json!({ "spec": { "accessModes": ["ReadWriteOnce", "ReadOnlyMany"] } });
    for (size, offered, asked, takes) in [
        ("1Gi", json!({ "spec": { "storageClassName": "other" } }), json!({}), true),
        ("1Gi", block.clone(), block.clone(), true),
        ("1Gi", more.clone(), json!({}), true),
        ("1023Mi", json!({}), json!({}), false),
        ("1Gi", block.clone(), json!({}), false),
        ("1Gi", json!({}), block, false),
        ("1Gi", json!({}), more, false),
        ("1Gi", of_attributes("gold"), json!({}), false),
        ("1Gi", json!({}), of_attributes("gold"), false),
    ] {
        // By the claim's name alone, as a user writes it, before the volume is ever called available.
        let mut meant = json!({ "spec": { "claimRef": { "namespace": "n", "name": "data" } } });
        rules_store::merge_patch(&mut meant, &offered);
        let mut world =
            World::new().with_volume("v", "", size, meant).with_claim("data", Some(""), "1Gi", asked.clone());
        world.settle();
        let said = format!("{size} {offered} for {asked}");
        assert_eq!(world.why_claim("data") == "NoVolumeFits", !takes, "{said}: {}", world.why_claim("data"));
        assert_eq!(world.claim("data")["spec"]["volumeName"] == "v", takes, "{said}");
        assert_eq!(world.volume("v")["status"]["phase"], if takes { "Bound" } else { "Available" }, "{said}");
    }
}

// PV-15: one that is being deleted is nobody's any more.
#[test]
fn pv_15_a_volume_that_is_meant_for_the_claim_and_going_is_not_taken() {
    let meant = json!({ "metadata": { "finalizers": ["else/where"] },
        "spec": { "claimRef": { "namespace": "n", "name": "data" } } });
    let mut world = World::new().with_volume("v", "", "1Gi", meant);
    world.settle();
    world.delete(VOLUME, "v");
    world = world.with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
    assert!(world.volume("v")["spec"]["claimRef"]["uid"].is_null());
}

// PV-35: the class's provisioner is asked as for any claim; ours refuses what has a selector, others may not (P8).
#[test]
fn a_claim_with_a_selector_is_left_to_the_provisioner_when_nothing_is_selected() {
    let wanted = selecting(json!({ "matchLabels": { "disk": "fast" } }));
    let mut world = World::new().class("fast", "d", json!({})).with_claim("data", Some("fast"), "1Gi", wanted);
    world.settle();
    assert_eq!(world.actions, ["CallProvisioner(n/data)"]);
    world.add_volume("v", "fast", "1Gi", labelled(json!({ "disk": "fast" })));
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "v");
}

fn of_attributes(class: &str) -> Value {
    json!({ "spec": { "volumeAttributesClassName": class } })
}

// PV-12, PV-16: attributes agree, and none is the same as an empty name.
#[test]
fn pv_12_a_claim_takes_only_a_volume_with_its_attributes() {
    let mut named = of_attributes("gold");
    named["spec"]["volumeName"] = "plain".into();
    let reserved = json!({ "spec": { "claimRef": { "namespace": "n", "name": "reserves" } } });
    let mut world = World::new()
        .with_volume("plain", "", "1Gi", json!({}))
        .with_volume("gold", "", "5Gi", of_attributes("gold"))
        .with_volume("reserved", "", "1Gi", reserved);
    world.settle();
    world = world
        .with_claim("wants", Some(""), "1Gi", of_attributes("gold"))
        .with_claim("names", Some(""), "1Gi", named)
        .with_claim("reserves", Some(""), "1Gi", of_attributes("silver"));
    world.settle();
    assert_eq!(world.claim("wants")["spec"]["volumeName"], "gold");
    assert_eq!(world.why_claim("names"), "VolumeMismatch");
    assert_eq!(world.why_claim("reserves"), "NoVolumeFits");
    world = world.with_claim("none", Some(""), "1Gi", of_attributes(""));
    world.settle();
    assert_eq!(world.claim("none")["spec"]["volumeName"], "plain");
}

// PV-24: the claim is told its attributes when it is bound. PV-22: and loses them with its volume. PV-23: both again.
#[test]
fn pv_24_a_bound_claim_says_the_attributes_of_its_volume_and_a_lost_one_does_not() {
    let mut world = World::new().with_volume("v", "", "1Gi", of_attributes("gold")).with_claim(
        "data",
        Some(""),
        "1Gi",
        of_attributes("gold"),
    );
    let told = |world: &World| world.claim("data")["status"]["currentVolumeAttributesClassName"].clone();
    world.settle();
    assert_eq!(told(&world), "gold");
    let volume = world.volume("v");
    world.patch(VOLUME, "v", json!({ "metadata": { "finalizers": null } }));
    world.delete(VOLUME, "v");
    world.settle();
    assert_eq!(world.claim("data")["status"]["phase"], "Lost");
    assert!(told(&world).is_null());
    world.create(VOLUME, json!({ "metadata": { "name": "v" }, "spec": volume["spec"] }));
    world.settle();
    assert_eq!(told(&world), "gold");

    // What changes while it is bound is the resizer's to report.
    world.actions.clear();
    world.patch(CLAIM, "data", of_attributes("silver"));
    world.patch(VOLUME, "v", of_attributes("silver"));
    world.settle();
    assert_eq!(told(&world), "gold");
    assert!(world.actions.is_empty());
}

// Orchestrator 2.4: a binding once complete is mended, whatever the claim has come to ask for since.
#[test]
fn a_torn_binding_is_mended_while_the_attributes_are_being_changed() {
    let mut world = World::new().with_volume("v", "", "1Gi", json!({})).with_claim("data", Some(""), "1Gi", json!({}));
    world.settle();
    world.patch(CLAIM, "data", of_attributes("gold"));
    world.patch(VOLUME, "v", json!({ "spec": { "claimRef": null } }));
    world.settle();
    assert_eq!(world.volume("v")["spec"]["claimRef"]["name"], "data");
    assert_eq!(world.why_claim("data"), "Bound");
}

// PV-9: the class by the old annotation, of claim and volume, even an empty one; it wins over the field.
#[test]
fn pv_9_a_class_by_annotation_wins_over_the_field() {
    let annotated = |class: &str| json!({ "metadata": { "annotations": { names::STORAGE_CLASS_BETA: class } } });
    let mut world = World::new()
        .class("fast", "d", json!({}))
        .with_volume("old", "slow", "1Gi", annotated("hand"))
        .with_volume("new", "", "1Gi", json!({}));
    world.settle();
    world = world
        .with_claim("a", Some("fast"), "1Gi", annotated("hand"))
        .with_claim("b", Some("fast"), "1Gi", annotated(""))
        .with_claim("c", None, "1Gi", annotated(""));
    world.settle();
    assert_eq!(world.claim("a")["spec"]["volumeName"], "old");
    assert_eq!(world.claim("b")["spec"]["volumeName"], "new");
    // A claim that asks for no class at all gets no default either.
    world = world.class("usual", "d", json!({ "metadata": { "annotations": { names::DEFAULT_CLASS: "true" } } }));
    world.settle();
    assert_eq!(world.why_claim("c"), "NoVolumeFits");
    assert!(world.claim("c")["spec"]["storageClassName"].is_null());
}

// PV-10: who says nothing of a mode means a filesystem, on both sides; a filesystem and a device never meet.
#[test]
fn pv_10_no_volume_mode_is_that_of_a_filesystem() {
    let mode = |mode: &str| json!({ "spec": { "volumeMode": mode } });
    for (asked, offered, fits) in [
        (json!({}), json!({}), true),
        (mode("Filesystem"), json!({}), true),
        (json!({}), mode("Filesystem"), true),
        (mode("Block"), mode("Block"), true),
        (json!({}), mode("Block"), false),
        (mode("Block"), json!({}), false),
    ] {
        let mut world = World::new().with_volume("v", "", "1Gi", offered.clone());
        world.settle();
        world = world.with_claim("data", Some(""), "1Gi", asked.clone());
        world.settle();
        let phase = if fits { "Bound" } else { "Pending" };
        assert_eq!(world.claim("data")["status"]["phase"], phase, "{asked} {offered}");
    }
}

// PV-11: every mode that is asked for must be offered.
#[test]
fn pv_11_a_volume_that_lacks_an_access_mode_is_not_taken() {
    let both = json!({ "spec": { "accessModes": ["ReadWriteOnce", "ReadOnlyMany"] } });
    let mut world = World::new().with_volume("one", "", "1Gi", json!({}));
    world.settle();
    world = world.with_claim("data", Some(""), "1Gi", both.clone());
    world.settle();
    assert_eq!(world.why_claim("data"), "NoVolumeFits");
    world.add_volume("two", "", "9Gi", both);
    world.settle();
    assert_eq!(world.claim("data")["spec"]["volumeName"], "two");
}
