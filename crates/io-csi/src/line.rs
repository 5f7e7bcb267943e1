//! The way to one socket: it waits between failed attempts to connect, and knows whether a connection is open.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause. A driver that is back is found within it (reliability 66).
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The connections to one socket, one after the other.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    /// The number of the connection that is open.
    open: watch::Sender<Option<u64>>,
}

#[derive(Default)]
struct State {
    /// How many connections were made so far.
    made: u64,
    /// How often connecting failed since it last succeeded.
    failures: u32,
    /// The last failure, and when to try again.
    failed: Option<(io::ErrorKind, Instant)>,
}

impl Line {
    /// The number of the open connection. Another number may mean another incarnation of the driver.
    pub fn connection(&self) -> Option<u64> {
        *self.open.borrow()
    }

    /// Waits until a connection is no longer open.
    pub async fn closed(&self, connection: u64) {
        // The sender lives as long as `self`, so the only way to end is the condition.
        let _ = self.open.subscribe().wait_for(|open| *open != Some(connection)).await;
    }

    /// The cause of the last failure to connect, unless an attempt succeeded after it.
    pub fn failure(&self) -> Option<io::ErrorKind> {
        self.state().failed.map(|(kind, _)| kind)
    }

    /// Connects, after the pause that previous failures ask for.
    pub async fn connect(self: Arc<Self>, path: &Path) -> io::Result<Connection> {
        let until = self.state().failed.map(|(_, until)| until);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        let connected = UnixStream::connect(path).await;
        let mut state = self.state();
        match connected {
            Ok(stream) => {
                let number = state.made + 1;
                *state = State { made: number, ..State::default() };
                drop(state);
                self.open.send_replace(Some(number));
                Ok(Connection { stream, number, line: self })
            }
            Err(error) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(16)).min(LONGEST_PAUSE);
                state.failures += 1;
                state.failed = Some((error.kind(), Instant::now() + pause));
                Err(error)
            }
        }
    }

    /// Counts a connection as closed, because it is, or because nothing comes back on it any more.
    pub fn close(&self, connection: Option<u64>) {
        self.open.send_if_modified(|open| connection.is_some() && *open == connection && open.take().is_some());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that tells its [`Line`] when it is dropped. The HTTP/2 library reads from an idle connection too, and drops it as
/// soon as the other end has closed it.
pub struct Connection {
    stream: UnixStream,
    number: u64,
    line: Arc<Line>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.line.close(Some(self.number));
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_second_and_end_with_a_connection() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("csi.sock");
        let line = Arc::new(Line::default());
        let mut waited = Vec::new();
        for _ in 0..10 {
            let before = Instant::now();
            let error = line.clone().connect(&path).await.err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            waited.push((Instant::now() - before).as_millis());
        }
        assert_eq!(waited, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!((line.connection(), line.failure()), (None, Some(io::ErrorKind::NotFound)));

        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        let first = line.clone().connect(&path).await.unwrap();
        assert_eq!((line.connection(), line.failure()), (Some(1), None));
        let before = Instant::now();
        let second = line.clone().connect(&path).await.unwrap();
        assert_eq!(Instant::now(), before);
        // The first was replaced, so that its end is no news.
        drop(first);
        assert_eq!(line.connection(), Some(2));
        line.closed(1).await;
        let closed = tokio::spawn({
            let line = line.clone();
            async move { line.closed(2).await }
        });
        drop(second);
        closed.await.unwrap();
        assert_eq!(line.connection(), None);
    }
}
