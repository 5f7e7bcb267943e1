//! Filesystems made as large as their devices, checked, and made to give back the room they do not use.

use std::os::unix::fs::FileExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::format::{failed, run};
use crate::{loops, mount, path, sys};

/// Makes a filesystem as large as its device.
pub(crate) fn grow_filesystem(device: &str, fstype: &str, mounted_at: Option<&str>) -> Result<(), HostError> {
    // A growth is asked of a place: it must not be another filesystem that is there.
    if let Some(at) = mounted_at.filter(|_| mount::FILESYSTEMS.contains(&fstype))
        && !mount::is_mounted_at(device, at)?
    {
        return Err(HostError::WrongKind { path: at.to_owned(), wanted: "where this device is mounted" });
    }
    match (fstype, mounted_at) {
        ("ext4", None) => grow_ext4_unmounted(device),
        ("ext4", Some(at)) => grow_ext4_mounted(device, at),
        ("xfs", Some(at)) => grow_xfs(device, at),
        ("btrfs", Some(at)) => grow_btrfs(device, at),
        ("xfs" | "btrfs", None) => {
            let why = "this filesystem grows only while it is mounted; mount it first".to_owned();
            Err(HostError::CannotGrow { device: device.to_owned(), why })
        }
        (other, _) => Err(HostError::UnknownFilesystem { fstype: other.to_owned() }),
    }
}

fn open_mounted(at: &str) -> Result<std::os::fd::OwnedFd, HostError> {
    path::open_existing(at, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// The kernel's refusal, with what can be done about it.
fn cannot(device: &str, fstype: &str, errno: Errno) -> HostError {
    let why = match errno {
        Errno::PERM => format!(
            "the kernel lets only a process with CAP_SYS_RESOURCE grow {fstype} while it is mounted; unmount it, and it can be grown"
        ),
        Errno::ROFS => "it is mounted read-only; mount it writable first".to_owned(),
        errno => std::io::Error::from(errno).to_string(),
    };
    HostError::CannotGrow { device: device.to_owned(), why }
}

fn device_size(device: &str) -> Result<u64, HostError> {
    let block = loops::open_block(device, OFlags::RDONLY)?;
    sys::device_size(&block).map_err(refused("find the size of", device))
}

/// What ext4's own first block says.
fn ext4_block(device: &str) -> Result<[u8; 1024], HostError> {
    let mut block = [0; 1024];
    let file = loops::open_block(device, OFlags::RDONLY)?;
    file.read_exact_at(&mut block, 1024).map_err(|error| os("read", device, error, false))?;
    if block[0x38..0x3a] != [0x53, 0xef] {
        return Err(HostError::WrongKind { path: device.to_owned(), wanted: "a device with ext4 on it" });
    }
    Ok(block)
}

/// It was unmounted properly and no error was ever found in it, so that there is nothing to check.
fn ext4_is_clean(device: &str) -> Result<bool, HostError> {
    const VALID: u8 = 1;
    const ERRORS: u8 = 2;
    const NEEDS_RECOVERY: u8 = 4;
    let block = ext4_block(device)?;
    Ok(block[0x3a] & (VALID | ERRORS) == VALID && block[0x60] & NEEDS_RECOVERY == 0)
}

/// The size of blocks and their number, as ext4's own first block says.
fn ext4_size(device: &str) -> Result<(u64, u64), HostError> {
    let block = ext4_block(device)?;
    let word = |at: usize| u64::from(u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]));
    let high = if word(0x60) & 0x80 == 0 { 0 } else { word(0x150) };
    Ok((1024 << word(0x18).min(16), high << 32 | word(0x4)))
}

fn grow_ext4_unmounted(device: &str) -> Result<(), HostError> {
    let (block, blocks) = ext4_size(device)?;
    // What is large enough is not touched, so that this costs one read where there is nothing to grow.
    if blocks >= device_size(device)? / block {
        return Ok(());
    }
    check_ext4(device, &["-f", "-p"])?;
    let output = run("resize2fs", "e2fsprogs", &[device], device)?;
    if output.status.success() { Ok(()) } else { Err(failed("resize2fs", device, &output)) }
}

fn grow_ext4_mounted(device: &str, at: &str) -> Result<(), HostError> {
    let dir = open_mounted(at)?;
    let (block, blocks) = ext4_size(device)?;
    let wanted = device_size(device)? / block;
    if blocks >= wanted {
        return Ok(());
    }
    sys::grow_ext4(&dir, wanted).map_err(|errno| cannot(device, "ext4", errno))
}

/// The kernel refuses to resize to less than 256 MiB, also where that is the size already.
fn grow_btrfs(device: &str, at: &str) -> Result<(), HostError> {
    let dir = open_mounted(at)?;
    let now = rustix::fs::fstatvfs(&dir).map_err(|errno| cannot(device, "btrfs", errno))?;
    let wanted = device_size(device)? / now.f_frsize.max(512);
    if now.f_blocks >= wanted {
        return Ok(());
    }
    sys::grow_btrfs(&dir).map_err(|errno| match errno {
        Errno::INVAL => {
            let why = "btrfs grows to 256 MiB or more; ask for more".to_owned();
            HostError::CannotGrow { device: device.to_owned(), why }
        }
        errno => cannot(device, "btrfs", errno),
    })
}

fn grow_xfs(device: &str, at: &str) -> Result<(), HostError> {
    let dir = open_mounted(at)?;
    let now = sys::xfs_geometry(&dir).map_err(|errno| cannot(device, "xfs", errno))?;
    let wanted = device_size(device)? / u64::from(now.block_size.max(512));
    if now.blocks >= wanted {
        return Ok(());
    }
    sys::grow_xfs(&dir, wanted, now.inode_percent).map_err(|errno| cannot(device, "xfs", errno))
}

/// Checks a filesystem that is not mounted and repairs what is safe to repair. XFS and btrfs do that themselves when
/// they are mounted; their repair programs are for people.
pub(crate) fn check_filesystem(device: &str, fstype: &str) -> Result<(), HostError> {
    loops::open_block(device, OFlags::RDONLY)?;
    match fstype {
        // Starting a program costs more than mounting, so it is started where there is something for it to do.
        "ext4" if ext4_is_clean(device)? => Ok(()),
        "ext4" => check_ext4(device, &["-p"]),
        "xfs" | "btrfs" => Ok(()),
        other => Err(HostError::UnknownFilesystem { fstype: other.to_owned() }),
    }
}

fn check_ext4(device: &str, args: &[&str]) -> Result<(), HostError> {
    let args: Vec<&str> = args.iter().copied().chain([device]).collect();
    let output = run("e2fsck", "e2fsprogs", &args, device)?;
    match output.status.code() {
        // Sound, or repaired.
        Some(0 | 1) => Ok(()),
        Some(_) | None => Err(failed("e2fsck", device, &output)),
    }
}

/// Gives back the room a mounted filesystem does not use to what lies beneath it. The path must be the root of a mount,
/// so that no filesystem of the machine itself is ever worked on by mistake. XFS frees the room of deleted files in the
/// background; what it has not come to yet is given back the next time.
pub(crate) fn discard(path: &str) -> Result<(), HostError> {
    let dir = open_mounted(path)?;
    if !mount::begins_at(&dir, path)? {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "the root of a mounted filesystem" });
    }
    // XFS is urged to free what was deleted by being asked how full it is; and what was just deleted is free only when
    // the filesystem has written that down.
    rustix::fs::fstatvfs(&dir).map_err(refused("measure", path))?;
    rustix::fs::syncfs(&dir).map_err(refused("write out", path))?;
    match sys::trim(&dir) {
        Ok(()) => Ok(()),
        Err(errno @ (Errno::OPNOTSUPP | Errno::NOTTY | Errno::ROFS | Errno::PERM)) => {
            let why = match errno {
                Errno::ROFS => "it is read-only".to_owned(),
                errno => format!("it, or the device it is on, does not do that ({})", std::io::Error::from(errno)),
            };
            Err(HostError::CannotDiscard { path: path.to_owned(), why })
        }
        Err(errno) => Err(begun("give back the free room of", path)(errno)),
    }
}
