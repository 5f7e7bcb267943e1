//! Brings a volume up on this machine and takes it down again: the part that staging, publishing and copying share.
//!
//! The first time: record (begun), bytes, loop device, filesystem, record (there), mount. Whatever was made before the
//! second record is nobody's and is made anew after an interruption; whatever comes after it is never made anew.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use control::host::Op;
use csi::{Code, Status};

use crate::check::{Use, invalid};
use crate::config::Config;
use crate::controller::in_use;
use crate::facts::Facts;
use crate::node::{Place, foreign, place, source_of};
use crate::record::{Bytes, Kind, Volume};
use crate::run::{Run, Step};

/// The next step to a volume that is mounted at the staging path, or attached if it is wanted as a device; nothing when
/// it is so.
pub fn bring(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    volume: &Volume,
    wanted: &Use,
    staging: &str,
) -> Result<Option<Step>, Status> {
    match (volume.kind, wanted.block) {
        (Kind::Directory, true) => Err(invalid("a directory is no block device; ask for a filesystem")),
        (Kind::Directory, false) => bring_directory(run, config, facts, volume, staging),
        (Kind::Image, true) => bring_device(run, config, facts, volume),
        (Kind::Image, false) => bring_filesystem(run, config, facts, volume, wanted, staging),
    }
}

fn bring_directory(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    volume: &Volume,
    staging: &str,
) -> Result<Option<Step>, Status> {
    let source = config.directory_path(&volume.id);
    match place(facts, Some(&source), staging) {
        Place::Ours(_) => return Ok(None),
        Place::Foreign => return Err(foreign(staging)),
        Place::Free => {}
    }
    if let Some(op) = facts.save_volume(config, &volume.id) {
        return Ok(Some(Step::Do(op)));
    }
    if let Some(step) = first_bytes(run, config, facts, volume).or_else(|| written(config, facts, volume, None)) {
        return Ok(Some(step));
    }
    let make = run.once(Op::MakePlace { path: staging.to_string() });
    let bind = Op::Bind { source, target: staging.to_string(), read_only: false };
    Ok(Some(make.unwrap_or(Step::Do(bind))))
}

fn bring_device(run: &Run, config: &Config, facts: &mut Facts, volume: &Volume) -> Result<Option<Step>, Status> {
    if let Some(device) = facts.device(&config.image_path(&volume.id))
        && let Some((at, _)) = facts.filesystem_place(device)
    {
        return Err(in_use(&volume.id, &format!("is mounted at {at}; unpublish and unstage it there first")));
    }
    // Data must not land in a volume whose record still says that it may be made anew.
    if let Some(op) = facts.save_volume(config, &volume.id) {
        return Ok(Some(Step::Do(op)));
    }
    if let Some(step) = first_bytes(run, config, facts, volume) {
        return Ok(Some(step));
    }
    match attach(run, config, facts, volume) {
        Err(op) => Ok(Some(Step::Do(*op))),
        Ok(_) => Ok(written(config, facts, volume, volume.formatted.clone())),
    }
}

/// The next step to bytes for a volume that has none; nothing when they are there, or were made in this run.
fn first_bytes(run: &Run, config: &Config, facts: &mut Facts, volume: &Volume) -> Option<Step> {
    match volume.bytes {
        Bytes::There => return None,
        Bytes::Begun => {}
        Bytes::None => {
            facts.volumes.put(Volume { bytes: Bytes::Begun, ..volume.clone() });
            return facts.save_volume(config, &volume.id).map(Step::Do);
        }
    }
    match volume.kind {
        Kind::Directory => {
            let path = config.directory_path(&volume.id);
            run.once(Op::RemoveTree { path: path.clone() }).or_else(|| run.once(Op::MakeDir { path }))
        }
        Kind::Image => {
            let path = config.image_path(&volume.id);
            let make = Op::CreateImage { path: path.clone(), size: volume.size };
            if run.has_done(&make) {
                return None;
            }
            // What a staging left that was cut off; nobody could write to it (reliability 83).
            if facts.device(&path).is_some() {
                return Some(Step::Do(Op::DetachLoop { image: path }));
            }
            run.once(Op::RemoveFile { path }).or(Some(Step::Do(make)))
        }
    }
}

/// From here on the volume may hold a user's data: the driver never replaces its bytes.
fn written(config: &Config, facts: &mut Facts, volume: &Volume, formatted: Option<String>) -> Option<Step> {
    facts.volumes.put(Volume { bytes: Bytes::There, formatted, ..volume.clone() });
    facts.save_volume(config, &volume.id).map(Step::Do)
}

/// The device of an image as large as the image and set as asked for; or the next step to it.
fn attach(run: &Run, config: &Config, facts: &Facts, volume: &Volume) -> Result<String, Box<Op>> {
    let image = config.image_path(&volume.id);
    let Some(device) = facts.device(&image).map(String::from) else {
        return Err(Box::new(Op::AttachLoop { image }));
    };
    // One that was there before may be from before the image grew.
    if !run.has_done(&Op::AttachLoop { image: image.clone() })
        && let Some(op) = run.undone(Op::RefreshLoop { image })
    {
        return Err(Box::new(op));
    }
    if let Some(kib) = volume.read_ahead_kib
        && let Some(op) = run.undone(Op::SetReadAhead { device: device.clone(), kib })
    {
        return Err(Box::new(op));
    }
    Ok(device)
}

fn bring_filesystem(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    volume: &Volume,
    wanted: &Use,
    staging: &str,
) -> Result<Option<Step>, Status> {
    let id = &volume.id;
    let fstype = wanted.filesystem.or(volume.filesystem.as_deref()).unwrap_or(&config.filesystem);
    let source = source_of(config, facts, volume);
    match place(facts, source.as_deref(), staging) {
        Place::Ours(mount) if mount.block || mount.fstype != fstype => {
            let text = format!("volume {id} is staged with {}, not {fstype}", mount.fstype);
            return Err(Status::from_driver(Code::AlreadyExists, text));
        }
        // Where growing needs the filesystem mounted, this is the first moment for it.
        Place::Ours(mount) => {
            let grow = Op::GrowFilesystem {
                device: mount.source.clone(),
                fstype: fstype.to_string(),
                mounted_at: Some(staging.to_string()),
            };
            return Ok(if grows_unmounted(fstype) || mount.read_only { None } else { run.once(grow) });
        }
        Place::Foreign => return Err(foreign(staging)),
        Place::Free => {}
    }
    if let Some((elsewhere, _)) = source.as_deref().and_then(|source| facts.places(source).next()) {
        return Err(in_use(id, &format!("is in use at {elsewhere}; unpublish and unstage it there first")));
    }
    if let Some(op) = facts.save_volume(config, id) {
        return Ok(Some(Step::Do(op)));
    }
    if let Some(step) = run.once(Op::MakePlace { path: staging.to_string() }) {
        return Ok(Some(step));
    }
    if let Some(step) = first_bytes(run, config, facts, volume) {
        return Ok(Some(step));
    }
    let device = match attach(run, config, facts, volume) {
        Ok(device) => device,
        Err(op) => return Ok(Some(Step::Do(*op))),
    };
    let fstype = fstype.to_string();
    if let Some(step) = sound_filesystem(run, config, facts, volume, &device, &fstype)? {
        return Ok(Some(step));
    }
    let grow = Op::GrowFilesystem { device: device.clone(), fstype: fstype.clone(), mounted_at: None };
    if grows_unmounted(&fstype)
        && let Some(step) = run.once(grow)
    {
        return Ok(Some(step));
    }
    Ok(Some(Step::Do(Op::Mount {
        device,
        target: staging.to_string(),
        fstype,
        flags: wanted.flags.clone(),
        read_only: wanted.mounted_read_only,
    })))
}

/// The next step to a filesystem that can be mounted: put on the volume once, checked every other time.
fn sound_filesystem(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    volume: &Volume,
    device: &str,
    fstype: &str,
) -> Result<Option<Step>, Status> {
    let (on, name) = (device.to_string(), fstype.to_string());
    let make = Op::MakeFilesystem { device: on.clone(), fstype: name.clone() };
    match volume.formatted.as_deref() {
        None => {
            let made = run.once(make);
            Ok(made.or_else(|| written(config, facts, volume, Some(name))))
        }
        Some(found) if found == fstype => {
            let check = Op::CheckFilesystem { device: on, fstype: name };
            Ok(if run.has_done(&make) { None } else { run.once(check) })
        }
        Some(found) => {
            let text = format!("volume {} holds {found}, not {fstype}; stage it with {found}", volume.id);
            Err(Status::from_driver(Code::FailedPrecondition, text))
        }
    }
}

/// Grows before it is mounted, and not only after.
fn grows_unmounted(fstype: &str) -> bool {
    fstype == "ext4"
}

/// The next step to a volume that is no longer mounted at our own place, once no target shows it any more.
pub fn take_down(run: &Run, config: &Config, facts: &Facts, volume: &Volume) -> Option<Step> {
    let inner = config.inner_path(&volume.id);
    let source = source_of(config, facts, volume);
    if source.as_deref().is_some_and(|source| facts.places(source).any(|(at, _)| at != inner)) {
        return None;
    }
    if facts.mounted(&inner).is_some() {
        return Some(Step::Do(Op::Unmount { target: inner }));
    }
    if let Some(step) = run.once(Op::RemoveDir { path: inner }) {
        return Some(step);
    }
    match volume.kind {
        Kind::Image => source.map(|_| Step::Do(Op::DetachLoop { image: config.image_path(&volume.id) })),
        Kind::Directory => None,
    }
}
