use alloc::string::String;

use crate::{Outcome, Refusal, Tick};

/// How often something failed in a row, and when to try again. Part of a controller's memory: forgetting it costs an
/// early retry, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retry {
    failures: u32,
    failed_at: Tick,
    not_before: Tick,
    /// Somebody was faster: the next try is soon.
    outrun: bool,
    last: String,
}

/// How long the pauses between tries are: doubling, and bounded (reliability 74).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pauses {
    /// After the first failure, in milliseconds.
    pub first: u64,
    /// At most, in milliseconds.
    pub longest: u64,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { first: 100, longest: 60_000 }
    }
}

/// First pause after a conflict: only as long as the news of the change may take to reach our cache.
const CONFLICT_MILLIS: u64 = 2;

impl Retry {
    /// Takes note of how an attempt ended. A conflict is not a failure: the next look is at fresher facts.
    #[must_use]
    pub fn after(self, now: Tick, outcome: &Outcome) -> Retry {
        match outcome {
            Outcome::Done(_) => Retry::default(),
            Outcome::Refused(Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists) => {
                self.failed(now, outcome, true)
            }
            Outcome::Refused(Refusal::Denied(_) | Refusal::Driver(..) | Refusal::Host(_)) | Outcome::Unknown(_) => {
                self.failed(now, outcome, false)
            }
        }
    }

    fn failed(self, now: Tick, outcome: &Outcome, outrun: bool) -> Retry {
        let failures = self.failures.saturating_add(1);
        let last = outcome.failure().unwrap_or_default();
        Retry { failures, failed_at: now, not_before: now, outrun, last }.paced(Pauses::default())
    }

    /// The same failures, with pauses of another length.
    #[must_use]
    pub fn paced(self, pauses: Pauses) -> Retry {
        if self.failures == 0 {
            return self;
        }
        let first = if self.outrun { CONFLICT_MILLIS } else { pauses.first };
        let pause = first.saturating_mul(1 << (self.failures - 1).min(16)).min(pauses.longest);
        Retry { not_before: self.failed_at.after_millis(pause), ..self }
    }

    /// The moment before which nothing should be tried, if it is still to come.
    pub fn pause(&self, now: Tick) -> Option<Tick> {
        (self.failures > 0 && now < self.not_before).then_some(self.not_before)
    }

    /// What went wrong last, if the last attempt failed.
    pub fn last_failure(&self) -> Option<&str> {
        (self.failures > 0).then_some(self.last.as_str())
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reliability 74: under permanent failure the rate stays under a bounded curve.
    #[test]
    fn pauses_double_and_stay_bounded() {
        let mut retry = Retry::default();
        let mut now = Tick(1_000);
        let mut pauses = alloc::vec::Vec::new();
        for _ in 0..20 {
            retry = retry.after(now, &Outcome::Unknown("no answer".into()));
            let until = retry.pause(now).unwrap();
            pauses.push(until.0 - now.0);
            now = until;
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert!(pauses.iter().all(|p| *p <= Pauses::default().longest));
        assert_eq!(retry.pause(now), None);
        assert_eq!(retry.after(now, &Outcome::Done(crate::Reply::Nothing)), Retry::default());
    }

    // Sidecars 1.7: the first pause is the one asked for, and no pause is longer than the longest.
    #[test]
    fn pauses_are_as_long_as_the_operator_wants_them() {
        let told = Pauses { first: 1_000, longest: 5_000 };
        let (mut retry, mut now, mut pauses) = (Retry::default(), Tick(7), alloc::vec::Vec::new());
        for _ in 0..5 {
            retry = retry.after(now, &Outcome::Unknown("no answer".into())).paced(told);
            let until = retry.pause(now).unwrap();
            pauses.push(until.0 - now.0);
            now = until;
        }
        assert_eq!(pauses, [1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(Retry::default().paced(told), Retry::default());
        let outrun = Retry::default().after(now, &Outcome::Refused(Refusal::Conflict)).paced(told);
        assert_eq!(outrun.pause(now), Some(now.after_millis(CONFLICT_MILLIS)), "a conflict is no failure");
    }
}
