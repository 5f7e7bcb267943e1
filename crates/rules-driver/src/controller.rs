//! Volumes as such: attached, detached, grown, changed, judged.

use alloc::format;
use alloc::string::{String, ToString};

use control::host::Op;
use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::v1::{
    ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerModifyVolumeRequest,
    ControllerModifyVolumeResponse, ControllerPublishVolumeRequest, ControllerPublishVolumeResponse,
    ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse,
};
use csi::{Code, Response, Status};

use crate::check::{self, Range, invalid, required};
use crate::config::Config;
use crate::create::fits;
use crate::facts::Facts;
use crate::node::source_of;
use crate::record::{Bytes, Kind, Published, Volume};
use crate::run::{Run, Step, answer};

/// How the node learns that a volume is attached read-only.
pub const READONLY: &str = "readonly";

pub fn publish(config: &Config, facts: &mut Facts, request: &ControllerPublishVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let node = required("the node id", &request.node_id)?;
    let wanted = check::capability(request.volume_capability.as_ref())?;
    let volume = find(facts, id)?.clone();
    if wanted.block && volume.kind == Kind::Directory {
        return Err(invalid("a directory is no block device; ask for a filesystem"));
    }
    let Some(zone) = config.zone_of(node) else {
        return Err(Status::from_driver(Code::NotFound, "there is no such node"));
    };
    if let Some(home) = volume.zone.as_deref().filter(|home| *home != zone) {
        return Err(in_use(id, &format!("is in zone {home}, which node {node} does not reach")));
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
            facts.volumes.put(volume);
        }
    }
    if let Some(op) = facts.save_volume(config, id) {
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
    let attached = facts.volumes.marked(node).len();
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
        let source = source_of(config, facts, volume);
        // A node that is not of this machine can have nothing mounted here. A volume is attached to one node at a
        // time, so that a mount is that node's; while it is there, the volume goes nowhere else.
        if volume.nodes.keys().any(|name| goes(name) && config.zone_of(name).is_some())
            && let Some((place, _)) = source.as_deref().and_then(|source| facts.places(source).next())
        {
            return Err(in_use(id, &format!("is mounted at {place}; unpublish and unstage it first")));
        }
        let mut volume = volume.clone();
        volume.nodes.retain(|name, _| !goes(name));
        facts.volumes.put(volume);
    }
    match facts.save_volume(config, id) {
        Some(op) => Ok(Step::Do(op)),
        None => answer(Response::ControllerUnpublishVolume(ControllerUnpublishVolumeResponse {})),
    }
}

/// Makes a volume larger: record (growing), image, record (grown), answer. The node does the rest.
pub fn expand(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &ControllerExpandVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let Some(range) = &request.capacity_range else { return Err(invalid("the capacity range is missing")) };
    if request.volume_capability.is_some() {
        check::capability(request.volume_capability.as_ref())?;
    }
    let volume = find(facts, id)?.clone();
    let range = Range::of(Some(range))?;
    if range.least <= volume.size {
        if range.most != 0 && volume.size > range.most {
            let text = format!("volume {id} has {} bytes and cannot be made smaller", volume.size);
            return Err(Status::from_driver(Code::OutOfRange, text));
        }
        if let Some(op) = facts.save_volume(config, id) {
            return Ok(Step::Do(op));
        }
        return answer(Response::ControllerExpandVolume(ControllerExpandVolumeResponse {
            capacity_bytes: i64::try_from(volume.size).unwrap_or(i64::MAX),
            node_expansion_required: volume.kind == Kind::Image,
        }));
    }
    let size = match volume.growing_to {
        // An earlier growth that was cut off; its image may be there already.
        Some(size) if range.admits(size) => size,
        Some(_) | None => range.choose(1, None)?,
    };
    fits(config, facts, size, volume.promised())?;
    facts.volumes.put(Volume { growing_to: Some(size), ..volume.clone() });
    if let Some(op) = facts.save_volume(config, id) {
        return Ok(Step::Do(op));
    }
    if volume.kind == Kind::Image
        && volume.bytes == Bytes::There
        && let Some(step) = run.once(Op::GrowImage { path: config.image_path(id), size })
    {
        return Ok(step);
    }
    facts.volumes.put(Volume { size, growing_to: None, ..volume });
    expand(run, config, facts, request)
}

/// Changes what can be changed of a volume: how much the kernel reads ahead on it, at once where it is attached and at
/// every staging.
pub fn modify(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &ControllerModifyVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let volume = find(facts, id)?.clone();
    let asked = check::mutable(&request.mutable_parameters)?;
    if volume.kind == Kind::Directory && asked.is_some() {
        return Err(invalid("a directory has no device to read ahead on"));
    }
    facts.volumes.put(Volume { read_ahead_kib: asked.or(volume.read_ahead_kib), ..volume });
    if let Some(op) = facts.save_volume(config, id) {
        return Ok(Step::Do(op));
    }
    if let (Some(kib), Some(device)) = (asked, facts.device(&config.image_path(id)))
        && let Some(step) = run.once(Op::SetReadAhead { device: device.to_string(), kib })
    {
        return Ok(step);
    }
    answer(Response::ControllerModifyVolume(ControllerModifyVolumeResponse {}))
}

pub fn validate(config: &Config, facts: &Facts, request: &ValidateVolumeCapabilitiesRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    if request.volume_capabilities.is_empty() {
        return Err(invalid("the volume capabilities are missing"));
    }
    let kind = find(facts, id)?.kind;
    let judged = check::capabilities(&request.volume_capabilities).and_then(|uses| {
        check::parameters(config, &request.parameters, false)?;
        check::mutable(&request.mutable_parameters)?;
        if kind == Kind::Directory && uses.iter().any(|one| one.block) {
            return Err(invalid("a directory is no block device; ask for a filesystem"));
        }
        Ok(())
    });
    let confirmed = match judged {
        Ok(()) => ValidateVolumeCapabilitiesResponse {
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
    facts
        .volumes
        .ready(id)
        .filter(|volume| !volume.ephemeral)
        .ok_or_else(|| Status::from_driver(Code::NotFound, "there is no such volume"))
}

/// The call has to wait for another one to undo something.
pub fn in_use(id: &str, why: &str) -> Status {
    Status::from_driver(Code::FailedPrecondition, format!("volume {id} {why}"))
}
