//! Zones: where translated volumes can be reached from, and whether nodes are there.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, names};
use rules_translate::Plugin;

use crate::item::{Becomes, ItemKind};
use crate::survey::NodeFacts;
use crate::{MigrationObstacle, Survey};

/// What is wrong with the zones of a plugin's volumes.
pub(crate) fn obstacles(survey: &Survey, plugin: Plugin) -> Vec<MigrationObstacle> {
    let Some(key) = plugin.zone_key() else { return Vec::new() };
    let mut zones: BTreeMap<&str, Vec<ObjectRef>> = BTreeMap::new();
    let mut unsaid: Vec<ObjectRef> = Vec::new();
    let mut placed = 0;
    for item in survey.items.iter().filter(|item| item.plugin == Some(plugin) && item.kind == ItemKind::Volume) {
        match &item.becomes {
            Some(Becomes::Volume { zones: named, .. }) if named.is_empty() => unsaid.push(item.object()),
            Some(Becomes::Volume { zones: named, .. }) => {
                placed += 1;
                named.iter().for_each(|zone| zones.entry(zone).or_default().push(item.object()));
            }
            Some(Becomes::Class | Becomes::Claim) | None => {}
        }
    }
    let mut found = Vec::new();
    // Where a disk is matters to these plugins: the cloud's disks of the others have no zone, or one for all.
    let zonal = matches!(plugin, Plugin::AwsEbs | Plugin::GcePd);
    if zonal && !unsaid.is_empty() {
        found.push(MigrationObstacle::ZoneUnsaid { plugin, volumes: unsaid });
    }
    if placed == 0 {
        return found;
    }
    let untold = |node: &NodeFacts| match node.csi.as_ref().and_then(|csi| csi.drivers.get(plugin.driver())) {
        Some(keys) => !keys.iter().any(|told| told == key),
        // A driver that is not there is another obstacle.
        None => false,
    };
    let nodes: Vec<String> =
        survey.nodes.iter().filter(|(_, node)| untold(node)).map(|(name, _)| name.clone()).collect();
    if !nodes.is_empty() {
        found.push(MigrationObstacle::ZonesUntold { plugin, nodes, volumes: placed });
    }
    if survey.knows(Kind::Node) {
        let is_in = |node: &NodeFacts, zone: &str| {
            [key, names::ZONE, names::ZONE_BETA].iter().any(|key| node.zones.get(*key).is_some_and(|held| held == zone))
        };
        let empty = zones.into_iter().filter(|(zone, _)| !survey.nodes.values().any(|node| is_in(node, zone)));
        found.extend(empty.map(|(zone, volumes)| MigrationObstacle::ZoneWithoutNode { zone: zone.into(), volumes }));
    }
    found
}
