use alloc::string::ToString;

use serde_json::{Value, json};

use wire::Type::{Keyed, Message, String, Strings, Time};
use wire::messages;
use wire::messages::OBJECT_META;

use super::{KindRules, Names, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::meta;
use crate::table::{AGE, NAME, show, text};
use crate::validate::is_label;

pub(super) static RULES: KindRules = KindRules {
    names: Names { allowed: is_label, rule: "be at most 63 lower case letters, digits or dashes" },
    admit: |_, namespace| {
        let name = meta::text(namespace, "name").to_string();
        let labels = meta::of(namespace).entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
    },
    defaults: |namespace| default(meta::object_at(namespace, "status"), "phase", "Active"),
    selectable: &["status.phase"],
    columns: &[NAME, text("Status", |row| show(&row.object["status"]["phase"])), AGE],
    ..KindRules::plain(&FIELDS)
};

messages! {
    in "k8s.io.api.core.v1";

    NAMESPACE_SPEC = "NamespaceSpec" { 1 finalizers: Strings }
    NAMESPACE_CONDITION = "NamespaceCondition" {
        1 type! String, 2 status! String, 4 lastTransitionTime: Time, 5 reason: String, 6 message: String,
    }
    NAMESPACE_STATUS = "NamespaceStatus" { 1 phase: String, 2 conditions: Keyed(&NAMESPACE_CONDITION, "type") }
    NAMESPACE = "Namespace" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&NAMESPACE_SPEC), 3 status: Message(&NAMESPACE_STATUS),
    }
}

tables! {
    FIELDS = NAMESPACE {
        honoured metadata => META;
        honoured spec => NAMESPACE_WISHES;
        honoured status;
    }
    NAMESPACE_WISHES = NAMESPACE_SPEC {
        warned finalizers ["kubernetes"]: "they do not hold the namespace up; use metadata.finalizers";
    }
}
