//! The plan: for each plugin that the cluster uses what there is, what stands in the way, and the steps.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, ObjectRef};
use rules_translate::Plugin;
use serde::{Serialize, Serializer};

use crate::inconsistency::{self, Inconsistency};
use crate::item::{Item, ItemKind};
use crate::nodes::{self, NodesSay};
use crate::stage::{self, ControllersSay, MigrationStage, MigrationVerdict};
use crate::steps::{MigrationStep, Situation};
use crate::survey::AttachmentFacts;
use crate::{MigrationObstacle, Survey, places};

/// What the migration of a cluster takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPlan {
    /// How many objects were seen, by kind.
    #[serde(serialize_with = "by_name")]
    pub seen: BTreeMap<Kind, usize>,
    /// Kinds of which none was seen and which were perhaps not asked for: what they would say is not known.
    #[serde(serialize_with = "names_of")]
    pub unseen: Vec<Kind>,
    /// Plugins that the cluster uses.
    pub plugins: Vec<PluginPlan>,
    /// Objects that cannot be told to be one plugin's.
    pub unclear: Vec<MigrationObstacle>,
}

fn by_name<S: Serializer>(counts: &BTreeMap<Kind, usize>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().map(|(kind, count)| (kind.name(), count)))
}

fn names_of<S: Serializer>(kinds: &[Kind], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(kinds.iter().map(|kind| kind.name()))
}

/// What the migration of one plugin takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginPlan {
    /// The in-tree plugin whose volumes move.
    #[serde(serialize_with = "name_of")]
    pub plugin: Plugin,
    /// The driver that takes it over.
    pub driver: &'static str,
    /// How many objects it has.
    pub counts: Counts,
    /// How far its migration has come.
    pub stage: MigrationStage,
    /// What the controllers' marks say.
    pub controllers: ControllersSay,
    /// What the nodes say.
    pub nodes: NodesSay,
    /// What stands in the way, and what to know: of each the reason, whether it blocks, its objects and the sentence.
    pub obstacles: Vec<MigrationObstacle>,
    /// What does not fit together: of each the reason, its objects and the sentence.
    pub inconsistencies: Vec<Inconsistency>,
    /// The steps up.
    pub steps: Vec<MigrationStep>,
    /// The steps down again.
    pub back: Vec<MigrationStep>,
}

fn name_of<S: Serializer>(plugin: &Plugin, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(plugin.name())
}

/// How many objects a plugin has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// PersistentVolumes.
    pub volumes: usize,
    /// StorageClasses.
    pub classes: usize,
    /// Claims that were asked of the plugin.
    pub claims: usize,
    /// Volumes that pods hold themselves.
    pub pod_volumes: usize,
    /// Attachments that hold their volume themselves.
    pub attachments: usize,
    /// Those of all these that cannot be translated.
    pub blocked: usize,
    /// Volumes that are the driver's own already.
    pub native: usize,
}

impl MigrationPlan {
    /// Whether the cluster fits together.
    pub fn verdict(&self) -> MigrationVerdict {
        let of = |plan: &PluginPlan| match (plan.inconsistencies.is_empty(), plan.stage) {
            (false, _) => MigrationVerdict::Inconsistent,
            (true, MigrationStage::Unknown) => MigrationVerdict::Unknown,
            (
                true,
                MigrationStage::NotBegun
                | MigrationStage::Controllers
                | MigrationStage::Nodes { .. }
                | MigrationStage::Migrated
                | MigrationStage::Disputed,
            ) => MigrationVerdict::Consistent,
        };
        self.plugins.iter().map(of).max().unwrap_or(MigrationVerdict::Consistent)
    }

    /// How many obstacles block.
    pub fn blocking(&self) -> usize {
        let all = self.plugins.iter().flat_map(|plan| &plan.obstacles).chain(&self.unclear);
        all.filter(|obstacle| obstacle.blocks()).count()
    }
}

impl Survey {
    /// The plan for what was seen.
    pub fn plan(&self) -> MigrationPlan {
        let held = self.nodes.values().flat_map(|node| node.held.iter().map(|(plugin, _)| *plugin));
        let alone = self.attachments.iter().filter_map(AttachmentFacts::holds_volume_of);
        let used: BTreeSet<Plugin> =
            self.items.iter().filter_map(|item| item.plugin).chain(held).chain(alone).collect();
        let unclear = self.items.iter().filter(|item| item.plugin.is_none()).filter_map(untranslatable).collect();
        MigrationPlan {
            seen: self.counts.clone(),
            unseen: stage::unseen(self),
            plugins: used.into_iter().map(|plugin| self.of_plugin(plugin)).collect(),
            unclear,
        }
    }

    /// Every object of a plugin and what it becomes, by kind and name.
    pub fn items(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.items.iter().collect();
        items.sort_by(|a, b| (a.plugin, a.kind, &a.namespace, &a.name).cmp(&(b.plugin, b.kind, &b.namespace, &b.name)));
        items
    }

    fn of_plugin(&self, plugin: Plugin) -> PluginPlan {
        let nodes = nodes::say(self, plugin);
        let controllers = stage::controllers(self, plugin);
        let mut obstacles = self.driver_obstacles(plugin, &nodes);
        let missing = obstacles.iter().filter(|obstacle| obstacle.blocks()).count();
        obstacles.extend(self.object_obstacles(plugin));
        obstacles.extend(places::obstacles(self, plugin));
        obstacles.extend(self.in_flight(plugin));
        // What blocks comes first.
        obstacles.sort_by_key(|obstacle| !obstacle.blocks());
        let blocking = obstacles.iter().filter(|obstacle| obstacle.blocks()).count() - missing;
        let situation = Situation { plugin, controllers, nodes: &nodes, blocking, unseen: &stage::unseen(self) };
        PluginPlan {
            plugin,
            driver: plugin.driver(),
            counts: self.counts_of(plugin),
            stage: stage::stage(controllers, &nodes),
            controllers,
            inconsistencies: inconsistency::inconsistencies(self, plugin, controllers, &nodes),
            steps: situation.up(),
            back: situation.down(),
            obstacles,
            nodes,
        }
    }

    fn counts_of(&self, plugin: Plugin) -> Counts {
        let mut counts = Counts { native: self.native.get(&plugin).copied().unwrap_or_default(), ..Counts::default() };
        for item in self.items.iter().filter(|item| item.plugin == Some(plugin)) {
            *match item.kind {
                ItemKind::Volume => &mut counts.volumes,
                ItemKind::Class => &mut counts.classes,
                ItemKind::Claim => &mut counts.claims,
                ItemKind::PodVolume => &mut counts.pod_volumes,
                ItemKind::Attachment => &mut counts.attachments,
            } += 1;
            counts.blocked += usize::from(item.blocked.is_some());
        }
        counts
    }

    fn driver_obstacles(&self, plugin: Plugin, nodes: &NodesSay) -> Vec<MigrationObstacle> {
        let mut found = Vec::new();
        match nodes {
            NodesSay::This(known) if known.without_driver.len() == known.all.len() => {
                found.push(MigrationObstacle::DriverNowhere(plugin));
            }
            NodesSay::This(known) if !known.without_driver.is_empty() => {
                found.push(MigrationObstacle::DriverMissing(plugin, known.without_driver.clone()));
            }
            NodesSay::This(_) | NodesSay::Nothing => {}
        }
        if self.knows(Kind::CSIDriver) && !self.drivers.contains(plugin.driver()) {
            found.push(MigrationObstacle::DriverNotDescribed(plugin));
        }
        found
    }

    /// Objects that cannot be translated, that lose something, or that become the same volume as another.
    fn object_obstacles(&self, plugin: Plugin) -> Vec<MigrationObstacle> {
        let ours = || self.items.iter().filter(|item| item.plugin == Some(plugin));
        let mut found: Vec<MigrationObstacle> = ours().filter_map(untranslatable).collect();
        let mut handles: BTreeMap<&str, &Item> = BTreeMap::new();
        for item in ours().filter(|item| item.kind == ItemKind::Volume) {
            let Some(handle) = item.handle() else { continue };
            if let Some(first) = handles.insert(handle, item) {
                let (one, other) = (first.object(), item.object());
                found.push(MigrationObstacle::SameVolume { one, other, handle: handle.to_string() });
            }
        }
        let mut lost: BTreeMap<&str, Vec<ObjectRef>> = BTreeMap::new();
        for item in ours() {
            item.lost.iter().for_each(|field| lost.entry(field).or_default().push(item.object()));
        }
        let lost = lost.into_iter();
        found.extend(lost.map(|(field, objects)| MigrationObstacle::Lost { objects, field: field.to_string() }));
        found
    }

    /// Attachments of the plugin's volumes that are on their way.
    fn in_flight(&self, plugin: Plugin) -> Vec<MigrationObstacle> {
        let of = |name: &String| self.plugin_of.get(name) == Some(&plugin);
        let ours = self.attachments.iter().filter(|attachment| match &attachment.volume {
            Some(volume) => of(volume),
            None => attachment.holds_volume_of() == Some(plugin),
        });
        let moving = ours.filter(|attachment| attachment.deleting || !attachment.attached);
        let told = moving.map(|attachment| MigrationObstacle::InFlight {
            attachment: attachment.name.clone(),
            node: attachment.node.clone(),
            leaving: attachment.deleting,
        });
        told.collect()
    }
}

fn untranslatable(item: &Item) -> Option<MigrationObstacle> {
    let sentence: String = item.blocked.clone()?;
    Some(MigrationObstacle::Untranslatable { object: item.object(), sentence })
}
