use std::time::Duration;

/// What callers may take of time and connections.
#[derive(Clone, Copy, Debug)]
pub struct CallerLimits {
    /// Connections served at once; more wait in the kernel's queue. Never more than half of the process' descriptors.
    pub connections: usize,
    /// Connections at once, of one address, whose peers have not said who they are. One more ends the oldest.
    pub strangers: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For the headers of a request.
    pub headers: Duration,
    /// For the body of a request.
    pub body: Duration,
    /// For a connection whose peer has not said who it is.
    pub unproven: Duration,
    /// For a peer that takes nothing of what is sent to it.
    pub stalled: Duration,
    /// How often the rights of those who watch or follow are looked at anew.
    pub judge_again: Duration,
}

impl Default for CallerLimits {
    fn default() -> CallerLimits {
        CallerLimits {
            connections: 4096,
            strangers: 128,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(30),
            body: Duration::from_secs(30),
            unproven: Duration::from_secs(30),
            stalled: Duration::from_secs(60),
            judge_again: Duration::from_secs(60),
        }
    }
}

impl CallerLimits {
    /// How many connections to serve: disks, drivers and processes need descriptors too.
    pub(crate) fn places(&self) -> usize {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        self.connections.min(usize::try_from(descriptors / 2).unwrap_or(usize::MAX)).max(1)
    }
}
