use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Node, Object, ObjectKey, ObjectRef, names};
use control::{BackOff, Cache, Change, Decision, Narrate, Outcome, Rules, Tick};

use crate::action::Action;
use crate::local::{Local, Registration};
use crate::view::{CsiNodeSide, NodeObject, SelfView, SocketView, View};
use crate::{Reason, action, decide};

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
    type Reason = Reason;
    type Memory = ();

    fn watches() -> &'static [Kind] {
        &[Kind::Node, Kind::CSINode]
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        let concerns = |object: &Object| match object {
            Object::Node(node) => node.metadata.name == local.node,
            Object::CSINode(csi_node) => csi_node.metadata.name == local.node,
            Object::PersistentVolumeClaim(_)
            | Object::PersistentVolume(_)
            | Object::StorageClass(_)
            | Object::VolumeAttachment(_)
            | Object::CSIDriver(_)
            | Object::Pod(_)
            | Object::Secret(_)
            | Object::VolumeAttributesClass(_)
            | Object::CSIStorageCapacity(_)
            | Object::VolumeSnapshot(_)
            | Object::VolumeSnapshotContent(_)
            | Object::ReferenceGrant(_)
            | Object::Lease(_) => false,
        };
        if change.sides().any(concerns) { Self::keys(cache, local) } else { Vec::new() }
    }

    fn keys(_: &Cache, local: &Local) -> Vec<Key> {
        let sockets = local.sockets.keys().map(|path| Key::Socket(local.node.clone(), path.clone()));
        core::iter::once(Key::SelfNode(local.node.clone())).chain(sockets).collect()
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        let node = cache.node(&ObjectKey::cluster(local.node.clone()));
        let csi_node = csi_node_side(cache, local, node);
        match key {
            Key::SelfNode(_) => View::SelfNode(SelfView {
                name: local.node.clone(),
                incarnation: local.incarnation.clone(),
                node: node.cloned(),
                csi_node,
            }),
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

    fn decide(now: Tick, view: &View, (): &()) -> Decision<Action, Reason> {
        decide::decide(now, view)
    }

    fn remember(_now: Tick, (): (), _did: &Action, _got: &Outcome) {}

    /// What one socket answered decides whether another is a rival.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        action::learn(local, did, got);
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

fn node_side(local: &Local, node: Option<&Arc<Node>>) -> NodeObject {
    match node {
        Some(node) if node.metadata.annotation(names::AGENT_INCARNATION) == Some(&local.incarnation) => {
            NodeObject::Ours(node.clone())
        }
        Some(_) | None => NodeObject::NotYet,
    }
}

/// KL-19: a CSINode counts only if it names this very Node as its owner.
fn csi_node_side(cache: &Cache, local: &Local, node: Option<&Arc<Node>>) -> CsiNodeSide {
    let Some(csi_node) = cache.csi_node(&ObjectKey::cluster(local.node.clone())) else { return CsiNodeSide::Missing };
    let uid = node.map(|node| node.metadata.uid.as_str()).unwrap_or_default();
    let owned = csi_node.metadata.owner_references.iter().any(|owner| owner.kind == "Node" && owner.uid == uid);
    if owned { CsiNodeSide::Ours(csi_node.clone()) } else { CsiNodeSide::Foreign(csi_node.clone()) }
}

/// Reliability 65: who has the name keeps it; among newcomers the first path has it.
fn rival(local: &Local, path: &str) -> Option<String> {
    let ours = local.sockets.get(path)?;
    let name = &ours.progress.plugin()?.name;
    let has_it = |progress: &Registration| matches!(progress, Registration::Told(..));
    if has_it(&ours.progress) {
        return None;
    }
    let others = local.sockets.iter().filter(|(other, socket)| {
        *other != path && socket.progress.plugin().is_some_and(|plugin| &plugin.name == name)
    });
    let mut rivals = others.filter(|(other, socket)| has_it(&socket.progress) || other.as_str() < path);
    rivals.next().map(|(other, _)| other.clone())
}
