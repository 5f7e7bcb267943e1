//! All hands together: what rules decide reaches the API, a driver or this machine.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{Effect, Outcome, Refusal, Reply, host};
use csi::{Call, Method};
use io_csi::CsiClient;
use io_host::{Host, HostError, Workers};
use io_kube::Kube;
use io_run::Hands;

/// How long a driver may take to answer. What takes longer is unknown, and asked again.
const CALL_DEADLINE: Duration = Duration::from_secs(120);
/// How long one operation on this machine may take before nobody waits for it any more. It goes on in its own thread.
const HOST_DEADLINE: Duration = Duration::from_secs(60);
/// How many operations on this machine are done side by side. Those that hang count too, so that there are more of them
/// than a machine with a few dead filesystems needs.
const HOST_WORKERS: usize = 128;

/// The hands of one process.
pub struct AllHands {
    /// The API.
    pub kube: Kube,
    /// Drivers.
    pub csi: CsiClient,
    /// This machine, where there is one to work on.
    pub workers: Option<Workers>,
    /// CSI calls made, by method.
    pub calls: CallCounts,
}

/// CSI calls made so far.
#[derive(Default)]
pub struct CallCounts(Mutex<BTreeMap<Method, u64>>);

impl CallCounts {
    fn add(&self, method: Method) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(method).or_default() += 1;
    }

    /// Every count.
    pub fn all(&self) -> Vec<(Method, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(method, count)| (*method, *count)).collect()
    }
}

impl Hands for AllHands {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            match effect {
                Effect::Read(target) => self.kube.read(&target).await,
                Effect::Write(write) => self.kube.write(&write).await,
                Effect::Call { socket, call } => self.call(&socket, call).await,
                Effect::Nothing => Outcome::Done(Reply::Nothing),
                Effect::Host(op) => match &self.workers {
                    Some(workers) => on_host(workers, op).await,
                    None => Outcome::Refused(Refusal::Host("this process has no machine to work on".into())),
                },
            }
        })
    }
}

impl AllHands {
    async fn call(&self, socket: &str, call: Call) -> Outcome {
        let method = call.method();
        self.calls.add(method);
        io_csi::outcome(method, self.csi.call(socket, call, CALL_DEADLINE).await)
    }
}

/// Threads for the operations on a machine.
pub fn workers(host: Arc<Host>) -> Workers {
    Workers::new(host, HOST_WORKERS)
}

/// How long an operation is waited for. What takes as long as a volume is large has no deadline: its caller may stop
/// waiting, but it is not begun a second time beside itself.
fn deadline(op: &host::Op) -> Option<Duration> {
    match op {
        host::Op::CopyTogether { .. } | host::Op::RemoveTree { .. } => None,
        host::Op::StopProcess { grace_millis, .. } => Some(HOST_DEADLINE + Duration::from_millis(*grace_millis)),
        _ => Some(HOST_DEADLINE),
    }
}

/// Performs an operation in a thread of its own: a hung filesystem blocks nothing but itself.
pub async fn on_host(workers: &Workers, op: host::Op) -> Outcome {
    let (said, deadline) = (format!("{op:?}"), deadline(&op));
    let (say, heard) = tokio::sync::oneshot::channel();
    let pending = match workers.begin(op, move |answer| drop(say.send(answer))) {
        Ok(pending) => pending,
        Err(error) => return failed(&error),
    };
    let heard = match deadline {
        Some(deadline) => tokio::time::timeout(deadline, heard).await,
        None => Ok(heard.await),
    };
    match heard {
        Ok(Ok(Ok(reply))) => Outcome::Done(Reply::Host(reply)),
        Ok(Ok(Err(error))) => failed(&error),
        Ok(Err(_)) => Outcome::Unknown(format!("{said} ended without an answer")),
        Err(_) => {
            let error = pending.give_up();
            tracing::warn!("{error}");
            failed(&error)
        }
    }
}

fn failed(error: &HostError) -> Outcome {
    if error.certain() {
        return Outcome::Refused(Refusal::Host(error.to_string()));
    }
    Outcome::Unknown(error.to_string())
}
