//! The way to one socket: it pauses after failures, and counts the connections it made.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::Instant;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause: a driver that came back is found within it (reliability 66).
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What is known of the way to one socket.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    made: u64,
    /// How often connecting failed since it last succeeded, with the last cause and when to try again.
    failures: u32,
    failed: Option<(io::ErrorKind, Instant)>,
}

impl Line {
    /// How many connections were made so far. A new one may lead to a new incarnation of the driver.
    pub fn made(&self) -> u64 {
        self.state().made
    }

    /// Why there is no connection, if the last attempt failed.
    pub fn failure(&self) -> Option<io::ErrorKind> {
        self.state().failed.map(|(kind, _)| kind)
    }

    /// Connects, after the pause that the failures before ask for.
    pub async fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        let until = self.state().failed.map(|(_, until)| until);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        let connected = UnixStream::connect(path).await;
        let mut state = self.state();
        match &connected {
            Ok(_) => *state = State { made: state.made + 1, ..State::default() },
            Err(error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(16)).min(LONGEST_PAUSE);
                state.failures += 1;
                state.failed = Some((error.kind(), Instant::now() + pause));
            }
        }
        connected
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_second_and_end_with_a_connection() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("csi.sock");
        let line = Line::default();
        let mut waited = Vec::new();
        for _ in 0..10 {
            let before = Instant::now();
            line.connect(&path).await.unwrap_err();
            waited.push((Instant::now() - before).as_millis());
        }
        assert_eq!(waited, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!((line.made(), line.failure()), (0, Some(io::ErrorKind::NotFound)));

        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        line.connect(&path).await.unwrap();
        assert_eq!((line.made(), line.failure()), (1, None));
        let before = Instant::now();
        line.connect(&path).await.unwrap();
        assert_eq!(Instant::now(), before);
    }
}
