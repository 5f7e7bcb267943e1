//! Locks between processes that share a directory: one file, one byte of it per lock, let go by the kernel when the
//! process ends however it ends.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::sys;

/// How long a process that was killed may take to be gone: what it has begun in the kernel ends first.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A file of locks.
#[derive(Clone, Debug)]
pub struct Locks(Arc<File>);

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct LockHeld {
    file: Arc<File>,
    at: u64,
}

impl Locks {
    /// The locks in a file, which is made if it is not there.
    pub fn open(path: &Path) -> io::Result<Locks> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
        Ok(Locks(Arc::new(File::from(file))))
    }

    /// Takes the lock with this number, for this process alone or together with others who share it. `None`: another
    /// process has it. Within one process nobody is kept out.
    pub fn take(&self, number: u64, shared: bool) -> io::Result<Option<LockHeld>> {
        self.lock(number, shared, false)
    }

    /// The same, with patience: a process that was killed has its locks until the kernel has taken it apart.
    pub fn take_soon(&self, number: u64, shared: bool) -> io::Result<Option<LockHeld>> {
        let until = Instant::now() + KILLED_WITHIN;
        loop {
            match self.take(number, shared)? {
                None if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
                taken => return Ok(taken),
            }
        }
    }

    /// Takes the lock with this number, and waits for whoever has it.
    pub fn wait_for(&self, number: u64) -> io::Result<Option<LockHeld>> {
        self.lock(number, false, true)
    }

    fn lock(&self, number: u64, shared: bool, wait: bool) -> io::Result<Option<LockHeld>> {
        // Offsets in a file have 63 bits.
        let at = number >> 1;
        let kind = if shared { libc::F_RDLCK } else { libc::F_WRLCK };
        let held = sys::lock_byte(&self.0, at, kind, wait)?;
        Ok(held.then(|| LockHeld { file: self.0.clone(), at }))
    }
}

impl Drop for LockHeld {
    fn drop(&mut self) {
        // Letting go is refused by nobody.
        let _ = sys::lock_byte(&self.file, self.at, libc::F_UNLCK, false);
    }
}
