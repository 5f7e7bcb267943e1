//! What the role was told at its start: flags, the driver's capabilities, and where it runs.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;

use api::{ObjectKey, OwnerReference, names};
use control::BackOff;
use csi::{Capabilities, ControllerRpc, DriverCapability, PluginService};
use rules_translate::{Migration, Plugin};

/// The driver these rules speak for, or the in-tree plugin itself: then that is called, in the words of CSI (S4-9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// The driver's name, or the plugin's.
    pub driver: Arc<str>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What the operator wants.
    pub settings: Arc<Settings>,
    /// Claims whose volumes this process recorded lately.
    pub recently_provisioned: RecentlyProvisioned,
}

/// Claims whose volumes this process recorded lately. One of them that seems to need a volume again is more likely to be
/// bound or gone, and the news of it late; a journal would not notice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecentlyProvisioned {
    known: BTreeSet<Arc<str>>,
    /// The oldest first.
    order: VecDeque<Arc<str>>,
}

impl RecentlyProvisioned {
    /// As many as a watch may be behind by, within reason.
    const MOST: usize = 512;

    /// The volume of the claim with this uid was recorded.
    pub fn note(&mut self, uid: &str) {
        let uid: Arc<str> = uid.into();
        if !self.known.insert(uid.clone()) {
            self.order.retain(|one| *one != uid);
        }
        self.order.push_back(uid);
        if self.order.len() > RecentlyProvisioned::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// It was recorded lately.
    pub fn has(&self, uid: &str) -> bool {
        self.known.contains(uid)
    }
}

impl Local {
    /// What a driver can do that makes, deletes and publishes volumes, and nothing else.
    pub const PLAIN: Capabilities = Capabilities::NONE
        .with(DriverCapability::Plugin(PluginService::ControllerService))
        .with(DriverCapability::Controller(ControllerRpc::CreateDeleteVolume))
        .with(DriverCapability::Controller(ControllerRpc::PublishUnpublishVolume));

    /// A driver that makes, deletes and publishes volumes, under the default settings.
    pub fn new(driver: impl Into<Arc<str>>) -> Local {
        Local {
            driver: driver.into(),
            capabilities: Local::PLAIN,
            settings: Arc::new(Settings::default()),
            recently_provisioned: RecentlyProvisioned::default(),
        }
    }

    /// As decisions see it: what was recorded lately concerns them only as far as their claim goes.
    pub(crate) fn in_view(&self) -> Local {
        let (driver, settings) = (self.driver.clone(), self.settings.clone());
        Local {
            driver,
            capabilities: self.capabilities,
            settings,
            recently_provisioned: RecentlyProvisioned::default(),
        }
    }

    /// Whether the driver has a capability.
    pub fn can(&self, one: impl Into<DriverCapability>) -> bool {
        self.capabilities.has(one)
    }

    /// The name of the volume made for a claim.
    pub fn volume_name(&self, claim_uid: &str) -> String {
        names::volume_name(&self.settings.volume_name_prefix, self.settings.volume_name_uuid_length, claim_uid)
    }

    /// Where the driver's journal is.
    pub fn journal(&self) -> ObjectKey {
        let node = self.settings.node.as_ref().map(|own| own.name.as_str());
        ObjectKey::new(self.settings.namespace.as_str(), names::journal(&self.driver, node))
    }

    /// The driver's own name, or the plugin's.
    pub fn is_known(&self, provisioner: &str) -> bool {
        *provisioner == *self.driver
    }

    /// The labels by which this provisioner knows its capacity objects again (P86).
    pub fn capacity_labels(&self) -> BTreeMap<String, String> {
        crate::capacity::labels(self)
    }

    /// The in-tree plugin the driver has taken over, or the one these rules speak for: the one while its migration is
    /// on, the other while it is off (S4-2).
    pub fn plugin(&self) -> Option<Plugin> {
        self.settings.migration.plugin_of(&self.driver)
    }

    /// Names under which classes and volumes are this driver's: its own, and that of the plugin it has taken over.
    pub fn answers_to(&self, provisioner: &str) -> bool {
        self.is_known(provisioner) || self.plugin().is_some_and(|plugin| plugin.name() == provisioner)
    }

    /// These rules speak for an in-tree plugin, not for a driver.
    pub fn is_plugin(&self) -> bool {
        Plugin::named(&self.driver).is_some()
    }

    /// The driver by whose names volumes are called in CSI.
    pub(crate) fn csi_name(&self) -> &str {
        match Plugin::named(&self.driver) {
            Some(plugin) => plugin.driver(),
            None => &self.driver,
        }
    }

    /// What keeps a volume until its data is deleted.
    pub(crate) fn finalizer(&self) -> &'static str {
        if self.is_plugin() { names::PV_CONTROLLER } else { names::PROVISIONER_FINALIZER }
    }

    /// How volumes of a class with this provisioner are recorded, if that is as the in-tree plugin would have done it.
    pub(crate) fn in_tree(&self, provisioner: &str) -> Option<InTree> {
        let plugin = self.plugin().filter(|plugin| plugin.name() == provisioner)?;
        Some(InTree { plugin, placed: self.uses_topology() })
    }

    /// Where a volume can be reached from matters, and is asked for.
    pub fn uses_topology(&self) -> bool {
        self.can(PluginService::VolumeAccessibilityConstraints) && self.settings.topology
    }
}

/// Volumes that are recorded as an in-tree plugin would have recorded them (S4-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InTree {
    pub plugin: Plugin,
    /// It is recorded where they are.
    pub placed: bool,
}

/// What the operator wants: one field per flag of the role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is one flag of the role")]
pub struct Settings {
    /// `--volume-name-prefix`.
    pub volume_name_prefix: String,
    /// `--volume-name-uuid-length`; `None` keeps the whole uid with its dashes.
    pub volume_name_uuid_length: Option<usize>,
    /// `--strict-topology`.
    pub strict_topology: bool,
    /// `--immediate-topology`.
    pub immediate_topology: bool,
    /// `--extra-create-metadata`.
    pub extra_create_metadata: bool,
    /// `--default-fstype`.
    pub default_fstype: String,
    /// `--controller-publish-readonly`.
    pub controller_publish_readonly: bool,
    /// `--prevent-volume-mode-conversion`.
    pub prevent_volume_mode_conversion: bool,
    /// Gate `Topology`.
    pub topology: bool,
    /// Gate `CrossNamespaceVolumeDataSource`.
    pub cross_namespace_sources: bool,
    /// Gate `VolumeAttributesClass`.
    pub attributes_classes: bool,
    /// `--retry-interval-start` and `--retry-interval-max`.
    pub pauses: BackOff,
    /// What is written down before a volume is made.
    pub intent: Intent,
    /// Where the journal is.
    pub namespace: String,
    /// An attacher of the same driver works in the same process. Volumes are born with its finalizer, which saves it a write
    /// when they are first attached, and lose it together with ours.
    pub attaches: bool,
    /// This process, as it is recorded in the volumes it makes; empty records nothing.
    pub identity: String,
    /// `--node-deployment`: there is one provisioner per node.
    pub node: Option<OwnNode>,
    /// `--enable-capacity`.
    pub capacity: Option<CapacitySettings>,
    /// Gates of migration: how far that of each in-tree plugin has come.
    pub migration: Migration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            volume_name_prefix: "pvc".into(),
            volume_name_uuid_length: None,
            strict_topology: false,
            immediate_topology: true,
            extra_create_metadata: false,
            default_fstype: String::new(),
            controller_publish_readonly: false,
            prevent_volume_mode_conversion: true,
            topology: true,
            cross_namespace_sources: false,
            attributes_classes: true,
            pauses: BackOff::default(),
            intent: Intent::InJournal,
            namespace: "default".into(),
            attaches: false,
            identity: String::new(),
            node: None,
            capacity: None,
            migration: Migration::default(),
        }
    }
}

/// What is written down before a volume is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Intent {
    /// An entry in the driver's journal, with the arguments: no crash leaves a volume that nothing accounts for.
    #[default]
    InJournal,
    /// A finalizer on the claim, with the arguments beside it. It promises the same, and the claim cannot be deleted before
    /// the volume is accounted for.
    OnClaim,
    /// Nothing: what is under way is known to this process alone, as it is upstream. A crash may leave a volume behind.
    InMemory,
}

/// The node this provisioner works for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnNode {
    pub name: String,
    /// Where it is, as the driver on it says (NodeGetInfo).
    pub segments: BTreeMap<String, String>,
    /// `--node-deployment-immediate-binding`.
    pub immediate_binding: bool,
    /// `--node-deployment-base-delay`, in milliseconds.
    pub base_delay_millis: u64,
    /// `--node-deployment-max-delay`, in milliseconds.
    pub max_delay_millis: u64,
}

/// How capacities are published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapacitySettings {
    /// Where the objects live.
    pub namespace: String,
    /// `--capacity-for-immediate-binding`.
    pub immediate: bool,
    /// `--capacity-poll-interval`, in milliseconds.
    pub poll_millis: u64,
    /// Whose disappearance takes the objects along, as found for `--capacity-ownerref-level`.
    pub owner: Option<OwnerReference>,
}
