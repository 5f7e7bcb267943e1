//! What every kind has: metadata, lists, and answers that are no object.

use crate::Type::{Bool, Int32, Int64, Keyed, Message, Messages, String, StringMap, StringSet, Strings, Time, Unread};
use crate::messages;

messages! {
    in "k8s.io.apimachinery.pkg.apis.meta.v1";

    OWNER_REFERENCE = "OwnerReference" {
        1 kind! String, 3 name! String, 4 uid! String, 5 apiVersion! String, 6 controller? Bool,
        7 blockOwnerDeletion? Bool,
    }
    OBJECT_META = "ObjectMeta" {
        1 name: String, 2 generateName: String, 3 namespace: String, 4 selfLink: String, 5 uid: String,
        6 resourceVersion: String, 7 generation: Int64, 8 creationTimestamp: Time, 9 deletionTimestamp? Time,
        10 deletionGracePeriodSeconds? Int64, 11 labels: StringMap, 12 annotations: StringMap,
        13 ownerReferences: Keyed(&OWNER_REFERENCE, "uid"), 14 finalizers: StringSet, 17 managedFields: Unread,
    }
    LABEL_SELECTOR_REQUIREMENT = "LabelSelectorRequirement" { 1 key! String, 2 operator! String, 3 values: Strings }
    LABEL_SELECTOR = "LabelSelector" {
        1 matchLabels: StringMap, 2 matchExpressions: Messages(&LABEL_SELECTOR_REQUIREMENT),
    }
    SHARD_INFO = "ShardInfo" { 1 selector! String }
    LIST_META = "ListMeta" {
        1 selfLink: String, 2 resourceVersion: String, 3 continue: String, 4 remainingItemCount? Int64,
        5 shardInfo? Message(&SHARD_INFO),
    }
    STATUS_CAUSE = "StatusCause" { 1 reason: String, 2 message: String, 3 field: String }
    STATUS_DETAILS = "StatusDetails" {
        1 name: String, 2 group: String, 3 kind: String, 4 causes: Messages(&STATUS_CAUSE), 5 retryAfterSeconds: Int32,
        6 uid: String,
    }
    STATUS = "Status" {
        1 metadata: Message(&LIST_META), 2 status: String, 3 message: String, 4 reason: String,
        5 details? Message(&STATUS_DETAILS), 6 code: Int32,
    }
    PRECONDITIONS = "Preconditions" { 1 uid? String, 2 resourceVersion? String }
    DELETE_OPTIONS = "DeleteOptions" {
        1 gracePeriodSeconds? Int64, 2 preconditions? Message(&PRECONDITIONS), 3 orphanDependents? Bool,
        4 propagationPolicy? String, 5 dryRun: Strings, 6 ignoreStoreReadErrorWithClusterBreakingPotential? Bool,
    }
}
