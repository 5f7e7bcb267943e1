//! The volumes of a pod. In-tree sources are left open.

use super::Shape::{Boolean, Integer, Object, Objects, Opaque, Quantity, Text, TextMap};
use super::meta::{LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, OBJECT_META};
use super::types;
use super::volume::{HOST_PATH_VOLUME_SOURCE, NFS_VOLUME_SOURCE, PERSISTENT_VOLUME_CLAIM_SPEC};

types! {
    KEY_TO_PATH = "KeyToPath" {
        key: Text, mode: Integer, path: Text, user: Integer,
    }
    CONFIG_MAP_VOLUME_SOURCE = "ConfigMapVolumeSource" {
        defaultMode: Integer, defaultUser: Integer, items: Objects(&KEY_TO_PATH), name: Text, optional: Boolean,
    }
    CSI_VOLUME_SOURCE = "CSIVolumeSource" {
        driver: Text, fsType: Text, nodePublishSecretRef: Object(&LOCAL_OBJECT_REFERENCE), readOnly: Boolean,
        volumeAttributes: TextMap,
    }
    OBJECT_FIELD_SELECTOR = "ObjectFieldSelector" {
        apiVersion: Text, fieldPath: Text,
    }
    RESOURCE_FIELD_SELECTOR = "ResourceFieldSelector" {
        containerName: Text, divisor: Quantity, resource: Text,
    }
    DOWNWARD_API_VOLUME_FILE = "DownwardAPIVolumeFile" {
        fieldRef: Object(&OBJECT_FIELD_SELECTOR), mode: Integer, path: Text,
        resourceFieldRef: Object(&RESOURCE_FIELD_SELECTOR), user: Integer,
    }
    DOWNWARD_API_VOLUME_SOURCE = "DownwardAPIVolumeSource" {
        defaultMode: Integer, defaultUser: Integer, items: Objects(&DOWNWARD_API_VOLUME_FILE),
    }
    EMPTY_DIR_VOLUME_SOURCE = "EmptyDirVolumeSource" {
        medium: Text, mode: Integer, sizeLimit: Quantity,
    }
    PERSISTENT_VOLUME_CLAIM_TEMPLATE = "PersistentVolumeClaimTemplate" {
        metadata: Object(&OBJECT_META), spec: Object(&PERSISTENT_VOLUME_CLAIM_SPEC),
    }
    EPHEMERAL_VOLUME_SOURCE = "EphemeralVolumeSource" {
        volumeClaimTemplate: Object(&PERSISTENT_VOLUME_CLAIM_TEMPLATE),
    }
    IMAGE_VOLUME_SOURCE = "ImageVolumeSource" {
        pullPolicy: Text, reference: Text,
    }
    PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE = "PersistentVolumeClaimVolumeSource" {
        claimName: Text, readOnly: Boolean,
    }
    CLUSTER_TRUST_BUNDLE_PROJECTION = "ClusterTrustBundleProjection" {
        labelSelector: Object(&LABEL_SELECTOR), name: Text, optional: Boolean, path: Text, signerName: Text,
        user: Integer,
    }
    CONFIG_MAP_PROJECTION = "ConfigMapProjection" {
        items: Objects(&KEY_TO_PATH), name: Text, optional: Boolean,
    }
    DOWNWARD_API_PROJECTION = "DownwardAPIProjection" {
        items: Objects(&DOWNWARD_API_VOLUME_FILE),
    }
    POD_CERTIFICATE_PROJECTION = "PodCertificateProjection" {
        certificateChainPath: Text, credentialBundlePath: Text, keyPath: Text, keyType: Text,
        maxExpirationSeconds: Integer, signerName: Text, user: Integer, userAnnotations: TextMap,
    }
    SECRET_PROJECTION = "SecretProjection" {
        items: Objects(&KEY_TO_PATH), name: Text, optional: Boolean,
    }
    SERVICE_ACCOUNT_TOKEN_PROJECTION = "ServiceAccountTokenProjection" {
        audience: Text, expirationSeconds: Integer, path: Text, user: Integer,
    }
    VOLUME_PROJECTION = "VolumeProjection" {
        clusterTrustBundle: Object(&CLUSTER_TRUST_BUNDLE_PROJECTION), configMap: Object(&CONFIG_MAP_PROJECTION),
        downwardAPI: Object(&DOWNWARD_API_PROJECTION), podCertificate: Object(&POD_CERTIFICATE_PROJECTION),
        secret: Object(&SECRET_PROJECTION), serviceAccountToken: Object(&SERVICE_ACCOUNT_TOKEN_PROJECTION),
    }
    PROJECTED_VOLUME_SOURCE = "ProjectedVolumeSource" {
        defaultMode: Integer, defaultUser: Integer, sources: Objects(&VOLUME_PROJECTION),
    }
    SECRET_VOLUME_SOURCE = "SecretVolumeSource" {
        defaultMode: Integer, defaultUser: Integer, items: Objects(&KEY_TO_PATH), optional: Boolean,
        secretName: Text,
    }
    VOLUME = "Volume" {
        awsElasticBlockStore: Opaque, azureDisk: Opaque, azureFile: Opaque, cephfs: Opaque, cinder: Opaque,
        configMap: Object(&CONFIG_MAP_VOLUME_SOURCE), csi: Object(&CSI_VOLUME_SOURCE),
        downwardAPI: Object(&DOWNWARD_API_VOLUME_SOURCE), emptyDir: Object(&EMPTY_DIR_VOLUME_SOURCE),
        ephemeral: Object(&EPHEMERAL_VOLUME_SOURCE), fc: Opaque, flexVolume: Opaque, flocker: Opaque,
        gcePersistentDisk: Opaque, gitRepo: Opaque, glusterfs: Opaque,
        hostPath: Object(&HOST_PATH_VOLUME_SOURCE), image: Object(&IMAGE_VOLUME_SOURCE), iscsi: Opaque,
        name: Text, nfs: Object(&NFS_VOLUME_SOURCE),
        persistentVolumeClaim: Object(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE), photonPersistentDisk: Opaque,
        portworxVolume: Opaque, projected: Object(&PROJECTED_VOLUME_SOURCE), quobyte: Opaque, rbd: Opaque,
        scaleIO: Opaque, secret: Object(&SECRET_VOLUME_SOURCE), storageos: Opaque, vsphereVolume: Opaque,
    }
}
