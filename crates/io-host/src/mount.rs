//! Mounting a device, showing a directory twice, unmounting: by descriptor, never stacked, always looked at again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use control::host::Usage;
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use crate::error::{HostError, begun, os, refused};
use crate::mountinfo::{MountEntry, mounts};
use crate::numbered::numbered;
use crate::{files, loops, path, sys};

/// The mount flags a user may ask for.
pub(crate) const ALLOWED_FLAGS: [&str; 9] =
    ["noatime", "nodiratime", "relatime", "nodev", "noexec", "nosuid", "sync", "dirsync", "discard"];

/// The filesystems we make and mount.
pub(crate) const FILESYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Where a flag goes: to the mount, or to the filesystem.
enum Flag {
    Mount(MountAttrFlags),
    Filesystem(&'static str),
}

fn flag(name: &str) -> Result<Flag, HostError> {
    match name {
        "noatime" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_NOATIME)),
        "nodiratime" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_NODIRATIME)),
        "relatime" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_RELATIME)),
        "nodev" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_NODEV)),
        "noexec" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_NOEXEC)),
        "nosuid" => Ok(Flag::Mount(MountAttrFlags::MOUNT_ATTR_NOSUID)),
        "sync" => Ok(Flag::Filesystem("sync")),
        "dirsync" => Ok(Flag::Filesystem("dirsync")),
        "discard" => Ok(Flag::Filesystem("discard")),
        other => Err(HostError::FlagNotAllowed { flag: other.to_owned() }),
    }
}

/// What a path shows: whether a mount begins there, which one, and of what.
struct Shown {
    root: bool,
    seen: Statx,
    path: String,
}

fn shown(fd: impl AsFd, path: &str) -> Result<Shown, HostError> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::from_bits_retain(sys::STATX_MNT_ID_UNIQUE);
    let seen = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted).map_err(refused("look at", path))?;
    Ok(Shown { root: path::is_mount_root(&seen), seen, path: path.to_owned() })
}

/// A mount begins at what is open here.
pub(crate) fn begins_at(fd: impl AsFd, path: &str) -> Result<bool, HostError> {
    Ok(shown(fd, path)?.root)
}

/// The filesystem on this device is mounted at this path.
pub(crate) fn is_mounted_at(device: &str, at: &str) -> Result<bool, HostError> {
    let number = device_number(device)?;
    Ok(entry_at(at)?.is_some_and(|entry| entry.device == number || entry.source == device))
}

fn device_number(device: &str) -> Result<(u32, u32), HostError> {
    let block = loops::open_block(device, OFlags::RDONLY)?;
    let rdev = block.metadata().map_err(|error| os("look at", device, error, false))?.rdev();
    Ok((rustix::fs::major(rdev), rustix::fs::minor(rdev)))
}

fn open_dir(path: &str) -> Result<OwnedFd, HostError> {
    path::open_existing(path, OFlags::PATH | OFlags::DIRECTORY)
}

/// A mount begins at this path, be it a bind within one filesystem. An error means "cannot tell": treat it as mounted.
pub fn is_mount_root(path: &Path) -> io::Result<bool> {
    let path = path.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
    if path == "/" {
        return Ok(true);
    }
    let Some(place) = path::place(path).map_err(io::Error::other)? else { return Ok(false) };
    Ok(place.look()?.is_some_and(|seen| path::is_mount_root(&seen)))
}

/// Mounts a device.
pub(crate) fn mount(
    device: &str,
    target: &str,
    fstype: &str,
    flags: &[String],
    read_only: bool,
) -> Result<(), HostError> {
    if !FILESYSTEMS.contains(&fstype) {
        return Err(HostError::UnknownFilesystem { fstype: fstype.to_owned() });
    }
    let parsed = flags.iter().map(|name| flag(name)).collect::<Result<Vec<_>, _>>()?;
    let number = device_number(device)?;
    let same = |entry: &MountEntry| {
        let of_device = entry.device == number || entry.source == device;
        let flagged = flags.iter().all(|flag| entry.options.contains(flag));
        of_device && flagged && entry.fstype == fstype && entry.root == "/" && entry.read_only == read_only
    };
    let place = open_dir(target)?;
    if shown(&place, target)?.root {
        return check(target, same);
    }
    let made = make_mount(device, target, fstype, &parsed, read_only)?;
    attach(made, place, target)?;
    confirm(target, same)
}

fn make_mount(device: &str, target: &str, fstype: &str, flags: &[Flag], read_only: bool) -> Result<OwnedFd, HostError> {
    let fs =
        rustix::mount::fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC).map_err(refused("use the filesystem", fstype))?;
    let mut attributes = MountAttrFlags::empty();
    let configured = (|| {
        rustix::mount::fsconfig_set_string(&fs, "source", device)?;
        if read_only {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
            rustix::mount::fsconfig_set_flag(&fs, "ro")?;
        }
        // A copy of a volume bears the same mark as the volume; that no file is mounted twice is seen to by its loop device.
        if fstype == "xfs" {
            rustix::mount::fsconfig_set_flag(&fs, "nouuid")?;
        }
        for flag in flags {
            match flag {
                Flag::Mount(attribute) => attributes |= *attribute,
                Flag::Filesystem(name) => rustix::mount::fsconfig_set_flag(&fs, *name)?,
            }
        }
        rustix::mount::fsconfig_create(&fs)
    })();
    match configured.and_then(|()| rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)) {
        Ok(made) => Ok(made),
        Err(Errno::BUSY) => {
            let why = "it is mounted elsewhere in another way (read-only or read-write), or claimed".into();
            Err(HostError::Busy { what: device.to_owned(), why })
        }
        Err(errno) => {
            let said = kernel_words(&fs).unwrap_or_else(|| match errno {
                // Some filesystems explain themselves in the kernel's log only.
                Errno::INVAL => format!("the kernel finds no sound {fstype} filesystem on it; its log says more"),
                errno => io::Error::from(errno).to_string(),
            });
            Err(HostError::MountFailed { device: device.to_owned(), target: target.to_owned(), said })
        }
    }
}

/// Mounts a filesystem in memory. Where the kernel can, its pages never go to a swap device either.
pub(crate) fn mount_memory(target: &str, size: Option<u64>, mode: u32) -> Result<(), HostError> {
    files::make_place(target)?;
    let place = open_dir(target)?;
    let same = |entry: &MountEntry| entry.fstype == "tmpfs" && entry.root == "/" && !entry.read_only;
    if shown(&place, target)?.root {
        return check(target, same);
    }
    let make = |no_swap: bool| {
        let fs = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(&fs, "source", "tmpfs")?;
        rustix::mount::fsconfig_set_string(&fs, "mode", format!("{mode:o}"))?;
        if let Some(size) = size {
            rustix::mount::fsconfig_set_string(&fs, "size", size.to_string())?;
        }
        if no_swap {
            rustix::mount::fsconfig_set_flag(&fs, "noswap")?;
        }
        rustix::mount::fsconfig_create(&fs)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    let made = make(true).or_else(|_| make(false)).map_err(refused("mount a filesystem in memory at", target))?;
    attach(made, place, target)?;
    confirm(target, same)
}

/// The kernel leaves its explanation in the descriptor, a message per reading, each behind a letter and a space.
fn kernel_words(fs: &OwnedFd) -> Option<String> {
    let (mut said, mut message) = (Vec::new(), [0; 1024]);
    while let Ok(length @ 1..) = rustix::io::read(fs, &mut message) {
        let text = String::from_utf8_lossy(&message[..length]);
        said.push(text.get(2..).unwrap_or(&text).trim().to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// Puts a made mount in its place. Both descriptors are closed: an open one would keep the mount busy.
fn attach(made: OwnedFd, place: OwnedFd, target: &str) -> Result<(), HostError> {
    let both_empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(made, "", place, "", both_empty).map_err(begun("mount at", target))
}

/// The mount now on top at a target.
fn entry_at(target: &str) -> Result<Option<MountEntry>, HostError> {
    let place = open_dir(target)?;
    let now = shown(&place, target)?;
    drop(place);
    entry_of(&now)
}

fn entry_of(now: &Shown) -> Result<Option<MountEntry>, HostError> {
    if !now.root {
        return Ok(None);
    }
    if now.seen.stx_mask & sys::STATX_MNT_ID_UNIQUE != 0
        && let Ok(found) = numbered(now.seen.stx_mnt_id)
    {
        return Ok(found);
    }
    let all = mounts().map_err(|error| os("read", "the mount table", error, false))?;
    Ok(all.into_iter().rfind(|entry| entry.target == now.path))
}

fn describe(entry: Option<MountEntry>) -> String {
    match entry {
        None => "none that can be seen".to_owned(),
        Some(entry) => {
            let (how, root) = (if entry.read_only { "read-only" } else { "read-write" }, entry.root);
            format!("{} ({}, {how}, its directory {root}, {})", entry.source, entry.fstype, entry.options.join(" "))
        }
    }
}

/// There is a mount at the target already: is it the one asked for?
fn check(target: &str, same: impl Fn(&MountEntry) -> bool) -> Result<(), HostError> {
    match entry_at(target)? {
        Some(entry) if same(&entry) => Ok(()),
        other => Err(HostError::MountedOtherwise { target: target.to_owned(), found: describe(other) }),
    }
}

/// We have just mounted: is it there, and nothing on top of it?
fn confirm(target: &str, same: impl Fn(&MountEntry) -> bool) -> Result<(), HostError> {
    match entry_at(target)? {
        Some(entry) if same(&entry) => Ok(()),
        other => Err(HostError::Unconfirmed { what: format!("the mount at {target}"), why: describe(other) }),
    }
}

/// Shows one directory at another place as well.
pub(crate) fn bind(source: &str, target: &str, read_only: bool) -> Result<(), HostError> {
    let from = open_dir(source)?;
    let origin = shown(&from, source)?.seen;
    let place = open_dir(target)?;
    let there = shown(&place, target)?;
    if there.root {
        drop((from, place));
        return check_bind(source, target, &origin, &there.seen, read_only);
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let made = rustix::mount::open_tree(&from, "", flags).map_err(refused("show elsewhere", source))?;
    drop(from);
    if read_only {
        sys::set_mount_attributes(&made, libc::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| os("make read-only the view of", source, error, false))?;
    }
    attach(made, place, target)?;
    let now = shown(open_dir(target)?, target)?.seen;
    match check_bind(source, target, &origin, &now, read_only) {
        // A bind of a read-only mount is read-only too. The wish cannot be granted, so nothing is left behind.
        Err(HostError::MountedOtherwise { found, .. }) if same_inode(&origin, &now) => {
            unmount(target)?;
            Err(HostError::MountedOtherwise { target: source.to_owned(), found })
        }
        Err(HostError::MountedOtherwise { found, .. }) => {
            Err(HostError::Unconfirmed { what: format!("the bind at {target}"), why: found })
        }
        answer => answer,
    }
}

/// Shows a block device at a plain file. A read-only view of a device keeps nobody from writing, so the device itself is
/// made read-only, and writable again for a writable view.
pub(crate) fn bind_device(device: &str, target: &str, read_only: bool) -> Result<(), HostError> {
    let block = loops::open_block(device, OFlags::RDONLY)?;
    let number = |seen: &Statx| (seen.stx_rdev_major, seen.stx_rdev_minor);
    let origin = shown(&block, device)?.seen;
    let same = |there: &Shown| there.root && number(&there.seen) == number(&origin) && is_block(&there.seen);
    let place = path::open_existing(target, OFlags::PATH)?;
    let there = shown(&place, target)?;
    if there.root {
        let entry = entry_of(&there)?;
        if same(&there) && entry.as_ref().is_some_and(|entry| entry.read_only == read_only) {
            return Ok(());
        }
        return Err(HostError::MountedOtherwise { target: target.to_owned(), found: describe(entry) });
    }
    if path::kind(&there.seen) != rustix::fs::FileType::RegularFile {
        return Err(HostError::WrongKind { path: target.to_owned(), wanted: "a plain file" });
    }
    sys::device_read_only(&block, read_only).map_err(refused("set whether to write to", device))?;
    let node = path::open_existing(device, OFlags::PATH)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let made = rustix::mount::open_tree(&node, "", flags).map_err(refused("show elsewhere", device))?;
    if read_only {
        sys::set_mount_attributes(&made, libc::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| os("make read-only the view of", device, error, false))?;
    }
    attach(made, place, target)?;
    let now = shown(path::open_existing(target, OFlags::PATH)?, target)?;
    if same(&now) {
        return Ok(());
    }
    Err(HostError::Unconfirmed { what: format!("the device at {target}"), why: describe(entry_of(&now)?) })
}

fn is_block(seen: &Statx) -> bool {
    path::kind(seen) == rustix::fs::FileType::BlockDevice
}

/// How full the filesystem at a path is, how large the device shown there, or how much of an image is in use.
pub(crate) fn measure(path: &str) -> Result<Usage, HostError> {
    let place = path::open_existing(path, OFlags::PATH)?;
    let there = shown(&place, path)?;
    if is_block(&there.seen) {
        let block = loops::open_block(path, OFlags::RDONLY)?;
        let bytes = sys::device_size(&block).map_err(refused("find the size of", path))?;
        return Ok(Usage { bytes, ..Usage::default() });
    }
    if path::kind(&there.seen) == rustix::fs::FileType::RegularFile {
        let (bytes, bytes_used) = (there.seen.stx_size, there.seen.stx_blocks.saturating_mul(512));
        return Ok(Usage { bytes, bytes_used, ..Usage::default() });
    }
    let told = rustix::fs::fstatvfs(&place).map_err(refused("measure", path))?;
    let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
    Ok(Usage {
        bytes: bytes(told.f_blocks),
        bytes_used: bytes(told.f_blocks.saturating_sub(told.f_bfree)),
        bytes_free: bytes(told.f_bavail),
        inodes: told.f_files,
        inodes_used: told.f_files.saturating_sub(told.f_ffree),
        inodes_free: told.f_favail,
    })
}

fn same_inode(a: &Statx, b: &Statx) -> bool {
    (a.stx_dev_major, a.stx_dev_minor, a.stx_ino) == (b.stx_dev_major, b.stx_dev_minor, b.stx_ino)
}

/// The bind at the target shows the very directory asked for, as asked for.
fn check_bind(source: &str, target: &str, origin: &Statx, there: &Statx, read_only: bool) -> Result<(), HostError> {
    let entry = entry_at(target)?;
    let fits = entry.as_ref().is_some_and(|entry| entry.read_only == read_only);
    if fits && same_inode(origin, there) {
        return Ok(());
    }
    let wish = if read_only { "read-only" } else { "read-write" };
    let found = format!("{}, and not {source} {wish}", describe(entry));
    Err(HostError::MountedOtherwise { target: target.to_owned(), found })
}

/// Mounts may have been stacked by others; more than this is somebody mounting as fast as we unmount.
const STACKED: u32 = 64;

/// Takes off whatever is mounted at a path, and looks again.
pub(crate) fn unmount(target: &str) -> Result<(), HostError> {
    let Some(place) = path::place(target)? else { return Ok(()) };
    // The parent is reached by its descriptor, so only the last component is looked up, and that without following.
    use std::os::fd::AsRawFd as _;
    let by_parent = format!("/proc/self/fd/{}/{}", place.parent.as_raw_fd(), place.name);
    for _ in 0..STACKED {
        match place.look() {
            Ok(None) => return Ok(()),
            Ok(Some(seen)) if !path::is_mount_root(&seen) => return Ok(()),
            // A mount whose server is gone answers with errors; it is a mount all the same.
            Ok(Some(_)) | Err(_) => {}
        }
        match rustix::mount::unmount(&*by_parent, UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => {
                let why = "a process has a file or its working directory there, or something is mounted beneath it";
                return Err(HostError::Busy { what: target.to_owned(), why: why.into() });
            }
            // Nothing is mounted there, or it is not ours to unmount: the second look tells.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(refused("unmount", target)(errno)),
        }
    }
    match place.look() {
        Ok(Some(seen)) if path::is_mount_root(&seen) => Err(still_there(target)),
        Ok(_) => Ok(()),
        Err(_) => Err(still_there(target)),
    }
}

fn still_there(target: &str) -> HostError {
    let why = "something is mounted there still, or again".to_owned();
    HostError::Unconfirmed { what: format!("the unmounting of {target}"), why }
}
