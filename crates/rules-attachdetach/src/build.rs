//! From the cache to a view.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ClaimPhase, CsiSource, Node, ObjectKey, PersistentVolume, Pod, Seen, VolumeAttachment, names};
use control::Cache;

use crate::force::{self, ForcePolicy, Local};
use crate::{Attachment, Key, NodeFacts, Pair, Unwanted, View, Want, lost, rival};

/// What a view is built from: the cache, and what the controller was told.
pub(crate) type Known<'a> = (&'a Cache, &'a Local);

/// The facts about one volume on one node.
pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    let Some(volume) = cache.volume(&ObjectKey::cluster(key.volume.clone())) else { return lost::view(key, cache) };
    match &volume.spec.csi {
        Some(csi) => View::Pair(pair(key, cache, local, &volume, csi)),
        None => View::NotCsi(key.clone()),
    }
}

fn pair(key: &Key, cache: &Cache, local: &Local, volume: &PersistentVolume, csi: &CsiSource) -> Pair {
    let unique_name = names::unique_volume_name(&csi.driver, &csi.volume_handle);
    let attachment_name = names::attachment_name(&csi.volume_handle, &csi.driver, &key.node);
    let force = force::policy(cache, local, volume.class(), &key.node);
    let node = node_facts(cache, &key.node, &unique_name);
    let want = want(key, (cache, local), volume, csi, node.is_some());
    let mut pair = Pair {
        key: key.clone(),
        driver: csi.driver.clone(),
        unique_name,
        attachment_name,
        want,
        node,
        attachments: attachments(key, cache),
        rival: None,
        rival_pods: Vec::new(),
        driver_known: cache.driver(&ObjectKey::cluster(csi.driver.clone())).is_some(),
        force,
    };
    if is_exclusive(volume) {
        pair.rival = rival::rival(&pair, (cache, local), volume);
    }
    if let Some(rival) = &pair.rival {
        let there = users((cache, local), volume).filter(|pod| pod.spec.node_name == rival.node());
        pair.rival_pods = there.map(|pod| pod.metadata.key().to_string()).collect();
    }
    pair
}

/// The pods on the node that use the volume.
pub(crate) fn pods_of(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectKey> {
    let Some(volume) = cache.volume(&ObjectKey::cluster(key.volume.clone())) else { return Vec::new() };
    let here = users((cache, local), &volume).filter(|pod| pod.spec.node_name == key.node);
    here.map(|pod| pod.metadata.key()).collect()
}

/// What a node's status says, and of this volume.
pub(crate) fn node_facts(cache: &Cache, node: &str, unique_name: &str) -> Option<NodeFacts> {
    let node = cache.node(&ObjectKey::cluster(node))?;
    Some(NodeFacts {
        seen: Seen::of::<Node>(&node.metadata),
        managed: is_managed(&node),
        reported: node.status.volumes_attached.clone().unwrap_or_default(),
        used: node.status.volumes_in_use.clone().unwrap_or_default(),
        in_use: node.reports_in_use(unique_name),
        unheard: force::is_unheard(&node),
    })
}

/// AD-1: the annotation's presence counts.
pub(crate) fn is_managed(node: &Node) -> bool {
    node.metadata.annotation(names::CONTROLLER_MANAGED_ATTACH).is_some()
}

/// Whatever their names: an attachment made by hand or in an older style attaches just as well.
pub(crate) fn attachments(key: &Key, cache: &Cache) -> Vec<Attachment> {
    cache
        .attachments_by_volume(&key.volume)
        .filter(|attachment| attachment.spec.node_name == key.node)
        .map(|attachment| attachment_facts(&attachment))
        .collect()
}

/// What matters about an attachment.
pub(crate) fn attachment_facts(attachment: &VolumeAttachment) -> Attachment {
    let (deleting, status) = (attachment.metadata.is_deleting(), &attachment.status);
    let error = if deleting { &status.detach_error } else { &status.attach_error };
    Attachment {
        seen: Seen::of::<VolumeAttachment>(&attachment.metadata),
        deleting,
        attached: status.attached,
        error: error.as_ref().map(|error| error.message.clone()),
    }
}

fn want(key: &Key, (cache, local): Known<'_>, volume: &PersistentVolume, csi: &CsiSource, node_exists: bool) -> Want {
    // A missing CSIDriver object means that attachments are needed.
    let driver = cache.driver(&ObjectKey::cluster(csi.driver.clone()));
    if !driver.is_none_or(|driver| driver.attach_required()) {
        return Want::Unwanted(Unwanted::NoAttachRequired);
    }
    if !node_exists {
        return Want::Unwanted(Unwanted::NodeGone);
    }
    match users((cache, local), volume).find(|pod| pod.spec.node_name == key.node) {
        Some(pod) => Want::Wanted(pod.metadata.key()),
        None => Want::Unwanted(Unwanted::NoPod),
    }
}

/// The pods, on any node, that use the volume through the claim it is bound to (AD-9). A claim made from a pod's
/// template is for that pod alone.
pub(crate) fn users((cache, local): Known<'_>, volume: &PersistentVolume) -> impl Iterator<Item = Arc<Pod>> + use<> {
    let claim = volume.spec.claim_ref.as_ref().and_then(|reference| {
        let claim = cache.claim(&ObjectKey::new(reference.namespace.clone(), reference.name.clone()))?;
        let bound = claim.metadata.uid == reference.uid
            && claim.spec.volume_name == volume.metadata.name
            && claim.status.phase == ClaimPhase::Bound;
        bound.then_some(claim)
    });
    let pods: Vec<Arc<Pod>> = claim.map_or_else(Vec::new, |claim| {
        let meta = &claim.metadata;
        let uses = |pod: &Pod| !pod.templates_claim(&meta.name) || meta.is_controlled_by(&pod.metadata.uid);
        let pods = cache.pods_by_claim(&format!("{}/{}", meta.namespace, meta.name));
        let pods = pods.filter(|pod| !pod.spec.node_name.is_empty() && uses(pod));
        pods.filter(|pod| !has_ended(pod) && !is_lost(pod, (cache, local), volume)).collect()
    });
    pods.into_iter()
}

/// AD-8: finished, or being deleted with no container running.
fn has_ended(pod: &Pod) -> bool {
    pod.is_terminal() || (pod.metadata.is_deleting() && !is_running(pod))
}

/// It is being deleted on a node that may lose the volume without a word of its own. What it says of its containers is
/// the last that was heard; whether the node lives is looked into before anything is taken from it.
fn is_lost(pod: &Pod, (cache, local): Known<'_>, volume: &PersistentVolume) -> bool {
    let may_be = || !matches!(force::policy(cache, local, volume.class(), &pod.spec.node_name), ForcePolicy::Never(_));
    pod.metadata.is_deleting() && may_be()
}

/// A container of any sort runs.
pub(crate) fn is_running(pod: &Pod) -> bool {
    let status = &pod.status;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    all.chain(&status.ephemeral_container_statuses).any(|container| container.state.running.is_some())
}

/// Reliability 24: without a mode for many nodes, one node is all there may be.
fn is_exclusive(volume: &PersistentVolume) -> bool {
    !volume.spec.access_modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany")
}

/// The nodes a volume has something to do with: attachments and pods. Reports are looked up by node.
pub(crate) fn nodes_of(cache: &Cache, volume: &str) -> BTreeSet<String> {
    let mut nodes: BTreeSet<String> =
        cache.attachments_by_volume(volume).map(|attachment| attachment.spec.node_name.clone()).collect();
    let volume = cache.volume(&ObjectKey::cluster(volume));
    if let Some(reference) = volume.as_ref().and_then(|volume| volume.spec.claim_ref.as_ref()) {
        let term = format!("{}/{}", reference.namespace, reference.name);
        let pods = cache.pods_by_claim(&term);
        nodes.extend(pods.filter(|pod| !pod.spec.node_name.is_empty()).map(|pod| pod.spec.node_name.clone()));
    }
    nodes
}
