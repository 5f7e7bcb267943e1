use wire::messages::*;

use super::claim::CLAIM_SPEC;
use super::container::{AMOUNT, FIELD};
use super::in_tree::{AZURE, EBS, GCE, POD_CINDER, POD_IMAGE, POD_SHARE, PORTWORX, VSPHERE};
use super::meta::{LOCAL_SECRET, META};
use super::tables;

tables! {
    POD_VOLUME = VOLUME {
        honoured name: "What volumeMounts call it.";
        honoured persistentVolumeClaim: "The volume of a claim." => POD_CLAIM;
        honoured emptyDir: "A directory that is empty when the pod starts and goes with it." => EMPTY;
        honoured configMap: "Entries of a config map as files, which follow it." => MAP_FILES;
        honoured secret: "Entries of a secret as files in memory, which follow it." => SECRET_FILES;
        honoured downwardAPI: "Fields of the pod as files." => FIELD_FILES;
        honoured projected: "Several of these as one volume." => SEVERAL;
        honoured hostPath: "A file or directory of this machine; the namespace must allow it." => PLACE;
        honoured ephemeral: "A claim that is made for the pod and goes with it." => EPHEMERAL;
        honoured csi: "A volume that a CSI driver makes for this pod alone." => INLINE;
        refused image, gitRepo: "nothing is fetched from elsewhere here; use persistentVolumeClaim or emptyDir";
        honoured gcePersistentDisk: "A disk for driver pd.csi.storage.gke.io." => GCE;
        honoured awsElasticBlockStore: "A disk for driver ebs.csi.aws.com." => EBS;
        honoured azureDisk: "A disk for driver disk.csi.azure.com." => AZURE;
        honoured azureFile: "A share for driver file.csi.azure.com." => POD_SHARE;
        honoured cinder: "A volume for driver cinder.csi.openstack.org." => POD_CINDER;
        honoured vsphereVolume: "A disk for driver csi.vsphere.vmware.com." => VSPHERE;
        honoured portworxVolume: "A volume for driver pxd.portworx.com." => PORTWORX;
        honoured rbd: "An image for driver rbd.csi.ceph.com, with the gate CSIMigrationRBD on." => POD_IMAGE;
        refused nfs, iscsi, glusterfs, flexVolume, cephfs, flocker, fc, quobyte, photonPersistentDisk, scaleIO,
            storageos: "the node agent mounts volumes of CSI drivers alone; use persistentVolumeClaim";
    }
    POD_CLAIM = PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE {
        honoured claimName: "The claim, in the namespace of the pod.";
        honoured readOnly: "Whether no container may write.";
    }
    INLINE = CSI_VOLUME_SOURCE {
        honoured driver: "The driver; volumeLifecycleModes of its CSIDriver must list Ephemeral.";
        honoured readOnly: "Whether no container may write.";
        honoured fsType: "The filesystem it gets.";
        honoured volumeAttributes: "What the driver is told.";
        honoured nodePublishSecretRef: "Sent along when it is made; a secret in the pod's namespace." => LOCAL_SECRET;
    }
    MAP_FILES = CONFIG_MAP_VOLUME_SOURCE {
        honoured name, optional, defaultMode;
        honoured items => FILE;
        refused defaultUser: "files belong to root here; leave it out, and set defaultMode or fsGroup";
    }
    SECRET_FILES = SECRET_VOLUME_SOURCE {
        honoured secretName, optional, defaultMode;
        honoured items => FILE;
        refused defaultUser: "files belong to root here; leave it out, and set defaultMode or fsGroup";
    }
    FILE = KEY_TO_PATH {
        honoured key, path, mode;
        refused user: "files belong to root here; leave it out, and set mode or fsGroup";
    }
    FIELD_FILES = DOWNWARD_API_VOLUME_SOURCE {
        honoured defaultMode;
        honoured items => FIELD_FILE;
        refused defaultUser: "files belong to root here; leave it out, and set defaultMode or fsGroup";
    }
    FIELD_FILE = DOWNWARD_API_VOLUME_FILE {
        honoured path, mode;
        honoured fieldRef => FIELD;
        honoured resourceFieldRef => AMOUNT;
        refused user: "files belong to root here; leave it out, and set mode or fsGroup";
    }
    SEVERAL = PROJECTED_VOLUME_SOURCE {
        honoured sources => ONE_OF_SEVERAL;
        honoured defaultMode;
        refused defaultUser: "files belong to root here; leave it out, and set defaultMode or fsGroup";
    }
    ONE_OF_SEVERAL = VOLUME_PROJECTION {
        honoured configMap => SOME_OF_MAP;
        honoured secret => SOME_OF_SECRET;
        honoured downwardAPI => SOME_FIELDS;
        honoured serviceAccountToken: "A token of the pod's account, in memory, replaced before it expires; good for \
            as long as the pod is there." => TOKEN_FILE;
        refused clusterTrustBundle, podCertificate: "no certificates are made for pods here; put one into a secret";
    }
    TOKEN_FILE = SERVICE_ACCOUNT_TOKEN_PROJECTION {
        honoured audience, expirationSeconds, path;
        refused user: "the file belongs to the one user of all containers, or to root; leave it out, and set runAsUser";
    }
    SOME_OF_MAP = CONFIG_MAP_PROJECTION {
        honoured name, optional;
        honoured items => FILE;
    }
    SOME_OF_SECRET = SECRET_PROJECTION {
        honoured name, optional;
        honoured items => FILE;
    }
    SOME_FIELDS = DOWNWARD_API_PROJECTION {
        honoured items => FIELD_FILE;
    }
    PLACE = HOST_PATH_VOLUME_SOURCE {
        honoured path: "Where it is on the machine.";
        honoured type: "What must be there, and whether it is made.";
    }
    EPHEMERAL = EPHEMERAL_VOLUME_SOURCE {
        honoured volumeClaimTemplate: "The claim, named after the pod and the volume." => CLAIM_TEMPLATE;
    }
    CLAIM_TEMPLATE = PERSISTENT_VOLUME_CLAIM_TEMPLATE {
        honoured metadata: "Labels and annotations of the claim." => META;
        honoured spec: "What storage is asked for." => CLAIM_SPEC;
    }
    EMPTY = EMPTY_DIR_VOLUME_SOURCE {
        refused medium ["Memory"]: "it is on the disk of this machine or in Memory; no huge pages are given to pods";
        honoured sizeLimit: "How much it may hold; a pod that puts more on the disk is evicted.";
        refused mode: "the directory's mode cannot be chosen here; leave it out";
    }
}
