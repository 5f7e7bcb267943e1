//! Who stands in the way of a volume that may be on one node only.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use api::{Node, ObjectKey, Pod, VolumeAttachment};
use control::Cache;

use crate::build::{Disk, attachment_facts, is_managed, is_running};
use crate::{HolderEvidence, Pair, Rival, Want};

/// What stands in the way of the next step towards this node, where the answer decides something.
pub(crate) fn rival(pair: &Pair, cache: &Cache, disk: &Disk<'_>) -> Option<Rival> {
    let wanted = matches!(pair.want, Want::Wanted(_));
    let others = || disk.attachments.iter().filter(|other| other.spec.node_name != pair.key.node);
    match pair.proper() {
        None if wanted => others().next().map(|other| rival_attachment(other)).or_else(|| {
            let waiting = Waiting::of(&disk.users);
            let held_here = pair.node.is_some() && waiting.holds(cache, &pair.key.node, &pair.unique_name);
            waiting.holder_elsewhere(pair, cache).or_else(|| match held_here {
                true => None,
                false => waiting.first_before(cache, &pair.key.node).map(|node| Rival::Earlier { node }),
            })
        }),
        // Two attachments at once are not of our making, but a creation that was long on its way can lead to them.
        // The attacher lets one of them through; here it is made sure that only one is reported.
        Some(proper) if wanted && proper.attached && !pair.is_reported() => {
            Waiting::of(&disk.users).holder_elsewhere(pair, cache).or_else(|| {
                let mut earlier =
                    others().filter(|other| other.status.attached && other.spec.node_name < pair.key.node);
                earlier.next().map(|other| rival_attachment(other))
            })
        }
        None | Some(_) => None,
    }
}

fn rival_attachment(other: &VolumeAttachment) -> Rival {
    let facts = attachment_facts(other);
    let error = facts.error.filter(|_| facts.deleting);
    Rival::Attachment { node: other.spec.node_name.clone(), deleting: facts.deleting, error }
}

/// The nodes with pods that use the volume, and whether one of those pods runs already.
struct Waiting(BTreeMap<String, bool>);

impl Waiting {
    fn of(users: &[Arc<Pod>]) -> Waiting {
        let mut nodes = BTreeMap::new();
        for pod in users {
            *nodes.entry(pod.spec.node_name.clone()).or_insert(false) |= is_running(pod);
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
        let others = |name: &str| cache.nodes_by_volume(name).filter(|node| node.metadata.name != pair.key.node);
        let held = others(&pair.unique_name).find_map(|node| {
            let holder = self.holder(&node, &pair.unique_name)?;
            Some(Rival::Holder { node: node.metadata.name.clone(), holder })
        });
        // A plugin waits for no word from here, so what its node says it uses it may have mounted (S4-33).
        held.or_else(|| {
            let node = others(pair.plugin_name.as_deref()?).next()?;
            Some(Rival::Holder { node: node.metadata.name.clone(), holder: HolderEvidence::InUse })
        })
    }

    /// The first node by name that waits as well and could be served.
    fn first_before(&self, cache: &Cache, node: &str) -> Option<String> {
        let mut earlier = self.0.keys().take_while(|name| name.as_str() < node);
        earlier.find(|name| cache.node(&ObjectKey::cluster(name.as_str())).is_some_and(|n| is_managed(&n))).cloned()
    }
}
