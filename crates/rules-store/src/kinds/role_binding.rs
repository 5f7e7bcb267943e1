//! Who has a role, in a namespace or in the whole cluster.

use alloc::format;
use alloc::vec::Vec;

use api::Kind;
use serde_json::Value;

use wire::Type::{Message, Messages, String};
use wire::messages;
use wire::messages::OBJECT_META;

use super::{KindRules, Names, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::meta;
use crate::table::{AGE, Column, NAME, Row, text, wide};
use crate::validate::{Report, items};

const COLUMNS: &[Column] = &[
    NAME,
    text("Role", role),
    AGE,
    wide("Users", |row| subjects(row.object, "User")),
    wide("Groups", |row| subjects(row.object, "Group")),
    wide("ServiceAccounts", |row| subjects(row.object, "ServiceAccount")),
];

pub(super) static CLUSTER_ROLE_BINDING_RULES: KindRules = KindRules {
    names: Names::PATH_SEGMENT,
    defaults,
    validate: |report, binding| validate(report, &["ClusterRole"], binding),
    // Whoever may change a binding's subjects must not turn it into another role's.
    validate_update: |report, old, new| report.immutable(old, new, "roleRef"),
    columns: COLUMNS,
    ..KindRules::plain(&CLUSTER_ROLE_BINDING_FIELDS)
};

pub(super) static ROLE_BINDING_RULES: KindRules = KindRules {
    names: Names::PATH_SEGMENT,
    defaults,
    validate: |report, binding| validate(report, &["Role", "ClusterRole"], binding),
    validate_update: |report, old, new| report.immutable(old, new, "roleRef"),
    columns: COLUMNS,
    ..KindRules::plain(&ROLE_BINDING_FIELDS)
};

const GROUP: &str = Kind::RoleBinding.group();

/// Users and groups are names of the group of roles itself; service accounts are objects of the core group.
fn defaults(binding: &mut Value) {
    default(meta::object_at(binding, "roleRef"), "apiGroup", GROUP);
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(subject) = subject
            && matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group"))
        {
            default(subject, "apiGroup", GROUP);
        }
    }
}

/// A binding names a role of one of these kinds, and those who have it.
fn validate(report: &mut Report, roles: &[&str], object: &Value) {
    report.need(object, "roleRef.name");
    report.need(object, "roleRef.kind");
    report.one_of(object, "roleRef.apiGroup", &[GROUP]);
    report.one_of(object, "roleRef.kind", roles);
    for (at, subject) in items(&object["subjects"]).enumerate() {
        let text = |field: &str| subject[field].as_str().unwrap_or_default();
        if text("name").is_empty() {
            report.required(format!("subjects[{at}].name"), "it must be set");
        }
        let group = match text("kind") {
            "User" | "Group" => GROUP,
            "ServiceAccount" => {
                if text("namespace").is_empty() {
                    report.required(format!("subjects[{at}].namespace"), "it must be set for a service account");
                }
                ""
            }
            other => {
                let field = format!("subjects[{at}].kind");
                report.invalid(field, format!("{other:?} is not one of User, Group, ServiceAccount"));
                continue;
            }
        };
        if text("apiGroup") != group {
            report.invalid(format!("subjects[{at}].apiGroup"), format!("it must be {group:?} for this kind"));
        }
    }
}

fn role(row: &Row<'_>) -> Value {
    let role = &row.object["roleRef"];
    format!("{}/{}", role["kind"].as_str().unwrap_or_default(), role["name"].as_str().unwrap_or_default()).into()
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let of_kind = items(&binding["subjects"]).filter(|subject| subject["kind"].as_str() == Some(kind));
    let names = of_kind.map(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        subject["namespace"].as_str().map_or(name.into(), |namespace| format!("{namespace}/{name}"))
    });
    names.collect::<Vec<_>>().join(", ").into()
}

messages! {
    in "k8s.io.api.rbac.v1";

    SUBJECT = "Subject" { 1 kind! String, 2 apiGroup: String, 3 name! String, 4 namespace: String }
    ROLE_REF = "RoleRef" { 1 apiGroup! String, 2 kind! String, 3 name! String }
    CLUSTER_ROLE_BINDING = "ClusterRoleBinding" {
        1 metadata: Message(&OBJECT_META), 2 subjects: Messages(&SUBJECT), 3 roleRef: Message(&ROLE_REF),
    }
    ROLE_BINDING = "RoleBinding" {
        1 metadata: Message(&OBJECT_META), 2 subjects: Messages(&SUBJECT), 3 roleRef: Message(&ROLE_REF),
    }
}

tables! {
    ROLE_BINDING_FIELDS = ROLE_BINDING {
        honoured metadata => META;
        honoured subjects: "Who gets the rights." => SUBJECTS;
        honoured roleRef: "The role that says which." => ROLE_NAMED;
    }
    CLUSTER_ROLE_BINDING_FIELDS = CLUSTER_ROLE_BINDING {
        honoured metadata => META;
        honoured subjects: "Who gets the rights." => SUBJECTS;
        honoured roleRef: "The role that says which." => ROLE_NAMED;
    }
    SUBJECTS = SUBJECT {
        honoured kind, apiGroup, name, namespace;
    }
    ROLE_NAMED = ROLE_REF {
        honoured apiGroup, kind, name;
    }
}
