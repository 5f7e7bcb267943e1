//! The root a process sees: programs and configuration of the machine, read-only, with volumes at their places.
//!
//! The root itself is empty and in memory. Of the machine's directories only those in [`SYSTEM`] are put into it, each
//! as an overlay, so that mount points can be made in them that do not exist on the machine; whatever is anywhere else
//! on the machine is not there. An overlay shows one filesystem and none of the mounts in it, which is wanted: no
//! volume of another process is visible or kept busy. Files in `/etc` that not every user of the machine may read are
//! left out. What a program needs besides is put in: `/proc` of its own process namespace, devices, `/sys`, the
//! resolver's configuration, and `/tmp` and `/run` in memory for itself alone.
//!
//! Nothing in it is a way up: no filesystem but the few device nodes themselves lets a device be opened, and setuid
//! programs of the machine have no effect.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};
use rustix::thread::UnshareFlags;

use super::{StartError, devices, is_missing, step, volumes};
use crate::mountinfo::{is_beneath, mounts};
use crate::record::{ROOT, Spec};
use crate::{path, sys};

/// The parts of the machine that a process sees. They, or what is beneath them, may be mounts of their own.
const SYSTEM: [&str; 9] = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"];
/// Directories that programs expect, empty.
const EMPTY: [&str; 12] =
    ["/proc", "/sys", "/dev", "/tmp", "/run", "/home", "/root", "/mnt", "/srv", "/var/lib", "/var/cache", "/var/log"];
const LINKS: [(&str, &str); 2] = [("/var/run", "/run"), ("/var/tmp", "/tmp")];
/// What is hidden of `/proc` and `/sys`, and what cannot be changed in `/proc`: as container runtimes do.
const MASKED: [&str; 12] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Everything inside the new root stays inside it, links too.
const INSIDE: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// No device can be opened there and setuid has no effect.
pub(super) const PLAIN: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// A mount, not attached anywhere yet, and where it is to be.
pub(super) struct Piece {
    pub(super) tree: OwnedFd,
    pub(super) target: String,
    /// The place is made if it is missing; otherwise the piece is left out.
    pub(super) needed: bool,
}

/// Moves this process into a mount namespace and a root of its own.
pub(crate) fn enter(dir: &Path, spec: &Spec) -> Result<(), StartError> {
    let sandbox = &spec.sandbox;
    sys::unshare(UnshareFlags::NEWNS).map_err(step("no mount namespace can be made"))?;
    let mut volumes = volumes::pieces(&spec.mounts, sandbox.privileged, true)?;
    // What the machine unmounts goes here too; what we mount never comes to the machine.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(step("the mount namespace cannot be separated"))?;
    // Everything is taken hold of before the place where the root is built hides anything.
    let mut pieces = system_pieces(spec)?;
    volumes.extend(volumes::pieces(&spec.mounts, sandbox.privileged, false)?);
    volumes::nearest_first(&mut volumes);
    pieces.extend(volumes);
    let given = spec.devices.iter().map(devices::given).collect::<Result<Vec<_>, _>>()?;
    build_base(&dir.join(ROOT)).map_err(step("the root of the process cannot be built"))?;
    let new_root = rustix::fs::open("new", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(step("the root of the process cannot be opened"))?;
    let shown = show_system(&new_root, spec.plain_root)?;
    for piece in pieces {
        attach(&new_root, piece)?;
    }
    for piece in given {
        make_file_inside(&new_root, &piece.target, sandbox.privileged)?;
        attach(&new_root, piece)?;
    }
    if !sandbox.privileged {
        protect(&new_root)?;
    }
    for tree in shown.iter().chain([&new_root]) {
        let read_only = if sandbox.read_only_root { libc::MOUNT_ATTR_RDONLY } else { 0 };
        sys::set_mount_attributes(tree, PLAIN | read_only, false).map_err(step("the root cannot be made read-only"))?;
    }
    change_root(&new_root).map_err(step("the root of the process cannot be entered"))
}

/// Mounts a layer in memory at `base`, goes there, and mounts the new root, which is empty, at `new`.
fn build_base(base: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdir(base, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", base, "tmpfs", flags, Some(c"mode=0755,size=64m"))?;
    rustix::process::chdir(base)?;
    for name in ["layers", "new"] {
        rustix::fs::mkdir(name, Mode::from_raw_mode(0o755))?;
    }
    rustix::mount::mount("tmpfs", "new", "tmpfs", flags, Some(c"mode=0755,size=64m"))
}

/// Puts the parts of the machine's system into the new root; answers the mounts that are to become read-only.
fn show_system(new_root: &OwnedFd, plain: bool) -> Result<Vec<OwnedFd>, StartError> {
    for path in EMPTY {
        make_inside(new_root, path).map_err(step(format!("{path} of the process cannot be made")))?;
    }
    for (path, target) in LINKS {
        rustix::fs::symlinkat(target, new_root, &path[1..]).map_err(step(format!("{path} cannot be made")))?;
    }
    let mut shown = Vec::new();
    for (number, path) in SYSTEM.into_iter().enumerate() {
        let failed = || format!("{path} of this machine cannot be shown to the process");
        let Ok(what) = std::fs::symlink_metadata(path) else { continue };
        if what.is_symlink() {
            let target = std::fs::read_link(path).map_err(step(failed()))?;
            rustix::fs::symlinkat(&target, new_root, &path[1..]).map_err(step(failed()))?;
            continue;
        }
        let place = make_inside(new_root, path).map_err(step(failed()))?;
        let hidden = if path == "/etc" { not_for_everybody(path) } else { Vec::new() };
        let layered = !plain && layer(number, path, &hidden).map_err(step(failed()))?;
        if !layered {
            // Without root what is mounted beneath cannot be left out.
            let (tree, whole) = match clone_tree(rustix::fs::CWD, path, false) {
                Err(Errno::INVAL) => (clone_tree(rustix::fs::CWD, path, true).map_err(step(failed()))?, true),
                tree => (tree.map_err(step(failed()))?, false),
            };
            sys::set_mount_attributes(&tree, PLAIN | libc::MOUNT_ATTR_RDONLY, whole).map_err(step(failed()))?;
            put(&tree, &place).map_err(step(failed()))?;
            for path in hidden {
                mask(new_root, &path)?;
            }
        }
        shown.push(open_inside(new_root, path, OFlags::PATH).map_err(step(failed()))?);
    }
    for path in separate_mounts()? {
        if let Some(piece) = shown_again(&path, false, PLAIN | libc::MOUNT_ATTR_RDONLY)? {
            attach(new_root, piece)?;
        }
    }
    Ok(shown)
}

/// Mounts an overlay of a directory in the new root. `false`: there is no overlayfs.
fn layer(number: usize, path: &str, hidden: &[String]) -> Result<bool, Errno> {
    let (upper, work) = (format!("layers/{number}"), format!("layers/{number}-work"));
    for dir in [&upper, &work] {
        rustix::fs::mkdir(dir, Mode::from_raw_mode(0o755))?;
    }
    for path in hidden {
        whiteout(&upper, path.strip_prefix("/etc/").unwrap_or(path))?;
    }
    // The paths are relative and ours, so that no byte of a user's path is in the option string.
    let options = format!("lowerdir={path},upperdir={upper},workdir={work}");
    let options = std::ffi::CString::new(options).map_err(|_| Errno::INVAL)?;
    let target = format!("new{path}");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match rustix::mount::mount("overlay", target.as_str(), "overlay", flags, Some(options.as_c_str())) {
        Ok(()) => Ok(true),
        Err(errno) if is_missing(errno) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Makes a path not be there in an overlay. The directories above it keep the modes they have on the machine.
fn whiteout(upper: &str, relative: &str) -> Result<(), Errno> {
    let mut above = String::new();
    let (dirs, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    for dir in dirs.split('/').filter(|dir| !dir.is_empty()) {
        above = format!("{above}/{dir}");
        let mode = std::fs::metadata(format!("/etc{above}")).map_or(0o755, |meta| meta.mode() & 0o7777);
        match rustix::fs::mkdir(format!("{upper}{above}"), Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    let place = format!("{upper}{above}/{name}");
    rustix::fs::mknodat(rustix::fs::CWD, place, FileType::CharacterDevice, Mode::empty(), 0)
}

/// Files and directories beneath one that other users of the machine may not read: shadow passwords, private keys,
/// credentials of other programs. Root in a container is nobody special to the machine.
fn not_for_everybody(dir: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        let (Ok(what), Some(path)) = (entry.metadata(), entry.path().to_str().map(str::to_owned)) else { continue };
        if !open_to_all(&what) {
            found.push(path);
        } else if what.is_dir() {
            found.extend(not_for_everybody(&path));
        }
    }
    found
}

fn open_to_all(what: &Metadata) -> bool {
    let needed = if what.is_dir() { 0o005 } else { 0o004 };
    what.is_symlink() || what.mode() & needed == needed
}

/// Hides what must not be seen of `/proc` and `/sys`, and keeps the rest of the kernel's settings from being changed.
fn protect(new_root: &OwnedFd) -> Result<(), StartError> {
    for path in MASKED {
        mask(new_root, path)?;
    }
    for path in READ_ONLY {
        let failed = || format!("{path} cannot be made read-only for the process");
        let place = match open_inside(new_root, path, OFlags::PATH) {
            Ok(place) => place,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(step(failed())(errno)),
        };
        let tree = clone_tree(&place, "", true).map_err(step(failed()))?;
        sys::set_mount_attributes(&tree, libc::MOUNT_ATTR_RDONLY, true).map_err(step(failed()))?;
        put(&tree, &place).map_err(step(failed()))?;
    }
    Ok(())
}

/// Puts nothing in the place of a file or directory, if it is there.
fn mask(new_root: &OwnedFd, path: &str) -> Result<(), StartError> {
    let failed = || format!("{path} cannot be hidden from the process");
    let place = match open_inside(new_root, path, OFlags::PATH) {
        Ok(place) => place,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(step(failed())(errno)),
    };
    let what = rustix::fs::fstat(&place).map_err(step(failed()))?;
    let tree = match FileType::from_raw_mode(what.st_mode) {
        FileType::Directory => {
            let how = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            fresh("tmpfs", path, &[("mode", "0755"), ("size", "4k")], how)?.tree
        }
        _ => {
            let tree = clone_tree(rustix::fs::CWD, "/dev/null", false).map_err(step(failed()))?;
            sys::set_mount_attributes(&tree, libc::MOUNT_ATTR_RDONLY, false).map_err(step(failed()))?;
            tree
        }
    };
    put(&tree, &place).map_err(step(failed()))
}

pub(crate) fn clone_tree(dir: impl AsFd, path: &str, recursive: bool) -> Result<OwnedFd, Errno> {
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
fn system_pieces(spec: &Spec) -> Result<Vec<Piece>, StartError> {
    let (privileged, host_network) = (spec.sandbox.privileged, spec.sandbox.host_network);
    let exec = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let quiet = exec | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mut pieces = vec![fresh("proc", "/proc", &[], quiet)?];
    if privileged {
        for path in ["/dev", "/sys"] {
            pieces.extend(shown_again(path, true, 0)?);
        }
    } else {
        // One of its own shows the devices of its own network only.
        let own = match host_network {
            true => None,
            false => fresh("sysfs", "/sys", &[], quiet | MountAttrFlags::MOUNT_ATTR_RDONLY).ok(),
        };
        pieces.extend(match own {
            Some(own) => Some(own),
            None => shown_again("/sys", false, PLAIN | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY)?,
        });
        pieces.extend(devices::pieces(&spec.devices)?);
    }
    for (path, mode) in [("/tmp", "1777"), ("/run", "0755")] {
        pieces.push(fresh("tmpfs", path, &[("mode", mode)], exec)?);
    }
    if let Some(path) = resolver_dir() {
        let shown = shown_again(&path, false, PLAIN | libc::MOUNT_ATTR_RDONLY)?;
        pieces.extend(shown.map(|piece| Piece { needed: true, ..piece }));
    }
    Ok(pieces)
}

/// System directories and files that are mounts of their own, outer ones first, except those that are shown anyway.
fn separate_mounts() -> Result<BTreeSet<String>, StartError> {
    let all = mounts().map_err(|error| StartError::Asked(format!("the mount table cannot be read: {error}")))?;
    let system = |target: &String| SYSTEM.iter().any(|place| target != place && is_beneath(target, place));
    Ok(all.into_iter().map(|entry| entry.target).filter(system).collect())
}

/// A view of a place of the machine with these mount attributes; what is mounted beneath it comes along if asked for.
/// `None`: not there.
fn shown_again(path: &str, recursive: bool, attributes: u64) -> Result<Option<Piece>, StartError> {
    let tree = match clone_tree(rustix::fs::CWD, path, recursive) {
        Ok(tree) => tree,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(step(format!("{path} of this machine cannot be shown to the process"))(errno)),
    };
    sys::set_mount_attributes(&tree, attributes, recursive)
        .map_err(step(format!("the view of {path} cannot be made read-only")))?;
    Ok(Some(Piece { tree, target: path.to_owned(), needed: false }))
}

/// A filesystem made for this process alone.
pub(super) fn fresh(
    fstype: &str,
    target: &str,
    options: &[(&str, &str)],
    how: MountAttrFlags,
) -> Result<Piece, StartError> {
    let made = (|| {
        let fs = rustix::mount::fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            rustix::mount::fsconfig_set_string(&fs, *key, *value)?;
        }
        rustix::mount::fsconfig_create(&fs)?;
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, how)
    })();
    let tree = made.map_err(step(format!("{fstype} for {target} of the process cannot be made")))?;
    Ok(Piece { tree, target: target.to_owned(), needed: true })
}

/// Where the resolver's configuration really is, if that is in `/run`, of which the process gets an empty one.
fn resolver_dir() -> Option<String> {
    let file = std::fs::canonicalize("/etc/resolv.conf").ok()?;
    let dir = file.parent()?.to_str()?;
    (dir != "/run" && is_beneath(dir, "/run")).then(|| dir.to_owned())
}

fn attach(new_root: &OwnedFd, piece: Piece) -> Result<(), StartError> {
    let target = &piece.target;
    let asked = |why: &str| StartError::Asked(format!("{target} {why}"));
    let place = match open_inside(new_root, target, OFlags::PATH) {
        Ok(place) => place,
        Err(Errno::NOENT) if !piece.needed => return Ok(()),
        Err(Errno::NOENT) => make_place(new_root, target, &piece.tree).map_err(|errno| match errno {
            Errno::EXIST => asked("leads through a symbolic link to a place the process does not have"),
            Errno::ROFS => asked(
                "does not exist and cannot be made, for what is above it is read-only; create it on the machine or \
                 choose another mountPath",
            ),
            errno => step(format!("the mount point {target} cannot be made for the process"))(errno),
        })?,
        Err(errno) => return Err(step(format!("the mount point {target} cannot be used"))(errno)),
    };
    put(&piece.tree, &place).map_err(step(format!("nothing can be mounted at {target} for the process")))
}

/// A place of the kind that is to be mounted there: a directory, or an empty file.
fn make_place(new_root: &OwnedFd, target: &str, tree: &OwnedFd) -> Result<OwnedFd, Errno> {
    if FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) == FileType::Directory {
        return make_inside(new_root, target);
    }
    let (above, name) = target.trim_end_matches('/').rsplit_once('/').ok_or(Errno::INVAL)?;
    let parent = match above {
        "" => open_inside(new_root, "/", OFlags::PATH | OFlags::DIRECTORY)?,
        above => make_inside(new_root, above)?,
    };
    rustix::fs::mknodat(&parent, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)?;
    open_inside(new_root, target, OFlags::PATH)
}

fn put(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let both_empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", place, "", both_empty)
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

/// Makes the place for a device, if nothing is there. In `/dev` of its own a process has the places made already.
fn make_file_inside(new_root: &OwnedFd, target: &str, privileged: bool) -> Result<(), StartError> {
    match open_inside(new_root, target, OFlags::PATH) {
        Ok(_) => return Ok(()),
        Err(Errno::NOENT) if privileged && is_beneath(target, "/dev") => {
            return Err(StartError::Asked(format!(
                "{target} does not exist, and nothing is made in /dev of this machine, which a privileged container \
                 has; choose a devicePath that is not beneath /dev"
            )));
        }
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(step(format!("the place {target} for a device cannot be used"))(errno)),
    }
    let failed = || format!("the place {target} for a device cannot be made");
    let (above, name) = target.rsplit_once('/').unwrap_or(("", target));
    let dir = match above {
        "" => open_inside(new_root, "/", OFlags::PATH | OFlags::DIRECTORY),
        above => make_inside(new_root, above),
    };
    let dir = dir.map_err(step(failed()))?;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(&dir, name, flags, Mode::from_raw_mode(0o444)).map(drop).map_err(step(failed()))
}

/// The new root becomes the root, and the old one goes with everything in it, so that nothing of the machine is kept
/// busy.
fn change_root(new_root: &OwnedFd) -> Result<(), Errno> {
    rustix::process::fchdir(new_root)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}
