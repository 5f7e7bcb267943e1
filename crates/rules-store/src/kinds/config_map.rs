use wire::Type::{Bool, BytesMap, Message, StringMap};
use wire::messages;
use wire::messages::OBJECT_META;

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
    ..KindRules::plain(&CONFIG_MAP)
};

messages! {
    in "k8s.io.api.core.v1";

    CONFIG_MAP = "ConfigMap" {
        1 metadata: Message(&OBJECT_META), 2 data: StringMap, 3 binaryData: BytesMap, 4 immutable? Bool,
    }
}
