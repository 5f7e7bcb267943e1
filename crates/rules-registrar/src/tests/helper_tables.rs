//! What the two programs beside a driver do, the helper and the marker, on everything they can find, as tables.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use api::names;
use control::{Action as _, Decision, Rules, Timestamp};
use prove_lab::{Choices, check_table, print_effect};
use serde_json::json;

use crate::{
    Announced, AtPath, Heard, Helper, HelperFacts, HelperStep, MarkedNode, Marker, MarkerLocal, MarkerView, NodeInfo,
};

fn helper() -> Helper {
    Helper { driver_seen_by_node: "/d/csi.sock".into(), directory: "/reg/".into(), ..Helper::default() }
}

fn at_path(choices: &mut Choices) -> AtPath {
    choices.one_of(
        "at-path",
        &[
            ("nothing", AtPath::Nothing),
            ("socket", AtPath::Socket),
            ("other", AtPath::Other),
            ("unreadable", AtPath::Unreadable("no right to".into())),
        ],
    )
}

/// What NodeGetInfo says: before the driver was asked, as one node, as another.
fn node_info(choices: &mut Choices, field: &'static str) -> Option<NodeInfo> {
    let info = |id: &str| Some(NodeInfo { node_id: id.into(), ..NodeInfo::default() });
    choices.one_of(field, &[("unasked", None), ("node-7", info("node-7")), ("node-8", info("node-8"))])
}

/// Long names as their letter and length.
fn shortened(mut text: String) -> String {
    for (letter, length) in [("i", 257), ("i", 256), ("p", 254), ("p", 253), ("k", 64), ("k", 63), ("v", 64), ("v", 63)]
    {
        text = text.replace(&letter.repeat(length), &format!("<{length} {letter}>"));
    }
    text
}

fn told(step: &HelperStep) -> String {
    match step {
        HelperStep::AskDriver => "AskDriver".into(),
        HelperStep::Remove(path) => format!("Remove {path}"),
        HelperStep::Listen(path) => format!("Listen {path}"),
        HelperStep::Serve => "Serve".into(),
        HelperStep::End(status, why) => format!("End {status}: {why}"),
    }
}

#[test]
fn every_step_of_a_helper() {
    check_table(env!("CARGO_MANIFEST_DIR"), "helper", |choices| {
        let mut helper = helper();
        if !choices.flag("registration-path") {
            helper.driver_seen_by_node.clear();
        }
        helper.probes = choices.flag("probe");
        let away = Heard::TurnedAway("no such version".into());
        let heard = [("nothing", Heard::Nothing), ("registered", Heard::Registered), ("turned-away", away)];
        let heard = choices.one_of("heard", &heard);
        let long = "d".repeat(64);
        let driver = choices.one_of(
            "driver",
            &[
                ("unasked", None),
                ("silent", Some(Err("connection refused".into()))),
                ("named", Some(Ok("d.example".into()))),
                ("too-long-name", Some(Ok(long))),
                ("no-name", Some(Ok(String::new()))),
                ("path-for-a-name", Some(Ok("../etc".into()))),
                ("dash-at-the-end", Some(Ok("d-".into()))),
            ],
        );
        let ending = choices.flag("ending");
        let at_path = at_path(choices);
        let announced = choices.flag("listening").then(|| Announced { place: node_info(choices, "then") });
        let place = node_info(choices, "now");
        told(&helper.step(&HelperFacts { driver, at_path, announced, place, heard, ending }))
    });
}

#[test]
fn every_answer_to_a_health_check() {
    check_table(env!("CARGO_MANIFEST_DIR"), "health", |choices| {
        let at_path = at_path(choices);
        let said = choices.one_of(
            "said",
            &[
                ("unasked", None),
                ("the-name", Some(Ok("d".into()))),
                ("another-name", Some(Ok("e".into()))),
                ("an-error", Some(Err("connection refused".into()))),
            ],
        );
        let health = helper().health("d", &at_path, said.as_ref());
        format!("{} {}", health.status, health.text)
    });
}

/// Topologies that a node has, or that cannot be labels, each at the edge of what is allowed.
fn topology(choices: &mut Choices) -> (String, String) {
    let (key, value): (String, String) = choices.one_of(
        "topology",
        &[
            ("zone=z", ("zone".into(), "z".into())),
            ("no-value", ("zone".into(), String::new())),
            ("with-a-prefix", ("d.example/zone".into(), "z".into())),
            ("longest-prefix", (format!("{}/zone", "p".repeat(253)), "z".into())),
            ("longer-prefix", (format!("{}/zone", "p".repeat(254)), "z".into())),
            ("empty-prefix", ("/zone".into(), "z".into())),
            ("empty-key", (String::new(), "z".into())),
            ("prefix-without-a-name", ("d/".into(), "z".into())),
            ("longest-key", ("k".repeat(63), "z".into())),
            ("longer-key", ("k".repeat(64), "z".into())),
            ("all-letters", ("a.b-c_9".into(), "A.b-c_9".into())),
            ("space-in-key", ("a b".into(), "z".into())),
            ("dash-before", ("zone".into(), "-z".into())),
            ("dash-after", ("zone".into(), "z-".into())),
            ("longest-value", ("zone".into(), "v".repeat(63))),
            ("longer-value", ("zone".into(), "v".repeat(64))),
        ],
    );
    (key, value)
}

#[test]
fn everything_the_marker_finds() {
    check_table(env!("CARGO_MANIFEST_DIR"), "marker", |choices| {
        let place = match choices.word("id", &["unasked", "id", "none", "longest", "longer"]) {
            "unasked" => None,
            id => {
                let node_id = match id {
                    "none" => String::new(),
                    "longest" => "i".repeat(256),
                    "longer" => "i".repeat(257),
                    id => id.into(),
                };
                let topology = if id == "id" { topology(choices) } else { ("zone".into(), "z".into()) };
                Some(NodeInfo { node_id, topology: [topology].into(), max_volumes: 0 })
            }
        };
        let node = choices.flag("node").then(|| {
            let mut node = json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "7" } });
            let ids = [
                ("none", None),
                ("same", Some(r#"{"d":"id"}"#)),
                ("changed", Some(r#"{"d":"x"}"#)),
                ("of-another-driver", Some(r#"{"e":"o"}"#)),
                ("junk", Some("[")),
            ];
            if let Some(ids) = choices.one_of("ids", &ids) {
                node["metadata"]["annotations"] = json!({ names::NODE_ID: ids });
            }
            if let Some(zone) = choices.one_of("zone", &[("none", None), ("z", Some("z")), ("y", Some("y"))]) {
                node["metadata"]["labels"] = json!({ "zone": zone });
            }
            if choices.flag("in-use") {
                node["status"]["volumesInUse"] = json!([names::unique_volume_name("d", "h")]);
            }
            Arc::new(serde_json::from_value(node).unwrap())
        });
        let local = MarkerLocal { node: "n".into(), driver: "d".into(), place };
        let decision = Marker::decide(Timestamp(0), &MarkerView { local: Box::new(local), node }, &());
        shortened(match &decision {
            Decision::Do(action, why) => {
                format!("Do({}: {}) {}", action.name(), print_effect(&action.effect()), why.text)
            }
            rest => format!("Rest, {}: {}", if rest.why().settled { "settled" } else { "waiting" }, rest.why().text),
        })
    });
}

// What `explain` and the log call the marker's one key.
#[test]
fn the_marker_speaks_of_its_node() {
    assert_eq!(MarkedNode("n".into()).to_string(), "node n");
}
