//! Who has a driver's name: one at a time, and not one that cannot be registered (reliability 65, KL-12).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Subresource, Value, names};
use control::{Action as _, Decision, Effect, Endpoint, Outcome, Rules};
use serde_json::json;

use super::world::{Driver, ENDPOINT, OTHER, SOCKET, World};
use crate::{Key, Registrar};

const NAME: &str = "d.example";
const OTHER_ENDPOINT: &str = "/other";

/// A second driver of the same name, at another socket.
fn second(versions: &[&str], node_id: &str) -> Driver {
    let mut driver = Driver::new(NAME);
    driver.info.endpoint = OTHER_ENDPOINT.into();
    driver.info.supported_versions = versions.iter().map(ToString::to_string).collect();
    driver.node.node_id = node_id.into();
    driver
}

/// The sockets whose drivers were last told that they are registered.
fn believers(world: &World) -> Vec<&String> {
    let believes = |driver: &&Driver| driver.told.last().is_some_and(|(registered, _)| *registered);
    let there = world.drivers.iter().filter(|(path, _)| world.local().sockets.contains_key(*path));
    there.filter(|(_, driver)| believes(driver)).map(|(path, _)| path).collect()
}

/// Takes steps until nothing is due within so many milliseconds, and looks after each how many drivers are registered.
fn settle_with_one(world: &mut World, mut patience: u64, what: &str) {
    for _ in 0..300 {
        let keys = Registrar::keys(&world.cache, world.local());
        let mut stepped = false;
        for key in &keys {
            stepped |= world.step(key);
            let registered = world.local().sockets.values().filter(|socket| socket.registered.is_some()).count();
            assert!(believers(world).len() <= 1, "{what}: {:?} were told that they are registered", believers(world));
            assert!(registered <= 1, "{what}: {registered} drivers are used");
        }
        if stepped {
            continue;
        }
        let wait = |key: &Key| match world.decide(key) {
            Decision::Wait(until, _) => Some(until.0 - world.now.0),
            Decision::Rest(_) | Decision::Do(..) | Decision::Either(..) => None,
        };
        match keys.iter().filter_map(wait).min() {
            Some(pause) if pause <= patience => {
                patience -= pause;
                world.pass(pause);
            }
            Some(_) | None => return,
        }
    }
    panic!("{what}: never comes to rest");
}

/// Steps on one key until this action is to be begun on it, and begins it.
fn begin(world: &mut World, path: &str, name: &str) -> Effect {
    let key = World::socket_key(path);
    for _ in 0..20 {
        match world.decide(&key) {
            Decision::Do(action, _) if action.name() == name => return world.begin(&key).unwrap().1,
            _ => assert!(world.step(&key), "{name} is not reached"),
        }
    }
    panic!("{name} is not reached");
}

fn introduced() -> World {
    let mut world = World::new();
    world.settle();
    world
}

fn served(world: &World) -> Option<String> {
    world.local().drivers().get(NAME).map(|driver| driver.socket.clone())
}

fn use_a_volume(world: &mut World) {
    let in_use = json!({ "status": { "volumesInUse": [names::unique_volume_name(NAME, "h")] } });
    world.patch(Kind::Node, Some(Subresource::Status), in_use);
}

fn entry(world: &World) -> Value {
    world.get(Kind::CSINode).unwrap()["spec"]["drivers"][0].clone()
}

// Reliability 65: whoever may have heard the welcome has the name, also while no answer came.
#[test]
fn a_welcome_without_an_answer_keeps_the_name() {
    for versions in [&["1.0.0"][..], &["1.1.0"]] {
        let mut world = introduced();
        world.driver(OTHER, second(&["1.0.0"], "node-7"));
        let effect = begin(&mut world, OTHER, "Welcome");
        let Effect::Call { to: Endpoint::Socket(socket), call } = effect else { panic!("{effect:?}") };
        world.call(&socket, &call);
        world.finish(&World::socket_key(OTHER), &Outcome::Unknown("the answer was lost".into()));
        let mut newcomer = Driver::new(NAME);
        newcomer.info.supported_versions = versions.iter().map(ToString::to_string).collect();
        world.driver(SOCKET, newcomer);
        settle_with_one(&mut world, 60_000, "lost answer");
        let winner = if versions == ["1.0.0"] { OTHER_ENDPOINT } else { ENDPOINT };
        assert_eq!(served(&world).as_deref(), Some(winner), "{versions:?}");
    }
}

// The same while the call is under way.
#[test]
fn a_welcome_under_way_keeps_the_name() {
    for versions in [&["1.0.0"][..], &["1.1.0"]] {
        let mut world = introduced();
        world.driver(OTHER, second(&["1.0.0"], "node-7"));
        let effect = begin(&mut world, OTHER, "Welcome");
        let Effect::Call { to: Endpoint::Socket(socket), call } = effect else { panic!("{effect:?}") };
        let outcome = world.call(&socket, &call);
        let mut newcomer = Driver::new(NAME);
        newcomer.info.supported_versions = versions.iter().map(ToString::to_string).collect();
        world.driver(SOCKET, newcomer);
        let key = World::socket_key(SOCKET);
        for _ in 0..20 {
            world.step(&key);
            assert_eq!(believers(&world), [OTHER], "{versions:?}");
        }
        world.finish(&World::socket_key(OTHER), &outcome);
        settle_with_one(&mut world, 60_000, "held up");
        let winner = if versions == ["1.0.0"] { OTHER_ENDPOINT } else { ENDPOINT };
        assert_eq!(served(&world).as_deref(), Some(winner), "{versions:?}");
    }
}

// KL-12, reliability 65: the one that is replaced is told first, and again until it has heard it.
#[test]
fn a_driver_is_replaced_only_when_it_has_heard_so() {
    let mut world = introduced();
    world.driver(OTHER, second(&["1.0.0"], "node-7"));
    world.settle();
    world.lost.insert("TurnAway");
    world.driver(SOCKET, Driver { info: second(&["1.1.0"], "").info, ..Driver::new(NAME) });
    world.drivers.get_mut(SOCKET).unwrap().info.endpoint = ENDPOINT.into();
    settle_with_one(&mut world, 60_000, "replaced");
    assert_eq!(served(&world).as_deref(), Some(ENDPOINT));
    assert_eq!(world.told(OTHER)[..3].iter().map(|(told, _)| *told).collect::<Vec<_>>(), [true, false, false]);
    world.socket_goes(SOCKET);
    settle_with_one(&mut world, 1_000, "and back");
    assert_eq!((served(&world).as_deref(), believers(&world).len()), (Some(OTHER_ENDPOINT), 1));
    let info = world.drivers[SOCKET].info.clone();
    world.driver(SOCKET, Driver { info, ..Driver::new(NAME) });
    settle_with_one(&mut world, 1_000, "and replaced again");
    assert_eq!(served(&world).as_deref(), Some(ENDPOINT), "what it was told before does not count");
}

// KL-18: a driver that was turned away for a label is let in again once the label is right, however the answer ended.
#[test]
fn kl_18_a_label_put_right_lets_the_driver_in_again() {
    for (registered_before, lost) in [(true, false), (true, true), (false, false), (false, true)] {
        let what = alloc::format!("registered before: {registered_before}, answer lost: {lost}");
        let label = |zone: Value| json!({ "metadata": { "labels": { "example/zone": zone } } });
        let mut world = introduced();
        let mut driver = Driver::new(NAME);
        let segments = [("example/zone".into(), "a".into())].into();
        driver.node.accessible_topology = Some(csi::v1::Topology { segments });
        if !registered_before {
            world.patch(Kind::Node, None, label("b".into()));
        }
        world.driver(SOCKET, driver);
        world.settle();
        if lost {
            world.lost.insert("TurnAway");
        }
        world.patch(Kind::Node, None, label("b".into()));
        world.step(&World::socket_key(SOCKET));
        assert_eq!(world.told(SOCKET).last().map(|(told, _)| *told), Some(false), "{what}");
        world.patch(Kind::Node, None, label("a".into()));
        settle_with_one(&mut world, 5_000, &what);
        assert_eq!(believers(&world), [SOCKET], "{what}");
        assert_eq!(served(&world).as_deref(), Some(ENDPOINT), "{what}");
        assert!(world.why(&World::socket_key(SOCKET)).settled, "{what}");
    }
}

// Reliability 64: while volumes are in use the name belongs to the driver that calls the node as CSINode does.
#[test]
fn a_driver_that_cannot_be_registered_does_not_keep_the_name_from_one_that_can() {
    for version in ["1.0.0", "1.1.0"] {
        let mut world = introduced();
        world.driver(OTHER, second(&["1.0.0"], "node-7"));
        world.settle();
        use_a_volume(&mut world);
        world.socket_goes(OTHER);
        let mut stranger = Driver::new(NAME);
        stranger.info.supported_versions = alloc::vec![version.into()];
        stranger.node.node_id = "node-8".into();
        world.driver(SOCKET, stranger);
        settle_with_one(&mut world, 1_000, version);
        assert_eq!(world.why(&World::socket_key(SOCKET)).code, "NodeIdChanged", "{version}");
        world.update_local(|local| local.seen(OTHER));
        settle_with_one(&mut world, 20_000, version);
        assert_eq!(served(&world).as_deref(), Some(OTHER_ENDPOINT), "{version}");
        assert_eq!(entry(&world)["nodeID"], "node-7", "{version}");
        assert_eq!(believers(&world), [OTHER], "{version}");
    }
}

// The same if the stranger came into the place of the driver, so that nobody noticed that it went.
#[test]
fn a_changed_driver_leaves_the_name_to_the_one_that_fits() {
    let mut world = introduced();
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    use_a_volume(&mut world);
    world.drivers.get_mut(SOCKET).unwrap().node.node_id = "node-8".into();
    world.update_local(|local| local.seen(SOCKET));
    settle_with_one(&mut world, 1_000, "alone");
    assert_eq!(served(&world).as_deref(), Some(ENDPOINT), "volumes are taken down through it");
    world.driver(OTHER, second(&["1.0.0"], "node-7"));
    settle_with_one(&mut world, 20_000, "with the one that fits");
    assert_eq!(served(&world).as_deref(), Some(OTHER_ENDPOINT));
    assert_eq!(entry(&world)["nodeID"], "node-7");
}

// KL-2: an answer to a question put to a socket that went says nothing of the next one at its path.
#[test]
fn kl_2_an_answer_of_a_socket_that_went_counts_for_no_other() {
    let mut world = introduced();
    world.driver(SOCKET, Driver::new("old.example"));
    let effect = begin(&mut world, SOCKET, "AskWho");
    let Effect::Call { to: Endpoint::Socket(socket), call } = effect else { panic!("{effect:?}") };
    let late = world.call(&socket, &call);
    world.socket_goes(SOCKET);
    world.driver(SOCKET, Driver::new(NAME));
    world.finish(&World::socket_key(SOCKET), &late);
    assert_eq!(world.local().sockets[SOCKET].progress.plugin(), None, "nobody at this socket was asked");
    settle_with_one(&mut world, 1_000, "late answer");
    assert_eq!(world.local().drivers().keys().collect::<Vec<_>>(), [NAME]);
}

// A socket that is another driver's now speaks for the former one no longer.
#[test]
fn a_driver_that_changed_its_name_gives_up_the_former() {
    let mut world = introduced();
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    world.drivers.get_mut(SOCKET).unwrap().info.name = "new.example".into();
    world.update_local(|local| local.seen(SOCKET));
    assert!(served(&world).is_some(), "nobody knows yet");
    world.step(&World::socket_key(SOCKET));
    assert_eq!(served(&world), None);
    world.driver(OTHER, second(&["1.0.0"], "node-7"));
    world.settle();
    assert_eq!(served(&world).as_deref(), Some(OTHER_ENDPOINT));
    assert!(world.local().drivers().contains_key("new.example"));
}

// Reliability 64: a report of the Node that the cache has not heard of keeps the entry of a driver that is gone.
#[test]
fn a_driver_that_is_gone_stays_listed_under_a_volume_that_came_into_use_unseen() {
    let mut world = introduced();
    world.driver(SOCKET, Driver::new(NAME));
    world.settle();
    world.frozen.insert(Kind::Node);
    use_a_volume(&mut world);
    world.socket_goes(SOCKET);
    world.pass(31_000);
    let node = Key::SelfNode("n".into());
    for _ in 0..5 {
        world.step(&node);
    }
    assert_eq!(entry(&world)["name"], NAME);
    world.frozen.clear();
    world.sync();
    settle_with_one(&mut world, 60_000, "seen");
    assert_eq!(entry(&world)["name"], NAME);
}
