//! The files of a volume given to a group, as kubelet does it for a pod's `fsGroup`.
//!
//! Children come first and the root of the volume last. So a change that was cut short shows at the root, and doing it
//! again finishes it: what is the group's already is only looked at.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Statx};
use rustix::io::Errno;

use crate::error::{HostError, begun};
use crate::path;
use crate::tree::walk::{Upset, Visitor, beginning, pause, walk};

/// Owner and group may read and write files, and enter directories; what is made in a directory belongs to its group.
const FILE: u16 = 0o660;
const DIRECTORY: u16 = 0o2770;
/// A tree that somebody changes is walked again so often before the change is given up for now.
const TRIES: u32 = 10;

/// Gives everything in a directory, and the directory itself, to a group. No link is followed and no mount crossed.
pub(crate) fn set_group(path: &str, group: u32, only_if_root_differs: bool) -> Result<(), HostError> {
    let top = path::open_existing(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut giving = Giving { group, path };
    for _ in 0..TRIES {
        let seen = crate::tree::walk::look(&top, path)?;
        if only_if_root_differs && giving.is_given(&seen, DIRECTORY) {
            return Ok(());
        }
        match walk(&top, path, beginning(), &mut giving) {
            Ok(_) => return Ok(()),
            Err(Upset::Changed) => std::thread::sleep(pause()),
            Err(Upset::Failed(error)) => return Err(error),
        }
    }
    let why = "somebody keeps changing what is in it, so it is not the group's yet".to_owned();
    Err(HostError::Busy { what: path.to_owned(), why })
}

struct Giving<'a> {
    group: u32,
    path: &'a str,
}

impl Giving<'_> {
    fn is_given(&self, seen: &Statx, mode: u16) -> bool {
        seen.stx_gid == self.group && seen.stx_mode & mode == mode
    }

    fn give(&self, one: &OwnedFd, seen: &Statx, more: u16) -> Result<(), HostError> {
        if self.is_given(seen, more) {
            return Ok(());
        }
        let group = Some(Gid::from_raw(self.group));
        self.tolerate(rustix::fs::chownat(one, c"", None, group, AtFlags::EMPTY_PATH))?;
        if more != 0 {
            // The descriptor may be a place only, whose mode is changed by its name in /proc. It is no link.
            let name = format!("/proc/self/fd/{}", one.as_raw_fd());
            let mode = Mode::from_raw_mode(u32::from(seen.stx_mode & 0o7777 | more));
            self.tolerate(rustix::fs::chmod(Path::new(&name), mode))?;
        }
        Ok(())
    }

    /// Single files that cannot be given are left, as kubelet leaves them: their filesystem may know no groups.
    fn tolerate(&self, done: Result<(), Errno>) -> Result<(), HostError> {
        match done {
            Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::NOENT | Errno::OPNOTSUPP | Errno::ROFS) => Ok(()),
            Err(errno) => Err(begun("give to a group what is in", self.path)(errno)),
        }
    }
}

impl Visitor for Giving<'_> {
    fn enter(&mut self, _: &CStr) -> Result<(), HostError> {
        Ok(())
    }

    fn leave(&mut self, dir: &OwnedFd, seen: &Statx) -> Result<(), HostError> {
        self.give(dir, seen, DIRECTORY)
    }

    fn other(&mut self, _: &CStr, one: &OwnedFd, seen: &Statx) -> Result<(), HostError> {
        let more = if path::kind(seen) == FileType::Symlink { 0 } else { FILE };
        self.give(one, seen, more)
    }
}
