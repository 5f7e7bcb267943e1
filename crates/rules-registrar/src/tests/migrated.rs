//! KL-23, S4-30, S4-31, S4-35, S4-36: the plugins that a node has left to drivers.

use alloc::string::ToString;
use alloc::vec::Vec;

use api::{Kind, names};
use serde_json::json;

use super::world::World;
use crate::{Key, Local};

const LIST: &str = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd";

fn life(incarnation: &str, plugins: Option<&str>) -> Local {
    Local { migrated_plugins: plugins.map(Into::into), ..Local::new("n", incarnation) }
}

fn listed(world: &World) -> serde_json::Value {
    world.get(Kind::CSINode).unwrap()["metadata"]["annotations"][names::MIGRATED_PLUGINS].clone()
}

// KL-23, S4-30, S4-31: before the node is ready, and once.
#[test]
fn plugins_are_listed_before_the_node_is_ready() {
    let mut world = World::new();
    world.update_local(|local| local.migrated_plugins = Some(LIST.into()));
    assert_eq!(world.settle(), ["CreateNode", "CreateCSINode", "ListMigrated", "SetReady"]);
    assert_eq!(listed(&world), json!(LIST));
    world.forget();
    assert!(world.settle().is_empty());
}

// S4-35, S4-36: a new life with other gates says so, and takes back what it no longer says. Drivers stay listed.
#[test]
fn the_list_follows_the_gates_up_and_down() {
    let mut world = World::new();
    world.settle();
    world.patch(Kind::CSINode, None, json!({ "metadata": { "annotations": { "other": "stays" } } }));
    world.restart(life("life-2", Some(LIST)));
    assert_eq!(world.settle(), ["DescribeNode", "SetNotReady", "ListMigrated", "SetReady"]);
    assert_eq!(listed(&world), json!(LIST));
    world.restart(life("life-3", Some("kubernetes.io/gce-pd")));
    world.settle();
    assert_eq!(listed(&world), json!("kubernetes.io/gce-pd"));
    world.restart(life("life-4", None));
    assert_eq!(world.settle(), ["DescribeNode", "SetNotReady", "ListMigrated", "SetReady"]);
    assert!(listed(&world).is_null());
    assert_eq!(world.get(Kind::CSINode).unwrap()["metadata"]["annotations"]["other"], "stays");
    assert!(world.why(&Key::SelfNode("n".into())).settled);
}

// S4-31: a node that is started again with other gates is not ready until its CSINode says so: no pod is placed there
// that somebody attaches for by the old list. With the same gates it stays ready.
#[test]
fn a_node_whose_gates_changed_is_not_ready_until_its_list_is_written() {
    let mut world = World::new();
    world.settle();
    world.restart(life("life-2", Some(LIST)));
    let mut seen = Vec::new();
    while world.step(&Key::SelfNode("n".into())) {
        let did = world.log.last().unwrap().to_string();
        let node = world.get(Kind::Node).unwrap();
        let ready = node["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready").unwrap();
        seen.push((did, ready["status"].clone(), ready["reason"].clone(), listed(&world) == LIST));
    }
    let row = |did: &str, status: &str, reason: &str, listed| (did.to_string(), json!(status), json!(reason), listed);
    assert_eq!(
        seen,
        [
            row("DescribeNode", "True", "AgentReady", false),
            row("SetNotReady", "False", "MigratedPluginsNotListed", false),
            row("ListMigrated", "False", "MigratedPluginsNotListed", true),
            row("SetReady", "True", "AgentReady", true),
        ]
    );
    world.restart(life("life-3", Some(LIST)));
    assert_eq!(world.settle(), ["DescribeNode"]);
}
