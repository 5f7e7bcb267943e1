//! What a [`life`](crate::worlds::life) should look like when nobody has anything left to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::{PersistentVolumeClaim, Pod, VolumePhase, names};

use crate::laws::{self, Violation};
use crate::world::World;
use crate::worlds::DRIVER;
use crate::worlds::life::{Slot, is_bound, slots, waits};
use crate::worlds::resize::bytes;

/// Claims have their volumes, pods run with them, and nothing is left of what went.
pub fn rest(world: &World) -> Option<Violation> {
    if let Some(pod) = world.cluster.pods().find(|pod| pod.metadata.is_deleting()) {
        return Some(Violation::PodLeft { pod: pod.metadata.name.clone() });
    }
    rest_placing(world).or_else(|| rest_nodes(world)).or_else(|| slots(world).find_map(|slot| small(world, slot)))
}

/// Claims that are asked for have their volumes, those that were deleted are gone unless a pod on a node uses them, and
/// each volume is some claim's.
pub fn rest_placing(world: &World) -> Option<Violation> {
    if let Some(uid) = laws::entries(world).next() {
        return Some(Violation::EntryLeft { claim: uid.into() });
    }
    for claim in world.cluster.claims() {
        let name = claim.metadata.name.clone();
        if claim.metadata.has_finalizer(names::PROVISIONING_INTENT) {
            return Some(Violation::IntentLeft { claim: name });
        }
        let mut users = world.cluster.pods().filter(|pod| pod.claim_names().any(|used| used == name));
        if claim.metadata.is_deleting() {
            if users.all(|pod| pod.spec.node_name.is_empty()) {
                return Some(Violation::ClaimLeft { claim: name });
            }
        } else if !is_bound(claim) && (users.next().is_some() || !waits(&name)) {
            let volumes = world.cluster.volumes().count();
            return Some(Violation::ClaimUnserved { phase: claim.status.phase.to_string(), volumes });
        }
    }
    for volume in world.cluster.volumes() {
        let named = |claim: &Arc<PersistentVolumeClaim>| claim.spec.volume_name == volume.metadata.name;
        if !world.cluster.claims().any(named) || volume.status.phase != VolumePhase::Bound {
            return Some(Violation::VolumeLeft { volume: volume.metadata.name.clone() });
        }
    }
    let known = |id: &&String| world.cluster.volumes().any(|volume| laws::handle(volume) == **id);
    if let Some(handle) = world.truth.volumes.values().find(|id| !known(id)) {
        return Some(Violation::HandleLeft { handle: handle.clone() });
    }
    let placed = |pod: &Arc<Pod>| !pod.spec.node_name.is_empty();
    let claimed = |pod: &Arc<Pod>| slots(world).any(|slot| slot.uses(pod) && slot.live_claim(world).is_some());
    let waiting = world.cluster.pods().find(|pod| claimed(pod) && !placed(pod));
    waiting.map(|pod| Violation::PodNotPlaced { pod: pod.metadata.name.clone() })
}

/// Which handle is wanted on which node.
fn wanted(world: &World) -> BTreeSet<(String, String)> {
    let mut wanted = BTreeSet::new();
    for pod in world.cluster.pods().filter(|pod| !pod.spec.node_name.is_empty()) {
        for claim in world.cluster.claims().filter(|claim| pod.claim_names().any(|name| name == claim.metadata.name)) {
            let volume = world.cluster.volumes().find(|volume| volume.metadata.name == claim.spec.volume_name);
            wanted.extend(volume.map(|volume| (laws::handle(volume).to_string(), pod.spec.node_name.clone())));
        }
    }
    wanted
}

/// Pods run where they are placed with what they asked for, and nodes, attachments and driver know of nothing else.
fn rest_nodes(world: &World) -> Option<Violation> {
    let wanted = wanted(world);
    for (node, host) in &world.truth.hosts {
        let here: BTreeSet<&String> = wanted.iter().filter(|(_, at)| at == node).map(|(handle, _)| handle).collect();
        let runs = host.processes.values().filter(|running| **running).count();
        if runs < here.len() || here.iter().any(|handle| !host.holds(handle)) {
            return Some(Violation::PodDoesNotRun { node: node.clone() });
        }
        let staged: BTreeSet<&String> = host.staged.iter().map(|(handle, _)| handle).collect();
        let counts = [runs, host.processes.len(), host.published.len(), host.files.len()];
        if staged != here || counts.iter().any(|count| *count != here.len()) {
            return Some(Violation::LeftOnNode { node: node.clone() });
        }
    }
    for node in world.cluster.nodes() {
        let name = &node.metadata.name;
        let said = |handle: &str| {
            let unique = names::unique_volume_name(DRIVER, handle);
            (node.reports_attached(&unique), node.reports_in_use(&unique))
        };
        let unique: BTreeSet<String> = wanted
            .iter()
            .filter(|(_, at)| at == name)
            .map(|(handle, _)| names::unique_volume_name(DRIVER, handle))
            .collect();
        let attached = node.status.volumes_attached.iter().flatten().map(|attached| &attached.name);
        let mut said_of = node.status.volumes_in_use.iter().flatten().chain(attached);
        let told = wanted.iter().filter(|(_, at)| at == name).all(|(handle, _)| said(handle) == (true, true));
        if !told || said_of.any(|other| !unique.contains(other)) {
            return Some(Violation::NodeStatusUntrue { node: name.clone() });
        }
    }
    let handle = |volume: &str| {
        let found = world.cluster.volumes().find(|object| object.metadata.name == volume);
        found.map(|object| laws::handle(object).to_string()).unwrap_or_default()
    };
    let attachments: BTreeSet<(String, String)> = world
        .cluster
        .attachments()
        .map(|one| (handle(one.volume().unwrap_or_default()), one.spec.node_name.clone()))
        .collect();
    let attached: BTreeSet<(String, String)> = (world.truth.attached.iter())
        .flat_map(|(handle, nodes)| nodes.iter().map(move |node| (handle.clone(), node.clone())))
        .collect();
    let text = |pairs: &BTreeSet<(String, String)>| pairs.iter().map(|(one, two)| format!("{one} on {two}")).collect();
    (attachments != wanted || attached != wanted)
        .then(|| Violation::AttachmentsLeft { attachments: text(&attachments), attached: text(&attached) })
}

/// A claim whose pod runs has not got what it asks for, and the driver never called that impossible.
fn small(world: &World, slot: Slot) -> Option<Violation> {
    let claim = slot.live_claim(world).filter(|claim| is_bound(claim))?;
    slot.live_pod(world)?;
    let volume = world.cluster.volumes().find(|volume| volume.metadata.name == claim.spec.volume_name)?;
    let size = world.truth.sizes.get(laws::handle(volume)).copied().unwrap_or_default();
    let (asked, had) = (bytes(&claim.spec.resources.requests), bytes(&claim.status.capacity));
    let short = had < asked || size.filesystem < asked;
    (short && !world.truth.impossible).then_some(Violation::NotGrown { asked, has: had, filesystem: size.filesystem })
}
