//! Snapshots beyond csi-sanity.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use csi::{Code, v1};

use super::{by_id, by_source, listed};
use crate::case::{cases, ensure, fail};
use crate::context::said;
use crate::requests::{delete, delete_snapshot, of_snapshot};

cases! {
    beyond "controller/snapshot/source-unknown" [Controller(CreateDeleteSnapshot)]
    "A volume that does not exist has nothing to snapshot."
    |t| { t.refused(t.snapshot_request(&t.name("none")), &[Code::NotFound], "of a volume that does not exist").await?; }
    beyond "controller/snapshot/answer-complete" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot has an id, its source, a size and a time that is not in the future."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        ensure!(snapshot.snapshot_id.len() <= 128, "the id has {} bytes", snapshot.snapshot_id.len());
        ensure!(snapshot.source_volume_id == volume.id, "the source is {}, not {}", snapshot.source_volume_id, volume.id);
        ensure!(snapshot.size_bytes >= 0, "the size is {}", snapshot.size_bytes);
        let Some(time) = snapshot.creation_time else { return fail("the snapshot has no time") };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let age = i64::try_from(now).unwrap_or(i64::MAX) - time.seconds;
        ensure!((-60..86_400).contains(&age), "the snapshot is {age} s old");
    }
    beyond "controller/snapshot/repeat-answers-the-same"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A repeated request answers with the same time, size and source."
    |t| {
        let volume = t.volume().await?;
        let request = t.snapshot_request(&volume.id);
        let first = t.ok(request.clone()).await?.snapshot.unwrap_or_default();
        for _ in 0..9 {
            let again = t.ok(request.clone()).await?.snapshot.unwrap_or_default();
            ensure!(again.creation_time == first.creation_time, "the time of a snapshot changed");
            ensure!(again.snapshot_id == first.snapshot_id, "the id of a snapshot changed");
            ensure!(again.source_volume_id == first.source_volume_id, "the source of a snapshot changed");
        }
    }
    beyond "controller/snapshot/two-of-one-volume" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "Two names make two snapshots."
    |t| {
        let volume = t.volume().await?;
        let (one, two) = (t.snapshot(&volume).await?, t.snapshot(&volume).await?);
        ensure!(one.snapshot_id != two.snapshot_id, "two names made one snapshot");
    }
    beyond "controller/snapshot/long-names-differ-at-the-end"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "Names are not cut."
    |t| {
        let volume = t.volume().await?;
        let mut name = t.name("long");
        name.extend(std::iter::repeat_n('x', 127 - name.len()));
        let make = |end: &str| v1::CreateSnapshotRequest { name: format!("{name}{end}"), ..t.snapshot_request(&volume.id) };
        let id = |a: v1::CreateSnapshotResponse| a.snapshot.unwrap_or_default().snapshot_id;
        let (one, two) = (id(t.ok(make("1")).await?), id(t.ok(make("2")).await?));
        ensure!(one != two, "names that differ in byte 128 made one snapshot");
    }
    beyond "controller/snapshot/of-a-published-volume"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume in use can be snapshotted, or the driver says that it cannot."
    |t| {
        let life = t.published().await?;
        match t.ask(t.snapshot_request(&life.volume.id)).await {
            Ok(answer) => ensure!(answer.snapshot.is_some(), "answered OK without a snapshot"),
            Err(status) if status.code == Code::FailedPrecondition => {}
            Err(status) => return fail(format!("a volume in use was answered {}", said(&status))),
        }
    }
    beyond "controller/snapshot/survives-its-volume" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot can be restored after its volume was deleted, or the deletion is refused."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        if t.ask(delete(&volume.id)).await.is_ok() {
            let volume_content_source = of_snapshot(&snapshot.snapshot_id);
            t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        }
    }
    beyond "controller/snapshot/many-restores" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "One snapshot makes many volumes."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        let mut ids = BTreeSet::from([volume.id.clone()]);
        for _ in 0..3 {
            let volume_content_source = of_snapshot(&snapshot.snapshot_id);
            let restored = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
            ensure!(ids.insert(restored.id), "two restores are one volume");
        }
    }
    beyond "controller/snapshot/refused-makes-nothing"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots), Alone]
    "A refused request leaves no snapshot behind."
    |t| {
        let volume = t.volume().await?;
        let _ = t.ask(v1::CreateSnapshotRequest { name: String::new(), ..t.snapshot_request(&volume.id) }).await;
        ensure!(listed(&t, by_source(&volume.id)).await?.is_empty(), "a snapshot without a name exists");
    }
    beyond "controller/delete-snapshot/ten-times" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A deletion can be repeated."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        for _ in 0..10 {
            t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
        }
    }
    beyond "controller/delete-snapshot/really-gone" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A deleted snapshot makes no volume."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
        let request = v1::CreateVolumeRequest { volume_content_source: of_snapshot(&snapshot.snapshot_id), ..t.create_request() };
        t.refused(request, &[Code::NotFound], "from a deleted snapshot").await?;
    }
    beyond "controller/delete-snapshot/others-stay"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "Deleting one snapshot leaves the others and the volume."
    |t| {
        let volume = t.volume().await?;
        let (one, other) = (t.snapshot(&volume).await?, t.snapshot(&volume).await?);
        t.ok(delete_snapshot(&one.snapshot_id)).await?;
        let left = listed(&t, by_source(&volume.id)).await?;
        ensure!(left.len() == 1 && left[0].snapshot_id == other.snapshot_id, "{} snapshots are left of two after deleting one", left.len());
        t.ok(t.validate_request(&volume)).await?;
    }
    beyond "controller/delete-snapshot/of-a-restored-volume"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot that volumes were made from is deleted, or the driver says why not; the volumes stay."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let restored = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        if let Err(status) = t.ask(delete_snapshot(&snapshot.snapshot_id)).await {
            ensure!(status.code == Code::FailedPrecondition, "deleting a snapshot in use was answered {}", said(&status));
        }
        t.ok(t.validate_request(&restored)).await?;
    }
    beyond "controller/snapshot/name-free-after-delete"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A deleted snapshot's name can be used for another volume."
    |t| {
        let (volume, other) = (t.volume().await?, t.volume().await?);
        let request = t.snapshot_request(&volume.id);
        let id = t.ok(request.clone()).await?.snapshot.unwrap_or_default().snapshot_id;
        t.ok(delete_snapshot(&id)).await?;
        t.ok(v1::CreateSnapshotRequest { source_volume_id: other.id, ..request }).await?;
    }
    beyond "controller/list-snapshots/token-invalid" [Controller(ListSnapshots)]
    "A token that the driver did not give is ABORTED."
    |t| {
        let request = v1::ListSnapshotsRequest { starting_token: "longshore-no-such-token".into(), ..Default::default() };
        t.refused(request, &[Code::Aborted], "with an invented token").await?;
    }
    beyond "controller/list-snapshots/negative-page" [Controller(ListSnapshots)]
    "The size of a page is not negative."
    |t| {
        let request = v1::ListSnapshotsRequest { max_entries: -1, ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "with -1 entries a page").await?;
    }
    beyond "controller/list-snapshots/pages-complete"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots), Alone]
    "All pages together are the list, each snapshot once."
    |t| {
        let volume = t.volume().await?;
        let mut made = BTreeSet::new();
        for _ in 0..5 {
            made.insert(t.snapshot(&volume).await?.snapshot_id);
        }
        let mut found = Vec::new();
        let mut token = String::new();
        for _ in 0..1000 {
            let request = v1::ListSnapshotsRequest { max_entries: 2, starting_token: token, ..by_source(&volume.id) };
            let answer = t.ok(request).await?;
            ensure!(answer.entries.len() <= 2, "a page of 2 has {} entries", answer.entries.len());
            found.extend(answer.entries.into_iter().filter_map(|e| e.snapshot).map(|s| s.snapshot_id));
            token = answer.next_token;
            if token.is_empty() {
                break;
            }
        }
        ensure!(token.is_empty(), "the list does not end");
        ensure!(found.len() == 5, "5 snapshots are {} in pages of 2", found.len());
        ensure!(found.into_iter().collect::<BTreeSet<_>>() == made, "the pages hold other snapshots than were made");
    }
    beyond "controller/list-snapshots/id-and-source"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "An id and a source that do not belong together find nothing."
    |t| {
        let (volume, other) = (t.volume().await?, t.volume().await?);
        let snapshot = t.snapshot(&volume).await?;
        let request = v1::ListSnapshotsRequest { source_volume_id: other.id.clone(), ..by_id(&snapshot.snapshot_id) };
        if !listed(&t, request).await?.is_empty() {
            t.warn("a snapshot is found by its id although another source is asked for");
        }
    }
    beyond "controller/list-snapshots/as-created"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "A snapshot is listed as its creation was answered."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        let found = listed(&t, by_id(&snapshot.snapshot_id)).await?.into_iter().next().unwrap_or_default();
        ensure!(found.source_volume_id == snapshot.source_volume_id, "the source is another in the list");
        ensure!(found.creation_time == snapshot.creation_time, "the time is another in the list");
        ensure!(found.size_bytes == snapshot.size_bytes, "the size is another in the list");
        ensure!(found.ready_to_use, "a snapshot that is ready is listed as not ready");
    }
    beyond "controller/list-snapshots/gone-after-delete"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots)]
    "A deleted snapshot is not listed."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
        ensure!(listed(&t, by_id(&snapshot.snapshot_id)).await?.is_empty(), "a deleted snapshot is listed");
    }
}
