use api::{PersistentVolume, StorageClass, VolumeSpec};

/// A copy of a volume that leaves out what a translation replaces.
pub(crate) fn without_source(volume: &PersistentVolume) -> PersistentVolume {
    let spec = &volume.spec;
    PersistentVolume {
        metadata: volume.metadata.clone(),
        spec: VolumeSpec {
            capacity: spec.capacity.clone(),
            access_modes: spec.access_modes.clone(),
            claim_ref: spec.claim_ref.clone(),
            persistent_volume_reclaim_policy: spec.persistent_volume_reclaim_policy.clone(),
            storage_class_name: spec.storage_class_name.clone(),
            mount_options: spec.mount_options.clone(),
            volume_mode: spec.volume_mode.clone(),
            node_affinity: spec.node_affinity.clone(),
            volume_attributes_class_name: spec.volume_attributes_class_name.clone(),
            csi: None,
            in_tree: None,
        },
        status: volume.status.clone(),
    }
}

/// A copy of a class that has another provisioner.
pub(crate) fn of_provisioner(class: &StorageClass, provisioner: &str) -> StorageClass {
    StorageClass {
        metadata: class.metadata.clone(),
        provisioner: provisioner.into(),
        parameters: class.parameters.clone(),
        reclaim_policy: class.reclaim_policy.clone(),
        mount_options: class.mount_options.clone(),
        allow_volume_expansion: class.allow_volume_expansion,
        volume_binding_mode: class.volume_binding_mode.clone(),
        allowed_topologies: class.allowed_topologies.clone(),
    }
}
