//! The group `storage.k8s.io`.

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::volume::PERSISTENT_VOLUME_SPEC;
use crate::Type::{Bool, Int32, Int64, Keyed, Message, Messages, Quantity, String, StringMap, Strings, Time};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    TOPOLOGY_SELECTOR_LABEL_REQUIREMENT = "TopologySelectorLabelRequirement" { 1 key! String, 2 values: Strings }
    TOPOLOGY_SELECTOR_TERM = "TopologySelectorTerm" {
        1 matchLabelExpressions: Messages(&TOPOLOGY_SELECTOR_LABEL_REQUIREMENT),
    }
}

messages! {
    in "k8s.io.api.storage.v1";

    STORAGE_CLASS = "StorageClass" {
        1 metadata: Message(&OBJECT_META), 2 provisioner! String, 3 parameters: StringMap, 4 reclaimPolicy? String,
        5 mountOptions: Strings, 6 allowVolumeExpansion? Bool, 7 volumeBindingMode? String,
        8 allowedTopologies: Messages(&TOPOLOGY_SELECTOR_TERM),
    }
    VOLUME_ATTACHMENT_SOURCE = "VolumeAttachmentSource" {
        1 persistentVolumeName? String, 2 inlineVolumeSpec? Message(&PERSISTENT_VOLUME_SPEC),
    }
    VOLUME_ATTACHMENT_SPEC = "VolumeAttachmentSpec" {
        1 attacher! String, 2 source: Message(&VOLUME_ATTACHMENT_SOURCE), 3 nodeName! String,
    }
    VOLUME_ERROR = "VolumeError" { 1 time: Time, 2 message: String, 3 errorCode? Int32 }
    VOLUME_ATTACHMENT_STATUS = "VolumeAttachmentStatus" {
        1 attached! Bool, 2 attachmentMetadata: StringMap, 3 attachError? Message(&VOLUME_ERROR),
        4 detachError? Message(&VOLUME_ERROR),
    }
    VOLUME_ATTACHMENT = "VolumeAttachment" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&VOLUME_ATTACHMENT_SPEC),
        3 status: Message(&VOLUME_ATTACHMENT_STATUS),
    }
    DRIVER_TOKEN_REQUEST = "TokenRequest" { 1 audience! String, 2 expirationSeconds? Int64 }
    CSI_DRIVER_SPEC = "CSIDriverSpec" {
        1 attachRequired? Bool, 2 podInfoOnMount? Bool, 3 volumeLifecycleModes: Strings, 4 storageCapacity? Bool,
        5 fsGroupPolicy? String, 6 tokenRequests: Messages(&DRIVER_TOKEN_REQUEST), 7 requiresRepublish? Bool,
        8 seLinuxMount? Bool, 9 nodeAllocatableUpdatePeriodSeconds? Int64, 10 serviceAccountTokenInSecrets? Bool,
        11 preventPodSchedulingIfMissing? Bool,
    }
    CSI_DRIVER = "CSIDriver" { 1 metadata: Message(&OBJECT_META), 2 spec: Message(&CSI_DRIVER_SPEC) }
    VOLUME_NODE_RESOURCES = "VolumeNodeResources" { 1 count? Int32 }
    CSI_NODE_DRIVER = "CSINodeDriver" {
        1 name! String, 2 nodeID! String, 3 topologyKeys: Strings, 4 allocatable? Message(&VOLUME_NODE_RESOURCES),
    }
    CSI_NODE_SPEC = "CSINodeSpec" { 1 drivers: Keyed(&CSI_NODE_DRIVER, "name") }
    STORAGE_HEALTH_CONDITION = "StorageHealthCondition" {
        1 status! String, 2 reason! String, 3 message: String, 4 accessMode? String, 5 volumeMode? String,
        6 lastTransitionTime: Time,
    }
    STORAGE_HEALTH = "StorageHealth" { 1 name! String, 2 healthConditions: Messages(&STORAGE_HEALTH_CONDITION) }
    CSI_NODE_STATUS = "CSINodeStatus" { 1 storageHealth: Keyed(&STORAGE_HEALTH, "name") }
    CSI_NODE = "CSINode" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&CSI_NODE_SPEC), 3 status: Message(&CSI_NODE_STATUS),
    }
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity" {
        1 metadata: Message(&OBJECT_META), 2 nodeTopology? Message(&LABEL_SELECTOR), 3 storageClassName! String,
        4 capacity? Quantity, 5 maximumVolumeSize? Quantity,
    }
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass" {
        1 metadata: Message(&OBJECT_META), 2 driverName! String, 3 parameters: StringMap,
    }
}
