//! Files that are either wholly there or not at all, and never readable by others, not even for an instant.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::Error;

/// Writes a file that only its owner may read: a private temporary file, synced, renamed, and the directory synced.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), Error> {
    let temporary = temporary_name(path);
    // A leftover of a crash may exist with other rights; creating anew guarantees the mode from the first byte.
    match fs::remove_file(&temporary) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::file("remove", temporary, error)),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(|e| Error::file("create", &temporary, e))?;
    file.write_all(content).map_err(|e| Error::file("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::file("sync", &temporary, e))?;
    fs::rename(&temporary, path).map_err(|e| Error::file("rename into", path, e))?;
    sync_parent(path)
}

fn temporary_name(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".tmp{}", std::process::id()));
    path.with_file_name(name)
}

/// Makes the names in the parent directory durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    File::open(parent).and_then(|d| d.sync_all()).map_err(|e| Error::file("sync", parent, e))
}

/// Creates a directory, with its missing parents, that only its owner may enter.
pub(crate) fn private_directory(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| Error::file("create", path, e))?;
    sync_parent(path)
}

/// Takes away the rights of others on a file we own, should an earlier copy or restore have widened them.
pub(crate) fn narrow_rights(path: &Path) -> Result<(), Error> {
    let mode = fs::metadata(path).map_err(|e| Error::file("read", path, e))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|e| Error::file("protect", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_0600_and_replaced_whole() {
        // reliability 122
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays behind");
    }

    #[test]
    fn rights_that_were_widened_are_narrowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, b"x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        narrow_rights(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
