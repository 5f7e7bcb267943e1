//! One object of an in-tree plugin, and what it becomes.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Meta, ObjectRef, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, VolumeAttachment, names};
use rules_translate::{Error, Plugin, Translated};
use serde::{Serialize, Serializer};

/// An object of an in-tree plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its namespace; empty for those that have none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name, of a volume in a pod the name of the pod.
    pub name: String,
    /// Whose it is; `None` if it has more than one source.
    #[serde(serialize_with = "plugin_name")]
    pub plugin: Option<Plugin>,
    /// What it becomes; `None` if it cannot be translated.
    pub becomes: Option<Becomes>,
    /// Why it cannot be translated, in the library's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// What the driver's form has no word for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// What it says about the driver that has taken over.
    pub mark: Mark,
}

fn plugin_name<S: Serializer>(plugin: &Option<Plugin>, to: S) -> Result<S::Ok, S::Error> {
    plugin.map(Plugin::name).serialize(to)
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ItemKind {
    /// A PersistentVolume.
    Volume,
    /// A StorageClass.
    Class,
    /// A PersistentVolumeClaim that was asked of the plugin.
    Claim,
    /// A volume that a pod holds itself.
    PodVolume,
    /// A VolumeAttachment that holds its volume itself.
    Attachment,
}

impl ItemKind {
    /// The kind of the object itself.
    pub fn kind(self) -> Kind {
        match self {
            ItemKind::Volume => Kind::PersistentVolume,
            ItemKind::Class => Kind::StorageClass,
            ItemKind::Claim => Kind::PersistentVolumeClaim,
            ItemKind::PodVolume => Kind::Pod,
            ItemKind::Attachment => Kind::VolumeAttachment,
        }
    }
}

/// What an object becomes. The object itself stays as it was written (S4-6): this is how its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Becomes {
    /// A volume of the driver.
    Volume {
        /// The driver's name for it.
        handle: String,
        /// Where it can be reached from; empty if that is not said.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        zones: Vec<String>,
    },
    /// A class whose volumes the driver makes.
    Class,
    /// A claim that the driver's provisioner answers.
    Claim,
}

/// What an object says about the driver that has taken over its plugin (S4-42).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mark {
    /// It says nothing and need not: nobody provisioned it.
    NotNeeded,
    /// Its plugin's driver has taken over.
    Set,
    /// It does not say so.
    Missing,
    /// It names another driver.
    Wrong(String),
}

impl Mark {
    /// What an object with this provisioner says.
    fn of(meta: &Meta, provisioner: Option<&str>, plugin: Plugin) -> Mark {
        match meta.migrated_to() {
            Some(driver) if driver == plugin.driver() => Mark::Set,
            Some(other) => Mark::Wrong(other.into()),
            None if provisioner == Some(plugin.name()) => Mark::Missing,
            None => Mark::NotNeeded,
        }
    }
}

/// Who a claim was asked of.
pub(crate) fn provisioner(claim: &PersistentVolumeClaim) -> Option<&str> {
    let said = |key| claim.metadata.annotation(key).filter(|name| !name.is_empty());
    said(names::STORAGE_PROVISIONER).or(said(names::STORAGE_PROVISIONER_BETA))
}

impl Item {
    fn new(kind: ItemKind, meta: &Meta, plugin: Option<Plugin>) -> Item {
        Item {
            kind,
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            plugin,
            becomes: None,
            blocked: None,
            lost: Vec::new(),
            mark: Mark::NotNeeded,
        }
    }

    fn with<T>(mut self, made: Result<Translated<T>, Error>, becomes: impl Fn(&T) -> Becomes) -> Item {
        match made {
            Ok(Translated { object, lost }) => {
                self.becomes = Some(becomes(&object));
                self.lost = lost.into_iter().map(|lost| lost.field).collect();
            }
            Err(error) => self.blocked = Some(error.to_string()),
        }
        self
    }

    /// A volume with an in-tree source.
    pub(crate) fn volume(volume: &PersistentVolume) -> Option<Item> {
        let source = volume.spec.in_tree.as_deref()?;
        let plugin = Plugin::of(source);
        let made = rules_translate::volume_to_csi(volume);
        let mut item = Item::new(ItemKind::Volume, &volume.metadata, plugin).with(made, |made| seen(made, plugin));
        if let Some(plugin) = plugin {
            item.mark = Mark::of(&volume.metadata, volume.metadata.annotation(names::PROVISIONED_BY), plugin);
        }
        Some(item)
    }

    /// A class of an in-tree plugin.
    pub(crate) fn class(class: &StorageClass) -> Option<Item> {
        let plugin = Plugin::named(&class.provisioner)?;
        let item = Item::new(ItemKind::Class, &class.metadata, Some(plugin));
        Some(item.with(rules_translate::class_to_csi(class), |_| Becomes::Class))
    }

    /// A claim that was asked of an in-tree plugin.
    pub(crate) fn claim(claim: &PersistentVolumeClaim) -> Option<Item> {
        let plugin = Plugin::named(provisioner(claim)?)?;
        let mut item = Item::new(ItemKind::Claim, &claim.metadata, Some(plugin));
        item.becomes = Some(Becomes::Claim);
        item.mark = Mark::of(&claim.metadata, Some(plugin.name()), plugin);
        Some(item)
    }

    /// The in-tree volumes that a pod holds itself.
    pub(crate) fn of_pod(pod: &Pod) -> impl Iterator<Item = Item> {
        pod.spec.volumes.iter().filter_map(|volume| {
            let plugin = Plugin::of(volume.in_tree.as_deref()?);
            let made = rules_translate::inline_to_csi(volume, &pod.metadata.namespace);
            Some(Item::new(ItemKind::PodVolume, &pod.metadata, plugin).with(made, |made| seen(made, plugin)))
        })
    }

    /// An attachment that holds an in-tree volume itself.
    pub(crate) fn attachment(attachment: &VolumeAttachment) -> Option<Item> {
        let spec = attachment.spec.source.inline_volume_spec.as_ref()?;
        let plugin = Plugin::of(spec.in_tree.as_deref()?);
        let alone = PersistentVolume { spec: (**spec).clone(), ..PersistentVolume::default() };
        let item = Item::new(ItemKind::Attachment, &attachment.metadata, plugin);
        Some(item.with(rules_translate::volume_to_csi(&alone), |made| seen(made, plugin)))
    }

    /// The object itself, which prints as people write it.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(self.kind.kind(), self.namespace.clone(), self.name.clone())
    }

    /// The driver's name for the volume, if it becomes one.
    pub fn handle(&self) -> Option<&str> {
        match self.becomes.as_ref()? {
            Becomes::Volume { handle, .. } => Some(handle),
            Becomes::Class | Becomes::Claim => None,
        }
    }
}

/// How the driver sees a translated volume.
fn seen(made: &PersistentVolume, plugin: Option<Plugin>) -> Becomes {
    let handle = made.spec.csi.as_ref().map(|csi| csi.volume_handle.clone()).unwrap_or_default();
    Becomes::Volume { handle, zones: plugin.and_then(Plugin::zone_key).map_or(Vec::new(), |key| zones(made, key)) }
}

fn zones(volume: &PersistentVolume, key: &str) -> Vec<String> {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms = required.map_or(&[][..], |required| &required.node_selector_terms);
    let wanted = terms.iter().flat_map(|term| &term.match_expressions).filter(|wanted| wanted.key == key);
    let mut found: Vec<String> = wanted.flat_map(|wanted| wanted.values.iter().cloned()).collect();
    found.sort();
    found.dedup();
    found
}
