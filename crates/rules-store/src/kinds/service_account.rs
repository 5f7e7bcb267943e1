use alloc::vec::Vec;

use api::Kind;
use serde_json::json;
use wire::Type::{Bool, Keyed, Message, Messages};
use wire::messages;
use wire::messages::{LOCAL_OBJECT_REFERENCE, OBJECT_META, OBJECT_REFERENCE};

use super::KindRules;
use crate::fields::meta::{META, OBJECT};
use crate::fields::tables;
use crate::table::{AGE, NAME, number};
use crate::{Change, EventType, Request, Store, WriteOptions};

pub(super) static RULES: KindRules = KindRules {
    columns: &[NAME, number("Secrets", |row| row.object["secrets"].as_array().map_or(0, Vec::len).into()), AGE],
    ..KindRules::plain(&FIELDS)
};

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// The accounts that namespaces lack: every one that stays has an account `default`.
pub fn missing_accounts(store: &Store) -> Vec<Request> {
    store.list(Kind::Namespace, None).filter_map(|home| missing(store, &home.key.name)).collect()
}

/// The same, of the namespaces that these changes made or took the account from.
pub fn missing_accounts_after(store: &Store, changes: &[Change]) -> Vec<Request> {
    let lacking = changes.iter().filter_map(|change| {
        let key = &change.object.key;
        match (key.kind, change.event) {
            (Kind::Namespace, EventType::Added) => missing(store, &key.name),
            (Kind::ServiceAccount, EventType::Deleted) if &*key.name == DEFAULT => missing(store, &key.namespace),
            _others => None,
        }
    });
    lacking.collect()
}

fn missing(store: &Store, namespace: &str) -> Option<Request> {
    let stays = store.get(Kind::Namespace, "", namespace).is_some_and(|home| !home.is_deleting());
    if !stays || store.get(Kind::ServiceAccount, namespace, DEFAULT).is_some() {
        return None;
    }
    let (kind, body, options) = (Kind::ServiceAccount, json!({"metadata": {"name": DEFAULT}}), WriteOptions::default());
    Some(Request::Create { kind, namespace: namespace.into(), body, options })
}

messages! {
    in "k8s.io.api.core.v1";

    SERVICE_ACCOUNT = "ServiceAccount" {
        1 metadata: Message(&OBJECT_META), 2 secrets: Keyed(&OBJECT_REFERENCE, "name"),
        3 imagePullSecrets: Messages(&LOCAL_OBJECT_REFERENCE), 4 automountServiceAccountToken? Bool,
    }
}

tables! {
    FIELDS = SERVICE_ACCOUNT {
        honoured metadata => META;
        honoured secrets: "For people and programs to read; nothing here acts on it." => OBJECT;
        warned imagePullSecrets: "no images are pulled here, so nobody uses them";
        honoured automountServiceAccountToken: "Whether pods of this account that do not say find a token where \
            clients look for it; not set means no.";
    }
}
