//! PersistentVolumes and PersistentVolumeClaims.

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use crate::Type::{Bool, Inline, Int32, Keyed, Message, Messages, QuantityMap, String, StringMap, Strings, Time};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    GCE_PERSISTENT_DISK_VOLUME_SOURCE = "GCEPersistentDiskVolumeSource" {
        1 pdName! String, 2 fsType: String, 3 partition: Int32, 4 readOnly: Bool,
    }
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE = "AWSElasticBlockStoreVolumeSource" {
        1 volumeID! String, 2 fsType: String, 3 partition: Int32, 4 readOnly: Bool,
    }
    HOST_PATH_VOLUME_SOURCE = "HostPathVolumeSource" { 1 path! String, 2 type? String }
    GLUSTERFS_PERSISTENT_VOLUME_SOURCE = "GlusterfsPersistentVolumeSource" {
        1 endpoints! String, 2 path! String, 3 readOnly: Bool, 4 endpointsNamespace? String,
    }
    NFS_VOLUME_SOURCE = "NFSVolumeSource" { 1 server! String, 2 path! String, 3 readOnly: Bool }
    SECRET_REFERENCE = "SecretReference" { 1 name: String, 2 namespace: String }
    RBD_PERSISTENT_VOLUME_SOURCE = "RBDPersistentVolumeSource" {
        1 monitors: Strings, 2 image! String, 3 fsType: String, 4 pool: String, 5 user: String, 6 keyring: String,
        7 secretRef? Message(&SECRET_REFERENCE), 8 readOnly: Bool,
    }
    ISCSI_PERSISTENT_VOLUME_SOURCE = "ISCSIPersistentVolumeSource" {
        1 targetPortal! String, 2 iqn! String, 3 lun! Int32, 4 iscsiInterface: String, 5 fsType: String,
        6 readOnly: Bool, 7 portals: Strings, 8 chapAuthDiscovery: Bool, 10 secretRef? Message(&SECRET_REFERENCE),
        11 chapAuthSession: Bool, 12 initiatorName? String,
    }
    CINDER_PERSISTENT_VOLUME_SOURCE = "CinderPersistentVolumeSource" {
        1 volumeID! String, 2 fsType: String, 3 readOnly: Bool, 4 secretRef? Message(&SECRET_REFERENCE),
    }
    CEPH_FS_PERSISTENT_VOLUME_SOURCE = "CephFSPersistentVolumeSource" {
        1 monitors: Strings, 2 path: String, 3 user: String, 4 secretFile: String,
        5 secretRef? Message(&SECRET_REFERENCE), 6 readOnly: Bool,
    }
    FC_VOLUME_SOURCE = "FCVolumeSource" {
        1 targetWWNs: Strings, 2 lun? Int32, 3 fsType: String, 4 readOnly: Bool, 5 wwids: Strings,
    }
    FLOCKER_VOLUME_SOURCE = "FlockerVolumeSource" { 1 datasetName: String, 2 datasetUUID: String }
    FLEX_PERSISTENT_VOLUME_SOURCE = "FlexPersistentVolumeSource" {
        1 driver! String, 2 fsType: String, 3 secretRef? Message(&SECRET_REFERENCE), 4 readOnly: Bool,
        5 options: StringMap,
    }
    AZURE_FILE_PERSISTENT_VOLUME_SOURCE = "AzureFilePersistentVolumeSource" {
        1 secretName! String, 2 shareName! String, 3 readOnly: Bool, 4 secretNamespace? String,
    }
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE = "VsphereVirtualDiskVolumeSource" {
        1 volumePath! String, 2 fsType: String, 3 storagePolicyName: String, 4 storagePolicyID: String,
    }
    QUOBYTE_VOLUME_SOURCE = "QuobyteVolumeSource" {
        1 registry! String, 2 volume! String, 3 readOnly: Bool, 4 user: String, 5 group: String, 6 tenant: String,
    }
    AZURE_DISK_VOLUME_SOURCE = "AzureDiskVolumeSource" {
        1 diskName! String, 2 diskURI! String, 3 cachingMode? String, 4 fsType? String, 5 readOnly? Bool,
        6 kind? String,
    }
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE = "PhotonPersistentDiskVolumeSource" { 1 pdID! String, 2 fsType: String }
    PORTWORX_VOLUME_SOURCE = "PortworxVolumeSource" { 1 volumeID! String, 2 fsType: String, 3 readOnly: Bool }
    SCALE_IO_PERSISTENT_VOLUME_SOURCE = "ScaleIOPersistentVolumeSource" {
        1 gateway! String, 2 system! String, 3 secretRef? Message(&SECRET_REFERENCE), 4 sslEnabled: Bool,
        5 protectionDomain: String, 6 storagePool: String, 7 storageMode: String, 8 volumeName: String,
        9 fsType: String, 10 readOnly: Bool,
    }
    LOCAL_VOLUME_SOURCE = "LocalVolumeSource" { 1 path! String, 2 fsType? String }
    OBJECT_REFERENCE = "ObjectReference" {
        1 kind: String, 2 namespace: String, 3 name: String, 4 uid: String, 5 apiVersion: String,
        6 resourceVersion: String, 7 fieldPath: String,
    }
    STORAGE_OS_PERSISTENT_VOLUME_SOURCE = "StorageOSPersistentVolumeSource" {
        1 volumeName: String, 2 volumeNamespace: String, 3 fsType: String, 4 readOnly: Bool,
        5 secretRef? Message(&OBJECT_REFERENCE),
    }
    CSI_PERSISTENT_VOLUME_SOURCE = "CSIPersistentVolumeSource" {
        1 driver! String, 2 volumeHandle! String, 3 readOnly: Bool, 4 fsType: String, 5 volumeAttributes: StringMap,
        6 controllerPublishSecretRef? Message(&SECRET_REFERENCE), 7 nodeStageSecretRef? Message(&SECRET_REFERENCE),
        8 nodePublishSecretRef? Message(&SECRET_REFERENCE), 9 controllerExpandSecretRef? Message(&SECRET_REFERENCE),
        10 nodeExpandSecretRef? Message(&SECRET_REFERENCE),
    }
    PERSISTENT_VOLUME_SOURCE = "PersistentVolumeSource" {
        1 gcePersistentDisk? Message(&GCE_PERSISTENT_DISK_VOLUME_SOURCE),
        2 awsElasticBlockStore? Message(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE),
        3 hostPath? Message(&HOST_PATH_VOLUME_SOURCE), 4 glusterfs? Message(&GLUSTERFS_PERSISTENT_VOLUME_SOURCE),
        5 nfs? Message(&NFS_VOLUME_SOURCE), 6 rbd? Message(&RBD_PERSISTENT_VOLUME_SOURCE),
        7 iscsi? Message(&ISCSI_PERSISTENT_VOLUME_SOURCE), 8 cinder? Message(&CINDER_PERSISTENT_VOLUME_SOURCE),
        9 cephfs? Message(&CEPH_FS_PERSISTENT_VOLUME_SOURCE), 10 fc? Message(&FC_VOLUME_SOURCE),
        11 flocker? Message(&FLOCKER_VOLUME_SOURCE), 12 flexVolume? Message(&FLEX_PERSISTENT_VOLUME_SOURCE),
        13 azureFile? Message(&AZURE_FILE_PERSISTENT_VOLUME_SOURCE),
        14 vsphereVolume? Message(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE), 15 quobyte? Message(&QUOBYTE_VOLUME_SOURCE),
        16 azureDisk? Message(&AZURE_DISK_VOLUME_SOURCE),
        17 photonPersistentDisk? Message(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE),
        18 portworxVolume? Message(&PORTWORX_VOLUME_SOURCE), 19 scaleIO? Message(&SCALE_IO_PERSISTENT_VOLUME_SOURCE),
        20 local? Message(&LOCAL_VOLUME_SOURCE), 21 storageos? Message(&STORAGE_OS_PERSISTENT_VOLUME_SOURCE),
        22 csi? Message(&CSI_PERSISTENT_VOLUME_SOURCE),
    }
    NODE_SELECTOR_REQUIREMENT = "NodeSelectorRequirement" { 1 key! String, 2 operator! String, 3 values: Strings }
    NODE_SELECTOR_TERM = "NodeSelectorTerm" {
        1 matchExpressions: Messages(&NODE_SELECTOR_REQUIREMENT), 2 matchFields: Messages(&NODE_SELECTOR_REQUIREMENT),
    }
    NODE_SELECTOR = "NodeSelector" { 1 nodeSelectorTerms: Messages(&NODE_SELECTOR_TERM) }
    VOLUME_NODE_AFFINITY = "VolumeNodeAffinity" { 1 required? Message(&NODE_SELECTOR) }
    PERSISTENT_VOLUME_SPEC = "PersistentVolumeSpec" {
        1 capacity: QuantityMap, 2 persistentVolumeSource: Inline(&PERSISTENT_VOLUME_SOURCE), 3 accessModes: Strings,
        4 claimRef? Message(&OBJECT_REFERENCE), 5 persistentVolumeReclaimPolicy: String, 6 storageClassName: String,
        7 mountOptions: Strings, 8 volumeMode? String, 9 nodeAffinity? Message(&VOLUME_NODE_AFFINITY),
        10 volumeAttributesClassName? String,
    }
    PERSISTENT_VOLUME_STATUS = "PersistentVolumeStatus" {
        1 phase: String, 2 message: String, 3 reason: String, 4 lastPhaseTransitionTime? Time,
    }
    PERSISTENT_VOLUME = "PersistentVolume" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&PERSISTENT_VOLUME_SPEC),
        3 status: Message(&PERSISTENT_VOLUME_STATUS),
    }
    VOLUME_RESOURCE_REQUIREMENTS = "VolumeResourceRequirements" { 1 limits: QuantityMap, 2 requests: QuantityMap }
    TYPED_LOCAL_OBJECT_REFERENCE = "TypedLocalObjectReference" { 1 apiGroup? String, 2 kind! String, 3 name! String }
    TYPED_OBJECT_REFERENCE = "TypedObjectReference" {
        1 apiGroup? String, 2 kind! String, 3 name! String, 4 namespace? String,
    }
    PERSISTENT_VOLUME_CLAIM_SPEC = "PersistentVolumeClaimSpec" {
        1 accessModes: Strings, 2 resources: Message(&VOLUME_RESOURCE_REQUIREMENTS), 3 volumeName: String,
        4 selector? Message(&LABEL_SELECTOR), 5 storageClassName? String, 6 volumeMode? String,
        7 dataSource? Message(&TYPED_LOCAL_OBJECT_REFERENCE), 8 dataSourceRef? Message(&TYPED_OBJECT_REFERENCE),
        9 volumeAttributesClassName? String,
    }
    PERSISTENT_VOLUME_CLAIM_CONDITION = "PersistentVolumeClaimCondition" {
        1 type! String, 2 status! String, 3 lastProbeTime: Time, 4 lastTransitionTime: Time, 5 reason: String,
        6 message: String,
    }
    MODIFY_VOLUME_STATUS = "ModifyVolumeStatus" { 1 targetVolumeAttributesClassName: String, 2 status! String }
    VOLUME_HEALTH_CONDITION = "VolumeHealthCondition" { 1 status! String, 2 reason! String, 3 message: String }
    VOLUME_HEALTH_STATUS = "VolumeHealthStatus" {
        1 healthConditions: Keyed(&VOLUME_HEALTH_CONDITION, "status"), 2 lastTransitionTime: Time,
    }
    PERSISTENT_VOLUME_CLAIM_STATUS = "PersistentVolumeClaimStatus" {
        1 phase: String, 2 accessModes: Strings, 3 capacity: QuantityMap,
        4 conditions: Keyed(&PERSISTENT_VOLUME_CLAIM_CONDITION, "type"), 5 allocatedResources: QuantityMap,
        7 allocatedResourceStatuses: StringMap, 8 currentVolumeAttributesClassName? String,
        9 modifyVolumeStatus? Message(&MODIFY_VOLUME_STATUS), 10 healthStatus? Message(&VOLUME_HEALTH_STATUS),
    }
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&PERSISTENT_VOLUME_CLAIM_SPEC),
        3 status: Message(&PERSISTENT_VOLUME_CLAIM_STATUS),
    }
}
