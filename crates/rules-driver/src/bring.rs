//! A volume brought up on this machine and taken down again: the part that is the same whoever names the place.

use alloc::format;
use alloc::string::{String, ToString};

use control::host::Op;
use csi::{Code, Status};

use crate::check::{Use, invalid};
use crate::config::Config;
use crate::controller::in_use;
use crate::facts::Facts;
use crate::node::{Place, foreign, place, source_of};
use crate::record::{Kind, Volume};
use crate::run::{Run, Step};

/// The next step to a volume that is mounted at the staging path, or attached if it is wanted as a device; nothing when
/// it is so.
pub fn bring(
    run: &Run,
    config: &Config,
    facts: &Facts,
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
    facts: &Facts,
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
    let make = run.once(Op::MakeDir { path: staging.to_string() });
    let bind = Op::Bind { source, target: staging.to_string(), read_only: false };
    Ok(Some(make.unwrap_or(Step::Do(bind))))
}

fn bring_device(run: &Run, config: &Config, facts: &Facts, volume: &Volume) -> Result<Option<Step>, Status> {
    if let Some(device) = facts.device(&config.image_path(&volume.id))
        && let Some((at, _)) = facts.filesystem_place(device)
    {
        return Err(in_use(&volume.id, &format!("is mounted at {at}; unpublish and unstage it there first")));
    }
    // Data must not land in a volume whose record still says that it may be made anew.
    if let Some(op) = facts.save_volume(config, &volume.id) {
        return Ok(Some(Step::Do(op)));
    }
    Ok(attach(run, config, facts, volume).err().map(Step::Do))
}

/// The device of an image as large as the image and set as asked for; or the next step to it.
fn attach(run: &Run, config: &Config, facts: &Facts, volume: &Volume) -> Result<String, Op> {
    let image = config.image_path(&volume.id);
    let Some(device) = facts.device(&image).map(String::from) else {
        return Err(Op::AttachLoop { image });
    };
    // One that was there before may be from before the image grew.
    if !run.has_done(&Op::AttachLoop { image: image.clone() })
        && let Some(op) = run.undone(Op::RefreshLoop { image })
    {
        return Err(op);
    }
    if let Some(kib) = volume.read_ahead_kib
        && let Some(op) = run.undone(Op::SetReadAhead { device: device.clone(), kib })
    {
        return Err(op);
    }
    Ok(device)
}

fn bring_filesystem(
    run: &Run,
    config: &Config,
    facts: &Facts,
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
    if let Some(step) = run.once(Op::MakeDir { path: staging.to_string() }) {
        return Ok(Some(step));
    }
    let device = match attach(run, config, facts, volume) {
        Ok(device) => device,
        Err(op) => return Ok(Some(Step::Do(op))),
    };
    let fstype = fstype.to_string();
    if let Some(step) = run.once(Op::MakeFilesystem { device: device.clone(), fstype: fstype.clone() }) {
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
