//! A volume in use on this machine: how full it is, whether it is well, made larger.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use control::host::{Op, Usage};
use csi::v1::node_get_storage_health_response::StorageBackendHealth;
use csi::v1::volume_usage::Unit;
use csi::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetStorageHealthResponse, NodeGetVolumeHealthRequest,
    NodeGetVolumeHealthResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, StorageHealthErrorType,
    VolumeHealth, VolumeHealthErrorType, VolumeUsage,
};
use csi::{Code, Response, Status};

use crate::check::{self, Range, required};
use crate::config::Config;
use crate::facts::{Facts, Mount};
use crate::list::entry;
use crate::node::{Place, place, source_of};
use crate::record::{Bytes, Kind, State, Volume};
use crate::run::{Measurement, Run, Step, answer};

/// A volume that is mounted or shown at a path, and how. Any path may be asked about: it is only looked up in the table.
fn in_use_at<'a>(config: &Config, facts: &'a Facts, id: &str, path: &str) -> Result<(&'a Volume, Mount), Status> {
    let volume = known(facts, id)?;
    match place(facts, source_of(config, facts, volume).as_deref(), path) {
        Place::Ours(mount) => Ok((volume, mount)),
        Place::Free | Place::Foreign => Err(Status::from_driver(Code::NotFound, "the volume is not at that path")),
    }
}

/// The volume a caller means, be it one of a pod.
fn known<'a>(facts: &'a Facts, id: &str) -> Result<&'a Volume, Status> {
    let ready = |id: &str| facts.volumes.ready(id);
    let volume = ready(id).or_else(|| ready(&check::ephemeral_id(id)).filter(|volume| volume.ephemeral));
    volume.ok_or_else(|| Status::from_driver(Code::NotFound, "there is no such volume"))
}

/// A slash at the end changes nothing, as everywhere else.
fn trimmed<'a>(what: &str, path: &'a str) -> Result<&'a str, Status> {
    Ok(required(what, path)?.trim_end_matches('/'))
}

pub fn stats(run: &Run, config: &Config, facts: &Facts, request: &NodeGetVolumeStatsRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let path = trimmed("the volume path", &request.volume_path)?;
    let (volume, mount) = in_use_at(config, facts, id, path)?;
    match run.measured(path) {
        None => Ok(Step::Do(Op::Measure { path: path.to_string() })),
        Some(Measurement::Usage(usage)) => {
            let usage = told(volume, &mount, usage);
            answer(Response::NodeGetVolumeStats(NodeGetVolumeStatsResponse { usage }))
        }
        Some(Measurement::Failed(why)) => {
            Err(Status::from_driver(Code::Unavailable, format!("cannot measure the volume: {why}")))
        }
    }
}

fn told(volume: &Volume, mount: &Mount, usage: &Usage) -> Vec<VolumeUsage> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let of = |unit: Unit, total, used, available| VolumeUsage {
        available: number(available),
        total: number(total),
        used: number(used),
        unit: unit.into(),
    };
    if mount.block {
        // What of a device is in use only its user knows.
        return vec![of(Unit::Bytes, usage.bytes, 0, 0)];
    }
    // A directory shares the filesystem with others; a filesystem without a count of inodes has none to tell.
    let bytes = of(Unit::Bytes, usage.bytes, usage.bytes_used, usage.bytes_free);
    let inodes = of(Unit::Inodes, usage.inodes, usage.inodes_used, usage.inodes_free);
    if usage.inodes == 0 || volume.kind == Kind::Directory { vec![bytes] } else { vec![bytes, inodes] }
}

/// A path may be named, and need not be: then the volume is looked at wherever it is.
pub fn health(run: &Run, config: &Config, facts: &Facts, request: &NodeGetVolumeHealthRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let named = [&request.volume_publish_path, &request.staging_target_path].into_iter().find(|path| !path.is_empty());
    let path = match named {
        Some(path) => {
            let path = path.trim_end_matches('/');
            in_use_at(config, facts, id, path)?;
            path.to_string()
        }
        None => {
            let volume = known(facts, id)?;
            let source = source_of(config, facts, volume);
            let place = source.as_deref().and_then(|source| facts.places(source).next());
            match (place, volume.kind) {
                (Some((at, _)), _) => at.to_string(),
                // Nothing is there yet that could be unwell but the disk.
                (None, _) if volume.bytes != Bytes::There => config.state_dir.clone(),
                (None, Kind::Image) => config.image_path(&volume.id),
                (None, Kind::Directory) => config.directory_path(&volume.id),
            }
        }
    };
    let health_statuses = match run.measured(&path) {
        None => return Ok(Step::Do(Op::Measure { path })),
        Some(Measurement::Usage(_)) => vec![],
        Some(Measurement::Failed(why)) => vec![entry(VolumeHealthErrorType::Inaccessible, "Unreadable", why)],
    };
    let volume_health = Some(VolumeHealth { volume_id: id.to_string(), health_statuses });
    answer(Response::NodeGetVolumeHealth(NodeGetVolumeHealthResponse { volume_health }))
}

/// Whether the disk the volumes are on can be reached and has room.
pub fn storage_health(run: &Run, config: &Config) -> Result<Step, Status> {
    let path = config.state_dir.clone();
    let wrong = |status: StorageHealthErrorType, reason: &str, message: &str| {
        let (reason, message) = (reason.to_string(), message.to_string());
        vec![StorageBackendHealth { status: status.into(), reason, message, volume_capability: None }]
    };
    let backend_health = match run.measured(&path) {
        None => return Ok(Step::Do(Op::Measure { path })),
        Some(Measurement::Failed(why)) => wrong(StorageHealthErrorType::StorageUnreachable, "Unreadable", why),
        Some(Measurement::Usage(usage)) if usage.bytes_free == 0 => {
            wrong(StorageHealthErrorType::StorageDegraded, "Full", "the disk the volumes are on is full")
        }
        Some(Measurement::Usage(_)) => vec![],
    };
    answer(Response::NodeGetStorageHealth(NodeGetStorageHealthResponse { backend_health }))
}

/// The device as large as its image, the filesystem as large as its device.
pub fn expand(run: &Run, config: &Config, facts: &Facts, request: &NodeExpandVolumeRequest) -> Result<Step, Status> {
    let id = required("the volume id", &request.volume_id)?;
    let path = trimmed("the volume path", &request.volume_path)?;
    if request.volume_capability.is_some() {
        check::capability(request.volume_capability.as_ref())?;
    }
    let range = Range::of(request.capacity_range.as_ref())?;
    let (volume, mount) = in_use_at(config, facts, id, path)?;
    if !range.admits(volume.size) {
        let text = format!("volume {id} has {} bytes; grow it with the controller first", volume.size);
        return Err(Status::from_driver(Code::OutOfRange, text));
    }
    let done = || {
        let capacity_bytes = i64::try_from(volume.size).unwrap_or(i64::MAX);
        answer(Response::NodeExpandVolume(NodeExpandVolumeResponse { capacity_bytes }))
    };
    if volume.kind == Kind::Directory || volume.state != State::Ready {
        return done();
    }
    if let Some(step) = run.once(Op::RefreshLoop { image: config.image_path(&volume.id) }) {
        return Ok(step);
    }
    if mount.block {
        return done();
    }
    // A read-only view cannot be grown through; the staging path may be a writable one.
    let at = facts.filesystem_place(&mount.source).map_or(path, |(at, _)| at).to_string();
    let grow = Op::GrowFilesystem { device: mount.source.clone(), fstype: mount.fstype.clone(), mounted_at: Some(at) };
    run.once(grow).map_or_else(done, Ok)
}
