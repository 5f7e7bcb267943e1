//! SC-14 to SC-17, reliability 36: no node gets more volumes of a driver than it takes.

use alloc::vec::Vec;

use crate::{NodeObstacle, NodeView, PendingPod};

pub(super) fn filter(_pod: &PendingPod, node: &NodeView) -> Vec<NodeObstacle> {
    let objection = node.drivers.iter().find_map(|room| {
        if room.absent {
            return Some(NodeObstacle::DriverAbsent(room.driver.clone()));
        }
        let full = room.new > 0 && room.limit.is_some_and(|limit| room.used + room.new > limit);
        full.then(|| NodeObstacle::LimitReached(room.driver.clone()))
    });
    objection.into_iter().collect()
}
