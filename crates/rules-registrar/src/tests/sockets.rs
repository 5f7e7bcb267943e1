use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Subresource, names};
use serde_json::json;

use super::world::{Driver, ENDPOINT, OTHER, SOCKET, World};
use crate::Key;

const NAME: &str = "d.example";

fn registered() -> World {
    let mut world = World::new();
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    world
}

fn entry(world: &World) -> api::Value {
    world.get(Kind::CSINode).unwrap()["spec"]["drivers"][0].clone()
}

// Pipeline step 8, KL-7.
// KL-13.
#[test]
fn a_driver_is_registered_in_order() {
    let mut world = World::new();
    let mut driver = Driver::new(NAME);
    driver.node.max_volumes_per_node = 16;
    driver.node.accessible_topology =
        Some(csi::v1::Topology { segments: [("example/zone".into(), "a".into())].into() });
    world.driver(SOCKET, driver);
    let done = world.settle();
    let own: Vec<&str> =
        done.iter().map(String::as_str).filter(|name| !name.starts_with("Create") && *name != "SetReady").collect();
    assert_eq!(
        own,
        ["AskWho", "AskOptions", "AskPlace", "AskAbilities", "TakeName", "DescribeNode", "ListDriver", "Welcome"]
    );
    assert_eq!(entry(&world)["nodeID"], "node-7");
    assert_eq!(entry(&world)["topologyKeys"], json!(["example/zone"]));
    assert_eq!(entry(&world)["allocatable"]["count"], 16);
    let node = world.get(Kind::Node).unwrap();
    assert_eq!(node["metadata"]["annotations"][names::NODE_ID], "{\"d.example\":\"node-7\"}");
    assert_eq!(node["metadata"]["labels"]["example/zone"], "a");
    assert_eq!(world.told(SOCKET), [(true, String::new())]);
    let drivers = world.local().drivers();
    let stages = csi::Capabilities::from_iter([csi::NodeRpc::StageUnstageVolume]);
    assert_eq!((drivers[NAME].socket.as_str(), drivers[NAME].capabilities), (ENDPOINT, stages));
    world.forget();
    assert_eq!(world.settle(), Vec::<String>::new());
    assert!(world.why(&World::socket_key(SOCKET)).settled);
}

// KL-15, KL-74: what drivers can do is asked once for each registration, and known to no other life of the agent: each
// driver is found by its socket and asked again.
#[test]
fn kl_15_another_life_knows_no_driver_before_it_has_found_its_socket() {
    let mut world = registered();
    let asked = |done: &[String]| done.iter().filter(|name| *name == "AskAbilities").count();
    assert_eq!(asked(&world.settle()), 0, "it is not asked again while it is registered");
    world.update_local(|local| *local = crate::Local::new("n", "life-2"));
    assert!(world.local().drivers().is_empty());
    assert_eq!(asked(&world.settle()), 0, "nobody has seen its socket");
    world.update_local(|local| local.seen(SOCKET));
    assert_eq!(asked(&world.settle()), 1);
    assert!(world.local().drivers().contains_key(NAME));
}

// Reliability 66.
// KL-6, with a shorter pause at most.
#[test]
fn a_dead_socket_is_asked_again_within_five_seconds_of_listening() {
    let mut world = World::new();
    world.driver(SOCKET, Driver::new(NAME));
    world.dead.insert(SOCKET.into());
    world.settle_for(200_000);
    assert_eq!(world.why(&World::socket_key(SOCKET)).code, "BackOff");
    assert!(world.local().drivers().is_empty());
    world.dead.clear();
    world.settle_for(5_000);
    assert!(world.local().drivers().contains_key(NAME));
}

// KL-5.
#[test]
fn a_socket_made_anew_is_asked_at_once() {
    let mut world = World::new();
    world.driver(SOCKET, Driver::new(NAME));
    world.dead.insert(SOCKET.into());
    world.settle_for(100_000);
    world.dead.clear();
    world.update_local(|local| local.seen(SOCKET));
    world.settle_for(0);
    assert!(world.local().drivers().contains_key(NAME));
}

// KL-7, KL-11, reliability 67.
#[test]
fn what_cannot_be_registered_is_told_why_once() {
    type Spoil = fn(&mut Driver);
    let cases: [(&str, Spoil); 8] = [
        ("DevicePlugin", |d| d.info.r#type = "DevicePlugin".into()),
        ("version", |d| d.info.supported_versions = alloc::vec!["0.3.0".into(), "2.0.1".into()]),
        ("version", |d| d.info.supported_versions.clear()),
        ("driver name", |d| d.info.name = "-bad".into()),
        ("driver name", |d| d.info.name = "x".repeat(64)),
        ("no node id", |d| d.node.node_id = String::new()),
        ("257 bytes", |d| d.node.node_id = "x".repeat(257)),
        ("driver name", |d| d.info.name = String::new()),
    ];
    for (word, spoil) in cases {
        let mut world = World::new();
        let mut driver = Driver::new(NAME);
        spoil(&mut driver);
        world.driver(SOCKET, driver);
        world.settle();
        let told = world.told(SOCKET);
        assert_eq!(told.len(), 1, "{word}");
        assert!(!told[0].0 && told[0].1.contains(word), "{told:?}");
        assert_eq!(world.why(&World::socket_key(SOCKET)).code, "DriverTurnedAway");
        assert!(world.local().drivers().is_empty());
        assert_eq!(entry(&world), api::Value::Null, "67: nothing was shortened to fit");
    }
}

// KL-11, by its own examples.
#[test]
fn any_version_one_among_the_offered_will_do() {
    for versions in [&["1.0.0"][..], &["0.2.0", "1.0.0"], &["1.2.3", "0.3.0", "2.0.1"], &["1.2.3", "boo"], &["v1.0.0"]]
    {
        let mut world = World::new();
        let mut driver = Driver::new(NAME);
        driver.info.supported_versions = versions.iter().map(|v| String::from(*v)).collect();
        world.driver(SOCKET, driver);
        world.settle();
        assert!(world.local().drivers().contains_key(NAME), "{versions:?}");
    }
}

// Reliability 65.
#[test]
fn a_second_driver_of_the_same_name_is_turned_away_until_the_first_goes() {
    let mut world = registered();
    world.driver(
        OTHER,
        Driver {
            info: csi::registration::PluginInfo { endpoint: "/other".into(), ..Driver::new(NAME).info },
            ..Driver::new(NAME)
        },
    );
    world.settle();
    assert!(!world.told(OTHER)[0].0);
    assert_eq!(world.local().drivers()[NAME].socket, ENDPOINT);
    world.socket_goes(SOCKET);
    world.settle();
    assert_eq!(world.told(OTHER).last(), Some(&(true, String::new())));
    assert_eq!(world.local().drivers()[NAME].socket, "/other");
}

// KL-12: of two drivers of one name the one of the higher version serves, and the other again if that one goes.
#[test]
fn a_driver_of_a_higher_version_takes_over() {
    let other = |versions: &[&str]| {
        let supported_versions = versions.iter().map(|version| String::from(*version)).collect();
        let endpoint = "/other".into();
        Driver {
            info: csi::registration::PluginInfo { endpoint, supported_versions, ..Driver::new(NAME).info },
            ..Driver::new(NAME)
        }
    };
    for (versions, serves) in [
        (&["1.0.0"][..], ENDPOINT),
        (&["1.0.1"], "/other"),
        (&["1.2.0", "0.9"], "/other"),
        (&["2.0.0", "1.0.0"], ENDPOINT),
        (&["v1.10.0-rc1"], "/other"),
    ] {
        let mut world = registered();
        world.driver(OTHER, other(versions));
        world.settle();
        assert_eq!(world.local().drivers()[NAME].socket, serves, "{versions:?}");
        assert_eq!(world.told(OTHER)[0].0, serves == "/other", "{versions:?}");
        world.socket_goes(OTHER);
        world.settle();
        assert_eq!(world.local().drivers()[NAME].socket, ENDPOINT, "{versions:?}");
    }
}

// KL-8: whoever was turned away and has been corrected needs no new socket.
#[test]
fn a_driver_that_was_turned_away_is_asked_again() {
    let mut world = World::new();
    let mut driver = Driver::new(NAME);
    driver.info.supported_versions = alloc::vec!["0.3.0".into()];
    world.driver(SOCKET, driver);
    world.settle();
    assert_eq!(world.told(SOCKET).len(), 1);
    world.settle_for(25_000);
    assert_eq!(world.told(SOCKET).len(), 3, "it is told each time");
    world.drivers.get_mut(SOCKET).unwrap().info.supported_versions = alloc::vec!["1.0.0".into()];
    world.settle_for(12_000);
    assert_eq!(world.told(SOCKET).last(), Some(&(true, String::new())));
    assert_eq!(world.local().drivers()[NAME].socket, ENDPOINT);
}

// KL-14, KL-17, KL-22, S4-29: a driver that stays away leaves the objects, and only that one.
#[test]
fn a_driver_that_is_gone_leaves_the_node() {
    let mut world = registered();
    let mut second = Driver::new("second.example");
    second.info.endpoint = "/second".into();
    world.driver(OTHER, second);
    world.settle();
    world.socket_goes(SOCKET);
    world.pass(28_000);
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(world.get(Kind::CSINode).unwrap()["spec"]["drivers"].as_array().unwrap().len(), 2);
    assert_eq!(world.settle_for(3_000), ["DescribeNode", "SetDrivers"]);
    assert_eq!(entry(&world)["name"], "second.example");
    let ids = |world: &World| world.get(Kind::Node).unwrap()["metadata"]["annotations"][names::NODE_ID].clone();
    assert_eq!(ids(&world), "{\"second.example\":\"node-7\"}");
    world.socket_goes(OTHER);
    world.settle_for(31_000);
    assert_eq!((entry(&world), ids(&world)), (json!(null), json!(null)), "the annotation goes with the last");
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    assert_eq!(entry(&world)["name"], NAME);
}

// The same for one that went while the agent was away; not while volumes are in use (reliability 64), nor while a
// socket has not said who is behind it.
#[test]
fn a_driver_that_is_gone_stays_listed_while_it_may_be_needed() {
    for kept in ["in use", "a silent socket", "nothing"] {
        let mut world = registered();
        if kept == "in use" {
            let in_use = json!({ "status": { "volumesInUse": [names::unique_volume_name(NAME, "h")] } });
            world.patch(Kind::Node, Some(Subresource::Status), in_use);
        }
        let looking_since = world.now;
        world.restart(crate::Local { looking_since, ..crate::Local::new("n", "life-2") });
        if kept == "a silent socket" {
            world.update_local(|local| local.seen("/reg/silent.sock"));
        }
        world.settle_for(60_000);
        assert_eq!(entry(&world).is_null(), kept == "nothing", "{kept}");
    }
}

// KL-3: a folder goes with all that is in it.
// KL-9: nobody is called for it.
#[test]
fn sockets_go_with_their_folder() {
    let mut world = World::new();
    world.driver("/reg/sub/d.sock", Driver::new(NAME));
    world.settle();
    world.socket_goes("/reg/su");
    assert!(world.local().drivers().contains_key(NAME));
    world.socket_goes("/reg/sub");
    assert!(world.local().drivers().is_empty());
}

// Reliability 64: neither the socket's loss nor the driver's restart takes the entry away.
#[test]
fn a_restarted_driver_keeps_its_entry() {
    let mut world = registered();
    let before = entry(&world);
    world.socket_goes(SOCKET);
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(entry(&world), before);
    world.update_local(|local| local.seen(SOCKET));
    let again = ["AskWho", "AskOptions", "AskPlace", "AskAbilities", "TakeName", "ListDriver", "Welcome"];
    assert_eq!(world.settle(), again);
    world.update_local(|local| local.seen(SOCKET));
    assert!(world.local().drivers().contains_key(NAME), "a replaced socket does not make the driver unknown");
}

// KL-21, reliability 63 and 64.
#[test]
fn a_changed_node_id_replaces_the_entry_only_when_nothing_is_in_use() {
    let mut world = registered();
    let in_use = json!({ "status": { "volumesInUse": [names::unique_volume_name(NAME, "h")] } });
    world.patch(Kind::Node, Some(Subresource::Status), in_use);
    world.drivers.get_mut(SOCKET).unwrap().node.node_id = "node-8".into();
    world.update_local(|local| local.seen(SOCKET));
    world.settle();
    assert_eq!(entry(&world)["nodeID"], "node-7");
    assert_eq!(world.why(&World::socket_key(SOCKET)).code, "NodeIdChanged");
    world.patch(Kind::Node, Some(Subresource::Status), json!({ "status": { "volumesInUse": null } }));
    let done = world.settle();
    let writes: Vec<&String> = done.iter().filter(|name| name.ends_with("Drivers") || *name == "ListDriver").collect();
    assert_eq!(writes, ["SetDrivers", "ListDriver"], "taken out, then put in: {done:?}");
    assert_eq!(entry(&world)["nodeID"], "node-8");
}

// KL-20.
#[test]
fn a_changed_limit_is_written_in_place() {
    for (limit, expected) in [(5, json!(5)), (0, json!(null)), (-3, json!(null)), (i64::MAX, json!(i32::MAX))] {
        let mut world = registered();
        world.drivers.get_mut(SOCKET).unwrap().node.max_volumes_per_node = limit;
        world.update_local(|local| local.seen(SOCKET));
        world.settle();
        assert_eq!(entry(&world)["allocatable"]["count"], expected);
    }
}

// KL-18.
#[test]
fn topology_that_contradicts_a_label_is_refused() {
    let mut world = World::new();
    world.settle();
    world.patch(Kind::Node, None, json!({ "metadata": { "labels": { "example/zone": "b" } } }));
    let mut driver = Driver::new(NAME);
    driver.node.accessible_topology =
        Some(csi::v1::Topology { segments: [("example/zone".into(), "a".into())].into() });
    world.driver(SOCKET, driver);
    world.settle();
    assert!(world.told(SOCKET)[0].1.contains("example/zone"));
    assert_eq!(world.get(Kind::Node).unwrap()["metadata"]["labels"]["example/zone"], "b");
}

// KL-17.
#[test]
fn an_unreadable_node_id_annotation_is_left_alone() {
    let mut world = World::new();
    world.settle();
    world.patch(Kind::Node, None, json!({ "metadata": { "annotations": { names::NODE_ID: "garbage" } } }));
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    assert_eq!(world.why(&World::socket_key(SOCKET)).code, "NodeIdAnnotationUnreadable");
    assert_eq!(world.get(Kind::Node).unwrap()["metadata"]["annotations"][names::NODE_ID], "garbage");
}

// Reliability 63: the entry is put back whoever takes it away.
#[test]
fn a_lost_entry_is_written_again() {
    let mut world = registered();
    world.patch(Kind::CSINode, None, json!({ "spec": { "drivers": [] } }));
    assert_eq!(world.settle(), ["ListDriver"]);
}

#[test]
fn other_drivers_entries_stay() {
    let mut world = registered();
    let mut second = Driver::new("second.example");
    second.info.endpoint = "/second".into();
    world.driver(OTHER, second);
    world.settle();
    assert_eq!(world.get(Kind::CSINode).unwrap()["spec"]["drivers"].as_array().unwrap().len(), 2);
    let ids = world.get(Kind::Node).unwrap()["metadata"]["annotations"][names::NODE_ID].clone();
    assert_eq!(ids, "{\"d.example\":\"node-7\",\"second.example\":\"node-7\"}");
}

#[test]
fn lost_answers_and_lost_memory_cost_only_repeats() {
    let actions = [
        "CreateNode",
        "CreateCSINode",
        "AskWho",
        "AskOptions",
        "AskPlace",
        "AskAbilities",
        "ListDriver",
        "DescribeNode",
        "Welcome",
    ];
    for lost in actions {
        let mut world = World::new();
        world.driver(SOCKET, Driver::new(NAME));
        world.lost.insert(lost);
        for _ in 0..3 {
            world.step(&Key::SelfNode("n".into()));
            world.step(&World::socket_key(SOCKET));
            world.forget();
        }
        world.settle();
        assert_eq!(entry(&world)["nodeID"], "node-7", "{lost}");
        assert!(world.told(SOCKET).iter().all(|(registered, _)| *registered), "{lost}");
        assert!(world.local().drivers().contains_key(NAME), "{lost}");
    }
}

#[test]
fn a_driver_that_names_no_endpoint_is_behind_the_registration_socket() {
    let mut world = World::new();
    let mut driver = Driver::new(NAME);
    driver.info.endpoint = String::new();
    world.driver(SOCKET, driver);
    world.settle();
    let plugin = world.local().sockets[SOCKET].progress.plugin().unwrap().clone();
    assert_eq!(plugin.socket(SOCKET), SOCKET);
    let scheme = crate::PluginAtSocket { endpoint: "unix:///a/b".into(), ..plugin };
    assert_eq!(scheme.socket(SOCKET), "/a/b");
}
