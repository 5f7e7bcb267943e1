//! How far the migration of a plugin has come, as far as objects show it.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use rules_translate::Plugin;
use serde::Serialize;

use crate::Survey;
use crate::item::{ItemKind, Mark};
use crate::nodes::NodesSay;

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

/// Kinds without which it cannot be told whether a plugin's migration fits together.
pub(crate) fn unseen(survey: &Survey) -> Vec<Kind> {
    Survey::KINDS.into_iter().filter(|kind| !survey.knows(*kind)).collect()
}
