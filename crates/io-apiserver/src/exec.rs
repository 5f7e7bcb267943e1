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
    /// Its exit status, or a sentence why it could not be started.
    pub ended: oneshot::Receiver<Result<i32, String>>,
}

/// A command that is being started; a sentence if it cannot be.
pub type OpeningExec = Pin<Box<dyn Future<Output = Result<ExecSession, String>> + Send>>;

/// Somebody who can run commands in containers.
pub trait ExecSource: Send + Sync {
    /// Starts a command in a container that runs.
    fn exec(&self, request: ExecRequest) -> OpeningExec;
}
