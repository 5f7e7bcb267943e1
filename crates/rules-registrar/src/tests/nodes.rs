use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, Write, names};
use control::{Action as _, Decision, Effect, Outcome};
use serde_json::json;

use super::world::World;
use crate::{Key, Local};

#[test]
fn a_node_introduces_itself_and_rests() {
    let mut world = World::new();
    assert_eq!(world.settle(), ["CreateNode", "CreateCSINode"]);
    let node = world.get(Kind::Node).unwrap();
    assert_eq!(node["metadata"]["annotations"][names::AGENT_INCARNATION], "life-1");
    assert_eq!(node["metadata"]["annotations"][names::CONTROLLER_MANAGED_ATTACH], "true");
    assert_eq!(node["metadata"]["labels"][names::HOSTNAME_LABEL], "n");
    let ready = &node["status"]["conditions"][0];
    assert_eq!((ready["type"].as_str(), ready["status"].as_str()), (Some("Ready"), Some("True")));
    let owner = &world.get(Kind::CSINode).unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], node["metadata"]["uid"]);
    world.forget();
    assert_eq!(world.settle(), Vec::<String>::new(), "109: nothing changes, nothing is written");
    assert!(world.why(&Key::SelfNode("n".into())).settled);
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

// KL-19.
#[test]
fn a_csinode_of_an_earlier_node_is_made_anew() {
    let mut world = World::new();
    world.settle();
    let target = ObjectRef::cluster(Kind::Node, "n");
    world.write(&Write::Delete { target, only_if: Default::default(), grace_seconds: None }).unwrap();
    assert_eq!(world.settle(), ["CreateNode", "DeleteCSINode", "CreateCSINode"]);
    let (node, csi_node) = (world.get(Kind::Node).unwrap(), world.get(Kind::CSINode).unwrap());
    assert_eq!(csi_node["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"]);
}
