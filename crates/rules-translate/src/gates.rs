//! How far the migration of each plugin has come, and who serves a volume therefore.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Plugin;

/// How far the migration of a plugin has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The plugin serves its volumes.
    Off,
    /// The CSI driver serves them where the node agrees; elsewhere the plugin does (S4-1, S4-2).
    On,
    /// There is no plugin any more: the CSI driver serves them everywhere (S4-3).
    #[default]
    Complete,
}

/// The phase of every plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Migration([Phase; Plugin::ALL.len()]);

/// The switch for all plugins together.
pub const GATE: &str = "CSIMigration";
/// The switch that leaves no in-tree plugin behind.
pub const GATE_COMPLETE: &str = "CSIMigrationInTreeOff";

/// As in today's Kubernetes: complete, but for the plugin it no longer takes over.
impl Default for Migration {
    fn default() -> Migration {
        Migration([Phase::Complete; Plugin::ALL.len()]).with(Plugin::Rbd, Phase::Off)
    }
}

/// A switch nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGate(pub String);

impl fmt::Display for UnknownGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no migration gate {:?}; the gates are {GATE}, {GATE_COMPLETE}", self.0)?;
        Plugin::ALL.iter().try_for_each(|plugin| write!(f, ", {}", plugin.gate()))
    }
}

impl core::error::Error for UnknownGate {}

impl Migration {
    /// Every plugin serves its own volumes.
    pub const OFF: Migration = Migration([Phase::Off; Plugin::ALL.len()]);

    /// The same with one plugin changed.
    pub fn with(mut self, plugin: Plugin, phase: Phase) -> Migration {
        self.0[plugin as usize] = phase;
        self
    }

    /// S4-5: as the switches say. Those not named are on, but for the plugin that is off by default.
    pub fn of_gates<'a>(gates: impl IntoIterator<Item = (&'a str, bool)>) -> Result<Migration, UnknownGate> {
        let (mut all, mut complete) = (true, true);
        let mut own = Plugin::ALL.map(|plugin| plugin != Plugin::Rbd);
        for (name, on) in gates {
            match (name, Plugin::ALL.iter().position(|plugin| plugin.gate() == name)) {
                (GATE, _) => all = on,
                (GATE_COMPLETE, _) => complete = on,
                (_, Some(index)) => own[index] = on,
                (_, None) => return Err(UnknownGate(name.into())),
            }
        }
        let phase = |on: bool| match (all && on, complete) {
            (false, true | false) => Phase::Off,
            (true, false) => Phase::On,
            (true, true) => Phase::Complete,
        };
        Ok(Migration(own.map(phase)))
    }

    /// How far a plugin has come.
    pub fn phase(&self, plugin: Plugin) -> Phase {
        self.0[plugin as usize]
    }

    /// S4-38: the plugin's volumes are left to its driver.
    pub fn is_migrated(&self, plugin: Plugin) -> bool {
        self.phase(plugin) != Phase::Off
    }

    /// The plugin whose volumes this driver serves.
    pub fn plugin_of(&self, driver: &str) -> Option<Plugin> {
        Plugin::of_driver(driver).filter(|plugin| self.is_migrated(*plugin))
    }

    /// S4-48: whether the in-tree plugin is there at all.
    pub fn has_in_tree(&self, plugin: Plugin) -> bool {
        self.phase(plugin) != Phase::Complete
    }

    /// S4-30: what a node with this table writes on its CSINode, in order; `None` for nothing.
    pub fn annotation(&self) -> Option<String> {
        let migrated: Vec<&str> =
            Plugin::ALL.into_iter().filter(|plugin| self.is_migrated(*plugin)).map(Plugin::name).collect();
        (!migrated.is_empty()).then(|| migrated.join(","))
    }

    /// Who attaches a plugin's volumes to a node (S4-32, S4-39).
    pub fn served_by(&self, plugin: Plugin, node: NodeSays<'_>) -> Served {
        match (self.phase(plugin), node.leaves_to_csi(plugin)) {
            (Phase::Complete, true | false) | (Phase::On, true) => Served::ByDriver,
            (Phase::On | Phase::Off, false) => Served::ByPlugin,
            (Phase::Off, true) => Served::Disputed,
        }
    }
}

/// What a node says about the plugins it has left to drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSays<'a> {
    /// It has no CSINode.
    Nothing,
    /// The annotation of its CSINode; `None` if there is none.
    Annotation(Option<&'a str>),
}

impl NodeSays<'_> {
    fn leaves_to_csi(self, plugin: Plugin) -> bool {
        match self {
            NodeSays::Nothing | NodeSays::Annotation(None) => false,
            NodeSays::Annotation(Some(list)) => list.split(',').any(|name| name.trim() == plugin.name()),
        }
    }
}

/// Who serves a volume on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The in-tree plugin.
    ByPlugin,
    /// The CSI driver.
    ByDriver,
    /// The node expects the driver, and the controller has the migration off: nobody, until the user decides.
    Disputed,
}
