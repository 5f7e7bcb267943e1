use alloc::format;

use serde_json::Value;

use super::{Report, items};
use crate::Resource;
use crate::resource::{Id, RBAC};

/// Every rule says what may be done, and to what.
pub(super) fn role(report: &mut Report, resource: &'static Resource, object: &Value) {
    for (at, rule) in items(&object["rules"]).enumerate() {
        let empty = |field: &str| items(&rule[field]).next().is_none();
        if empty("verbs") {
            report.required(format!("rules[{at}].verbs"), "it must name at least one verb");
        }
        if empty("nonResourceURLs") {
            for field in ["apiGroups", "resources"] {
                if empty(field) {
                    report.required(format!("rules[{at}].{field}"), "it must name at least one, or \"*\" for all");
                }
            }
        } else if resource.id == Id::Role {
            report.invalid(format!("rules[{at}].nonResourceURLs"), "paths belong to no namespace; use a ClusterRole");
        } else if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
            report
                .invalid(format!("rules[{at}].nonResourceURLs"), "a rule is about paths or about resources, not both");
        }
    }
}

/// A binding names a role and those who have it.
pub(super) fn binding(report: &mut Report, resource: &'static Resource, object: &Value) {
    report.need(object, "roleRef.name");
    report.need(object, "roleRef.kind");
    report.one_of(object, "roleRef.apiGroup", &[RBAC]);
    let roles: &[&str] = if resource.id == Id::RoleBinding { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    report.one_of(object, "roleRef.kind", roles);
    for (at, subject) in items(&object["subjects"]).enumerate() {
        let text = |field: &str| subject[field].as_str().unwrap_or_default();
        if text("name").is_empty() {
            report.required(format!("subjects[{at}].name"), "it must be set");
        }
        let group = match text("kind") {
            "User" | "Group" => RBAC,
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
