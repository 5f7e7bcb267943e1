//! The root a process sees: the machine's own, read-only, with volumes at their places.
//!
//! It is an overlay of the machine's root with an empty layer in memory, so that mount points can be made in it that do
//! not exist on the machine. An overlay shows one filesystem and none of the mounts in it, which is wanted: no volume of
//! another process is visible or kept busy. What a program needs besides is put in: `/proc` of its own process namespace,
//! `/dev`, `/sys`, parts of the system that are separate mounts (`/usr` and the like), the resolver's configuration, and
//! `/tmp`, `/run` and `/dev/shm` in memory for itself alone. Mounts of the machine at other places are not shown.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};
use rustix::thread::UnshareFlags;

use crate::mountinfo::{is_beneath, mounts};
use crate::record::{ROOT, SpecMount};
use crate::{path, sys};

/// Parts of the system that may be mounts of their own, at these places or beneath them.
const SYSTEM: [&str; 9] = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"];

/// Everything inside the new root stays inside it, links too.
const INSIDE: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// A mount, not attached anywhere yet, and where it is to be.
struct Piece {
    tree: OwnedFd,
    target: String,
    /// The place is made if it is missing; otherwise the piece is left out.
    needed: bool,
}

/// Moves this process into a mount namespace and a root of its own. An error is a sentence for the user.
pub(crate) fn enter(dir: &Path, volumes: &[SpecMount], plain: bool) -> Result<(), String> {
    sys::unshare(UnshareFlags::NEWNS).map_err(|error| format!("no mount namespace can be made: {error}"))?;
    // What the machine unmounts goes here too; what we mount never comes to the machine.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|errno| format!("the mount namespace cannot be separated: {errno}"))?;
    // Everything is taken hold of before the place where the root is built hides anything.
    let mut pieces = system_pieces()?;
    pieces.extend(volume_pieces(volumes)?);
    let base = dir.join(ROOT);
    let bare = build_base(&base, plain).map_err(|errno| format!("the root of the process cannot be built: {errno}"))?;
    let new_root = rustix::fs::open("new", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| format!("the root of the process cannot be opened: {errno}"))?;
    let make_read_only =
        || sys::mount_read_only(&new_root).map_err(|error| format!("the root cannot be made read-only: {error}"));
    // Without an overlay what is made in the new root would be made on the machine.
    if bare {
        make_read_only()?;
    }
    for piece in pieces {
        attach(&new_root, piece, bare)?;
    }
    make_read_only()?;
    change_root(&new_root).map_err(|errno| format!("the root of the process cannot be entered: {errno}"))
}

/// Mounts a layer in memory at `base`, goes there, and mounts the new root at `new`. `true`: it is the machine's root
/// itself, since there is no overlayfs.
fn build_base(base: &Path, plain: bool) -> Result<bool, Errno> {
    match rustix::fs::mkdir(base, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", base, "tmpfs", flags, Some(c"mode=0755,size=4m"))?;
    rustix::process::chdir(base)?;
    for name in ["upper", "work", "new"] {
        rustix::fs::mkdir(name, Mode::from_raw_mode(0o755))?;
    }
    // The paths are relative, so that no byte of a user's path is in the option string.
    let layers = Some(c"lowerdir=/,upperdir=upper,workdir=work");
    if !plain && rustix::mount::mount("overlay", "new", "overlay", MountFlags::empty(), layers).is_ok() {
        return Ok(false);
    }
    let machine = clone_tree(rustix::fs::CWD, "/", false)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(machine, "", rustix::fs::CWD, "new", flags)?;
    Ok(true)
}

fn clone_tree(dir: impl AsFd, path: &str, recursive: bool) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if path.is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(dir, path, flags)
}

/// What belongs to the machine rather than to a volume.
fn system_pieces() -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    for path in separate_mounts()? {
        pieces.extend(shown_again(&path, false)?);
    }
    for path in ["/dev", "/sys"] {
        pieces.extend(shown_again(path, true)?);
    }
    let exec = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    pieces.push(fresh("proc", "/proc", &[], exec | MountAttrFlags::MOUNT_ATTR_NOEXEC)?);
    for (path, mode) in [("/tmp", "1777"), ("/run", "0755"), ("/dev/shm", "1777")] {
        pieces.push(fresh("tmpfs", path, &[("mode", mode)], exec)?);
    }
    if let Some(path) = resolver_dir() {
        pieces.extend(shown_again(&path, false)?.map(|piece| Piece { needed: true, ..piece }));
    }
    Ok(pieces)
}

/// System directories and files that are mounts of their own, outer ones first.
fn separate_mounts() -> Result<BTreeSet<String>, String> {
    let all = mounts().map_err(|error| format!("the mount table cannot be read: {error}"))?;
    let system = |target: &String| SYSTEM.iter().any(|place| is_beneath(target, place));
    Ok(all.into_iter().map(|entry| entry.target).filter(system).collect())
}

/// A view of a place of the machine, not writable; what is mounted beneath it comes along as it is. `None`: not there.
fn shown_again(path: &str, recursive: bool) -> Result<Option<Piece>, String> {
    let tree = match clone_tree(rustix::fs::CWD, path, recursive) {
        Ok(tree) => tree,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(format!("{path} of this machine cannot be shown to the process: {errno}")),
    };
    sys::mount_read_only(&tree).map_err(|error| format!("the view of {path} cannot be made read-only: {error}"))?;
    Ok(Some(Piece { tree, target: path.to_owned(), needed: false }))
}

/// A filesystem made for this process alone.
fn fresh(fstype: &str, target: &str, options: &[(&str, &str)], how: MountAttrFlags) -> Result<Piece, String> {
    let made = (|| {
        let fs = rustix::mount::fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            rustix::mount::fsconfig_set_string(&fs, *key, *value)?;
        }
        rustix::mount::fsconfig_create(&fs)?;
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, how)
    })();
    match made {
        Ok(tree) => Ok(Piece { tree, target: target.to_owned(), needed: true }),
        Err(errno) => Err(format!("{fstype} for {target} of the process cannot be made: {errno}")),
    }
}

/// Where the resolver's configuration really is, if that is in `/run`, of which the process gets an empty one.
fn resolver_dir() -> Option<String> {
    let file = std::fs::canonicalize("/etc/resolv.conf").ok()?;
    let dir = file.parent()?.to_str()?;
    (dir != "/run" && is_beneath(dir, "/run")).then(|| dir.to_owned())
}

/// The volumes, those nearer to the root first, so that one may be inside another.
fn volume_pieces(volumes: &[SpecMount]) -> Result<Vec<Piece>, String> {
    let mut sorted: Vec<&SpecMount> = volumes.iter().collect();
    sorted.sort_by_key(|volume| path::components(&volume.target).map_or(0, |parts| parts.len()));
    sorted.into_iter().map(volume_piece).collect()
}

fn volume_piece(volume: &SpecMount) -> Result<Piece, String> {
    let SpecMount { source, target, read_only } = volume;
    let from = path::open_existing(source, OFlags::PATH | OFlags::DIRECTORY)
        .map_err(|error| format!("the volume for {target} cannot be used: {error}"))?;
    let tree =
        clone_tree(&from, "", false).map_err(|errno| format!("the volume at {source} cannot be shown: {errno}"))?;
    if *read_only {
        sys::mount_read_only(&tree)
            .map_err(|error| format!("the volume for {target} cannot be made read-only: {error}"))?;
    }
    Ok(Piece { tree, target: target.clone(), needed: true })
}

fn attach(new_root: &OwnedFd, piece: Piece, bare: bool) -> Result<(), String> {
    let target = &piece.target;
    let place = match open_inside(new_root, target, OFlags::PATH) {
        Ok(place) => place,
        Err(Errno::NOENT) if !piece.needed => return Ok(()),
        Err(Errno::NOENT) => make_inside(new_root, target).map_err(|errno| match errno {
            Errno::ROFS if bare => format!(
                "{target} does not exist on this machine and cannot be made for the process without overlayfs; create it"
            ),
            Errno::EXIST => format!("{target} leads through a symbolic link to a place the process does not have"),
            Errno::ROFS => format!("{target} does not exist and cannot be made, for what is above it is read-only"),
            errno => format!("the mount point {target} cannot be made for the process: {errno}"),
        })?,
        Err(errno) => return Err(format!("the mount point {target} cannot be used: {errno}")),
    };
    let both_empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(&piece.tree, "", &place, "", both_empty)
        .map_err(|errno| format!("nothing can be mounted at {target} for the process: {errno}"))
}

fn open_inside(new_root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(new_root, path, flags | OFlags::CLOEXEC, Mode::empty(), INSIDE)
}

/// Makes a directory of the new root and those above it.
fn make_inside(new_root: &OwnedFd, target: &str) -> Result<OwnedFd, Errno> {
    let parts = path::components(target).map_err(|_| Errno::INVAL)?;
    let mut here = open_inside(new_root, "/", OFlags::PATH | OFlags::DIRECTORY)?;
    let mut path = String::new();
    for part in parts {
        path = format!("{path}/{part}");
        here = match open_inside(new_root, &path, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(next) => next,
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(0o755))?;
                open_inside(new_root, &path, OFlags::PATH | OFlags::DIRECTORY)?
            }
            Err(errno) => return Err(errno),
        };
    }
    Ok(here)
}

/// The new root becomes the root, and the old one goes with everything in it, so that nothing of the machine is kept busy.
fn change_root(new_root: &OwnedFd) -> Result<(), Errno> {
    rustix::process::fchdir(new_root)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}
