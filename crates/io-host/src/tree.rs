//! A directory removed with everything in it, without following a link or crossing a mount.

pub(crate) mod copy;
pub(crate) mod walk;

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::files::unlink_partial;
use crate::mountinfo::mounts_beneath;
use crate::path;

/// Begins the name of a directory that was taken out of its own to be removed.
const TAKEN_OUT: &str = ".longshore-removed-";

/// Removes a directory and all it holds.
///
/// A directory in it that is not empty is moved up into it, so that a tree of any depth needs one open directory and no
/// recursion. Nothing is removed before the mount table shows no mount in it, and every step looks again.
pub(crate) fn remove_tree(path: &str) -> Result<(), HostError> {
    let Some(place) = path::place(path)? else { return Ok(()) };
    unlink_partial(&place)?;
    let Some(seen) = place.seen()? else { return place.sync() };
    if path::kind(&seen) != FileType::Directory {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a directory" });
    }
    let inside = mounts_beneath(path).map_err(|error| os("read", "the mount table", error, false))?;
    if let Some(mount) = inside.first() {
        return Err(HostError::MountPoint { path: mount.target.clone() });
    }
    if path::is_mount_root(&seen) {
        return Err(HostError::MountPoint { path: path.to_owned() });
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let top = path::openat2(&place.parent, place.name, flags).map_err(|errno| path::explain(path, errno))?;
    Emptying { top: &top, path, taken_out: 0 }.all()?;
    match rustix::fs::unlinkat(&place.parent, place.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => place.sync(),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(HostError::NotEmpty { path: path.to_owned() }),
        Err(Errno::BUSY) => Err(HostError::MountPoint { path: path.to_owned() }),
        Err(errno) => Err(begun("remove the directory", path)(errno)),
    }
}

struct Emptying<'a> {
    top: &'a OwnedFd,
    path: &'a str,
    taken_out: u64,
}

impl Emptying<'_> {
    /// Empties the directory. Somebody may add to it meanwhile: then removing it is refused in the end.
    fn all(&mut self) -> Result<(), HostError> {
        loop {
            let names = self.names(self.top)?;
            if names.is_empty() {
                return Ok(());
            }
            for name in names {
                if !self.remove_one(self.top, &name)? {
                    self.empty(&name)?;
                }
            }
        }
    }

    fn names(&self, dir: &OwnedFd) -> Result<Vec<CString>, HostError> {
        let read = || -> rustix::io::Result<Vec<CString>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(dir)? {
                let name = entry?.file_name().to_owned();
                if name.to_bytes() != b"." && name.to_bytes() != b".." {
                    names.push(name);
                }
            }
            Ok(names)
        };
        read().map_err(begun("list", self.path))
    }

    /// Removes a file, a link or an empty directory. `false`: it is a directory with something in it.
    fn remove_one(&self, dir: &OwnedFd, name: &CString) -> Result<bool, HostError> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let seen = match rustix::fs::statx(dir, name, flags, StatxFlags::TYPE) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return Err(begun("look into", self.path)(errno)),
        };
        if path::is_mount_root(&seen) {
            return Err(self.mount_in_it(name));
        }
        let is_dir = path::kind(&seen) == FileType::Directory;
        let how = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(dir, name, how) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) if is_dir => Ok(false),
            Err(Errno::BUSY) => Err(self.mount_in_it(name)),
            Err(errno) => Err(begun("remove what is in", self.path)(errno)),
        }
    }

    fn mount_in_it(&self, name: &CString) -> HostError {
        HostError::MountPoint { path: format!("{}/…/{}", self.path, name.to_string_lossy()) }
    }

    /// Removes what is in a directory of the top one, and moves its directories up.
    fn empty(&mut self, name: &CString) -> Result<(), HostError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = path::NO_LINKS | rustix::fs::ResolveFlags::NO_XDEV | rustix::fs::ResolveFlags::BENEATH;
        let opened = rustix::fs::openat2(self.top, name, flags, rustix::fs::Mode::empty(), resolve);
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::XDEV) => return Err(self.mount_in_it(name)),
            Err(errno) => return Err(refused("open what is in", self.path)(errno)),
        };
        for inner in self.names(&dir)? {
            if !self.remove_one(&dir, &inner)? {
                self.take_out(&dir, &inner)?;
            }
        }
        self.remove_one(self.top, name).map(|_| ())
    }

    fn take_out(&mut self, dir: &OwnedFd, name: &CString) -> Result<(), HostError> {
        loop {
            self.taken_out += 1;
            let to = format!("{TAKEN_OUT}{}", self.taken_out);
            match rustix::fs::renameat_with(dir, name, self.top, &to, rustix::fs::RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(Errno::BUSY) => return Err(self.mount_in_it(name)),
                Err(errno) => return Err(begun("remove what is in", self.path)(errno)),
            }
        }
    }
}
