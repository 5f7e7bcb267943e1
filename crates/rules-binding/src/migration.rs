//! Which objects say that a CSI driver has taken over the in-tree plugin they are of (PV-48 to PV-51).

use alloc::format;

use api::{Meta, PersistentVolume, ReclaimPolicy, Value, names};
use control::Why;
use rules_translate::{Migration, Plugin};
use serde_json::json;

use crate::Reason;

/// What the operator said at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// How far the migration of each in-tree plugin has come.
    pub migration: Migration,
    /// The in-tree plugin that is at work in this process, as in a rehearsal of its migration.
    pub plugin: Option<Plugin>,
    /// Claims say in a condition whether a pod uses them (PV-57). Each change is a write.
    pub tells_use: bool,
}

/// What an object is to say about the driver that has taken over its plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MigrationMark {
    /// It says what it should.
    Right,
    /// This driver has taken over.
    Set(&'static str),
    /// No driver has, though the object says so.
    Remove,
}

impl MigrationMark {
    /// The annotations that make an object say so. The key of the first design is never written; where somebody wrote
    /// it, it goes in the same write (S4-42).
    pub(crate) fn annotations(self, meta: &Meta) -> Value {
        let driver = match self {
            MigrationMark::Set(driver) => Some(driver),
            MigrationMark::Right | MigrationMark::Remove => None,
        };
        let mut annotations = json!({ names::MIGRATED_TO: driver });
        if meta.annotation(names::MIGRATED_TO_BETA).is_some() {
            annotations[names::MIGRATED_TO_BETA] = Value::Null;
        }
        annotations
    }
}

impl Local {
    /// The driver that has taken over the plugin of this name.
    pub(crate) fn driver_for(&self, provisioner: &str) -> Option<&'static str> {
        Plugin::named(provisioner).filter(|plugin| self.migration.is_migrated(*plugin)).map(Plugin::driver)
    }

    /// The plugin of this name makes, deletes and grows its volumes itself: it is there, and no driver has taken over.
    pub(crate) fn is_served(&self, plugin: &str) -> bool {
        self.plugin.is_some_and(|there| there.name() == plugin && !self.migration.is_migrated(there))
    }

    /// PV-48: what an object that this provisioner made, or is to make, has to say. One that names no provisioner was
    /// made by hand and says nothing (PV-49). What others go by under the key of the first design counts as much: it
    /// may say the same, and nothing else.
    pub(crate) fn mark(&self, meta: &Meta, provisioner: Option<&str>) -> MigrationMark {
        let said = |key: &str| meta.annotation(key).filter(|said| !said.is_empty());
        let (said, beta) = (said(names::MIGRATED_TO), said(names::MIGRATED_TO_BETA));
        match provisioner.map(|provisioner| self.driver_for(provisioner)) {
            Some(Some(driver)) if said != Some(driver) || beta.is_some_and(|beta| beta != driver) => {
                MigrationMark::Set(driver)
            }
            Some(None) if said.is_some() || beta.is_some() => MigrationMark::Remove,
            Some(Some(_) | None) | None => MigrationMark::Right,
        }
    }
}

/// PV-50: a finalizer for whoever is to delete the volume, and the one that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handover {
    pub(crate) gone: &'static str,
    pub(crate) added: Option<&'static str>,
}

impl Handover {
    /// What is to be handed over, if `mark` is set right. Nobody can put a finalizer on what is being deleted, so that
    /// a plugin then takes over what was held for its driver as it is.
    pub(crate) fn of(volume: &PersistentVolume, mark: MigrationMark, served: bool) -> Option<Handover> {
        let meta = &volume.metadata;
        let provisioned = meta.annotation(names::PROVISIONED_BY).is_some();
        let taken_over = match mark {
            MigrationMark::Set(_) => true,
            MigrationMark::Remove => false,
            MigrationMark::Right => provisioned && meta.annotation(names::MIGRATED_TO).is_some(),
        };
        if taken_over && meta.has_finalizer(names::PV_CONTROLLER) {
            return Some(Handover { gone: names::PV_CONTROLLER, added: None });
        }
        let held = served && provisioned && !taken_over && !meta.is_deleting();
        (held && meta.has_finalizer(names::PROVISIONER_FINALIZER)).then(|| {
            let kept = volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete;
            let added = (kept && !meta.has_finalizer(names::PV_CONTROLLER)).then_some(names::PV_CONTROLLER);
            Handover { gone: names::PROVISIONER_FINALIZER, added }
        })
    }
}

/// Why an object's mark changes.
pub(crate) fn why(mark: MigrationMark) -> Why<Reason> {
    match mark {
        MigrationMark::Set(driver) => {
            Why::waiting(Reason::MarkingMigrated, format!("driver {driver} has taken over the in-tree plugin"))
        }
        MigrationMark::Remove | MigrationMark::Right => {
            Why::waiting(Reason::MarkingMigrated, "no driver has taken over the plugin that is named")
        }
    }
}
