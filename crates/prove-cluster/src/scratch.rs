//! A directory of one test, removed with it.

use crate::Error;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

/// What all directories of this crate are called, so that those of a killed process can be told from others.
const PREFIX: &str = "longshore-prove";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A fresh directory, for its owner only, that is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one below the system's temporary directory, and removes those that killed processes left there.
    pub fn new(purpose: &str) -> Result<Scratch, Error> {
        let below = env::temp_dir();
        sweep(&below);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = below.join(format!("{PREFIX}-{}-{number}-{purpose}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch { path }),
                // left by an earlier process that had our number
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(Error::Io { doing: format!("make the directory {}", path.display()), source });
                }
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A process that was just killed may still be closing its files: an entry that appears meanwhile is removed
        // in the next round. What cannot be removed is left to the sweep of the next start.
        for _ in 0..3 {
            if remove(&self.path).is_ok() {
                return;
            }
        }
    }
}

/// Removes the directories whose process is gone.
fn sweep(below: &Path) {
    let Ok(entries) = fs::read_dir(below) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // Another process may be sweeping the same one; whoever is second finds nothing.
            let _ = remove(&entry.path());
        }
    }
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-').next()?.parse().ok()
}

/// Removes a directory and what is in it, following no symlink and entering no other filesystem: a mount that a
/// test left behind makes the removal fail instead of emptying a volume.
fn remove(directory: &Path) -> io::Result<()> {
    let device = fs::symlink_metadata(directory)?.dev();
    remove_on(device, directory)
}

fn remove_on(device: u64, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        if found.dev() != device {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        if found.is_dir() { remove_on(device, &path)? } else { fs::remove_file(&path)? }
    }
    fs::remove_dir(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_directory_is_private_and_gone_after_use() {
        let scratch = Scratch::new("private").unwrap();
        let path = scratch.path().to_path_buf();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/c"), "x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_is_gone_when_its_test_panics() {
        let path = std::panic::catch_unwind(|| {
            let scratch = Scratch::new("panic").unwrap();
            std::panic::panic_any(scratch.path().to_path_buf());
        });
        let path = path.unwrap_err().downcast::<PathBuf>().unwrap();
        assert!(path.to_string_lossy().contains("panic") && !path.exists());
    }

    #[test]
    fn what_a_symlink_names_stays() {
        let outside = Scratch::new("outside").unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let inside = Scratch::new("inside").unwrap();
        symlink(outside.path(), inside.path().join("link")).unwrap();
        drop(inside);
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn only_directories_of_processes_that_are_gone_are_swept() {
        let parent = Scratch::new("sweep").unwrap();
        let name = |owner: &str| parent.path().join(format!("{PREFIX}-{owner}-0-x"));
        // Process numbers end at 4194304, so the first can belong to no process.
        let (gone, alive, foreign) =
            (name("4999999"), name(&process::id().to_string()), parent.path().join("other-1-0"));
        for path in [&gone, &alive, &foreign] {
            fs::create_dir(path).unwrap();
        }
        sweep(parent.path());
        assert!(!gone.exists() && alive.exists() && foreign.exists());
    }
}
