//! Who of several processes leads: the protocol of the Kubernetes leader election, as a pure machine.
//!
//! Candidates share one Lease. Whoever holds it renews it; the others watch it *by their own clock*: a lease that has not
//! changed for its whole duration is up for taking. No clock is ever compared with another machine's, and every write
//! says which version of the lease it is based on, so of two writers one loses. Programs in Go that use client-go play the
//! same game on the same object.
//!
//! The law: a leader stops leading, by its own clock and counted from *before* its last successful write, earlier than
//! any other candidate may take over (`renew` < `duration`).

use alloc::string::{String, ToString};

use api::{Lease, LeaseSpec, Time};

use crate::Timestamp;

/// What the candidates agree on, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    pub identity: String,
    /// A lease untouched for so long may be taken.
    pub duration: u64,
    /// A leader who could not renew for so long leads no more.
    pub renew: u64,
    /// The pause between two tries.
    pub retry: u64,
}

impl LeaseConfig {
    /// Whether this configuration keeps the law; the error is a sentence.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.identity.is_empty() {
            return Err("a candidate for leadership needs a name");
        }
        if self.duration < 1000 {
            return Err("the lease duration must be at least one second");
        }
        if self.renew >= self.duration {
            return Err("the renew deadline must be shorter than the lease duration");
        }
        // The same bound client-go asks for, so that one late try is not the end.
        if self.retry == 0 || self.retry.saturating_mul(12) / 10 >= self.renew {
            return Err(
                "the retry period must be positive, and 1.2 times as long still shorter than the renew deadline",
            );
        }
        Ok(())
    }
}

/// What the machine asks of whoever has hands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "questions are asked one at a time and never collected")]
pub enum ElectionStep {
    /// Read the lease, and tell with [`Election::read`].
    Read,
    /// Make the lease (`based_on` is `None`) or replace the one seen, and tell with [`Election::wrote`].
    Write {
        /// What it is to say.
        spec: LeaseSpec,
        /// The lease it replaces.
        based_on: Option<Lease>,
    },
    /// Nothing before this moment.
    Wait(Timestamp),
}

/// What a read of the lease brought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "made one at a time and moved, never collected")]
pub enum LeaseRead {
    /// The lease as it is.
    Found(Lease),
    /// There is no lease.
    NotFound,
    /// The read failed: nothing was learned.
    Failed,
}

/// One candidate for a Lease, between two looks at it.
#[derive(Clone, Debug)]
pub struct Election {
    config: LeaseConfig,
    /// The lease as last seen, and when it was first seen so.
    seen: Option<(Lease, Timestamp)>,
    /// What was seen is recent enough to write on.
    fresh: bool,
    /// When the last successful write was begun.
    renewed: Option<Timestamp>,
    /// When the write under way was begun.
    writing: Option<Timestamp>,
    next: Timestamp,
}

impl Election {
    /// A candidate who has seen nothing yet.
    pub fn new(config: LeaseConfig) -> Election {
        Election { config, seen: None, fresh: false, renewed: None, writing: None, next: Timestamp(0) }
    }

    /// Whether this candidate leads. It may stop being true merely because time passes.
    pub fn leads(&self, now: Timestamp) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Until when this candidate leads if it renews no more.
    pub fn leads_until(&self) -> Option<Timestamp> {
        self.renewed.map(|at| at.after_millis(self.config.renew))
    }

    /// When the last successful renewal was begun, while this candidate may still lead.
    pub fn renewed(&self) -> Option<Timestamp> {
        self.renewed
    }

    /// Who holds the lease, as far as is known.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| holder(lease))
    }

    /// What to do now. `wall` is what clocks on walls show: it is written for people, never compared.
    pub fn next(&mut self, now: Timestamp, wall: Time) -> ElectionStep {
        if self.renewed.is_some() && !self.leads(now) {
            // Led and could not renew in time: from here on a candidate like all others.
            self.renewed = None;
            self.fresh = false;
        }
        if now < self.next {
            return ElectionStep::Wait(self.next);
        }
        if !self.fresh {
            return ElectionStep::Read;
        }
        match &self.seen {
            Some((lease, since)) if !self.may_write(lease, *since, now) => {
                self.pause(now);
                self.fresh = false;
                ElectionStep::Wait(self.next)
            }
            seen => {
                let based_on = seen.as_ref().map(|(lease, _)| lease.clone());
                self.writing = Some(now);
                ElectionStep::Write { spec: self.claim(based_on.as_ref(), wall), based_on }
            }
        }
    }

    /// The lease was read.
    pub fn read(&mut self, now: Timestamp, read: LeaseRead) {
        match read {
            LeaseRead::Failed => self.pause(now),
            LeaseRead::NotFound => {
                self.seen = None;
                self.fresh = true;
            }
            LeaseRead::Found(lease) => self.see(lease, now),
        }
    }

    /// The write ended: the lease as it is now, or `None` if it was refused or its end is unknown.
    pub fn wrote(&mut self, now: Timestamp, lease: Option<Lease>) {
        let begun = self.writing.take();
        self.pause(now);
        match lease {
            Some(lease) => {
                self.see(lease, now);
                self.renewed = begun;
            }
            // Somebody was faster, or the answer was lost: look before the next write, and soon while leading.
            None => {
                self.fresh = false;
                if self.leads(now) {
                    self.next = now.after_millis(self.config.retry / 5);
                }
            }
        }
    }

    /// The write that gives the lease up, if it is held: others need not wait for it to run out.
    pub fn release(&mut self, wall: Time) -> Option<(LeaseSpec, Lease)> {
        let (lease, _) = self.seen.clone().filter(|_| self.renewed.is_some())?;
        self.renewed = None;
        self.fresh = false;
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            renew_time: Some(wall.clone()),
            acquire_time: Some(wall),
            lease_transitions: lease.spec.lease_transitions,
        };
        Some((spec, lease))
    }

    fn see(&mut self, lease: Lease, now: Timestamp) {
        let same = self.seen.as_ref().is_some_and(|(held, _)| {
            held.metadata.resource_version == lease.metadata.resource_version && held.metadata.uid == lease.metadata.uid
        });
        if !same {
            self.seen = Some((lease, now));
        }
        self.fresh = true;
    }

    /// The lease is ours, nobody's, or was left alone for its whole duration.
    fn may_write(&self, lease: &Lease, since: Timestamp, now: Timestamp) -> bool {
        match holder(lease) {
            None => true,
            Some(holder) if holder == self.config.identity => true,
            Some(_) => now >= since.after_millis(self.config.duration.max(promised(lease))),
        }
    }

    fn claim(&self, based_on: Option<&Lease>, wall: Time) -> LeaseSpec {
        let old = based_on.map(|lease| &lease.spec);
        let mine = based_on.and_then(holder) == Some(&self.config.identity);
        let acquired = old.and_then(|spec| spec.acquire_time.clone()).filter(|_| mine);
        let transitions = old.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.config.identity.to_string()),
            lease_duration_seconds: Some(u32::try_from(self.config.duration / 1000).unwrap_or(u32::MAX)),
            acquire_time: Some(acquired.unwrap_or_else(|| wall.clone())),
            renew_time: Some(wall),
            lease_transitions: Some(if mine || old.is_none() { transitions } else { transitions.saturating_add(1) }),
        }
    }

    fn pause(&mut self, now: Timestamp) {
        self.next = now.after_millis(self.config.retry);
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.holder_identity.as_deref().filter(|name| !name.is_empty())
}

/// What the holder told the others, in milliseconds: one with a longer duration than ours is given its time.
fn promised(lease: &Lease) -> u64 {
    u64::from(lease.spec.lease_duration_seconds.unwrap_or(0)).saturating_mul(1000)
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
