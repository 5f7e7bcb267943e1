use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use control::Timestamp;

/// Tells rules the time. The machine's clock may be set back; ours waits until it has caught up.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Now, never earlier than the last answer.
    pub fn now(&self) -> Timestamp {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        Timestamp(self.0.fetch_max(millis, Ordering::Relaxed).max(millis))
    }
}
