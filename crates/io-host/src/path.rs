//! Absolute paths, resolved without symbolic links; the last component is always used relative to its open parent.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::error::{HostError, refused};

/// No link of any kind is followed.
pub(crate) const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// A place in the tree: its open parent directory and its name there.
pub(crate) struct Place<'a> {
    /// The directory it is in.
    pub parent: OwnedFd,
    /// Its last component.
    pub name: &'a str,
    /// The whole path, for messages.
    pub path: &'a str,
}

/// The components of a path we accept: absolute, no `..`, no NUL, something after the root.
pub(crate) fn components(path: &str) -> Result<Vec<&str>, HostError> {
    let bad = |why| HostError::Path { path: path.to_owned(), why };
    if !path.starts_with('/') {
        return Err(bad("is not absolute"));
    }
    if path.contains('\0') {
        return Err(bad("contains a NUL byte"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(bad("contains '..'"));
    }
    if parts.is_empty() {
        return Err(bad("is the root directory"));
    }
    Ok(parts)
}

/// Opens something by its whole path, or `None` if it is not there.
pub(crate) fn open(path: &str, flags: OFlags) -> Result<Option<OwnedFd>, HostError> {
    components(path)?;
    match openat2(rustix::fs::CWD, path, flags) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(explain(path, errno)),
    }
}

/// Opens something that must be there.
pub(crate) fn open_existing(path: &str, flags: OFlags) -> Result<OwnedFd, HostError> {
    open(path, flags)?.ok_or_else(|| HostError::Missing { path: path.to_owned() })
}

/// Opens the parent of a path, or `None` if that is not there.
pub(crate) fn place(path: &str) -> Result<Option<Place<'_>>, HostError> {
    let parts = components(path)?;
    let (name, above) = parts.split_last().ok_or(HostError::Path { path: path.to_owned(), why: "is empty" })?;
    let parent = format!("/{}", above.join("/"));
    match openat2(rustix::fs::CWD, &parent, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(parent) => Ok(Some(Place { parent, name, path })),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(explain(&parent, errno)),
    }
}

/// The parent of a path, which must be there.
pub(crate) fn place_existing(path: &str) -> Result<Place<'_>, HostError> {
    place(path)?.ok_or_else(|| {
        let parent = path.trim_end_matches('/').rsplit_once('/').map_or("/", |(parent, _)| parent);
        HostError::Missing { path: parent.to_owned() }
    })
}

impl Place<'_> {
    /// What is there, without following a link and without asking a server that may hang. `None`: nothing is.
    pub(crate) fn look(&self) -> Result<Option<Statx>, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        match rustix::fs::statx(&self.parent, self.name, flags, StatxFlags::BASIC_STATS) {
            Ok(seen) => Ok(Some(seen)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The same, with an error for the caller.
    pub(crate) fn seen(&self) -> Result<Option<Statx>, HostError> {
        self.look().map_err(refused("look at", self.path))
    }

    /// Makes the directory's entries durable.
    pub(crate) fn sync(&self) -> Result<(), HostError> {
        rustix::fs::fsync(&self.parent).map_err(crate::error::begun("sync the directory of", self.path))
    }
}

/// How often a lookup that was disturbed is repeated at once, and at all.
const AT_ONCE: u32 = 16;
const AT_MOST: u32 = 5_000;

/// `openat2` without links; close-on-exec always.
pub(crate) fn openat2(dir: impl std::os::fd::AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        // EAGAIN: a rename elsewhere disturbed the lookup and the kernel asks for another try, or somebody has a lease on
        // the file and is asked to give it back, which takes a moment.
        match rustix::fs::openat2(&dir, path, flags | OFlags::CLOEXEC, Mode::empty(), NO_LINKS) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if tries < AT_ONCE => tries += 1,
            Err(Errno::AGAIN) if tries < AT_MOST => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            answer => return answer,
        }
    }
}

/// A name for calls that take one that ends with NUL.
pub(crate) fn c_name(name: &str) -> Result<std::ffi::CString, HostError> {
    std::ffi::CString::new(name).map_err(|_| HostError::Path { path: name.to_owned(), why: "contains a NUL byte" })
}

/// The kernel's answer to opening a path, in our words.
pub(crate) fn explain(path: &str, errno: Errno) -> HostError {
    match errno {
        Errno::LOOP => HostError::Symlink { path: path.to_owned() },
        Errno::NOTDIR => HostError::WrongKind { path: path.to_owned(), wanted: "a directory" },
        Errno::NOENT => HostError::Missing { path: path.to_owned() },
        errno => refused("open", path)(errno),
    }
}

/// The file type in a `statx` answer.
pub(crate) fn kind(seen: &Statx) -> FileType {
    FileType::from_raw_mode(u32::from(seen.stx_mode))
}

/// The root of a mount is here, also one bound from the same filesystem, which device numbers do not show.
pub(crate) fn is_mount_root(seen: &Statx) -> bool {
    seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_without_dots_and_nul_are_accepted() {
        assert_eq!(components("/a//b/./c/").unwrap(), ["a", "b", "c"]);
        for bad in ["", "a/b", "/", "//.", "/a/../b", "/a\0b"] {
            let error = components(bad).unwrap_err();
            assert!(matches!(error, HostError::Path { .. }) && error.certain(), "{bad:?}");
        }
    }
}
