use wire::messages::CSI_STORAGE_CAPACITY;

use super::KindRules;
use crate::fields::meta::{META, SELECTOR};
use crate::fields::tables;
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
    ..KindRules::plain(&FIELDS)
};

tables! {
    FIELDS = CSI_STORAGE_CAPACITY {
        honoured metadata => META;
        honoured nodeTopology => SELECTOR;
        honoured storageClassName, capacity, maximumVolumeSize;
    }
}
