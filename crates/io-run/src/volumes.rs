//! What the Go provisioner counts of claims, volumes and capacity objects, under its names (sidecars 2.11, 2.13).

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The buckets of a Prometheus client that was told of none, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClaimLabels {
    class: String,
    /// The kind a volume is made from, or nothing.
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: String,
}

type MakeHistogram = fn() -> Histogram;

/// Successes, failures and durations of one operation.
struct Attempts<L> {
    done: Family<L, Counter>,
    failed: Family<L, Counter>,
    took: Family<L, Histogram, MakeHistogram>,
}

impl<L> Default for Attempts<L>
where
    L: Clone + std::hash::Hash + Eq,
{
    fn default() -> Attempts<L> {
        let seconds: MakeHistogram = || Histogram::new(BUCKETS);
        Attempts { done: Family::default(), failed: Family::default(), took: Family::new_with_constructor(seconds) }
    }
}

impl<L> Attempts<L>
where
    L: Clone + std::hash::Hash + Eq + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static,
{
    fn register(&self, registry: &mut Registry, name: &str, what: &str) {
        registry.register(name, format!("{what} that succeeded"), self.done.clone());
        registry.register(format!("{name}_failed"), format!("{what} that failed"), self.failed.clone());
        registry.register(format!("{name}_duration_seconds"), format!("{what}, begin to success"), self.took.clone());
    }

    fn ended(&self, labels: &L, took: Option<Duration>) {
        match took {
            Some(took) => {
                self.done.get_or_create(labels).inc();
                self.took.get_or_create(labels).observe(took.as_secs_f64());
            }
            None => {
                self.failed.get_or_create(labels).inc();
            }
        }
    }
}

/// All of it.
#[derive(Default)]
pub(crate) struct VolumeMetrics {
    provisioning: Attempts<ClaimLabels>,
    deletion: Attempts<ClassLabels>,
    /// Told only once they are known.
    capacities: OnceLock<[Gauge; 3]>,
}

impl VolumeMetrics {
    pub fn register(&self, registry: &mut Registry) {
        self.provisioning.register(registry, "controller_persistentvolumeclaim_provision", "attempts to make a volume");
        self.deletion.register(registry, "controller_persistentvolume_delete", "attempts to delete a volume");
    }

    pub fn provisioned(&self, class: &str, source: &str, took: Option<Duration>) {
        self.provisioning.ended(&ClaimLabels { class: class.into(), source: source.into() }, took);
    }

    pub fn deleted(&self, class: &str, took: Option<Duration>) {
        self.deletion.ended(&ClassLabels { class: class.into() }, took);
    }

    /// How many there should be, how many of those there are, and how many there should not be.
    pub fn capacities(&self, registry: &Mutex<Registry>, numbers: [usize; 3]) {
        let gauges = self.capacities.get_or_init(|| {
            let mut registry = registry.lock().unwrap_or_else(PoisonError::into_inner);
            let named = [
                ("desired_goal", "capacity objects there should be"),
                ("desired_current", "capacity objects there should be and are"),
                ("obsolete", "capacity objects there are and should not be"),
            ];
            named.map(|(name, what)| {
                let gauge = Gauge::default();
                registry.register(format!("csistoragecapacities_{name}"), what, gauge.clone());
                gauge
            })
        });
        for (gauge, number) in gauges.iter().zip(numbers) {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
}
