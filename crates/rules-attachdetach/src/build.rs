//! From the cache to a view.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ClaimPhase, CsiSource, Node, ObjectKey, PersistentVolume, Pod, Seen, VolumeAttachment, names};
use control::Cache;

use crate::{Attachment, HolderEvidence, Key, NodeFacts, Pair, Rival, Unwanted, View, Want};

/// The facts about one volume on one node.
pub(crate) fn view(key: &Key, cache: &Cache) -> View {
    let attachments = attachments(key, cache);
    let Some(volume) = cache.volume(&ObjectKey::cluster(key.volume.clone())) else {
        let attachment = attachments.first().map(|attachment| attachment.seen.name().into());
        return View::VolumeMissing { key: key.clone(), attachment };
    };
    match &volume.spec.csi {
        Some(csi) => View::Pair(pair(key, cache, &volume, csi, attachments)),
        None => View::NotCsi(key.clone()),
    }
}

fn pair(key: &Key, cache: &Cache, volume: &PersistentVolume, csi: &CsiSource, attachments: Vec<Attachment>) -> Pair {
    let unique_name = names::unique_volume_name(&csi.driver, &csi.volume_handle);
    let attachment_name = names::attachment_name(&csi.volume_handle, &csi.driver, &key.node);
    let node = cache.node(&ObjectKey::cluster(key.node.clone())).map(|node| node_facts(&node, &unique_name));
    let want = want(key, cache, volume, csi, node.is_some());
    let mut pair = Pair {
        key: key.clone(),
        driver: csi.driver.clone(),
        unique_name,
        attachment_name,
        want,
        node,
        attachments,
        rival: None,
        rival_pods: Vec::new(),
        driver_known: cache.driver(&ObjectKey::cluster(csi.driver.clone())).is_some(),
    };
    if is_exclusive(volume) {
        pair.rival = rival(&pair, cache, volume);
    }
    if let Some(rival) = &pair.rival {
        let there = users(cache, volume).filter(|pod| pod.spec.node_name == rival.node());
        pair.rival_pods = there.map(|pod| pod.metadata.key().to_string()).collect();
    }
    pair
}

/// The pods on the node that use the volume.
pub(crate) fn pods_of(key: &Key, cache: &Cache) -> Vec<ObjectKey> {
    let Some(volume) = cache.volume(&ObjectKey::cluster(key.volume.clone())) else { return Vec::new() };
    let here = users(cache, &volume).filter(|pod| pod.spec.node_name == key.node);
    here.map(|pod| pod.metadata.key()).collect()
}

fn node_facts(node: &Node, unique_name: &str) -> NodeFacts {
    NodeFacts {
        seen: Seen::of::<Node>(&node.metadata),
        managed: is_managed(node),
        reported: node.status.volumes_attached.clone().unwrap_or_default(),
        in_use: node.reports_in_use(unique_name),
    }
}

/// AD-1: the annotation's presence counts.
pub(crate) fn is_managed(node: &Node) -> bool {
    node.metadata.annotation(names::CONTROLLER_MANAGED_ATTACH).is_some()
}

/// Whatever their names: an attachment made by hand or in an older style attaches just as well.
fn attachments(key: &Key, cache: &Cache) -> Vec<Attachment> {
    cache
        .attachments_by_volume(&key.volume)
        .filter(|attachment| attachment.spec.node_name == key.node)
        .map(|attachment| attachment_facts(&attachment))
        .collect()
}

fn attachment_facts(attachment: &VolumeAttachment) -> Attachment {
    Attachment {
        seen: Seen::of::<VolumeAttachment>(&attachment.metadata),
        deleting: attachment.metadata.is_deleting(),
        attached: attachment.status.attached,
        error: attachment.status.attach_error.as_ref().map(|error| error.message.clone()),
    }
}

fn want(key: &Key, cache: &Cache, volume: &PersistentVolume, csi: &CsiSource, node_exists: bool) -> Want {
    // A missing CSIDriver object means that attachments are needed.
    let driver = cache.driver(&ObjectKey::cluster(csi.driver.clone()));
    if !driver.is_none_or(|driver| driver.attach_required()) {
        return Want::Unwanted(Unwanted::NoAttachRequired);
    }
    if !node_exists {
        return Want::Unwanted(Unwanted::NodeGone);
    }
    match users(cache, volume).find(|pod| pod.spec.node_name == key.node) {
        Some(pod) => Want::Wanted(pod.metadata.key()),
        None => Want::Unwanted(Unwanted::NoPod),
    }
}

/// The pods, on any node, that use the volume through the claim it is bound to (AD-9).
fn users(cache: &Cache, volume: &PersistentVolume) -> impl Iterator<Item = Arc<Pod>> + use<> {
    let term = volume.spec.claim_ref.as_ref().and_then(|reference| {
        let claim = cache.claim(&ObjectKey::new(reference.namespace.clone(), reference.name.clone()))?;
        let bound = claim.metadata.uid == reference.uid
            && claim.spec.volume_name == volume.metadata.name
            && claim.status.phase == ClaimPhase::Bound;
        bound.then(|| format!("{}/{}", reference.namespace, reference.name))
    });
    let pods = term.map(|term| cache.pods_by_claim(&term));
    pods.into_iter().flatten().filter(|pod| !pod.spec.node_name.is_empty() && !has_ended(pod))
}

/// AD-8: finished, or being deleted with no container running.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    pod.is_terminal() || (pod.metadata.is_deleting() && !is_running(pod))
}

fn is_running(pod: &Pod) -> bool {
    pod.status.container_statuses.iter().any(|container| container.state.running.is_some())
}

/// Reliability 24: without a mode for many nodes, one node is all there may be.
fn is_exclusive(volume: &PersistentVolume) -> bool {
    !volume.spec.access_modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany")
}

/// What stands in the way of the next step towards this node. Looking through all nodes is only worth it when the
/// answer decides something.
fn rival(pair: &Pair, cache: &Cache, volume: &PersistentVolume) -> Option<Rival> {
    let wanted = matches!(pair.want, Want::Wanted(_));
    let others = || cache.attachments_by_volume(&pair.key.volume).filter(|other| other.spec.node_name != pair.key.node);
    match pair.proper() {
        None if wanted => others().next().map(|other| rival_attachment(&other)).or_else(|| {
            let waiting = Waiting::of(cache, volume);
            let held_here = pair.node.is_some() && waiting.holds(cache, &pair.key.node, &pair.unique_name);
            waiting.holder_elsewhere(pair, cache).or_else(|| match held_here {
                true => None,
                false => waiting.first_before(cache, &pair.key.node).map(|node| Rival::Earlier { node }),
            })
        }),
        // Two attachments at once are not of our making, but a creation that was long on its way can lead to them.
        // The attacher lets one of them through; here it is made sure that only one is reported.
        Some(proper) if wanted && proper.attached && !pair.is_reported() => {
            Waiting::of(cache, volume).holder_elsewhere(pair, cache).or_else(|| {
                let mut earlier =
                    others().filter(|other| other.status.attached && other.spec.node_name < pair.key.node);
                earlier.next().map(|other| rival_attachment(&other))
            })
        }
        None | Some(_) => None,
    }
}

fn rival_attachment(other: &VolumeAttachment) -> Rival {
    Rival::Attachment { node: other.spec.node_name.clone(), deleting: other.metadata.is_deleting() }
}

/// The nodes with pods that use the volume, and whether one of those pods runs already.
struct Waiting(BTreeMap<String, bool>);

impl Waiting {
    fn of(cache: &Cache, volume: &PersistentVolume) -> Waiting {
        let mut nodes = BTreeMap::new();
        for pod in users(cache, volume) {
            *nodes.entry(pod.spec.node_name.clone()).or_insert(false) |= is_running(&pod);
        }
        Waiting(nodes)
    }

    /// A node says "in use" as soon as it wants a volume, so that alone does not make it a holder: two nodes waiting
    /// for the same volume would block each other for ever. It holds the volume if it was told that it is attached, if
    /// a pod runs with it, or if no pod wants it there any more (it is being taken down).
    fn holder(&self, node: &Node, unique_name: &str) -> Option<HolderEvidence> {
        let merely_waits = self.0.get(&node.metadata.name) == Some(&false);
        if node.reports_attached(unique_name) {
            Some(HolderEvidence::Reported)
        } else if node.reports_in_use(unique_name) && !merely_waits {
            Some(HolderEvidence::InUse)
        } else {
            None
        }
    }

    fn holds(&self, cache: &Cache, node: &str, unique_name: &str) -> bool {
        cache.node(&ObjectKey::cluster(node)).is_some_and(|node| self.holder(&node, unique_name).is_some())
    }

    fn holder_elsewhere(&self, pair: &Pair, cache: &Cache) -> Option<Rival> {
        cache.nodes().filter(|node| node.metadata.name != pair.key.node).find_map(|node| {
            let holder = self.holder(&node, &pair.unique_name)?;
            Some(Rival::Holder { node: node.metadata.name.clone(), holder })
        })
    }

    /// The first node by name that waits as well and could be served.
    fn first_before(&self, cache: &Cache, node: &str) -> Option<String> {
        let mut earlier = self.0.keys().take_while(|name| name.as_str() < node);
        earlier.find(|name| cache.node(&ObjectKey::cluster(name.as_str())).is_some_and(|n| is_managed(&n))).cloned()
    }
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
