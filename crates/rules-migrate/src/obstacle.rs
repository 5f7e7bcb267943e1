//! What stands in the way of a migration.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use rules_translate::Plugin;
use serde::{Serialize, Serializer};

/// Something that stands in the way, or that an operator should know before going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationObstacle {
    /// An object cannot be translated.
    Untranslatable {
        /// Kind and name.
        object: String,
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
    ZoneWithoutNode {
        zone: String,
        /// How many volumes are there.
        volumes: usize,
    },
    /// Volumes of a plugin whose disks have a zone do not say which.
    ZoneUnsaid {
        plugin: Plugin,
        volumes: usize,
        /// One of them.
        example: String,
    },
    /// Two volumes become the same one.
    SameVolume {
        one: String,
        other: String,
        /// What the driver calls both.
        handle: String,
    },
    /// The driver's form has no word for something an object says.
    Lost {
        /// Kind and name of one of the objects.
        example: String,
        /// How many there are.
        objects: usize,
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
                write!(f, "no node is in zone {zone}, where {volumes} of the volumes are")
            }
            MigrationObstacle::ZoneUnsaid { plugin, volumes, example } => {
                write!(f, "{volumes} volumes of {plugin} name no zone, such as {example}: ")?;
                f.write_str("their pods may be placed where the disk is not")
            }
            MigrationObstacle::SameVolume { one, other, handle } => {
                write!(f, "{one} and {other} are one volume to the driver ({handle}); keep one of them")
            }
            MigrationObstacle::Lost { example, objects: 1, field } => {
                write!(f, "{field} of {example} has no counterpart and is left out")
            }
            MigrationObstacle::Lost { example, objects, field } => {
                write!(f, "{field} has no counterpart and is left out in {objects} objects, such as {example}")
            }
        }
    }
}

impl Serialize for MigrationObstacle {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = to.serialize_struct("MigrationObstacle", 2)?;
        out.serialize_field("blocks", &self.blocks())?;
        out.serialize_field("text", &alloc::format!("{self}"))?;
        out.end()
    }
}
