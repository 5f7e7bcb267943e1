//! What a process of a pod may do on the machine, in the words of container runtimes. The default is what they give to
//! a container that asks for nothing.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How a process is kept apart from the machine and from other pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// Processes with the same key share network, IPC and host name; empty means with nobody.
    pub pod: String,
    /// The host name it sees; empty means the machine's.
    pub hostname: String,
    /// The user it runs as.
    pub user: u32,
    /// Its primary group; `None` means the user's own in `/etc/passwd`, else 0.
    pub group: Option<u32>,
    /// Groups that files may be shared through, beside the primary one.
    pub supplemental_groups: Vec<u32>,
    /// All it or anything it starts can ever have.
    pub capabilities: LinuxCapabilities,
    /// Setuid programs and file capabilities give nothing.
    pub no_new_privileges: bool,
    /// System calls are filtered as container runtimes do by default.
    pub seccomp: bool,
    /// Devices, `/sys` and `/proc` are the machine's, and nothing is filtered.
    pub privileged: bool,
    /// The root is read-only; otherwise writes go to a layer in memory that ends with the process.
    pub read_only_root: bool,
    /// The machine's network instead of one with a loopback device only.
    pub host_network: bool,
    /// The machine's IPC.
    pub host_ipc: bool,
    /// What it may use up.
    pub limits: ProcessLimits,
}

/// What a process and all it starts may use up together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLimits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Thousandths of a processor it has a claim to when processors are scarce.
    pub cpu_request_millis: Option<u64>,
}

impl Default for Sandbox {
    fn default() -> Sandbox {
        Sandbox {
            pod: String::new(),
            hostname: String::new(),
            user: 0,
            group: None,
            supplemental_groups: Vec::new(),
            capabilities: LinuxCapabilities::DEFAULT,
            no_new_privileges: false,
            seccomp: true,
            privileged: false,
            read_only_root: true,
            host_network: false,
            host_ipc: false,
            limits: ProcessLimits::default(),
        }
    }
}

/// A set of the kernel's capabilities, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinuxCapabilities(pub u64);

/// By number, without `CAP_`, as `securityContext.capabilities` names them.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

impl LinuxCapabilities {
    /// The empty set: a process that can do what every user can.
    pub const NONE: LinuxCapabilities = LinuxCapabilities(0);
    /// Every one the kernel may know.
    pub const ALL: LinuxCapabilities = LinuxCapabilities((1 << NAMES.len()) - 1);
    /// The default of container runtimes: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP,
    /// NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
    pub const DEFAULT: LinuxCapabilities = LinuxCapabilities(0xa804_25fb);

    /// The one of this name, with or without `CAP_`, or all for `ALL`. `None`: there is none.
    pub fn named(name: &str) -> Option<LinuxCapabilities> {
        let name = name.strip_prefix("CAP_").unwrap_or(name);
        if name == "ALL" {
            return Some(LinuxCapabilities::ALL);
        }
        NAMES.iter().position(|known| *known == name).map(|number| LinuxCapabilities(1 << number))
    }

    /// Whether all of these are in the set.
    pub fn has(self, others: LinuxCapabilities) -> bool {
        self.0 & others.0 == others.0
    }

    /// The union of both sets.
    pub fn with(self, others: LinuxCapabilities) -> LinuxCapabilities {
        LinuxCapabilities(self.0 | others.0)
    }

    /// What is in this set and not in the other.
    pub fn without(self, others: LinuxCapabilities) -> LinuxCapabilities {
        LinuxCapabilities(self.0 & !others.0)
    }

    /// The names of those in the set, without `CAP_`, by number.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        (0..NAMES.len()).filter(move |number| self.0 & (1 << number) != 0).map(|number| NAMES[number])
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn the_default_set_is_that_of_container_runtimes() {
        let names: Vec<String> = LinuxCapabilities::DEFAULT.names().map(|name| name.to_string()).collect();
        let expected = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW \
                        SYS_CHROOT MKNOD AUDIT_WRITE SETFCAP";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn names_are_read_with_and_without_their_prefix() {
        let admin = LinuxCapabilities::named("SYS_ADMIN").unwrap();
        assert_eq!((LinuxCapabilities::named("CAP_SYS_ADMIN"), admin.0), (Some(admin), 1 << 21));
        assert_eq!(LinuxCapabilities::named("sys_admin"), None);
        assert_eq!(LinuxCapabilities::named("ALL"), Some(LinuxCapabilities::ALL));
        assert!(!LinuxCapabilities::DEFAULT.has(admin));
        assert!(LinuxCapabilities::DEFAULT.with(admin).has(admin));
        assert!(!LinuxCapabilities::ALL.without(admin).has(admin));
    }
}
