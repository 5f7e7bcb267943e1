//! The devices a process has: none of the machine's but those every program may use.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::root::{Piece, clone_tree, fresh};
use super::{StartError, step};
use crate::sys;

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
pub(super) fn pieces() -> Result<Vec<Piece>, StartError> {
    let plain = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let quiet = plain | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let dev = fresh("tmpfs", "/dev", &[("mode", "0755"), ("size", "64k")], quiet)?;
    populate(&dev.tree).map_err(step("/dev of the process cannot be filled"))?;
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
