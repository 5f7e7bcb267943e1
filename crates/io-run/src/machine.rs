//! Operations on this machine, each in a worker thread and with a deadline: a hung filesystem blocks nothing but
//! itself.

use std::sync::Arc;
use std::time::Duration;

use control::host::{Op, Reply};
use io_host::{Host, HostError, Workers};
use tokio::sync::oneshot;

/// How long one operation may take before nobody waits for it any more. It goes on in its thread.
pub const OP_DEADLINE: Duration = Duration::from_secs(60);
/// How many operations are done side by side. Hung ones count too, so there are more than a machine with a few dead
/// filesystems needs.
const WORKERS: usize = 128;
/// The same for whoever begins few at once and many only where they hang: a thread that waits costs next to nothing.
const MANY_WORKERS: usize = 1024;
/// How often a long copy says how far it has come.
const PROGRESS: Duration = Duration::from_secs(10);

/// Why an operation brought no reply.
#[derive(Debug)]
pub enum OpFailure {
    /// It failed, or it was given up on.
    Host(HostError),
    /// Its thread ended without a word; the text names the operation.
    NoAnswer(String),
}

/// Threads for the operations on a machine.
pub fn workers(host: Arc<Host>) -> Workers {
    Workers::new(host, WORKERS)
}

/// Threads for the operations of controllers, which keep to a number of their own (reliability 50).
pub fn workers_for_controllers(host: Arc<Host>) -> Workers {
    Workers::new(host, MANY_WORKERS)
}

/// Performs an operation in a worker thread.
pub async fn perform(workers: &Workers, op: Op) -> Result<Reply, OpFailure> {
    let (say, heard) = oneshot::channel();
    let pending = workers.begin(op.clone(), move |answer| drop(say.send(answer))).map_err(OpFailure::Host)?;
    wait(&op, heard).await.unwrap_or_else(|| Err(OpFailure::Host(pending.give_up())))
}

/// Waits for the answer to an operation; `None` when its deadline has passed. What takes as long as a volume is large
/// has no deadline: its caller may stop waiting, but it is never begun a second time beside itself.
pub async fn wait(op: &Op, mut heard: oneshot::Receiver<Result<Reply, HostError>>) -> Option<Result<Reply, OpFailure>> {
    let (patience, endless) = match op {
        Op::CopyTogether { .. } | Op::RemoveTree { .. } | Op::SetGroup { .. } => (PROGRESS, true),
        Op::RunHandler { timeout_millis, .. } => (OP_DEADLINE + Duration::from_millis(*timeout_millis), false),
        Op::StopProcess { grace_millis, .. } => (OP_DEADLINE + Duration::from_millis(*grace_millis), false),
        _ => (OP_DEADLINE, false),
    };
    loop {
        match tokio::time::timeout(patience, &mut heard).await {
            Ok(Ok(answer)) => return Some(answer.map_err(OpFailure::Host)),
            Ok(Err(_)) => return Some(Err(OpFailure::NoAnswer(format!("{op:?} ended without an answer")))),
            Err(_) if endless => tell_progress(op),
            Err(_) => return None,
        }
    }
}

fn tell_progress(op: &Op) {
    if let Op::SetGroup { path, group, .. } = op {
        // KL-85: a volume with many files keeps its pod waiting.
        tracing::warn!("the files in {path} are still being given to group {group}");
    }
    let Op::CopyTogether { copies } = op else { return };
    for copy in copies {
        match io_host::copied_so_far(&copy.to) {
            Some(bytes) => tracing::info!("{bytes} bytes of {} are copied so far", copy.from),
            None => tracing::info!("{} is being copied", copy.from),
        }
    }
}
