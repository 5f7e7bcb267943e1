//! The devices a process has: none of the machine's but those every program may use, and the raw volumes of its pod.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::root::{Piece, clone_tree, fresh};
use super::{StartError, step};
use crate::record::SpecMount;
use crate::{path, sys};

/// What every container has. Each is the machine's own node, bound where it cannot be changed, only used.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// `/dev` and what is in it. No filesystem in it lets a new device node be opened, so that making one gains nothing.
pub(super) fn pieces(given: &[SpecMount]) -> Result<Vec<Piece>, StartError> {
    let plain = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let quiet = plain | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let dev = fresh("tmpfs", "/dev", &[("mode", "0755"), ("size", "64k")], quiet)?;
    populate(&dev.tree).map_err(step("/dev of the process cannot be filled"))?;
    for path in given.iter().filter_map(|device| device.target.strip_prefix("/dev/")) {
        make_place(&dev.tree, path).map_err(step(format!("/dev/{path} of the process cannot be made")))?;
    }
    sys::set_mount_attributes(&dev.tree, libc::MOUNT_ATTR_RDONLY, false)
        .map_err(step("/dev of the process cannot be made read-only"))?;
    let mut pieces = vec![dev];
    for name in NODES {
        let path = format!("/dev/{name}");
        match clone_tree(rustix::fs::CWD, &path, false) {
            Ok(tree) => {
                let flags = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
                sys::set_mount_attributes(&tree, flags, false)
                    .map_err(step(format!("{path} cannot be made unchangeable")))?;
                pieces.push(Piece { tree, target: path, needed: false });
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(step(format!("{path} cannot be shown to the process"))(errno)),
        }
    }
    let nosuid = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    pieces.push(fresh("devpts", "/dev/pts", &[("ptmxmode", "0666"), ("mode", "0620")], nosuid)?);
    pieces.push(fresh("tmpfs", "/dev/shm", &[("mode", "1777"), ("size", "64m")], quiet)?);
    if let Ok(queues) = fresh("mqueue", "/dev/mqueue", &[], quiet) {
        pieces.push(queues);
    }
    Ok(pieces)
}

/// A raw volume of the pod. The driver may have published a device, a link to one, or a file it shows one at.
///
/// Nothing in a mount keeps a device from being written to, so one that must not be is only given if nobody can.
pub(super) fn given(device: &SpecMount) -> Result<Piece, StartError> {
    let SpecMount { source, target, read_only, .. } = device;
    let asked = |why: String| StartError::Asked(format!("the device for {target} cannot be used: {why}"));
    let real = std::fs::canonicalize(source).map_err(|error| asked(format!("{source}: {error}")))?;
    let real = real.to_str().ok_or_else(|| asked(format!("{source} leads to a name that is no text")))?;
    let place = path::open_existing(real, OFlags::PATH).map_err(|error| asked(error.to_string()))?;
    let seen = rustix::fs::fstat(&place).map_err(step(format!("{source} cannot be looked at")))?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::BlockDevice {
        return Err(asked(format!("{source} is not a block device")));
    }
    if *read_only {
        let opened = path::open_existing(real, OFlags::RDONLY).map_err(|error| asked(error.to_string()))?;
        let protected = sys::is_device_read_only(&opened).map_err(step(format!("{source} cannot be asked")))?;
        if !protected {
            let why = "its driver published it writable although only reading was asked for; leave readOnly out";
            return Err(asked(why.to_owned()));
        }
    }
    let tree = clone_tree(&place, "", false).map_err(step(format!("the device at {source} cannot be shown")))?;
    sys::set_mount_attributes(
        &tree,
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
        false,
    )
    .map_err(step(format!("the device for {target} cannot be shown as asked")))?;
    Ok(Piece { tree, target: target.clone(), needed: true })
}

/// Makes an empty file in `/dev`, and the directories above it.
fn make_place(dev: &OwnedFd, path: &str) -> Result<(), Errno> {
    let mut here = rustix::fs::openat(dev, ".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in above.split('/').filter(|part| !part.is_empty()) {
        match rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        here = rustix::fs::openat(&here, part, flags, Mode::empty())?;
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(&here, name, flags, Mode::from_raw_mode(0o444)).map(drop)
}

fn populate(dev: &OwnedFd) -> Result<(), Errno> {
    for name in NODES {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        drop(rustix::fs::openat(dev, name, flags, Mode::from_raw_mode(0o444))?);
    }
    for name in ["pts", "shm", "mqueue"] {
        rustix::fs::mkdirat(dev, name, Mode::from_raw_mode(0o755))?;
    }
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, dev, name)?;
    }
    Ok(())
}
