//! Single mounts by the kernel's number for them, so that looking at one does not cost reading about all.
//!
//! Needs Linux 6.13. Where the kernel is older every function here answers with [`io::ErrorKind::Unsupported`], and the
//! caller reads the whole table ([`crate::mounts`]).

use std::io;

use rustix::fs::{AtFlags, StatxFlags};

use crate::error::HostError;
use crate::mountinfo::MountEntry;
use crate::{path, sys};

/// How many new mounts are asked for with one call.
const BATCH: usize = 256;

/// Every mount made after the one with this number, those made first first, and the newest number; from 0 on, all of
/// them. Numbers are never used twice.
pub fn mounts_since(number: u64) -> io::Result<(Vec<MountEntry>, u64)> {
    let (mut found, mut newest) = (Vec::new(), number);
    loop {
        let mut numbers = [0; BATCH];
        let count = sys::list_mounts(newest, &mut numbers)?;
        for number in numbers.iter().take(count) {
            newest = newest.max(*number);
            // One that is gone again meanwhile is gone.
            found.extend(numbered(*number)?);
        }
        if count < BATCH {
            return Ok((found, newest));
        }
    }
}

/// The mount on top at a path; `None` if none begins there. A path through a symbolic link has none.
pub fn mount_at(path: &str) -> io::Result<Option<MountEntry>> {
    let place = match path::place(path) {
        Ok(Some(place)) => place,
        Ok(None) | Err(HostError::Symlink { .. } | HostError::WrongKind { .. } | HostError::Path { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::from_bits_retain(sys::STATX_MNT_ID_UNIQUE);
    let seen = match rustix::fs::statx(&place.parent, place.name, flags, wanted) {
        Ok(seen) => seen,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NAMETOOLONG) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if !path::is_mount_root(&seen) {
        return Ok(None);
    }
    if seen.stx_mask & sys::STATX_MNT_ID_UNIQUE == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    numbered(seen.stx_mnt_id)
}

/// The mount with a number, `None` if it is gone.
pub(crate) fn numbered(number: u64) -> io::Result<Option<MountEntry>> {
    let mut room = 4096;
    loop {
        match sys::mount_details(number, room) {
            Ok(told) => return Ok(Some(entry(number, told))),
            Err(error) => match error.raw_os_error() {
                Some(libc::EOVERFLOW) if room < 1 << 20 => room *= 4,
                Some(libc::ENOENT) => return Ok(None),
                _ => return Err(error),
            },
        }
    }
}

fn entry(id: u64, told: sys::MountDetails) -> MountEntry {
    let mut options: Vec<String> = told.options.split(',').map(str::to_owned).collect();
    if told.read_only {
        options.push("ro".to_owned());
    }
    let (target, source, fstype, root) = (told.target, told.source, told.fstype, told.root);
    MountEntry { id, target, source, fstype, read_only: told.read_only, root, device: told.device, options }
}
