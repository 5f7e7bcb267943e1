//! Claims and volumes. In-tree sources are left open: their fields belong to the translation rules.

use super::Shape::{Boolean, Keyed, Object, Objects, Opaque, QuantityMap, Text, TextMap, Texts, Time};
use super::meta::{LABEL_SELECTOR, NODE_SELECTOR, OBJECT_META, OBJECT_REFERENCE, SECRET_REFERENCE};
use super::types;

types! {
    TYPED_LOCAL_OBJECT_REFERENCE = "TypedLocalObjectReference" {
        apiGroup: Text, kind: Text, name: Text,
    }
    TYPED_OBJECT_REFERENCE = "TypedObjectReference" {
        apiGroup: Text, kind: Text, name: Text, namespace: Text,
    }
    VOLUME_RESOURCE_REQUIREMENTS = "VolumeResourceRequirements" {
        limits: QuantityMap, requests: QuantityMap,
    }
    PERSISTENT_VOLUME_CLAIM_SPEC = "PersistentVolumeClaimSpec" {
        accessModes: Texts, dataSource: Object(&TYPED_LOCAL_OBJECT_REFERENCE),
        dataSourceRef: Object(&TYPED_OBJECT_REFERENCE), resources: Object(&VOLUME_RESOURCE_REQUIREMENTS),
        selector: Object(&LABEL_SELECTOR), storageClassName: Text, volumeAttributesClassName: Text,
        volumeMode: Text, volumeName: Text,
    }
    PERSISTENT_VOLUME_CLAIM_CONDITION = "PersistentVolumeClaimCondition" {
        lastProbeTime: Time, lastTransitionTime: Time, message: Text, reason: Text, status: Text, type: Text,
    }
    VOLUME_HEALTH_CONDITION = "VolumeHealthCondition" {
        message: Text, reason: Text, status: Text,
    }
    VOLUME_HEALTH_STATUS = "VolumeHealthStatus" {
        healthConditions: Objects(&VOLUME_HEALTH_CONDITION), lastTransitionTime: Time,
    }
    MODIFY_VOLUME_STATUS = "ModifyVolumeStatus" {
        status: Text, targetVolumeAttributesClassName: Text,
    }
    PERSISTENT_VOLUME_CLAIM_STATUS = "PersistentVolumeClaimStatus" {
        accessModes: Texts, allocatedResourceStatuses: TextMap, allocatedResources: QuantityMap,
        capacity: QuantityMap, conditions: Keyed(&PERSISTENT_VOLUME_CLAIM_CONDITION, "type"),
        currentVolumeAttributesClassName: Text, healthStatus: Object(&VOLUME_HEALTH_STATUS),
        modifyVolumeStatus: Object(&MODIFY_VOLUME_STATUS), phase: Text,
    }
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META),
        spec: Object(&PERSISTENT_VOLUME_CLAIM_SPEC), status: Object(&PERSISTENT_VOLUME_CLAIM_STATUS),
    }
    CSI_PERSISTENT_VOLUME_SOURCE = "CSIPersistentVolumeSource" {
        controllerExpandSecretRef: Object(&SECRET_REFERENCE),
        controllerPublishSecretRef: Object(&SECRET_REFERENCE), driver: Text, fsType: Text,
        nodeExpandSecretRef: Object(&SECRET_REFERENCE), nodePublishSecretRef: Object(&SECRET_REFERENCE),
        nodeStageSecretRef: Object(&SECRET_REFERENCE), readOnly: Boolean, volumeAttributes: TextMap,
        volumeHandle: Text,
    }
    HOST_PATH_VOLUME_SOURCE = "HostPathVolumeSource" {
        path: Text, type: Text,
    }
    LOCAL_VOLUME_SOURCE = "LocalVolumeSource" {
        fsType: Text, path: Text,
    }
    NFS_VOLUME_SOURCE = "NFSVolumeSource" {
        path: Text, readOnly: Boolean, server: Text,
    }
    VOLUME_NODE_AFFINITY = "VolumeNodeAffinity" {
        required: Object(&NODE_SELECTOR),
    }
    PERSISTENT_VOLUME_SPEC = "PersistentVolumeSpec" {
        accessModes: Texts, awsElasticBlockStore: Opaque, azureDisk: Opaque, azureFile: Opaque,
        capacity: QuantityMap, cephfs: Opaque, cinder: Opaque, claimRef: Object(&OBJECT_REFERENCE),
        csi: Object(&CSI_PERSISTENT_VOLUME_SOURCE), fc: Opaque, flexVolume: Opaque, flocker: Opaque,
        gcePersistentDisk: Opaque, glusterfs: Opaque, hostPath: Object(&HOST_PATH_VOLUME_SOURCE), iscsi: Opaque,
        local: Object(&LOCAL_VOLUME_SOURCE), mountOptions: Texts, nfs: Object(&NFS_VOLUME_SOURCE),
        nodeAffinity: Object(&VOLUME_NODE_AFFINITY), persistentVolumeReclaimPolicy: Text,
        photonPersistentDisk: Opaque, portworxVolume: Opaque, quobyte: Opaque, rbd: Opaque, scaleIO: Opaque,
        storageClassName: Text, storageos: Opaque, volumeAttributesClassName: Text, volumeMode: Text,
        vsphereVolume: Opaque,
    }
    PERSISTENT_VOLUME_STATUS = "PersistentVolumeStatus" {
        lastPhaseTransitionTime: Time, message: Text, phase: Text, reason: Text,
    }
    PERSISTENT_VOLUME = "PersistentVolume" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&PERSISTENT_VOLUME_SPEC),
        status: Object(&PERSISTENT_VOLUME_STATUS),
    }
}
