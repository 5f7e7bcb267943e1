//! One provisioner per node (sidecars 2.12).

use api::{ObjectKey, names};
use control::{Action as _, Decision};
use serde_json::{Value, json};

use super::world::{CLAIM, VOLUME, World};
use crate::OwnNode;

const ZONE: &str = "topology.d/zone";

fn own(immediate_binding: bool) -> OwnNode {
    OwnNode {
        name: "n0".into(),
        segments: [(ZONE.into(), "a".into())].into(),
        immediate_binding,
        base_delay_millis: 20_000,
        max_delay_millis: 60_000,
    }
}

fn world(class: Value, node: Value, immediate_binding: bool) -> World {
    let world = World::new().able().with(|settings| settings.node = Some(own(immediate_binding)));
    let claim = json!({ "metadata": { "annotations": { names::SELECTED_NODE: node } } });
    world.class("fast", "d", class).with_claim("data", claim)
}

fn late() -> Value {
    json!({ "volumeBindingMode": "WaitForFirstConsumer" })
}

// P93: only what is for this node, without a word about the rest. No Node or CSINode need be known.
#[test]
fn a_nodes_provisioner_serves_its_own_node_alone() {
    for (class, node, immediate, code) in [
        (late(), json!("n0"), true, "VolumeMade"),
        (late(), json!("n1"), true, "OnAnotherNode"),
        (late(), json!(null), true, "AwaitingNode"),
        (json!({}), json!("n0"), false, "VolumeMade"),
        (json!({}), json!("n1"), true, "OnAnotherNode"),
        (json!({}), json!(null), false, "NotForNodes"),
    ] {
        let mut world = world(class, node.clone(), immediate);
        world.run();
        assert_eq!(world.why_claim(), code, "{node} {immediate}");
    }
    let mut world = world(late(), json!("n0"), true);
    world.run();
    let asked = world.request().accessibility_requirements.clone().unwrap();
    assert_eq!((asked.requisite.len(), asked.preferred[0].segments[ZONE].as_str()), (1, "a"));
}

// P93: so it is with deletion.
#[test]
fn a_volume_out_of_reach_is_deleted_elsewhere() {
    for (zone, there) in [("a", false), ("b", true)] {
        let mut world = world(late(), json!("n0"), true);
        world.driver.places = [[(ZONE.into(), zone.into())].into()].into();
        world.run();
        let name = world.pv_name();
        world.delete_claim();
        world.run_to_the_end();
        assert_eq!(world.get(VOLUME, &name).is_some(), there, "{zone}");
    }
}

// P94: a node waits for its turn, which is another one for every node; then it takes the claim in one write.
#[test]
fn a_claim_any_node_may_take_is_taken_in_turn() {
    let mut world = world(json!({}), json!(null), true);
    let Decision::Wait(turn, why) = world.decide(&world.key()) else { panic!("{:?}", world.decide(&world.key())) };
    assert_eq!(why.code, "AwaitingTurn");
    assert!(turn.0 - world.now.0 <= 20_000);
    let uid = world.uid();
    let other = OwnNode { name: "n1".into(), ..own(true) };
    assert_ne!(own(true).share(&uid, 20_000), other.share(&uid, 20_000));
    let name = world.pv_name();
    world.run();
    assert_eq!(world.log[..2], [alloc::format!("AskCapacity({name})"), "TakeClaim(n/data)".into()]);
    assert_eq!(world.claim("data")["metadata"]["annotations"][names::SELECTED_NODE], "n0");
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P94: the class must allow this node.
#[test]
fn a_claim_that_may_not_be_here_is_left_to_others() {
    let allowed = json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": ["b"] }] }]);
    let mut world = world(json!({ "allowedTopologies": allowed }), json!(null), true);
    world.run();
    assert!(world.log.is_empty());
    assert_eq!(world.why_claim(), "NotAllowedHere");
}

// P95: no room, no claim; a driver that does not say is believed to have room.
#[test]
fn a_node_without_room_leaves_the_claim_to_others() {
    let parameters = json!({ "parameters": { "type": "ssd", "csi.storage.k8s.io/fstype": "xfs" } });
    let mut world = world(parameters, json!(null), true);
    world.driver.room = 1;
    world.run_for(1);
    assert_eq!(world.why_claim(), "NoRoomHere");
    let asked = &world.driver.asked[0];
    assert_eq!(asked.parameters, [("type".into(), "ssd".into())].into());
    assert_eq!(asked.accessible_topology.as_ref().unwrap().segments[ZONE], "a");
    world.driver.room = 1 << 40;
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
}

// P96: another node was faster: the write is refused, and the claim is left alone.
#[test]
fn a_claim_taken_meanwhile_is_left_alone() {
    let mut world = world(json!({}), json!(null), true);
    world.run_for(1);
    let claim = world.cache.claim(&ObjectKey::new("n", "data")).unwrap().clone();
    let late = crate::Action::TakeClaim { claim, node: "n0".into() };
    world.patch(CLAIM, "data", json!({ "metadata": { "annotations": { names::SELECTED_NODE: "n1" } } }));
    let control::Effect::Write(write) = late.effect() else { panic!() };
    assert!(world.write(&write).is_err());
    world.run();
    assert_eq!(world.why_claim(), "OnAnotherNode");
    assert!(world.driver.volumes.is_empty());
}
