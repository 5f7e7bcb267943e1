//! Loop devices: a file shown as a block device. One file, one device, found by the file's inode, never by its path.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, SeekFrom, Statx};
use rustix::io::Errno;

use crate::error::{HostError, os, refused};
use crate::{path, sys};

/// A loop device that shows a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopEntry {
    /// The device, such as `/dev/loop0`.
    pub device: String,
    /// The device number of the filesystem the file is on, major and minor.
    pub backing_device: (u32, u32),
    /// The file's inode number there.
    pub backing_inode: u64,
    /// The file's path when the kernel last knew it, with ` (deleted)` behind it if it is gone.
    pub backing_path: String,
    /// It detaches itself when its last user leaves.
    pub autoclear: bool,
    /// It reads and writes the file past the page cache, so that nothing is held in memory twice.
    pub direct_io: bool,
    /// It shows the whole file, not a part of it.
    pub whole: bool,
}

/// Search and attach are one step for this process, or two threads would give one file two devices.
static ATTACHING: Mutex<()> = Mutex::new(());

/// The devices this process attached, by their file. A hint: whoever uses it asks the device first.
static ATTACHED: Mutex<BTreeMap<Inode, String>> = Mutex::new(BTreeMap::new());

/// A file, whatever its name: the device number of its filesystem and its number there.
type Inode = ((u32, u32), u64);

fn attached() -> std::sync::MutexGuard<'static, BTreeMap<Inode, String>> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a free device may be snatched away before we stop trying.
const FREE_TRIES: u32 = 64;
/// How often, and how long apart, we look whether a device is free of users or has gone. Device scanners open new devices
/// for an instant.
const GONE_TRIES: u32 = 10;
const GONE_PAUSE: Duration = Duration::from_millis(2);
/// How often, and how long apart, detaching is tried again: a process being started holds a copy of every mount for some
/// milliseconds, on a busy machine for some hundred. Others attach and detach meanwhile.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Every loop device that shows a file.
pub fn loops() -> io::Result<Vec<LoopEntry>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("loop") {
            found.extend(entry_of(&name)?);
        }
    }
    found.sort_by(|a, b| (a.device.len(), &a.device).cmp(&(b.device.len(), &b.device)));
    Ok(found)
}

/// One loop device, or `None` if it shows nothing now.
fn entry_of(name: &str) -> io::Result<Option<LoopEntry>> {
    // This file is there only while a file is attached, so that idle devices are not even opened.
    let Ok(backing) = std::fs::read(format!("/sys/block/{name}/loop/backing_file")) else { return Ok(None) };
    let device = format!("/dev/{name}");
    let info = match open_device(&device, OFlags::RDONLY).and_then(sys::loop_status) {
        Ok(info) => info,
        Err(Errno::NXIO | Errno::NODEV | Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let backing = String::from_utf8_lossy(&backing);
    Ok(Some(LoopEntry {
        device,
        backing_device: (rustix::fs::major(info.lo_device), rustix::fs::minor(info.lo_device)),
        backing_inode: info.lo_inode,
        backing_path: backing.strip_suffix('\n').unwrap_or(&backing).to_owned(),
        autoclear: info.lo_flags & sys::LOOP_AUTOCLEAR != 0,
        direct_io: info.lo_flags & sys::LOOP_DIRECT_IO != 0,
        whole: info.lo_offset == 0 && info.lo_sizelimit == 0,
    }))
}

fn open_device(device: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(device, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty())
}

/// The loop devices that show this file.
pub(crate) fn showing(file: &Statx) -> Result<Vec<LoopEntry>, HostError> {
    showing_inode((file.stx_dev_major, file.stx_dev_minor), file.stx_ino)
}

/// The one this process attached is asked first, so that the others need not be.
fn showing_inode(device: (u32, u32), inode: u64) -> Result<Vec<LoopEntry>, HostError> {
    let hint = attached().get(&(device, inode)).cloned();
    if let Some(entry) = hint.map(|hint| entry_at(&hint)).transpose()?.flatten()
        && (entry.backing_device, entry.backing_inode) == (device, inode)
    {
        return Ok(vec![entry]);
    }
    all_showing(device, inode)
}

/// The device that shows a file now, if one does; asking as few devices as possible. `hint` is one that did before.
pub fn loop_of(image: &str, hint: Option<&str>) -> io::Result<Option<String>> {
    let Some(fd) = path::open(image, OFlags::RDONLY | OFlags::NONBLOCK).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let file = File::from(fd);
    let meta = file.metadata()?;
    let (device, inode) = ((rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev())), meta.ino());
    if let Some(entry) = hint.map(|hint| entry_at(hint).map_err(io::Error::other)).transpose()?.flatten()
        && (entry.backing_device, entry.backing_inode) == (device, inode)
    {
        return Ok(Some(entry.device));
    }
    if sys::keep_closed(&file).is_some() {
        return Ok(None);
    }
    Ok(showing_inode(device, inode).map_err(io::Error::other)?.into_iter().next().map(|entry| entry.device))
}

/// The file behind a loop device has no byte in it, and none on the way: reading would show zeros to the end. `false`
/// also where that cannot be told.
pub(crate) fn is_unwritten(device: &str) -> Result<bool, HostError> {
    let Some(entry) = entry_at(device)?.filter(|entry| entry.whole) else { return Ok(false) };
    if sys::write_out(&open_block(device, OFlags::RDONLY)?).is_err() {
        return Ok(false);
    }
    let Ok(Some(fd)) = path::open(&entry.backing_path, OFlags::RDONLY | OFlags::NONBLOCK) else { return Ok(false) };
    let file = File::from(fd);
    let same = file.metadata().is_ok_and(|meta| {
        let on = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        (on, meta.ino()) == (entry.backing_device, entry.backing_inode)
    });
    Ok(same && rustix::fs::seek(&file, SeekFrom::Data(0)) == Err(Errno::NXIO))
}

fn all_showing(device: (u32, u32), inode: u64) -> Result<Vec<LoopEntry>, HostError> {
    let all = loops().map_err(|error| os("list", "the loop devices", error, false))?;
    Ok(all.into_iter().filter(|entry| entry.backing_device == device && entry.backing_inode == inode).collect())
}

/// Attaches a file, or finds the device it is attached to.
pub(crate) fn attach(image: &str) -> Result<String, HostError> {
    let _alone = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::from(path::open_existing(image, OFlags::RDWR | OFlags::NONBLOCK)?);
    let meta = file.metadata().map_err(|error| os("look at", image, error, false))?;
    if !meta.is_file() {
        return Err(HostError::WrongKind { path: image.to_owned(), wanted: "a plain file" });
    }
    let inode = ((rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev())), meta.ino());
    // Nobody else has the file open, so no device shows it. The lease that says so is given back before a device gets this
    // very description of the file: a process killed in between would leave the lease to the device, and with it a file
    // that nobody can open for as long as the kernel is patient.
    let closed = sys::keep_closed(&file).is_some();
    if !closed && let Some(device) = usable(image, all_showing(inode.0, inode.1)?)? {
        return Ok(device);
    }
    let device = configure_free(&file, image)?;
    let shown = if closed { entry_at(&device)?.into_iter().collect() } else { all_showing(inode.0, inode.1)? };
    // Another program may have attached the same file meanwhile: then ours goes again, before anybody writes to it.
    match shown.as_slice() {
        [only] if only.device == device && only.whole && only.backing_inode == inode.1 => {
            attached().insert(inode, device.clone());
            Ok(device)
        }
        [] => Err(HostError::Unconfirmed {
            what: format!("{image} at {device}"),
            why: "nothing is attached there".into(),
        }),
        more => {
            let devices = names(more);
            detach_device(&device)?;
            Err(HostError::ForeignLoop { image: image.to_owned(), devices })
        }
    }
}

/// The one device that shows the whole file, if there is exactly one and it will stay.
fn usable(image: &str, found: Vec<LoopEntry>) -> Result<Option<String>, HostError> {
    match found.as_slice() {
        [] => Ok(None),
        [one] if one.whole => {
            if one.autoclear && !keep(&one.device)? {
                return Ok(None);
            }
            Ok(Some(one.device.clone()))
        }
        more => Err(HostError::ForeignLoop { image: image.to_owned(), devices: names(more) }),
    }
}

/// Takes back an earlier detaching that waits for the last user to leave. `false`: that user has just left.
fn keep(device: &str) -> Result<bool, HostError> {
    let kept = open_device(device, OFlags::RDONLY).and_then(|fd| {
        let info = sys::loop_status(&fd)?;
        sys::loop_keep(&fd, info)
    });
    match kept {
        Ok(()) => Ok(true),
        Err(Errno::NXIO) => Ok(false),
        Err(errno) => Err(refused("keep attached", device)(errno)),
    }
}

fn names(entries: &[LoopEntry]) -> String {
    entries.iter().map(|entry| entry.device.as_str()).collect::<Vec<_>>().join(" and ")
}

fn configure_free(file: &File, image: &str) -> Result<String, HostError> {
    const CONTROL: &str = "/dev/loop-control";
    let control = open_device(CONTROL, OFlags::RDWR).map_err(refused("open", CONTROL))?;
    for _ in 0..FREE_TRIES {
        let number =
            sys::loop_free(&control).map_err(|error| os("get a free loop device from", CONTROL, error, false))?;
        let device = format!("/dev/loop{number}");
        let fd = open_device(&device, OFlags::RDWR).map_err(refused("open", &device))?;
        match sys::loop_configure(&fd, file, image) {
            Ok(()) => {
                // That a device is read-only outlives its file, and whoever had it last may have left it so.
                sys::device_read_only(&fd, false).map_err(refused("make writable", &device))?;
                return Ok(device);
            }
            // Somebody else took the device between the two calls.
            Err(Errno::BUSY) => {}
            Err(errno) => return Err(refused("attach", image)(errno)),
        }
    }
    Err(HostError::Busy { what: CONTROL.to_owned(), why: "others take every free loop device first".into() })
}

/// Makes the device of a file as large as the file. Not attached is done.
pub(crate) fn refresh(image: &str) -> Result<(), HostError> {
    let _alone = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(seen) = path::place_existing(image)?.seen()? else {
        return Err(HostError::Missing { path: image.to_owned() });
    };
    for entry in showing(&seen)? {
        let device = open_device(&entry.device, OFlags::RDONLY).map_err(refused("open", &entry.device))?;
        match sys::loop_refresh(&device) {
            // It was detached meanwhile.
            Ok(()) | Err(Errno::NXIO) => {}
            Err(errno) => return Err(refused("give its new size to", &entry.device)(errno)),
        }
    }
    Ok(())
}

/// Sets how much the kernel reads ahead on a device.
pub(crate) fn set_read_ahead(device: &str, kib: u32) -> Result<(), HostError> {
    let block = open_block(device, OFlags::RDONLY)?;
    let sectors = usize::try_from(kib).unwrap_or(usize::MAX).saturating_mul(2);
    sys::device_read_ahead(&block, sectors).map_err(refused("set the read-ahead of", device))
}

/// Detaches a file from its device and waits until it is gone.
pub(crate) fn detach(image: &str) -> Result<(), HostError> {
    for _ in 0..BUSY_TRIES {
        match detach_now(image) {
            Err(HostError::Busy { .. }) => std::thread::sleep(BUSY_PAUSE),
            answer => return answer,
        }
    }
    detach_now(image)
}

/// Detaches a device if it still shows this file, which was removed.
pub(crate) fn detach_removed(device: &str, backing_path: &str) -> Result<(), HostError> {
    let _alone = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    match entry_at(device)? {
        Some(entry) if entry.backing_path == backing_path => detach_device(device),
        Some(_) | None => Ok(()),
    }
}

fn detach_now(image: &str) -> Result<(), HostError> {
    let _alone = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match path::place(image)?.map(|place| place.seen()).transpose()?.flatten() {
        Some(seen) => showing(&seen)?,
        None => showing_path(image)?,
    };
    found.iter().try_for_each(|entry| detach_device(&entry.device))?;
    // Another program may have attached the same file: only one that nobody has open is detached for sure.
    let Some(file) = path::open(image, OFlags::RDONLY | OFlags::NONBLOCK)?.map(File::from) else { return Ok(()) };
    if sys::keep_closed(&file).is_some() {
        return Ok(());
    }
    let meta = file.metadata().map_err(|error| os("look at", image, error, false))?;
    let more = all_showing((rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev())), meta.ino())?;
    more.iter().try_for_each(|entry| detach_device(&entry.device))
}

/// For a file that is gone: the kernel remembers its path.
fn showing_path(image: &str) -> Result<Vec<LoopEntry>, HostError> {
    let gone = format!("{image} (deleted)");
    let all = loops().map_err(|error| os("list", "the loop devices", error, false))?;
    Ok(all.into_iter().filter(|entry| entry.backing_path == image || entry.backing_path == gone).collect())
}

fn detach_device(device: &str) -> Result<(), HostError> {
    let Some(before) = entry_at(device)? else { return Ok(()) };
    attached().remove(&(before.backing_device, before.backing_inode));
    let Some(fd) = claim(device)? else {
        return Err(HostError::Busy { what: device.to_owned(), why: "it is mounted or held open by a program".into() });
    };
    // Or the next one to get this device, us or anybody else, could not write to it.
    sys::device_read_only(&fd, false).map_err(refused("make writable", device))?;
    match sys::loop_clear(&fd) {
        Ok(()) | Err(Errno::NXIO) => {}
        Err(Errno::BUSY) => {
            return Err(HostError::Busy { what: device.to_owned(), why: "the kernel is using it".into() });
        }
        Err(errno) => return Err(refused("detach", device)(errno)),
    }
    drop(fd);
    for _ in 0..GONE_TRIES {
        match entry_at(device)? {
            Some(now) if now.backing_inode == before.backing_inode => std::thread::sleep(GONE_PAUSE),
            Some(_) | None => return Ok(()),
        }
    }
    Err(HostError::Busy {
        what: device.to_owned(),
        why: "a program still holds it open; it detaches when that ends".into(),
    })
}

fn entry_at(device: &str) -> Result<Option<LoopEntry>, HostError> {
    let name = device.trim_start_matches("/dev/");
    entry_of(name).map_err(|error| os("look at", device, error, false))
}

/// Opens the device for ourselves alone, which a mounted filesystem anywhere on the machine prevents. Without this the
/// kernel would accept the detaching of a mounted device and do it at some later time.
fn claim(device: &str) -> Result<Option<OwnedFd>, HostError> {
    for _ in 0..GONE_TRIES {
        match open_device(device, OFlags::RDONLY | OFlags::EXCL) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::BUSY) => std::thread::sleep(GONE_PAUSE),
            Err(errno) => return Err(refused("open", device)(errno)),
        }
    }
    Ok(None)
}

/// Opens a block device and refuses anything else.
pub(crate) fn open_block(device: &str, flags: OFlags) -> Result<File, HostError> {
    let file = File::from(path::open_existing(device, flags | OFlags::NONBLOCK)?);
    let meta = file.metadata().map_err(|error| os("look at", device, error, false))?;
    if !meta.file_type().is_block_device() {
        return Err(HostError::WrongKind { path: device.to_owned(), wanted: "a block device" });
    }
    Ok(file)
}
