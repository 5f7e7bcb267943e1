use wire::Type::{Bool, Int64, Message, String};
use wire::messages;
use wire::messages::{OBJECT_META, OBJECT_REFERENCE};

use super::KindRules;
use super::snapshot::VOLUME_SNAPSHOT_ERROR;
use crate::fields::meta::{META, OBJECT};
use crate::fields::tables;
use crate::table::{AGE, NAME, flag, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate: |report, content| {
        report.need(content, "spec.driver");
        report.one_of(content, "spec.deletionPolicy", &["Delete", "Retain"]);
    },
    validate_update: |report, old, new| {
        report.immutable(old, new, "spec.driver");
        report.immutable(old, new, "spec.source");
    },
    columns: &[
        NAME,
        flag("ReadyToUse", |row| row.object["status"]["readyToUse"].as_bool().unwrap_or(false).into()),
        text("DeletionPolicy", |row| show(&row.object["spec"]["deletionPolicy"])),
        text("Driver", |row| show(&row.object["spec"]["driver"])),
        text("VolumeSnapshot", |row| show(&row.object["spec"]["volumeSnapshotRef"]["name"])),
        text("VolumeSnapshotNamespace", |row| show(&row.object["spec"]["volumeSnapshotRef"]["namespace"])),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

// A CustomResourceDefinition declares it, so it has no protobuf form and no field numbers.
messages! {
    in "io.k8s.storage.snapshot.v1";

    VOLUME_SNAPSHOT_CONTENT_SOURCE = "VolumeSnapshotContentSource" { volumeHandle? String, snapshotHandle? String }
    VOLUME_SNAPSHOT_CONTENT_SPEC = "VolumeSnapshotContentSpec" {
        volumeSnapshotRef: Message(&OBJECT_REFERENCE), deletionPolicy! String, driver! String,
        volumeSnapshotClassName? String, source: Message(&VOLUME_SNAPSHOT_CONTENT_SOURCE), sourceVolumeMode? String,
    }
    VOLUME_SNAPSHOT_CONTENT_STATUS = "VolumeSnapshotContentStatus" {
        snapshotHandle? String, creationTime? Int64, restoreSize? Int64, readyToUse? Bool,
        error? Message(&VOLUME_SNAPSHOT_ERROR), volumeGroupSnapshotHandle? String,
    }
    VOLUME_SNAPSHOT_CONTENT = "VolumeSnapshotContent" {
        metadata: Message(&OBJECT_META), spec: Message(&VOLUME_SNAPSHOT_CONTENT_SPEC),
        status? Message(&VOLUME_SNAPSHOT_CONTENT_STATUS),
    }
}

tables! {
    FIELDS = VOLUME_SNAPSHOT_CONTENT {
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
}
