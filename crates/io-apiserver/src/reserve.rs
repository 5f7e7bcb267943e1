//! Space set aside, so that things can still be deleted when the disk is full (reliability 101).

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Enough for thousands of deletions in the log.
const BYTES: u64 = 4 << 20;
/// How often a lost reserve is asked for again.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file that holds space until the space is needed.
pub(crate) struct Reserve {
    path: PathBuf,
    held: bool,
    asked: Option<Instant>,
}

impl Reserve {
    /// Sets the space aside, if there is any.
    pub(crate) fn open(path: &Path) -> Reserve {
        let held = fs::metadata(path).is_ok_and(|m| m.len() == BYTES);
        let mut reserve = Reserve { path: path.to_owned(), held, asked: None };
        reserve.regain(|| {});
        reserve
    }

    /// Whether the space is set aside. When it is not, makes room and asks for it again, now and then.
    pub(crate) fn regain(&mut self, make_room: impl FnOnce()) -> bool {
        if self.held || self.asked.is_some_and(|asked| asked.elapsed() < PATIENCE) {
            return self.held;
        }
        self.asked = Some(Instant::now());
        make_room();
        // Twice the space must be free: otherwise the reserve would take back the very bytes it has just given.
        self.held = self.allocate().is_ok();
        if !self.held {
            let _ = fs::remove_file(&self.path);
        }
        self.held
    }

    fn allocate(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 2 * BYTES) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP) => fill(&mut file)?,
            Err(error) => return Err(error.into()),
        }
        file.set_len(BYTES)
    }

    /// Gives the space back to the disk.
    pub(crate) fn release(&mut self) {
        self.held = false;
        self.asked = Some(Instant::now());
        let _ = fs::remove_file(&self.path);
    }
}

// For filesystems that cannot allocate without writing.
fn fill(file: &mut File) -> std::io::Result<()> {
    use std::io::Write;
    let zeros = [0_u8; 64 << 10];
    for _ in 0..2 * BYTES / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_holds_space_gives_it_back_and_waits_before_it_asks_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reserve");
        let mut reserve = Reserve::open(&path);
        assert!(reserve.regain(|| {}));
        assert_eq!(fs::metadata(&path).unwrap().len(), BYTES);
        reserve.release();
        assert!(!path.exists());
        assert!(!reserve.regain(|| {}), "not at once");
        assert!(Reserve::open(&path).held, "a new start asks anew");
    }
}
