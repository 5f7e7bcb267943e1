use alloc::format;
use alloc::string::{String, ToString};

use api::{Lease, Object};

use crate::{Outcome, Reply, Timestamp};

/// A node whose Lease says nothing renews it four times within this (as kubelet does).
const LEASE_MILLIS: u64 = 40_000;
/// What was read earlier than this is read again before anything is taken from a node.
const FRESH_MILLIS: u64 = 5_000;

/// What is known of the sign of life of a node, which shows that it lives by renewing its Lease.
///
/// What counts is that the Lease does not change while we look, by our own clock; the time it was renewed at is by the
/// node's clock, and counts only where somebody else has noticed as well that the node is not heard of any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pulse {
    /// The Lease's version; `None` if there is no Lease.
    pub version: Option<String>,
    /// When it was renewed, by the node's clock.
    pub renewed: Option<u64>,
    /// For how long it is said to count.
    pub lease_millis: u64,
    /// When this version was first seen, by our clock.
    pub since: Timestamp,
    /// When it was last read.
    pub read: Timestamp,
    /// It was renewed while we looked.
    pub beats: bool,
}

/// What the pulse of a node shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseVerdict {
    /// Nothing: its Lease must be read.
    Look,
    /// Not before then is anything known.
    Later(Timestamp),
    /// It is dead.
    Dead,
}

impl Pulse {
    /// What is known of a Lease that is first seen now.
    pub fn of(lease: Option<&Lease>, now: Timestamp) -> Pulse {
        let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds);
        Pulse {
            version: lease.map(|lease| lease.metadata.resource_version.0.clone()),
            renewed: lease.and_then(|lease| lease.spec.renew_time.as_ref()?.unix_millis()),
            lease_millis: seconds.map_or(LEASE_MILLIS, |seconds| u64::from(seconds) * 1_000),
            since: now,
            read: now,
            beats: false,
        }
    }

    /// What the Lease says now, by the answer to a read past the cache.
    pub fn read(before: Option<&Pulse>, now: Timestamp, got: &Outcome) -> Option<Pulse> {
        let lease: Option<&Lease> = match got {
            Outcome::Done(Reply::Object(Object::Lease(lease))) => Some(lease),
            Outcome::Done(Reply::Gone) => None,
            // Not known is not dead.
            Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => return before.cloned(),
        };
        let pulse = Pulse::of(lease, now);
        let same = before.filter(|before| before.version == pulse.version);
        let beats = before.is_some_and(|before| before.beats || before.version != pulse.version);
        Some(Pulse { since: same.map_or(now, |same| same.since), beats, ..pulse })
    }

    /// The Lease, as it was read, has run out at this moment by the node's own clock.
    fn expired(&self, at: Timestamp) -> bool {
        self.renewed.is_none_or(|renewed| renewed.saturating_add(self.lease_millis) < at.0)
    }

    /// When the Lease must still be as it was for the node to be dead.
    fn due(&self, wanted: u64, unheard: bool) -> Timestamp {
        match (self.expired(self.read), unheard) {
            // Two witnesses: the node's own clock, and whoever said that it is not heard of.
            (true, true) => {
                let silent_since = self.renewed.unwrap_or(self.since.0).min(self.since.0);
                Timestamp(silent_since.saturating_add(wanted))
            }
            // The node's clock alone may be wrong: a living node would renew twice meanwhile.
            (true, false) => self.since.after_millis(wanted.max(self.lease_millis / 2)),
            (false, _) => self.since.after_millis(wanted.max(self.lease_millis)),
        }
    }

    /// Whether a node is dead that has shown no sign of life for so many milliseconds. `unheard` says that somebody
    /// else has noticed as well that nothing is heard of it.
    pub fn judge(now: Timestamp, wanted: u64, unheard: bool, pulse: Option<&Pulse>) -> PulseVerdict {
        let Some(pulse) = pulse else { return PulseVerdict::Look };
        let due = pulse.due(wanted, unheard);
        if now < due {
            // What was read has run out since, and somebody has noticed: perhaps both witnesses agree by now.
            let again = unheard && pulse.expired(now) && !pulse.expired(pulse.read);
            return if again { PulseVerdict::Look } else { PulseVerdict::Later(due) };
        }
        if pulse.read < due || now > pulse.read.after_millis(FRESH_MILLIS) {
            return PulseVerdict::Look;
        }
        PulseVerdict::Dead
    }

    /// What shows that a node is dead, for people: what its Lease says and for how long we looked.
    pub fn evidence(&self, unheard: bool) -> String {
        let lease = match (&self.version, self.renewed) {
            (None, _) => "has no Lease".to_string(),
            (Some(_), None) => "never renewed its Lease".to_string(),
            (Some(_), Some(at)) => format!("last renewed its Lease at {}", Timestamp(at).to_time().0),
        };
        let looked = (self.read.0 - self.since.0) / 1_000;
        let heard = if unheard { ", and is said to be Unknown" } else { "" };
        format!("it {lease}, not within the {looked} s we looked{heard}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(renewed: u64, since: u64, read: u64) -> Pulse {
        let version = Some("1".into());
        let (since, read) = (Timestamp(since), Timestamp(read));
        Pulse { version, renewed: Some(renewed), lease_millis: LEASE_MILLIS, since, read, beats: false }
    }

    fn dead(now: u64, wanted: u64, unheard: bool, pulse: &Pulse) -> bool {
        Pulse::judge(Timestamp(now), wanted, unheard, Some(pulse)) == PulseVerdict::Dead
    }

    // AD-17, AD-19: never while the Lease may be alive.
    #[test]
    fn a_lease_that_may_be_renewed_is_a_sign_of_life() {
        assert_eq!(Pulse::judge(Timestamp(100_000), 0, true, None), PulseVerdict::Look, "nothing is assumed");
        let at = 1_000_000;
        // Expired by the node's clock, and said to be Unknown: at once. One witness is not enough.
        assert!(dead(at, 0, true, &pulse(at - 41_000, at, at)));
        assert!(!dead(at, 0, false, &pulse(at - 41_000, at, at)));
        assert!(!dead(at, 0, true, &pulse(at - 39_000, at, at)));
        assert!(dead(at, 0, false, &pulse(at - 61_000, at - 20_000, at)), "two renewals were missed");
        // Renewed lately by a clock that may be ahead: the whole time by our own.
        assert!(!dead(at, 0, true, &pulse(at + 9_000, at - 39_000, at)));
        assert!(dead(at, 0, true, &pulse(at + 9_000, at - 40_000, at)));
        // It has run out since it was read, and is said to be Unknown since: it is read again at once.
        let (then, witnessed) = (pulse(at - 30_000, at - 20_000, at - 20_000), pulse(at - 41_000, at - 20_000, at));
        assert_eq!(
            Pulse::judge(Timestamp(at + 9_000), 0, true, Some(&then)),
            PulseVerdict::Later(Timestamp(at + 20_000))
        );
        assert_eq!(Pulse::judge(Timestamp(at + 11_000), 0, true, Some(&then)), PulseVerdict::Look);
        assert_eq!(
            Pulse::judge(Timestamp(at + 11_000), 0, false, Some(&then)),
            PulseVerdict::Later(Timestamp(at + 20_000))
        );
        assert!(dead(at, 0, true, &witnessed));
        // What was read long ago proves nothing.
        let old = pulse(at - 90_000, at - 50_000, at - 6_000);
        assert_eq!(Pulse::judge(Timestamp(at), 0, true, Some(&old)), PulseVerdict::Look);
    }

    // AD-16, AD-18: time alone counts only where somebody says so, and only time without a sign of life.
    #[test]
    fn a_time_may_be_named_in_which_the_node_must_be_silent() {
        let (five, at) = (300_000, 1_000_000);
        assert!(!dead(at, five, true, &pulse(at - 299_000, at - 200_000, at)));
        assert!(dead(at, five, true, &pulse(at - 301_000, at - 200_000, at)));
        assert!(!dead(at, five, false, &pulse(at - 301_000, at - 200_000, at)), "the node's clock alone");
        assert!(dead(at, five, false, &pulse(at - 301_000, at - 300_000, at)));
        // A time shorter than the Lease's does not make a silent node dead any sooner.
        assert!(!dead(at, 1_000, true, &pulse(at - 39_000, at - 39_000, at)));
        assert!(!dead(at, 1_000, false, &pulse(at - 41_000, at - 19_000, at)));
    }
}
