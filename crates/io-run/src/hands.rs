//! The one set of hands: what rules decide reaches the API, a driver or this machine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::Kind;
use control::{Effect, Endpoint, Outcome, Refusal, Reply, host};
use csi::{Call, Code, Status};
use io_host::Workers;
use io_kube::Kube;

use crate::drivers::Drivers;
use crate::machine::{self, OpFailure};
use crate::plugins::InTreePlugin;
use crate::secret_poll::SecretPoll;
use crate::{Hands, Looks};

/// The hands of one controller. All of a process share drivers, machine and Secrets.
pub struct SharedHands {
    /// The API, at the pace of this controller.
    pub kube: Kube,
    /// The drivers, by name and by socket.
    pub drivers: Arc<Drivers>,
    /// How long a driver may take to answer. What takes longer is unknown, and asked again.
    pub timeout: Duration,
    /// Threads for this machine, where the process has one to work on.
    pub machine: Option<Workers>,
    /// Hears of Secrets that are missing or wrong.
    pub secrets: Arc<SecretPoll>,
    /// Reads past the cache.
    pub looks: Arc<Looks>,
}

impl Hands for SharedHands {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            match effect {
                Effect::Read(target) => {
                    let got = self.looks.read(&self.kube, &target).await;
                    if target.kind == Kind::Secret {
                        self.secrets.read(&target.key, &got);
                    }
                    got
                }
                Effect::List { kind, namespace } => self.kube.read_all(kind, &namespace).await,
                Effect::Token(wish) => self.kube.token(&wish).await,
                Effect::Write(write) => self.kube.write(&write).await,
                Effect::Call { to, call } => self.call(&to, call).await,
                Effect::Host(op) => self.on_machine(op).await,
                Effect::Nothing => Outcome::Done(Reply::Nothing),
            }
        })
    }
}

/// KL-7: a driver that registers answers at once, or is asked again; nobody waits minutes for a word.
fn deadline(method: csi::Method, longest: Duration) -> Duration {
    match method {
        csi::Method::GetInfo => longest.min(Duration::from_secs(1)),
        csi::Method::GetCSIDriverInfo | csi::Method::NotifyRegistrationStatus => longest.min(Duration::from_secs(5)),
        _ => longest,
    }
}

impl SharedHands {
    async fn call(&self, to: &Endpoint, call: Call) -> Outcome {
        if let Some((name, plugin)) = self.drivers.plugin(to) {
            return self.of_plugin(&name, &*plugin, call).await;
        }
        let Some(line) = self.drivers.to(to) else {
            return Outcome::Refused(Refusal::Driver(Code::Unavailable, format!("driver {to} is not registered here")));
        };
        let (method, trace) = (call.method(), self.secrets.trace(&call));
        let got = io_csi::outcome(method, line.driver.call(call, deadline(method, self.timeout)).await);
        self.secrets.answered(trace, &got);
        got
    }

    async fn of_plugin(&self, name: &str, plugin: &dyn InTreePlugin, call: Call) -> Outcome {
        let (method, began) = (call.method(), Instant::now());
        let longest = deadline(method, self.timeout);
        let late = || Err(Status::local(Code::DeadlineExceeded, format!("plugin {name} has not ended and is at work")));
        let answer = tokio::time::timeout(longest, plugin.asked(call)).await.unwrap_or_else(|_| late());
        self.drivers.metrics().by_plugin(method, name, answer.is_ok(), began.elapsed());
        io_csi::outcome(method, answer)
    }

    async fn on_machine(&self, op: host::Op) -> Outcome {
        let Some(workers) = &self.machine else {
            let text = "this process has no machine to work on; report this as a defect";
            return Outcome::Refused(Refusal::Host(text.into()));
        };
        match machine::perform(workers, op).await {
            Ok(reply) => Outcome::Done(Reply::Host(reply)),
            Err(OpFailure::Host(error)) if error.certain() => Outcome::Refused(Refusal::Host(error.to_string())),
            Err(OpFailure::Host(error)) => Outcome::Unknown(error.to_string()),
            Err(OpFailure::NoAnswer(text)) => Outcome::Unknown(text),
        }
    }
}
