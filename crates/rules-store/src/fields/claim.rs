use wire::messages::*;

use super::meta::{META, SELECTOR};
use super::tables;

tables! {
    CLAIM = PERSISTENT_VOLUME_CLAIM {
        honoured metadata => META;
        honoured spec: "What storage is asked for." => CLAIM_SPEC;
        honoured status: "How far the claim has come.";
    }
    CLAIM_SPEC = PERSISTENT_VOLUME_CLAIM_SPEC {
        honoured accessModes: "How many nodes or pods may use the volume at once, and whether they may write.";
        honoured resources: "How much storage is asked for." => CLAIM_RESOURCES;
        honoured volumeName: "The PersistentVolume to bind to; the binder fills it in where it is left out.";
        honoured selector: "Labels that the volume must have; no volume is made for a claim that has a selector." =>
            SELECTOR;
        honoured storageClassName: "The StorageClass that makes the volume; left out, the default class; empty, none.";
        honoured volumeMode: "Filesystem, or Block for a raw device.";
        honoured dataSource: "A claim or snapshot of this namespace that the volume starts as a copy of." =>
            LOCAL_SOURCE;
        honoured dataSourceRef: "The same, which may be in another namespace that has a ReferenceGrant." => SOURCE;
        honoured volumeAttributesClassName: "The VolumeAttributesClass whose parameters the volume has.";
    }
    CLAIM_RESOURCES = VOLUME_RESOURCE_REQUIREMENTS {
        honoured requests: "The least the volume may hold; it can be raised later if the class allows expansion.";
        warned limits: "nothing keeps a volume below a limit; only requests.storage counts";
    }
    LOCAL_SOURCE = TYPED_LOCAL_OBJECT_REFERENCE {
        honoured apiGroup, kind, name;
    }
    SOURCE = TYPED_OBJECT_REFERENCE {
        honoured apiGroup, kind, name, namespace;
    }
}
