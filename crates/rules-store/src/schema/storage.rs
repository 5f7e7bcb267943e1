//! The storage group.

use super::Shape::{Boolean, Integer, Keyed, Object, Objects, Quantity, Text, TextMap, Texts, Time};
use super::meta::{LABEL_SELECTOR, OBJECT_META, TOPOLOGY_SELECTOR_TERM};
use super::types;
use super::volume::PERSISTENT_VOLUME_SPEC;

types! {
    STORAGE_CLASS = "StorageClass" {
        apiVersion: Text, kind: Text, allowVolumeExpansion: Boolean,
        allowedTopologies: Objects(&TOPOLOGY_SELECTOR_TERM), metadata: Object(&OBJECT_META),
        mountOptions: Texts, parameters: TextMap, provisioner: Text, reclaimPolicy: Text,
        volumeBindingMode: Text,
    }
    TOKEN_REQUEST = "TokenRequest" {
        audience: Text, expirationSeconds: Integer,
    }
    CSI_DRIVER_SPEC = "CSIDriverSpec" {
        attachRequired: Boolean, fsGroupPolicy: Text, nodeAllocatableUpdatePeriodSeconds: Integer,
        podInfoOnMount: Boolean, preventPodSchedulingIfMissing: Boolean, requiresRepublish: Boolean,
        seLinuxMount: Boolean, serviceAccountTokenInSecrets: Boolean, storageCapacity: Boolean,
        tokenRequests: Objects(&TOKEN_REQUEST), volumeLifecycleModes: Texts,
    }
    CSI_DRIVER = "CSIDriver" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&CSI_DRIVER_SPEC),
    }
    VOLUME_NODE_RESOURCES = "VolumeNodeResources" {
        count: Integer,
    }
    CSI_NODE_DRIVER = "CSINodeDriver" {
        allocatable: Object(&VOLUME_NODE_RESOURCES), name: Text, nodeID: Text, topologyKeys: Texts,
    }
    CSI_NODE_SPEC = "CSINodeSpec" {
        drivers: Keyed(&CSI_NODE_DRIVER, "name"),
    }
    STORAGE_HEALTH_CONDITION = "StorageHealthCondition" {
        accessMode: Text, lastTransitionTime: Time, message: Text, reason: Text, status: Text, volumeMode: Text,
    }
    STORAGE_HEALTH = "StorageHealth" {
        healthConditions: Objects(&STORAGE_HEALTH_CONDITION), name: Text,
    }
    CSI_NODE_STATUS = "CSINodeStatus" {
        storageHealth: Objects(&STORAGE_HEALTH),
    }
    CSI_NODE = "CSINode" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&CSI_NODE_SPEC),
        status: Object(&CSI_NODE_STATUS),
    }
    VOLUME_ATTACHMENT_SOURCE = "VolumeAttachmentSource" {
        inlineVolumeSpec: Object(&PERSISTENT_VOLUME_SPEC), persistentVolumeName: Text,
    }
    VOLUME_ATTACHMENT_SPEC = "VolumeAttachmentSpec" {
        attacher: Text, nodeName: Text, source: Object(&VOLUME_ATTACHMENT_SOURCE),
    }
    VOLUME_ERROR = "VolumeError" {
        errorCode: Integer, message: Text, time: Time,
    }
    VOLUME_ATTACHMENT_STATUS = "VolumeAttachmentStatus" {
        attachError: Object(&VOLUME_ERROR), attached: Boolean, attachmentMetadata: TextMap,
        detachError: Object(&VOLUME_ERROR),
    }
    VOLUME_ATTACHMENT = "VolumeAttachment" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&VOLUME_ATTACHMENT_SPEC),
        status: Object(&VOLUME_ATTACHMENT_STATUS),
    }
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity" {
        apiVersion: Text, kind: Text, capacity: Quantity, maximumVolumeSize: Quantity,
        metadata: Object(&OBJECT_META), nodeTopology: Object(&LABEL_SELECTOR), storageClassName: Text,
    }
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass" {
        apiVersion: Text, kind: Text, driverName: Text, metadata: Object(&OBJECT_META), parameters: TextMap,
    }
}
