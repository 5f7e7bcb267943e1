//! What this machine is: read once, for people who look at a node. What cannot be read is left empty.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// What a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineLook {
    /// From `/etc/machine-id`.
    pub machine_id: String,
    /// What the firmware calls the machine; only root may read it.
    pub system_uuid: String,
    /// Another with each start of the machine.
    pub boot_id: String,
    /// The kernel's release.
    pub kernel: String,
    /// The name of the distribution.
    pub os_image: String,
    /// Processors this process may use.
    pub processors: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// The address from which others are reached, if there is a way out.
    pub address: Option<IpAddr>,
}

/// Looks at this machine.
pub fn look_at_machine() -> MachineLook {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    MachineLook {
        machine_id: read("/etc/machine-id"),
        system_uuid: read("/sys/class/dmi/id/product_uuid"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        kernel: read("/proc/sys/kernel/osrelease"),
        os_image: os_name(&read("/etc/os-release")).unwrap_or_else(|| "unknown".to_owned()),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        memory: crate::sandbox::cgroup::memory_of_the_machine().unwrap_or(0),
        address: address(),
    }
}

/// The address of a socket that would speak to the world. Nothing is sent.
fn address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is kept for documentation.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn os_name(release: &str) -> Option<String> {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(|c| c == '"' || c == '\'').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_is() {
        assert_eq!(os_name("ID=x\nPRETTY_NAME=\"Some Linux 12 (name)\"\n").as_deref(), Some("Some Linux 12 (name)"));
        assert_eq!(os_name("ID=x"), None);
        let seen = look_at_machine();
        assert!(!seen.kernel.is_empty() && !seen.boot_id.is_empty() && seen.processors > 0 && seen.memory > 0);
    }
}
