use std::fmt;

/// What a process does for a driver: each was a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Makes and deletes volumes.
    Provisioner,
    /// Attaches volumes to nodes.
    Attacher,
    /// Grows and modifies volumes.
    Resizer,
    /// Tells kubelet of the driver.
    Registrar,
    /// Tells kubelet whether the driver is alive.
    Liveness,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [Role::Provisioner, Role::Attacher, Role::Resizer, Role::Registrar, Role::Liveness];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Role::Provisioner => "provisioner",
            Role::Attacher => "attacher",
            Role::Resizer => "resizer",
            Role::Registrar => "registrar",
            Role::Liveness => "liveness",
        }
    }

    /// The Go program it replaces.
    pub fn program(self) -> &'static str {
        match self {
            Role::Provisioner => "csi-provisioner",
            Role::Attacher => "csi-attacher",
            Role::Resizer => "csi-resizer",
            Role::Registrar => "csi-node-driver-registrar",
            Role::Liveness => "livenessprobe",
        }
    }

    /// The role of a program, or of a role's name.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name || role.program() == name)
    }

    /// The Lease its Go program holds for a driver (C6), so that both can take over from each other.
    pub fn lease(self, driver: &str) -> Option<String> {
        match self {
            Role::Provisioner => Some(plain(driver)),
            Role::Attacher => Some(plain(&format!("external-attacher-leader-{driver}"))),
            Role::Resizer => Some(plain(&format!("external-resizer-{driver}"))),
            Role::Registrar | Role::Liveness => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Letters, digits and dashes, not ending in a dash: the way the Go programs make names of driver names.
pub fn plain(name: &str) -> String {
    let mut plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.ends_with('-') {
        plain.push('X');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    // C6.
    #[test]
    fn leases_are_named_as_the_go_programs_name_them() {
        let lease = |role: Role| role.lease("local.csi/longshore");
        assert_eq!(lease(Role::Provisioner).as_deref(), Some("local-csi-longshore"));
        assert_eq!(lease(Role::Attacher).as_deref(), Some("external-attacher-leader-local-csi-longshore"));
        assert_eq!(lease(Role::Resizer).as_deref(), Some("external-resizer-local-csi-longshore"));
        assert_eq!(lease(Role::Registrar), None);
        assert_eq!(plain("odd_"), "odd-X");
        assert_eq!(Role::named("csi-attacher"), Some(Role::Attacher));
        assert_eq!(Role::named("attacher"), Some(Role::Attacher));
    }
}
