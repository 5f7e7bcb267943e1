//! Small files that are durable at the cost of one synced overwrite, many of them together.
//!
//! A file written and renamed durably needs the filesystem to commit its own journal twice. Here the content goes into a
//! log first, whose blocks exist already, so that syncing it changes no metadata; the file itself is then written and
//! renamed without syncing. After a power loss the log says what the files hold. The log has two segments, used in turn:
//! before one is overwritten, the files named in it are synced.
//!
//! Laws: what [`Journal::write`] and [`Journal::remove`] acknowledged is there after any crash. A file is old or new,
//! never mixed. Whoever reads the directory sees the present state at any time. One process at a time has the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{HostError, begun, os};
use crate::files::{create_partial, read_file, remove_file, unlink_partial, write_file};
use crate::journal_entry::{Entry, SECTOR, entries};
use crate::{path, sys};

/// How large a segment is: some hundred records. Before its turn comes again, and at the next start, so many files are
/// synced at once.
const SEGMENT: usize = 256 << 10;

/// A process that ends lets go of its files one after the other, of this one perhaps last.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// A log of small files beneath one directory.
#[derive(Debug)]
pub struct Journal {
    root: String,
    segments: [File; 2],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The segment written to, and where in it.
    active: usize,
    at: usize,
    /// The number of the next entry.
    next: u64,
    /// Entries that wait to be written, and what they are about.
    waiting: Vec<u8>,
    waiting_for: Vec<(u64, String)>,
    /// Somebody is writing.
    writing: bool,
    /// Entries up to here are durable.
    durable: u64,
    /// Durable entries whose file has not been renamed yet, and the segment they are in.
    unapplied: BTreeMap<u64, usize>,
    /// The files each segment is about.
    touched: [BTreeSet<String>; 2],
    /// The disk failed: what is in the log is unknown, so nothing more is promised.
    broken: bool,
}

impl Journal {
    /// The log in a directory, made if it is not there. What it holds is brought to the files, durably, first.
    pub fn open(root: &str) -> Result<Journal, HostError> {
        let segments = [segment(root, "journal-0")?, segment(root, "journal-1")?];
        let mut found = [read(&segments[0], root)?, read(&segments[1], root)?];
        let first = |entries: &Vec<Entry>| entries.first().map_or(0, |entry| entry.number);
        let older = usize::from(first(&found[0]) > first(&found[1]));
        found.sort_by_key(first);
        let mut last = BTreeMap::new();
        // Larger than any number of an earlier life, also of entries that lie there and count no longer.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut next = u64::try_from(now.as_nanos()).unwrap_or(1);
        for entry in found.into_iter().flatten() {
            next = next.max(entry.number + 1);
            last.insert(entry.path, entry.content);
        }
        let mut synced = BTreeSet::new();
        for (name, content) in last {
            let path = format!("{root}/{name}");
            let there = read_file(Path::new(&path)).map_err(|error| os("read", &path, error, false))?;
            match content {
                // Without a power loss it is as the log says. Nothing is written then, so that a full disk is no obstacle.
                content if content == there => synced.extend([path]),
                Some(bytes) => write_file(&path, &bytes)?,
                None => remove_file(&path)?,
            }
        }
        sync_files(&synced)?;
        // The older one first: what is left of the log is always its end, which it does no harm to bring to the files again.
        for segment in [&segments[older], &segments[1 - older]] {
            clear(segment).map_err(|error| os("clear the log in", root, error, true))?;
        }
        path::place_existing(&format!("{root}/journal-0"))?.sync()?;
        let state = State { next, durable: next - 1, ..State::default() };
        Ok(Journal { root: root.to_owned(), segments, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Makes a file beneath the directory hold exactly these bytes.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), HostError> {
        let place = path::place_existing(path)?;
        // Before the log says so: a full disk is found out here.
        let (partial, mut file) = create_partial(&place)?;
        if let Err(error) = file.write_all(bytes) {
            unlink_partial(&place)?;
            return Err(os("write", path, error, false));
        }
        let number = self.log(path, Some(bytes))?;
        let renamed = rustix::fs::renameat(&place.parent, &partial, &place.parent, place.name);
        self.applied(number);
        renamed.map_err(begun("replace", path))
    }

    /// Removes a file beneath the directory. Missing is done.
    pub fn remove(&self, path: &str) -> Result<(), HostError> {
        let Some(place) = path::place(path)? else { return Ok(()) };
        let number = self.log(path, None)?;
        let unlinked = rustix::fs::unlinkat(&place.parent, place.name, AtFlags::empty());
        self.applied(number);
        match unlinked {
            Ok(()) | Err(Errno::NOENT) => unlink_partial(&place),
            Err(errno) => Err(begun("remove", path)(errno)),
        }
    }

    /// Makes an entry durable, together with those of others who wait.
    fn log(&self, path: &str, content: Option<&[u8]>) -> Result<u64, HostError> {
        let failed = |why: &str| os("write the log for", path, io::Error::other(why.to_owned()), true);
        let inside = path.strip_prefix(&self.root).and_then(|rest| rest.strip_prefix('/'));
        let Some(name) = inside else { return Err(HostError::Path { path: path.to_owned(), why: "is elsewhere" }) };
        let mut state = self.state();
        let number = state.next;
        let Some(bytes) = Entry::encode(number, name, content).filter(|bytes| bytes.len() <= SEGMENT / 4) else {
            return Err(os("write the log for", path, io::ErrorKind::FileTooLarge.into(), false));
        };
        state.next += 1;
        state.waiting.extend(bytes);
        state.waiting_for.push((number, path.to_owned()));
        while state.durable < number {
            if state.broken {
                return Err(failed("it failed before; restart the driver"));
            }
            state = if state.writing { self.wait(state) } else { self.write_waiting(state) };
        }
        Ok(number)
    }

    /// Writes everything that waits, with one sync.
    fn write_waiting<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // What does not fit into one segment waits for the next turn.
        let fits = state.waiting.len().min(SEGMENT / 2);
        let (batch, about) = if fits == state.waiting.len() {
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.waiting_for))
        } else {
            split(&mut state)
        };
        state.writing = true;
        if state.at + batch.len() > SEGMENT {
            state = self.turn(state);
            if state.broken {
                // The files of the other segment may be on no disk: what that segment says of them must stay.
                state.writing = false;
                self.changed.notify_all();
                return state;
            }
        }
        let (active, at) = (state.active, state.at);
        let last = about.last().map_or(state.durable, |(number, _)| *number);
        for (number, path) in about {
            state.unapplied.insert(number, active);
            state.touched[active].insert(path);
        }
        drop(state);
        let segment = &self.segments[active];
        let written = segment.write_all_at(&batch, at as u64).and_then(|()| segment.sync_data());
        let mut state = self.state();
        state.writing = false;
        match written {
            Ok(()) => (state.at, state.durable) = (at + batch.len(), last),
            Err(_) => state.broken = true,
        }
        self.changed.notify_all();
        state
    }

    /// Goes on in the other segment, whose files are synced first.
    fn turn<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let other = 1 - state.active;
        while state.unapplied.values().any(|segment| *segment == other) {
            state = self.wait(state);
        }
        let touched = std::mem::take(&mut state.touched[other]);
        drop(state);
        let synced = sync_files(&touched);
        let mut state = self.state();
        state.broken |= synced.is_err();
        (state.active, state.at) = (other, 0);
        state
    }

    fn applied(&self, number: u64) {
        self.state().unapplied.remove(&number);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes as many waiting entries as fit into half a segment.
fn split(state: &mut State) -> (Vec<u8>, Vec<(u64, String)>) {
    let (mut end, mut count) = (0, 0);
    for length in crate::journal_entry::lengths(&state.waiting) {
        if end + length > SEGMENT / 2 {
            break;
        }
        (end, count) = (end + length, count + 1);
    }
    let rest = state.waiting.split_off(end);
    let rest_for = state.waiting_for.split_off(count);
    (std::mem::replace(&mut state.waiting, rest), std::mem::replace(&mut state.waiting_for, rest_for))
}

/// Opens a segment and keeps it for this process.
fn segment(root: &str, name: &str) -> Result<File, HostError> {
    let path = format!("{root}/{name}");
    let place = path::place_existing(&path)?;
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::openat(&place.parent, name, flags, Mode::from_raw_mode(0o600));
    let file = File::from(opened.map_err(begun("open", &path))?);
    let meta = file.metadata().map_err(|error| os("look at", &path, error, false))?;
    if !meta.is_file() {
        return Err(HostError::WrongKind { path, wanted: "a plain file" });
    }
    let until = Instant::now() + CLOSED_WITHIN;
    while !sys::lock(&file).map_err(|error| os("lock", &path, error, false))? {
        if Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        let why = "another driver process uses this directory; stop it first".to_owned();
        return Err(HostError::Busy { what: root.to_owned(), why });
    }
    Ok(file)
}

/// The entries of a segment, whatever its size: that of another version of the driver may differ.
fn read(mut segment: &File, root: &str) -> Result<Vec<Entry>, HostError> {
    let mut bytes = Vec::new();
    segment.read_to_end(&mut bytes).map_err(|error| os("read the log in", root, error, false))?;
    Ok(entries(&bytes))
}

/// Makes a segment empty, and as large as it is to be.
fn clear(segment: &File) -> io::Result<()> {
    // First of all without entries, whatever comes next.
    segment.write_all_at(&[0; SECTOR], 0)?;
    segment.sync_data()?;
    if segment.metadata()?.len() != SEGMENT as u64 {
        // Real zeros: overwriting them later changes nothing but their content.
        segment.write_all_at(&vec![0; SEGMENT], 0)?;
        segment.set_len(SEGMENT as u64)?;
        segment.sync_all()?;
    }
    Ok(())
}

fn sync_files(paths: &BTreeSet<String>) -> Result<(), HostError> {
    let mut dirs = BTreeSet::new();
    for path in paths {
        if let Some(file) = path::open(path, OFlags::RDONLY | OFlags::NONBLOCK)? {
            rustix::fs::fsync(&file).map_err(begun("sync", path))?;
        }
        dirs.extend(path.rsplit_once('/').map(|(dir, _)| dir));
    }
    for dir in dirs {
        if let Some(dir) = path::open(dir, OFlags::RDONLY | OFlags::DIRECTORY)? {
            rustix::fs::fsync(&dir).map_err(begun("sync", "a directory of records"))?;
        }
    }
    Ok(())
}
