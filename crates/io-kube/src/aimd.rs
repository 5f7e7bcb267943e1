//! Additive increase, multiplicative decrease: how many requests to one server may be under way at once. A pure state
//! machine that its caller tells the time.

use control::Timestamp;

/// A concurrency limit that adapts to the server, as TCP's congestion window adapts to the network. The limit starts high
/// and grows while the server keeps up. It stays where requests begin to queue at the server, and shrinks when the server
/// answers 429, answers late or does not answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aimd {
    limit: f64,
    most: f64,
    in_flight: usize,
    /// The server asked for no request before this moment.
    hold_until: Timestamp,
    /// When the limit was last cut. Requests that began earlier say nothing about the new limit.
    cut_at: Timestamp,
    /// The limit has been cut at least once, so it is near what the server can take and grows slowly.
    careful: bool,
}

/// How a request ended, as a measure of the server's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feedback {
    /// The server answered, whatever the answer.
    Answered,
    /// The server answered 429 (Too Many Requests) and asked for a pause of this many milliseconds.
    TooManyRequests(u64),
    /// No answer came.
    NoAnswer,
}

/// Whether the next request may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may begin now.
    Now,
    /// It may begin when a request that is in flight ends.
    Full,
    /// It may begin at this moment.
    Hold(Timestamp),
}

/// The limit to begin with.
const FIRST: f64 = 64.0;
/// The limit never falls below this: the server's own fair queuing needs requests to choose from.
const LEAST: f64 = 2.0;
/// A request that takes longer has queued behind others.
const QUEUED_MILLIS: u64 = 50;
/// A request that takes longer means that the server is overloaded.
const LATE_MILLIS: u64 = 2_000;

impl Aimd {
    /// A limit that never exceeds `most`.
    pub(crate) fn new(most: usize) -> Aimd {
        let most = (most as f64).max(LEAST);
        let limit = FIRST.min(most);
        Aimd { limit, most, in_flight: 0, hold_until: Timestamp(0), cut_at: Timestamp(0), careful: false }
    }

    /// Whether one more request may begin.
    pub(crate) fn admit(&self, now: Timestamp) -> Admission {
        if now < self.hold_until {
            return Admission::Hold(self.hold_until);
        }
        if self.in_flight < self.limit() { Admission::Now } else { Admission::Full }
    }

    /// A request begins.
    pub(crate) fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// A request that began at `begun` ends.
    pub(crate) fn end(&mut self, begun: Timestamp, now: Timestamp, feedback: Feedback) {
        let was_full = self.in_flight >= self.limit();
        self.in_flight = self.in_flight.saturating_sub(1);
        let took = now.0.saturating_sub(begun.0);
        match feedback {
            Feedback::TooManyRequests(millis) => {
                self.hold_until = self.hold_until.max(now.after_millis(millis));
                self.cut(begun, now, 0.5);
            }
            Feedback::NoAnswer => self.cut(begun, now, 0.5),
            Feedback::Answered if took > LATE_MILLIS => self.cut(begun, now, 0.75),
            // The limit grows only while it is used in full, and only while requests do not queue at the server: there
            // more of them would only wait longer, and other clients with them.
            Feedback::Answered if was_full && took <= QUEUED_MILLIS => {
                let more = if self.careful { 1.0 / self.limit } else { 1.0 };
                self.limit = (self.limit + more).min(self.most);
            }
            Feedback::Answered => {}
        }
    }

    /// How many requests may be in flight at once.
    pub(crate) fn limit(&self) -> usize {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two and `most`")]
        let whole = self.limit as usize;
        whole
    }

    /// How many more requests the limit allows.
    pub(crate) fn free(&self) -> usize {
        self.limit().saturating_sub(self.in_flight)
    }

    /// Cuts the limit, once for all requests that were in flight together: their fate is one piece of news.
    fn cut(&mut self, begun: Timestamp, now: Timestamp, factor: f64) {
        if begun < self.cut_at {
            return;
        }
        self.limit = (self.limit * factor).max(LEAST);
        self.careful = true;
        // A request that began within this very millisecond may have been in flight already.
        self.cut_at = now.after_millis(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(aimd: &mut Aimd, now: Timestamp) -> usize {
        let mut begun = 0;
        while aimd.admit(now) == Admission::Now {
            aimd.begin();
            begun += 1;
        }
        begun
    }

    #[test]
    fn it_grows_while_it_is_used_in_full_and_answered_in_time() {
        let mut aimd = Aimd::new(200);
        assert_eq!(fill(&mut aimd, Timestamp(0)), 64);
        for _ in 0..64 {
            aimd.end(Timestamp(0), Timestamp(5), Feedback::Answered);
            fill(&mut aimd, Timestamp(5));
        }
        assert_eq!(aimd.limit(), 128);
        for _ in 0..500 {
            aimd.end(Timestamp(5), Timestamp(10), Feedback::Answered);
            fill(&mut aimd, Timestamp(10));
        }
        assert_eq!(aimd.limit(), 200);
    }

    #[test]
    fn it_does_not_grow_while_requests_queue_at_the_server() {
        let mut aimd = Aimd::new(200);
        fill(&mut aimd, Timestamp(0));
        for now in 60..1000 {
            aimd.end(Timestamp(now - 60), Timestamp(now), Feedback::Answered);
            fill(&mut aimd, Timestamp(now));
        }
        assert_eq!(aimd.limit(), 64);
    }

    #[test]
    fn it_does_not_grow_by_requests_that_come_alone() {
        let mut aimd = Aimd::new(200);
        for now in 0..1000 {
            aimd.begin();
            aimd.end(Timestamp(now), Timestamp(now + 1), Feedback::Answered);
        }
        assert_eq!(aimd.limit(), 64);
    }

    #[test]
    fn a_busy_server_is_left_alone_for_as_long_as_it_asks_and_then_asked_less() {
        let mut aimd = Aimd::new(200);
        fill(&mut aimd, Timestamp(0));
        // All that were in flight together are refused together: one cut.
        for _ in 0..64 {
            aimd.end(Timestamp(0), Timestamp(10), Feedback::TooManyRequests(1000));
        }
        assert_eq!(aimd.limit(), 32);
        assert_eq!(aimd.admit(Timestamp(11)), Admission::Hold(Timestamp(1010)));
        assert_eq!(fill(&mut aimd, Timestamp(1010)), 32);
        aimd.end(Timestamp(1010), Timestamp(1020), Feedback::TooManyRequests(0));
        assert_eq!(aimd.limit(), 16);
        // Afterwards it grows by one for a whole round of answers.
        let mut aimd = Aimd { in_flight: 16, ..aimd };
        for _ in 0..17 {
            aimd.end(Timestamp(1100), Timestamp(1110), Feedback::Answered);
            fill(&mut aimd, Timestamp(1110));
        }
        assert_eq!(aimd.limit(), 17);
    }

    #[test]
    fn late_and_missing_answers_slow_it_down_but_never_to_a_stop() {
        let mut aimd = Aimd::new(200);
        aimd.begin();
        aimd.end(Timestamp(0), Timestamp(LATE_MILLIS + 1), Feedback::Answered);
        assert_eq!(aimd.limit(), 48);
        for round in 1..50 {
            let now = Timestamp(10_000 * round);
            aimd.begin();
            aimd.end(now, now, Feedback::NoAnswer);
        }
        assert_eq!(aimd.limit(), 2);
        assert_eq!(aimd.admit(Timestamp(u64::MAX)), Admission::Now);
    }
}
