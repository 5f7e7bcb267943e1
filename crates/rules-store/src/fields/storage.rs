//! The groups `storage.k8s.io` and `snapshot.storage.k8s.io`.

use wire::messages::*;

use super::meta::{META, OBJECT, SELECTOR};
use super::tables;
use super::volume::VOLUME_SPEC;
use crate::kinds::messages::*;

tables! {
    CLASS = STORAGE_CLASS {
        honoured metadata => META;
        honoured provisioner: "The driver that makes the volumes.";
        honoured parameters: "What the driver is told when it makes one.";
        honoured reclaimPolicy: "What becomes of a volume whose claim is gone: Delete or Retain.";
        honoured mountOptions: "Options of the mounts of all volumes of the class.";
        honoured allowVolumeExpansion: "Whether claims of the class may grow.";
        honoured volumeBindingMode: "Whether a volume is made at once or for the first pod that uses the claim.";
        honoured allowedTopologies: "Where volumes may be made." => TOPOLOGY;
    }
    TOPOLOGY = TOPOLOGY_SELECTOR_TERM {
        honoured matchLabelExpressions => TOPOLOGY_LABEL;
    }
    TOPOLOGY_LABEL = TOPOLOGY_SELECTOR_LABEL_REQUIREMENT {
        honoured key, values;
    }
    ATTRIBUTES_CLASS = VOLUME_ATTRIBUTES_CLASS {
        honoured metadata => META;
        honoured driverName: "The driver whose volumes can have this class.";
        honoured parameters: "What the driver is told when it changes a volume.";
    }
    ATTACHMENT = VOLUME_ATTACHMENT {
        honoured metadata => META;
        honoured spec => ATTACHMENT_SPEC;
        honoured status;
    }
    ATTACHMENT_SPEC = VOLUME_ATTACHMENT_SPEC {
        honoured attacher, nodeName;
        honoured source => ATTACHMENT_SOURCE;
    }
    ATTACHMENT_SOURCE = VOLUME_ATTACHMENT_SOURCE {
        honoured persistentVolumeName;
        honoured inlineVolumeSpec => VOLUME_SPEC;
    }
    DRIVER = wire::messages::CSI_DRIVER {
        honoured metadata => META;
        honoured spec => DRIVER_SPEC;
    }
    DRIVER_SPEC = CSI_DRIVER_SPEC {
        honoured attachRequired: "Whether a volume is attached to a node before it is mounted there.";
        honoured podInfoOnMount: "Whether the driver is told for which pod it mounts.";
        honoured volumeLifecycleModes: "How the driver's volumes can be asked for: by claims, or by pods themselves.";
        honoured storageCapacity: "Whether pods go only where CSIStorageCapacity objects say there is room.";
        honoured fsGroupPolicy: "When the files of a volume are given to a pod's fsGroup.";
        honoured tokenRequests: "Tokens of a pod's service account that the driver gets with each volume." => TOKEN;
        honoured requiresRepublish: "Whether a volume is published again each minute while its pod runs.";
        warned seLinuxMount [false]: "volumes are mounted without SELinux labels";
        honoured nodeAllocatableUpdatePeriodSeconds: "How often a node asks the driver again how many volumes it \
            takes; at once after an attachment failed for want of room.";
        honoured serviceAccountTokenInSecrets: "Whether tokens go with the secrets instead of the volume's context.";
        honoured preventPodSchedulingIfMissing: "Whether pods go only to nodes that have the driver.";
    }
    TOKEN = DRIVER_TOKEN_REQUEST {
        honoured audience: "Whom the token is for; empty means the API server.";
        honoured expirationSeconds: "How long it is good.";
    }
    CSI_NODE = wire::messages::CSI_NODE {
        honoured metadata => META;
        honoured spec => CSI_NODE_SPECS;
        honoured status;
    }
    CSI_NODE_SPECS = CSI_NODE_SPEC {
        honoured drivers => CSI_NODE_DRIVERS;
    }
    CSI_NODE_DRIVERS = CSI_NODE_DRIVER {
        honoured name, nodeID, topologyKeys;
        honoured allocatable => LIMIT;
    }
    LIMIT = VOLUME_NODE_RESOURCES {
        honoured count;
    }
    CAPACITY = CSI_STORAGE_CAPACITY {
        honoured metadata => META;
        honoured nodeTopology => SELECTOR;
        honoured storageClassName, capacity, maximumVolumeSize;
    }
    SNAPSHOT = VOLUME_SNAPSHOT {
        honoured metadata => META;
        honoured spec => SNAPSHOT_SPEC;
        honoured status;
    }
    SNAPSHOT_SPEC = VOLUME_SNAPSHOT_SPEC {
        warned source: "`longshore up` runs no snapshot controller, so the snapshot waits until one runs; to copy a \
            volume, name its claim in the dataSource of a new one";
        honoured volumeSnapshotClassName: "The class that says which driver takes the snapshot.";
    }
    SNAPSHOT_CONTENT = VOLUME_SNAPSHOT_CONTENT {
        honoured metadata => META;
        honoured spec => SNAPSHOT_CONTENT_SPEC;
        honoured status;
    }
    SNAPSHOT_CONTENT_SPEC = VOLUME_SNAPSHOT_CONTENT_SPEC {
        honoured volumeSnapshotRef => OBJECT;
        honoured deletionPolicy, driver, volumeSnapshotClassName, sourceVolumeMode;
        honoured source => SNAPSHOT_CONTENT_SOURCE;
    }
    SNAPSHOT_CONTENT_SOURCE = VOLUME_SNAPSHOT_CONTENT_SOURCE {
        honoured volumeHandle, snapshotHandle;
    }
    SNAPSHOT_CLASS = VOLUME_SNAPSHOT_CLASS {
        honoured metadata => META;
        honoured driver, parameters, deletionPolicy;
    }
}
