//! Places of the machine that a pod names, and how much a directory takes.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};

use control::host::{HostPathKind, Usage};
use rustix::fs::{AtFlags, FileType, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::path;

/// Whether what is there is of a kind.
type IsKind = fn(&Metadata) -> bool;

/// Looks whether a place is what a pod takes it for, and makes it where it asks for that.
pub(crate) fn ensure(place: &str, kind: HostPathKind) -> Result<(), HostError> {
    if place != "/" {
        path::components(place)?;
    }
    let seen = match std::fs::metadata(place) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return make(place, kind),
        Err(error) => return Err(os("look at", place, error, false)),
    };
    match wanted(kind).filter(|(_, is)| !is(&seen)) {
        None => Ok(()),
        Some((wanted, _)) => Err(HostError::WrongKind { path: place.to_owned(), wanted }),
    }
}

fn wanted(kind: HostPathKind) -> Option<(&'static str, IsKind)> {
    match kind {
        HostPathKind::Any => None,
        HostPathKind::Directory | HostPathKind::DirectoryOrCreate => Some(("a directory", Metadata::is_dir)),
        HostPathKind::File | HostPathKind::FileOrCreate => Some(("a plain file", Metadata::is_file)),
        HostPathKind::Socket => Some(("a socket", |seen| seen.file_type().is_socket())),
        HostPathKind::CharDevice => Some(("a character device", |seen| seen.file_type().is_char_device())),
        HostPathKind::BlockDevice => Some(("a block device", |seen| seen.file_type().is_block_device())),
    }
}

/// Nothing is there. A container runtime makes a directory where nobody says what it must be.
fn make(place: &str, kind: HostPathKind) -> Result<(), HostError> {
    let made = match kind {
        HostPathKind::Any | HostPathKind::DirectoryOrCreate => {
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(place)
        }
        HostPathKind::FileOrCreate => {
            let mut options = std::fs::File::options();
            options.write(true).create(true).truncate(false).mode(0o644).open(place).map(drop)
        }
        HostPathKind::Directory
        | HostPathKind::File
        | HostPathKind::Socket
        | HostPathKind::CharDevice
        | HostPathKind::BlockDevice => return Err(HostError::Missing { path: place.to_owned() }),
    };
    made.map_err(|error| os("make", place, error, true))
}

/// Adds up what a directory and all in it take on the disk. Somebody may be writing to it: what comes and goes
/// meanwhile counts or does not.
pub(crate) fn measure_tree(top: &str) -> Result<Usage, HostError> {
    let Some(dir) = path::open(top, OFlags::RDONLY | OFlags::DIRECTORY)? else { return Ok(Usage::default()) };
    let (mut usage, mut twice) = (Usage::default(), BTreeSet::new());
    let mut left = vec![String::from(".")];
    while let Some(inner) = left.pop() {
        let resolve = path::NO_LINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = match rustix::fs::openat2(&dir, &inner, flags, rustix::fs::Mode::empty(), resolve) {
            Ok(here) => here,
            // Gone, turned into something else, another filesystem, or deeper than a path is long.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG | Errno::AGAIN) => {
                continue;
            }
            Err(errno) => return Err(refused("look into", top)(errno)),
        };
        let names = rustix::fs::Dir::read_from(&here).map_err(refused("list", top))?;
        for entry in names {
            let entry = entry.map_err(begun("list", top))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let Ok(seen) = rustix::fs::statx(&here, name, flags, StatxFlags::BASIC_STATS) else { continue };
            if name == ".." || (name == "." && inner != ".") {
                continue;
            }
            if name != "." && path::kind(&seen) == FileType::Directory {
                left.push(format!("{inner}/{name}"));
            }
            if seen.stx_nlink < 2 || path::kind(&seen) == FileType::Directory || twice.insert(seen.stx_ino) {
                usage.bytes_used = usage.bytes_used.saturating_add(seen.stx_blocks.saturating_mul(512));
                usage.inodes_used += 1;
            }
        }
    }
    Ok(usage)
}
