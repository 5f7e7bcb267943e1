//! The data directory: one process at a time, one format, and nothing touched that is not ours.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{Error, files};

/// The layout this version reads and writes; raised when the database or the names of files change meaning.
pub const FORMAT: u32 = 1;

/// A data directory held by this process until dropped.
pub(crate) struct DataDirectory {
    path: PathBuf,
    // The lock lives exactly as long as this descriptor, so a killed process leaves nothing to clean up.
    _lock: File,
}

impl DataDirectory {
    /// Locks the directory and checks its format; a new or empty one is marked as ours.
    pub(crate) fn open(path: &Path) -> Result<DataDirectory, Error> {
        files::private_directory(path)?;
        refuse_foreign(path)?;
        let lock = lock(path)?;
        check_format(path)?;
        Ok(DataDirectory { path: path.to_owned(), _lock: lock })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("store.sqlite")
    }

    pub(crate) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.path.join("pki")
    }
}

const OURS: [&str; 4] = ["lock", "format", "store.sqlite", "pki"];

// Checked before the lock file is made: somebody's home directory must not gain a file of ours by a typing error.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let mut entries = fs::read_dir(path).map_err(|e| Error::file("list", path, e))?.peekable();
    let empty = entries.peek().is_none();
    if empty || OURS.iter().any(|name| path.join(name).exists()) {
        return Ok(());
    }
    Err(Error::Foreign(path.to_owned()))
}

fn lock(path: &Path) -> Result<File, Error> {
    let name = path.join("lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&name)
        .map_err(|e| Error::file("open", &name, e))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse(path.to_owned())),
        Err(error) => Err(Error::file("lock", &name, error.into())),
    }
}

fn check_format(path: &Path) -> Result<(), Error> {
    let name = path.join("format");
    match fs::read_to_string(&name) {
        Ok(text) if text.trim() == FORMAT.to_string() => Ok(()),
        Ok(text) => Err(other_format(path, text.trim())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A database without a format file is not a first start that crashed: the file is written first.
            if path.join("store.sqlite").exists() {
                return Err(other_format(path, "unknown"));
            }
            files::write_private(&name, format!("{FORMAT}\n").as_bytes())
        }
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(other_format(path, "unreadable")),
        Err(error) => Err(Error::file("read", name, error)),
    }
}

fn other_format(path: &Path, found: &str) -> Error {
    // Only the start is shown, in one line: the file may hold anything.
    let found = found.chars().take(40).flat_map(char::escape_debug).collect();
    Error::Format { path: path.to_owned(), found, reads: FORMAT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opening_is_refused_and_the_first_close_frees_it() {
        // reliability 103
        let dir = tempfile::tempdir().unwrap();
        let held = DataDirectory::open(dir.path()).unwrap();
        assert!(matches!(DataDirectory::open(dir.path()), Err(Error::InUse(_))));
        drop(held);
        DataDirectory::open(dir.path()).unwrap();
    }

    #[test]
    fn another_format_is_refused_with_both_versions_named() {
        let dir = tempfile::tempdir().unwrap();
        drop(DataDirectory::open(dir.path()).unwrap());
        fs::write(dir.path().join("format"), "7\n").unwrap();
        let sentence = DataDirectory::open(dir.path()).err().unwrap().to_string();
        assert!(sentence.contains("format 7") && sentence.contains("format 1"), "{sentence}");
        assert!(!sentence.contains('\n'));
    }

    #[test]
    fn a_directory_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "x").unwrap();
        assert!(matches!(DataDirectory::open(dir.path()), Err(Error::Foreign(_))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
