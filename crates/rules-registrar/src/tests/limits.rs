//! How many volumes a node takes, asked again.

use api::{Kind, Value};
use serde_json::json;

use super::world::{Driver, ENDPOINT, SOCKET, World};
use crate::Registrar;

const NAME: &str = "d.example";

/// The laboratory under the world, whose objects have names of their own.
fn lab(world: &mut World) -> &mut prove_lab::Lab<Registrar> {
    world
}

fn driver(world: &mut World, spec: Value) {
    world.create(Kind::CSIDriver, json!({ "metadata": { "name": NAME }, "spec": spec }));
}

fn registered(limit: i64) -> World {
    let mut world = World::new();
    let mut driver = Driver::new(NAME);
    driver.node.max_volumes_per_node = limit;
    world.driver(SOCKET, driver);
    world.settle();
    world
}

fn limit(world: &World) -> Value {
    world.get(Kind::CSINode).unwrap()["spec"]["drivers"][0]["allocatable"]["count"].clone()
}

fn asked(world: &World) -> usize {
    world.log.iter().filter(|name| **name == "AskLimit").count()
}

fn now_takes(world: &mut World, limit: i64) {
    world.drivers.get_mut(SOCKET).unwrap().node.max_volumes_per_node = limit;
}

/// An attachment of the driver's to a node, which failed with a code.
fn failed(world: &mut World, name: &str, node: &str, attacher: &str, code: Value, at: &str) {
    if lab(world).get(Kind::VolumeAttachment, name).is_none() {
        let spec = json!({ "attacher": attacher, "nodeName": node, "source": { "persistentVolumeName": name } });
        world.create(Kind::VolumeAttachment, json!({ "metadata": { "name": name }, "spec": spec }));
    }
    let error = json!({ "message": "no", "time": at, "errorCode": code });
    world.patch_status(Kind::VolumeAttachment, name, json!({ "attached": false, "attachError": error }));
}

// KL-25: in its period and no sooner, only what CSINode says of the limit, and no longer once the wish is gone.
#[test]
fn kl_25_a_driver_is_asked_for_its_limit_in_its_period() {
    let mut world = registered(16);
    world.settle_for(120_000);
    assert_eq!(asked(&world), 0, "who does not wish it is not asked");
    driver(&mut world, json!({ "nodeAllocatableUpdatePeriodSeconds": 60 }));
    world.settle();
    assert_eq!((asked(&world), limit(&world)), (1, json!(16)));
    now_takes(&mut world, 9);
    world.pass(59_000);
    world.settle_for(0);
    assert_eq!((asked(&world), limit(&world)), (1, json!(16)));
    world.pass(1_000);
    world.settle_for(0);
    assert_eq!((asked(&world), limit(&world)), (2, json!(9)));
    // Nothing else of the answer counts: who the node is was settled when the driver was registered.
    world.drivers.get_mut(SOCKET).unwrap().node.node_id = "another".into();
    now_takes(&mut world, 0);
    world.pass(60_000);
    world.settle_for(0);
    let entry = world.get(Kind::CSINode).unwrap()["spec"]["drivers"][0].clone();
    assert_eq!((&entry["nodeID"], limit(&world)), (&json!("node-7"), json!(null)));
    lab(&mut world).patch(Kind::CSIDriver, NAME, json!({ "spec": { "nodeAllocatableUpdatePeriodSeconds": null } }));
    world.settle_for(300_000);
    assert_eq!(asked(&world), 3);
    // A socket that is made anew is asked from the beginning.
    lab(&mut world).patch(Kind::CSIDriver, NAME, json!({ "spec": { "nodeAllocatableUpdatePeriodSeconds": 3600 } }));
    world.settle();
    assert_eq!(asked(&world), 3, "the longer period is not over");
    world.update_local(|local| local.seen(SOCKET));
    world.settle();
    assert_eq!(asked(&world), 4);
}

// KL-25: a driver that does not answer keeps its entry and its registration, and is asked in the next period.
#[test]
fn kl_25_a_driver_that_does_not_answer_keeps_its_limit() {
    let mut world = registered(16);
    driver(&mut world, json!({ "nodeAllocatableUpdatePeriodSeconds": 10 }));
    world.settle();
    world.dead.insert(ENDPOINT.into());
    world.pass(10_000);
    world.settle_for(0);
    assert_eq!((asked(&world), limit(&world)), (2, json!(16)));
    assert!(world.local().drivers().contains_key(NAME));
    world.dead.clear();
    now_takes(&mut world, 3);
    world.pass(10_000);
    world.settle_for(0);
    assert_eq!((asked(&world), limit(&world)), (3, json!(3)));
}

// KL-26: an attachment that failed for want of room is news at once, each time once; other failures, nodes and drivers
// are not.
#[test]
fn kl_26_a_full_node_is_asked_about_at_once() {
    let mut world = registered(16);
    failed(&mut world, "a", "n", NAME, json!(8), "2026-01-01T00:00:00Z");
    world.settle();
    assert_eq!(asked(&world), 0, "the driver does not wish it");
    driver(&mut world, json!({ "nodeAllocatableUpdatePeriodSeconds": 3600 }));
    world.settle();
    assert_eq!(asked(&world), 1);
    now_takes(&mut world, 4);
    failed(&mut world, "b", "n", NAME, json!(13), "2026-01-01T00:00:01Z");
    failed(&mut world, "c", "m", NAME, json!(8), "2026-01-01T00:00:01Z");
    failed(&mut world, "d", "n", "other.example", json!(8), "2026-01-01T00:00:01Z");
    world.settle();
    assert_eq!((asked(&world), limit(&world)), (1, json!(16)));
    failed(&mut world, "a", "n", NAME, json!(8), "2026-01-01T00:00:02Z");
    world.settle();
    assert_eq!((asked(&world), limit(&world)), (2, json!(4)));
    world.settle_for(60_000);
    assert_eq!(asked(&world), 2, "the same failure is no news");
    // What is attached after all has not failed.
    world.patch_status(Kind::VolumeAttachment, "a", json!({ "attached": true }));
    world.settle();
    assert_eq!(asked(&world), 2);
}
