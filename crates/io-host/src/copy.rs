//! Copies of images and directories: blocks shared where the filesystem can, holes kept. Filesystems in images are held
//! still meanwhile; a directory cannot be, so it is looked at twice, and copied again if it changed in between.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use control::host::Copying;
use rustix::fs::{FileType, OFlags, RenameFlags, SeekFrom};
use rustix::io::Errno;

use crate::error::{HostError, begun, os, refused};
use crate::files::{create_partial, unlink_partial};
use crate::loops::{self, LoopEntry};
use crate::mountinfo::{MountEntry, is_beneath, mounts};
use crate::path::{self, Place};
use crate::sys;
use crate::tree::copy::Draft;
use crate::tree::walk::{self, Looking, Seen, Upset};

/// How much is copied with one call, so that no call takes for ever.
const PIECE: u64 = 64 << 20;
/// How often a directory is copied that somebody writes to.
const ATTEMPTS: u32 = 3;

/// How fast to copy: as fast as can be, or no faster than so many bytes a second, block by block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace(pub(crate) Option<NonZeroU64>);

impl Pace {
    /// How much to copy at once.
    fn piece(self) -> u64 {
        self.0.map_or(PIECE, |rate| (rate.get() / 20).clamp(4096, PIECE))
    }

    fn rest(self, copied: u64) {
        if let Some(rate) = self.0 {
            std::thread::sleep(Duration::from_micros(copied.saturating_mul(1_000_000) / rate));
        }
    }
}

/// What is copied.
enum Source {
    Image(File),
    Tree(OwnedFd),
}

/// What it has become, without its name yet.
enum Made {
    Image(String, File),
    Tree(Box<Draft>),
}

/// Copies images and directories as they all are at one moment.
pub(crate) fn copy_together(copies: &[Copying], pace: Pace) -> Result<(), HostError> {
    let mut missing = Vec::new();
    for copy in copies {
        let place = path::place_existing(&copy.to)?;
        match place.seen()?.as_ref().map(path::kind) {
            None => missing.push((copy, place)),
            Some(FileType::RegularFile | FileType::Directory) => place.sync()?,
            Some(_) => return Err(HostError::WrongKind { path: copy.to.clone(), wanted: "a plain file" }),
        }
    }
    let sources = missing.iter().map(|(copy, _)| open_source(copy)).collect::<Result<Vec<_>, _>>()?;
    let made = copy_at_one_moment(&missing, &sources, pace).inspect_err(|_| {
        // On a full disk they would keep the room that somebody needs to make room.
        for (_, place) in &missing {
            let _ = unlink_partial(place);
        }
    })?;
    // The filesystems run again: making the copies durable takes time and needs them no longer.
    missing.iter().zip(made).try_for_each(|((_, place), made)| made.appear(place))
}

impl Made {
    /// Gives it its name, once it is on disk.
    fn appear(self, place: &Place<'_>) -> Result<(), HostError> {
        match self {
            Made::Tree(draft) => draft.appear(place),
            Made::Image(partial, file) => {
                rustix::fs::fsync(&file).map_err(refused("sync", place.path))?;
                appear(place, &partial)
            }
        }
    }
}

fn length(file: &File, path: &str) -> Result<u64, HostError> {
    file.metadata().map(|meta| meta.len()).map_err(|error| os("look at", path, error, false))
}

fn open_source(copy: &Copying) -> Result<Source, HostError> {
    let path = &copy.from;
    let file = File::from(path::open_existing(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let meta = file.metadata().map_err(|error| os("look at", path, error, false))?;
    if meta.is_dir() {
        if is_beneath(&copy.to, path) {
            return Err(HostError::Path { path: copy.to.clone(), why: "is in the directory it is to be a copy of" });
        }
        return Ok(Source::Tree(file.into()));
    }
    if !meta.is_file() {
        return Err(HostError::WrongKind { path: path.to_owned(), wanted: "a plain file or a directory" });
    }
    Ok(Source::Image(file))
}

/// Copies until nothing changed meanwhile, which is at the first attempt unless somebody writes to a directory.
fn copy_at_one_moment(
    missing: &[(&Copying, Place<'_>)],
    sources: &[Source],
    pace: Pace,
) -> Result<Vec<Made>, HostError> {
    for _ in 0..ATTEMPTS {
        match copy_still(missing, sources, pace) {
            Ok(made) => return Ok(made),
            Err(Upset::Failed(error)) => return Err(error),
            // Changes made one after the other are told apart only some time later.
            Err(Upset::Changed) => std::thread::sleep(walk::pause()),
        }
    }
    let trees = missing.iter().zip(sources).filter(|(_, source)| matches!(source, Source::Tree(_)));
    let what = trees.map(|((copy, _), _)| copy.from.as_str()).collect::<Vec<_>>().join(" and ");
    let why = "it changed every time it was copied; let its user pause, or use an image, which can be held still";
    Err(HostError::Busy { what, why: why.to_owned() })
}

/// Holds everything still that can be, copies, looks whether the rest kept still, and lets go, whatever happens.
fn copy_still(missing: &[(&Copying, Place<'_>)], sources: &[Source], pace: Pace) -> Result<Vec<Made>, Upset> {
    let mut held = Vec::new();
    for (copy, place) in missing {
        if let Some(mounted) = &copy.still {
            held.push(Still::hold(mounted, place)?);
        }
    }
    let since = walk::beginning();
    let (mut made, mut seen): (Vec<Made>, Vec<Option<Seen>>) = (Vec::new(), Vec::new());
    for ((copy, place), source) in missing.iter().zip(sources) {
        match source {
            Source::Image(image) => {
                flush_devices(&copy.from)?;
                let (partial, file) = create_partial(place)?;
                copy_content(image, &file, pace).map_err(refused("copy to", place.path))?;
                let (wanted, found) = (length(image, &copy.from)?, length(&file, place.path)?);
                if found != wanted {
                    return Err(HostError::WrongSize { path: place.path.to_owned(), found, wanted }.into());
                }
                made.push(Made::Image(partial, file));
                seen.push(None);
            }
            Source::Tree(top) => {
                let mut draft = Draft::begin(place, pace)?;
                seen.push(Some(walk::walk(top, &copy.from, since, &mut draft)?));
                made.push(Made::Tree(Box::new(draft)));
            }
        }
    }
    for (((copy, _), source), seen) in missing.iter().zip(sources).zip(seen) {
        if let (Source::Tree(top), Some(seen)) = (source, seen)
            && !seen.is_still(&walk::walk(top, &copy.from, since, &mut Looking)?)
        {
            return Err(Upset::Changed);
        }
    }
    Ok(made)
}

/// What was written to the device itself, past any filesystem, waits in the device's own cache.
fn flush_devices(image: &str) -> Result<(), HostError> {
    let Some(seen) = path::place_existing(image)?.seen()? else { return Ok(()) };
    for entry in loops::showing(&seen)? {
        let device = loops::open_block(&entry.device, OFlags::RDONLY)?;
        rustix::fs::fsync(&device).map_err(refused("write out", &entry.device))?;
    }
    Ok(())
}

/// Shares the blocks, or copies those that hold something.
pub(crate) fn copy_content(from: &File, to: &File, pace: Pace) -> rustix::io::Result<()> {
    let shared = if pace.0.is_some() { Err(Errno::OPNOTSUPP) } else { rustix::fs::ioctl_ficlone(to, from) };
    match shared {
        Ok(()) => return Ok(()),
        // The filesystem cannot share blocks, or these two files are not on the same one.
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY) => {}
        Err(errno) => return Err(errno),
    }
    let size = rustix::fs::fstat(from)?.st_size.unsigned_abs();
    rustix::fs::ftruncate(to, size)?;
    let mut at = 0;
    while let Some(data) = data_after(from, at)?.filter(|data| data.start < size) {
        copy_range(from, to, data.start, data.end.min(size), pace)?;
        at = data.end;
    }
    Ok(())
}

/// Where the next bytes are that are no hole. None are left when somebody made the file shorter between two questions.
pub(crate) fn data_after(file: &File, at: u64) -> rustix::io::Result<Option<Range<u64>>> {
    let found = rustix::fs::seek(file, SeekFrom::Data(at))
        .and_then(|data| Ok(data..rustix::fs::seek(file, SeekFrom::Hole(data))?));
    match found {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn copy_range(from: &File, to: &File, mut at: u64, end: u64, pace: Pace) -> rustix::io::Result<()> {
    while at < end {
        let (mut input, mut output) = (at, at);
        let length = usize::try_from((end - at).min(pace.piece())).unwrap_or(1 << 20);
        match rustix::fs::copy_file_range(from, Some(&mut input), to, Some(&mut output), length) {
            // The image became shorter.
            Ok(0) => return Ok(()),
            Ok(copied) => {
                at += copied as u64;
                pace.rest(copied as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => at += copy_by_hand(from, to, at, end)?,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// One buffer's worth, for filesystems that do not copy themselves.
fn copy_by_hand(from: &File, to: &File, at: u64, end: u64) -> rustix::io::Result<u64> {
    let mut buffer = vec![0; usize::try_from((end - at).min(1 << 20)).unwrap_or(1 << 20)];
    let read = rustix::io::pread(from, &mut buffer, at)?;
    let mut written = 0;
    while written < read {
        written += rustix::io::pwrite(to, &buffer[written..read], at + written as u64)?;
    }
    // Nothing more to read: skip to the end rather than ask for ever.
    Ok(if read == 0 { end - at } else { read as u64 })
}

fn appear(place: &Place<'_>, partial: &str) -> Result<(), HostError> {
    match rustix::fs::renameat_with(&place.parent, partial, &place.parent, place.name, RenameFlags::NOREPLACE) {
        Ok(()) => place.sync(),
        Err(Errno::EXIST) => {
            unlink_partial(place)?;
            place.sync()
        }
        Err(errno) => Err(begun("create", place.path)(errno)),
    }
}

/// A filesystem held still. It goes on when this is dropped, also after an error or a panic.
struct Still(OwnedFd);

impl Still {
    fn hold(mounted: &str, copy: &Place<'_>) -> Result<Still, HostError> {
        let dir = path::open_existing(mounted, OFlags::RDONLY | OFlags::DIRECTORY)?;
        // Or a filesystem of the machine itself would stand still.
        if !crate::mount::begins_at(&dir, mounted)? {
            return Err(HostError::WrongKind { path: mounted.to_owned(), wanted: "the root of a mounted filesystem" });
        }
        let number = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
        // A copy onto the very filesystem that stands still would wait for itself.
        if number(&dir).map_err(refused("look at", mounted))?
            == number(&copy.parent).map_err(refused("look at", copy.path))?
        {
            let why = "the copy is to be written to it, so it cannot be held still".to_owned();
            return Err(HostError::Busy { what: mounted.to_owned(), why });
        }
        match sys::freeze(&dir) {
            Ok(()) => Ok(Still(dir)),
            Err(Errno::BUSY) => {
                let why = "it is held still by somebody else".to_owned();
                Err(HostError::Busy { what: mounted.to_owned(), why })
            }
            Err(errno) => Err(refused("hold still", mounted)(errno)),
        }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // The only refusal is one that stands still no longer.
        let _ = sys::thaw(&self.0);
    }
}

/// Lets every filesystem go on that an earlier life left standing still: those mounted from images beneath a directory.
/// Answers where. Only for a time when no copy is under way.
pub fn thaw_images_beneath(dir: &str) -> io::Result<Vec<String>> {
    let ours = |entry: &LoopEntry| is_beneath(&entry.backing_path, dir);
    let devices: Vec<String> = loops::loops()?.into_iter().filter(ours).map(|entry| entry.device).collect();
    let from_ours = |entry: &MountEntry| devices.contains(&entry.source);
    let mut thawed = Vec::new();
    for entry in mounts()?.into_iter().filter(from_ours) {
        let opened = path::open(&entry.target, OFlags::RDONLY | OFlags::DIRECTORY).map_err(io::Error::other)?;
        if opened.is_some_and(|dir| sys::thaw(&dir).is_ok()) {
            thawed.push(entry.target);
        }
    }
    Ok(thawed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    // Every writer that replaces a file's content makes it shorter first, perhaps between two questions of ours.
    #[test]
    fn a_file_that_becomes_shorter_meanwhile_is_no_fault() {
        let bench = tempfile::tempdir().unwrap();
        let (from, to) = (bench.path().join("from"), File::create(bench.path().join("to")).unwrap());
        std::fs::write(&from, "begun").unwrap();
        let stop = AtomicBool::new(false);
        let fault = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    std::fs::write(&from, "again").unwrap();
                }
            });
            let reader = File::open(&from).unwrap();
            let fault = (0..20_000).find_map(|_| copy_content(&reader, &to, Pace(None)).err());
            stop.store(true, Ordering::SeqCst);
            fault
        });
        assert_eq!(fault, None);
    }
}
