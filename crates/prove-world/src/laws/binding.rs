//! The laws of binding: one claim for a volume, one volume for a claim.

use crate::laws::{Violation, handle};
use crate::world::World;

/// A claim was there before a step and a pod used it on a node: after the step the claim is gone and the pod is not. A
/// pod that got its node when the claim's deletion was asked for already does not count: nothing can be written on the
/// condition that no pod is placed meanwhile.
pub(super) fn check_used(before: &World, after: &World) -> Option<Violation> {
    let gone = before.cluster.claims().find(|claim| {
        let uid = &claim.metadata.uid;
        !after.cluster.claims().any(|now| now.metadata.uid == *uid)
    })?;
    let user = after.cluster.pods().find(|pod| {
        pod.metadata.namespace == gone.metadata.namespace
            && !pod.spec.node_name.is_empty()
            && !pod.is_terminal()
            && !after.unheld.contains(&pod.metadata.uid)
            && pod.claim_names().any(|name| name == gone.metadata.name)
    })?;
    Some(Violation::ClaimWent { claim: gone.metadata.key().to_string(), pod: user.metadata.key().to_string() })
}

pub(super) fn check_bindings(world: &World) -> Option<Violation> {
    for claim in world.cluster.claims() {
        let name = &claim.spec.volume_name;
        let rival = world
            .cluster
            .claims()
            .find(|c| !name.is_empty() && c.spec.volume_name == *name && c.metadata.uid != claim.metadata.uid);
        let key = claim.metadata.key().to_string();
        if let Some(rival) = rival {
            let other = rival.metadata.key().to_string();
            return Some(Violation::TwoClaims { volume: name.clone(), one: key, other });
        }
        let Some(volume) = world.cluster.volumes().find(|object| object.metadata.name == *name) else { continue };
        if volume.spec.claim_ref.as_ref().is_none_or(|back| back.uid != claim.metadata.uid) {
            return Some(Violation::ForAnother { claim: key, volume: name.clone() });
        }
    }
    for volume in world.cluster.volumes() {
        let twin = world.cluster.volumes().find(|object| {
            object.metadata.name != volume.metadata.name
                && !handle(object).is_empty()
                && handle(object) == handle(volume)
        });
        if let Some(twin) = twin {
            let (one, other) = (volume.metadata.name.clone(), twin.metadata.name.clone());
            return Some(Violation::TwoVolumes { handle: handle(volume).into(), one, other });
        }
    }
    None
}
