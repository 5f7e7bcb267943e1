//! What is counted and timed, under the names the Go sidecars use, plus why decisions were made.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::operations::OperationMetrics;
use crate::volumes::VolumeMetrics;

/// The buckets of the Go sidecars' calls (C7), which are those of kubelet as well.
pub(crate) const CALL_BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// Those of their work queues, in seconds.
const QUEUE_BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// One call to a driver. Nothing of its contents is here, so nothing of it can be told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// The driver, or `unknown-driver` before it has said its name.
    pub driver_name: String,
    /// The path of the method, `/csi.v1.Controller/CreateVolume`.
    pub method_name: &'static str,
    /// The code's name, `OK` or another.
    pub grpc_status_code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    controller: &'static str,
    decision: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    controller: &'static str,
    action: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ForcedLabels {
    reason: &'static str,
}

pub(crate) type MakeHistogram = fn() -> Histogram;

/// An action that has ended.
#[derive(Clone, Debug)]
pub struct Acted {
    /// The name of the controller.
    pub controller: &'static str,
    pub action: &'static str,
    /// `done`, `refused` or `unknown`.
    pub outcome: &'static str,
    /// What it was for did not come about.
    pub failed: bool,
    /// How long it took.
    pub took: Duration,
}

/// Everything that is counted in a process.
pub struct Metrics {
    registry: Mutex<Registry>,
    calls: Family<CallLabels, Histogram, MakeHistogram>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    worked: Family<QueueLabels, Histogram, MakeHistogram>,
    leads: Family<LeaseLabels, Gauge>,
    decisions: Family<DecisionLabels, Counter>,
    actions: Family<ActionLabels, Counter>,
    /// A counter by nature; upstream's has no `_total` at its end, which the encoder would put there.
    forced: Family<ForcedLabels, Gauge>,
    volumes: VolumeMetrics,
    operations: OperationMetrics,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let calls: MakeHistogram = || Histogram::new(CALL_BUCKETS);
        let queue: MakeHistogram = || Histogram::new(QUEUE_BUCKETS);
        let metrics = Metrics {
            registry: Mutex::new(Registry::default()),
            calls: Family::new_with_constructor(calls),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            worked: Family::new_with_constructor(queue),
            leads: Family::default(),
            decisions: Family::default(),
            actions: Family::default(),
            forced: Family::default(),
            volumes: VolumeMetrics::default(),
            operations: OperationMetrics::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register("csi_sidecar_operations_seconds", "calls to the driver, with their code", self.calls.clone());
        registry.register("workqueue_depth", "keys that are due", self.depth.clone());
        registry.register("workqueue_adds", "keys that became due", self.adds.clone());
        registry.register("workqueue_retries", "actions that failed and are tried again", self.retries.clone());
        registry.register("workqueue_work_duration_seconds", "one action, begin to end", self.worked.clone());
        registry.register("leader_election_master_status", "1 while this process leads", self.leads.clone());
        registry.register("longshore_decisions", "decisions of the rules, with their reason", self.decisions.clone());
        registry.register("longshore_actions", "actions performed, and how they ended", self.actions.clone());
        registry.register(
            "attachdetach_controller_forced_detaches",
            "volumes taken from nodes without their word",
            self.forced.clone(),
        );
        self.volumes.register(&mut registry);
        self.operations.register(&mut registry);
        let started = Gauge::<f64, AtomicU64>::default();
        started.set(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));
        registry.register("process_start_time_seconds", "when this process began, since 1970", started);
    }

    /// A call to a driver has ended; `migrated` says that it has the volume in the place of an in-tree plugin.
    pub fn called(&self, method: csi::Method, labels: &CallLabels, migrated: bool, took: Duration) {
        self.calls.get_or_create(labels).observe(took.as_secs_f64());
        self.operations.called(method, labels, migrated, took);
    }

    /// An in-tree plugin in this process has done what it was asked, or failed.
    pub fn by_plugin(&self, method: csi::Method, plugin: &str, done: bool, took: Duration) {
        self.operations.by_plugin(method, plugin, done, took);
    }

    /// A claim has got the volume that was asked for, or a volume has gone; or an attempt at it failed (PV-46).
    pub fn waited(&self, operation: &'static str, plugin: &str, took: Option<Duration>) {
        self.operations.waited(operation, plugin, took);
    }

    /// A claim that named no class was to be given the default one (PV-17).
    pub fn class_given(&self, failed: bool) {
        self.operations.class_given(failed);
    }

    /// Whether this process leads under a lease.
    pub fn leads(&self, lease: &str, leads: bool) {
        self.leads.get_or_create(&LeaseLabels { name: lease.to_string() }).set(i64::from(leads));
    }

    /// So many keys are due, and so many became due.
    pub fn queued(&self, controller: &'static str, depth: usize, added: usize) {
        let labels = QueueLabels { name: controller };
        self.depth.get_or_create(&labels).set(i64::try_from(depth).unwrap_or(i64::MAX));
        self.adds.get_or_create(&labels).inc_by(u64::try_from(added).unwrap_or(u64::MAX));
    }

    /// The rules decided to rest, to wait or to do something, for a reason.
    pub fn decided(&self, controller: &'static str, decision: &'static str, reason: &'static str) {
        self.decisions.get_or_create(&DecisionLabels { controller, decision, reason }).inc();
    }

    /// An action has ended.
    pub fn acted(&self, ended: &Acted) {
        let Acted { controller, action, outcome, took, .. } = *ended;
        self.worked.get_or_create(&QueueLabels { name: controller }).observe(took.as_secs_f64());
        self.actions.get_or_create(&ActionLabels { controller, action, outcome }).inc();
        if outcome != "done" {
            self.retries.get_or_create(&QueueLabels { name: controller }).inc();
        }
    }

    /// A volume was taken from a node without the node's word: because it is out of service, or its time was up
    /// (AD-23).
    pub fn force_detached(&self, out_of_service: bool) {
        let reason = if out_of_service { "out-of-service" } else { "timeout" };
        self.forced.get_or_create(&ForcedLabels { reason }).inc();
    }

    /// An attempt to make a claim's volume has ended: after so long, or in failure.
    pub fn provisioned(&self, class: &str, source: &str, took: Option<Duration>) {
        self.volumes.provisioned(class, source, took);
    }

    /// An attempt to delete a volume has ended: after so long, or in failure.
    pub fn deleted(&self, class: &str, took: Option<Duration>) {
        self.volumes.deleted(class, took);
    }

    /// Capacity objects: how many there should be, how many of those there are, and how many there should not be.
    pub fn capacities(&self, goal: usize, current: usize, obsolete: usize) {
        self.volumes.capacities(&self.registry, [goal, current, obsolete]);
    }

    /// Everything, as it is scraped.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if prometheus_client::encoding::text::encode(&mut text, &registry).is_err() {
            tracing::warn!("the metrics could not be written");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C7.
    #[test]
    fn calls_are_told_under_the_names_dashboards_know() {
        let metrics = Metrics::default();
        let labels = CallLabels {
            driver_name: "d".into(),
            method_name: "/csi.v1.Controller/CreateVolume",
            grpc_status_code: "OK".into(),
        };
        metrics.called(csi::Method::CreateVolume, &labels, false, Duration::from_millis(200));
        metrics.leads("the-lease", true);
        metrics.force_detached(true);
        metrics.force_detached(false);
        metrics.force_detached(false);
        metrics.queued("attacher", 3, 2);
        metrics.acted(&Acted {
            controller: "attacher",
            action: "Publish",
            outcome: "unknown",
            failed: true,
            took: Duration::from_millis(1),
        });
        let text = metrics.text();
        let call = r#"driver_name="d",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK""#;
        for line in [
            &format!("csi_sidecar_operations_seconds_bucket{{le=\"0.25\",{call}}} 1"),
            &format!("csi_sidecar_operations_seconds_bucket{{le=\"0.1\",{call}}} 0"),
            &format!("csi_sidecar_operations_seconds_count{{{call}}} 1"),
            "leader_election_master_status{name=\"the-lease\"} 1",
            "attachdetach_controller_forced_detaches{reason=\"out-of-service\"} 1",
            "attachdetach_controller_forced_detaches{reason=\"timeout\"} 2",
            "workqueue_depth{name=\"attacher\"} 3",
            "workqueue_adds_total{name=\"attacher\"} 2",
            "workqueue_retries_total{name=\"attacher\"} 1",
            "longshore_actions_total{controller=\"attacher\",action=\"Publish\",outcome=\"unknown\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    // Sidecars 2.11, 2.13.
    #[test]
    fn volumes_and_capacities_are_told_as_the_go_provisioner_does() {
        let metrics = Metrics::default();
        metrics.provisioned("fast", "VolumeSnapshot", Some(Duration::from_millis(20)));
        metrics.provisioned("fast", "", None);
        metrics.deleted("fast", Some(Duration::from_secs(20)));
        metrics.deleted("slow", None);
        metrics.capacities(3, 2, 1);
        let text = metrics.text();
        let claim = "controller_persistentvolumeclaim_provision";
        let volume = "controller_persistentvolume_delete";
        for line in [
            &format!("{claim}_total{{class=\"fast\",source=\"VolumeSnapshot\"}} 1"),
            &format!("{claim}_failed_total{{class=\"fast\",source=\"\"}} 1"),
            &format!("{claim}_duration_seconds_bucket{{le=\"0.025\",class=\"fast\",source=\"VolumeSnapshot\"}} 1"),
            &format!("{claim}_duration_seconds_bucket{{le=\"0.01\",class=\"fast\",source=\"VolumeSnapshot\"}} 0"),
            &format!("{volume}_total{{class=\"fast\"}} 1"),
            &format!("{volume}_failed_total{{class=\"slow\"}} 1"),
            &format!("{volume}_duration_seconds_bucket{{le=\"10.0\",class=\"fast\"}} 0"),
            "csistoragecapacities_desired_goal 3",
            "csistoragecapacities_desired_current 2",
            "csistoragecapacities_obsolete 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
