//! Making volumes: from nothing, from a snapshot, from another volume.
//!
//! From nothing: record, answer; the bytes come with the first use ([`crate::bring`]), so that a volume costs one write.
//! From something: record (creating), copy, record (ready), answer. Guarantee: an image without a record never exists, so
//! nothing is ever lost sight of, and a crash anywhere leaves a record that says what to go on with.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use control::host::{Copying, Op};
use csi::v1::volume_content_source::{SnapshotSource, Type as SourceType, VolumeSource};
use csi::v1::{
    CreateVolumeRequest, CreateVolumeResponse, Topology, TopologyRequirement, Volume as CsiVolume, VolumeContentSource,
};
use csi::{Code, Response, Status, Thing};

use crate::check::{self, Range, Wish, invalid, required};
use crate::config::{Config, ZONE};
use crate::delete::finish_deleting;
use crate::facts::Facts;
use crate::feature::Feature;
use crate::record::{Bytes, Kind, Source, State, Volume};
use crate::run::{Run, Step, answer};

pub fn create(run: &Run, config: &Config, facts: &mut Facts, request: &CreateVolumeRequest) -> Result<Step, Status> {
    let name = check::name("the volume's name", &request.name)?;
    let uses = check::capabilities(&request.volume_capabilities)?;
    let wish = check::parameters(config, &request.parameters, false)?;
    let read_ahead_kib = check::mutable(&request.mutable_parameters)?;
    if read_ahead_kib.is_some() && !config.offers(Feature::Modify) {
        return Err(invalid("mutable parameters are not offered"));
    }
    if wish.kind == Kind::Directory && uses.iter().any(|one| one.block) {
        return Err(invalid("a directory is no block device; ask for a filesystem or for an image"));
    }
    let source = source(config, request.volume_content_source.as_ref())?;
    let zone = zone(config, request.accessibility_requirements.as_ref())?;
    let range = Range::of(request.capacity_range.as_ref())?;
    let id = check::id_for(Thing::Volume, name);
    if let Some(full) = run.disk_full() {
        return give_up(run, config, facts, &id).ok_or(full);
    }
    if let Some(step) = finish_deleting(run, config, facts, &id) {
        return Ok(step);
    }
    let volume = match facts.volumes().get(&id) {
        Some(volume) if !same(volume, name, range, &wish, source.as_ref()) => {
            // The words of somebody else's name are not for this caller.
            let text = format!("volume {id} exists with {} bytes, which is not what was asked for", volume.size);
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        Some(volume) => volume.clone(),
        None => {
            let from = source.as_ref().map(|source| origin(facts, source, wish.kind)).transpose()?;
            let filesystem = uses.iter().find_map(|one| one.filesystem).or(wish.filesystem);
            let smallest = match (wish.kind, uses.iter().all(|one| one.block)) {
                (Kind::Directory, _) | (_, true) => 1,
                (Kind::Image, false) => check::smallest(filesystem.unwrap_or(&config.filesystem)),
            };
            let size = range.choose(smallest, from.as_ref().map(|from| from.size))?;
            fits(config, facts, size, 0)?;
            Volume {
                kind: wish.kind,
                filesystem: wish.filesystem.map(String::from),
                source,
                read_ahead_kib,
                zone,
                bytes: from.as_ref().map_or(Bytes::None, |from| from.bytes),
                formatted: from.and_then(|from| from.formatted),
                ..Volume::creating(id.clone(), name.to_string(), size)
            }
        }
    };
    match make(run, config, facts, volume)? {
        Some(step) => Ok(step),
        None => {
            let volume = facts.volumes().get(&id).map(|volume| describe(config, volume));
            answer(Response::CreateVolume(CreateVolumeResponse { volume }))
        }
    }
}

/// The volume is the one asked for.
fn same(volume: &Volume, name: &str, range: Range, wish: &Wish, source: Option<&Source>) -> bool {
    volume.name == name
        && range.admits(volume.size)
        && volume.kind == wish.kind
        && volume.filesystem.as_deref() == wish.filesystem
        && volume.source.as_ref() == source
        && !volume.ephemeral
}

/// What the volume is to be copied from.
fn source(config: &Config, asked: Option<&VolumeContentSource>) -> Result<Option<Source>, Status> {
    let Some(asked) = asked else { return Ok(None) };
    match &asked.r#type {
        Some(SourceType::Snapshot(from)) if config.offers(Feature::Snapshots) => {
            Ok(Some(Source::Snapshot(required("the snapshot id", &from.snapshot_id)?.to_string())))
        }
        Some(SourceType::Volume(from)) if config.offers(Feature::Clone) => {
            Ok(Some(Source::Volume(required("the source volume's id", &from.volume_id)?.to_string())))
        }
        Some(SourceType::Snapshot(_)) => Err(invalid("volumes from snapshots are not offered")),
        Some(SourceType::Volume(_)) => Err(invalid("volumes from other volumes are not offered")),
        None => Err(invalid("the volume content source has no type")),
    }
}

/// What a volume is copied from.
struct Origin {
    size: u64,
    bytes: Bytes,
    formatted: Option<String>,
}

fn origin(facts: &Facts, source: &Source, kind: Kind) -> Result<Origin, Status> {
    let found = match source {
        Source::Snapshot(id) => match facts.snapshots().get(id) {
            Some(one) if one.state == State::Creating => {
                let text = format!("snapshot {id} is still being copied; call again when it is ready to use");
                return Err(Status::from_driver(Code::Aborted, text));
            }
            Some(one) if one.state == State::Ready => {
                Some((one.kind, Origin { size: one.size, bytes: one.bytes, formatted: one.formatted.clone() }))
            }
            Some(_) | None => None,
        },
        Source::Volume(id) => {
            let volume = facts.volumes.ready(id).filter(|volume| !volume.ephemeral);
            volume.map(|one| {
                let bytes = if one.bytes == Bytes::There { Bytes::There } else { Bytes::None };
                let formatted = one.formatted.clone().filter(|_| bytes == Bytes::There);
                (one.kind, Origin { size: one.size, bytes, formatted })
            })
        }
    };
    match found {
        None => Err(Status::from_driver(Code::NotFound, "what the volume is to be copied from does not exist")),
        Some((found, origin)) if found == kind => Ok(origin),
        Some((Kind::Image, _)) => Err(invalid("a copy of an image is an image; ask for none other")),
        Some((Kind::Directory, _)) => Err(invalid("a copy of a directory is a directory; ask for kind=directory")),
    }
}

/// The zone that the volume is to be in, if nodes have zones: that of the first node that is asked for.
fn zone(config: &Config, asked: Option<&TopologyRequirement>) -> Result<Option<String>, Status> {
    let in_zone = |zone: &str| Some(zone).filter(|zone| !zone.is_empty()).map(String::from);
    let Some(asked) = asked.filter(|_| config.offers(Feature::Topology)) else { return Ok(in_zone(&config.zone)) };
    let mut terms = asked.preferred.iter().chain(&asked.requisite);
    if let Some(zone) =
        terms.find_map(|one| config.nodes().find(|node| admits(config, one, *node)).map(|(_, zone)| zone))
    {
        return Ok(in_zone(zone));
    }
    if asked.requisite.is_empty() {
        return Ok(in_zone(&config.zone));
    }
    let nodes = config.nodes().map(|(node, _)| node).collect::<Vec<_>>();
    let text = match nodes.as_slice() {
        [only] => format!("volumes of this driver are reachable from node {only} alone"),
        nodes => format!("volumes of this driver are reachable from nodes {} alone", nodes.join(", ")),
    };
    Err(Status::from_driver(Code::ResourceExhausted, text))
}

/// The topology includes a node.
fn admits(config: &Config, topology: &Topology, (node, zone): (&str, &str)) -> bool {
    let key = config.topology_key();
    let mut segments = topology.segments.iter();
    segments.all(|(name, value)| (*name == key && value == node) || (name == ZONE && value == zone && !zone.is_empty()))
}

/// The topology includes a node of ours.
pub fn is_here(config: &Config, topology: &Topology) -> bool {
    config.nodes().any(|node| admits(config, topology, node))
}

/// Where this node is.
pub fn here(config: &Config) -> Topology {
    let zone = (!config.zone.is_empty()).then(|| (ZONE.to_string(), config.zone.clone()));
    Topology { segments: zone.into_iter().chain([(config.topology_key(), config.node_id.clone())]).collect() }
}

/// Where a volume can be reached from: its zone, or the node that makes volumes.
fn reach(config: &Config, volume: &Volume) -> Topology {
    let segment = match &volume.zone {
        Some(zone) => (ZONE.to_string(), zone.clone()),
        None => (config.topology_key(), config.node_id.clone()),
    };
    Topology { segments: [segment].into() }
}

/// The next step of creating a volume that is not acknowledged yet; `None` once it is there and its record is on disk.
pub fn make(run: &Run, config: &Config, facts: &mut Facts, volume: Volume) -> Result<Option<Step>, Status> {
    let id = volume.id.clone();
    match volume.state {
        // Whoever wants the name finishes the deletion first.
        State::Deleting => {
            return Err(Status::from_driver(Code::Aborted, "the volume is being deleted; call again"));
        }
        State::Ready => return Ok(facts.save_volume(config, &id).map(Step::Do)),
        State::Creating => {}
    }
    let Some(copy) = copy_of(config, facts, &volume)? else {
        // What an earlier version of the driver began to make is made anew.
        let bytes = if volume.bytes == Bytes::None { Bytes::None } else { Bytes::Begun };
        facts.volumes.put(Volume { state: State::Ready, bytes, ..volume });
        return Ok(facts.save_volume(config, &id).map(Step::Do));
    };
    facts.volumes.put(volume.clone());
    if let Some(op) = facts.save_volume(config, &id) {
        return Ok(Some(Step::Do(op)));
    }
    let path = copy.to.clone();
    // Whatever lies there was never acknowledged.
    let clear = run.once(volume.kind.removal(path.clone()));
    let copied = clear.or_else(|| run.once(Op::CopyTogether { copies: vec![copy] }));
    let grown = copied.or_else(|| match volume.kind {
        Kind::Image => run.once(Op::GrowImage { path, size: volume.size }),
        Kind::Directory => None,
    });
    if let Some(step) = grown {
        return Ok(Some(step));
    }
    facts.volumes.put(Volume { state: State::Ready, ..volume });
    Ok(facts.save_volume(config, &id).map(Step::Do))
}

/// Undoes what a call did that found the disk full, so that its refusal can be final. Nothing is written for it: the
/// record of a volume that was never acknowledged is removed as it is.
fn give_up(run: &Run, config: &Config, facts: &mut Facts, id: &str) -> Option<Step> {
    let volume = facts.volumes().get(id).filter(|volume| !(volume.state == State::Ready && facts.volumes.saved(id)))?;
    let removal = volume.kind.removal(config.volume_path(volume.kind, id));
    facts.volumes.put(Volume { state: State::Deleting, ..volume.clone() });
    let bytes_gone = run.once(removal);
    bytes_gone.or_else(|| Some(Step::Do(Op::RemoveFile { path: config.record_path(id) })))
}

fn copy_of(config: &Config, facts: &Facts, volume: &Volume) -> Result<Option<Copying>, Status> {
    let Some(source) = volume.source.as_ref().filter(|_| volume.bytes == Bytes::There) else { return Ok(None) };
    origin(facts, source, volume.kind)?;
    let to = config.volume_path(volume.kind, &volume.id);
    Ok(Some(match source {
        Source::Snapshot(id) => Copying { from: config.snapshot_path(volume.kind, id), to, still: None },
        Source::Volume(id) => copy_now(config, facts, volume.kind, id, to),
    }))
}

/// A copy of a volume as it is now. The filesystem on it is held still if it is mounted.
pub fn copy_now(config: &Config, facts: &Facts, kind: Kind, volume: &str, to: String) -> Copying {
    let from = config.volume_path(kind, volume);
    let device = facts.device(&from);
    let still = device.and_then(|device| facts.filesystem_place(device)).map(|(at, _)| at.to_string());
    Copying { from, to, still }
}

/// The pool has room for so many bytes, `already` of which are promised to the same caller.
pub fn fits(config: &Config, facts: &Facts, size: u64, already: u64) -> Result<(), Status> {
    if size > config.pool_bytes {
        let text = format!("{size} bytes are more than the whole pool of {} bytes", config.pool_bytes);
        return Err(Status::from_driver(Code::OutOfRange, text));
    }
    let free = config.pool_bytes.saturating_sub(facts.promised().saturating_sub(already));
    if size > free {
        let text = format!("the pool has {free} bytes left, and {size} are asked for; delete volumes or enlarge it");
        return Err(Status::from_driver(Code::ResourceExhausted, text));
    }
    Ok(())
}

/// A volume as callers see it.
pub fn describe(config: &Config, volume: &Volume) -> CsiVolume {
    let content_source = volume.source.as_ref().map(|source| VolumeContentSource {
        r#type: Some(match source {
            Source::Snapshot(id) => SourceType::Snapshot(SnapshotSource { snapshot_id: id.clone() }),
            Source::Volume(id) => SourceType::Volume(VolumeSource { volume_id: id.clone() }),
        }),
    });
    CsiVolume {
        capacity_bytes: i64::try_from(volume.size).unwrap_or(i64::MAX),
        volume_id: volume.id.clone(),
        content_source,
        accessible_topology: if config.offers(Feature::Topology) { vec![reach(config, volume)] } else { vec![] },
        ..Default::default()
    }
}
