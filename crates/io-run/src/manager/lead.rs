//! Leader election: a controller under a Lease begins something only while this process holds it.

use std::sync::Arc;

use control::Narrate;
use io_kube::{LeaderElector, LeaderStatus};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Manager, lock};
use crate::{Controller, Metrics};

/// Whether this process leads under one Lease. Controllers that lead together share it.
#[derive(Clone)]
pub struct Leadership(watch::Receiver<bool>);

/// An election under way. Dropping its sender would leave the Lease held; [`Running::end`] gives it up.
pub(super) struct Running {
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Gives the Lease up.
    pub async fn end(self) {
        let _ = self.end.send(true);
        let _ = self.task.await;
    }
}

impl Manager {
    /// Takes part in an election until the group is stopped.
    pub fn elect(&self, group: &str, elector: LeaderElector) -> Leadership {
        let (tell, leads) = watch::channel(false);
        let (end, mut ended) = watch::channel(false);
        let (kube, metrics) = (self.unpaced.clone(), self.metrics.clone());
        let task = tokio::spawn(async move {
            let (publish, status) = watch::channel(LeaderStatus::default());
            let name = elector.lease.name.clone();
            let stop = async {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            tokio::join!(kube.elect(&elector, publish, stop), follow(&name, &metrics, status, &tell));
        });
        lock(&self.groups).entry(group.into()).or_default().elections.push(Running { end, task });
        Leadership(leads)
    }
}

/// Tells controllers, metrics and the log who leads.
async fn follow(name: &str, metrics: &Metrics, mut status: watch::Receiver<LeaderStatus>, tell: &watch::Sender<bool>) {
    metrics.leads(name, false);
    while status.changed().await.is_ok() {
        let now = status.borrow_and_update().clone();
        if let Some(failure) = &now.failure {
            tracing::warn!("the lease {name}: {failure}");
        }
        if tell.send_if_modified(|leads| std::mem::replace(leads, now.leads) != now.leads) {
            metrics.leads(name, now.leads);
            tracing::info!("{} under the lease {name}", if now.leads { "leading" } else { "no longer leading" });
        }
    }
}

impl Leadership {
    /// Lets a controller begin something only while this process leads.
    pub(super) fn govern<R: Narrate>(&self, controller: &Arc<Controller<R>>) {
        let (mut leads, governed) = (self.0.clone(), Arc::downgrade(controller));
        controller.lead(*leads.borrow_and_update());
        tokio::spawn(async move {
            while leads.changed().await.is_ok() {
                let Some(controller) = governed.upgrade() else { return };
                let now = *leads.borrow_and_update();
                controller.lead(now);
            }
        });
    }
}
