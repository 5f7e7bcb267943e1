//! Limits how many requests are in flight at once, as [`Aimd`] decides.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use control::Timestamp;
use tokio::sync::Notify;

use crate::aimd::{Admission, Aimd, Feedback};

/// More requests than any server answers at the same time.
const MOST: usize = 512;

/// Hands out permits to send requests, in the order in which callers ask.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    aimd: Mutex<Aimd>,
    freed: Notify,
    since: Instant,
}

/// Permission to send one request. Dropping it without [`Permit::end`] counts as a request without an answer.
pub(crate) struct Permit<'a> {
    limit: &'a ConcurrencyLimit,
    begun: Timestamp,
    ended: bool,
}

impl ConcurrencyLimit {
    pub(crate) fn new() -> ConcurrencyLimit {
        ConcurrencyLimit { aimd: Mutex::new(Aimd::new(MOST)), freed: Notify::new(), since: Instant::now() }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self) -> Permit<'_> {
        loop {
            // The wait begins before the look, so nothing that happens in between is missed.
            let freed = self.freed.notified();
            let now = self.now();
            let admission = {
                let mut aimd = self.aimd();
                let admission = aimd.admit(now);
                if admission == Admission::Now {
                    aimd.begin();
                }
                admission
            };
            match admission {
                Admission::Now => return Permit { limit: self, begun: now, ended: false },
                Admission::Full => freed.await,
                Admission::Hold(until) => {
                    tokio::time::sleep(Duration::from_millis(until.0.saturating_sub(now.0))).await;
                }
            }
        }
    }

    fn end(&self, begun: Timestamp, feedback: Feedback) {
        let now = self.now();
        let free = {
            let mut aimd = self.aimd();
            aimd.end(begun, now, feedback);
            aimd.free()
        };
        // The limit may have grown, so as many callers wake as fit.
        (0..free).for_each(|_| self.freed.notify_one());
    }

    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn aimd(&self) -> MutexGuard<'_, Aimd> {
        self.aimd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// The request ended.
    pub(crate) fn end(mut self, feedback: Feedback) {
        self.ended = true;
        self.limit.end(self.begun, feedback);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.limit.end(self.begun, Feedback::NoAnswer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn every_caller_gets_a_permit_and_no_more_than_the_limit_are_out_at_once() {
        let limit = Arc::new(ConcurrencyLimit::new());
        let mut held = Vec::new();
        for _ in 0..64 {
            held.push(limit.acquire().await);
        }
        let next = limit.acquire();
        tokio::pin!(next);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut next).await.is_err());
        if let Some(one) = held.pop() {
            one.end(Feedback::Answered);
        }
        next.await.end(Feedback::Answered);
        let waiting = limit.clone();
        let many = tokio::spawn(async move {
            for _ in 0..1000 {
                waiting.acquire().await.end(Feedback::Answered);
            }
        });
        held.clear();
        assert!(many.await.is_ok());
    }
}
