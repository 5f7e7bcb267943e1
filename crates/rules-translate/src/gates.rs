//! How far the migration of each plugin has come, and who serves a volume therefore.
#![allow(clippy::indexing_slicing, reason = "there are as many places as plugins")]

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{CSINode, PersistentVolume, names};

use crate::{Error, Plugin};

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

/// Why switches cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateError {
    /// A switch nobody knows.
    Unknown(String),
    /// One switch is said to be on and to be off.
    BothWays(String),
    /// A switch asks for what another one forbids.
    Contradiction {
        asks: String,
        /// Forbids, as it was said; a plugin's own gate that is off by default forbids too.
        forbids: &'static str,
    },
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateError::Unknown(name) => {
                write!(f, "there is no migration gate {name:?}; the gates are {GATE}, {GATE_COMPLETE}")?;
                Plugin::ALL.iter().try_for_each(|plugin| write!(f, ", {}", plugin.gate()))?;
                f.write_str(", and for one plugin InTreePlugin…Unregister or CSIMigration…Complete")
            }
            GateError::BothWays(name) => write!(f, "gate {name} is said to be true and to be false; keep one"),
            GateError::Contradiction { asks, forbids } => {
                write!(f, "{asks}=true and {forbids}=false contradict each other; change one of them")
            }
        }
    }
}

impl core::error::Error for GateError {}

/// What a switch is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// The migration of all plugins.
    All,
    /// No plugin that is migrated stays.
    AllComplete,
    /// The migration of one plugin.
    One(Plugin),
    /// That plugin does not stay: what Kubernetes later had in place of the one switch for all.
    OneComplete(Plugin),
}

impl Gate {
    fn named(name: &str) -> Option<Gate> {
        match name {
            GATE => return Some(Gate::All),
            GATE_COMPLETE => return Some(Gate::AllComplete),
            _other => {}
        }
        let own = |stem: &str| Plugin::ALL.into_iter().find(|plugin| plugin.gate().strip_prefix(GATE) == Some(stem));
        let later = name.strip_prefix("InTreePlugin").and_then(|rest| rest.strip_suffix("Unregister"));
        let between = || name.strip_prefix(GATE).and_then(|rest| rest.strip_suffix("Complete"));
        match later.or_else(between).and_then(own) {
            Some(plugin) => Some(Gate::OneComplete(plugin)),
            None => name.strip_prefix(GATE).and_then(own).map(Gate::One),
        }
    }
}

/// What was said of one thing, and under which name.
#[derive(Clone, Default)]
struct Said(Option<(String, bool)>);

impl Said {
    fn note(&mut self, name: &str, on: bool) -> Result<(), GateError> {
        match &self.0 {
            Some((_, before)) if *before != on => Err(GateError::BothWays(name.into())),
            Some(_) | None => {
                self.0 = Some((name.into(), on));
                Ok(())
            }
        }
    }

    fn or(&self, default: bool) -> bool {
        self.0.as_ref().map_or(default, |(_, on)| *on)
    }

    /// The name it was asked for under, if it was.
    fn asked(&self) -> Option<&String> {
        self.0.as_ref().filter(|(_, on)| *on).map(|(name, _)| name)
    }
}

impl Migration {
    /// Every plugin serves its own volumes.
    pub const OFF: Migration = Migration([Phase::Off; Plugin::ALL.len()]);

    /// The same with one plugin changed.
    pub fn with(mut self, plugin: Plugin, phase: Phase) -> Migration {
        self.0[plugin as usize] = phase;
        self
    }

    /// Whether a switch of this name is one of migration.
    pub fn is_gate(name: &str) -> bool {
        Gate::named(name).is_some()
    }

    /// S4-5: as the switches say. Those not named are on, but for the plugin that is off by default. What is said of
    /// one plugin's code counts before what is said of that of all. Switches that contradict each other are refused:
    /// whoever wrote them expects something that would not happen.
    pub fn of_gates<'a>(gates: impl IntoIterator<Item = (&'a str, bool)>) -> Result<Migration, GateError> {
        let (mut all, mut all_complete) = (Said::default(), Said::default());
        let mut own = Plugin::ALL.map(|_| (Said::default(), Said::default()));
        for (name, on) in gates {
            match Gate::named(name).ok_or_else(|| GateError::Unknown(name.into()))? {
                Gate::All => all.note(name, on)?,
                Gate::AllComplete => all_complete.note(name, on)?,
                Gate::One(plugin) => own[plugin as usize].0.note(name, on)?,
                Gate::OneComplete(plugin) => own[plugin as usize].1.note(name, on)?,
            }
        }
        let contradiction = |asks: &String, forbids| GateError::Contradiction { asks: asks.clone(), forbids };
        if let (Some(asks), false) = (all_complete.asked(), all.or(true)) {
            return Err(contradiction(asks, GATE));
        }
        let mut migration = Migration::OFF;
        for (plugin, (on, complete)) in Plugin::ALL.into_iter().zip(own) {
            if let (Some(asks), false) = (on.asked(), all.or(true)) {
                return Err(contradiction(asks, GATE));
            }
            let migrated = all.or(true) && on.or(plugin != Plugin::Rbd);
            if let (Some(asks), false) = (complete.asked(), migrated) {
                return Err(contradiction(asks, if all.or(true) { plugin.gate() } else { GATE }));
            }
            let phase = match (migrated, complete.or(all_complete.or(true))) {
                (false, true | false) => Phase::Off,
                (true, false) => Phase::On,
                (true, true) => Phase::Complete,
            };
            migration = migration.with(plugin, phase);
        }
        Ok(migration)
    }

    /// How far a plugin has come.
    pub fn phase(&self, plugin: Plugin) -> Phase {
        self.0[plugin as usize]
    }

    /// S4-38: the plugin's volumes are left to its driver.
    pub fn is_migrated(&self, plugin: Plugin) -> bool {
        self.phase(plugin) != Phase::Off
    }

    /// The plugin whose volumes are served under this name: by the driver that has taken it over, or else by itself.
    pub fn plugin_of(&self, name: &str) -> Option<Plugin> {
        let itself = Plugin::named(name).filter(|plugin| !self.is_migrated(*plugin));
        itself.or_else(|| Plugin::of_driver(name).filter(|plugin| self.is_migrated(*plugin)))
    }

    /// The volume as it is called in CSI by whoever has this name: a driver sees it as [`Migration::as_csi`] says, a
    /// plugin its own ones.
    pub fn seen_by<'v>(&self, name: &str, volume: &'v PersistentVolume) -> Result<Cow<'v, PersistentVolume>, Error> {
        match self.plugin_of(name).filter(|plugin| crate::plugin_of(volume) == Some(*plugin)) {
            Some(plugin) => self.with(plugin, Phase::On).as_csi(volume),
            None => self.as_csi(volume),
        }
    }

    /// The volume as a CSI driver sees it: as it is if it is a CSI volume, translated if its plugin is left to its
    /// driver.
    pub fn as_csi<'v>(&self, volume: &'v PersistentVolume) -> Result<Cow<'v, PersistentVolume>, Error> {
        match crate::plugin_of(volume) {
            None if volume.spec.csi.is_some() && volume.spec.in_tree.is_none() => Ok(Cow::Borrowed(volume)),
            Some(plugin) if !self.is_migrated(plugin) => {
                Err(Error::NotInTree(format!("volume {}", volume.metadata.name)))
            }
            Some(_) | None => crate::volume_to_csi(volume).map(|translated| Cow::Owned(translated.object)),
        }
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

impl<'a> NodeSays<'a> {
    /// What the node's CSINode says, if there is one.
    pub fn of(csi_node: Option<&'a CSINode>) -> NodeSays<'a> {
        csi_node
            .map_or(NodeSays::Nothing, |node| NodeSays::Annotation(node.metadata.annotation(names::MIGRATED_PLUGINS)))
    }

    /// Its volumes of this plugin are for the CSI driver.
    pub fn leaves_to_csi(self, plugin: Plugin) -> bool {
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
