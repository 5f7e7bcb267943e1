//! How far the migration of a plugin has come, as far as objects show it, and what does not fit together.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::Kind;
use rules_translate::Plugin;
use serde::{Serialize, Serializer};

use crate::Survey;
use crate::item::{Item, ItemKind, Mark};
use crate::nodes::{NodesKnown, NodesSay};
use crate::obstacle::list;

/// What the marks on volumes and claims say of the controllers' gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ControllersSay {
    /// Nothing was provisioned that would carry a mark.
    Nothing,
    /// No volume or claim that should carry the mark carries it.
    Off,
    /// All carry it.
    On,
    /// Some carry it, and others do not yet.
    Partly {
        /// How many carry it.
        marked: usize,
        /// How many do not.
        unmarked: usize,
    },
}

/// How far the migration of a plugin has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MigrationStage {
    /// Nothing is known of nodes.
    Unknown,
    /// The plugin serves everywhere.
    NotBegun,
    /// The controllers have begun, and no node has (S4-35).
    Controllers,
    /// Some nodes leave the volumes to the driver.
    Nodes {
        done: usize,
        /// Of how many.
        of: usize,
    },
    /// The driver serves everywhere. Whether the plugin's code is still there cannot be seen from outside.
    Migrated,
    /// Nodes expect the driver, and the controllers have the migration off (S4-32): nobody serves the volumes there.
    Disputed,
}

/// Whether a cluster fits together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MigrationVerdict {
    /// Nothing that was seen contradicts anything else.
    Consistent,
    /// Too little was seen to tell.
    Unknown,
    /// It does not.
    Inconsistent,
}

/// Something that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inconsistency {
    /// S4-32, the last row: nodes expect the driver, and the controllers do not attach for it.
    Disputed(Plugin, Vec<String>),
    /// Nodes leave volumes to a driver that is not there (S4-3).
    DriverAbsent(Plugin, Vec<String>),
    /// Marks that the controllers should have set, or removed, by now (S4-42).
    PartlyMarked {
        /// How many carry the mark.
        marked: usize,
        /// How many do not.
        unmarked: usize,
        /// One that does not.
        example: String,
    },
    /// An object is said to be another driver's.
    MarkedForAnother {
        /// Kind and name.
        object: String,
        driver: String,
    },
    /// The driver attached a volume to a node that serves it with the plugin (S4-33).
    AttachedByDriver { attachment: String, node: String },
    /// Volumes that no driver can serve, where drivers serve.
    Unserved {
        objects: usize,
        /// One of them.
        example: String,
    },
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inconsistency::Disputed(plugin, nodes) => {
                let gate = plugin.gate();
                write!(f, "{plugin} is left to its driver on {}, and the controllers have {gate} off: ", list(nodes))?;
                f.write_str("no volume of it is attached there; switch the controllers on, or the nodes off")
            }
            Inconsistency::DriverAbsent(plugin, nodes) => {
                let driver = plugin.driver();
                write!(f, "{plugin} is left to driver {driver} on {}, where it is not registered: ", list(nodes))?;
                f.write_str("no volume of it can be mounted")
            }
            Inconsistency::PartlyMarked { marked, unmarked, example } => {
                write!(f, "{marked} objects are marked as migrated and {unmarked} are not, such as {example}: ")?;
                f.write_str("the controllers have not seen them, or were switched without being restarted")
            }
            Inconsistency::MarkedForAnother { object, driver } => {
                write!(f, "{object} is marked for driver {driver}, which is not the one of its plugin")
            }
            Inconsistency::AttachedByDriver { attachment, node } => {
                write!(
                    f,
                    "VolumeAttachment {attachment} is for node {node}, which serves the volume with the plugin: "
                )?;
                f.write_str("node or controllers were switched without a drain")
            }
            Inconsistency::Unserved { objects, example } => {
                write!(f, "{objects} objects cannot be translated, such as {example}, and their plugin has stood down")
            }
        }
    }
}

impl Serialize for Inconsistency {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// What the marks on a plugin's objects say. A claim that names the driver though its class is the plugin's was written
/// by a controller with the gate on (S4-41).
pub(crate) fn controllers(survey: &Survey, plugin: Plugin) -> ControllersSay {
    let count = |mark: &Mark| {
        let of = survey.items.iter().filter(|item| item.plugin == Some(plugin));
        of.filter(|item| item.mark == *mark).count()
    };
    let classes = survey.items.iter().filter(|item| item.kind == ItemKind::Class && item.plugin == Some(plugin));
    let classes: BTreeSet<&str> = classes.map(|item| item.name.as_str()).collect();
    let of_plugin = |class: &Option<String>| class.as_deref().is_some_and(|class| classes.contains(class));
    let asked = survey.asked_of_driver.iter().filter(|(class, asked)| *asked == plugin && of_plugin(class));
    match (count(&Mark::Set) + asked.count(), count(&Mark::Missing)) {
        (0, 0) => ControllersSay::Nothing,
        (0, _) => ControllersSay::Off,
        (_, 0) => ControllersSay::On,
        (marked, unmarked) => ControllersSay::Partly { marked, unmarked },
    }
}

pub(crate) fn stage(controllers: ControllersSay, nodes: &NodesSay) -> MigrationStage {
    let NodesSay::This(nodes) = nodes else { return MigrationStage::Unknown };
    match (controllers, nodes.migrated.len(), nodes.all_migrated()) {
        (ControllersSay::Off | ControllersSay::Nothing, 0, _) => MigrationStage::NotBegun,
        (ControllersSay::Off, _, _) => MigrationStage::Disputed,
        (ControllersSay::On | ControllersSay::Partly { .. }, 0, _) => MigrationStage::Controllers,
        (ControllersSay::On | ControllersSay::Partly { .. } | ControllersSay::Nothing, _, true) => {
            MigrationStage::Migrated
        }
        (ControllersSay::On | ControllersSay::Partly { .. } | ControllersSay::Nothing, done, false) => {
            MigrationStage::Nodes { done, of: nodes.all.len() }
        }
    }
}

/// What does not fit together.
pub(crate) fn inconsistencies(
    survey: &Survey,
    plugin: Plugin,
    controllers: ControllersSay,
    nodes: &NodesSay,
) -> Vec<Inconsistency> {
    let mut found = Vec::new();
    let known = match nodes {
        NodesSay::This(known) => Some(known),
        NodesSay::Nothing => None,
    };
    let ours = || survey.items.iter().filter(|item| item.plugin == Some(plugin));
    if let Some(known) = known {
        if controllers == ControllersSay::Off && !known.migrated.is_empty() {
            found.push(Inconsistency::Disputed(plugin, known.migrated.clone()));
        }
        let absent = known.migrated.iter().filter(|name| known.without_driver.contains(name));
        let absent: Vec<String> = absent.cloned().collect();
        // A kubelet of today lists every plugin it no longer has. Only one whose volumes are there matters.
        if !absent.is_empty() && ours().next().is_some() {
            found.push(Inconsistency::DriverAbsent(plugin, absent));
        }
        found.extend(attached_by_driver(survey, plugin, known));
    }
    if let ControllersSay::Partly { marked, unmarked } = controllers {
        let example = ours().find(|item| item.mark == Mark::Missing).map(Item::title).unwrap_or_default();
        found.push(Inconsistency::PartlyMarked { marked, unmarked, example });
    }
    found.extend(ours().filter_map(|item| match &item.mark {
        Mark::Wrong(driver) => Some(Inconsistency::MarkedForAnother { object: item.title(), driver: driver.clone() }),
        Mark::NotNeeded | Mark::Set | Mark::Missing => None,
    }));
    let stage = stage(controllers, nodes);
    let serves = matches!(stage, MigrationStage::Controllers | MigrationStage::Nodes { .. } | MigrationStage::Migrated);
    let unserved = ours().filter(|item| item.blocked.is_some()).count();
    if let Some(first) = ours().find(|item| item.blocked.is_some()).filter(|_| serves) {
        found.push(Inconsistency::Unserved { objects: unserved, example: first.title() });
    }
    found
}

fn attached_by_driver<'a>(
    survey: &'a Survey,
    plugin: Plugin,
    known: &'a NodesKnown,
) -> impl Iterator<Item = Inconsistency> + 'a {
    let lagging: BTreeSet<&str> = known.lagging.iter().map(String::as_str).collect();
    let by_driver = survey.attachments.iter().filter(move |attachment| {
        let volume = attachment.volume.as_ref().and_then(|name| survey.plugin_of.get(name));
        let early = lagging.contains(attachment.node.as_str());
        attachment.attacher == plugin.driver() && volume == Some(&plugin) && early
    });
    by_driver.map(|attachment| Inconsistency::AttachedByDriver {
        attachment: attachment.name.clone(),
        node: attachment.node.clone(),
    })
}

/// Kinds without which it cannot be told whether a plugin's migration fits together.
pub(crate) fn unseen(survey: &Survey) -> Vec<Kind> {
    Survey::KINDS.into_iter().filter(|kind| !survey.knows(*kind)).collect()
}
