//! The laws of registration: what drivers are told, and what CSINode says of them.
//!
//! A driver that an earlier incarnation of the agent registered does not count: the agent's list of drivers is its own,
//! and each incarnation registers them anew.

use std::collections::BTreeMap;

use api::{CsiNodeDriver, Kind, Object, names};
use csi::Call;

use crate::laws::Violation;
use crate::world::World;

/// What the CSINode of a node says of a driver.
pub(crate) fn entry<'a>(world: &'a World, node: &str, driver: &str) -> Option<&'a CsiNodeDriver> {
    let mut held = world.cluster.all(Kind::CSINode).filter(|held| held.object.meta().name == node);
    match &held.next()?.object {
        Object::CSINode(csi_node) => csi_node.spec.drivers.iter().find(|entry| entry.name == driver),
        _ => None,
    }
}

/// A node reports a volume of a driver in use.
pub(crate) fn uses(world: &World, node: &str, driver: &str) -> bool {
    let prefix = names::unique_volume_name(driver, "");
    let mut nodes = world.cluster.nodes().filter(|object| object.metadata.name == node);
    nodes.any(|node| node.status.volumes_in_use.iter().flatten().any(|volume| volume.starts_with(&prefix)))
}

/// Reliability 65: in every state.
pub(super) fn check_one_registered(world: &World) -> Option<Violation> {
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (at, plugin) in world.truth.plugins.registered() {
        by_name.entry(&plugin.name).or_default().push(at.clone());
    }
    let sockets = by_name.into_values().find(|sockets| sockets.len() > 1)?;
    Some(Violation::RegisteredTwice { sockets })
}

/// Reliability 63: before a driver is told that it is registered.
pub(super) fn check_welcome(world: &World, actor: &str, node: &str, at: &str, call: &Call) -> Option<Violation> {
    let Call::NotifyRegistrationStatus(status) = call else { return None };
    let plugins = &world.truth.plugins;
    let plugin = plugins.running.get(at).filter(|_| status.plugin_registered && !plugins.cut.contains(at))?;
    let listed = entry(world, node, &plugin.name).map(|entry| entry.node_id.clone());
    if listed.as_ref() == Some(&plugin.node_id) {
        return None;
    }
    let (says, listed) = (plugin.node_id.clone(), listed.unwrap_or_else(|| "no entry".into()));
    Some(Violation::WelcomesUnlisted { actor: actor.into(), socket: at.into(), says, listed })
}

/// Reliability 64: between two states. An entry under another identity is another entry.
pub(crate) fn check_entries(before: &World, after: &World) -> Option<Violation> {
    let same = |one: &CsiNodeDriver, other: &CsiNodeDriver| one.node_id == other.node_id;
    for held in before.cluster.all(Kind::CSINode) {
        let Object::CSINode(csi_node) = &held.object else { continue };
        let node = &csi_node.metadata.name;
        for was in &csi_node.spec.drivers {
            let stays = entry(after, node, &was.name).is_some_and(|is| same(was, is));
            if !stays && uses(before, node, &was.name) {
                return Some(Violation::EntryWent { driver: was.name.clone(), node: node.clone() });
            }
        }
    }
    None
}
