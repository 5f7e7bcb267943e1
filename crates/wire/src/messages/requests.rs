//! Messages that are sent to a server and never stored. A field that a table lacks is refused when it is sent.

use super::meta::{DELETE_OPTIONS, LABEL_SELECTOR_REQUIREMENT, OBJECT_META};
use super::pod::BINDING;
use crate::Type::{Bool, Int64, Message, Messages, String, Strings, Time};
use crate::{Message as Table, messages};

/// The message of a request that is about no stored object. Deletions say their options in any version.
pub fn request(api_version: &str, kind: &str) -> Option<&'static Table> {
    match (api_version, kind) {
        ("v1", "Binding") => Some(&BINDING),
        ("authentication.k8s.io/v1", "TokenRequest") => Some(&TOKEN_REQUEST),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(&SELF_SUBJECT_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => Some(&SELF_SUBJECT_ACCESS_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => Some(&SELF_SUBJECT_RULES_REVIEW),
        (_, "DeleteOptions") => Some(&DELETE_OPTIONS),
        _ => None,
    }
}

messages! {
    in "k8s.io.api.authentication.v1";

    BOUND_OBJECT_REFERENCE = "BoundObjectReference" {
        1 kind: String, 2 apiVersion: String, 3 name: String, 4 uid: String,
    }
    USER_INFO = "UserInfo" { 1 username: String, 2 uid: String, 3 groups: Strings }
    SELF_SUBJECT_REVIEW_STATUS = "SelfSubjectReviewStatus" { 1 userInfo: Message(&USER_INFO) }
    SELF_SUBJECT_REVIEW = "SelfSubjectReview" {
        1 metadata: Message(&OBJECT_META), 2 status: Message(&SELF_SUBJECT_REVIEW_STATUS),
    }
    TOKEN_REQUEST_SPEC = "TokenRequestSpec" {
        1 audiences: Strings, 3 boundObjectRef? Message(&BOUND_OBJECT_REFERENCE), 4 expirationSeconds? Int64,
    }
    TOKEN_REQUEST_STATUS = "TokenRequestStatus" { 1 token! String, 2 expirationTimestamp: Time }
    TOKEN_REQUEST = "TokenRequest" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&TOKEN_REQUEST_SPEC),
        3 status: Message(&TOKEN_REQUEST_STATUS),
    }
}

messages! {
    in "k8s.io.apimachinery.pkg.apis.meta.v1";

    FIELD_SELECTOR_REQUIREMENT = "FieldSelectorRequirement" { 1 key! String, 2 operator! String, 3 values: Strings }
}

messages! {
    in "k8s.io.api.authorization.v1";

    FIELD_SELECTOR_ATTRIBUTES = "FieldSelectorAttributes" {
        1 rawSelector: String, 2 requirements: Messages(&FIELD_SELECTOR_REQUIREMENT),
    }
    LABEL_SELECTOR_ATTRIBUTES = "LabelSelectorAttributes" {
        1 rawSelector: String, 2 requirements: Messages(&LABEL_SELECTOR_REQUIREMENT),
    }
    RESOURCE_ATTRIBUTES = "ResourceAttributes" {
        1 namespace: String, 2 verb: String, 3 group: String, 4 version: String, 5 resource: String,
        6 subresource: String, 7 name: String, 8 fieldSelector? Message(&FIELD_SELECTOR_ATTRIBUTES),
        9 labelSelector? Message(&LABEL_SELECTOR_ATTRIBUTES),
    }
    NON_RESOURCE_ATTRIBUTES = "NonResourceAttributes" { 1 path: String, 2 verb: String }
    RESOURCE_RULE = "ResourceRule" {
        1 verbs! Strings, 2 apiGroups: Strings, 3 resources: Strings, 4 resourceNames: Strings,
    }
    NON_RESOURCE_RULE = "NonResourceRule" { 1 verbs! Strings, 2 nonResourceURLs: Strings }
    SUBJECT_RULES_REVIEW_STATUS = "SubjectRulesReviewStatus" {
        1 resourceRules! Messages(&RESOURCE_RULE), 2 nonResourceRules! Messages(&NON_RESOURCE_RULE), 3 incomplete! Bool,
        4 evaluationError: String,
    }
    SELF_SUBJECT_RULES_REVIEW_SPEC = "SelfSubjectRulesReviewSpec" { 1 namespace: String }
    SELF_SUBJECT_RULES_REVIEW = "SelfSubjectRulesReview" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&SELF_SUBJECT_RULES_REVIEW_SPEC),
        3 status: Message(&SUBJECT_RULES_REVIEW_STATUS),
    }
    SELF_SUBJECT_ACCESS_REVIEW_SPEC = "SelfSubjectAccessReviewSpec" {
        1 resourceAttributes? Message(&RESOURCE_ATTRIBUTES), 2 nonResourceAttributes? Message(&NON_RESOURCE_ATTRIBUTES),
    }
    SUBJECT_ACCESS_REVIEW_STATUS = "SubjectAccessReviewStatus" {
        1 allowed! Bool, 2 reason: String, 3 evaluationError: String, 4 denied: Bool,
    }
    SELF_SUBJECT_ACCESS_REVIEW = "SelfSubjectAccessReview" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&SELF_SUBJECT_ACCESS_REVIEW_SPEC),
        3 status: Message(&SUBJECT_ACCESS_REVIEW_STATUS),
    }
}
