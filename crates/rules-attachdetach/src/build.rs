//! From the cache to a view.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{
    AccessMode, AttachmentSource, ClaimPhase, Node, ObjectKey, PersistentVolume, Pod, Seen, VolumeAttachment, names,
};
use control::Cache;
use rules_translate::{NodeSays, Phase, Plugin, Served, plugin_volume_name};

use crate::force::{self, ForcePolicy, Local};
use crate::{Attachment, Key, NodeFacts, Pair, Unwanted, View, Want, inline, lost, rival};

/// What a view is built from: the cache, and what the controller was told.
pub(crate) type Known<'a> = (&'a Cache, &'a Local);

/// A volume as its CSI driver sees it, and who has to do with it on whatever node.
pub(crate) struct Disk<'a> {
    pub volume: Cow<'a, PersistentVolume>,
    /// The in-tree plugin that it was translated from, and the plugin's name for it.
    pub plugin: Option<(Plugin, String)>,
    /// What an attachment says of it.
    pub source: AttachmentSource,
    pub users: Vec<Arc<Pod>>,
    /// Whatever their names: an attachment made by hand or in an older style attaches just as well.
    pub attachments: Vec<Arc<VolumeAttachment>>,
}

/// The facts about one volume on one node.
pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    let known = (cache, local);
    let Some(volume) = cache.volume(&ObjectKey::cluster(key.volume.clone())) else {
        return inline::view(key, known).unwrap_or_else(|| lost::view(key, cache));
    };
    if volume.spec.in_tree.is_none() && volume.spec.csi.is_none() {
        return View::NotCsi(key.clone());
    }
    let plugin = rules_translate::plugin_of(&volume);
    let seen = match &volume.spec.in_tree {
        None => Ok(Cow::Borrowed(&*volume)),
        Some(_) => rules_translate::volume_to_csi(&volume).map(|seen| Cow::Owned(seen.object)),
    };
    let users = users(known, &volume);
    match seen {
        Err(error) => unattachable(key, known, plugin, &users, error.to_string()),
        Ok(seen) => {
            let name = volume.spec.in_tree.as_deref().and_then(plugin_volume_name);
            let source =
                AttachmentSource { persistent_volume_name: Some(key.volume.clone()), ..AttachmentSource::default() };
            let attachments = cache.attachments_by_volume(&key.volume).collect();
            let disk = Disk { volume: seen, plugin: plugin.zip(name), source, users, attachments };
            match inline::in_the_way(key, known, &disk) {
                Some(problem) => unattachable(key, known, plugin, &disk.users, problem),
                None => pair(key, known, &disk),
            }
        }
    }
}

/// A volume that no driver can be told of, which matters only where a driver is to attach it.
pub(crate) fn unattachable(
    key: &Key,
    known: Known<'_>,
    plugin: Option<Plugin>,
    users: &[Arc<Pod>],
    problem: String,
) -> View {
    match (plugin, served(plugin, &key.node, known)) {
        (Some(plugin), Served::ByPlugin) => View::ServedByPlugin(key.clone(), plugin),
        (Some(_) | None, Served::ByPlugin | Served::ByDriver | Served::Disputed) => {
            let wanted = users.iter().any(|pod| pod.spec.node_name == key.node);
            View::Unattachable { key: key.clone(), problem, wanted }
        }
    }
}

/// S4-32, S4-39: who attaches a volume to a node.
fn served(plugin: Option<Plugin>, node: &str, (cache, local): Known<'_>) -> Served {
    let Some(plugin) = plugin else { return Served::ByDriver };
    let csi_node = cache.csi_node(&ObjectKey::cluster(node));
    local.migration.served_by(plugin, NodeSays::of(csi_node.as_deref()))
}

/// The facts about a volume that a driver can be told of.
pub(crate) fn pair(key: &Key, known: Known<'_>, disk: &Disk<'_>) -> View {
    let (cache, local) = known;
    let volume = &*disk.volume;
    let Some(csi) = &volume.spec.csi else { return View::NotCsi(key.clone()) };
    let unique_name = names::unique_volume_name(&csi.driver, &csi.volume_handle);
    let plugin_name = disk.plugin.as_ref().map(|(_, name)| name.clone());
    let node = node_facts(cache, &key.node, &unique_name, plugin_name.as_deref());
    let here = disk.attachments.iter().filter(|attachment| attachment.spec.node_name == key.node);
    let mut pair = Pair {
        key: key.clone(),
        driver: csi.driver.clone(),
        attachment_name: names::attachment_name(&csi.volume_handle, &csi.driver, &key.node),
        unique_name,
        plugin_name,
        asks: asks(key, local, disk),
        source: disk.source.clone(),
        want: want(key, known, disk, &csi.driver, node.is_some()),
        node,
        attachments: here.map(|attachment| attachment_facts(attachment)).collect(),
        rival: None,
        rival_pods: Vec::new(),
        driver_known: cache.driver(&ObjectKey::cluster(csi.driver.clone())).is_some(),
        force: force::policy(cache, local, volume.class(), &key.node),
    };
    if is_exclusive(volume) {
        pair.rival = rival::rival(&pair, cache, disk);
    }
    if let Some(rival) = &pair.rival {
        let there = disk.users.iter().filter(|pod| pod.spec.node_name == rival.node());
        pair.rival_pods = there.map(|pod| pod.metadata.key().to_string()).collect();
    }
    View::Pair(pair)
}

/// The pods on the node that use the volume.
pub(crate) fn pods_of(key: &Key, cache: &Cache, local: &Local) -> Vec<ObjectKey> {
    let users = match cache.volume(&ObjectKey::cluster(key.volume.clone())) {
        Some(volume) => users((cache, local), &volume),
        None => inline::users(key, (cache, local)),
    };
    let here = users.into_iter().filter(|pod| pod.spec.node_name == key.node);
    here.map(|pod| pod.metadata.key()).collect()
}

/// What a node's status says, and of this volume.
pub(crate) fn node_facts(cache: &Cache, node: &str, unique_name: &str, plugin_name: Option<&str>) -> Option<NodeFacts> {
    let node = cache.node(&ObjectKey::cluster(node))?;
    let held_by_plugin = plugin_name.is_some_and(|name| node.reports_in_use(name) || node.reports_attached(name));
    Some(NodeFacts {
        seen: Seen::of::<Node>(&node.metadata),
        managed: is_managed(&node),
        reported: node.status.volumes_attached.clone().unwrap_or_default(),
        used: node.status.volumes_in_use.clone().unwrap_or_default(),
        in_use: node.reports_in_use(unique_name) || held_by_plugin,
        held_by_plugin,
        unheard: force::is_unheard(&node),
    })
}

/// AD-1: the annotation's presence counts.
pub(crate) fn is_managed(node: &Node) -> bool {
    node.metadata.annotation(names::CONTROLLER_MANAGED_ATTACH).is_some()
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

fn want(key: &Key, known: Known<'_>, disk: &Disk<'_>, driver: &str, node_exists: bool) -> Want {
    let user = user(key, disk);
    let plugin = disk.plugin.as_ref().map(|(plugin, _)| *plugin);
    let served = served(plugin, &key.node, known);
    if let (Some(plugin), Served::ByPlugin, Some(_), true) = (plugin, served, user, node_exists) {
        return Want::Unwanted(Unwanted::ServedByPlugin(plugin));
    }
    // A missing CSIDriver object means that attachments are needed.
    let driver = known.0.driver(&ObjectKey::cluster(driver));
    if !driver.is_none_or(|driver| driver.attach_required()) {
        return Want::Unwanted(Unwanted::NoAttachRequired);
    }
    if !node_exists {
        return Want::Unwanted(Unwanted::NodeGone);
    }
    match (user, plugin, served) {
        (None, _, _) => Want::Unwanted(Unwanted::NoPod),
        (Some(pod), Some(plugin), Served::Disputed) => Want::Disputed(pod.metadata.key(), plugin),
        (Some(pod), Some(_) | None, Served::ByDriver | Served::ByPlugin | Served::Disputed) => {
            Want::Wanted(pod.metadata.key())
        }
    }
}

/// S4-32, S4-33: while plugin and driver serve side by side, the node's word decides who attaches.
fn asks(key: &Key, local: &Local, disk: &Disk<'_>) -> Option<(Plugin, String)> {
    let (plugin, _) = disk.plugin.as_ref().filter(|(plugin, _)| local.migration.phase(*plugin) == Phase::On)?;
    let user = user(key, disk)?;
    Some((*plugin, user.metadata.uid.clone()))
}

/// A pod on the node that uses the volume.
fn user<'a>(key: &Key, disk: &'a Disk<'_>) -> Option<&'a Arc<Pod>> {
    disk.users.iter().find(|pod| pod.spec.node_name == key.node)
}

/// The pods, on any node, that use the volume through the claim it is bound to (AD-9). A claim made from a pod's
/// template is for that pod alone.
pub(crate) fn users(known: Known<'_>, volume: &PersistentVolume) -> Vec<Arc<Pod>> {
    let (cache, _) = known;
    let claim = volume.spec.claim_ref.as_ref().and_then(|reference| {
        let claim = cache.claim(&ObjectKey::new(reference.namespace.clone(), reference.name.clone()))?;
        let bound = claim.metadata.uid == reference.uid
            && claim.spec.volume_name == volume.metadata.name
            && claim.status.phase == ClaimPhase::Bound;
        bound.then_some(claim)
    });
    claim.map_or_else(Vec::new, |claim| {
        let meta = &claim.metadata;
        let uses = |pod: &Pod| !pod.templates_claim(&meta.name) || meta.is_controlled_by(&pod.metadata.uid);
        let pods = cache.pods_by_claim(&format!("{}/{}", meta.namespace, meta.name));
        pods.filter(|pod| uses(pod) && needs_volumes(pod, known, volume.class())).collect()
    })
}

/// It is on a node, has not ended, and what it says of itself is to be believed.
pub(crate) fn needs_volumes(pod: &Pod, known: Known<'_>, class: &str) -> bool {
    !pod.spec.node_name.is_empty() && !has_ended(pod) && !is_lost(pod, known, class)
}

/// AD-8: finished, or being deleted with no container running.
fn has_ended(pod: &Pod) -> bool {
    pod.is_terminal() || (pod.metadata.is_deleting() && !is_running(pod))
}

/// It is being deleted on a node that may lose the volume without a word of its own. What it says of its containers is
/// the last that was heard; whether the node lives is looked into before anything is taken from it.
fn is_lost(pod: &Pod, (cache, local): Known<'_>, class: &str) -> bool {
    let may_be = || !matches!(force::policy(cache, local, class, &pod.spec.node_name), ForcePolicy::Never(_));
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
    let many = |mode: &AccessMode| matches!(mode, AccessMode::ReadWriteMany | AccessMode::ReadOnlyMany);
    !volume.spec.access_modes.iter().any(many)
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
