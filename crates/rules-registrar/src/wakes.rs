//! Which keys a change concerns.

use alloc::vec::Vec;

use api::{CSIDriver, CSINode, Lease, Node, VolumeAttachment};
use control::{Route, Woken, routes};

use crate::{Key, Local, Registrar, lease};

pub(crate) const ROUTES: &[Route<Registrar>] = routes![
    Node => each(|node, woken| wake_if_ours(&node.metadata.name, woken)),
    CSINode => each(|csi_node, woken| wake_if_ours(&csi_node.metadata.name, woken)),
    Lease => each(lease_wakes),
    CSIDriver => each(|driver, woken| driver_wakes(&driver.metadata.name, woken)),
    VolumeAttachment => each(attachment_wakes),
];

pub(crate) fn keys(local: &Local) -> Vec<Key> {
    let sockets = local.sockets.keys().map(|path| Key::Socket(local.node.clone(), path.clone()));
    let lease = local.keeps_lease.then(|| Key::Lease(local.node.clone()));
    core::iter::once(Key::SelfNode(local.node.clone())).chain(lease).chain(sockets).collect()
}

fn lease_wakes(lease: &Lease, woken: &mut Woken<'_, Registrar>) {
    if woken.local.keeps_lease && lease::node_of(lease) == Some(&woken.local.node) {
        woken.wake_all([Key::Lease(woken.local.node.clone())]);
    }
}

/// The sockets that may be the driver's.
fn driver_wakes(driver: &str, woken: &mut Woken<'_, Registrar>) {
    let of_driver = |socket: &&crate::Socket| socket.progress.plugin().is_some_and(|plugin| plugin.name == driver);
    let sockets = woken.local.sockets.iter().filter(|(_, socket)| of_driver(socket));
    let keys: Vec<Key> = sockets.map(|(path, _)| Key::Socket(woken.local.node.clone(), path.clone())).collect();
    woken.wake_all(keys);
}

fn attachment_wakes(attachment: &VolumeAttachment, woken: &mut Woken<'_, Registrar>) {
    if attachment.spec.node_name == woken.local.node && attachment.status.attach_error.is_some() {
        driver_wakes(&attachment.spec.attacher, woken);
    }
}

fn wake_if_ours(node: &str, woken: &mut Woken<'_, Registrar>) {
    if node == woken.local.node {
        woken.wake_all(keys(woken.local));
    }
}
