//! What can be seen of a driver's work on this machine: the mount table, files and devices.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::CaseResult;
use crate::case::fail;

/// Commands of the system that look or unmount get so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// One line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub target: PathBuf,
    /// Its options and those of its filesystem.
    pub options: Vec<String>,
    /// The kind of filesystem.
    pub fstype: String,
}

/// Every mount, in the order they were made.
pub fn mounts() -> Vec<Mount> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let (own, filesystem) = line.split_once(" - ")?;
    let own: Vec<&str> = own.split(' ').collect();
    let mut of_filesystem = filesystem.split(' ');
    let fstype = of_filesystem.next()?.to_string();
    let options = own.get(5)?.split(',').chain(of_filesystem.nth(1)?.split(',')).map(String::from).collect();
    Some(Mount { target: unescape(own.get(4)?).into(), options, fstype })
}

/// Spaces and the like are written as three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte.into());
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// The latest mount at a path.
pub fn mount_at(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    mounts().into_iter().rev().find(|mount| mount.target == path)
}

/// Whether something is mounted at a path.
pub fn is_mounted(path: &Path) -> bool {
    mount_at(path).is_some()
}

/// How many mounts lie on a path.
pub fn times_mounted(path: &Path) -> usize {
    mounts().iter().filter(|mount| mount.target == path).count()
}

/// Unmounts what a driver left, so that the run leaves nothing behind.
pub async fn unmount(path: &str) {
    let _ = output("umount", &[path]).await;
}

/// What a command of the system prints.
pub async fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let run = tokio::process::Command::new(program).args(args).kill_on_drop(true).output();
    match tokio::time::timeout(PATIENCE, run).await {
        Ok(Ok(done)) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).trim().to_string()),
        Ok(Ok(done)) => Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim())),
        Ok(Err(error)) => Err(format!("cannot run {program}: {error}")),
        Err(_) => Err(format!("{program} did not end within {} s", PATIENCE.as_secs())),
    }
}

/// The size of the filesystem at a path, in bytes.
pub async fn filesystem_size(path: &str) -> CaseResult<i64> {
    let text = output("stat", &["-f", "-c", "%b %S", path]).await.or_else(fail)?;
    let numbers: Vec<i64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [blocks, size] => Ok(blocks * size),
        _ => fail(format!("stat -f of {path} says «{text}»")),
    }
}

/// The right to go beyond resource limits, by its number among the capabilities.
const CAP_SYS_RESOURCE: u32 = 24;

/// Why the kernel refuses here to grow what is mounted at a path, whoever asks it, if it does.
///
/// ext4 grows while mounted only for a process with CAP_SYS_RESOURCE. Where not even this process, which looks into
/// volumes as root, can have that right, neither can the driver beside it.
pub fn forbids_growth(target: &Path) -> Option<String> {
    let mount = mount_at(target)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let right = "a mounted ext4 grows only with CAP_SYS_RESOURCE, which even root lacks here";
    (mount.fstype == "ext4" && !may(&status, CAP_SYS_RESOURCE)?).then(|| right.to_string())
}

/// Whether a process may ever have a capability, from its status.
fn may(status: &str, capability: u32) -> Option<bool> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"))?;
    Some(u64::from_str_radix(set.trim(), 16).ok()? >> capability & 1 == 1)
}

/// Writes a file through to the disk.
pub fn write(path: &Path, bytes: &[u8]) -> CaseResult {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().or_else(|error| fail(format!("cannot write {}: {error}", path.display())))
}

/// The file holds exactly these bytes.
pub fn holds(path: &Path, bytes: &[u8], after: &str) -> CaseResult {
    match fs::read(path) {
        Ok(found) if found == bytes => Ok(()),
        Ok(found) => fail(format!(
            "{} holds other bytes {after}: {} of {} are left as written",
            path.display(),
            found.iter().zip(bytes).filter(|(a, b)| a == b).count(),
            bytes.len()
        )),
        Err(error) => fail(format!("{} cannot be read {after}: {error}", path.display())),
    }
}

/// Names in a directory, without what a fresh filesystem has by itself.
pub fn names(path: &Path) -> CaseResult<Vec<String>> {
    let entries = fs::read_dir(path).or_else(|error| fail(format!("cannot list {}: {error}", path.display())))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "lost+found");
    names.sort();
    Ok(names)
}

/// Writes to a block volume at an offset, through to the device.
pub fn write_at(path: &Path, offset: u64, bytes: &[u8]) -> CaseResult {
    let write = || {
        let mut device = OpenOptions::new().read(true).write(true).open(path)?;
        device.seek(SeekFrom::Start(offset))?;
        device.write_all(bytes)?;
        device.sync_all()
    };
    write().or_else(|error| fail(format!("cannot write to {} at {offset}: {error}", path.display())))
}

/// Reads from a block volume at an offset.
pub fn read_at(path: &Path, offset: u64, length: usize) -> CaseResult<Vec<u8>> {
    let read = || {
        let mut device = File::open(path)?;
        device.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        device.read_exact(&mut bytes).map(|()| bytes)
    };
    read().or_else(|error| fail(format!("cannot read {} at {offset}: {error}", path.display())))
}

/// The size of a block volume, and whether it is a device at all.
pub fn device_size(path: &Path) -> CaseResult<i64> {
    let kind = fs::metadata(path).or_else(|error| fail(format!("cannot look at {}: {error}", path.display())))?;
    if !kind.file_type().is_block_device() && !kind.is_file() {
        return fail(format!("{} is neither a block device nor a file", path.display()));
    }
    let end = File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0)));
    let end = end.or_else(|error| fail(format!("cannot measure {}: {error}", path.display())))?;
    Ok(i64::try_from(end).unwrap_or(i64::MAX))
}

/// A canary is as it was made: one file with its text, nothing else, nothing mounted.
pub fn untouched(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    match fs::read_to_string(folder.join("alive")) {
        Ok(text) if text == "untouched" => {}
        Ok(_) => return Err(format!("a file outside the volume was overwritten ({shown}/alive)")),
        Err(_) => return Err(format!("a file outside the volume was removed ({shown}/alive)")),
    }
    let found: Vec<_> = fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_default();
    if let Some(stray) = found.iter().find(|entry| entry.file_name() != "alive") {
        return Err(format!("{} appeared outside the volume", stray.path().display()));
    }
    if is_mounted(folder) {
        return Err(format!("something was mounted at {shown}, outside the volume"));
    }
    Ok(())
}

/// Removes a file or an empty directory of ours, and never crosses into a mount.
pub fn remove(path: &Path) {
    if is_mounted(path) {
        return;
    }
    let Ok(found) = fs::symlink_metadata(path) else { return };
    let removed = if found.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
    if let Err(error) = removed {
        tracing::warn!("cannot remove {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_read() {
        let line = r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root ro,errors=continue";
        let mount = parse(line).unwrap();
        assert_eq!(mount.target, Path::new("/mnt 2"));
        assert_eq!(mount.fstype, "ext3");
        assert_eq!(mount.options, ["rw", "noatime", "ro", "errors=continue"]);
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn a_right_that_is_taken_away_is_seen() {
        assert_eq!(may("Name:\tx\nCapBnd:\t000001fffeffffff\n", CAP_SYS_RESOURCE), Some(false));
        assert_eq!(may("CapBnd:\t000001ffffffffff\n", CAP_SYS_RESOURCE), Some(true));
        assert_eq!(may("nothing", CAP_SYS_RESOURCE), None);
        assert_eq!(forbids_growth(Path::new("/proc")), None, "only ext4 has that rule");
    }

    #[test]
    fn a_touched_canary_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("alive"), "untouched").unwrap();
        assert_eq!(untouched(folder.path()), Ok(()));
        fs::create_dir(folder.path().join("stray")).unwrap();
        assert!(untouched(folder.path()).unwrap_err().contains("appeared outside"));
        fs::remove_dir(folder.path().join("stray")).unwrap();
        fs::remove_file(folder.path().join("alive")).unwrap();
        assert!(untouched(folder.path()).unwrap_err().contains("was removed"));
    }
}
