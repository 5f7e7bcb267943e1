//! Snapshots, as csi-sanity judges them.

pub mod beyond;

use csi::{Code, v1};

use crate::CaseResult;
use crate::case::{T, cases, ensure, fail};
use crate::requests::delete_snapshot;

pub fn by_id(id: &str) -> v1::ListSnapshotsRequest {
    v1::ListSnapshotsRequest { snapshot_id: id.into(), ..Default::default() }
}

pub fn by_source(id: &str) -> v1::ListSnapshotsRequest {
    v1::ListSnapshotsRequest { source_volume_id: id.into(), ..Default::default() }
}

pub async fn listed(t: &T, request: v1::ListSnapshotsRequest) -> CaseResult<Vec<v1::Snapshot>> {
    Ok(t.ok(request).await?.entries.into_iter().filter_map(|entry| entry.snapshot).collect())
}

fn one(id: &str) -> v1::GetSnapshotRequest {
    v1::GetSnapshotRequest { snapshot_id: id.into(), ..Default::default() }
}

cases! {
    parity "controller/list-snapshots/well-formed" [Controller(ListSnapshots)]
    "Every entry is a snapshot with an id, a source and a time."
    |t| {
        for snapshot in listed(&t, Default::default()).await? {
            ensure!(!snapshot.snapshot_id.is_empty(), "a snapshot has no id");
            ensure!(!snapshot.source_volume_id.is_empty(), "snapshot {} has no source", snapshot.snapshot_id);
            ensure!(snapshot.creation_time.is_some(), "snapshot {} has no time", snapshot.snapshot_id);
        }
    }
    parity "controller/list-snapshots/by-id"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "A snapshot is found by its id, alone."
    |t| {
        let volume = t.volume().await?;
        let (wanted, _other) = (t.snapshot(&volume).await?, t.snapshot(&volume).await?);
        let found = listed(&t, by_id(&wanted.snapshot_id)).await?;
        ensure!(found.len() == 1 && found[0].snapshot_id == wanted.snapshot_id, "{} snapshots are found by one id", found.len());
    }
    parity "controller/list-snapshots/id-unknown" [Controller(ListSnapshots)]
    "An id that does not exist is an empty list."
    |t| { ensure!(listed(&t, by_id(&t.name("none"))).await?.is_empty(), "an unknown id finds snapshots"); }
    parity "controller/list-snapshots/by-source"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "Snapshots are found by their volume."
    |t| {
        let (volume, other) = (t.volume().await?, t.volume().await?);
        let (wanted, _other) = (t.snapshot(&volume).await?, t.snapshot(&other).await?);
        let found = listed(&t, by_source(&volume.id)).await?;
        ensure!(found.len() == 1 && found[0].snapshot_id == wanted.snapshot_id, "{} snapshots are found by a source with one", found.len());
    }
    parity "controller/list-snapshots/source-unknown" [Controller(ListSnapshots)]
    "A volume that does not exist has no snapshots."
    |t| { ensure!(listed(&t, by_source(&t.name("none"))).await?.is_empty(), "an unknown source has snapshots"); }
    parity "controller/list-snapshots/new-appears"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "A new snapshot is listed."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        let all = listed(&t, Default::default()).await?;
        ensure!(all.iter().any(|s| s.snapshot_id == snapshot.snapshot_id), "the new snapshot is not listed");
    }
    parity "controller/list-snapshots/next-page"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots), Alone]
    "A page says where the next begins."
    |t| {
        let volume = t.volume().await?;
        for _ in 0..3 {
            t.snapshot(&volume).await?;
        }
        let first = t.ok(v1::ListSnapshotsRequest { max_entries: 2, ..Default::default() }).await?;
        ensure!(first.entries.len() == 2, "a page of 2 has {} entries", first.entries.len());
        ensure!(!first.next_token.is_empty(), "the first page says that it is the last");
        let request = v1::ListSnapshotsRequest { max_entries: 2, starting_token: first.next_token, ..Default::default() };
        ensure!(!t.ok(request).await?.entries.is_empty(), "the second page is empty");
    }
    parity "controller/get-snapshot/no-id" [Controller(GetSnapshot)]
    "A snapshot is got by its id."
    |t| { t.refused(one(""), &[Code::InvalidArgument], "without an id").await?; }
    parity "controller/get-snapshot/existing"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(GetSnapshot)]
    "A snapshot is described as its creation was answered."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        let found = t.ok(one(&snapshot.snapshot_id)).await?.snapshot.unwrap_or_default();
        ensure!(found.snapshot_id == snapshot.snapshot_id, "another snapshot is answered");
        ensure!(found.creation_time == snapshot.creation_time, "the time is another");
    }
    parity "controller/get-snapshot/unknown" [Controller(GetSnapshot)]
    "A snapshot that does not exist is NOT_FOUND."
    |t| { t.refused(one(&t.name("none")), &[Code::NotFound], "of a snapshot that does not exist").await?; }
    parity "controller/delete-snapshot/no-id" [Controller(CreateDeleteSnapshot)]
    "A snapshot is deleted by its id."
    |t| { t.refused(delete_snapshot(""), &[Code::InvalidArgument], "without an id").await?; }
    parity "controller/delete-snapshot/unknown" [Controller(CreateDeleteSnapshot)]
    "A snapshot that does not exist is deleted already."
    |t| { t.ok(delete_snapshot(&t.name("none"))).await?; }
    parity "controller/delete-snapshot/existing" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot can be deleted."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
    }
    parity "controller/snapshot/no-name" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot is made under a name."
    |t| {
        let volume = t.volume().await?;
        let request = v1::CreateSnapshotRequest { name: String::new(), ..t.snapshot_request(&volume.id) };
        t.refused(request, &[Code::InvalidArgument], "without a name").await?;
    }
    parity "controller/snapshot/no-source" [Controller(CreateDeleteSnapshot)]
    "A snapshot is made of a volume."
    |t| { t.refused(t.snapshot_request(""), &[Code::InvalidArgument], "without a source").await?; }
    parity "controller/snapshot/same-name-same-source"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A repeated request answers with the snapshot that exists."
    |t| {
        let volume = t.volume().await?;
        let request = t.snapshot_request(&volume.id);
        let id = |a: v1::CreateSnapshotResponse| a.snapshot.unwrap_or_default().snapshot_id;
        let (first, second) = (id(t.ok(request.clone()).await?), id(t.ok(request).await?));
        ensure!(first == second && !first.is_empty(), "one name made two snapshots, {first} and {second}");
    }
    parity "controller/snapshot/same-name-other-source"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A name that is taken by a snapshot of another volume is refused."
    |t| {
        let (volume, other) = (t.volume().await?, t.volume().await?);
        let request = t.snapshot_request(&volume.id);
        t.ok(request.clone()).await?;
        let request = v1::CreateSnapshotRequest { source_volume_id: other.id, ..request };
        t.refused(request, &[Code::AlreadyExists], "of a taken name for another volume").await?;
    }
    parity "controller/snapshot/long-name" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "Names may have 128 bytes."
    |t| {
        let volume = t.volume().await?;
        let mut name = t.name("long");
        name.extend(std::iter::repeat_n('x', 128 - name.len()));
        let request = v1::CreateSnapshotRequest { name, ..t.snapshot_request(&volume.id) };
        if t.ok(request).await?.snapshot.is_none() {
            return fail("CreateSnapshot was answered OK without a snapshot");
        }
    }
}
