use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{CSINode, Kind, Node, ObjectKey, ObjectRef, names};
use control::{BackOff, Cache, Decision, Narrate, Outcome, Route, Rules, Tick, Woken, routes};

use crate::act::Action;
use crate::local::{Local, Progress};
use crate::view::{CsiNodeSide, NodeSide, SelfView, SocketView, View};
use crate::{act, decide};

/// The registrar's rules.
pub struct Registrar;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The objects of the node of this name, which is this one.
    SelfNode(String),
    /// The registration socket at this path, on the node of this name.
    Socket(String, String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::SelfNode(node) => write!(f, "node {node}"),
            Key::Socket(node, path) => write!(f, "node {node} socket {path}"),
        }
    }
}

impl Rules for Registrar {
    const NAME: &'static str = "registrar";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = routes![
        Node => each(|node, woken| wake_if_ours(&node.metadata.name, woken)),
        CSINode => each(|csi_node, woken| wake_if_ours(&csi_node.metadata.name, woken)),
    ];

    fn keys(_: &Cache, local: &Local) -> Vec<Key> {
        let sockets = local.sockets.keys().map(|path| Key::Socket(local.node.clone(), path.clone()));
        core::iter::once(Key::SelfNode(local.node.clone())).chain(sockets).collect()
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        let node = cache.node(&ObjectKey::cluster(local.node.clone()));
        let csi_node = csi_node_side(cache, local, node.as_deref());
        match key {
            Key::SelfNode(_) => {
                View::SelfNode(SelfView { name: local.node.clone(), life: local.life.clone(), node, csi_node })
            }
            Key::Socket(_, path) => {
                let Some(socket) = local.sockets.get(path) else { return View::NoSocket };
                View::Socket(Box::new(SocketView {
                    path: path.clone(),
                    socket: socket.clone(),
                    rival: rival(local, path),
                    node: node_side(local, node),
                    csi_node,
                }))
            }
        }
    }

    fn decide(now: Tick, view: &View, (): &()) -> Decision<Action> {
        decide::decide(now, view)
    }

    fn remember(_now: Tick, (): (), _did: &Action, _got: &Outcome) {}

    /// What one socket answered decides whether another is a rival.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        act::learn(local, did, got);
        Self::keys(cache, local)
    }

    /// A driver that listens again is heard within five seconds (reliability 66).
    fn back_off(_local: &Local) -> BackOff {
        BackOff { longest: 5_000, ..BackOff::default() }
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::SelfNode(node) | Key::Socket(node, _) => ObjectRef::cluster(Kind::Node, node.to_string()),
        }
    }
}

impl Narrate for Registrar {}

fn wake_if_ours(node: &str, woken: &mut Woken<'_, Registrar>) {
    if node == woken.local.node {
        woken.wake_all(Registrar::keys(woken.cache, woken.local));
    }
}

fn node_side(local: &Local, node: Option<Arc<Node>>) -> NodeSide {
    match node {
        Some(node) if node.metadata.annotation(names::AGENT_LIFE) == Some(&local.life) => NodeSide::Ours(node),
        Some(_) | None => NodeSide::NotYet,
    }
}

/// KL-19: a CSINode counts only if it names this very Node as its owner.
fn csi_node_side(cache: &Cache, local: &Local, node: Option<&Node>) -> CsiNodeSide {
    let Some(csi_node) = cache.csi_node(&ObjectKey::cluster(local.node.clone())) else { return CsiNodeSide::Missing };
    let uid = node.map(|node| node.metadata.uid.as_str()).unwrap_or_default();
    let owned = csi_node.metadata.owner_references.iter().any(|owner| owner.kind == "Node" && owner.uid == uid);
    if owned { CsiNodeSide::Ours(csi_node) } else { CsiNodeSide::Foreign(csi_node) }
}

/// Reliability 65: who has the name keeps it; among newcomers the first path has it.
fn rival(local: &Local, path: &str) -> Option<String> {
    let ours = local.sockets.get(path)?;
    let name = &ours.progress.plugin()?.name;
    let has_it = |progress: &Progress| matches!(progress, Progress::Told(..));
    if has_it(&ours.progress) {
        return None;
    }
    let others = local.sockets.iter().filter(|(other, socket)| {
        *other != path && socket.progress.plugin().is_some_and(|plugin| &plugin.name == name)
    });
    let mut rivals = others.filter(|(other, socket)| has_it(&socket.progress) || other.as_str() < path);
    rivals.next().map(|(other, _)| other.clone())
}
