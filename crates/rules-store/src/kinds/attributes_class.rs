use api::names;

use super::KindRules;
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
    ..KindRules::plain(&wire::messages::VOLUME_ATTRIBUTES_CLASS)
};
