use super::KindRules;
use crate::table::{AGE, NAME, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate: |report, class| report.need(class, "driverName"),
    validate_update: |report, old, new| {
        report.immutable(old, new, "driverName");
        report.immutable(old, new, "parameters");
    },
    columns: &[NAME, text("DriverName", |row| show(&row.object["driverName"])), AGE],
    ..KindRules::plain(&wire::messages::VOLUME_ATTRIBUTES_CLASS)
};
