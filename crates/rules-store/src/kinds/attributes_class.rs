use api::names;
use wire::messages::VOLUME_ATTRIBUTES_CLASS;

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
use crate::meta;
use crate::table::{AGE, NAME, show, text};

pub(super) static RULES: KindRules = KindRules {
    // PV-58
    admit: |_, class| meta::add_finalizer(class, names::VAC_PROTECTION),
    validate: |report, class| report.need(class, "driverName"),
    validate_update: |report, old, new| {
        report.immutable(old, new, "driverName");
        report.immutable(old, new, "parameters");
    },
    columns: &[NAME, text("DriverName", |row| show(&row.object["driverName"])), AGE],
    ..KindRules::plain(&FIELDS)
};

tables! {
    FIELDS = VOLUME_ATTRIBUTES_CLASS {
        honoured metadata => META;
        honoured driverName: "The driver whose volumes can have this class.";
        honoured parameters: "What the driver is told when it changes a volume.";
    }
}
