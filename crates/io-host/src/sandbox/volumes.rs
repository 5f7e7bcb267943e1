//! The volumes of a process: whole or a part of one, on directories and on files, with or without later mounts.
//!
//! A part of a volume is named by somebody who may also write to the volume, perhaps right now. So it is looked up by
//! the kernel in one step that never leaves the volume, whatever links there are and whoever turns them over meanwhile,
//! and what was found is used by its descriptor: there is no moment between looking and using.

use std::os::fd::OwnedFd;

use control::host::Propagation;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::root::{PLAIN, Piece, clone_tree};
use super::{StartError, step};
use crate::mountinfo::require_shared;
use crate::record::SpecMount;
use crate::{path, sys};

/// Links within the volume are followed; none leads out of it.
const WITHIN: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// How often a lookup that a rename disturbed is repeated.
const TRIES: u32 = 10_000;

/// The volumes, those nearer to the root first, so that one may be inside another. Those whose mounts the machine is to
/// see must be taken before this mount namespace is parted from the machine's.
pub(super) fn pieces(volumes: &[SpecMount], privileged: bool, both_ways: bool) -> Result<Vec<Piece>, StartError> {
    let chosen = |volume: &&SpecMount| (volume.propagation == Propagation::Bidirectional) == both_ways;
    volumes.iter().filter(chosen).map(|volume| piece(volume, privileged)).collect()
}

/// In the order they are put in place.
pub(super) fn nearest_first(pieces: &mut [Piece]) {
    pieces.sort_by_key(|piece| path::components(&piece.target).map_or(0, |parts| parts.len()));
}

fn piece(volume: &SpecMount, privileged: bool) -> Result<Piece, StartError> {
    let SpecMount { source, target, read_only, sub_path, of_machine, propagation } = volume;
    let unusable = |why: String| StartError::Asked(format!("the volume for {target} cannot be used: {why}"));
    let mut from = match of_machine {
        true => rustix::fs::open(source.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(step(format!("{source} of this machine cannot be used for {target}")))?,
        false => path::open_existing(source, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|error| unusable(error.to_string()))?,
    };
    if !sub_path.is_empty() {
        from = part(&from, sub_path, target)?;
    }
    if *propagation == Propagation::Bidirectional {
        require_shared(source).map_err(|error| unusable(error.to_string()))?;
    }
    let failed = || format!("the volume at {source} cannot be shown");
    let tree = clone_tree(&from, "", *of_machine).map_err(step(failed()))?;
    let plain = if privileged { 0 } else { PLAIN };
    let unseen = || format!("the volume for {target} cannot be shown as asked");
    sys::set_mount_attributes(&tree, plain, *of_machine).map_err(step(unseen()))?;
    if *read_only {
        sys::set_mount_attributes(&tree, libc::MOUNT_ATTR_RDONLY, false).map_err(step(unseen()))?;
    }
    match propagation {
        Propagation::None => sys::set_propagation(&tree, libc::MS_PRIVATE).map_err(step(unseen()))?,
        Propagation::HostToContainer => sys::set_propagation(&tree, libc::MS_SLAVE).map_err(step(unseen()))?,
        Propagation::Bidirectional => {}
    }
    Ok(Piece { tree, target: target.clone(), needed: true })
}

/// A part of a volume. A directory that is missing is made, as the root of the volume is.
fn part(volume: &OwnedFd, sub_path: &str, target: &str) -> Result<OwnedFd, StartError> {
    let unusable = |errno: Errno| match errno {
        Errno::XDEV => {
            StartError::Asked(format!("the path {sub_path:?} for {target} leads out of the volume through a link"))
        }
        Errno::ROFS => StartError::Asked(format!(
            "{sub_path:?} for {target} is not in the volume and cannot be made, for the volume is read-only"
        )),
        errno => step(format!("the path {sub_path:?} in the volume for {target} cannot be used"))(errno),
    };
    match within(volume, sub_path, OFlags::PATH) {
        Err(Errno::NOENT) => {}
        found => return found.map_err(unusable),
    }
    let mode = rustix::fs::fstat(volume).map_err(unusable)?.st_mode & 0o7777;
    let (mut here, mut above) =
        (within(volume, ".", OFlags::PATH | OFlags::DIRECTORY).map_err(unusable)?, String::new());
    for part in sub_path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        above = if above.is_empty() { part.to_owned() } else { format!("{above}/{part}") };
        here = match within(volume, &above, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(mode)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(unusable(errno)),
                }
                within(volume, &above, OFlags::PATH | OFlags::DIRECTORY).map_err(unusable)?
            }
            found => found.map_err(unusable)?,
        };
    }
    Ok(here)
}

fn within(volume: &OwnedFd, inner: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..TRIES {
        match rustix::fs::openat2(volume, inner, flags | OFlags::CLOEXEC, Mode::empty(), WITHIN) {
            // A rename elsewhere disturbed the lookup, and the kernel cannot tell whether it stayed within.
            Err(Errno::AGAIN | Errno::INTR) => {}
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn open(dir: &std::path::Path) -> OwnedFd {
        rustix::fs::open(dir, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    fn number(fd: &OwnedFd) -> u64 {
        rustix::fs::fstat(fd).unwrap().st_ino
    }

    // KL-51: what a part of a volume is, and that missing directories are made with the volume's mode.
    #[test]
    fn a_part_is_found_through_links_within_and_made_where_it_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o750)).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a", root.join("inner")).unwrap();
        let volume = open(root);
        let found = part(&volume, "inner/b", "/t").unwrap();
        assert_eq!(number(&found), std::fs::metadata(root.join("a/b")).unwrap().ino());
        part(&volume, "inner/x//y", "/t").unwrap();
        assert!(root.join("a/x/y").is_dir());
        std::fs::write(root.join("file"), "x").unwrap();
        assert_eq!(number(&part(&volume, "file", "/t").unwrap()), std::fs::metadata(root.join("file")).unwrap().ino());
    }

    #[test]
    fn no_link_leads_out() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path();
        symlink(outside.path(), root.join("absolute")).unwrap();
        symlink("../..", root.join("up")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let volume = open(root);
        for bad in ["absolute", "absolute/made", "up", "up/etc", "magic/etc", "dangling"] {
            let error = part(&volume, bad, "/t").err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("/t")), "{bad}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "nothing was made outside");
    }

    /// Somebody turns a directory into a link that leads out and back, as fast as he can.
    #[test]
    fn a_link_that_is_swapped_meanwhile_never_leads_out() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path().to_owned();
        std::fs::create_dir_all(root.join("real")).unwrap();
        symlink(outside.path(), root.join("link")).unwrap();
        let forbidden = std::fs::metadata(outside.path()).unwrap().ino();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let both = (open(&root), rustix::fs::RenameFlags::EXCHANGE);
                    let _ = rustix::fs::renameat_with(&both.0, "real", &both.0, "link", both.1);
                }
            });
            let volume = open(&root);
            for _ in 0..2_000 {
                if let Ok(found) = part(&volume, "real", "/t") {
                    assert_ne!(number(&found), forbidden);
                }
                let _ = part(&volume, "real/made", "/t");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "nothing was made outside");
    }
}
