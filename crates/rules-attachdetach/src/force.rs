//! Taking a volume from a node that does not answer: when that may be considered, and what shows that the node is dead.
//!
//! A node shows that it lives by renewing its Lease. What counts is that the Lease does not change while we look, by
//! our own clock; the time it was renewed at is by the node's clock, and counts only where somebody else has noticed
//! as well that the node is not heard of any more.

use alloc::format;
use alloc::string::{String, ToString};

use api::{Lease, Node, Object, ObjectKey, names};
use control::{Cache, Outcome, Reply, Timestamp};

/// A node whose Lease says nothing renews it four times within this (as kubelet does).
const LEASE_MILLIS: u64 = 40_000;
/// What was read earlier than this is read again before anything is taken from a node.
const FRESH_MILLIS: u64 = 5_000;

/// Whether a volume may be taken from a node without the node's word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForcePolicy {
    /// Never; with what is wrong about the class that says something else.
    Never(Option<String>),
    /// The node has the taint `node.kubernetes.io/out-of-service`.
    OutOfService,
    /// The volume's class lets its volumes go from a node that has shown no sign of life for so many milliseconds.
    After(u64),
}

/// What is known of the sign of life of a node.
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

/// What is to be done about a node that may be dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its Lease must be read.
    Look,
    /// Not before then is anything known.
    Later(Timestamp),
    /// It is dead: this shows it.
    Dead(String),
}

/// What may be done about the volumes of a class on a node.
pub(crate) fn policy(cache: &Cache, class: &str, node: &str) -> ForcePolicy {
    let node = cache.node(&ObjectKey::cluster(node));
    if node.is_some_and(|node| is_out_of_service(&node)) {
        return ForcePolicy::OutOfService;
    }
    let class = cache.class(&ObjectKey::cluster(class));
    let Some(said) = class.as_ref().and_then(|class| class.metadata.annotation(names::FORCE_DETACH_AFTER)) else {
        return ForcePolicy::Never(None);
    };
    match millis(said) {
        Some(millis) => ForcePolicy::After(millis.max(LEASE_MILLIS)),
        None => {
            let annotation = names::FORCE_DETACH_AFTER;
            ForcePolicy::Never(Some(format!("the class's annotation {annotation} must be like 5m, and is {said:?}")))
        }
    }
}

/// Somebody has said that the node is shut down.
pub(crate) fn is_out_of_service(node: &Node) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == names::OUT_OF_SERVICE_TAINT)
}

/// Somebody else has noticed that the node is not heard of any more: then its condition Ready is Unknown.
pub(crate) fn is_unheard(node: &Node) -> bool {
    node.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "Unknown")
}

/// A whole number of seconds, minutes or hours.
fn millis(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _other => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

impl Pulse {
    /// What the Lease says now.
    pub(crate) fn read(before: Option<&Pulse>, now: Timestamp, got: &Outcome) -> Option<Pulse> {
        let lease: Option<&Lease> = match got {
            Outcome::Done(Reply::Object(Object::Lease(lease))) => Some(lease),
            Outcome::Done(Reply::Gone) => None,
            // Not known is not dead.
            Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => return before.cloned(),
        };
        let version = lease.map(|lease| lease.metadata.resource_version.0.clone());
        let same = before.filter(|before| before.version == version);
        let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds);
        Some(Pulse {
            renewed: lease.and_then(|lease| lease.spec.renew_time.as_ref()?.unix_millis()),
            lease_millis: seconds.map_or(LEASE_MILLIS, |seconds| u64::from(seconds) * 1_000),
            since: same.map_or(now, |same| same.since),
            read: now,
            beats: before.is_some_and(|before| before.beats || before.version != version),
            version,
        })
    }

    /// When the Lease must still be as it was for the node to be dead.
    fn due(&self, policy: &ForcePolicy, unheard: bool) -> Timestamp {
        let expired = self.renewed.is_none_or(|renewed| renewed.saturating_add(self.lease_millis) < self.read.0);
        let wanted = match policy {
            ForcePolicy::After(millis) => *millis,
            ForcePolicy::OutOfService | ForcePolicy::Never(_) => 0,
        };
        match (expired, unheard) {
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
}

/// What is known about a node's life.
pub(crate) fn judge(now: Timestamp, policy: &ForcePolicy, unheard: bool, pulse: Option<&Pulse>) -> Verdict {
    let Some(pulse) = pulse else { return Verdict::Look };
    let due = pulse.due(policy, unheard);
    if now < due {
        return Verdict::Later(due);
    }
    if pulse.read < due || now > pulse.read.after_millis(FRESH_MILLIS) {
        return Verdict::Look;
    }
    Verdict::Dead(evidence(policy, pulse, unheard))
}

/// What is written down about a volume that was taken from a node.
fn evidence(policy: &ForcePolicy, pulse: &Pulse, unheard: bool) -> String {
    let why = match policy {
        ForcePolicy::OutOfService => format!("the node has the taint {}", names::OUT_OF_SERVICE_TAINT),
        ForcePolicy::After(millis) => {
            format!("the class lets volumes go from a node without a sign of life for {} s", millis / 1_000)
        }
        ForcePolicy::Never(_) => String::new(),
    };
    let lease = match (&pulse.version, pulse.renewed) {
        (None, _) => "has no Lease".to_string(),
        (Some(_), None) => "never renewed its Lease".to_string(),
        (Some(_), Some(at)) => format!("last renewed its Lease at {}", Timestamp(at).to_time().0),
    };
    let looked = (pulse.read.0 - pulse.since.0) / 1_000;
    let heard = if unheard { ", and is said to be Unknown" } else { "" };
    format!("{why}; it {lease}, not within the {looked} s we looked{heard}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        assert_eq!((millis("90s"), millis("5m"), millis("1h")), (Some(90_000), Some(300_000), Some(3_600_000)));
        for odd in ["", "5", "m", "5 m", "-5m", "1.5h", "5ü", "99999999999999999999s"] {
            assert_eq!(millis(odd), None, "{odd}");
        }
    }

    fn pulse(renewed: u64, since: u64, read: u64) -> Pulse {
        let version = Some("1".into());
        let (since, read) = (Timestamp(since), Timestamp(read));
        Pulse { version, renewed: Some(renewed), lease_millis: LEASE_MILLIS, since, read, beats: false }
    }

    fn dead(now: u64, policy: &ForcePolicy, unheard: bool, pulse: &Pulse) -> bool {
        matches!(judge(Timestamp(now), policy, unheard, Some(pulse)), Verdict::Dead(_))
    }

    // AD-17, AD-19: never while the Lease may be alive.
    #[test]
    fn a_lease_that_may_be_renewed_is_a_sign_of_life() {
        let out = ForcePolicy::OutOfService;
        assert_eq!(judge(Timestamp(100_000), &out, true, None), Verdict::Look, "nothing is assumed");
        let at = 1_000_000;
        // Expired by the node's clock, and said to be Unknown: at once. One witness is not enough.
        assert!(dead(at, &out, true, &pulse(at - 41_000, at, at)));
        assert!(!dead(at, &out, false, &pulse(at - 41_000, at, at)));
        assert!(!dead(at, &out, true, &pulse(at - 39_000, at, at)));
        assert!(dead(at, &out, false, &pulse(at - 61_000, at - 20_000, at)), "two renewals were missed");
        // Renewed lately by a clock that may be ahead: the whole time by our own.
        assert!(!dead(at, &out, true, &pulse(at + 9_000, at - 39_000, at)));
        assert!(dead(at, &out, true, &pulse(at + 9_000, at - 40_000, at)));
        // What was read long ago proves nothing.
        let old = pulse(at - 90_000, at - 50_000, at - 6_000);
        assert_eq!(judge(Timestamp(at), &out, true, Some(&old)), Verdict::Look);
    }

    // AD-16, AD-18: time alone counts only where the class says so, and only time without a sign of life.
    #[test]
    fn a_class_may_name_a_time() {
        let (five, at) = (ForcePolicy::After(300_000), 1_000_000);
        assert!(!dead(at, &five, true, &pulse(at - 299_000, at - 200_000, at)));
        assert!(dead(at, &five, true, &pulse(at - 301_000, at - 200_000, at)));
        assert!(!dead(at, &five, false, &pulse(at - 301_000, at - 200_000, at)), "the node's clock alone");
        assert!(dead(at, &five, false, &pulse(at - 301_000, at - 300_000, at)));
    }
}
