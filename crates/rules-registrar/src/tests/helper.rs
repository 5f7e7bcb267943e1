//! The end beside a driver: the conformance list of the registrar (sidecars 8.1), and what the seeds add.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Node, Object, names};
use control::{Action as _, Cache, Decision, Effect, Outcome, Reply, Rules, Timestamp};
use csi::{Response, registration, v1};
use serde_json::json;

use super::world::{Driver, SOCKET, World};
use crate::{
    Announced, AtPath, Heard, Helper, HelperFacts, HelperStep, MarkedNode, Marker, MarkerAction, MarkerLocal, NodeInfo,
    Reason, SOCKET_MODE,
};

const NAME: &str = "d.example";
const PATH: &str = "/registration/d.example-reg.sock";

fn helper() -> Helper {
    Helper {
        driver_seen_by_node: "/var/lib/kubelet/plugins/d.example/csi.sock".into(),
        directory: "/registration".into(),
        ..Helper::default()
    }
}

fn facts() -> HelperFacts {
    HelperFacts {
        driver: Some(Ok(NAME.into())),
        at_path: AtPath::Nothing,
        announced: None,
        place: None,
        heard: Heard::Nothing,
        ending: false,
    }
}

fn serving() -> HelperFacts {
    HelperFacts { at_path: AtPath::Socket, announced: Some(Announced { place: None }), ..facts() }
}

fn ends(step: &HelperStep) -> Option<u8> {
    match step {
        HelperStep::End(status, why) => {
            assert!(!why.is_empty());
            Some(*status)
        }
        HelperStep::AskDriver | HelperStep::Remove(_) | HelperStep::Listen(_) | HelperStep::Serve => None,
    }
}

#[test]
fn n1_the_socket_is_named_after_the_driver_and_nobody_elses() {
    assert_eq!(helper().step(&HelperFacts { driver: None, ..facts() }), HelperStep::AskDriver);
    assert_eq!(helper().step(&facts()), HelperStep::Listen(PATH.into()));
    assert_eq!(Helper { directory: "/registration/".into(), ..helper() }.socket(NAME), PATH);
    assert_eq!(SOCKET_MODE & 0o077, 0);
}

#[test]
fn n2_get_info_says_what_kubelet_expects() {
    let info = helper().info(NAME);
    assert_eq!((info.r#type.as_str(), info.name.as_str()), ("CSIPlugin", NAME));
    assert_eq!(info.endpoint, "/var/lib/kubelet/plugins/d.example/csi.sock");
    assert_eq!(info.supported_versions, ["1.0.0"]);
}

#[test]
fn n3_a_helper_whose_driver_is_turned_away_ends_with_1() {
    let status = registration::RegistrationStatus { plugin_registered: false, error: "no such version".into() };
    let heard = Heard::of(&status);
    let step = helper().step(&HelperFacts { heard, ..serving() });
    let HelperStep::End(1, why) = step else { panic!("{step:?}") };
    assert!(why.contains("no such version"));
    let status = registration::RegistrationStatus { plugin_registered: true, error: String::new() };
    assert_eq!(helper().step(&HelperFacts { heard: Heard::of(&status), ..serving() }), HelperStep::Serve);
}

#[test]
fn n4_a_helper_that_ends_removes_its_socket_first() {
    let ending = HelperFacts { ending: true, ..serving() };
    assert_eq!(helper().step(&ending), HelperStep::Remove(PATH.into()));
    let removed = HelperFacts { at_path: AtPath::Nothing, announced: None, ..ending };
    assert_eq!(ends(&helper().step(&removed)), Some(0));
    let unknown = HelperFacts { driver: None, ending: true, ..facts() };
    assert_eq!(ends(&helper().step(&unknown)), Some(0));
}

#[test]
fn n5_a_stale_socket_is_replaced_and_a_plain_file_is_fatal() {
    let stale = HelperFacts { at_path: AtPath::Socket, ..facts() };
    assert_eq!(helper().step(&stale), HelperStep::Listen(PATH.into()));
    for there in [AtPath::Other, AtPath::Unreadable("no right to".into())] {
        assert_eq!(ends(&helper().step(&HelperFacts { at_path: there, ..facts() })), Some(1));
    }
}

#[test]
fn n6_health_is_what_our_own_socket_says() {
    let health = |there: &AtPath, said: Option<Result<&str, &str>>| {
        let said = said.map(|said| said.map(String::from).map_err(String::from));
        helper().health(NAME, there, said.as_ref()).status
    };
    assert_eq!(health(&AtPath::Socket, Some(Ok(NAME))), 200);
    assert_eq!(helper().health(NAME, &AtPath::Socket, Some(&Ok(NAME.into()))).text, "ok");
    assert_eq!(health(&AtPath::Nothing, None), 404);
    for (there, said) in [
        (AtPath::Other, None),
        (AtPath::Unreadable("no right to".into()), None),
        (AtPath::Socket, Some(Ok("other"))),
        (AtPath::Socket, Some(Err("connection refused"))),
        (AtPath::Socket, None),
    ] {
        assert_eq!(health(&there, said), 500, "{there:?}");
    }
}

#[test]
fn n7_and_n8_the_probe_ends_well_and_the_path_is_required_even_then() {
    let probe = Helper { probes: true, ..helper() };
    assert_eq!(ends(&probe.step(&HelperFacts { driver: None, ..facts() })), Some(0));
    for probes in [false, true] {
        let without = Helper { driver_seen_by_node: String::new(), probes, ..helper() };
        assert_eq!(ends(&without.step(&facts())), Some(1));
    }
}

// S0-12: a name that cannot be used is refused, by everybody.
#[test]
fn a_driver_without_a_usable_name_is_not_announced() {
    for driver in [Err("connection refused".into()), Ok(String::new()), Ok("../etc".into()), Ok("d".repeat(64))] {
        assert_eq!(ends(&helper().step(&HelperFacts { driver: Some(driver), ..facts() })), Some(1));
    }
}

// A kubelet that restarts finds the socket; one whose directory was cleared finds a new one.
#[test]
fn a_socket_removed_under_us_is_made_again() {
    assert_eq!(helper().step(&serving()), HelperStep::Serve);
    assert_eq!(helper().step(&HelperFacts { at_path: AtPath::Nothing, ..serving() }), HelperStep::Listen(PATH.into()));
}

// Sidecars 10.37 and reliability 64: announced anew only if the driver came back as somebody else.
#[test]
fn a_driver_that_came_back_changed_is_announced_again() {
    let place = |id: &str| Some(NodeInfo { node_id: id.into(), ..NodeInfo::default() });
    let announced = Some(Announced { place: place("a") });
    let same = HelperFacts { announced: announced.clone(), place: place("a"), ..serving() };
    assert_eq!(helper().step(&same), HelperStep::Serve);
    let changed = HelperFacts { announced, place: place("b"), ..serving() };
    assert_eq!(helper().step(&changed), HelperStep::Remove(PATH.into()));
}

// S1-5, S1-6, S1-11, S1-15: the flag is answered by a method of its own, under its own name.
#[test]
fn the_helper_says_whether_the_driver_wants_to_know_the_pod() {
    for wants in [false, true] {
        let info = Helper { requires_publish_pod: wants, ..helper() }.driver_info();
        assert_eq!(info.options.unwrap().requires_publish_pod, wants);
        assert_eq!(info.csi_endpoint, helper().driver_seen_by_node);
    }
    assert_eq!(csi::Method::GetCSIDriverInfo.path(), "/csiregistration.CSIRegistration/GetCSIDriverInfo");
}

// S1-8, S1-9, S1-12 and S1-13: the node asks at the registration socket and keeps the answer beside the driver's socket.
#[test]
fn the_node_learns_whether_the_driver_wants_to_know_the_pod() {
    for (answer, expected) in [(Some(true), true), (Some(false), false), (None, false)] {
        let mut world = World::new();
        world.driver(SOCKET, Driver { wants_pod: answer, ..Driver::new(NAME) });
        world.settle();
        assert_eq!(world.local().drivers()[NAME].wants_pod, expected, "{answer:?}");
        assert_eq!(world.told(SOCKET), [(true, String::new())], "S1-10: registered all the same");
    }
}

// S1-10: only a registrar that answered did not know the question; an answer that was lost is asked for again.
#[test]
fn a_lost_answer_is_no_answer() {
    let mut world = World::new();
    world.driver(SOCKET, Driver { wants_pod: Some(true), ..Driver::new(NAME) });
    world.lost.insert("AskOptions");
    let done = world.settle();
    assert_eq!(done.iter().filter(|name| *name == "AskOptions").count(), 2);
    assert!(world.local().drivers()[NAME].wants_pod);
}

fn node(version: u64, annotations: serde_json::Value, labels: serde_json::Value) -> Object {
    let metadata = json!({ "name": "n", "uid": "u", "resourceVersion": version.to_string(),
        "annotations": annotations, "labels": labels });
    Object::from_json(Kind::Node, json!({ "metadata": metadata })).unwrap()
}

fn marker() -> (MarkerLocal, Cache) {
    let local = MarkerLocal { node: "n".into(), driver: NAME.into(), place: None };
    (local, Cache::default())
}

fn look(local: &MarkerLocal, cache: &Cache) -> Decision<MarkerAction, Reason> {
    let view = Marker::view(&MarkedNode("n".into()), cache, local);
    Marker::decide(Timestamp(1), &view, &())
}

fn answered(local: &mut MarkerLocal, id: &str, topology: &[(&str, &str)]) {
    let segments = topology.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let info = v1::NodeGetInfoResponse {
        node_id: id.into(),
        accessible_topology: Some(v1::Topology { segments }),
        ..v1::NodeGetInfoResponse::default()
    };
    let ask = MarkerAction::AskPlace { driver: NAME.into() };
    Marker::learn(local, &ask, &Outcome::Done(Reply::Csi(Response::NodeGetInfo(info))), &Cache::default());
}

// S0-13 to S0-16 and S0-18: asked, then written, beside what other drivers wrote; and nothing when it is there.
#[test]
fn the_marker_writes_id_and_topology_beside_those_of_others() {
    let (mut local, mut cache) = marker();
    let key = names::NODE_ID;
    let mut annotations = serde_json::Map::new();
    annotations.insert(key.into(), json!("{\"other\":\"o\"}"));
    cache.set(node(1, json!(annotations), json!({ "zone": "z" })));
    assert!(matches!(look(&local, &cache), Decision::Do(MarkerAction::AskPlace { .. }, _)));
    answered(&mut local, "id", &[("topology.d.example/zone", "a")]);
    let Decision::Do(mark, _) = look(&local, &cache) else { panic!("{:?}", look(&local, &cache)) };
    let Effect::Write(api::Write::Patch { patch, .. }) = mark.effect() else { panic!() };
    let body = patch.to_json();
    assert_eq!(body["metadata"]["annotations"][key], "{\"d.example\":\"id\",\"other\":\"o\"}");
    assert_eq!(body["metadata"]["labels"], json!({ "topology.d.example/zone": "a" }));
    assert_eq!(body["metadata"]["resourceVersion"], "1");
    annotations.insert(key.into(), json!("{\"d.example\":\"id\",\"other\":\"o\"}"));
    cache.set(node(2, json!(annotations), json!({ "topology.d.example/zone": "a" })));
    assert!(matches!(look(&local, &cache), Decision::Rest(why) if why.settled));
}

// S0-72, S0-73, S0-76 and reliability 67: what cannot be a label, or says something else, is not written.
#[test]
fn the_marker_refuses_what_cannot_be_written() {
    let long = "x".repeat(64);
    let topologies: Vec<(&str, &str)> =
        alloc::vec![("zone", "elsewhere"), (&long, "a"), ("ok", &long), ("bad key", "a"), ("/zone", "a"), ("ok", "-")];
    for bad in topologies {
        let (mut local, mut cache) = marker();
        cache.set(node(1, json!({}), json!({ "zone": "here" })));
        answered(&mut local, "id", &[bad]);
        assert_eq!(look(&local, &cache).why().code, Reason::DriverTurnedAway, "{bad:?}");
    }
    for id in [String::new(), "i".repeat(257)] {
        let (mut local, mut cache) = marker();
        cache.set(node(1, json!({}), json!({})));
        answered(&mut local, &id, &[]);
        assert_eq!(look(&local, &cache).why().code, Reason::DriverTurnedAway);
    }
}

// The role it needs is one right, and every change of its node wakes it.
#[test]
fn the_marker_watches_its_node_and_patches_it() {
    let (local, cache) = marker();
    let change = |name: &str| {
        let node = Node { metadata: api::Meta::named(name), ..Node::default() };
        control::Change { before: None, after: Some(node.into()) }
    };
    assert_eq!(Marker::wakes(&change("n"), &cache, &local), [MarkedNode("n".into())]);
    assert!(Marker::wakes(&change("other"), &cache, &local).is_empty());
    let rights: Vec<_> = MarkerAction::permissions().iter().map(|right| (right.kind, right.verb)).collect();
    assert_eq!(rights, [(Kind::Node, "patch")]);
}
