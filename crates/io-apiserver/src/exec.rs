//! Who runs commands in containers. The binary knows; the server only carries what goes in and comes out.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// A command that a client wants to run in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The container, which the pod has.
    pub container: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The client sends input.
    pub stdin: bool,
    /// The command has a terminal.
    pub tty: bool,
}

/// A command that runs. When this is dropped, it is ended.
pub struct ExecSession {
    /// Its input; dropping it closes the input.
    pub stdin: Option<mpsc::Sender<Bytes>>,
    /// Its output, until it is closed; what a terminal shows.
    pub stdout: mpsc::Receiver<Bytes>,
    /// Its errors, until they are closed; none from a terminal.
    pub stderr: mpsc::Receiver<Bytes>,
    /// How many columns and rows the terminal has.
    pub size: mpsc::Sender<(u16, u16)>,
    /// Its exit status.
    pub ended: oneshot::Receiver<Result<i32, ExecError>>,
}

/// Why a command has no exit status; one sentence for the client.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// There is nothing to run it in.
    #[error("container {container} of pod {pod} is not running, so no command can be run in it")]
    #[allow(missing_docs, reason = "the sentence says what they are")]
    NotRunning { container: String, pod: String },
    /// It could not be started, or it was ended.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// Whoever ran it is gone.
    #[error("nobody heard how the command ended")]
    Unheard,
}

/// A command that is being started.
pub type OpeningExec = Pin<Box<dyn Future<Output = Result<ExecSession, ExecError>> + Send>>;

/// Somebody who can run commands in containers.
pub trait ExecSource: Send + Sync {
    /// Starts a command in a container that runs.
    fn exec(&self, request: ExecRequest) -> OpeningExec;
}
