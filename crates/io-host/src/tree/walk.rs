//! A directory walked with everything in it, by open descriptors: no link is followed, no mount crossed, and a tree of any
//! depth needs no more than a few of them.

use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

use crate::error::{HostError, refused};
use crate::path;

/// How coarse the kernel's times of change are, and more: a change within it of another may not show.
const TICK: Duration = Duration::from_millis(20);

/// Why a walk did not come to its end.
pub(crate) enum Upset {
    /// Somebody changed the tree meanwhile.
    Changed,
    Failed(HostError),
}

impl From<HostError> for Upset {
    fn from(error: HostError) -> Upset {
        Upset::Failed(error)
    }
}

/// Who is told of everything on the way.
pub(crate) trait Visitor {
    /// A directory begins; what follows is in it until it ends.
    fn enter(&mut self, name: &CStr) -> Result<(), HostError>;
    /// The directory that began last and has not ended, ends.
    fn leave(&mut self, dir: &OwnedFd, seen: &Statx) -> Result<(), HostError>;
    /// Anything but a directory, opened as a place only.
    fn other(&mut self, name: &CStr, one: &OwnedFd, seen: &Statx) -> Result<(), HostError>;
}

/// Walks to look only.
pub(crate) struct Looking;

impl Visitor for Looking {
    fn enter(&mut self, _: &CStr) -> Result<(), HostError> {
        Ok(())
    }

    fn leave(&mut self, _: &OwnedFd, _: &Statx) -> Result<(), HostError> {
        Ok(())
    }

    fn other(&mut self, _: &CStr, _: &OwnedFd, _: &Statx) -> Result<(), HostError> {
        Ok(())
    }
}

/// What a walk saw, as far as it tells one state of a tree from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    hash: u64,
    /// Something was changed so shortly before the walk, or since it began, that another change might not show.
    restless: bool,
}

impl Seen {
    /// The tree was in one and the same state from the beginning of the first walk to the end of the second.
    pub(crate) fn is_still(&self, later: &Seen) -> bool {
        self == later && !later.restless
    }
}

/// When a walk begins.
pub(crate) fn beginning() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// How long to wait until a change made now is told from one made then.
pub(crate) fn pause() -> Duration {
    TICK * 2
}

/// A directory on the way down, with what is left to do in it.
struct Level {
    names: std::vec::IntoIter<CString>,
    seen: Statx,
}

/// Walks a directory. `since` is when the walk that this one is compared with began, or this one itself.
pub(crate) fn walk(top: &OwnedFd, path: &str, since: Duration, visitor: &mut dyn Visitor) -> Result<Seen, Upset> {
    let mut hash = DefaultHasher::new();
    let mut newest = Duration::ZERO;
    let mut note = |name: &CStr, seen: &Statx| {
        let changed = since_1970(seen);
        // A time to come is that of a clock that was wrong: it changes no more.
        if changed <= beginning() {
            newest = newest.max(changed);
        }
        name.hash(&mut hash);
        let times = [changed.as_nanos(), u128::from(seen.stx_ino), u128::from(seen.stx_size)];
        (times, seen.stx_mode, seen.stx_uid, seen.stx_gid).hash(&mut hash);
    };
    let mut dir = top.try_clone().map_err(|error| crate::error::os("open", path, error, false))?;
    let seen = look(&dir, path)?;
    note(c"", &seen);
    let mut level = Level { names: names(&dir, path)?, seen };
    let mut above: Vec<Level> = Vec::new();
    loop {
        let Some(name) = level.names.next() else {
            visitor.leave(&dir, &level.seen)?;
            let Some(upper) = above.pop() else { break };
            dir = go_up(&dir, &upper.seen, path)?;
            level = upper;
            continue;
        };
        let one = open(&dir, &name, OFlags::PATH, path)?;
        let seen = look(&one, path)?;
        if path::is_mount_root(&seen) {
            return Err(mounted_in(path).into());
        }
        note(&name, &seen);
        if path::kind(&seen) == FileType::Directory {
            let inner = open(&dir, &name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOATIME, path)?;
            if !is_same(&look(&inner, path)?, &seen) {
                return Err(Upset::Changed);
            }
            visitor.enter(&name)?;
            let names = names(&inner, path)?;
            above.push(std::mem::replace(&mut level, Level { names, seen }));
            dir = inner;
        } else {
            visitor.other(&name, &one, &seen)?;
        }
    }
    Ok(Seen { hash: hash.finish(), restless: newest + TICK >= since })
}

fn since_1970(seen: &Statx) -> Duration {
    Duration::new(u64::try_from(seen.stx_ctime.tv_sec).unwrap_or(0), seen.stx_ctime.tv_nsec)
}

fn mounted_in(path: &str) -> HostError {
    HostError::Busy { what: path.to_owned(), why: "something is mounted in it; unmount that first".to_owned() }
}

/// The two are one and the same.
fn is_same(one: &Statx, other: &Statx) -> bool {
    let number = |seen: &Statx| (seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino);
    number(one) == number(other)
}

pub(crate) fn look(one: &OwnedFd, path: &str) -> Result<Statx, HostError> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(one, c"", flags, StatxFlags::BASIC_STATS).map_err(refused("look into", path))
}

/// Opens something in a directory, itself and not what it may lead to.
fn open(dir: &OwnedFd, name: &CStr, flags: OFlags, path: &str) -> Result<OwnedFd, Upset> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A link is opened as such, so links need not be ruled out; there is one component.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    loop {
        return match rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve) {
            Ok(fd) => Ok(fd),
            // A rename elsewhere disturbed the lookup.
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Upset::Changed),
            Err(Errno::XDEV) => Err(mounted_in(path).into()),
            Err(errno) => Err(refused("open what is in", path)(errno).into()),
        };
    }
}

/// The directory above, if this one is still where it was.
fn go_up(dir: &OwnedFd, upper: &Statx, path: &str) -> Result<OwnedFd, Upset> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOATIME | OFlags::CLOEXEC;
    let above = rustix::fs::openat(dir, c"..", flags, Mode::empty()).map_err(refused("open what is in", path))?;
    if is_same(&look(&above, path)?, upper) { Ok(above) } else { Err(Upset::Changed) }
}

/// The names in a directory, in an order of their own.
fn names(dir: &OwnedFd, path: &str) -> Result<std::vec::IntoIter<CString>, HostError> {
    let read = || -> rustix::io::Result<Vec<CString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let name = entry?.file_name().to_owned();
            if name.to_bytes() != b"." && name.to_bytes() != b".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    };
    Ok(read().map_err(refused("list", path))?.into_iter())
}
