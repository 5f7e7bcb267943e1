use api::{PersistentVolume, VolumeSpec};

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
