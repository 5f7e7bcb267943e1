use wire::Type::{Bool, Message, Quantity, String, Time};
use wire::messages;
use wire::messages::OBJECT_META;

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, flag, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate_update: |report, old, new| report.immutable(old, new, "spec.source"),
    columns: &[
        NAME,
        flag("ReadyToUse", |row| row.object["status"]["readyToUse"].as_bool().unwrap_or(false).into()),
        text("SourcePVC", |row| show(&row.object["spec"]["source"]["persistentVolumeClaimName"])),
        text("SourceSnapshotContent", |row| show(&row.object["spec"]["source"]["volumeSnapshotContentName"])),
        text("RestoreSize", |row| show(&row.object["status"]["restoreSize"])),
        text("SnapshotClass", |row| show(&row.object["spec"]["volumeSnapshotClassName"])),
        text("SnapshotContent", |row| show(&row.object["status"]["boundVolumeSnapshotContentName"])),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

// A CustomResourceDefinition declares it, so it has no protobuf form and no field numbers.
messages! {
    in "io.k8s.storage.snapshot.v1";

    VOLUME_SNAPSHOT_ERROR = "VolumeSnapshotError" { time? Time, message? String }
    VOLUME_SNAPSHOT_SOURCE = "VolumeSnapshotSource" {
        persistentVolumeClaimName? String, volumeSnapshotContentName? String,
    }
    VOLUME_SNAPSHOT_SPEC = "VolumeSnapshotSpec" {
        source: Message(&VOLUME_SNAPSHOT_SOURCE), volumeSnapshotClassName? String,
    }
    VOLUME_SNAPSHOT_STATUS = "VolumeSnapshotStatus" {
        boundVolumeSnapshotContentName? String, creationTime? Time, readyToUse? Bool, restoreSize? Quantity,
        error? Message(&VOLUME_SNAPSHOT_ERROR), volumeGroupSnapshotName? String,
    }
    VOLUME_SNAPSHOT = "VolumeSnapshot" {
        metadata: Message(&OBJECT_META), spec: Message(&VOLUME_SNAPSHOT_SPEC),
        status? Message(&VOLUME_SNAPSHOT_STATUS),
    }
}

tables! {
    FIELDS = VOLUME_SNAPSHOT {
        honoured metadata => META;
        honoured spec => SNAPSHOT_SPEC;
        honoured status;
    }
    SNAPSHOT_SPEC = VOLUME_SNAPSHOT_SPEC {
        warned source: "`longshore up` runs no snapshot controller, so the snapshot waits until one runs; to copy a \
            volume, name its claim in the dataSource of a new one";
        honoured volumeSnapshotClassName: "The class that says which driver takes the snapshot.";
    }
}
