//! Published capacities (sidecars 2.11).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Meta, OwnerReference, Value, names};
use control::Rules;
use serde_json::json;

use super::driver::Mood;
use super::world::{VOLUME, World};
use crate::{Capacity, CapacitySettings, OwnNode, Owned, OwnerStep, owner};

const ZONE: &str = "topology.d/zone";
const CAPACITY: Kind = Kind::CSIStorageCapacity;

fn settings() -> CapacitySettings {
    CapacitySettings { namespace: "n".into(), immediate: false, poll_millis: 60_000, owner: None }
}

/// Two nodes in zone a and one in zone b, and a class that waits for pods.
fn world() -> World {
    let mut world = World::new().able().with(|all| all.capacity = Some(settings()));
    world.driver.room = 10 << 30;
    for (name, zone) in [("n0", "a"), ("n1", "a"), ("n2", "b")] {
        world.node(name, &[(ZONE, zone)]);
    }
    world.class(
        "late",
        "d",
        json!({ "volumeBindingMode": "WaitForFirstConsumer", "parameters": { "csi.storage.k8s.io/fstype": "xfs" } }),
    )
}

fn published(world: &World) -> Vec<Value> {
    world.list(CAPACITY)
}

/// `class zone capacity`, sorted.
fn said(world: &World) -> Vec<String> {
    let show = |object: &Value| {
        let zone = &object["nodeTopology"]["matchLabels"][ZONE];
        format!("{} {} {}", object["storageClassName"], zone, object["capacity"]).replace('"', "")
    };
    let mut said: Vec<String> = published(world).iter().map(show).collect();
    said.sort();
    said
}

/// Until the driver has said the same so often that only changes and the poll interval are reasons to ask.
fn settle(world: &mut World) {
    for _ in 0..8 {
        world.run_capacity();
        world.pass(60_000);
    }
    world.run_capacity();
    world.pass(1_000);
}

// P86, P89: one object per class and place, with our labels; asked with all of the class's parameters.
#[test]
fn every_class_and_place_is_published_once() {
    let mut world = world();
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi", "late b 10Gi"]);
    let object = &published(&world)[0];
    assert_eq!(
        object["metadata"]["labels"],
        json!({
            names::CAPACITY_DRIVER: "d", names::CAPACITY_MANAGER: "external-provisioner",
        })
    );
    assert!(object["metadata"]["ownerReferences"].is_null());
    assert_eq!(world.driver.asked[0].parameters["csi.storage.k8s.io/fstype"], "xfs");
    assert_eq!(world.driver.asked[0].accessible_topology.as_ref().unwrap().segments[ZONE], "a");
    assert!(world.driver.asked[0].volume_capabilities.is_empty());
    assert!(world.run_capacity().is_empty());
}

// P86: classes of others and, unless asked for, those that wait for no pod are left out.
#[test]
fn only_wanted_classes_are_published() {
    let mut world = world().class("now", "d", json!({})).class("theirs", "e", json!({}));
    world.run_capacity();
    assert_eq!(said(&world).len(), 2);
    let mut world = world.with(|all| all.capacity = Some(CapacitySettings { immediate: true, ..settings() }));
    world.patch(Kind::StorageClass, "now", json!({ "metadata": { "labels": { "a": "b" } } }));
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi", "late b 10Gi", "now a 10Gi", "now b 10Gi"]);
}

// P87: the owner is written with the object, and put right later.
#[test]
fn objects_belong_to_their_owner() {
    let reference = |uid: &str| OwnerReference {
        api_version: "apps/v1".into(),
        kind: "StatefulSet".into(),
        name: "p".into(),
        uid: uid.into(),
        controller: Some(true),
    };
    let owned = |uid: &str| Some(CapacitySettings { owner: Some(reference(uid)), ..settings() });
    let mut world = world().with(|all| all.capacity = owned("1"));
    world.run_capacity();
    assert_eq!(published(&world)[0]["metadata"]["ownerReferences"][0]["uid"], "1");
    let mut world = world.with(|all| all.capacity = owned("2"));
    world.pass(60_000);
    let log = world.run_capacity();
    assert_eq!(log.iter().filter(|line| line.starts_with("UpdateCapacity")).count(), 2, "{log:?}");
    assert_eq!(published(&world)[0]["metadata"]["ownerReferences"][0]["uid"], "2");
}

// P87: so many levels up from our own pod.
#[test]
fn the_owner_is_found_so_many_levels_up() {
    let above =
        OwnerReference { kind: "ReplicaSet".into(), uid: "r".into(), controller: Some(true), ..Default::default() };
    let other = OwnerReference { kind: "Other".into(), ..Default::default() };
    let mut meta = Meta { uid: "p".into(), ..Meta::in_namespace("n", "pod") };
    meta.owner_references = [other, above.clone()].into();
    let pod = Owned { api_version: "v1".into(), kind: "Pod".into(), meta };
    assert_eq!(owner(-1, &pod), Ok(OwnerStep::Nobody));
    let itself = owner(0, &pod).unwrap();
    assert!(matches!(itself, OwnerStep::Found(found) if found.uid == "p" && found.kind == "Pod"));
    assert_eq!(owner(1, &pod), Ok(OwnerStep::Found(above.clone())));
    assert_eq!(owner(2, &pod), Ok(OwnerStep::Read(above)));
    let alone = Owned { meta: Meta::named("pod"), ..pod };
    assert!(owner(1, &alone).unwrap_err().contains("--capacity-ownerref-level"));
}

// P88: the one version that is spoken.
#[test]
fn objects_are_of_the_version_kubernetes_keeps() {
    assert_eq!(CAPACITY.api_version(), "storage.k8s.io/v1");
    assert!(Capacity::watches().contains(&CAPACITY));
}

// P89, P90: written only if it says something new; zero is said too; a driver that is down changes nothing.
#[test]
fn only_news_is_written() {
    let mut world = world();
    world.run_capacity();
    let writes = |log: &[String]| log.iter().filter(|line| !line.starts_with("AskCapacity")).count();
    world.pass(60_000);
    let log = world.run_capacity();
    assert_eq!((log.len(), writes(&log)), (2, 0));
    world.driver.room = 0;
    world.pass(60_000);
    assert_eq!(writes(&world.run_capacity()), 2);
    assert_eq!(said(&world), ["late a 0", "late b 0"]);
    world.driver.mood = Mood::Down;
    world.pass(60_000);
    assert_eq!(writes(&world.run_capacity()), 0);
    assert_eq!(said(&world), ["late a 0", "late b 0"]);
}

// P90: what nobody wants to know any more goes: a class, a place, an object of our labels that says nothing.
#[test]
fn what_is_no_longer_wanted_is_withdrawn() {
    let mut world = world();
    world.run_capacity();
    world.delete(Kind::CSINode, "n0");
    assert!(world.run_capacity().iter().all(|line| line.starts_with("AskCapacity")), "zone a has another node");
    world.delete(Kind::Node, "n2");
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi"]);
    let labels = published(&world)[0]["metadata"]["labels"].clone();
    let twin = json!({
        "metadata": { "name": "csisc-abc", "labels": labels }, "storageClassName": "late",
        "nodeTopology": { "matchLabels": { ZONE: "a" } }, "capacity": "10Gi",
    });
    world.create(CAPACITY, twin.clone());
    assert_eq!(world.run_capacity().last().unwrap(), "WithdrawCapacity(csisc-abc)");
    let mut foreign = twin;
    foreign["metadata"]["labels"] = json!({ names::CAPACITY_DRIVER: "e" });
    world.create(CAPACITY, foreign);
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi", "late a 10Gi"]);
    world.delete(Kind::StorageClass, "late");
    world.run_capacity();
    assert_eq!(published(&world).len(), 1);
    assert_eq!(published(&world)[0]["metadata"]["labels"], json!({ names::CAPACITY_DRIVER: "e" }));
}

// P91: asked again when a volume comes or goes, where it is; when a place comes; and when time has passed.
#[test]
fn a_volume_that_comes_or_goes_is_a_reason_to_ask() {
    let mut world = world();
    settle(&mut world);
    world.driver.asked.clear();
    world.pass(5_000);
    world.driver.places = [[(ZONE.to_string(), "b".to_string())].into()].into();
    let selected = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n2" } }, "spec": { "storageClassName": "late" } });
    world = world.with_claim("data", selected);
    world.run();
    world.driver.room = 9 << 30;
    assert_eq!(world.run_capacity().len(), 2);
    assert_eq!(said(&world), ["late a 10Gi", "late b 9Gi"]);
    settle(&mut world);
    let name = world.pv_name();
    world.patch(VOLUME, &name, json!({ "metadata": { "labels": { "a": "b" } } }));
    world.pass(5_000);
    assert!(world.run_capacity().is_empty(), "a volume that merely changes takes no room");
    world.driver.room = 10 << 30;
    world.delete_claim();
    world.run_to_the_end();
    world.run_capacity();
    assert_eq!(said(&world), ["late a 9Gi", "late b 10Gi"], "asked where the volume was, and nowhere else");
    world.node("n3", &[(ZONE, "c")]);
    world.run_capacity();
    assert_eq!(said(&world).len(), 3);
}

// P91: what changes while the driver is asked, or right after, is asked for again as soon as that is worth a question.
#[test]
fn a_change_right_after_an_answer_is_not_missed() {
    let mut world = world();
    settle(&mut world);
    world.run_capacity();
    world.pass(61_000);
    assert_eq!(world.run_capacity().len(), 2, "the poll interval");
    world.pass(500);
    world.driver.room = 8 << 30;
    world.driver.places = [[(ZONE.to_string(), "b".to_string())].into()].into();
    let selected = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n2" } }, "spec": { "storageClassName": "late" } });
    world = world.with_claim("data", selected);
    world.run();
    assert!(world.run_capacity().is_empty(), "it was asked just now");
    world.pass(500);
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi", "late b 8Gi"]);
}

// P91: a change that is heard of together with the answer is found soon, and a driver that says the same is left in peace.
#[test]
fn questions_get_rarer_while_the_answer_stays_the_same() {
    let mut world = world();
    let mut asked = Vec::new();
    for second in 0..200 {
        world.run_capacity();
        if !core::mem::take(&mut world.driver.asked).is_empty() {
            asked.push(second);
        }
        world.pass(1_000);
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
}

// P91: the scheduler took the node away because there was no room after all.
#[test]
fn a_claim_that_lost_its_node_is_a_reason_to_ask() {
    let selected = json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n2" } }, "spec": { "storageClassName": "late" } });
    let mut world = world().with_claim("data", selected);
    settle(&mut world);
    world.pass(5_000);
    world.driver.asked.clear();
    let nowhere = json!({ "metadata": { "annotations": { names::SELECTED_NODE: null } } });
    world.patch(Kind::PersistentVolumeClaim, "data", nowhere);
    world.run_capacity();
    assert_eq!(world.driver.asked.len(), 2, "of its class, everywhere");
}

// P92: an object that somebody else deleted is made again.
#[test]
fn a_deleted_object_is_made_again() {
    let mut world = world();
    world.run_capacity();
    let name = published(&world)[0]["metadata"]["name"].as_str().unwrap().to_string();
    world.delete(CAPACITY, &name);
    world.run_capacity();
    assert_eq!(said(&world), ["late a 10Gi", "late b 10Gi"]);
}

// P86, and a driver without places: one object, which selects every node, and stays as it is.
#[test]
fn a_driver_without_places_has_one_object_for_all_nodes() {
    let mut world = world().with(|all| all.topology = false);
    world.run_capacity();
    assert_eq!(published(&world).len(), 1);
    assert_eq!(published(&world)[0]["nodeTopology"], json!({}));
    assert!(world.driver.asked.last().unwrap().accessible_topology.is_none());
    world.pass(60_000);
    assert_eq!(world.run_capacity().len(), 1);
}

// P86: a node's provisioner has a name of its own and its own place.
#[test]
fn a_nodes_provisioner_publishes_its_own_place() {
    let segments = [(ZONE.to_string(), "b".to_string())].into();
    let mut world = world().with(|all| all.node = Some(OwnNode { name: "n2".into(), segments, ..OwnNode::default() }));
    world.run_capacity();
    assert_eq!(said(&world), ["late b 10Gi"]);
    let manager = &published(&world)[0]["metadata"]["labels"][names::CAPACITY_MANAGER];
    assert_eq!(manager, "external-provisioner-n2");
}

// Sidecars 2.11: the gauges of the Go provisioner.
#[test]
fn what_is_missing_and_what_is_too_much_is_counted() {
    let mut world = world();
    let counted = |world: &World| {
        let tally = crate::tally(&world.cache, world.engine.local());
        (tally.goal, tally.current, tally.obsolete)
    };
    assert_eq!(counted(&world), (2, 0, 0));
    settle(&mut world);
    assert_eq!(counted(&world), (2, 2, 0));
    let mut second = published(&world)[0].clone();
    second["metadata"] = json!({ "name": "second", "namespace": "n", "labels": second["metadata"]["labels"] });
    world.create(CAPACITY, second);
    assert_eq!(counted(&world), (2, 2, 1), "one that says what another says");
}
