use alloc::string::String;

use crate::{Outcome, Refusal, Tick};

/// How often something failed in a row, and when to try again. Part of a controller's memory: forgetting it costs an
/// early retry, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retry {
    failures: u32,
    not_before: Tick,
    last: String,
}

/// First pause, and the longest (reliability 74: bounded and doubling).
const FIRST_MILLIS: u64 = 100;
const LONGEST_MILLIS: u64 = 60_000;
/// First pause after a conflict: only as long as the news of the change may take to reach our cache.
const CONFLICT_MILLIS: u64 = 2;

impl Retry {
    /// Takes note of how an attempt ended. A conflict is not a failure: the next look is at fresher facts.
    #[must_use]
    pub fn after(self, now: Tick, outcome: &Outcome) -> Retry {
        match outcome {
            Outcome::Done(_) => Retry::default(),
            Outcome::Refused(Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists) => {
                self.failed(now, outcome, CONFLICT_MILLIS)
            }
            Outcome::Refused(Refusal::Denied(_) | Refusal::Driver(..) | Refusal::Host(_)) | Outcome::Unknown(_) => {
                self.failed(now, outcome, FIRST_MILLIS)
            }
        }
    }

    fn failed(self, now: Tick, outcome: &Outcome, first: u64) -> Retry {
        let pause = first.saturating_mul(1 << self.failures.min(16)).min(LONGEST_MILLIS);
        Retry {
            failures: self.failures.saturating_add(1),
            not_before: now.after_millis(pause),
            last: outcome.failure().unwrap_or_default(),
        }
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
        assert!(pauses.iter().all(|p| *p <= LONGEST_MILLIS));
        assert_eq!(retry.pause(now), None);
        assert_eq!(retry.after(now, &Outcome::Done(crate::Reply::Nothing)), Retry::default());
    }
}
