//! Where the lines of a container come from. The binary knows; the server only asks.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures::Stream;

/// What a client wants to read of a container's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The container, which the pod has.
    pub container: String,
    /// Keep the stream open for what is written later.
    pub follow: bool,
    /// The run before the current one.
    pub previous: bool,
    /// The container waits to be started: there is no current run.
    pub waits: bool,
    /// Put the time before each line.
    pub timestamps: bool,
    /// Only so many last lines.
    pub tail_lines: Option<u64>,
    /// Only so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only what was written in the last so many seconds.
    pub since_seconds: Option<u64>,
    /// Only what was written since this moment, in milliseconds after 1970.
    pub since_millis: Option<u64>,
}

/// The bytes of a log, as they come.
pub type LogStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Why there is no log; one sentence for the client.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No run of the container has begun.
    #[error("container {container} of pod {pod} is waiting to start: it has not run yet, so there is no log")]
    #[allow(missing_docs, reason = "the sentence says what they are")]
    NotStarted { container: String, pod: String },
    /// The container has run once only.
    #[error("previous terminated container {container} of pod {pod} not found: it has not been started again")]
    #[allow(missing_docs, reason = "the sentence says what they are")]
    NoPrevious { container: String, pod: String },
    /// The log is there and cannot be read.
    #[error("cannot read the log: {0}")]
    Unreadable(#[from] io::Error),
}

/// A log that is being opened.
pub type OpeningLog = Pin<Box<dyn Future<Output = Result<LogStream, LogError>> + Send>>;

/// Somebody who can read what containers wrote.
pub trait LogSource: Send + Sync {
    /// Opens the log of a container. The stream ends when all is read or, if followed, when the container ends.
    fn open(&self, request: LogRequest) -> OpeningLog;
}
