//! What is decided on every shape of a view, as tables.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;

use api::{CSINode, Node, Value, names};
use control::{Rules, Timestamp};
use csi::Capabilities;
use prove_lab::{Choices, check_table, verdict};
use serde_json::json;

use crate::{
    CsiNodeSide, NameRival, NodeInfo, NodeObject, PluginAtSocket, Registrar, RegistrationProgress, SelfView, Socket,
    SocketView, View,
};

fn csi_node(drivers: Value) -> Arc<CSINode> {
    let body = json!({ "metadata": { "name": "n", "uid": "c" }, "spec": { "drivers": drivers } });
    Arc::new(serde_json::from_value(body).unwrap())
}

fn sides(choices: &mut Choices, drivers: impl FnOnce(&mut Choices) -> Value) -> CsiNodeSide {
    match choices.word("csinode", &["missing", "foreign", "ours"]) {
        "missing" => CsiNodeSide::Missing,
        "foreign" => CsiNodeSide::Foreign(csi_node(json!([]))),
        _ours => CsiNodeSide::Ours(csi_node(drivers(choices))),
    }
}

#[test]
fn every_shape_of_the_node_itself() {
    check_table(env!("CARGO_MANIFEST_DIR"), "nodes", |choices| {
        let node = choices.flag("node").then(|| {
            let mut node = json!({ "metadata": { "name": "n", "annotations": {}, "labels": {} }, "status": {} });
            let life = choices.one_of("life", &[("none", None), ("another", Some("life-0")), ("this", Some("life-1"))]);
            node["metadata"]["annotations"][names::AGENT_INCARNATION] = json!(life.unwrap_or_default());
            let managed = if choices.flag("managed") { "true" } else { "" };
            node["metadata"]["annotations"][names::CONTROLLER_MANAGED_ATTACH] = managed.into();
            if choices.flag("hostname") {
                node["metadata"]["labels"][names::HOSTNAME_LABEL] = "anything".into();
            }
            if choices.flag("in-use") {
                node["status"]["volumesInUse"] = json!([names::unique_volume_name("d", "h")]);
            }
            let ready = choices.one_of("ready", &[("no", "False"), ("yes", "True")]);
            node["status"]["conditions"] = json!([{ "type": "Ready", "status": ready }]);
            Arc::new(serde_json::from_value(node).unwrap())
        });
        let csi_node = sides(choices, |choices| match choices.flag("entry") {
            true => json!([{ "name": "d", "nodeID": "node-7" }]),
            false => json!([]),
        });
        let absent = [("none", None), ("just-now", Some(40_000)), ("for-long", Some(1_000))];
        let absent = choices.one_of("absent", &absent).map(|since| ("d".into(), Timestamp(since)));
        let absent = absent.into_iter().collect();
        let view = SelfView {
            name: "n".into(),
            incarnation: "life-1".into(),
            machine: None,
            migrated_plugins: None,
            node,
            csi_node,
            absent,
        };
        verdict(&Registrar::decide(Timestamp(50_000), &View::SelfNode(Box::new(view)), &()))
    });
}

fn plugin(choices: &mut Choices) -> PluginAtSocket {
    let (kind, name, version) = match choices.word("plugin", &["fit", "another-kind", "bad-name", "version-0"]) {
        "another-kind" => ("DevicePlugin", "d", "1.0.0"),
        "bad-name" => ("CSIPlugin", "-d", "1.0.0"),
        "version-0" => ("CSIPlugin", "d", "0.3.0"),
        _fit => ("CSIPlugin", "d", "1.0.0"),
    };
    let wants_pod = choices.one_of("options", &[("unasked", None), ("pod", Some(true))]);
    PluginAtSocket {
        kind: kind.into(),
        name: name.into(),
        endpoint: "/csi.sock".into(),
        versions: vec![version.into()],
        wants_pod,
    }
}

fn place(choices: &mut Choices) -> NodeInfo {
    let place = |id: &str, key: &str, limit| NodeInfo {
        node_id: id.into(),
        topology: [(String::from(key), String::from("z"))].into(),
        max_volumes: limit,
    };
    choices.one_of(
        "place",
        &[
            ("fit", place("node-7", "zone", 5)),
            ("no-node-id", place("", "zone", 5)),
            ("long-node-id", place(&"x".repeat(257), "zone", 5)),
            ("bad-topology", place("node-7", "-", 5)),
        ],
    )
}

fn progress(choices: &mut Choices) -> RegistrationProgress {
    match choices.word("progress", &["Found", "Introduced", "Placed", "Able", "Told"]) {
        "Found" => RegistrationProgress::Found,
        "Introduced" => RegistrationProgress::Introduced(plugin(choices)),
        "Placed" => RegistrationProgress::Placed(plugin(choices), place(choices)),
        "Able" => RegistrationProgress::Able(plugin(choices), place(choices), Capabilities::NONE),
        _told => RegistrationProgress::Told(plugin(choices), place(choices), Capabilities::NONE),
    }
}

/// The node, as far as one driver is described on it.
fn node(choices: &mut Choices) -> Arc<Node> {
    let mut node = json!({ "metadata": { "name": "n", "annotations": {}, "labels": {} }, "status": {} });
    match choices.word("zone-label", &["none", "same", "another"]) {
        "same" => node["metadata"]["labels"]["zone"] = "z".into(),
        "another" => node["metadata"]["labels"]["zone"] = "y".into(),
        _none => {}
    }
    let ids =
        [("none", None), ("this", Some(r#"{"d":"node-7"}"#)), ("another", Some(r#"{"d":"x"}"#)), ("junk", Some("["))];
    if let Some(ids) = choices.one_of("annotation", &ids) {
        node["metadata"]["annotations"][names::NODE_ID] = ids.into();
    }
    if choices.flag("in-use") {
        node["status"]["volumesInUse"] = json!([names::unique_volume_name("d", "h")]);
    }
    Arc::new(serde_json::from_value(node).unwrap())
}

fn entry(choices: &mut Choices) -> Value {
    let entry = |id: &str, keys: Value, count| {
        let allocatable = json!({ "count": count });
        json!([{ "name": "d", "nodeID": id, "topologyKeys": keys, "allocatable": allocatable }])
    };
    choices.one_of(
        "entry",
        &[
            ("none", json!([])),
            ("same", entry("node-7", json!(["zone"]), 5)),
            ("other-limit", entry("node-7", json!(["zone"]), 6)),
            ("other-keys", entry("node-7", json!(["rack"]), 5)),
            ("other-id", entry("x", json!(["zone"]), 5)),
        ],
    )
}

#[test]
fn every_shape_of_a_socket() {
    check_table(env!("CARGO_MANIFEST_DIR"), "sockets", |choices| {
        let progress = progress(choices);
        let other = "/reg/other.sock";
        let rival = choices.one_of(
            "rival",
            &[
                ("none", None),
                ("keeps", Some(NameRival::Keeps(other.into()))),
                ("leaves", Some(NameRival::Leaves(other.into()))),
            ],
        );
        let holds = choices.flag("holds").then(|| "d".into());
        let node = match choices.flag("node") {
            true => NodeObject::Ours(node(choices)),
            false => NodeObject::NotYet,
        };
        let csi_node = sides(choices, entry);
        let listed = choices.flag("listed");
        let socket = Socket { incarnation: 1, progress, holds, listed, ..Socket::default() };
        let view = SocketView { path: "/reg/d.sock".into(), socket, limit: Default::default(), rival, node, csi_node };
        verdict(&Registrar::decide(Timestamp(0), &View::Socket(Box::new(view)), &()))
    });
}
