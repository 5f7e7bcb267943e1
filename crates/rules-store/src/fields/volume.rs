use wire::messages::*;

use super::in_tree::{AZURE, CINDER, EBS, GCE, IMAGE, PORTWORX, SHARE, VSPHERE};
use super::meta::{META, OBJECT, SECRET_OF};
use super::tables;

tables! {
    VOLUME = PERSISTENT_VOLUME {
        honoured metadata => META;
        honoured spec: "What the volume is, and whom it is for." => VOLUME_SPEC;
        honoured status: "Where the volume is in its life.";
    }
    VOLUME_SPEC = PERSISTENT_VOLUME_SPEC {
        honoured capacity: "How much it holds.";
        honoured accessModes: "How it can be mounted.";
        honoured claimRef: "The claim it is bound to or kept for." => OBJECT;
        warned persistentVolumeReclaimPolicy ["Delete", "Retain"]: "nothing recycles volumes here, so it is \
            Failed once its claim is gone; use Delete or Retain";
        honoured storageClassName: "Only claims of this class are bound to it.";
        honoured mountOptions: "Options of the filesystem's mount.";
        honoured volumeMode: "Filesystem, or Block for a raw device.";
        honoured nodeAffinity: "The nodes that can reach it." => REACH;
        honoured volumeAttributesClassName: "The VolumeAttributesClass whose parameters it has.";
        honoured csi: "The volume of a CSI driver." => CSI;
        honoured gcePersistentDisk: "A disk for driver pd.csi.storage.gke.io." => GCE;
        honoured awsElasticBlockStore: "A disk for driver ebs.csi.aws.com." => EBS;
        honoured azureDisk: "A disk for driver disk.csi.azure.com." => AZURE;
        honoured azureFile: "A share for driver file.csi.azure.com." => SHARE;
        honoured cinder: "A volume for driver cinder.csi.openstack.org." => CINDER;
        honoured vsphereVolume: "A disk for driver csi.vsphere.vmware.com." => VSPHERE;
        honoured portworxVolume: "A volume for driver pxd.portworx.com." => PORTWORX;
        honoured rbd: "An image for driver rbd.csi.ceph.com, with the gate CSIMigrationRBD on." => IMAGE;
        warned hostPath, glusterfs, nfs, iscsi, cephfs, fc, flocker, flexVolume, quobyte, photonPersistentDisk,
            scaleIO, local, storageos: "the node agent mounts volumes of CSI drivers alone, so a pod that uses this \
            one waits; use csi";
    }
    REACH = VOLUME_NODE_AFFINITY {
        honoured required => NODES;
    }
    NODES = NODE_SELECTOR {
        honoured nodeSelectorTerms => NODE_TERM;
    }
    NODE_TERM = NODE_SELECTOR_TERM {
        honoured matchExpressions, matchFields => NODE_REQUIREMENT;
    }
    NODE_REQUIREMENT = NODE_SELECTOR_REQUIREMENT {
        honoured key, operator, values;
    }
    CSI = CSI_PERSISTENT_VOLUME_SOURCE {
        honoured driver: "The name of the driver.";
        honoured volumeHandle: "What the driver calls the volume.";
        honoured readOnly: "Whether it is attached for reading only; how it is mounted is the pod's to say.";
        honoured fsType: "The filesystem that a volume without one gets.";
        honoured volumeAttributes: "What the driver said of the volume when it was made.";
        honoured controllerPublishSecretRef: "Sent along when the volume is attached." => SECRET_OF;
        honoured controllerExpandSecretRef: "Sent along when the volume grows." => SECRET_OF;
        honoured nodeExpandSecretRef: "Sent along when the filesystem grows." => SECRET_OF;
        honoured nodeStageSecretRef: "Sent along when the volume is staged on a node." => SECRET_OF;
        honoured nodePublishSecretRef: "Sent along when the volume is mounted for a pod." => SECRET_OF;
    }
}
