//! Roles, and who has them.

use super::Shape::{Object, Objects, Text, Texts};
use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::types;

types! {
    POLICY_RULE = "PolicyRule" {
        apiGroups: Texts, nonResourceURLs: Texts, resourceNames: Texts, resources: Texts, verbs: Texts,
    }
    AGGREGATION_RULE = "AggregationRule" {
        clusterRoleSelectors: Objects(&LABEL_SELECTOR),
    }
    ROLE_REF = "RoleRef" {
        apiGroup: Text, kind: Text, name: Text,
    }
    SUBJECT = "Subject" {
        apiGroup: Text, kind: Text, name: Text, namespace: Text,
    }
    CLUSTER_ROLE = "ClusterRole" {
        apiVersion: Text, kind: Text, aggregationRule: Object(&AGGREGATION_RULE), metadata: Object(&OBJECT_META),
        rules: Objects(&POLICY_RULE),
    }
    CLUSTER_ROLE_BINDING = "ClusterRoleBinding" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), roleRef: Object(&ROLE_REF),
        subjects: Objects(&SUBJECT),
    }
    ROLE = "Role" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), rules: Objects(&POLICY_RULE),
    }
    ROLE_BINDING = "RoleBinding" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), roleRef: Object(&ROLE_REF),
        subjects: Objects(&SUBJECT),
    }
}
