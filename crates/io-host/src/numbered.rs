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

/// What the mount table calls the attributes of a mount, and the flags of a filesystem.
const ATTRIBUTES: [(u32, &str); 6] =
    [(0x1, "ro"), (0x2, "nosuid"), (0x4, "nodev"), (0x8, "noexec"), (0x10, "noatime"), (0x80, "nodiratime")];
const FLAGS: [(u32, &str); 3] = [(0x1, "ro"), (0x10, "sync"), (0x80, "dirsync")];
/// The attributes that say when access times are written; none of them means `relatime`.
const ACCESS_TIMES: u32 = 0x70;

fn entry(id: u64, told: sys::MountDetails) -> MountEntry {
    let named = |table: &[(u32, &str)], bits: u32| -> Vec<String> {
        table.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect()
    };
    let mut options = named(&ATTRIBUTES, told.attributes);
    if told.attributes & ACCESS_TIMES == 0 {
        options.push("relatime".to_owned());
    }
    options.extend(named(&FLAGS, told.flags));
    options.extend(told.options.split(',').filter(|option| !option.is_empty()).map(str::to_owned));
    let read_only = options.iter().any(|option| option == "ro");
    let (target, source, fstype, root) = (told.target, told.source, told.fstype, told.root);
    let shared = Some(told.peers).filter(|group| *group != 0);
    MountEntry { id, target, source, fstype, read_only, root, device: told.device, options, shared }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;

    #[test]
    fn single_mounts_are_told_as_the_whole_table_tells_them() {
        let (single, newest) = match mounts_since(0) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
            answer => answer.unwrap(),
        };
        assert!(newest >= single.iter().map(|entry| entry.id).max().unwrap());
        let all = mounts().unwrap();
        // Others mount and unmount meanwhile; the machine's own mounts stay.
        for place in ["/proc", "/sys", "/dev"] {
            let Some(expected) = all.iter().rfind(|entry| entry.target == place) else { continue };
            let found = single.iter().rfind(|entry| entry.target == place).unwrap();
            assert_eq!(
                (&found.source, &found.fstype, &found.root),
                (&expected.source, &expected.fstype, &expected.root)
            );
            assert_eq!(
                (found.read_only, found.device, found.shared),
                (expected.read_only, expected.device, expected.shared)
            );
            for flag in ["nosuid", "nodev", "noexec", "noatime", "relatime", "sync"] {
                let has = |entry: &MountEntry| entry.options.iter().any(|option| option == flag);
                assert_eq!(has(found), has(expected), "{flag} at {place}");
            }
            let again = mount_at(place).unwrap().unwrap();
            assert_eq!((again.target.as_str(), again.id), (place, found.id));
        }
        assert_eq!(mount_at("/no/such/place").unwrap(), None);
    }
}
