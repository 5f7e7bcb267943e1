use crate::Tick;

/// How many requests to one server may be under way at once. It begins boldly, grows while the server keeps up, stays
/// where requests begin to wait for each other, and gives way when the server says that it is overloaded, answers late or
/// not at all: additive increase, multiplicative decrease, as TCP shares a line among strangers.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    limit: f64,
    most: f64,
    under_way: usize,
    /// The server asked to be left alone until then.
    hold_until: Tick,
    /// When the limit was last cut. What was begun before that says nothing about the new limit.
    cut_at: Tick,
    /// It has been cut at least once: the limit is near what the server can take, so that it grows slowly.
    careful: bool,
}

/// How a request ended, as far as the server's load is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was answered, whatever the answer.
    Served,
    /// The server was too busy (429), and said for how long, in milliseconds.
    TooBusy(u64),
    /// No answer came.
    Lost,
}

/// What may be done with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may go.
    Go,
    /// Not before one that is under way has ended.
    Full,
    /// Not before this moment.
    Hold(Tick),
}

/// Requests at once to begin with.
const FIRST: f64 = 64.0;
/// Never fewer: the server's own queues need something to be fair with.
const LEAST: f64 = 2.0;
/// An answer that takes longer has waited for others.
const SOON_MILLIS: u64 = 50;
/// An answer that takes longer is a server in trouble.
const LATE_MILLIS: u64 = 2_000;

impl Pace {
    /// A pace that never has more than so many requests under way.
    pub fn new(most: usize) -> Pace {
        let most = (most as f64).max(LEAST);
        let limit = FIRST.min(most);
        Pace { limit, most, under_way: 0, hold_until: Tick(0), cut_at: Tick(0), careful: false }
    }

    /// Whether one more may be begun.
    pub fn turn(&self, now: Tick) -> Turn {
        if now < self.hold_until {
            return Turn::Hold(self.hold_until);
        }
        if self.under_way < self.at_once() { Turn::Go } else { Turn::Full }
    }

    /// One was begun.
    pub fn begun(&mut self) {
        self.under_way += 1;
    }

    /// One that was begun then has ended like this.
    pub fn ended(&mut self, begun: Tick, now: Tick, answer: Answer) {
        let was_full = self.under_way >= self.at_once();
        self.under_way = self.under_way.saturating_sub(1);
        let took = now.0.saturating_sub(begun.0);
        match answer {
            Answer::TooBusy(millis) => {
                self.hold_until = self.hold_until.max(now.after_millis(millis));
                self.cut(begun, now, 0.5);
            }
            Answer::Lost => self.cut(begun, now, 0.5),
            Answer::Served if took > LATE_MILLIS => self.cut(begun, now, 0.75),
            // An unused limit proves nothing, so that it does not grow. Nor does it where requests wait for each other at
            // the server: more of them would only wait longer, and others with them.
            Answer::Served if was_full && took <= SOON_MILLIS => {
                let more = if self.careful { 1.0 / self.limit } else { 1.0 };
                self.limit = (self.limit + more).min(self.most);
            }
            Answer::Served => {}
        }
    }

    /// How many may be under way at once.
    pub fn at_once(&self) -> usize {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two and `most`")]
        let whole = self.limit as usize;
        whole
    }

    /// How many more could be begun, but for a hold.
    pub fn free(&self) -> usize {
        self.at_once().saturating_sub(self.under_way)
    }

    /// At most one cut for everything that was under way together: it is one piece of news.
    fn cut(&mut self, begun: Tick, now: Tick, to: f64) {
        if begun < self.cut_at {
            return;
        }
        self.limit = (self.limit * to).max(LEAST);
        self.careful = true;
        // What is begun within this very millisecond may have been under way already.
        self.cut_at = now.after_millis(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(pace: &mut Pace, now: Tick) -> usize {
        let mut begun = 0;
        while pace.turn(now) == Turn::Go {
            pace.begun();
            begun += 1;
        }
        begun
    }

    #[test]
    fn it_grows_while_it_is_used_in_full_and_served_in_time() {
        let mut pace = Pace::new(200);
        assert_eq!(full(&mut pace, Tick(0)), 64);
        for _ in 0..64 {
            pace.ended(Tick(0), Tick(5), Answer::Served);
            full(&mut pace, Tick(5));
        }
        assert_eq!(pace.at_once(), 128);
        for _ in 0..500 {
            pace.ended(Tick(5), Tick(10), Answer::Served);
            full(&mut pace, Tick(10));
        }
        assert_eq!(pace.at_once(), 200);
    }

    #[test]
    fn it_does_not_grow_while_requests_wait_for_each_other() {
        let mut pace = Pace::new(200);
        full(&mut pace, Tick(0));
        for now in 60..1000 {
            pace.ended(Tick(now - 60), Tick(now), Answer::Served);
            full(&mut pace, Tick(now));
        }
        assert_eq!(pace.at_once(), 64);
    }

    #[test]
    fn it_does_not_grow_by_requests_that_come_alone() {
        let mut pace = Pace::new(200);
        for now in 0..1000 {
            pace.begun();
            pace.ended(Tick(now), Tick(now + 1), Answer::Served);
        }
        assert_eq!(pace.at_once(), 64);
    }

    #[test]
    fn a_busy_server_is_left_alone_for_as_long_as_it_asks_and_then_asked_less() {
        let mut pace = Pace::new(200);
        full(&mut pace, Tick(0));
        // All that were under way together are refused together: one cut.
        for _ in 0..64 {
            pace.ended(Tick(0), Tick(10), Answer::TooBusy(1000));
        }
        assert_eq!(pace.at_once(), 32);
        assert_eq!(pace.turn(Tick(11)), Turn::Hold(Tick(1010)));
        assert_eq!(full(&mut pace, Tick(1010)), 32);
        pace.ended(Tick(1010), Tick(1020), Answer::TooBusy(0));
        assert_eq!(pace.at_once(), 16);
        // Afterwards it grows by one for a whole round of answers.
        let mut pace = Pace { under_way: 16, ..pace };
        for _ in 0..17 {
            pace.ended(Tick(1100), Tick(1110), Answer::Served);
            full(&mut pace, Tick(1110));
        }
        assert_eq!(pace.at_once(), 17);
    }

    #[test]
    fn late_and_lost_answers_slow_it_down_but_never_to_a_stop() {
        let mut pace = Pace::new(200);
        pace.begun();
        pace.ended(Tick(0), Tick(LATE_MILLIS + 1), Answer::Served);
        assert_eq!(pace.at_once(), 48);
        for round in 1..50 {
            let now = Tick(10_000 * round);
            pace.begun();
            pace.ended(now, now, Answer::Lost);
        }
        assert_eq!(pace.at_once(), 2);
        assert_eq!(pace.turn(Tick(u64::MAX)), Turn::Go);
    }
}
