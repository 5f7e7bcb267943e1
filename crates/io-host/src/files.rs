//! Directories and plain files: made durably, removed one at a time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::path::{self, Place};
use crate::tree;

/// Ends the name of a file that is being written. A crash may leave one: the next write of the same file replaces it,
/// removing the file removes it too, and [`list_dir`] does not show it.
const PARTIAL: &str = ".longshore-partial";

/// Makes a directory and those above it, each durable before the next is made in it.
pub(crate) fn make_dir(path: &str) -> Result<(), HostError> {
    make_dirs(path, true)
}

/// The same for a place to mount at, which nobody misses after a crash.
pub(crate) fn make_place(path: &str) -> Result<(), HostError> {
    make_dirs(path, false)
}

/// The same for a directory that every user may write to, as an emptyDir of Kubernetes.
pub(crate) fn make_scratch(path: &str) -> Result<(), HostError> {
    make_dirs(path, false)?;
    let dir = path::open_existing(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    rustix::fs::fchmod(&dir, Mode::from_raw_mode(0o777)).map_err(begun("open to all", path))
}

fn make_dirs(path: &str, durable: bool) -> Result<(), HostError> {
    let parts = path::components(path)?;
    let mut dir = path::openat2(rustix::fs::CWD, "/", OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(|errno| path::explain("/", errno))?;
    for part in parts {
        let next = path::openat2(&dir, part, OFlags::RDONLY | OFlags::DIRECTORY);
        dir = match next {
            Ok(next) => next,
            Err(Errno::NOENT) => make_one(&dir, part, path, durable)?,
            Err(errno) => return Err(path::explain(path, errno)),
        };
    }
    Ok(())
}

fn make_one(dir: &OwnedFd, name: &str, path: &str, durable: bool) -> Result<OwnedFd, HostError> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o750)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(begun("make the directory", path)(errno)),
    }
    if durable {
        rustix::fs::fsync(dir).map_err(begun("sync the directory above", path))?;
    }
    path::openat2(dir, name, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|errno| path::explain(path, errno))
}

/// Removes an empty directory that is no mount point.
pub(crate) fn remove_dir(path: &str) -> Result<(), HostError> {
    let Some(place) = path::place(path)? else { return Ok(()) };
    unlink_dir(&place)?;
    place.sync()
}

fn unlink_dir(place: &Place<'_>) -> Result<(), HostError> {
    let path = place.path;
    let Some(seen) = place.seen()? else { return Ok(()) };
    if path::kind(&seen) != FileType::Directory {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a directory" });
    }
    if path::is_mount_root(&seen) {
        return Err(HostError::MountPoint { path: path.to_owned() });
    }
    match rustix::fs::unlinkat(&place.parent, place.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(HostError::NotEmpty { path: path.to_owned() }),
        Err(Errno::BUSY) => Err(HostError::MountPoint { path: path.to_owned() }),
        Err(errno) => Err(refused("remove the directory", path)(errno)),
    }
}

/// Makes a file hold exactly these bytes: written aside, synced, renamed over, and the directory synced. Directories
/// above it that are missing are made.
pub(crate) fn write_file(path: &str, bytes: &[u8]) -> Result<(), HostError> {
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        make_dir(parent)?;
    }
    let place = path::place_existing(path)?;
    match place.seen()?.as_ref().map(path::kind) {
        None | Some(FileType::RegularFile) => {}
        Some(_) => return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a plain file" }),
    }
    put_file(&place, bytes)
}

fn put_file(place: &Place<'_>, bytes: &[u8]) -> Result<(), HostError> {
    let (partial, mut file) = create_partial(place)?;
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        // On a full disk it would keep the room that somebody needs to make room.
        let _ = unlink_partial(place);
        return Err(os("write", place.path, error, false));
    }
    rustix::fs::renameat(&place.parent, &partial, &place.parent, place.name).map_err(begun("replace", place.path))?;
    place.sync()
}

/// A new file for its owner only, beside the place it is meant for.
pub(crate) fn create_partial(place: &Place<'_>) -> Result<(String, File), HostError> {
    let partial = partial_name(place.name);
    unlink_partial(place)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.parent, &partial, flags, Mode::from_raw_mode(0o600))
        .map_err(refused("create a file beside", place.path))?;
    Ok((partial, File::from(file)))
}

pub(crate) fn partial_name(name: &str) -> String {
    format!(".{name}{PARTIAL}")
}

/// How many bytes on disk a copy of an image to this path has come to so far, while it is being made. Nobody counts those
/// of a directory.
pub fn copied_so_far(path: &str) -> Option<u64> {
    let place = path::place(path).ok()??;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let seen = rustix::fs::statat(&place.parent, partial_name(place.name), flags).ok()?;
    let is_file = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile;
    u64::try_from(seen.st_blocks).ok().filter(|_| is_file)?.checked_mul(512)
}

pub(crate) fn unlink_partial(place: &Place<'_>) -> Result<(), HostError> {
    match rustix::fs::unlinkat(&place.parent, partial_name(place.name), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // A name too long for a partial file never had one.
        Err(Errno::NAMETOOLONG) => Ok(()),
        // Half a copy of a directory.
        Err(Errno::ISDIR) => {
            let folder = place.path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
            tree::remove_tree(&format!("{folder}/{}", partial_name(place.name)))
        }
        Err(errno) => Err(refused("remove what an earlier write left beside", place.path)(errno)),
    }
}

/// Removes a plain file that no loop device shows.
pub(crate) fn remove_file(path: &str) -> Result<(), HostError> {
    let Some(place) = path::place(path)? else { return Ok(()) };
    unlink_file(&place)?;
    place.sync()
}

fn unlink_file(place: &Place<'_>) -> Result<(), HostError> {
    let path = place.path;
    unlink_partial(place)?;
    let Some(seen) = place.seen()? else { return Ok(()) };
    if path::kind(&seen) != FileType::RegularFile {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a plain file" });
    }
    if path::is_mount_root(&seen) {
        return Err(HostError::MountPoint { path: path.to_owned() });
    }
    // Behind a loop device a removed file lives on, invisible; and its inode number would be given to the next file.
    if let Some(used) = crate::loops::showing(&seen)?.first() {
        let why = format!("it is attached to {}", used.device);
        return Err(HostError::Busy { what: path.to_owned(), why });
    }
    match rustix::fs::unlinkat(&place.parent, place.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(HostError::MountPoint { path: path.to_owned() }),
        Err(errno) => Err(refused("remove", path)(errno)),
    }
}

/// Makes a sparse file of exactly this size. It appears with its size or not at all, so that a crash leaves no file of
/// size zero that would be refused for ever after.
pub(crate) fn create_image(path: &str, size: u64) -> Result<(), HostError> {
    let place = path::place_existing(path)?;
    if is_image(&place, size)? {
        return place.sync();
    }
    let (partial, file) = create_partial(&place)?;
    rustix::fs::ftruncate(&file, size).map_err(refused("give its size to", path))?;
    rustix::fs::fsync(&file).map_err(refused("sync", path))?;
    match rustix::fs::renameat_with(&place.parent, &partial, &place.parent, place.name, RenameFlags::NOREPLACE) {
        Ok(()) => place.sync(),
        Err(Errno::EXIST) => {
            unlink_partial(&place)?;
            is_image(&place, size)?;
            place.sync()
        }
        Err(errno) => Err(begun("create", path)(errno)),
    }
}

/// Makes an image larger. Never smaller: that would cut off somebody's bytes.
pub(crate) fn grow_image(path: &str, size: u64) -> Result<(), HostError> {
    let file = File::from(path::open_existing(path, OFlags::RDWR | OFlags::NONBLOCK)?);
    let meta = file.metadata().map_err(|error| os("look at", path, error, false))?;
    if !meta.is_file() {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a plain file" });
    }
    if meta.len() < size {
        rustix::fs::ftruncate(&file, size).map_err(refused("give its size to", path))?;
    }
    rustix::fs::fsync(&file).map_err(begun("sync", path))
}

/// Makes an empty plain file, as a place to show a device at, and the directories above it.
pub(crate) fn make_file(path: &str) -> Result<(), HostError> {
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        make_place(parent)?;
    }
    let place = path::place_existing(path)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&place.parent, place.name, flags, Mode::from_raw_mode(0o600)) {
        Ok(_) => Ok(()),
        Err(Errno::EXIST) => match place.seen()? {
            Some(seen) if path::kind(&seen) == FileType::RegularFile || path::is_mount_root(&seen) => Ok(()),
            Some(_) | None => Err(HostError::WrongKind { path: path.to_owned(), wanted: "a plain file" }),
        },
        Err(errno) => Err(refused("create", path)(errno)),
    }
}

/// Removes what a volume was shown at: an empty directory or an empty plain file.
pub(crate) fn remove_target(path: &str) -> Result<(), HostError> {
    let Some(place) = path::place(path)? else { return Ok(()) };
    match place.seen()? {
        Some(seen) if path::is_mount_root(&seen) => Err(HostError::MountPoint { path: path.to_owned() }),
        Some(seen) if path::kind(&seen) == FileType::RegularFile => {
            // Nothing is written to a place a device is shown at, so a file with content is somebody else's.
            if seen.stx_size != 0 {
                return Err(HostError::NotEmpty { path: path.to_owned() });
            }
            unlink_file(&place)
        }
        Some(_) | None => unlink_dir(&place),
    }
}

fn is_image(place: &Place<'_>, wanted: u64) -> Result<bool, HostError> {
    let Some(seen) = place.seen()? else { return Ok(false) };
    let path = place.path.to_owned();
    if path::kind(&seen) != FileType::RegularFile {
        return Err(HostError::WrongKind { path, wanted: "a plain file" });
    }
    if seen.stx_size != wanted {
        return Err(HostError::WrongSize { path, found: seen.stx_size, wanted });
    }
    Ok(true)
}

/// The content of a plain file, `None` if it is not there. Symbolic links are not followed.
pub fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Not to block on a FIFO somebody put there.
    let Some(fd) = path::open(utf8(path)?, OFlags::RDONLY | OFlags::NONBLOCK).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let mut file = File::from(fd);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(HostError::WrongKind { path: utf8(path)?.to_owned(), wanted: "a plain file" }));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The names in a directory, sorted, none of them looked at; empty if it is not there. Symbolic links are not followed.
pub fn list_dir(path: &Path) -> io::Result<Vec<String>> {
    let found = path::open(utf8(path)?, OFlags::RDONLY | OFlags::DIRECTORY).map_err(io::Error::other)?;
    let Some(dir) = found else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::new(dir)? {
        let name = String::from_utf8_lossy(entry?.file_name().to_bytes()).into_owned();
        if name != "." && name != ".." && !is_partial(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn is_partial(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(PARTIAL)
}

/// Removes what writes that were cut off left in a directory. For the start of a process, while nobody else writes
/// there: a write under way would lose its file, and fail.
pub fn remove_partials(path: &Path) -> io::Result<()> {
    let found = path::open(utf8(path)?, OFlags::RDONLY | OFlags::DIRECTORY).map_err(io::Error::other)?;
    let Some(dir) = found else { return Ok(()) };
    for entry in rustix::fs::Dir::read_from(&dir)? {
        let entry = entry?;
        let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
        if !is_partial(&name) {
            continue;
        }
        match rustix::fs::unlinkat(&dir, entry.file_name(), AtFlags::empty()) {
            Err(Errno::ISDIR) => {
                tree::remove_tree(&format!("{}/{name}", utf8(path)?)).map_err(io::Error::other)?;
            }
            answer => answer?,
        }
    }
    Ok(())
}

fn utf8(path: &Path) -> io::Result<&str> {
    let bytes: &OsStr = path.as_os_str();
    std::str::from_utf8(bytes.as_bytes()).map_err(|_| io::Error::other("the path is not UTF-8"))
}

fn within<'a>(dir: &OwnedFd, name: &'a str) -> Result<Place<'a>, HostError> {
    let parent = dir.try_clone().map_err(|error| os("use", name, error, false))?;
    Ok(Place { parent, name, path: name })
}

/// Writes a file in an open directory, durably, for its owner only. For the state of processes, as the next two.
pub(crate) fn put_at(dir: &OwnedFd, name: &str, bytes: &[u8]) -> Result<(), HostError> {
    put_file(&within(dir, name)?, bytes)
}

/// The same, but after a crash of the machine the file may be missing, empty or old. It is never half there otherwise.
pub(crate) fn put_loosely_at(dir: &OwnedFd, name: &str, bytes: &[u8]) -> Result<(), HostError> {
    let place = within(dir, name)?;
    let (partial, mut file) = create_partial(&place)?;
    file.write_all(bytes).map_err(|error| os("write", name, error, false))?;
    rustix::fs::renameat(dir, &partial, dir, name).map_err(begun("replace", name))
}

/// Removes a file of ours, or an empty directory of ours, from an open directory. Missing is done. Not yet durable.
pub(crate) fn drop_at(dir: &OwnedFd, name: &str, how: AtFlags) -> Result<(), HostError> {
    unlink_partial(&within(dir, name)?)?;
    match rustix::fs::unlinkat(dir, name, how) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(begun("remove", name)(errno)),
    }
}
