//! What is in a directory, down to a depth, without touching anything that is mounted in it.

use std::collections::BTreeMap;
use std::io;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::error::{HostError, refused};
use crate::path;

/// Nobody who asks expects so many: the answer would be of no use.
const AT_MOST: usize = 10_000;

/// The paths in a directory, from there, down to a depth, each with whether it is a directory; none if it is not there.
/// No link is followed and no mount entered; `enter` says of each directory whether it is to be looked into. More than
/// ten thousand are an error.
pub fn list_tree(top: &str, depth: usize, enter: impl Fn(&str) -> bool) -> io::Result<BTreeMap<String, bool>> {
    listed(top, depth, enter).map_err(io::Error::other)
}

fn listed(top: &str, depth: usize, enter: impl Fn(&str) -> bool) -> Result<BTreeMap<String, bool>, HostError> {
    let mut found = BTreeMap::new();
    let Some(dir) = path::open(top, OFlags::RDONLY | OFlags::DIRECTORY)? else { return Ok(found) };
    let mut left = vec![(String::from("."), 1)];
    while let Some((inner, level)) = left.pop() {
        let resolve = path::NO_LINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = match rustix::fs::openat2(&dir, &inner, flags, Mode::empty(), resolve) {
            Ok(here) => here,
            // Gone, turned into something else, or mounted.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => continue,
            Err(errno) => return Err(refused("look into", top)(errno)),
        };
        for entry in Dir::read_from(&here).map_err(refused("list", top))? {
            let entry = entry.map_err(refused("list", top))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            // What the directory says is enough, and asks no filesystem that is mounted there and may hang.
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
                    let seen = rustix::fs::statx(&here, entry.file_name(), flags, StatxFlags::TYPE);
                    seen.map_or(FileType::Unknown, |seen| path::kind(&seen))
                }
                kind => kind,
            };
            let path = if inner == "." { name } else { format!("{inner}/{name}") };
            let is_dir = kind == FileType::Directory;
            if is_dir && level < depth && enter(&path) {
                left.push((path.clone(), level + 1));
            }
            found.insert(path, is_dir);
            if found.len() > AT_MOST {
                return Err(HostError::NotEmpty { path: top.to_owned() });
            }
        }
    }
    Ok(found)
}
