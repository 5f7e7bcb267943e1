//! Which keys a change concerns.

use alloc::vec::Vec;

use api::{CSINode, Node};
use control::{Route, Woken, routes};

use crate::{Key, Local, Registrar};

pub(crate) const ROUTES: &[Route<Registrar>] = routes![
    Node => each(|node, woken| wake_if_ours(&node.metadata.name, woken)),
    CSINode => each(|csi_node, woken| wake_if_ours(&csi_node.metadata.name, woken)),
];

pub(crate) fn keys(local: &Local) -> Vec<Key> {
    let sockets = local.sockets.keys().map(|path| Key::Socket(local.node.clone(), path.clone()));
    core::iter::once(Key::SelfNode(local.node.clone())).chain(sockets).collect()
}

fn wake_if_ours(node: &str, woken: &mut Woken<'_, Registrar>) {
    if node == woken.local.node {
        woken.wake_all(keys(woken.local));
    }
}
