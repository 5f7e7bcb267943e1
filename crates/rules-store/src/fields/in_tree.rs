//! Sources of the volume plugins that Kubernetes once had inside: CSI drivers have taken them over.

use wire::messages::*;

use super::meta::{LOCAL_SECRET, SECRET_OF};
use super::tables;

tables! {
    GCE = GCE_PERSISTENT_DISK_VOLUME_SOURCE {
        honoured pdName: "The disk.";
        honoured fsType: "The filesystem that a disk without one gets.";
        honoured partition: "The partition of the disk; 0 for the whole of it.";
        honoured readOnly: "Whether it is attached for reading only.";
    }
    EBS = AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE {
        honoured volumeID: "The disk, such as vol-1, or aws://ZONE/vol-1.";
        honoured fsType: "The filesystem that a disk without one gets.";
        honoured partition: "The partition of the disk; 0 for the whole of it.";
        honoured readOnly: "Whether it is attached for reading only.";
    }
    AZURE = AZURE_DISK_VOLUME_SOURCE {
        honoured diskName, diskURI: "The disk: the driver is told the URI, whose last part the name must be.";
        honoured cachingMode, kind: "What the driver is told of the disk; only kind Managed can be used.";
        honoured fsType: "The filesystem that a disk without one gets.";
        honoured readOnly: "Whether it is attached for reading only.";
    }
    SHARE = AZURE_FILE_PERSISTENT_VOLUME_SOURCE {
        honoured secretName, secretNamespace: "The secret with the account.";
        honoured shareName: "The share.";
        honoured readOnly: "Whether it is mounted for reading only.";
    }
    POD_SHARE = AZURE_FILE_VOLUME_SOURCE {
        honoured secretName: "The secret with the account, in the pod's namespace.";
        honoured shareName: "The share.";
        honoured readOnly: "Whether it is mounted for reading only.";
    }
    CINDER = CINDER_PERSISTENT_VOLUME_SOURCE {
        honoured volumeID: "The volume.";
        honoured fsType: "The filesystem that a volume without one gets.";
        honoured readOnly: "Whether it is attached for reading only.";
        warned secretRef: "the CSI driver has no word for it and is not told; leave it out";
    }
    POD_CINDER = CINDER_VOLUME_SOURCE {
        honoured volumeID: "The volume.";
        honoured fsType: "The filesystem that a volume without one gets.";
        honoured readOnly: "Whether it is attached for reading only.";
        warned secretRef: "the CSI driver has no word for it and is not told; leave it out";
    }
    VSPHERE = VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE {
        honoured volumePath: "The disk.";
        honoured fsType: "The filesystem that a disk without one gets.";
        honoured storagePolicyName: "What the driver is told of the disk.";
        warned storagePolicyID: "the CSI driver has no word for it and is not told; leave it out";
    }
    PORTWORX = PORTWORX_VOLUME_SOURCE {
        honoured volumeID: "The volume.";
        honoured fsType: "The filesystem that a volume without one gets.";
        honoured readOnly: "Of a pod's own volume, whether it is attached for reading only.";
    }
    IMAGE = RBD_PERSISTENT_VOLUME_SOURCE {
        honoured image, pool: "The image.";
        honoured fsType: "The filesystem that an image without one gets.";
        honoured secretRef: "Sent along when the volume is staged and when it grows." => SECRET_OF;
        honoured readOnly: "Whether it is mounted for reading only.";
        warned monitors, user, keyring: "the CSI driver knows them from its own settings and is not told";
    }
    POD_IMAGE = RBD_VOLUME_SOURCE {
        honoured image, pool: "The image.";
        honoured fsType: "The filesystem that an image without one gets.";
        honoured secretRef: "Sent along when the volume is staged; a secret in the pod's namespace." => LOCAL_SECRET;
        honoured readOnly: "Whether it is mounted for reading only.";
        warned monitors, user, keyring: "the CSI driver knows them from its own settings and is not told";
    }
}
