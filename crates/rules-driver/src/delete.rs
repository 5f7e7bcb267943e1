//! Volumes gone: record (deleting), bytes gone, record gone, answer. Where there are no bytes, the record just goes.

use alloc::format;

use control::host::Op;
use csi::v1::{DeleteVolumeRequest, DeleteVolumeResponse};
use csi::{Response, Status};

use crate::check::required;
use crate::config::Config;
use crate::controller::in_use;
use crate::facts::Facts;
use crate::node::source_of;
use crate::record::{Bytes, State, Volume};
use crate::run::{Run, Step, answer};

pub fn delete(run: &Run, config: &Config, facts: &mut Facts, request: &DeleteVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let Some(volume) = facts.volumes().get(id).filter(|volume| !volume.ephemeral).cloned() else {
        return answer(Response::DeleteVolume(DeleteVolumeResponse {}));
    };
    let source = source_of(config, facts, &volume);
    if let Some((place, _)) = source.as_deref().and_then(|source| facts.places(source).next()) {
        return Err(in_use(id, &format!("is mounted at {place}; unpublish and unstage it first")));
    }
    if let Some(node) = volume.nodes.keys().next() {
        return Err(in_use(id, &format!("is attached to node {node}; detach it first")));
    }
    facts.volumes.put(Volume { state: State::Deleting, ..volume });
    match finish_deleting(run, config, facts, id) {
        Some(step) => Ok(step),
        None => answer(Response::DeleteVolume(DeleteVolumeResponse {})),
    }
}

/// Goes on with a deletion, if one was begun: the record goes last.
pub fn finish_deleting(run: &Run, config: &Config, facts: &Facts, id: &str) -> Option<Step> {
    let volume = facts.volumes().get(id).filter(|volume| volume.state == State::Deleting)?;
    let record_goes = Step::Do(Op::RemoveFile { path: config.record_path(id) });
    if volume.bytes == Bytes::None {
        return Some(record_goes);
    }
    if run.disk_full().is_none()
        && let Some(op) = facts.save_volume(config, id)
    {
        return Some(Step::Do(op));
    }
    let path = config.volume_path(volume.kind, id);
    // A loop device nothing is mounted from is left from a staging that was cut off.
    if facts.device(&path).is_some() {
        return Some(Step::Do(Op::DetachLoop { image: path }));
    }
    run.once(volume.kind.removal(path)).or(Some(record_goes))
}
