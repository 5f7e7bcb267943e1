use wire::messages::CONFIG_MAP;

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, entries, number};
use crate::validate::sealed;

pub(super) static RULES: KindRules = KindRules {
    validate_update: |report, old, new| sealed(report, old, new, &["data", "binaryData"]),
    columns: &[
        NAME,
        number("Data", |row| (entries(&row.object["data"]) + entries(&row.object["binaryData"])).into()),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

tables! {
    FIELDS = CONFIG_MAP {
        honoured metadata => META;
        honoured data: "Texts by name.";
        honoured binaryData: "Bytes by name, in base64.";
        honoured immutable: "Whether the data stays as it is for good.";
    }
}
