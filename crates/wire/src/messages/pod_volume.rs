//! The volumes of a pod.

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::volume::{
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE, AZURE_DISK_VOLUME_SOURCE, FC_VOLUME_SOURCE, FLOCKER_VOLUME_SOURCE,
    GCE_PERSISTENT_DISK_VOLUME_SOURCE, HOST_PATH_VOLUME_SOURCE, NFS_VOLUME_SOURCE, PERSISTENT_VOLUME_CLAIM_SPEC,
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE, PORTWORX_VOLUME_SOURCE, QUOBYTE_VOLUME_SOURCE,
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
};
use crate::Type::{Bool, Inline, Int32, Int64, Message, Messages, Quantity, String, StringMap, Strings};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    EMPTY_DIR_VOLUME_SOURCE = "EmptyDirVolumeSource" { 1 medium: String, 2 sizeLimit? Quantity, 3 mode? Int32 }
    GIT_REPO_VOLUME_SOURCE = "GitRepoVolumeSource" { 1 repository! String, 2 revision: String, 3 directory: String }
    KEY_TO_PATH = "KeyToPath" { 1 key! String, 2 path! String, 3 mode? Int32, 4 user? Int64 }
    SECRET_VOLUME_SOURCE = "SecretVolumeSource" {
        1 secretName: String, 2 items: Messages(&KEY_TO_PATH), 3 defaultMode? Int32, 4 optional? Bool,
        5 defaultUser? Int64,
    }
    LOCAL_OBJECT_REFERENCE = "LocalObjectReference" { 1 name: String }
    ISCSI_VOLUME_SOURCE = "ISCSIVolumeSource" {
        1 targetPortal! String, 2 iqn! String, 3 lun! Int32, 4 iscsiInterface: String, 5 fsType: String,
        6 readOnly: Bool, 7 portals: Strings, 8 chapAuthDiscovery: Bool, 10 secretRef? Message(&LOCAL_OBJECT_REFERENCE),
        11 chapAuthSession: Bool, 12 initiatorName? String,
    }
    GLUSTERFS_VOLUME_SOURCE = "GlusterfsVolumeSource" { 1 endpoints! String, 2 path! String, 3 readOnly: Bool }
    PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE = "PersistentVolumeClaimVolumeSource" {
        1 claimName! String, 2 readOnly: Bool,
    }
    RBD_VOLUME_SOURCE = "RBDVolumeSource" {
        1 monitors: Strings, 2 image! String, 3 fsType: String, 4 pool: String, 5 user: String, 6 keyring: String,
        7 secretRef? Message(&LOCAL_OBJECT_REFERENCE), 8 readOnly: Bool,
    }
    FLEX_VOLUME_SOURCE = "FlexVolumeSource" {
        1 driver! String, 2 fsType: String, 3 secretRef? Message(&LOCAL_OBJECT_REFERENCE), 4 readOnly: Bool,
        5 options: StringMap,
    }
    CINDER_VOLUME_SOURCE = "CinderVolumeSource" {
        1 volumeID! String, 2 fsType: String, 3 readOnly: Bool, 4 secretRef? Message(&LOCAL_OBJECT_REFERENCE),
    }
    CEPH_FS_VOLUME_SOURCE = "CephFSVolumeSource" {
        1 monitors: Strings, 2 path: String, 3 user: String, 4 secretFile: String,
        5 secretRef? Message(&LOCAL_OBJECT_REFERENCE), 6 readOnly: Bool,
    }
    OBJECT_FIELD_SELECTOR = "ObjectFieldSelector" { 1 apiVersion: String, 2 fieldPath! String }
    RESOURCE_FIELD_SELECTOR = "ResourceFieldSelector" {
        1 containerName: String, 2 resource! String, 3 divisor: Quantity,
    }
    DOWNWARD_API_VOLUME_FILE = "DownwardAPIVolumeFile" {
        1 path! String, 2 fieldRef? Message(&OBJECT_FIELD_SELECTOR),
        3 resourceFieldRef? Message(&RESOURCE_FIELD_SELECTOR), 4 mode? Int32, 5 user? Int64,
    }
    DOWNWARD_API_VOLUME_SOURCE = "DownwardAPIVolumeSource" {
        1 items: Messages(&DOWNWARD_API_VOLUME_FILE), 2 defaultMode? Int32, 3 defaultUser? Int64,
    }
    AZURE_FILE_VOLUME_SOURCE = "AzureFileVolumeSource" { 1 secretName! String, 2 shareName! String, 3 readOnly: Bool }
    CONFIG_MAP_VOLUME_SOURCE = "ConfigMapVolumeSource" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 items: Messages(&KEY_TO_PATH), 3 defaultMode? Int32,
        4 optional? Bool, 5 defaultUser? Int64,
    }
    SECRET_PROJECTION = "SecretProjection" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 items: Messages(&KEY_TO_PATH), 4 optional? Bool,
    }
    DOWNWARD_API_PROJECTION = "DownwardAPIProjection" { 1 items: Messages(&DOWNWARD_API_VOLUME_FILE) }
    CONFIG_MAP_PROJECTION = "ConfigMapProjection" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 items: Messages(&KEY_TO_PATH), 4 optional? Bool,
    }
    SERVICE_ACCOUNT_TOKEN_PROJECTION = "ServiceAccountTokenProjection" {
        1 audience: String, 2 expirationSeconds? Int64, 3 path! String, 4 user? Int64,
    }
    CLUSTER_TRUST_BUNDLE_PROJECTION = "ClusterTrustBundleProjection" {
        1 name? String, 2 signerName? String, 3 labelSelector? Message(&LABEL_SELECTOR), 4 path! String,
        5 optional? Bool, 6 user? Int64,
    }
    POD_CERTIFICATE_PROJECTION = "PodCertificateProjection" {
        1 signerName: String, 2 keyType: String, 3 maxExpirationSeconds? Int32, 4 credentialBundlePath: String,
        5 keyPath: String, 6 certificateChainPath: String, 7 userAnnotations: StringMap, 8 user? Int64,
    }
    VOLUME_PROJECTION = "VolumeProjection" {
        1 secret? Message(&SECRET_PROJECTION), 2 downwardAPI? Message(&DOWNWARD_API_PROJECTION),
        3 configMap? Message(&CONFIG_MAP_PROJECTION), 4 serviceAccountToken? Message(&SERVICE_ACCOUNT_TOKEN_PROJECTION),
        5 clusterTrustBundle? Message(&CLUSTER_TRUST_BUNDLE_PROJECTION),
        6 podCertificate? Message(&POD_CERTIFICATE_PROJECTION),
    }
    PROJECTED_VOLUME_SOURCE = "ProjectedVolumeSource" {
        1 sources: Messages(&VOLUME_PROJECTION), 2 defaultMode? Int32, 3 defaultUser? Int64,
    }
    SCALE_IO_VOLUME_SOURCE = "ScaleIOVolumeSource" {
        1 gateway! String, 2 system! String, 3 secretRef? Message(&LOCAL_OBJECT_REFERENCE), 4 sslEnabled: Bool,
        5 protectionDomain: String, 6 storagePool: String, 7 storageMode: String, 8 volumeName: String,
        9 fsType: String, 10 readOnly: Bool,
    }
    STORAGE_OS_VOLUME_SOURCE = "StorageOSVolumeSource" {
        1 volumeName: String, 2 volumeNamespace: String, 3 fsType: String, 4 readOnly: Bool,
        5 secretRef? Message(&LOCAL_OBJECT_REFERENCE),
    }
    CSI_VOLUME_SOURCE = "CSIVolumeSource" {
        1 driver! String, 2 readOnly? Bool, 3 fsType? String, 4 volumeAttributes: StringMap,
        5 nodePublishSecretRef? Message(&LOCAL_OBJECT_REFERENCE),
    }
    PERSISTENT_VOLUME_CLAIM_TEMPLATE = "PersistentVolumeClaimTemplate" {
        1 metadata: Message(&OBJECT_META), 2 spec: Message(&PERSISTENT_VOLUME_CLAIM_SPEC),
    }
    EPHEMERAL_VOLUME_SOURCE = "EphemeralVolumeSource" {
        1 volumeClaimTemplate? Message(&PERSISTENT_VOLUME_CLAIM_TEMPLATE),
    }
    IMAGE_VOLUME_SOURCE = "ImageVolumeSource" { 1 reference: String, 2 pullPolicy: String }
    VOLUME_SOURCE = "VolumeSource" {
        1 hostPath? Message(&HOST_PATH_VOLUME_SOURCE), 2 emptyDir? Message(&EMPTY_DIR_VOLUME_SOURCE),
        3 gcePersistentDisk? Message(&GCE_PERSISTENT_DISK_VOLUME_SOURCE),
        4 awsElasticBlockStore? Message(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE),
        5 gitRepo? Message(&GIT_REPO_VOLUME_SOURCE), 6 secret? Message(&SECRET_VOLUME_SOURCE),
        7 nfs? Message(&NFS_VOLUME_SOURCE), 8 iscsi? Message(&ISCSI_VOLUME_SOURCE),
        9 glusterfs? Message(&GLUSTERFS_VOLUME_SOURCE),
        10 persistentVolumeClaim? Message(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE), 11 rbd? Message(&RBD_VOLUME_SOURCE),
        12 flexVolume? Message(&FLEX_VOLUME_SOURCE), 13 cinder? Message(&CINDER_VOLUME_SOURCE),
        14 cephfs? Message(&CEPH_FS_VOLUME_SOURCE), 15 flocker? Message(&FLOCKER_VOLUME_SOURCE),
        16 downwardAPI? Message(&DOWNWARD_API_VOLUME_SOURCE), 17 fc? Message(&FC_VOLUME_SOURCE),
        18 azureFile? Message(&AZURE_FILE_VOLUME_SOURCE), 19 configMap? Message(&CONFIG_MAP_VOLUME_SOURCE),
        20 vsphereVolume? Message(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE), 21 quobyte? Message(&QUOBYTE_VOLUME_SOURCE),
        22 azureDisk? Message(&AZURE_DISK_VOLUME_SOURCE),
        23 photonPersistentDisk? Message(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE),
        24 portworxVolume? Message(&PORTWORX_VOLUME_SOURCE), 25 scaleIO? Message(&SCALE_IO_VOLUME_SOURCE),
        26 projected? Message(&PROJECTED_VOLUME_SOURCE), 27 storageos? Message(&STORAGE_OS_VOLUME_SOURCE),
        28 csi? Message(&CSI_VOLUME_SOURCE), 29 ephemeral? Message(&EPHEMERAL_VOLUME_SOURCE),
        30 image? Message(&IMAGE_VOLUME_SOURCE),
    }
    VOLUME = "Volume" { 1 name! String, 2 volumeSource: Inline(&VOLUME_SOURCE) }
}
