//! Volumes as such: made, attached, detached, gone.
//!
//! Flow of making one: record (creating), image, record (ready), answer. Flow of deleting: record (deleting), image gone,
//! record gone, answer. Guarantee: an image without a record never exists, so nothing is ever lost sight of, and a
//! crash anywhere leaves a record that says what to go on with.

use alloc::format;
use alloc::string::{String, ToString};

use control::host::Op;
use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::v1::{
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse, CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest,
    DeleteVolumeResponse, ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse, Volume as CsiVolume,
};
use csi::{Code, Response, Status};

use crate::check::{self, Range, invalid, required};
use crate::config::Config;
use crate::facts::Facts;
use crate::record::{Published, State, Volume};
use crate::run::{Run, Step, answer};

/// Parameters with this prefix describe the claim; they are not for us and change nothing.
const CLAIM_PARAMETERS: &str = "csi.storage.k8s.io/";
/// How the node learns that a volume is attached read-only.
pub const READONLY: &str = "readonly";

pub fn create(run: &Run, config: &Config, facts: &mut Facts, request: &CreateVolumeRequest) -> Result<Step, Status> {
    let name = check::name(&request.name)?;
    let uses = check::capabilities(&request.volume_capabilities)?;
    if request.volume_content_source.is_some() {
        return Err(invalid("volumes from snapshots or other volumes are not offered"));
    }
    if request.parameters.keys().any(|key| !key.starts_with(CLAIM_PARAMETERS)) || !request.mutable_parameters.is_empty()
    {
        return Err(invalid("this driver takes no parameters"));
    }
    let range = Range::of(request.capacity_range.as_ref())?;
    let id = check::id_for(name);
    if let Some(step) = finish_deleting(run, config, facts, &id) {
        return Ok(step);
    }
    let volume = match facts.volumes().get(&id) {
        Some(volume) if volume.name != name || !range.admits(volume.size) => {
            // The words of somebody else's name are not for this caller.
            let text = format!("volume {id} exists with {} bytes, which is not what was asked for", volume.size);
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Some(volume) => volume.clone(),
        None => {
            let size = range.choose(check::smallest(&uses))?;
            fits(config, facts, size)?;
            Volume::creating(id.clone(), name.to_string(), size)
        }
    };
    match volume.state {
        // Already taken care of above.
        State::Deleting => Err(Status::from_driver(Code::Aborted, "the volume is being deleted; call again")),
        State::Creating => Ok(make(run, config, facts, volume)),
        State::Ready => match facts.save(config, &id) {
            Some(op) => Ok(Step::Do(op)),
            None => answer(Response::CreateVolume(created(&volume))),
        },
    }
}

/// Goes on making a volume nobody was told of.
fn make(run: &Run, config: &Config, facts: &mut Facts, volume: Volume) -> Step {
    let id = volume.id.clone();
    facts.put(volume.clone());
    if let Some(op) = facts.save(config, &id) {
        return Step::Do(op);
    }
    let path = config.image_path(&id);
    // Whatever lies there was never acknowledged; a volume starts without anybody's bytes (reliability 83).
    if let Some(step) = run.once(Op::RemoveFile { path: path.clone() }) {
        return step;
    }
    if let Some(step) = run.once(Op::CreateImage { path, size: volume.size }) {
        return step;
    }
    facts.put(Volume { state: State::Ready, ..volume.clone() });
    match facts.save(config, &id) {
        Some(op) => Step::Do(op),
        None => Step::Answer(Ok(Response::CreateVolume(created(&volume)))),
    }
}

fn fits(config: &Config, facts: &Facts, size: u64) -> Result<(), Status> {
    if size > config.pool_bytes {
        let text = format!("{size} bytes are more than the whole pool of {} bytes", config.pool_bytes);
        return Err(Status::from_driver(Code::OutOfRange, text));
    }
    let free = config.pool_bytes.saturating_sub(facts.promised());
    if size > free {
        let text = format!("the pool has {free} bytes left, and {size} are asked for; delete volumes or enlarge it");
        return Err(Status::from_driver(Code::ResourceExhausted, text));
    }
    Ok(())
}

fn created(volume: &Volume) -> CreateVolumeResponse {
    let capacity_bytes = i64::try_from(volume.size).unwrap_or(i64::MAX);
    let volume = CsiVolume { capacity_bytes, volume_id: volume.id.clone(), ..Default::default() };
    CreateVolumeResponse { volume: Some(volume) }
}

pub fn delete(run: &Run, config: &Config, facts: &mut Facts, request: &DeleteVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let Some(volume) = facts.volumes().get(id).cloned() else {
        return answer(Response::DeleteVolume(DeleteVolumeResponse {}));
    };
    let image = config.image_path(id);
    if let Some(place) = facts.mounted_elsewhere(&image, &[]) {
        return Err(in_use(id, &format!("is mounted at {place}; unpublish and unstage it first")));
    }
    if let Some(node) = volume.nodes.keys().next() {
        return Err(in_use(id, &format!("is attached to node {node}; detach it first")));
    }
    facts.put(Volume { state: State::Deleting, ..volume });
    match finish_deleting(run, config, facts, id) {
        Some(step) => Ok(step),
        None => answer(Response::DeleteVolume(DeleteVolumeResponse {})),
    }
}

/// Goes on with a deletion, if one was begun: the record goes last.
fn finish_deleting(run: &Run, config: &Config, facts: &Facts, id: &str) -> Option<Step> {
    facts.volumes().get(id).filter(|volume| volume.state == State::Deleting)?;
    if let Some(op) = facts.save(config, id) {
        return Some(Step::Do(op));
    }
    let image = config.image_path(id);
    // A loop device nothing is mounted from is left from a staging that was cut off.
    if facts.device(&image).is_some() {
        return Some(Step::Do(Op::DetachLoop { image }));
    }
    run.once(Op::RemoveFile { path: image }).or_else(|| Some(Step::Do(Op::RemoveFile { path: config.record_path(id) })))
}

pub fn publish(config: &Config, facts: &mut Facts, request: &ControllerPublishVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let node = required("the node id", &request.node_id)?;
    check::capability(request.volume_capability.as_ref())?;
    let volume = find(facts, id)?.clone();
    if node != config.node_id {
        return Err(Status::from_driver(Code::NotFound, "there is no such node"));
    }
    let wanted = Published { readonly: request.readonly };
    match volume.nodes.get(node) {
        Some(published) if *published != wanted => {
            let text = format!("volume {id} is attached to node {node} with another value of readonly");
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Some(_) => {}
        None => {
            if let Some(other) = volume.nodes.keys().next() {
                return Err(in_use(id, &format!("is attached to node {other}; detach it there first")));
            }
            room(config, facts, node)?;
            let mut volume = volume;
            volume.nodes.insert(node.to_string(), wanted);
            facts.put(volume);
        }
    }
    if let Some(op) = facts.save(config, id) {
        return Ok(Step::Do(op));
    }
    let mut context = alloc::collections::BTreeMap::new();
    if wanted.readonly {
        context.insert(READONLY.to_string(), "true".to_string());
    }
    answer(Response::ControllerPublishVolume(ControllerPublishVolumeResponse { publish_context: context }))
}

fn room(config: &Config, facts: &Facts, node: &str) -> Result<(), Status> {
    let limit = usize::try_from(config.max_volumes_per_node).unwrap_or(usize::MAX);
    let attached = facts.volumes().values().filter(|volume| volume.nodes.contains_key(node)).count();
    if limit != 0 && attached >= limit {
        let text = format!("node {node} has {attached} volumes, as many as it takes; detach one first");
        return Err(Status::from_driver(Code::ResourceExhausted, text));
    }
    Ok(())
}

pub fn unpublish(
    config: &Config,
    facts: &mut Facts,
    request: &ControllerUnpublishVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let node = &request.node_id;
    if let Some(volume) = facts.volumes().get(id) {
        let goes = |name: &String| node.is_empty() || name == node;
        // A node of another name than ours can have nothing mounted here.
        if volume.nodes.keys().any(|name| goes(name) && *name == config.node_id)
            && let Some(place) = facts.mounted_elsewhere(&config.image_path(id), &[])
        {
            return Err(in_use(id, &format!("is mounted at {place}; unpublish and unstage it first")));
        }
        let mut volume = volume.clone();
        volume.nodes.retain(|name, _| !goes(name));
        facts.put(volume);
    }
    match facts.save(config, id) {
        Some(op) => Ok(Step::Do(op)),
        None => answer(Response::ControllerUnpublishVolume(ControllerUnpublishVolumeResponse {})),
    }
}

pub fn validate(facts: &Facts, request: &ValidateVolumeCapabilitiesRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    if request.volume_capabilities.is_empty() {
        return Err(invalid("the volume capabilities are missing"));
    }
    find(facts, id)?;
    let confirmed = match check::capabilities(&request.volume_capabilities) {
        Ok(_) => ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context.clone(),
                volume_capabilities: request.volume_capabilities.clone(),
                parameters: request.parameters.clone(),
                mutable_parameters: request.mutable_parameters.clone(),
            }),
            message: String::new(),
        },
        Err(status) => ValidateVolumeCapabilitiesResponse { confirmed: None, message: status.message },
    };
    answer(Response::ValidateVolumeCapabilities(confirmed))
}

/// A volume callers know of.
pub fn find<'a>(facts: &'a Facts, id: &str) -> Result<&'a Volume, Status> {
    facts.ready(id).ok_or_else(|| Status::from_driver(Code::NotFound, "there is no such volume"))
}

/// The call has to wait for another one to undo something.
pub fn in_use(id: &str, why: &str) -> Status {
    Status::from_driver(Code::FailedPrecondition, format!("volume {id} {why}"))
}
