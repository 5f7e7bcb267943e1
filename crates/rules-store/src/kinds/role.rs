//! Roles of a namespace, and of the whole cluster.

use alloc::format;

use api::Kind;
use serde_json::Value;

use wire::Type::{Message, Messages, Strings};
use wire::messages;
use wire::messages::{LABEL_SELECTOR, OBJECT_META};

use super::{KindRules, Names};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{Column, NAME, show, text};
use crate::validate::{Report, items};

const COLUMNS: &[Column] = &[NAME, text("Created At", |row| show(&row.object["metadata"]["creationTimestamp"]))];

pub(super) static CLUSTER_ROLE_RULES: KindRules = KindRules {
    names: Names::PATH_SEGMENT,
    validate: |report, role| validate(report, Kind::ClusterRole, role),
    columns: COLUMNS,
    ..KindRules::plain(&CLUSTER_ROLE_FIELDS)
};

pub(super) static ROLE_RULES: KindRules = KindRules {
    names: Names::PATH_SEGMENT,
    validate: |report, role| validate(report, Kind::Role, role),
    columns: COLUMNS,
    ..KindRules::plain(&ROLE_FIELDS)
};

/// Every rule says what may be done, and to what.
fn validate(report: &mut Report, kind: Kind, object: &Value) {
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
        } else if kind == Kind::Role {
            report.invalid(format!("rules[{at}].nonResourceURLs"), "paths belong to no namespace; use a ClusterRole");
        } else if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
            report
                .invalid(format!("rules[{at}].nonResourceURLs"), "a rule is about paths or about resources, not both");
        }
    }
}

messages! {
    in "k8s.io.api.rbac.v1";

    POLICY_RULE = "PolicyRule" {
        1 verbs: Strings, 2 apiGroups: Strings, 3 resources: Strings, 4 resourceNames: Strings,
        5 nonResourceURLs: Strings,
    }
    AGGREGATION_RULE = "AggregationRule" { 1 clusterRoleSelectors: Messages(&LABEL_SELECTOR) }
    CLUSTER_ROLE = "ClusterRole" {
        1 metadata: Message(&OBJECT_META), 2 rules: Messages(&POLICY_RULE),
        3 aggregationRule? Message(&AGGREGATION_RULE),
    }
    ROLE = "Role" { 1 metadata: Message(&OBJECT_META), 2 rules: Messages(&POLICY_RULE) }
}

tables! {
    ROLE_FIELDS = ROLE {
        honoured metadata => META;
        honoured rules: "What is allowed." => RULE;
    }
    CLUSTER_ROLE_FIELDS = CLUSTER_ROLE {
        honoured metadata => META;
        honoured rules: "What is allowed." => RULE;
        refused aggregationRule: "nothing gathers rules of other roles here, so this role would allow nothing; write \
            them out in rules";
    }
    RULE = POLICY_RULE {
        honoured verbs, apiGroups, resources, resourceNames, nonResourceURLs;
    }
}
