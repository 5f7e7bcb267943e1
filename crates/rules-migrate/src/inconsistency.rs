//! What does not fit together.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectRef};
use rules_translate::Plugin;
use serde::{Serialize, Serializer};

use crate::Survey;
use crate::item::{Item, Mark};
use crate::nodes::{NodesKnown, NodesSay};
use crate::obstacle::{example, list, on};
use crate::stage::{ControllersSay, MigrationStage, stage};
use crate::told::Told;

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
        /// Those that do not.
        unmarked: Vec<ObjectRef>,
    },
    /// An object is said to be another driver's.
    MarkedForAnother { object: ObjectRef, driver: String },
    /// The driver attached a volume to a node that serves it with the plugin (S4-33).
    AttachedByDriver { attachment: String, node: String },
    /// A node that leaves the plugin to its driver still has volumes by the plugin (S4-34).
    HeldByPlugin {
        plugin: Plugin,
        node: String,
        /// As its status names them.
        volumes: Vec<String>,
    },
    /// Objects that no driver can serve, where drivers serve.
    Unserved(Vec<ObjectRef>),
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
            Inconsistency::PartlyMarked { marked, unmarked } => {
                let (count, one) = (unmarked.len(), example(unmarked));
                write!(f, "{marked} objects are marked as migrated and {count} are not, such as {one}: ")?;
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
            Inconsistency::HeldByPlugin { plugin, node, volumes } => {
                write!(f, "node {node} leaves {plugin} to its driver and still has {} by the plugin: ", list(volumes))?;
                f.write_str("it was switched without a drain; drain it, before the driver serves there")
            }
            Inconsistency::Unserved(objects) => {
                let (count, one) = (objects.len(), example(objects));
                write!(f, "{count} objects cannot be translated, such as {one}, and their plugin has stood down")
            }
        }
    }
}

impl Serialize for Inconsistency {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (reason, objects, text) = (self.reason(), self.objects(), self.to_string());
        Told { reason, blocks: None, objects, text }.serialize(to)
    }
}

impl Inconsistency {
    /// The one word by which programs tell it from others.
    pub fn reason(&self) -> &'static str {
        match self {
            Inconsistency::Disputed(..) => "Disputed",
            Inconsistency::DriverAbsent(..) => "DriverAbsent",
            Inconsistency::PartlyMarked { .. } => "PartlyMarked",
            Inconsistency::MarkedForAnother { .. } => "MarkedForAnother",
            Inconsistency::AttachedByDriver { .. } => "AttachedByDriver",
            Inconsistency::HeldByPlugin { .. } => "HeldByPlugin",
            Inconsistency::Unserved(_) => "Unserved",
        }
    }

    /// All the objects it is about, the one that the sentence begins with first.
    pub fn objects(&self) -> Vec<ObjectRef> {
        match self {
            Inconsistency::Disputed(_, nodes) | Inconsistency::DriverAbsent(_, nodes) => on(nodes),
            Inconsistency::PartlyMarked { unmarked: objects, .. } | Inconsistency::Unserved(objects) => objects.clone(),
            Inconsistency::MarkedForAnother { object, .. } => Vec::from([object.clone()]),
            Inconsistency::AttachedByDriver { attachment, node } => Vec::from([
                ObjectRef::cluster(Kind::VolumeAttachment, attachment),
                ObjectRef::cluster(Kind::Node, node),
            ]),
            Inconsistency::HeldByPlugin { node, .. } => Vec::from([ObjectRef::cluster(Kind::Node, node)]),
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
        found.extend(held_by_plugin(survey, plugin, known));
    }
    if let ControllersSay::Partly { marked, unmarked: _ } = controllers {
        let unmarked = ours().filter(|item| item.mark == Mark::Missing).map(Item::object).collect();
        found.push(Inconsistency::PartlyMarked { marked, unmarked });
    }
    found.extend(ours().filter_map(|item| match &item.mark {
        Mark::Wrong(driver) => Some(Inconsistency::MarkedForAnother { object: item.object(), driver: driver.clone() }),
        Mark::NotNeeded | Mark::Set | Mark::Missing => None,
    }));
    let stage = stage(controllers, nodes);
    let serves = matches!(stage, MigrationStage::Controllers | MigrationStage::Nodes { .. } | MigrationStage::Migrated);
    let unserved: Vec<ObjectRef> = ours().filter(|item| item.blocked.is_some()).map(Item::object).collect();
    if serves && !unserved.is_empty() {
        found.push(Inconsistency::Unserved(unserved));
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
        let named = attachment.volume.as_ref().and_then(|name| survey.plugin_of.get(name)).copied();
        let early = lagging.contains(attachment.node.as_str());
        attachment.attacher == plugin.driver() && named.or(attachment.holds_volume_of()) == Some(plugin) && early
    });
    by_driver.map(|attachment| Inconsistency::AttachedByDriver {
        attachment: attachment.name.clone(),
        node: attachment.node.clone(),
    })
}

/// Volumes that nodes have by the plugin although they leave it to the driver: whoever mounted a volume has to
/// unmount it.
fn held_by_plugin<'a>(
    survey: &'a Survey,
    plugin: Plugin,
    known: &'a NodesKnown,
) -> impl Iterator<Item = Inconsistency> + 'a {
    known.migrated.iter().filter_map(move |node| {
        let held = survey.nodes.get(node)?.held.iter().filter(|(of, _)| *of == plugin);
        let volumes: Vec<String> = held.map(|(_, name)| name.clone()).collect();
        (!volumes.is_empty()).then(|| Inconsistency::HeldByPlugin { plugin, node: node.clone(), volumes })
    })
}
