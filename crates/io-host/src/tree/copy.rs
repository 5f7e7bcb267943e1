//! A directory copied with everything in it: owners, modes, times, extended attributes, links, holes.
//!
//! The copy is made in a directory beside its place, `tree` in it, with a second name in `links` for every file that has
//! several; when it is whole and on disk it is given its name. What a crash leaves is removed with the next attempt, with
//! the copy, or at the next start.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Statx, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::copy::{Pace, copy_content};
use crate::error::{HostError, begun, refused};
use crate::files::{partial_name, unlink_partial};
use crate::path::{self, Place};
use crate::tree::walk::Visitor;

/// The longest list of attributes, and the longest attribute, that Linux knows.
const LONGEST: usize = 64 << 10;

/// A copy that is being made.
pub(crate) struct Draft {
    /// The directory it is made in.
    work: OwnedFd,
    /// The directory of the copy that is being filled.
    dir: OwnedFd,
    /// How deep in the copy that is.
    depth: u64,
    links: OwnedFd,
    pace: Pace,
    /// The place it is meant for, for messages.
    path: String,
}

impl Draft {
    /// An empty copy beside its place.
    pub(crate) fn begin(place: &Place<'_>, pace: Pace) -> Result<Draft, HostError> {
        unlink_partial(place)?;
        let path = place.path.to_owned();
        let work = make(&place.parent, path::c_name(&partial_name(place.name))?.as_c_str(), &path)?;
        let dir = make(&work, c"tree", &path)?;
        let links = make(&work, c"links", &path)?;
        Ok(Draft { work, dir, depth: 0, links, pace, path })
    }

    /// Gives the whole copy its name, once it is on disk.
    pub(crate) fn appear(&self, place: &Place<'_>) -> Result<(), HostError> {
        rustix::fs::syncfs(&self.work).map_err(refused("sync", place.path))?;
        match rustix::fs::renameat_with(&self.work, c"tree", &place.parent, place.name, RenameFlags::NOREPLACE) {
            // Somebody else's copy under that name is as good.
            Ok(()) | Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            Err(errno) => return Err(begun("create", place.path)(errno)),
        }
        place.sync()?;
        unlink_partial(place)
    }

    /// Links to an earlier copy of the same file. `false`: there is none.
    fn link(&self, name: &CStr, known_as: &str) -> Result<bool, HostError> {
        match rustix::fs::linkat(&self.links, known_as, &self.dir, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(refused("copy to", &self.path)(errno)),
        }
    }

    fn make_other(&self, name: &CStr, one: &OwnedFd, seen: &Statx) -> rustix::io::Result<()> {
        let private = Mode::from_raw_mode(0o600);
        match path::kind(seen) {
            FileType::RegularFile => {
                // By its descriptor: whatever has that name by now, this is the file that was looked at.
                let flags = OFlags::RDONLY | OFlags::NOATIME | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let from = File::from(rustix::fs::open(itself(one), flags, Mode::empty())?);
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let to = File::from(rustix::fs::openat(&self.dir, name, flags, private)?);
                copy_content(&from, &to, self.pace)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(one, c"", Vec::new())?;
                rustix::fs::symlinkat(target.as_c_str(), &self.dir, name)
            }
            kind => {
                let device = rustix::fs::makedev(seen.stx_rdev_major, seen.stx_rdev_minor);
                rustix::fs::mknodat(&self.dir, name, kind, private, device)
            }
        }
    }
}

impl Visitor for Draft {
    fn enter(&mut self, name: &CStr) -> Result<(), HostError> {
        self.dir = make(&self.dir, name, &self.path)?;
        self.depth += 1;
        Ok(())
    }

    /// A directory gets its times when nothing is made in it any more.
    fn leave(&mut self, dir: &OwnedFd, seen: &Statx) -> Result<(), HostError> {
        dress(dir, &self.dir, seen).map_err(refused("copy to", &self.path))?;
        if self.depth > 0 {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = rustix::fs::openat(&self.dir, c"..", flags, Mode::empty());
            self.dir = above.map_err(refused("copy to", &self.path))?;
            self.depth -= 1;
        }
        Ok(())
    }

    fn other(&mut self, name: &CStr, one: &OwnedFd, seen: &Statx) -> Result<(), HostError> {
        let known_as = format!("{:x}-{:x}-{:x}", seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino);
        let has_more_names = seen.stx_nlink > 1;
        if has_more_names && self.link(name, &known_as)? {
            return Ok(());
        }
        let made = || -> rustix::io::Result<()> {
            self.make_other(name, one, seen)?;
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dress(one, &rustix::fs::openat(&self.dir, name, flags, Mode::empty())?, seen)?;
            if has_more_names {
                rustix::fs::linkat(&self.dir, name, &self.links, known_as.as_str(), AtFlags::empty())?;
            }
            Ok(())
        };
        made().map_err(refused("copy to", &self.path))
    }
}

fn make(dir: &OwnedFd, name: &CStr, path: &str) -> Result<OwnedFd, HostError> {
    let made = || -> rustix::io::Result<OwnedFd> {
        rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o700))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(dir, name, flags, Mode::empty())
    };
    made().map_err(refused("copy to", path))
}

/// A descriptor's own thing by path, for calls that take no descriptor that is a place only. A link's is the link.
fn itself(one: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", one.as_raw_fd())
}

/// Gives a copy the owner, mode, attributes and times of what it is a copy of, in the order in which none undoes another.
fn dress(from: &OwnedFd, to: &OwnedFd, seen: &Statx) -> rustix::io::Result<()> {
    let (owner, group) = (Uid::from_raw(seen.stx_uid), Gid::from_raw(seen.stx_gid));
    rustix::fs::chownat(to, c"", Some(owner), Some(group), AtFlags::EMPTY_PATH)?;
    if path::kind(seen) != FileType::Symlink {
        rustix::fs::chmod(itself(to), Mode::from_raw_mode(u32::from(seen.stx_mode) & 0o7777))?;
    }
    copy_attributes(&itself(from), &itself(to))?;
    let time = |at: rustix::fs::StatxTimestamp| Timespec { tv_sec: at.tv_sec, tv_nsec: i64::from(at.tv_nsec) };
    let times = Timestamps { last_access: time(seen.stx_atime), last_modification: time(seen.stx_mtime) };
    rustix::fs::utimensat(CWD, itself(to), &times, AtFlags::empty())
}

/// Extended attributes; access lists are among them.
fn copy_attributes(from: &str, to: &str) -> rustix::io::Result<()> {
    let mut list = vec![0; LONGEST];
    let length = match rustix::fs::listxattr(from, &mut list[..]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
        Ok(length) => length,
        Err(errno) => return Err(errno),
    };
    let mut value = vec![0; LONGEST];
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        match rustix::fs::getxattr(from, name, &mut value[..]) {
            Ok(length) => rustix::fs::setxattr(to, name, &value[..length], XattrFlags::empty())?,
            // Taken away in this moment, which the second look tells.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
