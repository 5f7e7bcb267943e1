//! What every kind has: metadata, lists, answers that are no object. The numbers are Kubernetes' wire format and never
//! change.

use crate::Form::{Number, Parts, Set, Small, Text, TextMap, Texts, Time, Truth, Unread};
use crate::form::messages;

messages! {
    OWNER = "OwnerReference" {
        1 "kind" Text, 3 "name" Text, 4 "uid" Text, 5 "apiVersion" Text, 6 "controller" Set(&Truth),
        7 "blockOwnerDeletion" Set(&Truth),
    }
    pub(crate) META = "ObjectMeta" {
        1 "name" Text, 2 "generateName" Text, 3 "namespace" Text, 4 "selfLink" Text, 5 "uid" Text,
        6 "resourceVersion" Text, 7 "generation" Number, 8 "creationTimestamp" Time, 9 "deletionTimestamp" Time,
        10 "deletionGracePeriodSeconds" Set(&Number), 11 "labels" TextMap, 12 "annotations" TextMap,
        13 "ownerReferences" Parts(&OWNER), 14 "finalizers" Texts, 17 "managedFields" Unread,
    }
    pub(crate) REQUIREMENT = "LabelSelectorRequirement" { 1 "key" Set(&Text), 2 "operator" Set(&Text), 3 "values" Texts }
    pub(crate) SELECTOR = "LabelSelector" { 1 "matchLabels" TextMap, 2 "matchExpressions" Parts(&REQUIREMENT) }
    pub LIST_META = "ListMeta" {
        1 "selfLink" Text, 2 "resourceVersion" Text, 3 "continue" Text, 4 "remainingItemCount" Set(&Number),
    }
    pub STATUS = "Status" { 2 "status" Text, 3 "message" Text, 4 "reason" Text, 6 "code" Small }
}
