//! ProcessLimits of memory, processors and processes, by control groups of version 1 or 2.
//!
//! Each process has a group of its own beneath `longshore`. What all of them together may use is limited too, so that
//! the machine itself and the programs beside Longshore keep something.

use std::io;
use std::path::{Path, PathBuf};

use control::host::ProcessLimits;

use super::{StartError, step};

const MOUNT: &str = "/sys/fs/cgroup";
const PARENT: &str = "longshore";
/// How many processes and threads a container may have.
const PIDS: u64 = 4096;
/// What all processes together leave to the machine: a tenth of its memory, at most this.
const RESERVED_BYTES: u64 = 1 << 30;

/// The control groups of one process.
pub(crate) struct ControlGroups(Vec<PathBuf>);

/// A file of a group, by version, and what is written to it.
struct Setting {
    controller: &'static str,
    one: &'static str,
    two: &'static str,
    value: [String; 2],
    /// Why it must be set; `None` where it only protects others, so that a machine without it still runs pods.
    asked: Option<&'static str>,
}

fn settings(limits: &ProcessLimits) -> Vec<Setting> {
    let mut settings = vec![Setting {
        controller: "pids",
        one: "pids.max",
        two: "pids.max",
        value: [PIDS.to_string(), PIDS.to_string()],
        asked: None,
    }];
    if let Some(bytes) = limits.memory {
        settings.push(Setting {
            controller: "memory",
            one: "memory.limit_in_bytes",
            two: "memory.max",
            value: [bytes.to_string(), bytes.to_string()],
            asked: Some("memory"),
        });
    }
    if let Some(millis) = limits.cpu_millis {
        // In a period of 100 ms, and never less than 1 ms of it.
        let quota = (millis * 100).max(1000);
        settings.push(Setting {
            controller: "cpu",
            one: "cpu.cfs_quota_us",
            two: "cpu.max",
            value: [quota.to_string(), format!("{quota} 100000")],
            asked: Some("cpu"),
        });
    }
    if let Some(millis) = limits.cpu_request_millis {
        let shares = (millis * 1024 / 1000).clamp(2, 262_144);
        settings.push(Setting {
            controller: "cpu",
            one: "cpu.shares",
            two: "cpu.weight",
            value: [shares.to_string(), weight(shares).to_string()],
            asked: None,
        });
    }
    settings
}

/// Shares of version 1 (2 to 262144) as a weight of version 2 (1 to 10000), as Kubernetes converts them.
fn weight(shares: u64) -> u64 {
    1 + ((shares - 2) * 9999) / 262_142
}

impl ControlGroups {
    /// Makes the groups of a process. A limit that was asked for and cannot be set is an error.
    pub(crate) fn make(name: &str, limits: &ProcessLimits) -> Result<ControlGroups, StartError> {
        ControlGroups::make_beneath(Path::new(MOUNT), name, limits)
    }

    fn make_beneath(mount: &Path, name: &str, limits: &ProcessLimits) -> Result<ControlGroups, StartError> {
        let unified = mount.join("cgroup.controllers").exists();
        let mut made: Vec<PathBuf> = Vec::new();
        for setting in settings(limits) {
            let root = if unified { mount.to_owned() } else { mount.join(setting.controller) };
            let group = root.join(PARENT).join(name);
            let file = group.join(if unified { setting.two } else { setting.one });
            let set = make_group(&root, &group, unified)
                .and_then(|()| std::fs::write(&file, &setting.value[usize::from(unified)]));
            match (set, setting.asked) {
                (Ok(()), _) => {}
                (Err(_), None) if !group.exists() => continue,
                (Err(_), None) => {}
                (Err(error), Some(what)) => {
                    ControlGroups(made).remove();
                    let sentence =
                        format!("its limit of {what} cannot be enforced on this machine ({})", file.display());
                    return Err(step(sentence)(error));
                }
            }
            if !made.contains(&group) {
                made.push(group);
            }
        }
        Ok(ControlGroups(made))
    }

    /// Moves this process into its groups.
    pub(crate) fn enter(&self) -> Result<(), StartError> {
        for group in &self.0 {
            let file = group.join("cgroup.procs");
            std::fs::write(&file, "0").map_err(step(format!("the process cannot enter {}", group.display())))?;
        }
        Ok(())
    }

    /// The kernel ended something in them because the limit of memory was reached.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let told = |group: &PathBuf| {
            ["memory.events", "memory.oom_control"].iter().any(|file| {
                let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
                text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
            })
        };
        self.0.iter().any(told)
    }

    /// Removes the groups, which are empty once the process and all it started have ended.
    pub(crate) fn remove(self) {
        for group in self.0 {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// What a process writes `0` to that joins the groups of another one, so that its limits hold for both together.
pub(crate) fn doors(name: &str) -> Result<Vec<std::fs::File>, StartError> {
    let mut doors = Vec::new();
    for root in ["", "pids", "memory", "cpu"] {
        let group = Path::new(MOUNT).join(root).join(PARENT).join(name);
        if group.is_dir() {
            let failed = step(format!("the command cannot enter {}", group.display()));
            doors.push(std::fs::File::options().write(true).open(group.join("cgroup.procs")).map_err(failed)?);
        }
    }
    Ok(doors)
}

/// Removes the groups of a process whose supervisor was killed.
pub(crate) fn forget(name: &str) {
    for root in ["", "pids", "memory", "cpu"] {
        let _ = std::fs::remove_dir(Path::new(MOUNT).join(root).join(PARENT).join(name));
    }
}

fn make_group(root: &Path, group: &Path, unified: bool) -> io::Result<()> {
    let parent = root.join(PARENT);
    match std::fs::create_dir(&parent) {
        Ok(()) => limit_all(&parent, unified),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if unified {
        for above in [root, &parent] {
            std::fs::write(above.join("cgroup.subtree_control"), "+cpu +memory +pids")?;
        }
    }
    match std::fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// What all pods together may have. Where it cannot be set nothing is lost but that protection.
fn limit_all(parent: &Path, unified: bool) {
    let Some(total) = memory_of_the_machine() else { return };
    let allowed = total - (total / 10).min(RESERVED_BYTES);
    let file = if unified { "memory.max" } else { "memory.limit_in_bytes" };
    let _ = std::fs::write(parent.join(file), allowed.to_string());
}

pub(crate) fn memory_of_the_machine() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_weights_as_kubernetes_converts_them() {
        assert_eq!((weight(2), weight(1024), weight(262_144)), (1, 39, 10_000));
    }

    #[test]
    fn a_limit_asked_for_that_cannot_be_set_is_an_error_and_others_are_not() {
        let nowhere = Path::new("/proc/self/nowhere");
        let limits = ProcessLimits { memory: Some(1 << 20), ..ProcessLimits::default() };
        let error = ControlGroups::make_beneath(nowhere, "p", &limits).err().unwrap().to_string();
        assert!(error.starts_with("its limit of memory cannot be enforced on this machine"), "{error}");
        assert!(ControlGroups::make_beneath(nowhere, "p", &ProcessLimits::default()).unwrap().0.is_empty());
    }

    #[test]
    fn version_two_has_one_group_with_all_settings() {
        let mount = tempfile::tempdir().unwrap();
        std::fs::write(mount.path().join("cgroup.controllers"), "cpu memory pids").unwrap();
        let limits = ProcessLimits { memory: Some(4096), cpu_millis: Some(250), cpu_request_millis: Some(1000) };
        let groups = ControlGroups::make_beneath(mount.path(), "p", &limits).unwrap();
        let group = mount.path().join("longshore/p");
        assert_eq!(groups.0, std::slice::from_ref(&group));
        let read = |file: &str| std::fs::read_to_string(group.join(file)).unwrap();
        assert_eq!(
            (read("memory.max"), read("cpu.max"), read("cpu.weight")),
            ("4096".into(), "25000 100000".into(), "39".into())
        );
        assert_eq!(read("pids.max"), PIDS.to_string());
    }
}
