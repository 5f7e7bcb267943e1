//! Snapshots of several volumes at one moment.

use std::collections::BTreeSet;

use csi::{Code, v1};

use super::snapshots::{by_id, listed};
use crate::CaseResult;
use crate::case::{T, cases, ensure, fail};
use crate::requests::{delete_snapshot, of_snapshot};

fn members(group: &v1::VolumeGroupSnapshot) -> Vec<String> {
    group.snapshots.iter().map(|snapshot| snapshot.snapshot_id.clone()).collect()
}

fn delete(id: &str, snapshot_ids: Vec<String>) -> v1::DeleteVolumeGroupSnapshotRequest {
    v1::DeleteVolumeGroupSnapshotRequest { group_snapshot_id: id.into(), snapshot_ids, ..Default::default() }
}

fn get(id: &str, snapshot_ids: Vec<String>) -> v1::GetVolumeGroupSnapshotRequest {
    v1::GetVolumeGroupSnapshotRequest { group_snapshot_id: id.into(), snapshot_ids, ..Default::default() }
}

async fn made(t: &T, request: v1::CreateVolumeGroupSnapshotRequest) -> CaseResult<v1::VolumeGroupSnapshot> {
    match t.ok(request).await?.group_snapshot {
        Some(group) if !group.group_snapshot_id.is_empty() => Ok(group),
        Some(_) | None => fail("CreateVolumeGroupSnapshot was answered OK without a group"),
    }
}

cases! {
    parity "group/capabilities/known" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "Group capabilities are among those the specification names."
    |t| {
        t.ok(v1::GroupControllerGetCapabilitiesRequest {}).await?;
        let numbers = &t.suite.reported.group;
        ensure!(numbers.iter().all(|n| *n == 1), "{numbers:?} are no group capabilities");
    }
    parity "group/create/no-name" [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group snapshot is made under a name."
    |t| {
        let volume = t.volume().await?;
        let request = v1::CreateVolumeGroupSnapshotRequest { name: String::new(), ..t.group_request(&[&volume]) };
        t.refused(request, &[Code::InvalidArgument], "without a name").await?;
    }
    parity "group/get/no-id" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group snapshot is got by its id."
    |t| { t.refused(get("", vec![]), &[Code::InvalidArgument], "without an id").await?; }
    parity "group/get/unknown" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group snapshot that does not exist is NOT_FOUND."
    |t| { t.refused(get(&t.name("none"), vec![]), &[Code::NotFound], "of a group that does not exist").await?; }
    parity "group/delete/no-id" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group snapshot is deleted by its id."
    |t| { t.refused(delete("", vec![]), &[Code::InvalidArgument], "without an id").await?; }
    parity "group/delete/unknown" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group snapshot that does not exist is deleted already."
    |t| { t.ok(delete(&t.name("none"), vec![])).await?; }
    beyond "group/create/no-sources" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group has members."
    |t| { t.refused(t.group_request(&[]), &[Code::InvalidArgument], "of no volumes").await?; }
    beyond "group/create/source-unknown" [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group of which one member does not exist is not made."
    |t| {
        let volume = t.volume().await?;
        let mut request = t.group_request(&[&volume]);
        request.source_volume_ids.push(t.name("none"));
        t.refused(request, &[Code::NotFound], "with a volume that does not exist").await?;
    }
    beyond "group/create/one-snapshot-a-volume"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group has one snapshot of each of its volumes, and each names the group."
    |t| {
        let (one, two) = (t.volume().await?, t.volume().await?);
        let group = made(&t, t.group_request(&[&one, &two])).await?;
        let sources: BTreeSet<&str> = group.snapshots.iter().map(|s| s.source_volume_id.as_str()).collect();
        ensure!(sources == BTreeSet::from([one.id.as_str(), two.id.as_str()]), "the snapshots are of {sources:?}");
        ensure!(group.snapshots.len() == 2, "{} snapshots are made of 2 volumes", group.snapshots.len());
        for snapshot in &group.snapshots {
            ensure!(snapshot.group_snapshot_id == group.group_snapshot_id, "a member does not name its group");
        }
        ensure!(group.creation_time.is_some(), "the group has no time");
    }
    beyond "group/create/repeated" [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A repeated request answers with the group that exists."
    |t| {
        let (one, two) = (t.volume().await?, t.volume().await?);
        let request = t.group_request(&[&one, &two]);
        let (first, second) = (made(&t, request.clone()).await?, made(&t, request).await?);
        ensure!(first.group_snapshot_id == second.group_snapshot_id, "one name made two groups");
        let sorted = |g: &v1::VolumeGroupSnapshot| members(g).into_iter().collect::<BTreeSet<_>>();
        ensure!(sorted(&first) == sorted(&second), "the repeat has other members");
    }
    beyond "group/create/same-name-other-volumes"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A name that is taken by a group of other volumes is refused."
    |t| {
        let (one, two) = (t.volume().await?, t.volume().await?);
        let request = t.group_request(&[&one]);
        made(&t, request.clone()).await?;
        let request = v1::CreateVolumeGroupSnapshotRequest { source_volume_ids: vec![two.id], ..request };
        t.refused(request, &[Code::AlreadyExists], "of a taken name for other volumes").await?;
    }
    beyond "group/get/as-created" [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group is described as its creation was answered."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        let found = t.ok(get(&group.group_snapshot_id, members(&group))).await?.group_snapshot.unwrap_or_default();
        ensure!(found.group_snapshot_id == group.group_snapshot_id, "another group is answered");
        ensure!(members(&found) == members(&group), "the group has other members");
        ensure!(found.creation_time == group.creation_time, "the group has another time");
    }
    beyond "group/create/members-listed"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Controller(ListSnapshots)]
    "Members of a group are snapshots like others, with the name of their group."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        for id in members(&group) {
            let found = listed(&t, by_id(&id)).await?;
            ensure!(found.len() == 1, "the member {id} is listed {} times", found.len());
            ensure!(found[0].group_snapshot_id == group.group_snapshot_id, "the listed member does not name its group");
        }
    }
    beyond "group/create/member-restored"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Controller(CreateDeleteSnapshot)]
    "A volume can be made from a member."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        let id = members(&group).into_iter().next().unwrap_or_default();
        t.volume_from(v1::CreateVolumeRequest { volume_content_source: of_snapshot(&id), ..t.create_request() }).await?;
    }
    beyond "group/delete/with-members"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Controller(ListSnapshots)]
    "Deleting a group deletes its members, and can be repeated."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        for _ in 0..3 {
            t.ok(delete(&group.group_snapshot_id, members(&group))).await?;
        }
        for id in members(&group) {
            ensure!(listed(&t, by_id(&id)).await?.is_empty(), "the member {id} outlives its group");
        }
        t.refused(get(&group.group_snapshot_id, members(&group)), &[Code::NotFound], "of a deleted group").await?;
    }
    beyond "group/delete/member-alone"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Controller(CreateDeleteSnapshot)]
    "A member is not deleted without its group."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        let id = members(&group).into_iter().next().unwrap_or_default();
        t.should_refuse(delete_snapshot(&id), &[Code::InvalidArgument, Code::FailedPrecondition], "of a group's member").await?;
    }
    beyond "group/delete/wrong-members" [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A group is deleted with its own members, not with others."
    |t| {
        let volume = t.volume().await?;
        let group = made(&t, t.group_request(&[&volume])).await?;
        let request = delete(&group.group_snapshot_id, vec![t.name("none")]);
        t.should_refuse(request, &[Code::InvalidArgument], "with members it does not have").await?;
    }
}
