use super::KindRules;
use crate::table::{AGE, NAME, entries, number};
use crate::validate::sealed;

pub(super) static RULES: KindRules = KindRules {
    validate_update: |report, old, new| sealed(report, old, new, &["data", "binaryData"]),
    columns: &[
        NAME,
        number("Data", |row| (entries(&row.object["data"]) + entries(&row.object["binaryData"])).into()),
        AGE,
    ],
    ..KindRules::plain(&wire::messages::CONFIG_MAP)
};
