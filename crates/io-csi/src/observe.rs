//! What may be told of a call to logs and metrics: this and nothing else.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use csi::{Call, Code, Method};

/// One call that ended. There is no room in it for secrets, contexts or parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation<'a> {
    /// The method.
    pub method: Method,
    /// The volume's id, or the name it is to get; empty if the call is about none.
    pub volume: &'a str,
    /// The node's id; empty if the call names none.
    pub node: &'a str,
    /// How it ended.
    pub code: Code,
    /// How long it took.
    pub took: Duration,
}

/// Is told of every call when it has ended.
pub trait Observe: Send + Sync + 'static {
    /// A call has ended.
    fn observed(&self, call: &Observation<'_>);
}

/// The node a call names.
pub fn node(call: &Call) -> &str {
    match call {
        Call::ControllerPublishVolume(r) => &r.node_id,
        Call::ControllerUnpublishVolume(r) => &r.node_id,
        _ => "",
    }
}

/// How often calls took how long, by method and code, in the buckets of `csi_sidecar_operations_seconds` (C7).
#[derive(Default)]
pub struct Latencies {
    by_call: Mutex<BTreeMap<(Method, i32), Latency>>,
}

/// One row of [`Latencies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// For each of [`Latencies::BUCKETS`], how many calls took no longer.
    pub at_most: [u64; Latencies::BUCKETS.len()],
    /// How many there were.
    pub count: u64,
    /// What they took together.
    pub sum: Duration,
}

impl Latencies {
    /// The upper ends of the buckets, in milliseconds.
    pub const BUCKETS: [u64; 13] =
        [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 25_000, 50_000, 120_000, 300_000, 600_000];

    /// What was counted so far.
    pub fn rows(&self) -> Vec<(Method, Code, Latency)> {
        let rows = self.by_call.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|((method, code), row)| (*method, Code::from_number(*code), row.clone())).collect()
    }
}

impl Observe for Latencies {
    fn observed(&self, call: &Observation<'_>) {
        let mut rows = self.by_call.lock().unwrap_or_else(PoisonError::into_inner);
        let row = rows.entry((call.method, call.code as i32)).or_default();
        row.count += 1;
        row.sum += call.took;
        for (count, most) in row.at_most.iter_mut().zip(Latencies::BUCKETS) {
            *count += u64::from(call.took <= Duration::from_millis(most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_what_took_no_longer() {
        let latencies = Latencies::default();
        for millis in [50, 100, 101, 700_000] {
            let took = Duration::from_millis(millis);
            let (method, code) = (Method::Probe, Code::Ok);
            latencies.observed(&Observation { method, volume: "", node: "", code, took });
        }
        let rows = latencies.rows();
        let [(Method::Probe, Code::Ok, row)] = rows.as_slice() else { panic!("one row") };
        assert_eq!((row.count, row.sum), (4, Duration::from_millis(700_251)));
        assert_eq!(row.at_most, [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    }
}
