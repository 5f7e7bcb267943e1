//! Filesystems on devices that bear no signature at all.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::OFlags;

use crate::error::{HostError, os};
use crate::mount::FILESYSTEMS;
use crate::{loops, sys};

/// What a probe says of a device.
enum Content {
    /// No signature of anything.
    Blank,
    /// A filesystem of this type and nothing else.
    Filesystem(String),
    /// Something else, in words.
    Other(String),
}

/// Puts a filesystem on a blank device.
pub(crate) fn make_filesystem(device: &str, fstype: &str) -> Result<(), HostError> {
    let maker = maker(fstype)?;
    check_readable(device)?;
    // A file nobody ever wrote to holds nothing to be found.
    let content = if loops::is_unwritten(device)? { Content::Blank } else { probe(device)? };
    match content {
        Content::Filesystem(found) if found == fstype => Ok(()),
        Content::Filesystem(found) => Err(foreign(device, format!("a filesystem of type {found}"), fstype)),
        Content::Other(found) => Err(foreign(device, found, fstype)),
        Content::Blank => format(device, fstype, &maker),
    }
}

fn foreign(device: &str, found: String, wanted: &str) -> HostError {
    HostError::ForeignSignature { device: device.to_owned(), found, wanted: wanted.to_owned() }
}

/// A program, the package it is in, and its arguments before the device.
struct Maker {
    tool: &'static str,
    package: &'static str,
    args: &'static [&'static str],
    /// It can be let loose on a file in memory, which is then written in one go: on a device it would wait for the disk
    /// several times.
    in_memory: bool,
    /// The bytes that mark the filesystem, and where they are.
    mark: &'static [u8],
    mark_at: u64,
}

fn maker(fstype: &str) -> Result<Maker, HostError> {
    match fstype {
        // The kernel writes inode tables and journal later, in the background; the image is sparse, so there is nothing to
        // discard; and no blocks are kept back for root on a volume that belongs to one user.
        "ext4" => Ok(Maker {
            tool: "mkfs.ext4",
            package: "e2fsprogs",
            args: &["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
            in_memory: true,
            mark: &[0x53, 0xef],
            mark_at: 1080,
        }),
        "xfs" => Ok(Maker {
            tool: "mkfs.xfs",
            package: "xfsprogs",
            args: &["-q", "-K"],
            in_memory: false,
            mark: b"XFSB",
            mark_at: 0,
        }),
        "btrfs" => Ok(Maker {
            tool: "mkfs.btrfs",
            package: "btrfs-progs",
            args: &["-q", "-K"],
            in_memory: false,
            mark: b"_BHRfS_M",
            mark_at: (64 << 10) + 64,
        }),
        other => {
            debug_assert!(!FILESYSTEMS.contains(&other));
            Err(HostError::UnknownFilesystem { fstype: other.to_owned() })
        }
    }
}

/// A device that cannot be read looks blank to a probe. This one can be read, and is not empty.
fn check_readable(device: &str) -> Result<(), HostError> {
    let mut file = loops::open_block(device, OFlags::RDONLY)?;
    let size = sys::device_size(&file).map_err(|errno| os("find the size of", device, errno.into(), false))?;
    if size == 0 {
        return Err(HostError::WrongKind { path: device.to_owned(), wanted: "a device with any room on it" });
    }
    let mut start = vec![0; usize::try_from(size.min(1 << 18)).unwrap_or(1 << 18)];
    file.read_exact(&mut start).map_err(|error| os("read", device, error, false))
}

fn format(device: &str, fstype: &str, maker: &Maker) -> Result<(), HostError> {
    let block = loops::open_block(device, OFlags::RDWR)?;
    let size = sys::device_size(&block).map_err(|errno| os("find the size of", device, errno.into(), false))?;
    let plain = sys::sector_size(&block).is_ok_and(|bytes| bytes == 512);
    match memory_for(size).filter(|_| maker.in_memory && plain) {
        Some(memory) => {
            make(maker, device, &format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()))?;
            write_through(&memory, &block).map_err(|error| os("write", device, error, true))?;
        }
        None => make(maker, device, device)?,
    }
    confirm(device, fstype, maker)
}

fn make(maker: &Maker, device: &str, on: &str) -> Result<(), HostError> {
    let args: Vec<&str> = maker.args.iter().copied().chain([on]).collect();
    let output = run(maker.tool, maker.package, &args, device)?;
    if output.status.success() { Ok(()) } else { Err(failed(maker.tool, device, &output)) }
}

/// The largest filesystem that is made in memory: what is written of it then takes a few MiB.
const MOST_IN_MEMORY: u64 = 64 << 30;
/// The mark of a filesystem is in here, whichever it is.
const HEAD: u64 = 128 << 10;

/// A file in memory as large as a device.
fn memory_for(size: u64) -> Option<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let memory = rustix::fs::memfd_create(c"filesystem", flags).ok().filter(|_| size <= MOST_IN_MEMORY)?;
    rustix::fs::ftruncate(&memory, size).ok()?;
    Some(File::from(memory))
}

/// Writes to a blank device what a file holds, the mark last, when all else is on disk: what is cut off is no filesystem.
fn write_through(memory: &File, block: &File) -> io::Result<()> {
    let size = memory.metadata()?.len();
    write_range(memory, block, HEAD.min(size), size)?;
    block.sync_data()?;
    write_range(memory, block, 0, HEAD.min(size))?;
    block.sync_data()
}

fn write_range(memory: &File, block: &File, mut at: u64, end: u64) -> io::Result<()> {
    let mut room = vec![0; 1 << 20];
    while let Some(data) = crate::copy::data_after(memory, at)?.filter(|data| data.start < end) {
        let length = usize::try_from(data.end.min(end) - data.start).unwrap_or(usize::MAX).min(room.len());
        memory.read_exact_at(&mut room[..length], data.start)?;
        block.write_all_at(&room[..length], data.start)?;
        at = data.start + length as u64;
    }
    Ok(())
}

/// Looks for the mark the new filesystem must bear. A full probe would cost as much as the first one.
fn confirm(device: &str, fstype: &str, maker: &Maker) -> Result<(), HostError> {
    let file = loops::open_block(device, OFlags::RDONLY)?;
    let mut found = vec![0; maker.mark.len()];
    file.read_exact_at(&mut found, maker.mark_at).map_err(|error| os("read", device, error, true))?;
    if found == maker.mark {
        return Ok(());
    }
    let what = format!("the {fstype} filesystem on {device}");
    Err(HostError::Unconfirmed { what, why: "its mark is not there".to_owned() })
}

/// What is on a device, past all caches.
fn probe(device: &str) -> Result<Content, HostError> {
    let output = run("blkid", "util-linux", &["-p", "-o", "export", device], device)?;
    let (told, warned) = (String::from_utf8_lossy(&output.stdout), !output.stderr.is_empty());
    match output.status.code() {
        // Exit status 2 is "nothing found", but also "could not look", which is told on standard error.
        Some(2) if told.is_empty() && !warned => Ok(Content::Blank),
        Some(8) => Ok(Content::Other("signatures of more than one thing".to_owned())),
        Some(0) => Ok(content(&told)),
        Some(_) | None => Err(failed("blkid", device, &output)),
    }
}

fn content(told: &str) -> Content {
    let value = |key: &str| told.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned);
    let filesystem = value("USAGE").is_some_and(|usage| usage == "filesystem");
    match (value("TYPE"), value("PTTYPE")) {
        (Some(fstype), None) if filesystem => Content::Filesystem(fstype),
        (Some(other), None) => Content::Other(format!("data of type {other}")),
        (None, Some(table)) => Content::Other(format!("a partition table of type {table}")),
        (Some(fstype), Some(table)) => Content::Other(format!("{fstype} and a partition table of type {table}")),
        (None, None) => Content::Other("a signature of unknown kind".to_owned()),
    }
}

/// A program's failure in its own words.
pub(crate) fn failed(tool: &str, device: &str, output: &Output) -> HostError {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let said = if said.is_empty() { output.status.to_string() } else { said };
    HostError::ToolFailed { tool: tool.to_owned(), device: device.to_owned(), said }
}

/// Where system programs are. The caller's own search path does not count.
const PLACES: [&str; 6] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// Runs a program without a shell, with nothing of our environment.
pub(crate) fn run(tool: &str, package: &'static str, args: &[&str], device: &str) -> Result<Output, HostError> {
    let program = PLACES.iter().map(|place| Path::new(place).join(tool)).find(|program| program.exists());
    let Some(program) = program else { return Err(HostError::ToolMissing { tool: tool.to_owned(), package }) };
    let mut command = Command::new(program);
    command.args(args).env_clear().env("PATH", PLACES.join(":")).env("LC_ALL", "C").stdin(Stdio::null());
    command.output().map_err(|error| os("run a program on", device, error, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_table_beside_a_filesystem_is_no_filesystem_of_ours() {
        assert!(matches!(content("TYPE=ext4\nUSAGE=filesystem\n"), Content::Filesystem(fs) if fs == "ext4"));
        assert!(matches!(content("TYPE=vfat\nPTTYPE=dos\nUSAGE=filesystem\n"), Content::Other(_)));
        assert!(matches!(content("TYPE=crypto_LUKS\nUSAGE=crypto\n"), Content::Other(_)));
        assert!(matches!(content("PTTYPE=gpt\n"), Content::Other(_)));
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = run("mkfs.no-such", "xfsprogs", &[], "/dev/null").unwrap_err();
        assert!(error.certain());
        assert!(error.to_string().contains("mkfs.no-such") && error.to_string().contains("xfsprogs"));
    }
}
