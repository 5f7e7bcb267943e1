//! The kinds that volumes are made of, as far as they are read or written here. The numbers are Kubernetes' wire format
//! and never change; whether a field is a pointer, and so may be set to nothing, is in the types it is made from.

use api::Kind;

use crate::Form::{Inlined, MicroTime, Part, Parts, Quantities, Set, Small, Text, TextMap, Texts, Time, Truth};
use crate::Message;
use crate::form::messages;
use crate::meta::{META, SELECTOR};

/// The message of a kind, of those that are read and written in this form.
pub fn message(kind: Kind) -> Option<&'static Message> {
    match kind {
        Kind::PersistentVolume => Some(&VOLUME),
        Kind::PersistentVolumeClaim => Some(&CLAIM),
        Kind::VolumeAttachment => Some(&ATTACHMENT),
        Kind::Lease => Some(&LEASE),
        Kind::StorageClass
        | Kind::CSIDriver
        | Kind::CSINode
        | Kind::Node
        | Kind::Pod
        | Kind::Event
        | Kind::Namespace
        | Kind::Secret
        | Kind::VolumeAttributesClass
        | Kind::CSIStorageCapacity
        | Kind::VolumeSnapshot
        | Kind::VolumeSnapshotContent
        | Kind::ReferenceGrant => None,
    }
}

messages! {
    SECRET_REFERENCE = "SecretReference" { 1 "name" Text, 2 "namespace" Text }
    AWS = "AWSElasticBlockStoreVolumeSource" { 1 "volumeID" Text, 2 "fsType" Text, 3 "partition" Small, 4 "readOnly" Truth }
    GCE = "GCEPersistentDiskVolumeSource" { 1 "pdName" Text, 2 "fsType" Text, 3 "partition" Small, 4 "readOnly" Truth }
    AZURE_DISK = "AzureDiskVolumeSource" {
        1 "diskName" Text, 2 "diskURI" Text, 3 "cachingMode" Set(&Text), 4 "fsType" Set(&Text), 5 "readOnly" Set(&Truth),
        6 "kind" Set(&Text),
    }
    AZURE_FILE = "AzureFilePersistentVolumeSource" {
        1 "secretName" Text, 2 "shareName" Text, 3 "readOnly" Truth, 4 "secretNamespace" Set(&Text),
    }
    CINDER = "CinderPersistentVolumeSource" {
        1 "volumeID" Text, 2 "fsType" Text, 3 "readOnly" Truth, 4 "secretRef" Part(&SECRET_REFERENCE),
    }
    VSPHERE = "VsphereVirtualDiskVolumeSource" {
        1 "volumePath" Text, 2 "fsType" Text, 3 "storagePolicyName" Text, 4 "storagePolicyID" Text,
    }
    PORTWORX = "PortworxVolumeSource" { 1 "volumeID" Text, 2 "fsType" Text, 3 "readOnly" Truth }
    RBD = "RBDPersistentVolumeSource" {
        1 "monitors" Texts, 2 "image" Text, 3 "fsType" Text, 4 "pool" Text, 5 "user" Text, 6 "keyring" Text,
        7 "secretRef" Part(&SECRET_REFERENCE), 8 "readOnly" Truth,
    }
    CSI = "CSIPersistentVolumeSource" {
        1 "driver" Text, 2 "volumeHandle" Text, 3 "readOnly" Truth, 4 "fsType" Text, 5 "volumeAttributes" TextMap,
        6 "controllerPublishSecretRef" Part(&SECRET_REFERENCE), 7 "nodeStageSecretRef" Part(&SECRET_REFERENCE),
        8 "nodePublishSecretRef" Part(&SECRET_REFERENCE), 9 "controllerExpandSecretRef" Part(&SECRET_REFERENCE),
        10 "nodeExpandSecretRef" Part(&SECRET_REFERENCE),
    }
    SOURCE = "PersistentVolumeSource" {
        1 "gcePersistentDisk" Part(&GCE), 2 "awsElasticBlockStore" Part(&AWS), 6 "rbd" Part(&RBD), 8 "cinder" Part(&CINDER),
        13 "azureFile" Part(&AZURE_FILE), 14 "vsphereVolume" Part(&VSPHERE), 16 "azureDisk" Part(&AZURE_DISK),
        18 "portworxVolume" Part(&PORTWORX), 22 "csi" Part(&CSI),
    }
    CLAIM_REFERENCE = "ObjectReference" {
        1 "kind" Text, 2 "namespace" Text, 3 "name" Text, 4 "uid" Text, 5 "apiVersion" Text, 6 "resourceVersion" Text,
        7 "fieldPath" Text,
    }
    NODE_REQUIREMENT = "NodeSelectorRequirement" { 1 "key" Text, 2 "operator" Text, 3 "values" Texts }
    NODE_TERM = "NodeSelectorTerm" {
        1 "matchExpressions" Parts(&NODE_REQUIREMENT), 2 "matchFields" Parts(&NODE_REQUIREMENT),
    }
    NODE_SELECTOR = "NodeSelector" { 1 "nodeSelectorTerms" Parts(&NODE_TERM) }
    AFFINITY = "VolumeNodeAffinity" { 1 "required" Part(&NODE_SELECTOR) }
    VOLUME_SPEC = "PersistentVolumeSpec" {
        1 "capacity" Quantities, 2 "persistentVolumeSource" Inlined(&SOURCE), 3 "accessModes" Texts, 4 "claimRef" Part(&CLAIM_REFERENCE),
        5 "persistentVolumeReclaimPolicy" Text, 6 "storageClassName" Text, 7 "mountOptions" Texts,
        8 "volumeMode" Set(&Text), 9 "nodeAffinity" Part(&AFFINITY), 10 "volumeAttributesClassName" Set(&Text),
    }
    VOLUME_STATUS = "PersistentVolumeStatus" {
        1 "phase" Text, 2 "message" Text, 3 "reason" Text, 4 "lastPhaseTransitionTime" Time,
    }
    VOLUME = "PersistentVolume" { 1 "metadata" Part(&META), 2 "spec" Part(&VOLUME_SPEC), 3 "status" Part(&VOLUME_STATUS) }
    RESOURCES = "VolumeResourceRequirements" { 1 "limits" Quantities, 2 "requests" Quantities }
    LOCAL_SOURCE = "TypedLocalObjectReference" { 1 "apiGroup" Set(&Text), 2 "kind" Text, 3 "name" Text }
    TYPED_SOURCE = "TypedObjectReference" { 1 "apiGroup" Set(&Text), 2 "kind" Text, 3 "name" Text, 4 "namespace" Set(&Text) }
    CLAIM_SPEC = "PersistentVolumeClaimSpec" {
        1 "accessModes" Texts, 2 "resources" Part(&RESOURCES), 3 "volumeName" Text, 4 "selector" Part(&SELECTOR),
        5 "storageClassName" Set(&Text), 6 "volumeMode" Set(&Text), 7 "dataSource" Part(&LOCAL_SOURCE),
        8 "dataSourceRef" Part(&TYPED_SOURCE), 9 "volumeAttributesClassName" Set(&Text),
    }
    CONDITION = "PersistentVolumeClaimCondition" {
        1 "type" Text, 2 "status" Text, 3 "lastProbeTime" Time, 4 "lastTransitionTime" Time, 5 "reason" Text,
        6 "message" Text,
    }
    MODIFY_STATUS = "ModifyVolumeStatus" { 1 "targetVolumeAttributesClassName" Text, 2 "status" Text }
    CLAIM_STATUS = "PersistentVolumeClaimStatus" {
        1 "phase" Text, 2 "accessModes" Texts, 3 "capacity" Quantities, 4 "conditions" Parts(&CONDITION),
        5 "allocatedResources" Quantities, 7 "allocatedResourceStatuses" TextMap,
        8 "currentVolumeAttributesClassName" Set(&Text), 9 "modifyVolumeStatus" Part(&MODIFY_STATUS),
    }
    CLAIM = "PersistentVolumeClaim" { 1 "metadata" Part(&META), 2 "spec" Part(&CLAIM_SPEC), 3 "status" Part(&CLAIM_STATUS) }
    VOLUME_ERROR = "VolumeError" { 1 "time" Time, 2 "message" Text, 3 "errorCode" Set(&Small) }
    ATTACHMENT_SOURCE = "VolumeAttachmentSource" {
        1 "persistentVolumeName" Set(&Text), 2 "inlineVolumeSpec" Part(&VOLUME_SPEC),
    }
    ATTACHMENT_SPEC = "VolumeAttachmentSpec" { 1 "attacher" Text, 2 "source" Part(&ATTACHMENT_SOURCE), 3 "nodeName" Text }
    ATTACHMENT_STATUS = "VolumeAttachmentStatus" {
        1 "attached" Truth, 2 "attachmentMetadata" TextMap, 3 "attachError" Part(&VOLUME_ERROR),
        4 "detachError" Part(&VOLUME_ERROR),
    }
    ATTACHMENT = "VolumeAttachment" {
        1 "metadata" Part(&META), 2 "spec" Part(&ATTACHMENT_SPEC), 3 "status" Part(&ATTACHMENT_STATUS),
    }
    LEASE_SPEC = "LeaseSpec" {
        1 "holderIdentity" Set(&Text), 2 "leaseDurationSeconds" Set(&Small), 3 "acquireTime" MicroTime,
        4 "renewTime" MicroTime, 5 "leaseTransitions" Set(&Small), 6 "strategy" Set(&Text), 7 "preferredHolder" Set(&Text),
    }
    LEASE = "Lease" { 1 "metadata" Part(&META), 2 "spec" Part(&LEASE_SPEC) }
}
