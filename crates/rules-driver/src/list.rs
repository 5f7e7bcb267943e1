//! What there is: volumes and snapshots page by page, the room that is left, whether a volume is well.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound;

use control::host::{Op, Usage};
use csi::v1::volume_health::VolumeHealthEntry;
use csi::v1::{
    ControllerGetVolumeHealthRequest, ControllerGetVolumeHealthResponse, ControllerGetVolumeRequest,
    ControllerGetVolumeResponse, ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse,
    GetCapacityRequest, GetCapacityResponse, ListVolumesRequest, ListVolumesResponse, VolumeHealth,
    VolumeHealthErrorType, controller_get_volume_response, list_volumes_response,
};
use csi::{Code, Response, Status};

use crate::check::{self, invalid, required};
use crate::config::Config;
use crate::controller::find;
use crate::create::{describe, is_here};
use crate::facts::Facts;
use crate::record::{Bytes, Kind, State, Volume};
use crate::run::{Measurement, Run, Step, answer};

/// A page of any length must fit into a message.
const LONGEST_PAGE: usize = 5000;
/// What a token begins with: the id behind it was the last one told. Ids that are gone meanwhile still say where to go on,
/// so paging has neither gaps nor repetitions, whatever happens between two pages.
const TOKEN: &str = "after:";

/// A page of a listing, and the token for the next one.
pub fn page<'a, T>(
    all: &'a BTreeMap<String, T>,
    most: i32,
    token: &str,
    shown: impl Fn(&T) -> bool,
) -> Result<(Vec<&'a T>, String), Status> {
    let most = usize::try_from(most).map_err(|_| invalid("the number of entries must not be negative"))?;
    let most = if most == 0 { LONGEST_PAGE } else { most.min(LONGEST_PAGE) };
    let begin = match token {
        "" => Bound::Unbounded,
        token => match token.strip_prefix(TOKEN).filter(|id| check::is_id(id)) {
            Some(id) => Bound::Excluded(id),
            None => return Err(Status::from_driver(Code::Aborted, "the starting token is not one of ours; list anew")),
        },
    };
    let mut rest = all.range::<str, _>((begin, Bound::Unbounded)).filter(|(_, one)| shown(one));
    let entries: Vec<(&String, &T)> = rest.by_ref().take(most).collect();
    let next = match (rest.next(), entries.last()) {
        (Some(_), Some((id, _))) => format!("{TOKEN}{id}"),
        _ => String::new(),
    };
    Ok((entries.into_iter().map(|(_, one)| one).collect(), next))
}

/// Callers know of the volume: it was acknowledged, and its deletion was not.
fn known(volume: &Volume) -> bool {
    volume.state != State::Creating && !volume.ephemeral
}

pub fn volumes(config: &Config, facts: &Facts, request: &ListVolumesRequest) -> Result<Step, Status> {
    let (found, next_token) = page(facts.volumes(), request.max_entries, &request.starting_token, known)?;
    let entry = |volume: &Volume| list_volumes_response::Entry {
        volume: Some(describe(config, volume)),
        status: Some(list_volumes_response::VolumeStatus { published_node_ids: nodes(volume) }),
    };
    let entries = found.into_iter().map(entry).collect();
    answer(Response::ListVolumes(ListVolumesResponse { entries, next_token }))
}

fn nodes(volume: &Volume) -> Vec<String> {
    volume.nodes.keys().cloned().collect()
}

pub fn volume(config: &Config, facts: &Facts, request: &ControllerGetVolumeRequest) -> Result<Step, Status> {
    let volume = find(facts, required("the volume id", &request.volume_id)?)?;
    answer(Response::ControllerGetVolume(ControllerGetVolumeResponse {
        volume: Some(describe(config, volume)),
        status: Some(controller_get_volume_response::VolumeStatus { published_node_ids: nodes(volume) }),
    }))
}

pub fn capacity(config: &Config, facts: &Facts, request: &GetCapacityRequest) -> Result<Step, Status> {
    let wish = check::parameters(config, &request.parameters, false)?;
    let uses =
        request.volume_capabilities.iter().map(|one| check::capability(Some(one))).collect::<Result<Vec<_>, _>>();
    let here = request.accessible_topology.as_ref().is_none_or(|topology| is_here(config, topology));
    // What is not offered has no room.
    let free = match uses {
        Ok(_) if here => config.pool_bytes.saturating_sub(facts.promised()),
        Ok(_) | Err(_) => 0,
    };
    let available_capacity = i64::try_from(free).unwrap_or(i64::MAX);
    let smallest = match wish.kind {
        Kind::Directory => 1,
        Kind::Image => check::smallest(wish.filesystem.unwrap_or(&config.filesystem)),
    };
    answer(Response::GetCapacity(GetCapacityResponse {
        available_capacity,
        maximum_volume_size: Some(available_capacity),
        minimum_volume_size: i64::try_from(smallest).ok(),
    }))
}

pub fn health(
    run: &Run,
    config: &Config,
    facts: &Facts,
    request: &ControllerGetVolumeHealthRequest,
) -> Result<Step, Status> {
    let volume = find(facts, required("the volume id", &request.volume_id)?)?;
    match judge(run, config, volume) {
        Err(op) => Ok(Step::Do(*op)),
        Ok(health) => {
            let volume_health = Some(health);
            answer(Response::ControllerGetVolumeHealth(ControllerGetVolumeHealthResponse { volume_health }))
        }
    }
}

/// How many volumes are looked at for one page: each costs an operation.
const HEALTH_PAGE: i32 = 100;

pub fn all_health(
    run: &Run,
    config: &Config,
    facts: &Facts,
    request: &ControllerListVolumeHealthRequest,
) -> Result<Step, Status> {
    let most = if request.max_entries == 0 { HEALTH_PAGE } else { request.max_entries.min(HEALTH_PAGE) };
    let (found, next_token) = page(facts.volumes(), most, &request.starting_token, known)?;
    let mut entries = Vec::new();
    for volume in found {
        match judge(run, config, volume) {
            Ok(health) => entries.push(health),
            Err(op) => return Ok(Step::Do(*op)),
        }
    }
    answer(Response::ControllerListVolumeHealth(ControllerListVolumeHealthResponse { entries, next_token }))
}

/// What is wrong with a volume's bytes, if anything; or the look at them that is needed first.
fn judge(run: &Run, config: &Config, volume: &Volume) -> Result<VolumeHealth, Box<Op>> {
    if volume.bytes != Bytes::There {
        // A promise is well.
        return Ok(VolumeHealth { volume_id: volume.id.clone(), health_statuses: vec![] });
    }
    let path = match volume.kind {
        Kind::Image => config.image_path(&volume.id),
        Kind::Directory => config.directory_path(&volume.id),
    };
    let wrong = match run.measured(&path) {
        None => return Err(Box::new(Op::Measure { path })),
        Some(Measurement::Failed(_)) => {
            vec![entry(VolumeHealthErrorType::Inaccessible, "Missing", "its bytes cannot be found")]
        }
        Some(Measurement::Usage(Usage { bytes, .. })) if volume.kind == Kind::Image && *bytes < volume.size => {
            let text = format!("its image has {bytes} bytes and should have {}", volume.size);
            vec![entry(VolumeHealthErrorType::DataLoss, "TooSmall", &text)]
        }
        Some(Measurement::Usage(_)) => vec![],
    };
    Ok(VolumeHealth { volume_id: volume.id.clone(), health_statuses: wrong })
}

/// One thing that is wrong with a volume.
pub fn entry(status: VolumeHealthErrorType, reason: &str, message: &str) -> VolumeHealthEntry {
    VolumeHealthEntry { status: status.into(), reason: reason.to_string(), message: message.to_string() }
}
