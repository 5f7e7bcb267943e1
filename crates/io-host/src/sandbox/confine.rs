//! What a process gives up before it runs its command: user, groups, capabilities, system calls, limits.

use std::io;

use control::host::{LinuxCapabilities, Sandbox};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, Uid};

use super::seccomp::{self, Filters};
use super::{StartError, step};
use crate::sys;

/// How many files a process may have open; it may ask for more itself, up to the second figure.
const OPEN_FILES: (u64, u64) = (1024, 1_048_576);

/// Everything is worked out here, so that between `fork` and `exec` only system calls are left.
pub(crate) struct Confinement {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
    /// Groups cannot be given up where there are no others.
    keeps_groups: bool,
    capabilities: LinuxCapabilities,
    no_new_privileges: bool,
    filters: Option<Filters>,
}

impl Confinement {
    /// The confinement that a sandbox asks for, or why it cannot be had. To be called inside the process's root, whose
    /// `/etc/passwd` counts.
    pub(crate) fn of(sandbox: &Sandbox) -> Result<Confinement, StartError> {
        Confinement::with(sandbox, is_alone_in_its_user_namespace())
    }

    /// The same, told whether the user namespace knows one user and one group only.
    pub(crate) fn with(sandbox: &Sandbox, alone: bool) -> Result<Confinement, StartError> {
        let filters = match sandbox.seccomp && !sandbox.privileged {
            true => Some(seccomp::filters(sandbox.capabilities)?),
            false => None,
        };
        let group = sandbox.group.or_else(|| primary_group(sandbox.user)).unwrap_or(0);
        if alone && (sandbox.user, group, sandbox.supplemental_groups.len()) != (0, 0, 0) {
            let why = "Longshore does not run as root, so pods run as the user who started it; leave runAsUser, \
                       runAsGroup, supplementalGroups and fsGroup out, or start Longshore as root";
            return Err(StartError::Asked(why.to_owned()));
        }
        Ok(Confinement {
            user: Uid::from_raw(sandbox.user),
            group: Gid::from_raw(group),
            groups: sandbox.supplemental_groups.iter().map(|group| Gid::from_raw(*group)).collect(),
            keeps_groups: alone,
            capabilities: sandbox.capabilities,
            no_new_privileges: sandbox.no_new_privileges,
            filters,
        })
    }

    /// To be called in the new process, between `fork` and `exec`. Allocates nothing.
    pub(crate) fn apply(&self) -> io::Result<()> {
        limit_files()?;
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        // Keys of the machine's session are nobody's business here. A kernel without keys has none to hide.
        let _ = sys::new_session_keyring();
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        // Installing a filter takes CAP_SYS_ADMIN or no_new_privs, so it comes before the capabilities go; it lets
        // through what is still to be done.
        if let Some(filters) = &self.filters {
            filters.install()?;
        }
        bound(self.capabilities)?;
        if !self.keeps_groups {
            rustix::thread::set_thread_groups(&self.groups)?;
        }
        rustix::thread::set_thread_res_gid(self.group, self.group, self.group)?;
        rustix::thread::set_thread_res_uid(self.user, self.user, self.user)?;
        // The kernel has taken everything from a user that is not root already.
        let kept = if self.user.is_root() { held_of(self.capabilities)? } else { CapabilitySet::empty() };
        give_up(kept)?;
        Ok(())
    }
}

/// The first process of the process namespace keeps what it needs to pass signals on.
pub(crate) fn give_up_almost_all() -> io::Result<()> {
    let kill = LinuxCapabilities::named("KILL").unwrap_or(LinuxCapabilities::NONE);
    bound(LinuxCapabilities::NONE)?;
    give_up(held_of(kill)?)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Nobody can look into this process from now on. To be called before the command is started: what is beside it may
/// hold fewer capabilities than the command for a moment, which alone would open it.
pub(crate) fn close_to_others() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

fn limit_files() -> io::Result<()> {
    let now = rustix::process::getrlimit(Resource::Nofile);
    let maximum = now.maximum.map_or(OPEN_FILES.1, |maximum| maximum.min(OPEN_FILES.1));
    let limit = Rlimit { current: Some(OPEN_FILES.0.min(maximum)), maximum: Some(maximum) };
    Ok(rustix::process::setrlimit(Resource::Nofile, limit)?)
}

/// Takes all others out of the bounding set, so that nothing started from here can get them.
fn bound(kept: LinuxCapabilities) -> io::Result<()> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if kept.0 & (1 << number) != 0 {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel knows no capability of that number, nor of any higher one.
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Those of a set that this process itself has: the machine's administrator may have withheld some.
fn held_of(wanted: LinuxCapabilities) -> io::Result<CapabilitySet> {
    let held = rustix::thread::capabilities(None)?;
    Ok(held.permitted & CapabilitySet::from_bits_retain(wanted.0))
}

/// Nothing is inheritable: a program with file capabilities must not add to what the container has (CVE-2022-24769).
fn give_up(kept: CapabilitySet) -> io::Result<()> {
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// We are in a user namespace that knows one user and one group: somebody who is not root started us.
fn is_alone_in_its_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/setgroups").is_ok_and(|may| may.trim() == "deny")
}

/// The group that `/etc/passwd` gives a user.
fn primary_group(user: u32) -> Option<u32> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    group_in(&users, user)
}

fn group_in(users: &str, user: u32) -> Option<u32> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (uid, gid) = (fields.next()?, fields.next()?);
        (uid.parse() == Ok(user)).then(|| gid.parse().ok())?
    })
}

/// A clear sentence where the kernel refuses confinement, which must never be left out in silence.
pub(crate) fn refused(error: io::Error) -> StartError {
    step("the process cannot be confined")(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_group_that_passwd_gives_it() {
        let users = "root:x:0:0:root:/root:/bin/sh\nmail:x:8:12::/var/mail:/bin/false\nbroken\n";
        assert_eq!((group_in(users, 8), group_in(users, 0), group_in(users, 7)), (Some(12), Some(0), None));
    }
}
