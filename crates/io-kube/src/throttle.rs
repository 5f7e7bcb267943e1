//! A token bucket: the rate limit of `--kube-api-qps` and `--kube-api-burst`. Without it the API server's own priority and
//! fairness decides.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many requests a second, after a burst of so many at once.
#[derive(Debug)]
pub(crate) struct Throttle {
    per_second: f64,
    burst: f64,
    /// How many tokens there are (negative while requests wait), and when that was so.
    state: Mutex<(f64, Instant)>,
}

impl Throttle {
    /// A limit; `None` for a rate of zero, which means no limit.
    pub(crate) fn new(per_second: f64, burst: u32) -> Option<Throttle> {
        let burst = f64::from(burst.max(1));
        (per_second > 0.0).then(|| Throttle { per_second, burst, state: Mutex::new((burst, Instant::now())) })
    }

    /// Takes a token, and waits until it is there.
    pub(crate) async fn wait(&self) {
        let pause = self.take(Instant::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes a token, and returns how long it is until it is there. Tokens go to callers in the order in which they ask.
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
        // A second later there are five more tokens, two of which are taken.
        let later = now + Duration::from_secs(1);
        let pauses: Vec<u128> = (0..4).map(|_| throttle.take(later).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 0, 200]);
        assert!(Throttle::new(0.0, 10).is_none());
    }
}
