//! Snapshots of several volumes at one moment: all records (creating), one copy of all, all records (ready), answer.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::Op;
use csi::v1::{
    CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotRequest,
    DeleteVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse,
    VolumeGroupSnapshot,
};
use csi::{Code, Response, Status, Thing};

use crate::check::{self, invalid, required};
use crate::config::Config;
use crate::controller::find;
use crate::create::{copy_now, fits};
use crate::facts::Facts;
use crate::record::{Bytes, Group, Snapshot, State};
use crate::run::{Run, Step, answer};
use crate::snapshot;

/// The snapshot of one volume in a group. The slash keeps it apart from every id of ours.
fn member_name(group: &str, volume: &str) -> String {
    format!("{group}/{volume}")
}

pub fn create(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &CreateVolumeGroupSnapshotRequest,
) -> Result<Step, Status> {
    let name = check::name("the group snapshot's name", &request.name)?;
    check::no_parameters(&request.parameters)?;
    let volumes: BTreeSet<&String> = request.source_volume_ids.iter().collect();
    if volumes.is_empty() || volumes.len() != request.source_volume_ids.len() {
        return Err(invalid("the source volumes must be named, each of them once"));
    }
    let id = check::id_for(Thing::Group, name);
    if let Some(full) = run.disk_full() {
        return give_up(run, config, facts, &id).ok_or(full);
    }
    if let Some(step) = finish_deleting(run, config, facts, &id) {
        return Ok(step);
    }
    match facts.groups().get(&id) {
        Some(found) if found.name != name || !found.snapshots.keys().eq(volumes.iter().copied()) => {
            let text = format!("group snapshot {id} exists and is of other volumes");
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Some(found) if found.state == State::Ready => {
            if let Some(op) = save(config, facts, &id) {
                return Ok(Step::Do(op));
            }
            let group_snapshot = facts.groups().get(&id).map(|group| describe(facts, group));
            return answer(Response::CreateVolumeGroupSnapshot(CreateVolumeGroupSnapshotResponse { group_snapshot }));
        }
        Some(_) | None => {}
    }
    // What was begun can never be finished without its volumes.
    if let Some(gone) = volumes.iter().find_map(|volume| find(facts, volume).err()) {
        return give_up(run, config, facts, &id).ok_or(gone);
    }
    let members = volumes.into_iter().map(|volume| {
        let member = check::id_for(Thing::Snapshot, &member_name(&id, volume));
        (volume.clone(), member)
    });
    let group = Group::creating(id.clone(), name.to_string(), members.collect(), run.now_millis());
    if let Some(step) = make(run, config, facts, group)? {
        return Ok(step);
    }
    create(run, config, facts, request)
}

/// The next step to a group snapshot; nothing when all bytes are there and all records but the group's say so.
fn make(run: &Run, config: &Config, facts: &mut Facts, group: Group) -> Result<Option<Step>, Status> {
    let id = group.id.clone();
    let (mut fresh, mut size) = (Vec::new(), 0_u64);
    for (volume, member) in &group.snapshots {
        let volume = find(facts, volume)?;
        size = size.saturating_add(volume.size);
        let named = member_name(&id, &volume.id);
        let made = Snapshot::creating(member.clone(), named, volume, group.created_millis);
        fresh.push(Snapshot { group: Some(id.clone()), ..made });
    }
    let known = |facts: &Facts, member: &str| facts.snapshots().get(member).cloned();
    if fresh.iter().any(|one| known(facts, &one.id).is_some_and(|found| found.group.as_deref() != Some(&id))) {
        return Err(Status::from_driver(Code::AlreadyExists, "a snapshot of that name is not of this group"));
    }
    let ours = fresh.iter().filter_map(|one| known(facts, &one.id));
    let already = ours.fold(0_u64, |sum, one| sum.saturating_add(one.size));
    fits(config, facts, size, already)?;
    facts.groups.put(group);
    if let Some(op) = save(config, facts, &id) {
        return Ok(Some(Step::Do(op)));
    }
    let with_bytes = || fresh.iter().filter(|one| one.bytes == Bytes::There);
    let path = |one: &Snapshot| config.snapshot_path(one.kind, &one.id);
    let copy_one = |one: &Snapshot| copy_now(config, facts, one.kind, &one.source, path(one));
    let copies: Vec<_> = with_bytes().map(copy_one).collect();
    let copy = Op::CopyTogether { copies: copies.clone() };
    if !copies.is_empty() && !run.has_done(&copy) {
        for one in &fresh {
            facts.snapshots.put(one.clone());
            if let Some(op) = snapshot::save(config, facts, &one.id) {
                return Ok(Some(Step::Do(op)));
            }
        }
        // What was copied by an attempt that was cut off is of another moment.
        let left = with_bytes().find_map(|one| run.once(one.kind.removal(path(one))));
        return Ok(left.or(Some(Step::Do(copy))));
    }
    for one in &fresh {
        facts.snapshots.put(Snapshot { state: State::Ready, ..one.clone() });
        if let Some(op) = snapshot::save(config, facts, &one.id) {
            return Ok(Some(Step::Do(op)));
        }
    }
    if let Some(group) = facts.groups().get(&id).cloned() {
        facts.groups.put(Group { state: State::Ready, ..group });
    }
    Ok(None)
}

/// Undoes what a call did that found the disk full or a volume gone, members first. On a full disk nothing is written for it.
fn give_up(run: &Run, config: &Config, facts: &mut Facts, id: &str) -> Option<Step> {
    let group = facts.groups().get(id).filter(|one| !(one.state == State::Ready && facts.groups.saved(id)))?.clone();
    facts.groups.put(Group { state: State::Deleting, ..group });
    finish_deleting(run, config, facts, id)
}

/// The write that brings a group's record to disk, if it is not there.
fn save(config: &Config, facts: &Facts, id: &str) -> Option<Op> {
    facts.groups.save(id, config.group_record_path(id))
}

fn describe(facts: &Facts, group: &Group) -> VolumeGroupSnapshot {
    let snapshots = group.snapshots.values().filter_map(|id| facts.snapshots().get(id)).map(snapshot::describe);
    let mut told = VolumeGroupSnapshot {
        group_snapshot_id: group.id.clone(),
        snapshots: snapshots.collect(),
        ready_to_use: group.state == State::Ready,
        ..Default::default()
    };
    let time = told.creation_time.get_or_insert_default();
    time.seconds = i64::try_from(group.created_millis / 1000).unwrap_or(i64::MAX);
    time.nanos = i32::try_from(group.created_millis % 1000 * 1_000_000).unwrap_or(0);
    told
}

/// The snapshots a caller names are those of the group; naming none is fine.
fn check_members(group: &Group, named: &[String]) -> Result<(), Status> {
    let (named, ours): (BTreeSet<_>, BTreeSet<_>) = (named.iter().collect(), group.snapshots.values().collect());
    if named.is_empty() || named == ours {
        Ok(())
    } else {
        Err(invalid("the snapshots are not those of the group snapshot"))
    }
}

pub fn delete(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &DeleteVolumeGroupSnapshotRequest,
) -> Result<Step, Status> {
    let id = required("the group snapshot id", &request.group_snapshot_id)?;
    let done = || answer(Response::DeleteVolumeGroupSnapshot(DeleteVolumeGroupSnapshotResponse {}));
    let Some(group) = facts.groups().get(id).cloned() else { return done() };
    check_members(&group, &request.snapshot_ids)?;
    facts.groups.put(Group { state: State::Deleting, ..group });
    finish_deleting(run, config, facts, id).map_or_else(done, Ok)
}

/// Goes on with a deletion, if one was begun: the members first, the group's record last.
fn finish_deleting(run: &Run, config: &Config, facts: &mut Facts, id: &str) -> Option<Step> {
    let group = facts.groups().get(id).filter(|group| group.state == State::Deleting)?.clone();
    if run.disk_full().is_none()
        && let Some(op) = save(config, facts, id)
    {
        return Some(Step::Do(op));
    }
    for member in group.snapshots.values() {
        let Some(found) = facts.snapshots().get(member).filter(|one| one.group.as_deref() == Some(id)).cloned() else {
            continue;
        };
        facts.snapshots.put(Snapshot { state: State::Deleting, ..found });
        return snapshot::finish_deleting(run, config, facts, member);
    }
    Some(Step::Do(Op::RemoveFile { path: config.group_record_path(id) }))
}

pub fn get(facts: &Facts, request: &GetVolumeGroupSnapshotRequest) -> Result<Step, Status> {
    let id = required("the group snapshot id", &request.group_snapshot_id)?;
    let Some(group) = facts.groups.ready(id) else {
        return Err(Status::from_driver(Code::NotFound, "there is no such group snapshot"));
    };
    check_members(group, &request.snapshot_ids)?;
    let group_snapshot = Some(describe(facts, group));
    answer(Response::GetVolumeGroupSnapshot(GetVolumeGroupSnapshotResponse { group_snapshot }))
}
