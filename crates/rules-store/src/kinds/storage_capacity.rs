use super::KindRules;
use crate::table::{AGE, NAME, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate: |report, capacity| report.need(capacity, "storageClassName"),
    validate_update: |report, old, new| {
        report.immutable(old, new, "nodeTopology");
        report.immutable(old, new, "storageClassName");
    },
    columns: &[
        NAME,
        text("StorageClass", |row| show(&row.object["storageClassName"])),
        text("Capacity", |row| show(&row.object["capacity"])),
        AGE,
    ],
    ..KindRules::plain(&wire::messages::CSI_STORAGE_CAPACITY)
};
