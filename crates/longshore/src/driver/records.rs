//! How records reach the disk, and how those of the driver's other process are heard of.
//!
//! A process that is alone with its state makes records durable through a log ([`Journal`]). Where controller and node are
//! two processes, each writes its records file by file, hears of the other's by inotify, holds a volume across both while
//! it works on it, and promises bytes of the pool only while it holds the one lock for that: until its promise is on disk
//! the other one waits, so the last bytes are never promised twice.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use control::host::{Op, Reply};
use csi::{Call, Lock};
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
use io_host::{HostError, Journal, LockHeld, Locks};
use rules_driver::{Config, Facts, Files, RecordKind};

/// Held by every process on a state directory: alone, or shared with the other half of a split driver.
const WHOLE: u64 = 2;
/// Held while the pool is counted and a promise written.
const PROMISE: u64 = 4;
/// Held while what an earlier driver left in its log is brought to the files.
const REPLAY: u64 = 6;

/// The records of one driver process.
pub struct Records {
    how: How,
    _whole: LockHeld,
}

enum How {
    /// Nobody else writes them.
    Alone(Journal),
    /// The other half of the driver writes them too.
    Shared(Shared),
}

struct Shared {
    locks: Locks,
    changes: Mutex<Inotify>,
    watched: Vec<(WatchDescriptor, RecordKind)>,
    /// Locks between processes do not keep apart calls of one process.
    promising: tokio::sync::Mutex<()>,
}

/// The promise of a call, kept from others until its record is on disk.
pub type Promise<'a> = Option<(tokio::sync::MutexGuard<'a, ()>, LockHeld)>;

impl Records {
    /// Takes the records over, alone or as one of two processes.
    pub fn open(config: &Config) -> Result<Records> {
        let locks = Locks::open(&Path::new(&config.state_dir).join("locks"))
            .with_context(|| format!("cannot use {}", config.state_dir))?;
        let Some(whole) = locks.take_soon(WHOLE, !config.alone())? else {
            bail!(
                "another driver process uses {}; stop it first, or give this one another --state-dir",
                config.state_dir
            );
        };
        let how = if config.alone() {
            How::Alone(Journal::open(&config.state_dir)?)
        } else {
            let _alone = locks.wait_for(REPLAY)?;
            if Path::new(&config.state_dir).join("journal-0").exists() {
                Journal::open(&config.state_dir)?;
            }
            How::Shared(Shared::watch(config, locks)?)
        };
        Ok(Records { how, _whole: whole })
    }

    /// Whether records are kept in the journal, so that operations on them are for [`Records::write`].
    pub fn keep(&self) -> bool {
        matches!(self.how, How::Alone(_))
    }

    /// Performs an operation on a record in the journal.
    pub fn write(&self, op: &Op) -> Result<Reply, HostError> {
        let done = match (&self.how, op) {
            (How::Alone(journal), Op::WriteFile { path, bytes }) => journal.write(path, bytes),
            (How::Alone(journal), Op::RemoveFile { path }) => journal.remove(path),
            (How::Alone(_) | How::Shared(_), _) => Ok(()),
        };
        done.map(|()| Reply::Done)
    }

    /// Holds what a call works on against the other process. `None`: that one works on it.
    pub fn hold(&self, locks: &[Lock]) -> Result<Option<Vec<LockHeld>>> {
        let How::Shared(shared) = &self.how else { return Ok(Some(vec![])) };
        // What only reads is the same process's business.
        let alone = locks.iter().filter(|lock| !lock.shared);
        let taken = alone.map(|lock| shared.locks.take(number(&lock.key()), false));
        taken.collect::<Result<Option<Vec<_>>, _>>().context("cannot lock the volume")
    }

    /// Keeps the other process from promising, if the call may promise anything itself.
    pub async fn promise(&self, call: &Call) -> Result<Promise<'_>> {
        let How::Shared(shared) = &self.how else { return Ok(None) };
        if !rules_driver::promises(call) {
            return Ok(None);
        }
        let first = shared.promising.lock().await;
        let locks = shared.locks.clone();
        let held = tokio::task::spawn_blocking(move || locks.wait_for(PROMISE)).await;
        match held {
            Ok(Ok(Some(held))) => Ok(Some((first, held))),
            Ok(Ok(None)) | Ok(Err(_)) | Err(_) => bail!("the pool cannot be locked; call again"),
        }
    }

    /// Takes in what the other process wrote since the last call.
    pub fn catch_up(&self, config: &Config, facts: &mut Facts) -> Result<()> {
        let How::Shared(shared) = &self.how else { return Ok(()) };
        match shared.changed().context("cannot hear of the other process's records")? {
            Some(changed) => changed.into_iter().try_for_each(|(kind, file)| reload(config, facts, kind, &file)),
            None => reload_all(config, facts),
        }
    }
}

impl Shared {
    fn watch(config: &Config, locks: Locks) -> Result<Shared> {
        let changes = Inotify::init().context("cannot watch the records")?;
        let events = WatchMask::MOVED_TO | WatchMask::MOVED_FROM | WatchMask::DELETE | WatchMask::CLOSE_WRITE;
        let mut watched = Vec::new();
        for kind in RecordKind::ALL {
            let dir = config.record_dir(kind);
            watched.push((changes.watches().add(&dir, events).with_context(|| format!("cannot watch {dir}"))?, kind));
        }
        Ok(Shared { locks, changes: Mutex::new(changes), watched, promising: tokio::sync::Mutex::default() })
    }

    /// The record files that changed; nothing if there were too many changes to be told.
    fn changed(&self) -> std::io::Result<Option<Vec<(RecordKind, String)>>> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut room) = (Vec::new(), [0; 16 << 10]);
        loop {
            let events = match changes.read_events(&mut room) {
                Ok(events) => events,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(Some(found)),
                Err(error) => return Err(error),
            };
            for event in events {
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    return Ok(None);
                }
                let kind = self.watched.iter().find(|(watch, _)| *watch == event.wd).map(|(_, kind)| *kind);
                if let (Some(kind), Some(name)) = (kind, event.name.and_then(|name| name.to_str())) {
                    found.push((kind, name.to_owned()));
                }
            }
        }
    }
}

fn reload(config: &Config, facts: &mut Facts, kind: RecordKind, file: &str) -> Result<()> {
    let path = Path::new(&config.record_dir(kind)).join(file);
    let bytes = io_host::read_file(&path).with_context(|| format!("cannot read {file}"))?;
    facts.reload(kind, file, bytes.as_deref()).map_err(|error| anyhow!(error))
}

fn reload_all(config: &Config, facts: &mut Facts) -> Result<()> {
    for kind in RecordKind::ALL {
        let dir = config.record_dir(kind);
        let there = io_host::list_dir(Path::new(&dir)).with_context(|| format!("cannot list {dir}"))?;
        facts.doubtful(kind, there).iter().try_for_each(|file| reload(config, facts, kind, file))?;
    }
    Ok(())
}

/// Every record on disk.
pub fn all(config: &Config) -> std::io::Result<Files> {
    let read = |kind: RecordKind| -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let (folder, mut files) = (config.record_dir(kind), Vec::new());
        for name in io_host::list_dir(Path::new(&folder))? {
            // One that goes in this moment is gone.
            if let Some(bytes) = io_host::read_file(&Path::new(&folder).join(&name))? {
                files.push((name, bytes));
            }
        }
        Ok(files)
    };
    Ok(Files {
        volumes: read(RecordKind::Volume)?,
        snapshots: read(RecordKind::Snapshot)?,
        groups: read(RecordKind::Group)?,
    })
}

/// The number of a key's lock: the same in every process and version. Small numbers are for the locks above.
fn number(key: &str) -> u64 {
    let fnv = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    key.bytes().fold(0xcbf2_9ce4_8422_2325, fnv) | 1 << 63
}
