//! Each fact of a view and each change that wakes, by what makes it true and what almost does.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Object, Value, names};
use control::{Cache, Change, Decision, Rules, Timestamp};
use csi::Capabilities;
use prove_lab::object;
use serde_json::json;

use super::world::{OTHER, SOCKET, World};
use crate::{
    Action, CsiNodeSide, Key, Local, MachineFacts, NodeInfo, NodeObject, PluginAtSocket, Reason, Registrar,
    RegistrationProgress, SocketView, View,
};

fn plugin(name: &str, version: &str) -> PluginAtSocket {
    PluginAtSocket {
        kind: "CSIPlugin".into(),
        name: name.into(),
        endpoint: "/csi.sock".into(),
        versions: vec![version.into()],
        wants_pod: Some(false),
    }
}

fn place() -> NodeInfo {
    NodeInfo { node_id: "node-7".into(), ..NodeInfo::default() }
}

pub(super) fn able(name: &str, version: &str) -> RegistrationProgress {
    RegistrationProgress::Able(plugin(name, version), place(), Capabilities::NONE)
}

/// A node with a socket of driver `d`, and another one.
pub(super) fn local(other: RegistrationProgress) -> Local {
    let mut local = Local::new("n", "life-1");
    for (path, progress) in [(SOCKET, able("d", "1.0.0")), (OTHER, other)] {
        local.seen(path);
        local.sockets.get_mut(path).unwrap().progress = progress;
    }
    local
}

fn node(incarnation: &str) -> Object {
    let metadata = json!({ "name": "n", "uid": "u", "annotations": { names::AGENT_INCARNATION: incarnation } });
    object(Kind::Node, json!({ "metadata": metadata }))
}

fn csi_node(owner_kind: &str, owner_uid: &str) -> Object {
    let owner = json!({ "apiVersion": "v1", "kind": owner_kind, "name": "n", "uid": owner_uid });
    object(Kind::CSINode, json!({ "metadata": { "name": "n", "ownerReferences": [owner] }, "spec": { "drivers": [] } }))
}

fn view(local: &Local, objects: impl IntoIterator<Item = Object>) -> SocketView {
    let mut cache = Cache::default();
    for one in objects {
        cache.set(one);
    }
    match Registrar::view(&World::socket_key(SOCKET), &cache, local) {
        View::Socket(view) => *view,
        other => panic!("{other:?}"),
    }
}

// KL-19; a node object of an earlier life of the agent says nothing yet.
#[test]
fn the_node_and_its_csinode_count_only_if_they_are_of_this_life() {
    let local = local(RegistrationProgress::Found);
    let seen = |incarnation: &str, kind: &str, uid: &str| view(&local, [node(incarnation), csi_node(kind, uid)]);
    assert!(matches!(seen("life-1", "Node", "u").node, NodeObject::Ours(_)));
    assert_eq!(seen("life-0", "Node", "u").node, NodeObject::NotYet);
    let ours = |kind: &str, uid: &str| matches!(seen("life-1", kind, uid).csi_node, CsiNodeSide::Ours(_));
    assert!(ours("Node", "u"));
    assert!(!ours("Node", "another"));
    assert!(!ours("Pod", "u"));
}

// KL-12: only who has answered everything, under the very name, outdoes another.
#[test]
fn kl_12_a_higher_version_counts_once_all_is_answered() {
    let rival = |other| view(&local(other), [node("life-1"), csi_node("Node", "u")]).rival.is_some();
    assert!(rival(able("d", "1.2.0")));
    assert!(!rival(able("e", "1.2.0")));
    assert!(!rival(RegistrationProgress::Placed(plugin("d", "1.2.0"), place())));
    assert!(!rival(able("d", "1.0.0")));
}

// Reliability 67: what was told of another problem is not what is to be told now.
#[test]
fn another_problem_is_told_at_once() {
    let mut local = local(RegistrationProgress::Found);
    let socket = local.sockets.get_mut(SOCKET).unwrap();
    socket.progress = able("-bad", "1.0.0");
    let decide = |local: &Local| {
        let view = view(local, [node("life-1"), csi_node("Node", "u")]);
        Registrar::decide(Timestamp(1_000), &View::Socket(Box::new(view)), &())
    };
    let Decision::Do(Action::TurnAway { problem, .. }, _) = decide(&local) else { panic!() };
    for (told, again) in [(problem, false), ("something else".into(), true)] {
        local.sockets.get_mut(SOCKET).unwrap().turned_away = Some((told, Timestamp(900)));
        assert_eq!(matches!(decide(&local), Decision::Do(Action::TurnAway { .. }, _)), again);
    }
}

// KL-25: a period of no seconds is no wish, and asking in time is no wait for anybody.
#[test]
fn kl_25_a_limit_is_asked_for_only_in_a_period() {
    let asked = |period: Value| {
        let driver = json!({ "metadata": { "name": "d" }, "spec": { "nodeAllocatableUpdatePeriodSeconds": period } });
        view(&local(RegistrationProgress::Found), [object(Kind::CSIDriver, driver)]).limit.period_millis
    };
    assert_eq!(asked(json!(60)), Some(60_000));
    assert_eq!(asked(json!(0)), None);
    assert_eq!(asked(Value::Null), None);
}

#[test]
fn asking_for_a_limit_leaves_the_socket_settled() {
    let mut view = view(&local(RegistrationProgress::Found), [node("life-1"), csi_node("Node", "u")]);
    view.limit.period_millis = Some(60_000);
    let rest = control::Why::settled(Reason::DriverRegistered, "");
    let decision = crate::limit::decide(Timestamp(0), &view, &plugin("d", "1.0.0"), rest);
    assert!(matches!(decision, Decision::Do(Action::AskLimit { .. }, _)) && decision.why().settled);
}

// KL-24: whichever of the machine's facts the status does not say.
#[test]
fn a_node_is_described_anew_when_its_machine_is_another() {
    let machine = |kernel: &str, address: &str, cpus: u64| {
        let info = api::SystemInfo { kernel_version: kernel.into(), ..Default::default() };
        MachineFacts::of("n", info, Some(address.into()), cpus, 4 << 30)
    };
    for (kernel, address, cpus) in [("6.2", "10.0.0.7", 2), ("6.1", "10.0.0.8", 2), ("6.1", "10.0.0.7", 4)] {
        let mut world = World::new();
        world.create(Kind::Namespace, json!({ "metadata": { "name": crate::NODE_LEASES } }));
        world.restart(Local::new("n", "life-1").on(machine("6.1", "10.0.0.7", 2)));
        world.settle();
        let key = Key::SelfNode("n".into());
        assert!(matches!(world.decide(&key), Decision::Wait(..)), "{}", world.decide(&key).why());
        world.update_local(|local| local.machine = Some(machine(kernel, address, cpus)));
        assert_eq!(world.why(&key).code, "MachineNotDescribed", "{kernel} {address} {cpus}");
    }
}

#[test]
fn leases_drivers_and_attachments_wake_whom_they_concern() {
    let mut local = local(able("e", "1.0.0"));
    local.keeps_lease = true;
    let woken = |local: &Local, one: Object| -> Vec<String> {
        let change = Change { before: None, after: Some(one) };
        Registrar::wakes(&change, &Cache::default(), local).iter().map(ToString::to_string).collect()
    };
    let nobody: [&str; 0] = [];
    let (one, other) = ("node n socket /reg/d.sock", "node n socket /reg/e.sock");
    let lease = |namespace: &str, name: &str| {
        object(Kind::Lease, json!({ "metadata": { "namespace": namespace, "name": name }, "spec": {} }))
    };
    assert_eq!(woken(&local, lease(crate::NODE_LEASES, "n")), ["node n lease"]);
    assert_eq!(woken(&local, lease(crate::NODE_LEASES, "m")), nobody);
    assert_eq!(woken(&local, lease("default", "n")), nobody);
    local.keeps_lease = false;
    assert_eq!(woken(&local, lease(crate::NODE_LEASES, "n")), nobody);
    let driver = |name: &str| object(Kind::CSIDriver, json!({ "metadata": { "name": name } }));
    assert_eq!(woken(&local, driver("d")), [one]);
    assert_eq!(woken(&local, driver("e")), [other]);
    assert_eq!(woken(&local, driver("f")), nobody);
    let attachment = |node: &str, error: Value| {
        let spec = json!({ "attacher": "d", "nodeName": node, "source": { "persistentVolumeName": "v" } });
        let body = json!({ "metadata": { "name": "va" }, "spec": spec, "status": { "attachError": error } });
        object(Kind::VolumeAttachment, body)
    };
    let full = || json!({ "message": "full", "time": "2026-01-01T00:00:00Z" });
    assert_eq!(woken(&local, attachment("n", full())), [one]);
    assert_eq!(woken(&local, attachment("n", Value::Null)), nobody);
    assert_eq!(woken(&local, attachment("m", full())), nobody);
}
