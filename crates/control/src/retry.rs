use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Outcome, Refusal, Timestamp};

/// How an attempt counts in its row of failures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attempt {
    /// It did what it was for: the row of failures ends.
    Succeeded,
    /// It neither failed nor proved anything, such as a read that precedes the real attempt: the row stays as it is.
    Neutral,
    /// The API object changed first. The next attempt follows as soon as the watch may have caught up.
    Outrun(String),
    /// It failed, or nobody knows whether it happened. The next attempt backs off.
    Failed(String),
}

impl Attempt {
    /// What an outcome means for most actions.
    pub fn of(outcome: &Outcome) -> Attempt {
        let text = || outcome.failure().unwrap_or_default();
        match outcome {
            Outcome::Done(_) => Attempt::Succeeded,
            Outcome::Refused(Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists) => Attempt::Outrun(text()),
            Outcome::Refused(Refusal::Denied(_) | Refusal::Driver(..) | Refusal::Host(_)) | Outcome::Unknown(_) => {
                Attempt::Failed(text())
            }
        }
    }

    /// The same for a read that only prepares an attempt: success does not end a row of failures.
    pub fn of_read(outcome: &Outcome) -> Attempt {
        match Attempt::of(outcome) {
            Attempt::Succeeded => Attempt::Neutral,
            attempt @ (Attempt::Neutral | Attempt::Outrun(_) | Attempt::Failed(_)) => attempt,
        }
    }

    /// What went wrong, as a clause a person can read; `None` if nothing did.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Attempt::Succeeded | Attempt::Neutral => None,
            Attempt::Outrun(text) | Attempt::Failed(text) => Some(text),
        }
    }
}

/// What an attempt belongs to. A failure holds back later attempts of the same lane and the same subject, no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane<'a> {
    /// Which of a key's independent pieces of work: most rules have one, number 0.
    pub number: u8,
    /// What it is about, such as `uid/`. A longer subject narrows a shorter one: `uid/5/` is part of `uid/`, and the empty
    /// subject covers all.
    pub subject: Cow<'a, str>,
}

impl<'a> Lane<'a> {
    /// The only lane, about this subject.
    pub fn about(subject: &'a str) -> Lane<'a> {
        Lane { number: 0, subject: Cow::Borrowed(subject) }
    }

    /// One of several lanes, about anything.
    pub fn numbered(number: u8) -> Lane<'a> {
        Lane { number, subject: Cow::Borrowed("") }
    }
}

/// Exponential back-off: pauses double from the first to the longest (reliability 74).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BackOff {
    /// The pause after the first failure, in milliseconds.
    pub first: u64,
    /// The longest pause, in milliseconds.
    pub longest: u64,
}

impl Default for BackOff {
    fn default() -> BackOff {
        BackOff { first: 100, longest: 60_000 }
    }
}

/// The first pause after a conflict: only as long as the watch may take to deliver the change.
const OUTRUN_MILLIS: u64 = 2;

/// The longest pause after conflicts in a row. Many keys may write to one object, such as the volumes of one node to
/// its status: each conflict is another's success, so that the row says nothing about how long to wait.
const OUTRUN_LONGEST_MILLIS: u64 = 256;

/// The rows of failures of one key, one per lane that has any. Forgetting them costs an early retry, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failures(Vec<Row>);

/// Failures in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Row {
    lane: u8,
    subject: String,
    count: u32,
    not_before: Timestamp,
    last: String,
}

impl Failures {
    /// No lane has failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts an attempt.
    pub fn count(&mut self, now: Timestamp, lane: &Lane<'_>, attempt: Attempt, back_off: BackOff) {
        let (first, longest, last) = match attempt {
            Attempt::Neutral => return,
            Attempt::Succeeded => return self.0.retain(|row| row.lane != lane.number),
            Attempt::Outrun(text) => (OUTRUN_MILLIS, OUTRUN_LONGEST_MILLIS.min(back_off.longest), text),
            Attempt::Failed(text) => (back_off.first, back_off.longest, text),
        };
        let mut row = self.row(lane).cloned().unwrap_or_default();
        self.0.retain(|row| row.lane != lane.number);
        let pause = first.saturating_mul(1 << row.count.min(16)).min(longest);
        if row.subject.len() < lane.subject.len() {
            row.subject = lane.subject.clone().into_owned();
        }
        (row.count, row.not_before) = (row.count.saturating_add(1), now.after_millis(pause));
        self.0.push(Row { lane: lane.number, last, ..row });
    }

    /// The end of the pause that this lane is in, with what failed last; `None` if an attempt may be made.
    pub fn hold(&self, now: Timestamp, lane: &Lane<'_>) -> Option<(Timestamp, &str)> {
        let row = self.row(lane).filter(|row| now < row.not_before)?;
        Some((row.not_before, &row.last))
    }

    fn row(&self, lane: &Lane<'_>) -> Option<&Row> {
        let (asked, of_lane) = (&*lane.subject, |row: &&Row| row.lane == lane.number);
        let covers = |row: &&Row| row.subject.starts_with(asked) || asked.starts_with(&row.subject);
        self.0.iter().find(of_lane).filter(covers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Attempt {
        Attempt::of(&Outcome::Unknown("no answer".into()))
    }

    fn pauses(times: usize, attempt: &Attempt, back_off: BackOff) -> Vec<u64> {
        let (mut failures, mut now, lane) = (Failures::default(), Timestamp(1_000), Lane::default());
        let mut pauses = Vec::new();
        for _ in 0..times {
            failures.count(now, &lane, attempt.clone(), back_off);
            let (until, _) = failures.hold(now, &lane).unwrap();
            pauses.push(until.0 - now.0);
            now = until;
            assert_eq!(failures.hold(now, &lane), None, "the pause is over");
        }
        pauses
    }

    // Reliability 74: under permanent failure the rate stays under a bounded curve.
    #[test]
    fn pauses_double_and_stay_bounded() {
        let pauses = pauses(20, &failed(), BackOff::default());
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert!(pauses.iter().all(|pause| *pause <= BackOff::default().longest));
    }

    // Sidecars 1.7: the first pause is the one asked for, and no pause is longer than the longest. PV-5: a conflict is
    // expected now and then, and no failure.
    #[test]
    fn pauses_are_as_long_as_the_operator_wants_them() {
        let asked = BackOff { first: 1_000, longest: 5_000 };
        assert_eq!(pauses(5, &failed(), asked), [1_000, 2_000, 4_000, 5_000, 5_000]);
        let outrun = Attempt::of(&Outcome::Refused(Refusal::Conflict));
        assert_eq!(pauses(2, &outrun, asked), [OUTRUN_MILLIS, 2 * OUTRUN_MILLIS], "a conflict is no failure");
    }

    // Seen with thirty volumes on one node: keys that lost often waited for seconds, while others came through.
    #[test]
    fn conflicts_in_a_row_never_hold_back_for_long() {
        let outrun = Attempt::of(&Outcome::Refused(Refusal::Conflict));
        let pauses = pauses(20, &outrun, BackOff::default());
        assert_eq!(pauses[..3], [2, 4, 8]);
        assert_eq!(pauses.iter().max(), Some(&OUTRUN_LONGEST_MILLIS));
    }

    #[test]
    fn success_ends_a_row_and_a_read_leaves_it_as_it_is() {
        let (now, lane, back_off) = (Timestamp(5), Lane::default(), BackOff::default());
        let mut failures = Failures::default();
        failures.count(now, &lane, failed(), back_off);
        let read = Attempt::of_read(&Outcome::Done(crate::Reply::Gone));
        failures.count(now, &lane, read, back_off);
        assert_eq!(failures.hold(now, &lane).map(|(_, last)| last), Some("no answer"));
        failures.count(now, &lane, Attempt::of(&Outcome::Done(crate::Reply::Nothing)), back_off);
        assert!(failures.is_empty());
    }

    // Reliability 13: what failed for a namesake says nothing.
    #[test]
    fn failures_of_another_lane_or_subject_hold_nothing_back() {
        let (now, back_off) = (Timestamp(5), BackOff::default());
        let mut failures = Failures::default();
        failures.count(now, &Lane::about("uid-1/5/"), failed(), back_off);
        assert!(failures.hold(now, &Lane::about("uid-1/")).is_some(), "a shorter subject covers it");
        assert!(failures.hold(now, &Lane::default()).is_some(), "no subject covers all");
        assert!(failures.hold(now, &Lane::about("uid-1/7/")).is_none());
        assert!(failures.hold(now, &Lane::about("uid-2")).is_none());
        assert!(failures.hold(now, &Lane::numbered(1)).is_none());
        failures.count(now, &Lane::about("uid-2"), failed(), back_off);
        let (until, _) = failures.hold(now, &Lane::about("uid-2")).unwrap();
        assert_eq!(until, now.after_millis(back_off.first), "another subject begins a row of its own");
    }
}
