//! The kinds that kubectl sends in this form. They are read strictly, so these tables are complete. The numbers are
//! Kubernetes' wire format and never change.

use crate::Form::{BytesMap, Number, Part, Parts, Text, TextMap, Texts, Time, Truth};
use crate::Message;
use crate::form::messages;
use crate::meta::{META, SELECTOR};

/// The message of a kind; deletions say their options in any version.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Message> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, kind) {
        ("", "Namespace") => Some(&NAMESPACE),
        ("", "Secret") => Some(&SECRET),
        ("", "ConfigMap") => Some(&CONFIG_MAP),
        ("", "ServiceAccount") => Some(&SERVICE_ACCOUNT),
        ("rbac.authorization.k8s.io", "ClusterRole") => Some(&CLUSTER_ROLE),
        ("rbac.authorization.k8s.io", "Role") => Some(&ROLE),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => Some(&BINDING),
        ("authentication.k8s.io", "TokenRequest") => Some(&TOKEN_REQUEST),
        ("authorization.k8s.io", "SelfSubjectAccessReview") => Some(&ACCESS_REVIEW),
        (_, "DeleteOptions") => Some(&DELETE_OPTIONS),
        _ => None,
    }
}

messages! {
    NAMESPACE_SPEC = "NamespaceSpec" { 1 "finalizers" Texts }
    NAMESPACE_CONDITION = "NamespaceCondition" {
        1 "type" Text, 2 "status" Text, 4 "lastTransitionTime" Time, 5 "reason" Text, 6 "message" Text,
    }
    NAMESPACE_STATUS = "NamespaceStatus" { 1 "phase" Text, 2 "conditions" Parts(&NAMESPACE_CONDITION) }
    NAMESPACE = "Namespace" { 1 "metadata" Part(&META), 2 "spec" Part(&NAMESPACE_SPEC), 3 "status" Part(&NAMESPACE_STATUS) }
    SECRET = "Secret" {
        1 "metadata" Part(&META), 2 "data" BytesMap, 3 "type" Text, 4 "stringData" TextMap, 5 "immutable" Truth,
    }
    CONFIG_MAP = "ConfigMap" { 1 "metadata" Part(&META), 2 "data" TextMap, 3 "binaryData" BytesMap, 4 "immutable" Truth }
    OBJECT_REFERENCE = "ObjectReference" {
        1 "kind" Text, 2 "namespace" Text, 3 "name" Text, 4 "uid" Text, 5 "apiVersion" Text, 6 "resourceVersion" Text,
        7 "fieldPath" Text,
    }
    LOCAL_REFERENCE = "LocalObjectReference" { 1 "name" Text }
    SERVICE_ACCOUNT = "ServiceAccount" {
        1 "metadata" Part(&META), 2 "secrets" Parts(&OBJECT_REFERENCE), 3 "imagePullSecrets" Parts(&LOCAL_REFERENCE),
        4 "automountServiceAccountToken" Truth,
    }
    POLICY_RULE = "PolicyRule" {
        1 "verbs" Texts, 2 "apiGroups" Texts, 3 "resources" Texts, 4 "resourceNames" Texts, 5 "nonResourceURLs" Texts,
    }
    AGGREGATION = "AggregationRule" { 1 "clusterRoleSelectors" Parts(&SELECTOR) }
    ROLE = "Role" { 1 "metadata" Part(&META), 2 "rules" Parts(&POLICY_RULE) }
    CLUSTER_ROLE = "ClusterRole" {
        1 "metadata" Part(&META), 2 "rules" Parts(&POLICY_RULE), 3 "aggregationRule" Part(&AGGREGATION),
    }
    SUBJECT = "Subject" { 1 "kind" Text, 2 "apiGroup" Text, 3 "name" Text, 4 "namespace" Text }
    ROLE_REF = "RoleRef" { 1 "apiGroup" Text, 2 "kind" Text, 3 "name" Text }
    BINDING = "RoleBinding" { 1 "metadata" Part(&META), 2 "subjects" Parts(&SUBJECT), 3 "roleRef" Part(&ROLE_REF) }
    BOUND_OBJECT = "BoundObjectReference" { 1 "kind" Text, 2 "apiVersion" Text, 3 "name" Text, 4 "uid" Text }
    TOKEN_SPEC = "TokenRequestSpec" {
        1 "audiences" Texts, 3 "boundObjectRef" Part(&BOUND_OBJECT), 4 "expirationSeconds" Number,
    }
    TOKEN_STATUS = "TokenRequestStatus" { 1 "token" Text, 2 "expirationTimestamp" Time }
    TOKEN_REQUEST = "TokenRequest" { 1 "metadata" Part(&META), 2 "spec" Part(&TOKEN_SPEC), 3 "status" Part(&TOKEN_STATUS) }
    RESOURCE_ATTRIBUTES = "ResourceAttributes" {
        1 "namespace" Text, 2 "verb" Text, 3 "group" Text, 4 "version" Text, 5 "resource" Text, 6 "subresource" Text,
        7 "name" Text,
    }
    PATH_ATTRIBUTES = "NonResourceAttributes" { 1 "path" Text, 2 "verb" Text }
    REVIEW_SPEC = "SelfSubjectAccessReviewSpec" {
        1 "resourceAttributes" Part(&RESOURCE_ATTRIBUTES), 2 "nonResourceAttributes" Part(&PATH_ATTRIBUTES),
    }
    REVIEW_STATUS = "SubjectAccessReviewStatus" {
        1 "allowed" Truth, 2 "reason" Text, 3 "evaluationError" Text, 4 "denied" Truth,
    }
    ACCESS_REVIEW = "SelfSubjectAccessReview" {
        1 "metadata" Part(&META), 2 "spec" Part(&REVIEW_SPEC), 3 "status" Part(&REVIEW_STATUS),
    }
    PRECONDITIONS = "Preconditions" { 1 "uid" Text, 2 "resourceVersion" Text }
    DELETE_OPTIONS = "DeleteOptions" {
        1 "gracePeriodSeconds" Number, 2 "preconditions" Part(&PRECONDITIONS), 3 "orphanDependents" Truth,
        4 "propagationPolicy" Text, 5 "dryRun" Texts, 6 "ignoreStoreReadErrorWithClusterBreakingPotential" Truth,
    }
}
