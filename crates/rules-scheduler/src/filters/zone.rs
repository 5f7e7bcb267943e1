//! SC-21: volumes that say where they are by labels alone.

use alloc::vec::Vec;

use api::names;

use crate::{ClaimState, NodeObstacle, NodeView, PendingPod, Reach};

/// A node without any of these labels is in no zone, and passes.
const LABELS: [&str; 4] = [names::ZONE, names::REGION, names::ZONE_BETA, names::REGION_BETA];

pub(super) fn filter(pod: &PendingPod, node: &NodeView) -> Vec<NodeObstacle> {
    if !LABELS.iter().any(|label| node.labels.contains_key(*label)) {
        return Vec::new();
    }
    let elsewhere = pod.claims.iter().find(|(_, state)| match state {
        ClaimState::Bound { reach, .. } | ClaimState::Reserved { reach, .. } => !same_zone(reach, node),
        ClaimState::Missing { .. }
        | ClaimState::Deleting
        | ClaimState::Lost(_)
        | ClaimState::TakenBy(_)
        | ClaimState::Unbound
        | ClaimState::AwaitsNode(_)
        | ClaimState::NodeSelected { .. }
        | ClaimState::VolumeUnseen(_) => false,
    });
    elsewhere.map(|(claim, _)| NodeObstacle::OtherZone(claim.clone())).into_iter().collect()
}

fn same_zone(reach: &Reach, node: &NodeView) -> bool {
    reach.zones.iter().all(|(label, values)| {
        // A node may have only the newer name of the label.
        let newer = match label.as_str() {
            names::ZONE_BETA => Some(names::ZONE),
            names::REGION_BETA => Some(names::REGION),
            _ => None,
        };
        let found = node.labels.get(label).or_else(|| node.labels.get(newer?));
        found.is_some_and(|found| values.contains(found))
    })
}
