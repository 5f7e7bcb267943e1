//! A directory that shows exactly some files, all of them changed at once.
//!
//! The layout is Kubernetes': the files are in a directory whose name begins with two dots, the link `..data` names it,
//! and each entry a reader sees is a link through `..data`. To show other files a new directory is written beside the
//! old one, and `..data` is turned over to it by one rename. Nobody sees a mixture, and whoever holds the old directory
//! open reads on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use control::host::ShownFile;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::{files, path, tree};

/// The link that everything is seen through, and the name it has before it is in its place.
const DATA: &str = "..data";
const NEXT: &str = "..data_tmp";

type Files = BTreeMap<String, ShownFile>;

/// Makes a directory show exactly these files.
pub(crate) fn show(path: &str, files: &Files, group: Option<u32>) -> Result<(), HostError> {
    check(files)?;
    files::make_place(path)?;
    let dir = path::open_existing(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let shown = linked(&dir);
    if let Some(shown) = &shown
        && is_same(&dir, shown, files, group)
    {
        return tidy(&dir, path, files, shown);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let fresh = format!("..{}.{:09}", since.as_secs(), since.subsec_nanos());
    make_dir(&dir, &fresh, group).map_err(begun("write to", path))?;
    let inner = open_dir(&dir, &fresh).map_err(begun("write to", path))?;
    for (name, file) in files {
        if let Err(error) = put(&inner, name, file, group) {
            drop(inner);
            // What a full disk holds of it must not stay.
            let _ = tree::remove_tree(&format!("{path}/{fresh}"));
            return Err(os("write to", path, error, true));
        }
    }
    open_up(&dir, group).map_err(begun("open to readers", path))?;
    let _ = rustix::fs::unlinkat(&dir, NEXT, AtFlags::empty());
    rustix::fs::symlinkat(fresh.as_str(), &dir, NEXT).map_err(begun("link in", path))?;
    rustix::fs::renameat(&dir, NEXT, &dir, DATA).map_err(begun("turn over", path))?;
    tidy(&dir, path, files, &fresh)
}

/// Relative paths that stay beneath, and do not take the names that are ours.
fn check(files: &Files) -> Result<(), HostError> {
    for name in files.keys() {
        let bad = |why| Err(HostError::Path { path: name.clone(), why });
        if name.contains('\0') {
            return bad("contains a NUL byte");
        }
        if name.starts_with("..") {
            return bad("begins with '..'");
        }
        if name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            return bad("is no path within a volume");
        }
    }
    Ok(())
}

fn linked(dir: &OwnedFd) -> Option<String> {
    let told = rustix::fs::readlinkat(dir, DATA, Vec::new()).ok()?.into_string().ok()?;
    (told.starts_with("..") && !told.contains('/')).then_some(told)
}

fn open_dir(dir: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    path::openat2(dir, name, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// A directory that everybody may look into, or the group too where files are the group's.
fn make_dir(dir: &OwnedFd, name: &str, group: Option<u32>) -> Result<(), Errno> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    open_up(&open_dir(dir, name)?, group)
}

fn open_up(dir: &OwnedFd, group: Option<u32>) -> Result<(), Errno> {
    if let Some(group) = group {
        rustix::fs::fchown(dir, None, Some(Gid::from_raw(group)))?;
    }
    rustix::fs::fchmod(dir, Mode::from_raw_mode(if group.is_some() { 0o2755 } else { 0o755 }))
}

/// What a group is given, it may read.
fn mode(file: &ShownFile, group: Option<u32>) -> u32 {
    if group.is_some() { file.mode | 0o440 } else { file.mode }
}

fn put(dir: &OwnedFd, name: &str, file: &ShownFile, group: Option<u32>) -> std::io::Result<()> {
    let mut above = String::new();
    let (dirs, _) = name.rsplit_once('/').unwrap_or(("", name));
    for part in dirs.split('/').filter(|part| !part.is_empty()) {
        above = if above.is_empty() { part.to_owned() } else { format!("{above}/{part}") };
        make_dir(dir, &above, group)?;
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let resolve = path::NO_LINKS | ResolveFlags::BENEATH;
    let made = rustix::fs::openat2(dir, name, flags, Mode::from_raw_mode(0o600), resolve)?;
    let mut made = File::from(made);
    made.write_all(&file.bytes.0)?;
    rustix::fs::fchown(&made, file.user.map(Uid::from_raw), group.map(Gid::from_raw))?;
    Ok(rustix::fs::fchmod(&made, Mode::from_raw_mode(mode(file, group)))?)
}

/// The directory holds these files and no others, with their owners and modes.
fn is_same(dir: &OwnedFd, shown: &str, files: &Files, group: Option<u32>) -> bool {
    let Ok(inner) = open_dir(dir, shown) else { return false };
    let same = |(name, file): (&String, &ShownFile)| {
        let Ok(there) = path::openat2(&inner, name, OFlags::RDONLY) else { return false };
        let Ok(seen) = rustix::fs::fstat(&there) else { return false };
        let mut bytes = Vec::new();
        seen.st_mode & 0o7777 == mode(file, group)
            && file.user.is_none_or(|user| user == seen.st_uid)
            && group.is_none_or(|group| group == seen.st_gid)
            && File::from(there).read_to_end(&mut bytes).is_ok()
            && *bytes == *file.bytes.0
    };
    files.iter().all(same) && count(&inner).is_some_and(|count| count == files.len())
}

/// How many files are in a directory and those in it.
fn count(dir: &OwnedFd) -> Option<usize> {
    let mut files = 0;
    for (name, is_dir) in names(dir).ok()? {
        files += if is_dir { count(&open_dir(dir, &name).ok()?)? } else { 1 };
    }
    Some(files)
}

fn names(dir: &OwnedFd) -> Result<Vec<(String, bool)>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name != "." && name != ".." {
            names.push((name.to_owned(), entry.file_type() == rustix::fs::FileType::Directory));
        }
    }
    Ok(names)
}

/// Every first part of a file's path is a link through `..data`; what else there is goes.
fn tidy(dir: &OwnedFd, path: &str, files: &Files, shown: &str) -> Result<(), HostError> {
    let wanted: BTreeSet<&str> = files.keys().map(|name| name.split('/').next().unwrap_or(name)).collect();
    for name in &wanted {
        match rustix::fs::symlinkat(format!("{DATA}/{name}"), dir, *name) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(begun("link in", path)(errno)),
        }
    }
    for (name, is_dir) in names(dir).map_err(refused("list", path))? {
        if name == DATA || name == shown || wanted.contains(name.as_str()) {
            continue;
        }
        match is_dir {
            true => tree::remove_tree(&format!("{path}/{name}"))?,
            false => rustix::fs::unlinkat(dir, name.as_str(), AtFlags::empty()).map_err(begun("tidy up", path))?,
        }
    }
    Ok(())
}
