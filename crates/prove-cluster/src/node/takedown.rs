//! Takes away what a node leaves on a machine: containers outlive the programs that started them, and mounts and
//! control groups outlive everything.

use crate::node::command::run;
use crate::node::runtime::socket_in;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const GROUPS: &str = "/sys/fs/cgroup";
const ROUNDS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// Ends every container of the node and its supervisors, and removes its mounts, loop devices and control groups.
pub(crate) fn take_down(name: &str, directory: &Path) {
    for _ in 0..ROUNDS {
        let left: BTreeSet<u32> = processes(name).into_iter().chain(supervisors(directory)).collect();
        if left.is_empty() {
            break;
        }
        let numbers: Vec<String> = left.iter().map(u32::to_string).collect();
        let _ = run("sh", &["-c", &format!("kill -KILL {}", numbers.join(" "))]);
        thread::sleep(PAUSE);
    }
    // What is mounted last is unmounted first. A filesystem may be busy for as long as a process that died holds it.
    for _ in 0..ROUNDS {
        let mounts = mounts(directory);
        if mounts.is_empty() {
            break;
        }
        for mount in mounts.iter().rev() {
            let _ = run("umount", &[mount]);
        }
        thread::sleep(PAUSE);
    }
    for mount in mounts(directory).iter().rev() {
        let _ = run("umount", &["--lazy", mount]);
    }
    for device in loops(directory) {
        let _ = run("losetup", &["--detach", &device]);
    }
    for controller in entries(Path::new(GROUPS)) {
        remove_groups(&controller.join(name));
    }
}

/// What nodes of processes that are gone left behind: their names begin with this, then the number of the process.
pub(crate) fn sweep(prefix: &str, below: &Path) {
    let groups = entries(&Path::new(GROUPS).join("pids"));
    let bridges = entries(Path::new("/sys/class/net"));
    for path in groups.into_iter().chain(bridges) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(owner) = name.strip_prefix(prefix).and_then(|rest| rest.split('x').next()) else { continue };
        if owner.parse::<u32>().is_err() || Path::new("/proc").join(owner).exists() {
            continue;
        }
        for directory in entries(below) {
            if directory.to_string_lossy().contains(&format!("longshore-prove-{owner}-")) {
                take_down(name, &directory);
            }
        }
        let _ = run("ip", &["link", "delete", name]);
    }
}

/// The processes in the node's control group and those beneath it.
fn processes(name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(GROUPS).join("pids").join(name)];
    while let Some(folder) = folders.pop() {
        let numbers = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        found.extend(numbers.lines().filter_map(|line| line.parse::<u32>().ok()));
        folders.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    found
}

/// The supervisors of containers, by the socket of their containerd.
fn supervisors(directory: &Path) -> Vec<u32> {
    let socket = socket_in(directory);
    let ours = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains("containerd-shim") && line.contains(&socket)
    };
    let numbers = entries(Path::new("/proc")).into_iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    numbers.filter(ours).collect()
}

/// What is mounted beneath the directory, in the order in which it was.
pub(crate) fn mounts(directory: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let targets = table.lines().filter_map(|line| line.split(' ').nth(4));
    targets.filter(|target| Path::new(target).starts_with(directory)).map(String::from).collect()
}

/// The loop devices whose files are beneath the directory. Their paths do not tell: a driver in a container attached
/// them by the paths it sees.
pub(crate) fn loops(directory: &Path) -> Vec<String> {
    let listed = run("losetup", &["--list", "--noheadings", "--raw", "--output", "NAME,BACK-INO"]).unwrap_or_default();
    let attached: Vec<(&str, &str)> = listed.lines().filter_map(|line| line.split_once(' ')).collect();
    let numbers = if attached.is_empty() { BTreeSet::new() } else { inodes(directory) };
    let ours =
        attached.into_iter().filter(|(_, inode)| inode.trim().parse().is_ok_and(|inode| numbers.contains(&inode)));
    ours.map(|(name, _)| name.to_string()).collect()
}

/// The numbers of the files of drivers beneath the directory, on its own filesystem.
fn inodes(directory: &Path) -> BTreeSet<u64> {
    let device = fs::metadata(directory).map(|found| found.dev()).unwrap_or_default();
    let (mut found, mut folders) = (BTreeSet::new(), vec![directory.join("kubelet/plugins")]);
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if about.is_file() && about.dev() == device {
                found.insert(about.ino());
            } else if about.is_dir() && about.dev() == device {
                folders.push(path);
            }
        }
    }
    found
}

fn remove_groups(folder: &Path) {
    for inner in entries(folder).into_iter().filter(|path| path.is_dir()) {
        remove_groups(&inner);
    }
    let _ = fs::remove_dir(folder);
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}
