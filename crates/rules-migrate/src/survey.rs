//! What is kept of each object: enough for the plan, and little enough for a cluster of many volumes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use api::{CSINode, Kind, Node, Object, PersistentVolumeClaim, Pod, VolumeAttachment, names};
use rules_translate::{NodeSays, Plugin};

use crate::Item;
use crate::item::provisioner;

/// What a cluster holds, as far as migration is concerned.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// How many objects of each kind were seen.
    pub(crate) counts: BTreeMap<Kind, usize>,
    /// Kinds of which all objects were asked for, so that none means that there are none.
    pub(crate) asked: BTreeSet<Kind>,
    pub(crate) items: Vec<Item>,
    pub(crate) nodes: BTreeMap<String, NodeFacts>,
    /// Names of CSIDriver objects.
    pub(crate) drivers: BTreeSet<String>,
    pub(crate) attachments: Vec<AttachmentFacts>,
    pub(crate) pods: Vec<PodFacts>,
    /// Volumes of plugins by the claim they are bound to.
    pub(crate) volume_of: BTreeMap<(String, String), Plugin>,
    /// Volumes of plugins by name.
    pub(crate) plugin_of: BTreeMap<String, Plugin>,
    /// Claims that name a driver which has taken over a plugin, by their class.
    pub(crate) asked_of_driver: Vec<(Option<String>, Plugin)>,
    /// Volumes that are the driver's own.
    pub(crate) native: BTreeMap<Plugin, usize>,
}

/// What a Node and its CSINode say together.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeFacts {
    /// Its labels that name zones.
    pub(crate) zones: BTreeMap<String, String>,
    /// Volumes that it says it uses, or the controllers that they attached to it, under the name of a plugin.
    pub(crate) held: BTreeSet<(Plugin, String)>,
    /// There is a CSINode object.
    pub(crate) csi: Option<CsiFacts>,
}

/// What a CSINode says.
#[derive(Clone, Debug, Default)]
pub(crate) struct CsiFacts {
    /// Registered drivers, with the labels by which each tells places apart.
    pub(crate) drivers: BTreeMap<String, Vec<String>>,
    /// The annotation with the plugins that the node has left to drivers.
    pub(crate) migrated: Option<String>,
}

/// What is kept of a VolumeAttachment.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentFacts {
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) attacher: String,
    pub(crate) volume: Option<String>,
    pub(crate) attached: bool,
    pub(crate) deleting: bool,
}

/// A pod that is on a node and has not ended.
#[derive(Clone, Debug)]
pub(crate) struct PodFacts {
    pub(crate) namespace: String,
    pub(crate) node: String,
    pub(crate) claims: Vec<String>,
    pub(crate) own: Vec<Plugin>,
}

impl Survey {
    /// The kinds a plan is drawn from.
    pub const KINDS: [Kind; 8] = [
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::StorageClass,
        Kind::CSINode,
        Kind::CSIDriver,
        Kind::VolumeAttachment,
        Kind::Node,
        Kind::Pod,
    ];

    /// All objects of this kind were asked for, and those that were seen are all there are.
    pub fn asked_for(&mut self, kind: Kind) {
        self.asked.insert(kind);
    }

    /// Whether what was seen of a kind says anything about the cluster.
    pub fn knows(&self, kind: Kind) -> bool {
        self.asked.contains(&kind) || self.counts.contains_key(&kind)
    }

    /// How many objects were seen that a plan is drawn from.
    pub fn seen(&self) -> usize {
        self.counts.values().sum()
    }

    /// One object more. Kinds that a plan has no use for are not counted.
    pub fn add(&mut self, object: &Object) {
        match object {
            Object::PersistentVolume(volume) => {
                let claim = volume.spec.claim_ref.as_ref();
                if let Some(item) = Item::volume(volume) {
                    if let Some(plugin) = item.plugin {
                        self.plugin_of.insert(item.name.clone(), plugin);
                        let bound = claim.map(|claim| (claim.namespace.clone(), claim.name.clone()));
                        self.volume_of.extend(bound.map(|claim| (claim, plugin)));
                    }
                    self.items.push(item);
                } else if let Some(plugin) = volume.spec.csi.as_ref().and_then(|csi| Plugin::of_driver(&csi.driver)) {
                    *self.native.entry(plugin).or_default() += 1;
                }
            }
            Object::PersistentVolumeClaim(claim) => self.claim(claim),
            Object::StorageClass(class) => self.items.extend(Item::class(class)),
            Object::CSINode(node) => self.csi_node(node),
            Object::CSIDriver(driver) => drop(self.drivers.insert(driver.metadata.name.clone())),
            Object::VolumeAttachment(attachment) => self.attachment(attachment),
            Object::Node(node) => self.node(node),
            Object::Pod(pod) => self.pod(pod),
            _other => return,
        }
        *self.counts.entry(object.kind()).or_default() += 1;
    }

    fn claim(&mut self, claim: &PersistentVolumeClaim) {
        match provisioner(claim).and_then(Plugin::of_driver) {
            Some(plugin) => self.asked_of_driver.push((claim.class().map(String::from), plugin)),
            None => self.items.extend(Item::claim(claim)),
        }
    }

    fn csi_node(&mut self, node: &CSINode) {
        let drivers = node.spec.drivers.iter();
        let facts = CsiFacts {
            drivers: drivers.map(|one| (one.name.clone(), one.topology_keys.clone().unwrap_or_default())).collect(),
            migrated: node.metadata.annotation(names::MIGRATED_PLUGINS).map(String::from),
        };
        self.nodes.entry(node.metadata.name.clone()).or_default().csi = Some(facts);
    }

    fn node(&mut self, node: &Node) {
        let keys = Plugin::ALL.into_iter().filter_map(Plugin::zone_key).chain([names::ZONE, names::ZONE_BETA]);
        let label = |key: &'static str| Some((key.into(), node.metadata.labels.get(key)?.clone()));
        let facts = self.nodes.entry(node.metadata.name.clone()).or_default();
        facts.zones = keys.filter_map(label).collect();
        let attached = node.status.volumes_attached.iter().flatten().map(|volume| &volume.name);
        let reported = node.status.volumes_in_use.iter().flatten().chain(attached);
        facts.held = reported.filter_map(|name| Some((Plugin::of_volume_name(name)?, name.clone()))).collect();
    }

    fn attachment(&mut self, attachment: &VolumeAttachment) {
        self.items.extend(Item::attachment(attachment));
        self.attachments.push(AttachmentFacts {
            name: attachment.metadata.name.clone(),
            node: attachment.spec.node_name.clone(),
            attacher: attachment.spec.attacher.clone(),
            volume: attachment.volume().map(String::from),
            attached: attachment.status.attached,
            deleting: attachment.metadata.is_deleting(),
        });
    }

    fn pod(&mut self, pod: &Pod) {
        let own: Vec<Item> = Item::of_pod(pod).collect();
        let claims: Vec<String> = pod.claim_names().map(|name| name.into_owned()).collect();
        let at_work = !pod.spec.node_name.is_empty() && !pod.is_terminal();
        if at_work && (!own.is_empty() || !claims.is_empty()) {
            self.pods.push(PodFacts {
                namespace: pod.metadata.namespace.clone(),
                node: pod.spec.node_name.clone(),
                claims,
                own: own.iter().filter_map(|item| item.plugin).collect(),
            });
        }
        self.items.extend(own);
    }
}

impl AttachmentFacts {
    /// The plugin of a volume that the attachment holds itself, in whatever form: no other volumes are held so.
    pub(crate) fn holds_volume_of(&self) -> Option<Plugin> {
        match self.volume {
            Some(_) => None,
            None => Plugin::of_driver(&self.attacher),
        }
    }
}

impl NodeFacts {
    /// What the node says about plugins.
    pub(crate) fn says(&self) -> NodeSays<'_> {
        match &self.csi {
            Some(csi) => NodeSays::Annotation(csi.migrated.as_deref()),
            None => NodeSays::Nothing,
        }
    }

    /// The driver is registered there.
    pub(crate) fn has(&self, driver: &str) -> bool {
        self.csi.as_ref().is_some_and(|csi| csi.drivers.contains_key(driver))
    }
}
