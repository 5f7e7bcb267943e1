//! The hands of a role: the cluster's API and one driver.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use control::{Effect, Outcome, Refusal, Reply};
use io_csi::Driver;
use io_kube::Kube;
use io_run::Hands;

use super::secrets::Waiting;

/// The hands of one role.
pub struct RoleHands {
    /// The cluster.
    pub kube: Kube,
    /// The driver.
    pub driver: Arc<Driver>,
    /// The deadline of a call.
    pub timeout: Duration,
    /// Who hears of Secrets that are missing or wrong.
    pub waiting: Arc<Waiting>,
}

impl Hands for RoleHands {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            match effect {
                Effect::Read(target) => {
                    let got = self.kube.read(&target).await;
                    if target.kind == Kind::Secret {
                        self.waiting.read(&target, &got);
                    }
                    got
                }
                Effect::Write(write) => self.kube.write(&write).await,
                Effect::Call { call, .. } => {
                    let (method, trace) = (call.method(), self.waiting.trace(&call));
                    let got = io_csi::outcome(method, self.driver.call(call, self.timeout).await);
                    self.waiting.refused(trace, &got);
                    got
                }
                Effect::Nothing => Outcome::Done(Reply::Nothing),
                Effect::Host(_) => Outcome::Refused(Refusal::Host(
                    "a sidecar has no machine to work on; report this as a defect".into(),
                )),
            }
        })
    }
}
