//! Volumes on this machine: image, loop device, filesystem, mount at the staging path, the same shown at target paths.
//!
//! What is there is read from the mount table and the list of loop devices alone, so a restart changes nothing.

use alloc::format;

use control::host::Op;
use csi::v1::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeStageVolumeRequest, NodeStageVolumeResponse,
    NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use csi::{Code, Response, Status};

use crate::check::{self, required};
use crate::config::Config;
use crate::controller::{READONLY, find, in_use};
use crate::facts::Facts;
use crate::run::{Run, Step, answer};

/// What stands at a path, seen from one volume.
enum Place {
    /// Nothing is mounted.
    Free,
    /// The volume is mounted.
    Ours { fstype: alloc::string::String, read_only: bool },
    /// Something else is mounted.
    Foreign,
}

fn place(facts: &Facts, image: &str, path: &str) -> Place {
    match facts.mounted(path) {
        None => Place::Free,
        Some(mount) if facts.device(image) == Some(&mount.device) => {
            Place::Ours { fstype: mount.fstype.clone(), read_only: mount.read_only }
        }
        Some(_) => Place::Foreign,
    }
}

fn foreign(path: &str) -> Status {
    let text = format!("something else is mounted at {path}; unmount it first");
    Status::from_driver(Code::FailedPrecondition, text)
}

pub fn stage(run: &Run, config: &Config, facts: &Facts, request: &NodeStageVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    let wanted = check::capability(request.volume_capability.as_ref())?;
    let volume = find(facts, id)?;
    if config.attach && !volume.nodes.contains_key(&config.node_id) {
        return Err(in_use(id, &format!("is not attached to node {}; attach it first", config.node_id)));
    }
    let image = config.image_path(id);
    match place(facts, &image, staging) {
        Place::Ours { fstype, .. } if fstype == wanted.fstype => {
            return answer(Response::NodeStageVolume(NodeStageVolumeResponse {}));
        }
        Place::Ours { fstype, .. } => {
            let text = format!("volume {id} is staged with {fstype}, not {}", wanted.fstype);
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Place::Foreign => return Err(foreign(staging)),
        Place::Free => {}
    }
    if let Some(elsewhere) = facts.mounted_elsewhere(&image, &[]) {
        return Err(in_use(id, &format!("is in use at {elsewhere}; unpublish and unstage it there first")));
    }
    // Data must not land in a volume whose record still says that it may be made anew.
    if let Some(op) = facts.save(config, id) {
        return Ok(Step::Do(op));
    }
    if let Some(step) = run.once(Op::MakeDir { path: staging.into() }) {
        return Ok(step);
    }
    let Some(device) = facts.device(&image) else {
        return Ok(Step::Do(Op::AttachLoop { image }));
    };
    if let Some(step) = run.once(Op::MakeFilesystem { device: device.into(), fstype: wanted.fstype.into() }) {
        return Ok(step);
    }
    Ok(Step::Do(Op::Mount {
        device: device.into(),
        target: staging.into(),
        fstype: wanted.fstype.into(),
        flags: wanted.flags,
        read_only: wanted.mounted_read_only,
    }))
}

pub fn publish(run: &Run, config: &Config, facts: &Facts, request: &NodePublishVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let target = check::path(config, "the target path", &request.target_path)?;
    let wanted = check::capability(request.volume_capability.as_ref())?;
    let image = config.image_path(&find(facts, id)?.id);
    if request.staging_target_path.is_empty() {
        return Err(in_use(id, "comes without its staging target path; stage it first"));
    }
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    check::apart(staging, target)?;
    // The staging path is looked at anew for every publish: what is shown must be this volume (reliability 112).
    let Place::Ours { read_only: staged_read_only, .. } = place(facts, &image, staging) else {
        return Err(in_use(id, &format!("is not staged at {staging}; stage it first")));
    };
    let attached_read_only = request.publish_context.get(READONLY).is_some_and(|value| value == "true");
    let read_only = request.readonly || wanted.read_only || attached_read_only;
    match place(facts, &image, target) {
        Place::Ours { read_only: published, .. } if published == (read_only || staged_read_only) => {
            return answer(Response::NodePublishVolume(NodePublishVolumeResponse {}));
        }
        Place::Ours { .. } => {
            let text = format!("volume {id} is published at {target} with another value of readonly");
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Place::Foreign => return Err(foreign(target)),
        Place::Free => {}
    }
    if wanted.single_writer
        && let Some(other) = facts.mounted_elsewhere(&image, &[staging, target])
    {
        return Err(in_use(
            id,
            &format!("is for a single writer and is published at {other}; unpublish it there first"),
        ));
    }
    let make = Op::MakeDir { path: target.into() };
    let show = Op::Bind { source: staging.into(), target: target.into(), read_only };
    Ok(run.once(make).unwrap_or(Step::Do(show)))
}

pub fn unpublish(
    run: &Run,
    config: &Config,
    facts: &Facts,
    request: &NodeUnpublishVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let target = check::path(config, "the target path", &request.target_path)?;
    let done = || answer(Response::NodeUnpublishVolume(NodeUnpublishVolumeResponse {}));
    let Some(image) = image_or_nothing_there(config, facts, id, target)? else { return done() };
    match place(facts, &image, target) {
        Place::Foreign => Err(foreign(target)),
        Place::Ours { .. } => Ok(Step::Do(Op::Unmount { target: target.into() })),
        Place::Free => run.once(Op::RemoveDir { path: target.into() }).map_or_else(done, Ok),
    }
}

pub fn unstage(config: &Config, facts: &Facts, request: &NodeUnstageVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    let done = || answer(Response::NodeUnstageVolume(NodeUnstageVolumeResponse {}));
    let Some(image) = image_or_nothing_there(config, facts, id, staging)? else { return done() };
    if let Some(other) = facts.mounted_elsewhere(&image, &[staging]) {
        return Err(in_use(id, &format!("is published at {other}; unpublish it there first")));
    }
    match place(facts, &image, staging) {
        Place::Foreign => Err(foreign(staging)),
        Place::Ours { .. } => Ok(Step::Do(Op::Unmount { target: staging.into() })),
        Place::Free if facts.device(&image).is_some() => Ok(Step::Do(Op::DetachLoop { image })),
        Place::Free => done(),
    }
}

/// The volume's image. A volume we do not know cannot be in use, because volumes in use are not deleted; so there is
/// nothing to take down, unless the caller means something else that is mounted there.
fn image_or_nothing_there(
    config: &Config,
    facts: &Facts,
    id: &str,
    path: &str,
) -> Result<Option<alloc::string::String>, Status> {
    match (facts.volumes().get(id), facts.mounted(path)) {
        (Some(volume), _) => Ok(Some(config.image_path(&volume.id))),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let text = format!("there is no such volume, yet something is mounted at {path}");
            Err(Status::from_driver(Code::NotFound, text))
        }
    }
}
