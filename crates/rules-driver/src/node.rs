//! Volumes on this machine: bytes, loop device, filesystem, mount at the staging path, the same shown at target paths.
//!
//! What is there is read from the mount table and the list of loop devices alone, so a restart changes nothing.

use alloc::format;
use alloc::string::{String, ToString};

use control::host::Op;
use csi::v1::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeStageVolumeRequest, NodeStageVolumeResponse,
    NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use csi::{Code, Response, Status};

use crate::bring::{bring, take_down};
use crate::check::{self, Use, invalid, required};
use crate::config::Config;
use crate::controller::{READONLY, find, in_use};
use crate::delete::finish_deleting;
use crate::ephemeral;
use crate::facts::{Facts, Mount};
use crate::feature::Feature;
use crate::record::{Kind, State, Volume};
use crate::run::{Measurement, Run, Step, answer};

/// What stands at a path, seen from one volume.
pub(crate) enum Place {
    /// Nothing is mounted.
    Free,
    /// The volume is mounted.
    Ours(Mount),
    /// Something else is mounted.
    Foreign,
}

/// What the mounts of a volume show: its device, if it has one now, or its directory.
pub fn source_of(config: &Config, facts: &Facts, volume: &Volume) -> Option<String> {
    match volume.kind {
        Kind::Image => facts.device(&config.image_path(&volume.id)).map(String::from),
        Kind::Directory => Some(config.directory_path(&volume.id)),
    }
}

pub fn place(facts: &Facts, source: Option<&str>, path: &str) -> Place {
    match facts.mounted(path) {
        None => Place::Free,
        Some(mount) if source == Some(&mount.source) => Place::Ours(mount.clone()),
        Some(_) => Place::Foreign,
    }
}

pub fn foreign(path: &str) -> Status {
    let text = format!("something else is mounted at {path}; unmount it first");
    Status::from_driver(Code::FailedPrecondition, text)
}

fn attached_here(config: &Config, volume: &Volume) -> Result<(), Status> {
    if config.attaches() && !volume.ephemeral && !volume.nodes.contains_key(&config.node_id) {
        let why = format!("is not attached to node {}; attach it first", config.node_id);
        return Err(in_use(&volume.id, &why));
    }
    Ok(())
}

pub fn stage(run: &Run, config: &Config, facts: &mut Facts, request: &NodeStageVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    let wanted = check::capability(request.volume_capability.as_ref())?;
    let volume = find(facts, id)?.clone();
    attached_here(config, &volume)?;
    match bring(run, config, facts, &volume, &wanted, staging)? {
        Some(step) => Ok(step),
        None => answer(Response::NodeStageVolume(NodeStageVolumeResponse {})),
    }
}

pub fn publish(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &NodePublishVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let target = check::path(config, "the target path", &request.target_path)?;
    let wanted = check::capability(request.volume_capability.as_ref())?;
    let volume = if ephemeral::is_asked_for(&request.volume_context) {
        match ephemeral::ensure(run, config, facts, id, &wanted, &request.volume_context)? {
            Ok(volume) => volume,
            Err(step) => return Ok(step),
        }
    } else {
        find(facts, id)?.clone()
    };
    let staging = if config.offers(Feature::Stage) && !volume.ephemeral {
        staged_by_caller(config, facts, &volume, &wanted, request)?.to_string()
    } else {
        let inner = config.inner_path(&volume.id);
        attached_here(config, &volume)?;
        if let Some(step) = bring(run, config, facts, &volume, &wanted, &inner)? {
            return Ok(step);
        }
        inner
    };
    let attached_read_only = request.publish_context.get(READONLY).is_some_and(|value| value == "true");
    let read_only = request.readonly || wanted.read_only || attached_read_only;
    show(run, config, facts, &volume, &wanted, read_only, &staging, target)
}

/// The staging path of a volume its caller has staged.
fn staged_by_caller<'a>(
    config: &Config,
    facts: &Facts,
    volume: &Volume,
    wanted: &Use,
    request: &'a NodePublishVolumeRequest,
) -> Result<&'a str, Status> {
    let id = &volume.id;
    if request.staging_target_path.is_empty() {
        return Err(in_use(id, "comes without its staging target path; stage it first"));
    }
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    check::apart(staging, request.target_path.trim_end_matches('/'))?;
    let source = source_of(config, facts, volume);
    // The staging path is looked at anew for every publish: what is shown must be this volume (reliability 112).
    let staged = match (wanted.block, place(facts, source.as_deref(), staging)) {
        (true, Place::Free) => volume.kind == Kind::Image && source.is_some(),
        (false, Place::Ours(mount)) => !mount.block,
        (true, Place::Ours(_) | Place::Foreign) | (false, Place::Free | Place::Foreign) => false,
    };
    if staged { Ok(staging) } else { Err(in_use(id, &format!("is not staged at {staging}; stage it first"))) }
}

/// Shows a staged volume at a target path.
#[allow(clippy::too_many_arguments, reason = "all of it is what the caller asked for")]
fn show(
    run: &Run,
    config: &Config,
    facts: &Facts,
    volume: &Volume,
    wanted: &Use,
    read_only: bool,
    staging: &str,
    target: &str,
) -> Result<Step, Status> {
    let id = &volume.id;
    let Some(source) = source_of(config, facts, volume) else {
        return Err(in_use(id, "is not staged; stage it first"));
    };
    let staged_read_only = facts.mounted(staging).is_some_and(|mount| mount.read_only);
    match place(facts, Some(&source), target) {
        Place::Ours(there) => {
            let other = |what: &str| {
                let text = format!("volume {id} is published at {target} with another {what}");
                Err(Status::from_driver(Code::AlreadyExists, text))
            };
            return match wanted.filesystem {
                _ if there.block != wanted.block => other("access type"),
                Some(fstype) if volume.kind == Kind::Image && there.fstype != fstype => other("filesystem"),
                _ if there.read_only != (read_only || staged_read_only) => other("value of readonly"),
                _ => answer(Response::NodePublishVolume(NodePublishVolumeResponse {})),
            };
        }
        Place::Foreign => return Err(foreign(target)),
        Place::Free => {}
    }
    let mut elsewhere = facts.places(&source).filter(|(at, _)| *at != staging && *at != target);
    if wanted.single_writer
        && let Some((other, _)) = elsewhere.next()
    {
        let why = format!("is for a single writer and is published at {other}; unpublish it there first");
        return Err(in_use(id, &why));
    }
    let (target, device) = (target.to_string(), source.clone());
    if wanted.block {
        // Whether a device can be written to is the same for all who see it.
        if let Some((other, _)) = elsewhere.find(|(_, mount)| mount.block && mount.read_only != read_only) {
            let why = format!("is published at {other} with another value of readonly; unpublish it there first");
            return Err(in_use(id, &why));
        }
        let make = run.once(Op::MakeFile { path: target.clone() });
        return Ok(make.unwrap_or(Step::Do(Op::BindDevice { device, target, read_only })));
    }
    let make = run.once(Op::MakePlace { path: target.clone() });
    // The kernel shows what is mounted read-only nowhere else writable.
    let read_only = read_only || staged_read_only;
    Ok(make.unwrap_or(Step::Do(Op::Bind { source: staging.to_string(), target, read_only })))
}

pub fn unpublish(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    request: &NodeUnpublishVolumeRequest,
) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let target = check::path(config, "the target path", &request.target_path)?;
    let done = || answer(Response::NodeUnpublishVolume(NodeUnpublishVolumeResponse {}));
    let Some(volume) = volume_or_nothing_there(facts, id, target)? else { return done() };
    let source = source_of(config, facts, &volume);
    match place(facts, source.as_deref(), target) {
        Place::Foreign => return Err(foreign(target)),
        Place::Ours(_) => return Ok(Step::Do(Op::Unmount { target: target.into() })),
        Place::Free => {}
    }
    if let Some(step) = run.once(Op::RemoveTarget { path: target.into() }) {
        return Ok(step);
    }
    if (volume.ephemeral || !config.offers(Feature::Stage))
        && let Some(step) = take_down(run, config, facts, &volume)
    {
        return Ok(step);
    }
    if volume.ephemeral && source.as_deref().is_none_or(|source| facts.places(source).next().is_none()) {
        let id = volume.id.clone();
        facts.volumes.put(Volume { state: State::Deleting, ..volume });
        return finish_deleting(run, config, facts, &id).map_or_else(done, Ok);
    }
    done()
}

pub fn unstage(run: &Run, config: &Config, facts: &Facts, request: &NodeUnstageVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let staging = check::path(config, "the staging target path", &request.staging_target_path)?;
    let done = || answer(Response::NodeUnstageVolume(NodeUnstageVolumeResponse {}));
    let Some(volume) = volume_or_nothing_there(facts, id, staging)? else { return done() };
    if volume.ephemeral {
        return Err(invalid("a volume of a pod is not staged"));
    }
    let source = source_of(config, facts, &volume);
    let moved = has_moved(config, &volume);
    let mut places = source.iter().flat_map(|source| facts.places(source)).filter(|_| !moved);
    if let Some((other, _)) = places.find(|(at, _)| *at != staging) {
        return Err(in_use(id, &format!("is published at {other}; unpublish it there first")));
    }
    match (place(facts, source.as_deref(), staging), volume.kind) {
        (Place::Foreign, _) => Err(foreign(staging)),
        (Place::Ours(mount), Kind::Image) if !mount.block && !mount.read_only => {
            let unmount = || Step::Do(Op::Unmount { target: staging.into() });
            Ok(give_back(run, config, &volume, staging).unwrap_or_else(unmount))
        }
        (Place::Ours(_), _) => Ok(Step::Do(Op::Unmount { target: staging.into() })),
        (Place::Free, Kind::Image) if source.is_some() && !moved => {
            Ok(Step::Do(Op::DetachLoop { image: config.image_path(&volume.id) }))
        }
        (Place::Free, Kind::Image | Kind::Directory) => done(),
    }
}

/// The volume was taken from this node and given to another one of this machine. What is mounted elsewhere, and the
/// device, are that node's; a node that comes back has only its own staging path to clear.
fn has_moved(config: &Config, volume: &Volume) -> bool {
    !volume.nodes.is_empty() && !volume.nodes.contains_key(&config.node_id)
}

/// An image that takes so much more room than what is in it gives it back before it is put away.
const WORTH_GIVING_BACK: u64 = 64 << 20;

/// The next step to an image that takes no more room on disk than the files in it, as far as it is worth the while;
/// nothing when it does not, or when that cannot be told.
fn give_back(run: &Run, config: &Config, volume: &Volume, staging: &str) -> Option<Step> {
    let image = config.image_path(&volume.id);
    for path in [&*image, staging] {
        if run.measured(path).is_none() {
            return Some(Step::Do(Op::Measure { path: path.into() }));
        }
    }
    let used = |path: &str| match run.measured(path) {
        Some(Measurement::Usage(usage)) => Some(usage.bytes_used),
        Some(Measurement::Failed(_)) | None => None,
    };
    let worth_it = used(&image)? > used(staging)?.saturating_add(WORTH_GIVING_BACK);
    run.once(Op::Discard { path: staging.into() }).filter(|_| worth_it)
}

/// The volume a caller means. One we do not know cannot be in use, because volumes in use are not deleted; so there is
/// nothing to take down, unless the caller means something else that is mounted there.
fn volume_or_nothing_there(facts: &Facts, id: &str, path: &str) -> Result<Option<Volume>, Status> {
    let volume = facts.volumes().get(id).filter(|volume| !volume.ephemeral);
    let volume = volume.or_else(|| facts.volumes().get(&check::ephemeral_id(id)).filter(|volume| volume.ephemeral));
    match (volume, facts.mounted(path)) {
        (Some(volume), _) => Ok(Some(volume.clone())),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let text = format!("there is no such volume, yet something is mounted at {path}");
            Err(Status::from_driver(Code::NotFound, text))
        }
    }
}
