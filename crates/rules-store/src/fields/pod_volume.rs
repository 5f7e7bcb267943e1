use wire::messages::*;

use super::tables;

tables! {
    POD_VOLUME = VOLUME {
        honoured name: "What volumeMounts call it.";
        honoured persistentVolumeClaim: "The volume of a claim." => POD_CLAIM;
        honoured emptyDir: "A directory that is empty when the pod starts and goes with it." => EMPTY;
        refused configMap, secret, projected, downwardAPI: "config maps, secrets and tokens cannot be mounted yet; put \
            a value into the container's env, or a file onto a claim's volume";
        refused hostPath: "directories of this machine cannot be mounted yet; use persistentVolumeClaim or emptyDir";
        refused ephemeral: "claims are not made from templates here; make the claim yourself and name it in \
            persistentVolumeClaim";
        refused csi: "drivers are not asked for volumes of a single pod yet; use persistentVolumeClaim";
        refused image, gitRepo: "nothing is fetched from elsewhere here; use persistentVolumeClaim or emptyDir";
        refused gcePersistentDisk, awsElasticBlockStore, nfs, iscsi, glusterfs, rbd, flexVolume, cinder, cephfs,
            flocker, fc, azureFile, vsphereVolume, quobyte, azureDisk, photonPersistentDisk, portworxVolume, scaleIO,
            storageos: "the node agent mounts volumes of CSI drivers alone; use persistentVolumeClaim";
    }
    POD_CLAIM = PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE {
        honoured claimName: "The claim, in the namespace of the pod.";
        honoured readOnly: "Whether no container may write.";
    }
    EMPTY = EMPTY_DIR_VOLUME_SOURCE {
        refused medium: "the directory is on the disk of this machine; leave medium out";
        refused sizeLimit: "nothing limits the directory; leave it out, or use a claim, whose volume has a size";
        refused mode: "the directory's mode cannot be chosen here; leave it out";
    }
}
