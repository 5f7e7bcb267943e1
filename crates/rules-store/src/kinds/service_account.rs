use alloc::vec::Vec;

use wire::Type::{Bool, Keyed, Message, Messages};
use wire::messages;
use wire::messages::{LOCAL_OBJECT_REFERENCE, OBJECT_META, OBJECT_REFERENCE};

use super::KindRules;
use crate::table::{AGE, NAME, number};

pub(super) static RULES: KindRules = KindRules {
    columns: &[NAME, number("Secrets", |row| row.object["secrets"].as_array().map_or(0, Vec::len).into()), AGE],
    ..KindRules::plain(&SERVICE_ACCOUNT)
};

messages! {
    in "k8s.io.api.core.v1";

    SERVICE_ACCOUNT = "ServiceAccount" {
        1 metadata: Message(&OBJECT_META), 2 secrets: Keyed(&OBJECT_REFERENCE, "name"),
        3 imagePullSecrets: Messages(&LOCAL_OBJECT_REFERENCE), 4 automountServiceAccountToken? Bool,
    }
}
