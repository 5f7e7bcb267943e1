//! A limit on requests, for those who ask for one. Without it the API server's own flow control rules.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many requests a second, and so many at once before that counts.
#[derive(Debug)]
pub struct Throttle {
    per_second: f64,
    burst: f64,
    /// Requests that may go out now (less than nothing: some are waiting their turn), and when that was so.
    state: Mutex<(f64, Instant)>,
}

impl Throttle {
    /// A limit; a rate of nothing is no limit at all.
    pub fn new(per_second: f64, burst: u32) -> Option<Throttle> {
        let burst = f64::from(burst.max(1));
        (per_second > 0.0).then(|| Throttle { per_second, burst, state: Mutex::new((burst, Instant::now())) })
    }

    /// Waits for one's turn.
    pub async fn turn(&self) {
        let pause = self.take(Instant::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes a turn, and says how long it is until then. Turns are given in the order they are asked for.
    fn take(&self, now: Instant) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (free, since) = *state;
        let free = (free + now.duration_since(since).as_secs_f64() * self.per_second).min(self.burst) - 1.0;
        *state = (free, now);
        if free >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-free / self.per_second) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let throttle = Throttle::new(5.0, 10).unwrap();
        let now = Instant::now();
        let pauses: Vec<u128> = (0..12).map(|_| throttle.take(now).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 400]);
        // A second later five more have become free, two of which are spoken for.
        let later = now + Duration::from_secs(1);
        let pauses: Vec<u128> = (0..4).map(|_| throttle.take(later).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 0, 200]);
        assert!(Throttle::new(0.0, 10).is_none());
    }
}
