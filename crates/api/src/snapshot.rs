//! Snapshots (`snapshot.storage.k8s.io/v1`), as far as a volume can be made from one.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::core_v1::part;
use crate::{ClaimRef, Meta, Quantity, VolumeMode};

part! {
    /// A user's snapshot.
    VolumeSnapshot { metadata: Meta, spec: SnapshotSpec, status: SnapshotStatus }
}

part! {
    /// What the user asked for.
    SnapshotSpec { source: SnapshotSource, volume_snapshot_class_name: Option<String> }
}

part! {
    /// What it is a snapshot of.
    SnapshotSource { persistent_volume_claim_name: Option<String>, volume_snapshot_content_name: Option<String> }
}

part! {
    /// How far it has come.
    SnapshotStatus {
        bound_volume_snapshot_content_name: Option<String>,
        ready_to_use: Option<bool>,
        restore_size: Option<Quantity>,
    }
}

part! {
    /// A snapshot as the driver knows it.
    VolumeSnapshotContent { metadata: Meta, spec: ContentSpec, status: ContentStatus }
}

part! {
    /// Whose it is.
    ContentSpec {
        driver: String,
        deletion_policy: String,
        volume_snapshot_ref: ClaimRef,
        source_volume_mode: Option<VolumeMode>,
    }
}

part! {
    /// What the driver says of it.
    ContentStatus { snapshot_handle: Option<String>, ready_to_use: Option<bool>, restore_size: Option<i64> }
}
