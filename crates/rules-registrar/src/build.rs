//! From the cache to a view.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Node, ObjectKey, names};
use control::{Cache, Timestamp};

use crate::Key;
use crate::decide;
use crate::lease;
use crate::limit;
use crate::local::{Local, RegistrationProgress, Socket};
use crate::view::{CsiNodeSide, LeaseView, NameRival, NodeObject, SelfView, SocketView, View};

pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    let node = cache.node(&ObjectKey::cluster(local.node.clone()));
    let csi_node = csi_node_side(cache, local, node.as_deref());
    match key {
        Key::SelfNode(_) => View::SelfNode(Box::new(SelfView {
            name: local.node.clone(),
            incarnation: local.incarnation.clone(),
            machine: local.machine.clone(),
            migrated_plugins: local.migrated_plugins.clone(),
            absent: absent(node.as_deref(), &csi_node, local),
            node,
            csi_node,
        })),
        Key::Lease(name) => {
            let seconds = local.lease_seconds.unwrap_or(lease::DURATION_SECONDS);
            View::Lease(LeaseView { name: name.clone(), node, lease: cache.lease(&lease::key_of(name)), seconds })
        }
        Key::Socket(_, path) => {
            let Some(socket) = local.sockets.get(path) else { return View::NoSocket };
            let node = node_side(local, node);
            View::Socket(Box::new(SocketView {
                path: path.clone(),
                socket: socket.clone(),
                limit: limit::wishes(cache, local, socket),
                rival: rival(local, path, &node, &csi_node),
                node,
                csi_node,
            }))
        }
    }
}

fn node_side(local: &Local, node: Option<Arc<Node>>) -> NodeObject {
    match node {
        Some(node) if node.metadata.annotation(names::AGENT_INCARNATION) == Some(&local.incarnation) => {
            NodeObject::Ours(node)
        }
        Some(_) | None => NodeObject::NotYet,
    }
}

/// KL-19: a CSINode counts only if it names this very Node as its owner.
fn csi_node_side(cache: &Cache, local: &Local, node: Option<&Node>) -> CsiNodeSide {
    let Some(csi_node) = cache.csi_node(&ObjectKey::cluster(local.node.clone())) else { return CsiNodeSide::Missing };
    let uid = node.map(|node| node.metadata.uid.as_str()).unwrap_or_default();
    let owned = csi_node.metadata.owner_references.iter().any(|owner| owner.kind == "Node" && owner.uid == uid);
    if owned { CsiNodeSide::Ours(csi_node) } else { CsiNodeSide::Foreign(csi_node) }
}

/// Drivers that the node's objects name and that no socket speaks for. A socket that has not said who is behind it may
/// speak for any of them.
fn absent(node: Option<&Node>, csi_node: &CsiNodeSide, local: &Local) -> BTreeMap<String, Timestamp> {
    if local.sockets.values().any(|socket| socket.progress == RegistrationProgress::Found) {
        return BTreeMap::new();
    }
    let listed = match csi_node {
        CsiNodeSide::Ours(csi_node) => csi_node.spec.drivers.iter().map(|driver| driver.name.clone()).collect(),
        CsiNodeSide::Missing | CsiNodeSide::Foreign(_) => Vec::new(),
    };
    let annotated = node.and_then(|node| decide::node_ids(node).ok()).unwrap_or_default();
    let names = listed.into_iter().chain(annotated.into_keys()).filter(|name| !local.has_socket(name));
    names.map(|name| (name.clone(), *local.absent.get(&name).unwrap_or(&local.looking_since))).collect()
}

/// Reliability 65: who has the name keeps it, unless another that has answered everything and can be registered speaks
/// a higher version (KL-12), or the one that has it cannot be registered.
fn rival(local: &Local, path: &str, node: &NodeObject, csi_node: &CsiNodeSide) -> Option<NameRival> {
    let ours = local.sockets.get(path)?;
    let name = &ours.progress.plugin()?.name;
    let fit = |socket: &Socket| decide::may_be_registered(&socket.progress, node, csi_node);
    // Before the objects are there nobody knows who can be registered.
    let known = matches!((node, csi_node), (NodeObject::Ours(_), CsiNodeSide::Ours(_)));
    // What is not known of the holder speaks for it.
    let outdoes = |one: &Socket, holder: &Socket| {
        let older = holder.progress.plugin().is_some() && one.version() > holder.version();
        known && fit(one) && (older || !fit(holder))
    };
    match local.holder(name) {
        Some((holder, held)) if holder != path => match outdoes(ours, held) {
            true => Some(NameRival::Leaves(holder.clone())),
            false => Some(NameRival::Keeps(holder.clone())),
        },
        Some(_) | None => {
            let same_name = |socket: &Socket| socket.progress.plugin().is_some_and(|plugin| plugin.name == *name);
            let better = |socket: &Socket| same_name(socket) && socket.progress.is_complete() && outdoes(socket, ours);
            let (other, _) = local.sockets.iter().find(|(other, socket)| *other != path && better(socket))?;
            Some(NameRival::Keeps(other.clone()))
        }
    }
}
