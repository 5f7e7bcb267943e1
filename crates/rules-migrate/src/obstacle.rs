//! What stands in the way of a migration.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectRef};
use rules_translate::Plugin;
use serde::{Serialize, Serializer};

use crate::told::Told;

/// Something that stands in the way, or that an operator should know before going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationObstacle {
    /// An object cannot be translated.
    Untranslatable {
        object: ObjectRef,
        /// The library's sentence.
        sentence: String,
    },
    /// The driver is registered on no node.
    DriverNowhere(Plugin),
    /// The driver is not registered on some nodes.
    DriverMissing(Plugin, Vec<String>),
    /// There is no CSIDriver object.
    DriverNotDescribed(Plugin),
    /// An attachment is neither made nor gone yet.
    InFlight {
        attachment: String,
        node: String,
        /// It is being detached; otherwise attached.
        leaving: bool,
    },
    /// The driver on some nodes does not say in which zone they are, and volumes are only reachable from a zone.
    ZonesUntold {
        plugin: Plugin,
        nodes: Vec<String>,
        /// How many volumes name a zone.
        volumes: usize,
    },
    /// Volumes are in a zone in which there is no node.
    ZoneWithoutNode { zone: String, volumes: Vec<ObjectRef> },
    /// Volumes of a plugin whose disks have a zone do not say which.
    ZoneUnsaid { plugin: Plugin, volumes: Vec<ObjectRef> },
    /// Two volumes become the same one.
    SameVolume {
        one: ObjectRef,
        other: ObjectRef,
        /// What the driver calls both.
        handle: String,
    },
    /// The driver's form has no word for something an object says.
    Lost {
        objects: Vec<ObjectRef>,
        /// What is lost.
        field: String,
    },
}

impl MigrationObstacle {
    /// Nothing should be switched before this is resolved. Of the others an operator should know.
    pub fn blocks(&self) -> bool {
        match self {
            MigrationObstacle::Untranslatable { .. }
            | MigrationObstacle::DriverNowhere(_)
            | MigrationObstacle::DriverMissing(..)
            | MigrationObstacle::InFlight { .. }
            | MigrationObstacle::ZonesUntold { .. }
            | MigrationObstacle::SameVolume { .. } => true,
            MigrationObstacle::DriverNotDescribed(_)
            | MigrationObstacle::ZoneWithoutNode { .. }
            | MigrationObstacle::ZoneUnsaid { .. }
            | MigrationObstacle::Lost { .. } => false,
        }
    }

    /// The one word by which programs tell it from others.
    pub fn reason(&self) -> &'static str {
        match self {
            MigrationObstacle::Untranslatable { .. } => "Untranslatable",
            MigrationObstacle::DriverNowhere(_) => "DriverNowhere",
            MigrationObstacle::DriverMissing(..) => "DriverMissing",
            MigrationObstacle::DriverNotDescribed(_) => "DriverNotDescribed",
            MigrationObstacle::InFlight { .. } => "InFlight",
            MigrationObstacle::ZonesUntold { .. } => "ZonesUntold",
            MigrationObstacle::ZoneWithoutNode { .. } => "ZoneWithoutNode",
            MigrationObstacle::ZoneUnsaid { .. } => "ZoneUnsaid",
            MigrationObstacle::SameVolume { .. } => "SameVolume",
            MigrationObstacle::Lost { .. } => "Lost",
        }
    }

    /// All the objects it is about, the one that the sentence begins with first. A CSIDriver may be one that is not
    /// there.
    pub fn objects(&self) -> Vec<ObjectRef> {
        match self {
            MigrationObstacle::Untranslatable { object, .. } => Vec::from([object.clone()]),
            MigrationObstacle::DriverNowhere(plugin) | MigrationObstacle::DriverNotDescribed(plugin) => {
                Vec::from([ObjectRef::cluster(Kind::CSIDriver, plugin.driver())])
            }
            MigrationObstacle::DriverMissing(_, nodes) | MigrationObstacle::ZonesUntold { nodes, .. } => on(nodes),
            MigrationObstacle::InFlight { attachment, node, .. } => Vec::from([
                ObjectRef::cluster(Kind::VolumeAttachment, attachment),
                ObjectRef::cluster(Kind::Node, node),
            ]),
            MigrationObstacle::ZoneWithoutNode { volumes, .. } | MigrationObstacle::ZoneUnsaid { volumes, .. } => {
                volumes.clone()
            }
            MigrationObstacle::SameVolume { one, other, .. } => Vec::from([one.clone(), other.clone()]),
            MigrationObstacle::Lost { objects, .. } => objects.clone(),
        }
    }
}

/// The nodes of these names.
pub(crate) fn on(nodes: &[String]) -> Vec<ObjectRef> {
    nodes.iter().map(|name| ObjectRef::cluster(Kind::Node, name)).collect()
}

/// The first of several, by which a sentence makes them known.
pub(crate) fn example(objects: &[ObjectRef]) -> String {
    objects.first().map(ObjectRef::to_string).unwrap_or_default()
}

/// Few names in full, many by number.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        0..=SHOWN => names.join(", "),
        more => alloc::format!("{} and {} more", names[..SHOWN].join(", "), more - SHOWN),
    }
}

impl fmt::Display for MigrationObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrationObstacle::Untranslatable { object, sentence } => {
                write!(f, "{object} cannot be translated: {sentence}")
            }
            MigrationObstacle::DriverNowhere(plugin) => {
                write!(f, "driver {} is registered on no node; install it first", plugin.driver())
            }
            MigrationObstacle::DriverMissing(plugin, nodes) => {
                write!(f, "driver {} is not registered on {}; install it there first", plugin.driver(), list(nodes))
            }
            MigrationObstacle::DriverNotDescribed(plugin) => {
                write!(f, "there is no CSIDriver object {}: its defaults hold, also for attachment", plugin.driver())
            }
            MigrationObstacle::InFlight { attachment, node, leaving: true } => {
                write!(f, "VolumeAttachment {attachment} is still being detached from node {node}; wait for it")
            }
            MigrationObstacle::InFlight { attachment, node, leaving: false } => {
                write!(f, "VolumeAttachment {attachment} is still being attached to node {node}; wait for it")
            }
            MigrationObstacle::ZonesUntold { plugin, nodes, volumes } => {
                let (key, driver) = (plugin.zone_key().unwrap_or_default(), plugin.driver());
                write!(f, "driver {driver} does not tell the zone of {} (no topology key {key}), ", list(nodes))?;
                write!(f, "and {volumes} of the volumes can be reached from one zone only")
            }
            MigrationObstacle::ZoneWithoutNode { zone, volumes } => {
                write!(f, "no node is in zone {zone}, where {} of the volumes are", volumes.len())
            }
            MigrationObstacle::ZoneUnsaid { plugin, volumes } => {
                write!(f, "{} volumes of {plugin} name no zone, such as {}: ", volumes.len(), example(volumes))?;
                f.write_str("their pods may be placed where the disk is not")
            }
            MigrationObstacle::SameVolume { one, other, handle } => {
                write!(f, "{one} and {other} are one volume to the driver ({handle}); keep one of them")
            }
            MigrationObstacle::Lost { objects, field } => match &objects[..] {
                [only] => write!(f, "{field} of {only} has no counterpart and is left out"),
                more => {
                    write!(f, "{field} has no counterpart and is left out in {} objects, ", more.len())?;
                    write!(f, "such as {}", example(more))
                }
            },
        }
    }
}

impl Serialize for MigrationObstacle {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (reason, objects, text) = (self.reason(), self.objects(), self.to_string());
        Told { reason, blocks: Some(self.blocks()), objects, text }.serialize(to)
    }
}
