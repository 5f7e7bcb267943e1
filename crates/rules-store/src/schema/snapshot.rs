//! Snapshots, and leave to refer to objects of another namespace: kinds that a cluster has when they are installed.

use super::Shape::{Boolean, Integer, Object, Objects, Quantity, Text, TextMap, Time};
use super::meta::{OBJECT_META, OBJECT_REFERENCE};
use super::types;

types! {
    SNAPSHOT_ERROR = "VolumeSnapshotError" {
        message: Text, time: Time,
    }
    SNAPSHOT_SOURCE = "VolumeSnapshotSource" {
        persistentVolumeClaimName: Text, volumeSnapshotContentName: Text,
    }
    SNAPSHOT_SPEC = "VolumeSnapshotSpec" {
        source: Object(&SNAPSHOT_SOURCE), volumeSnapshotClassName: Text,
    }
    SNAPSHOT_STATUS = "VolumeSnapshotStatus" {
        boundVolumeSnapshotContentName: Text, creationTime: Time, error: Object(&SNAPSHOT_ERROR),
        readyToUse: Boolean, restoreSize: Quantity, volumeGroupSnapshotName: Text,
    }
    VOLUME_SNAPSHOT = "VolumeSnapshot" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&SNAPSHOT_SPEC),
        status: Object(&SNAPSHOT_STATUS),
    }
    CONTENT_SOURCE = "VolumeSnapshotContentSource" {
        snapshotHandle: Text, volumeHandle: Text,
    }
    CONTENT_SPEC = "VolumeSnapshotContentSpec" {
        deletionPolicy: Text, driver: Text, source: Object(&CONTENT_SOURCE), sourceVolumeMode: Text,
        volumeSnapshotClassName: Text, volumeSnapshotRef: Object(&OBJECT_REFERENCE),
    }
    CONTENT_STATUS = "VolumeSnapshotContentStatus" {
        creationTime: Integer, error: Object(&SNAPSHOT_ERROR), readyToUse: Boolean, restoreSize: Integer,
        snapshotHandle: Text, volumeGroupSnapshotHandle: Text,
    }
    VOLUME_SNAPSHOT_CONTENT = "VolumeSnapshotContent" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&CONTENT_SPEC),
        status: Object(&CONTENT_STATUS),
    }
    VOLUME_SNAPSHOT_CLASS = "VolumeSnapshotClass" {
        apiVersion: Text, kind: Text, deletionPolicy: Text, driver: Text, metadata: Object(&OBJECT_META),
        parameters: TextMap,
    }
    GRANT_FROM = "ReferenceGrantFrom" {
        group: Text, kind: Text, namespace: Text,
    }
    GRANT_TO = "ReferenceGrantTo" {
        group: Text, kind: Text, name: Text,
    }
    GRANT_SPEC = "ReferenceGrantSpec" {
        from: Objects(&GRANT_FROM), to: Objects(&GRANT_TO),
    }
    REFERENCE_GRANT = "ReferenceGrant" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&GRANT_SPEC),
    }
}
