//! All hands together: what rules decide reaches the API, a driver or this machine.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{Effect, Outcome, Refusal, Reply, host};
use csi::{Call, Method};
use io_csi::CsiClient;
use io_host::Host;
use io_kube::Kube;
use io_run::Hands;

/// How long a driver may take to answer. What takes longer is unknown, and asked again.
const CALL_DEADLINE: Duration = Duration::from_secs(120);
/// How long one operation on this machine may take before nobody waits for it any more. It goes on in its own thread.
const HOST_DEADLINE: Duration = Duration::from_secs(60);

/// The hands of one process.
pub struct AllHands {
    /// The API.
    pub kube: Kube,
    /// Drivers.
    pub csi: CsiClient,
    /// This machine, where there is one to work on.
    pub host: Option<Arc<Host>>,
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
                Effect::Host(op) => match &self.host {
                    Some(host) => on_host(host.clone(), op).await,
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

/// Performs an operation in a thread of its own: a hung filesystem blocks nothing but itself.
pub async fn on_host(host: Arc<Host>, op: host::Op) -> Outcome {
    let said = format!("{op:?}");
    let work = tokio::task::spawn_blocking(move || host.perform(&op));
    match tokio::time::timeout(HOST_DEADLINE, work).await {
        Ok(Ok(Ok(reply))) => Outcome::Done(Reply::Host(reply)),
        Ok(Ok(Err(error))) if error.certain() => Outcome::Refused(Refusal::Host(error.to_string())),
        Ok(Ok(Err(error))) => Outcome::Unknown(error.to_string()),
        Ok(Err(_)) => Outcome::Unknown(format!("{said} ended without an answer")),
        Err(_) => Outcome::Unknown(format!("{said} has not ended after {} s and goes on", HOST_DEADLINE.as_secs())),
    }
}
