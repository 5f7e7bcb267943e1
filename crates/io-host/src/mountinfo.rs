//! The kernel's table of mounts.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::error::{HostError, os};

/// One line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// The kernel's number for it, unique while it lives.
    pub id: u64,
    /// Where it is.
    pub target: String,
    /// The device, or whatever the filesystem calls its source.
    pub source: String,
    /// The filesystem's type.
    pub fstype: String,
    /// Read-only, as a mount or as a whole filesystem.
    pub read_only: bool,
    /// The directory of the filesystem that is shown there; `/` unless it is a bind.
    pub root: String,
    /// The filesystem's device number, major and minor.
    pub device: (u32, u32),
    /// The options of the mount and of its filesystem, such as `noatime`.
    pub options: Vec<String>,
    /// What is mounted in it is seen by those who have a copy of it: the number of their group.
    pub shared: Option<u32>,
}

/// The table is read in pieces; reading it until two readings agree keeps a mount that moves between them from being missed.
const READS: u32 = 50;

/// Every mount of this mount namespace, those made first first.
pub fn mounts() -> io::Result<Vec<MountEntry>> {
    let mut before = std::fs::read("/proc/self/mountinfo")?;
    for _ in 0..READS {
        let now = std::fs::read("/proc/self/mountinfo")?;
        if now == before {
            return parse(&now);
        }
        before = now;
    }
    Err(io::Error::other("the mount table changed too often to be read; try again"))
}

/// Calls `changed` from a thread of its own for every change of the mount table, and at least this often, until it says
/// that nobody listens any more.
pub fn watch_mounts(at_least: Duration, changed: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
    let table = std::fs::File::open("/proc/self/mountinfo")?;
    let wait = Timespec { tv_sec: i64::try_from(at_least.as_secs()).unwrap_or(1).max(1), tv_nsec: 0 };
    std::thread::Builder::new().name("mounts".into()).spawn(move || {
        while changed() {
            // The kernel has urgent news of the table when it differs from what it was at the last wait.
            let mut fds = [PollFd::new(&table, PollFlags::PRI)];
            if rustix::event::poll(&mut fds, Some(&wait)).is_err() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    })?;
    Ok(())
}

/// The mount that holds a directory, to tell which mounts show something in that directory at a second place.
#[derive(Debug)]
pub struct Holder<'a> {
    dir: &'a str,
    mount: &'a MountEntry,
}

impl<'a> Holder<'a> {
    /// The mount that holds a directory, by the whole table.
    pub fn of(dir: &'a str, all: &'a [MountEntry]) -> Option<Holder<'a>> {
        // The last one at the longest path above it.
        let above = all.iter().filter(|entry| is_beneath(dir, &entry.target));
        let mount = above.max_by_key(|entry| (entry.target.trim_end_matches('/').len(), entry.id))?;
        Some(Holder { dir, mount })
    }

    /// The mount itself.
    pub fn mount(&self) -> &MountEntry {
        self.mount
    }

    /// The path of what a mount shows, if it is something in the directory: a device in `/dev`, say, or a directory that
    /// is shown at a second place.
    pub fn shown_by(&self, entry: &MountEntry) -> Option<String> {
        let mount = self.mount;
        if mount.device != entry.device || mount.fstype != entry.fstype || mount.id == entry.id {
            return None;
        }
        let rest = entry.root.strip_prefix(mount.root.trim_end_matches('/'))?;
        let path = format!("{}{rest}", mount.target.trim_end_matches('/'));
        (path != self.dir && is_beneath(&path, self.dir)).then_some(path)
    }
}

/// Whether what is mounted at a path is seen by whoever has a copy of the mount it is on, as containers have: to be asked
/// once at start, since a volume mounted where nobody sees it looks like an empty directory to its user.
pub fn require_shared(path: &str) -> Result<(), HostError> {
    let all = mounts().map_err(|error| os("read", "the mount table", error, false))?;
    let holder = Holder::of(path, &all).ok_or_else(|| HostError::Missing { path: path.to_owned() })?;
    match holder.mount.shared {
        Some(_) => Ok(()),
        None => Err(HostError::NotShared { path: path.to_owned(), mount: holder.mount.target.clone() }),
    }
}

/// Every mount at a directory or beneath it.
pub fn mounts_beneath(root: &str) -> io::Result<Vec<MountEntry>> {
    Ok(mounts()?.into_iter().filter(|entry| is_beneath(&entry.target, root)).collect())
}

/// The path is this directory or in it.
pub(crate) fn is_beneath(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn parse(table: &[u8]) -> io::Result<Vec<MountEntry>> {
    let text = String::from_utf8_lossy(table);
    text.lines()
        .map(|line| {
            parse_line(line).ok_or_else(|| io::Error::other(format!("unreadable line in the mount table: {line}")))
        })
        .collect()
}

/// `id parent major:minor root target options [tag …] - type source options`.
fn parse_line(line: &str) -> Option<MountEntry> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let (major, minor) = mount.nth(1)?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let (root, target) = (unescape(mount.next()?), unescape(mount.next()?));
    let of_mount = mount.next()?;
    let shared = mount.find_map(|tag| tag.strip_prefix("shared:")).and_then(|group| group.parse().ok());
    let mut filesystem = filesystem.split(' ');
    let (fstype, source) = (unescape(filesystem.next()?), unescape(filesystem.next()?));
    let of_filesystem = filesystem.next().unwrap_or_default();
    let options: Vec<String> = of_mount.split(',').chain(of_filesystem.split(',')).map(unescape).collect();
    let read_only = options.iter().any(|option| option == "ro");
    Some(MountEntry { id, target, source, fstype, read_only, root, device, options, shared })
}

/// Space, tab, newline and backslash (and `#`) stand as a backslash and three octal digits.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match octal(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn octal(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (b'0'..=b'7').contains(&byte).then(|| u32::from(byte - b'0'));
    match text {
        [b'\\', a, b, c, ..] => u8::try_from(digit(*a)? * 64 + digit(*b)? * 8 + digit(*c)?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_tags_escapes_and_read_only_filesystem_is_read() {
        let line =
            br"36 35 98:0 /mnt\0401 /a\040b\134c\012d rw,noatime shared:1 master:2 - ext4 /dev/lo\040op ro,discard";
        let entry = parse(line).unwrap().remove(0);
        assert_eq!((entry.id, entry.device), (36, (98, 0)));
        assert_eq!(entry.root, "/mnt 1");
        assert_eq!(entry.target, "/a b\\c\nd");
        assert_eq!(entry.source, "/dev/lo op");
        assert!(entry.read_only && entry.options.contains(&"noatime".to_owned()));
        assert_eq!(entry.shared, Some(1));
    }

    #[test]
    fn a_line_without_tags_and_a_path_beyond_ascii_are_read() {
        let entry = parse("22 27 0:21 / /då rw - proc proc rw\n".as_bytes()).unwrap().remove(0);
        assert_eq!((entry.target.as_str(), entry.fstype.as_str(), entry.read_only), ("/då", "proc", false));
        assert_eq!(entry.shared, None);
    }

    #[test]
    fn half_a_line_is_an_error_and_not_a_missing_mount() {
        // reliability 6, torn view of the table
        assert!(parse(b"22 27 0:21 / /proc rw").is_err());
        assert!(parse(b"22 27 0:2").is_err());
    }

    #[test]
    fn a_neighbour_with_the_same_beginning_is_not_beneath() {
        assert!(is_beneath("/a/b", "/a/b") && is_beneath("/a/b/c", "/a/b/") && is_beneath("/a", "/"));
        assert!(!is_beneath("/a/bc", "/a/b") && !is_beneath("/a", "/a/b"));
    }
}
