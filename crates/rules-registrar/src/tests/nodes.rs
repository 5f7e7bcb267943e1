use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, Write, names};
use control::{Action as _, Decision, Effect, Outcome, Timestamp};
use serde_json::json;

use super::world::World;
use crate::{Key, Local, MachineFacts};

// S4-28: the CSINode is of its node, and no driver need be there.
#[test]
fn a_node_introduces_itself_and_rests() {
    let mut world = World::new();
    assert_eq!(world.settle(), ["CreateNode", "CreateCSINode", "SetReady"]);
    let node = world.get(Kind::Node).unwrap();
    assert_eq!(node["metadata"]["annotations"][names::AGENT_INCARNATION], "life-1");
    assert_eq!(node["metadata"]["annotations"][names::CONTROLLER_MANAGED_ATTACH], "true");
    assert_eq!(node["metadata"]["labels"][names::HOSTNAME_LABEL], "n");
    let ready = &node["status"]["conditions"][0];
    assert_eq!(ready["reason"], "AgentReady");
    assert_eq!((ready["type"].as_str(), ready["status"].as_str()), (Some("Ready"), Some("True")));
    let csi_node = world.get(Kind::CSINode).unwrap();
    assert_eq!(csi_node["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"]);
    assert_eq!((&csi_node["metadata"]["name"], &csi_node["spec"]["drivers"]), (&json!("n"), &json!([])));
    world.forget();
    assert_eq!(world.settle(), Vec::<String>::new(), "109: nothing changes, nothing is written");
    assert!(world.why(&Key::SelfNode("n".into())).settled);
}

// KL-24, S4-28.
#[test]
fn a_node_is_not_ready_before_its_csinode_is_there() {
    let mut world = World::new();
    let key = Key::SelfNode("n".into());
    world.step(&key);
    let ready = |world: &World| world.get(Kind::Node).unwrap()["status"]["conditions"][0]["status"].clone();
    assert_eq!((ready(&world), world.get(Kind::CSINode)), (json!("False"), None));
    world.step(&key);
    assert_eq!(ready(&world), json!("False"));
    assert!(world.get(Kind::CSINode).is_some());
    world.step(&key);
    assert_eq!(ready(&world), json!("True"));
}

#[test]
fn a_new_life_marks_the_node_and_keeps_what_others_wrote() {
    let mut world = World::new();
    world.settle();
    world.patch(Kind::Node, None, json!({ "metadata": { "labels": { "zone": "a" } } }));
    world.restart(Local::new("n", "life-2"));
    assert_eq!(world.settle(), ["DescribeNode"]);
    let node = world.get(Kind::Node).unwrap();
    assert_eq!(node["metadata"]["annotations"][names::AGENT_INCARNATION], "life-2");
    assert_eq!(node["metadata"]["labels"]["zone"], "a");
}

#[test]
fn a_mark_of_an_earlier_life_that_lands_late_fails() {
    let mut world = World::new();
    world.settle();
    let key = Key::SelfNode("n".into());
    world.restart(Local::new("n", "life-2"));
    let Decision::Do(action, _) = world.decide(&key) else { panic!("marks the node") };
    let Effect::Write(late) = action.effect() else { panic!("a write") };
    world.restart(Local::new("n", "life-3"));
    world.settle();
    assert_eq!(world.api(&Effect::Write(late)), Some(Outcome::Refused(control::Refusal::Conflict)));
    assert_eq!(world.get(Kind::Node).unwrap()["metadata"]["annotations"][names::AGENT_INCARNATION], "life-3");
}

#[test]
fn a_node_that_lost_its_readiness_says_so_again() {
    let mut world = World::new();
    world.settle();
    let conditions = json!([{ "type": "DiskPressure", "status": "False" }, { "type": "Ready", "status": "Unknown" }]);
    world.patch(Kind::Node, Some(api::Subresource::Status), json!({ "status": { "conditions": conditions } }));
    assert_eq!(world.settle(), ["SetReady"]);
    let node = world.get(Kind::Node).unwrap();
    let types: Vec<&str> =
        node["status"]["conditions"].as_array().unwrap().iter().filter_map(|c| c["type"].as_str()).collect();
    assert_eq!(types, ["DiskPressure", "Ready"]);
}

// KL-19: it goes with the node that owns it.
#[test]
fn a_csinode_of_an_earlier_node_is_made_anew() {
    let mut world = World::new();
    world.settle();
    let target = ObjectRef::cluster(Kind::Node, "n");
    world.write(&Write::Delete { target, only_if: Default::default(), grace_seconds: None }).unwrap();
    assert_eq!(world.settle(), ["CreateNode", "CreateCSINode", "SetReady"]);
    let (node, csi_node) = (world.get(Kind::Node).unwrap(), world.get(Kind::CSINode).unwrap());
    assert_eq!(csi_node["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"]);
}

fn machine() -> MachineFacts {
    let info = api::SystemInfo { kernel_version: "6.1".into(), architecture: "amd64".into(), ..Default::default() };
    MachineFacts::of("n", info, Some("10.0.0.7".into()), 2, (4 << 30) + 1024)
}

/// A node on a known machine, with the namespace of its Lease.
fn known() -> World {
    let mut world = World::new();
    world.create(Kind::Namespace, json!({ "metadata": { "name": crate::NODE_LEASES } }));
    world.restart(Local::new("n", "life-1").on(machine()));
    world
}

fn lease(world: &World) -> api::Value {
    let target = ObjectRef::namespaced(Kind::Lease, crate::NODE_LEASES, "n");
    world.stored(&target).unwrap()["spec"].clone()
}

#[test]
fn a_node_says_what_its_machine_is_and_that_it_lives() {
    let mut world = known();
    assert_eq!(world.settle(), ["CreateNode", "CreateLease", "CreateCSINode", "SetReady"]);
    let status = world.get(Kind::Node).unwrap()["status"].clone();
    assert_eq!(status["nodeInfo"]["kernelVersion"], "6.1");
    let addresses = json!([{ "type": "InternalIP", "address": "10.0.0.7" }, { "type": "Hostname", "address": "n" }]);
    assert_eq!(status["addresses"], addresses);
    assert_eq!(status["capacity"], json!({ "cpu": "2", "memory": "4194305Ki", "pods": "110" }));
    assert_eq!(status["allocatable"]["memory"], "3774874Ki", "a tenth is the machine's");
    assert!(status["conditions"][0]["lastHeartbeatTime"].is_string());
    let renewed = lease(&world);
    assert_eq!((&renewed["holderIdentity"], &renewed["leaseDurationSeconds"]), (&json!("n"), &json!(40)));

    // What somebody changed is said again, in one write, and what stays true is not.
    world.patch(Kind::Node, Some(api::Subresource::Status), json!({ "status": { "capacity": { "cpu": "3" } } }));
    assert_eq!(world.settle(), ["SetReady"]);
    assert_eq!(world.get(Kind::Node).unwrap()["status"]["capacity"]["cpu"], "2");
    world.restart(Local::new("n", "life-1").on(machine()));
    assert_eq!(world.settle(), Vec::<String>::new(), "109: nothing changes, nothing is written");
}

/// One write each ten seconds, and the Node itself each five minutes, as kubelet does.
#[test]
fn the_lease_is_renewed_every_ten_seconds_and_the_node_every_five_minutes() {
    let mut world = known();
    world.settle();
    let before = world.get(Kind::Node).unwrap();
    let written = world.settle_for(299_000);
    assert!((28..=29).contains(&written.len()) && written.iter().all(|name| name == "RenewLease"), "{written:?}");
    assert_eq!(world.get(Kind::Node).unwrap()["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    let written = world.settle_for(10_000);
    assert!(written.contains(&"SetReady".into()), "{written:?}");
    let after = &world.get(Kind::Node).unwrap()["status"]["conditions"][0];
    let before = &before["status"]["conditions"][0];
    assert_ne!(after["lastHeartbeatTime"], before["lastHeartbeatTime"]);
    assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"]);
}

// A shorter Lease is renewed as many times, and one of another length is set right.
#[test]
fn a_lease_of_eight_seconds_is_renewed_every_two() {
    let mut world = known();
    world.settle();
    assert_eq!(lease(&world)["leaseDurationSeconds"], 40);
    let local = Local::new("n", "life-1").on(machine());
    world.restart(Local { lease_seconds: Some(8), ..local });
    assert_eq!(world.settle(), ["RenewLease"]);
    assert_eq!(lease(&world)["leaseDurationSeconds"], 8);
    let written = world.settle_for(40_000);
    assert!((19..=20).contains(&written.len()) && written.iter().all(|name| name == "RenewLease"), "{written:?}");
}

#[test]
fn a_lease_from_the_future_or_of_another_is_taken_over() {
    for spec in [json!({ "renewTime": "2999-01-01T00:00:00.000000Z" }), json!({ "holderIdentity": "m" })] {
        let mut world = known();
        world.settle();
        let (target, only_if) = (ObjectRef::namespaced(Kind::Lease, crate::NODE_LEASES, "n"), Default::default());
        let patch = api::Patch::merge(only_if, json!({ "spec": spec }));
        world.write(&Write::Patch { target, subresource: None, patch }).unwrap();
        assert_eq!(world.settle(), ["RenewLease"]);
        assert_eq!(lease(&world)["holderIdentity"], "n");
    }
}

/// H11: after an overflow of the kernel's queue the folder itself says which sockets there are.
#[test]
fn sockets_are_found_again_when_news_of_them_were_lost() {
    let mut local = Local::new("n", "life-1");
    local.seen("/reg/a.sock");
    local.seen("/reg/gone.sock");
    let asked = local.sockets["/reg/a.sock"].incarnation;
    local.found(&["/reg/a.sock".into(), "/reg/new.sock".into()].into(), Timestamp(0));
    assert_eq!(local.sockets.keys().collect::<Vec<_>>(), ["/reg/a.sock", "/reg/new.sock"]);
    assert!(local.sockets["/reg/a.sock"].incarnation > asked, "it may be another one");
}
