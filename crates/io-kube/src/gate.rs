//! The hands of [`control::Pace`]: requests wait here for their turn, in the order they came.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use control::{Answer, Pace, Tick, Turn};
use tokio::sync::Notify;

/// More requests at once than any server answers side by side.
const MOST: usize = 512;

/// Where requests wait.
#[derive(Debug)]
pub struct Gate {
    pace: Mutex<Pace>,
    freed: Notify,
    since: Instant,
}

/// A request that may be made. Dropped without an end, it counts as lost.
pub struct Passage<'a> {
    gate: &'a Gate,
    begun: Tick,
    ended: bool,
}

impl Gate {
    /// An open one.
    pub fn new() -> Gate {
        Gate { pace: Mutex::new(Pace::new(MOST)), freed: Notify::new(), since: Instant::now() }
    }

    /// Waits for one's turn.
    pub async fn pass(&self) -> Passage<'_> {
        loop {
            // Listening begins before the look, so that nothing that happens in between is missed.
            let freed = self.freed.notified();
            let now = self.now();
            let turn = {
                let mut pace = self.pace();
                let turn = pace.turn(now);
                if turn == Turn::Go {
                    pace.begun();
                }
                turn
            };
            match turn {
                Turn::Go => return Passage { gate: self, begun: now, ended: false },
                Turn::Full => freed.await,
                Turn::Hold(until) => {
                    tokio::time::sleep(Duration::from_millis(until.0.saturating_sub(now.0))).await;
                }
            }
        }
    }

    fn ended(&self, begun: Tick, answer: Answer) {
        let now = self.now();
        let free = {
            let mut pace = self.pace();
            pace.ended(begun, now, answer);
            pace.free()
        };
        // The limit may have grown: as many as fit are woken.
        (0..free).for_each(|_| self.freed.notify_one());
    }

    fn now(&self) -> Tick {
        Tick(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage<'_> {
    /// How it ended.
    pub fn ended(mut self, answer: Answer) {
        self.ended = true;
        self.gate.ended(self.begun, answer);
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.gate.ended(self.begun, Answer::Lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn everybody_gets_a_turn_and_no_more_than_the_pace_allows_at_once() {
        let gate = Arc::new(Gate::new());
        let mut held = Vec::new();
        for _ in 0..64 {
            held.push(gate.pass().await);
        }
        let next = gate.pass();
        tokio::pin!(next);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut next).await.is_err());
        if let Some(one) = held.pop() {
            one.ended(Answer::Served);
        }
        next.await.ended(Answer::Served);
        let waiting = gate.clone();
        let many = tokio::spawn(async move {
            for _ in 0..1000 {
                waiting.pass().await.ended(Answer::Served);
            }
        });
        held.clear();
        assert!(many.await.is_ok());
    }
}
