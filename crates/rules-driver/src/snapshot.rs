//! Snapshots: record (creating), copy, record (ready), answer; and back. One of a volume without bytes is a record alone.
//!
//! Callers see one that is being copied, as not ready to use. It is of the moment the copy is finished: where blocks can be
//! shared that is at once; where not, the volume stands still until then. A directory cannot be held still: one that is
//! written to all the time is not copied. A copy that is cut off is begun anew; if its volume is gone by then, nothing of
//! it is kept.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use control::host::Op;
use csi::v1::{
    CreateSnapshotRequest, CreateSnapshotResponse, DeleteSnapshotRequest, DeleteSnapshotResponse, GetSnapshotRequest,
    GetSnapshotResponse, ListSnapshotsRequest, ListSnapshotsResponse, Snapshot as CsiSnapshot, list_snapshots_response,
};
use csi::{Code, Response, Status, Thing};

use crate::check::{self, required};
use crate::config::Config;
use crate::controller::find;
use crate::create::{copy_now, fits};
use crate::facts::Facts;
use crate::list::page;
use crate::record::{Bytes, Snapshot, State};
use crate::run::{Run, Step, answer};

pub fn create(run: &Run, config: &Config, facts: &mut Facts, request: &CreateSnapshotRequest) -> Result<Step, Status> {
    let name = check::name("the snapshot's name", &request.name)?;
    let source = required("the source volume's id", &request.source_volume_id)?;
    check::no_parameters(&request.parameters)?;
    let id = check::id_for(Thing::Snapshot, name);
    if let Some(full) = run.disk_full() {
        return give_up(run, config, facts, &id).ok_or(full);
    }
    if let Some(step) = finish_deleting(run, config, facts, &id) {
        return Ok(step);
    }
    match facts.snapshots().get(&id) {
        Some(found) if found.name != name || found.source != source || found.group.is_some() => {
            let text = format!("snapshot {id} exists and is of another volume");
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Some(found) if found.state == State::Ready => {
            if let Some(op) = save(config, facts, &id) {
                return Ok(Step::Do(op));
            }
            let snapshot = facts.snapshots().get(&id).map(describe);
            return answer(Response::CreateSnapshot(CreateSnapshotResponse { snapshot }));
        }
        Some(_) | None => {}
    }
    let volume = match find(facts, source) {
        Ok(volume) => volume.clone(),
        // What was begun can never be finished.
        Err(gone) => return give_up(run, config, facts, &id).ok_or(gone),
    };
    let already = facts.snapshots().get(&id).map_or(0, |snapshot| snapshot.size);
    fits(config, facts, volume.size, already)?;
    let fresh = Snapshot::creating(id.clone(), name.to_string(), &volume, run.now_millis());
    if fresh.bytes == Bytes::None {
        facts.snapshots.put(Snapshot { state: State::Ready, ..fresh });
        return create(run, config, facts, request);
    }
    facts.snapshots.put(fresh);
    if let Some(op) = save(config, facts, &id) {
        return Ok(Step::Do(op));
    }
    let to = config.snapshot_path(volume.kind, &id);
    // What was copied by an attempt that was cut off is of another moment.
    if let Some(step) = run.once(volume.kind.removal(to.clone())) {
        return Ok(step);
    }
    let copies = vec![copy_now(config, facts, volume.kind, source, to)];
    if let Some(step) = run.once(Op::CopyTogether { copies }) {
        return Ok(step);
    }
    if let Some(snapshot) = facts.snapshots().get(&id).cloned() {
        facts.snapshots.put(Snapshot { state: State::Ready, ..snapshot });
    }
    create(run, config, facts, request)
}

/// The answer to a repeated call while its copy goes on, if that is so.
pub fn under_way(facts: &Facts, request: &CreateSnapshotRequest) -> Option<Response> {
    let found = facts.snapshots().get(&check::id_for(Thing::Snapshot, &request.name))?;
    let same = found.name == request.name && found.source == request.source_volume_id && found.group.is_none();
    let copying = found.state == State::Creating && facts.snapshots.saved(&found.id);
    let snapshot = Some(describe(found));
    (same && copying).then_some(Response::CreateSnapshot(CreateSnapshotResponse { snapshot }))
}

/// Undoes what a call did that found the disk full or the volume gone, so that its refusal can be final. On a full disk
/// nothing is written for it.
pub fn give_up(run: &Run, config: &Config, facts: &mut Facts, id: &str) -> Option<Step> {
    let found = facts.snapshots().get(id).filter(|one| !(one.state == State::Ready && facts.snapshots.saved(id)))?;
    facts.snapshots.put(Snapshot { state: State::Deleting, ..found.clone() });
    finish_deleting(run, config, facts, id)
}

/// The write that brings a snapshot's record to disk, if it is not there.
pub fn save(config: &Config, facts: &Facts, id: &str) -> Option<Op> {
    facts.snapshots.save(id, config.snapshot_record_path(id))
}

/// A snapshot as callers see it.
pub fn describe(snapshot: &Snapshot) -> CsiSnapshot {
    let mut told = CsiSnapshot {
        size_bytes: i64::try_from(snapshot.size).unwrap_or(i64::MAX),
        snapshot_id: snapshot.id.clone(),
        source_volume_id: snapshot.source.clone(),
        ready_to_use: snapshot.state == State::Ready,
        group_snapshot_id: snapshot.group.clone().unwrap_or_default(),
        ..Default::default()
    };
    let time = told.creation_time.get_or_insert_default();
    time.seconds = i64::try_from(snapshot.created_millis / 1000).unwrap_or(i64::MAX);
    time.nanos = i32::try_from(snapshot.created_millis % 1000 * 1_000_000).unwrap_or(0);
    told
}

pub fn delete(run: &Run, config: &Config, facts: &mut Facts, request: &DeleteSnapshotRequest) -> Result<Step, Status> {
    let id = required("the snapshot id", &request.snapshot_id)?;
    let done = || answer(Response::DeleteSnapshot(DeleteSnapshotResponse {}));
    let Some(snapshot) = facts.snapshots().get(id).cloned() else { return done() };
    if let Some(group) = &snapshot.group {
        let text = format!("snapshot {id} belongs to group snapshot {group}; delete that");
        return Err(Status::from_driver(Code::FailedPrecondition, text));
    }
    facts.snapshots.put(Snapshot { state: State::Deleting, ..snapshot });
    finish_deleting(run, config, facts, id).map_or_else(done, Ok)
}

/// Goes on with a deletion, if one was begun: the record goes last.
pub fn finish_deleting(run: &Run, config: &Config, facts: &Facts, id: &str) -> Option<Step> {
    let snapshot = facts.snapshots().get(id).filter(|snapshot| snapshot.state == State::Deleting)?;
    let record_goes = Step::Do(Op::RemoveFile { path: config.snapshot_record_path(id) });
    if snapshot.bytes == Bytes::None {
        return Some(record_goes);
    }
    if run.disk_full().is_none()
        && let Some(op) = save(config, facts, id)
    {
        return Some(Step::Do(op));
    }
    let bytes_go = snapshot.kind.removal(config.snapshot_path(snapshot.kind, id));
    run.once(bytes_go).or(Some(record_goes))
}

pub fn list(facts: &Facts, request: &ListSnapshotsRequest) -> Result<Step, Status> {
    let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    let shown = |one: &Snapshot| fits(&request.snapshot_id, &one.id) && fits(&request.source_volume_id, &one.source);
    // Those of one volume are found without looking at all others.
    let few: BTreeMap<String, Snapshot>;
    let all = if request.snapshot_id.is_empty() && request.source_volume_id.is_empty() {
        facts.snapshots()
    } else {
        let marked = facts.snapshots.marked(&request.source_volume_id).chain([&request.snapshot_id]);
        few = marked.filter_map(|id| Some((id.clone(), facts.snapshots().get(id)?.clone()))).collect();
        &few
    };
    let (found, next_token) = page(all, request.max_entries, &request.starting_token, shown)?;
    let entry = |one: &Snapshot| list_snapshots_response::Entry { snapshot: Some(describe(one)) };
    let entries = found.into_iter().map(entry).collect();
    answer(Response::ListSnapshots(ListSnapshotsResponse { entries, next_token }))
}

pub fn get(facts: &Facts, request: &GetSnapshotRequest) -> Result<Step, Status> {
    let id = required("the snapshot id", &request.snapshot_id)?;
    let found = facts.snapshots().get(id).filter(|one| one.state != State::Deleting).map(describe);
    match found {
        None => Err(Status::from_driver(Code::NotFound, "there is no such snapshot")),
        snapshot => answer(Response::GetSnapshot(GetSnapshotResponse { snapshot })),
    }
}
