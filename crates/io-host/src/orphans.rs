//! What a data directory that was removed left behind: supervisors of processes, loop devices, mounts.
//!
//! Only what is ours for certain counts, and only what no directory can account for any more: a supervisor whose own
//! directory was removed while it holds it open, a loop device on a volume's image that was removed, a mount of such a
//! device or of a volume's directory that was removed. A Longshore that runs has none of these: it removes neither the
//! directory of a process that lives nor the file behind a loop device.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::{HostError, os};
use crate::mountinfo::{self, MountEntry};
use crate::{SHIM_WORD, loops, mount, process, record};

/// What the kernel writes behind the path of a file that was removed.
const REMOVED: &str = " (deleted)";
/// The same behind the directory that a mount shows.
const REMOVED_ROOT: &str = "//deleted";
/// The major number of loop devices.
const LOOP_MAJOR: u32 = 7;

/// What is left of data directories that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Supervisors of processes.
    pub processes: Vec<OrphanProcess>,
    /// Where something is mounted, innermost first.
    pub mounts: Vec<String>,
    /// Loop devices, with the path of the image they show.
    pub loops: Vec<(String, String)>,
}

/// A supervisor whose directory was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanProcess {
    /// The supervisor's number.
    pub pid: i32,
    /// The directory of the process that it supervises, as it was; its last part is the process's name.
    pub dir: String,
    /// When it was started, so that another process with its number is not taken for it.
    start_ticks: u64,
}

impl Orphans {
    /// Looks for them on this machine, as far as this user may see.
    pub fn find() -> io::Result<Orphans> {
        let loops: Vec<(u32, String, String)> = crate::loops()?
            .into_iter()
            .filter_map(|one| {
                let image = one.backing_path.strip_suffix(REMOVED).filter(|path| is_image(path))?;
                let minor = one.device.strip_prefix("/dev/loop")?.parse().ok()?;
                Some((minor, one.device, image.to_owned()))
            })
            .collect();
        let ours = |entry: &MountEntry| {
            let shows_loop = entry.device.0 == LOOP_MAJOR && loops.iter().any(|(minor, ..)| *minor == entry.device.1);
            is_mount_point(&entry.target) && (shows_loop || entry.root.ends_with(REMOVED_ROOT))
        };
        let mut mounts: Vec<MountEntry> = mountinfo::mounts()?.into_iter().filter(ours).collect();
        // Those made last lie on top.
        mounts.sort_by_key(|entry| std::cmp::Reverse((entry.target.len(), entry.id)));
        Ok(Orphans {
            processes: supervisors()?,
            mounts: mounts.into_iter().map(|entry| entry.target).collect(),
            loops: loops.into_iter().map(|(_, device, image)| (device, image)).collect(),
        })
    }

    /// Those of them that were in this directory.
    #[must_use]
    pub fn beneath(mut self, dir: &str) -> Orphans {
        self.processes.retain(|one| mountinfo::is_beneath(&one.dir, dir));
        self.mounts.retain(|target| mountinfo::is_beneath(target, dir));
        self.loops.retain(|(_, image)| mountinfo::is_beneath(image, dir));
        self
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mounts.is_empty() && self.loops.is_empty()
    }

    /// Ends them: processes with their grace, then mounts, then loop devices.
    pub fn end(&self, grace: Duration) -> Result<(), HostError> {
        for one in &self.processes {
            let failed = |error| os("stop process", &one.dir, error, true);
            if let Some(supervisor) = one.open().map_err(failed)? {
                process::end(&supervisor, grace).map_err(failed)?;
            }
        }
        self.mounts.iter().try_for_each(|target| mount::unmount(target))?;
        self.loops.iter().try_for_each(|(device, image)| loops::detach_removed(device, &format!("{image}{REMOVED}")))
    }
}

impl OrphanProcess {
    /// A descriptor of the supervisor itself, never of another process that got its number.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Ok((record::start_ticks(self.pid) == Some(self.start_ticks)).then_some(fd)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Supervisors that hold a directory open which was removed.
fn supervisors() -> io::Result<Vec<OrphanProcess>> {
    let mut found: BTreeMap<i32, (i32, OrphanProcess)> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // A process may end while it is looked at, and others' cannot be looked at at all.
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        let Some(dir) = supervised(&line) else { continue };
        let (true, Some(parent), Some(start_ticks)) =
            (holds_removed(pid, &dir), parent_of(pid), record::start_ticks(pid))
        else {
            continue;
        };
        found.insert(pid, (parent, OrphanProcess { pid, dir, start_ticks }));
    }
    // What a supervisor has split off looks like it, and ends with it.
    let outer = found.values().filter(|(parent, _)| !found.contains_key(parent));
    Ok(outer.map(|(_, one)| one.clone()).collect())
}

/// The directory in a supervisor's command line: `PROGRAM process-shim DATA/processes/NAME`, and the limits of its log,
/// which are numbers.
fn supervised(line: &[u8]) -> Option<String> {
    let mut words = line.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let (_, word, dir) = (words.next()?, words.next()?, words.next()?);
    let dir = String::from_utf8(dir.to_vec()).ok()?;
    let is_ours = Path::new(&dir).parent().is_some_and(|parent| parent.ends_with("processes"));
    let only_limits = words.all(|word| word.iter().all(u8::is_ascii_digit));
    (only_limits && word == SHIM_WORD.as_bytes() && is_ours).then_some(dir)
}

/// It holds the directory, or something in it, open, and that was removed. The kernel knows, whatever is mounted where.
fn holds_removed(pid: i32, dir: &str) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let links = open.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_suffix(REMOVED).map(str::to_owned))
        .any(|path| path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The number behind the state in `/proc/PID/stat`, whose second word may hold blanks.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The path of a volume's image in a data directory.
fn is_image(path: &str) -> bool {
    let path = Path::new(path);
    path.extension().is_some_and(|end| end == "img") && path.parent().is_some_and(|dir| dir.ends_with("driver/images"))
}

/// Where volumes are staged and published in a data directory.
fn is_mount_point(path: &str) -> bool {
    let staged = path.contains("/node/plugins/kubernetes.io/") && path.ends_with("/globalmount");
    let in_pod = path.contains("/node/pods/");
    let published = in_pod && path.contains("/volumes/kubernetes.io~csi/") && path.ends_with("/mount");
    // By an in-tree plugin that is rehearsed.
    staged || published || in_pod && path.contains("/volumes/kubernetes.io~gce-pd/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_command_line_is_a_supervisors() {
        let line =
            |words: &[&str]| words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
        let dir = "/data/processes/uid_ns_pod_main_0";
        assert_eq!(supervised(&line(&["/usr/bin/longshore", SHIM_WORD, dir])).as_deref(), Some(dir));
        assert_eq!(supervised(&line(&["/usr/bin/longshore", SHIM_WORD, dir, "1024", "5"])).as_deref(), Some(dir));
        for other in [
            &["/usr/bin/longshore", "up"][..],
            &["/usr/bin/longshore", SHIM_WORD, "/data/other/x"],
            &["grep", "-f", SHIM_WORD, dir],
            &["/usr/bin/longshore", SHIM_WORD, dir, "more"],
            &[],
        ] {
            assert_eq!(supervised(&line(other)), None, "{other:?}");
        }
    }

    #[test]
    fn only_paths_of_our_own_layout_count() {
        assert!(is_image("/var/lib/longshore/driver/images/pvc-1.img"));
        assert!(!is_image("/home/me/disk.img") && !is_image("/d/driver/images/pvc-1.iso"));
        assert!(is_mount_point("/d/node/plugins/kubernetes.io/csi/local.csi.longshore/0a/globalmount"));
        assert!(is_mount_point("/d/node/pods/u/volumes/kubernetes.io~csi/pvc-1/mount"));
        assert!(is_mount_point("/d/node/plugins/kubernetes.io/gce-pd/mounts/0a/globalmount"));
        assert!(is_mount_point("/d/node/pods/u/volumes/kubernetes.io~gce-pd/pvc-1"));
        assert!(!is_mount_point("/mnt/mount") && !is_mount_point("/d/node/pods/u/volumes/kubernetes.io~csi/pvc-1"));
    }

    #[test]
    fn those_of_one_directory_are_told_from_others() {
        let process = OrphanProcess { pid: 1, dir: "/a/processes/p".into(), start_ticks: 1 };
        let all = Orphans {
            processes: vec![process],
            mounts: vec!["/a/node/x".into(), "/ab/node/x".into()],
            loops: vec![("/dev/loop0".into(), "/b/driver/images/v.img".into())],
        };
        let one = all.clone().beneath("/a");
        assert_eq!((one.processes.len(), one.mounts.len(), one.loops.len()), (1, 1, 0));
        assert_eq!(all.clone().beneath("/"), all);
        assert!(all.beneath("/c").is_empty());
    }

    #[test]
    fn a_process_that_holds_nothing_removed_is_no_orphan() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(!holds_removed(me, "/proc") && parent_of(me).is_some());
        let scratch = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(scratch.path().join("lock")).unwrap();
        let dir = scratch.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        assert!(!holds_removed(me, &dir));
        std::fs::remove_file(scratch.path().join("lock")).unwrap();
        assert!(holds_removed(me, &dir) && !holds_removed(me, &format!("{dir}x")));
        drop(file);
    }
}
