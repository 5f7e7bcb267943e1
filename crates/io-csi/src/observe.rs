//! What logs and metrics may learn of a call: the fields of [`Observation`] and nothing else.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use csi::{Code, Method};

/// One call that ended. It has no field for secrets, contexts or parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Observation<'a> {
    pub method: Method,
    /// The volume's id, or the name it is to get; empty if the call is about none.
    pub volume: &'a str,
    /// The node's id; empty if the call names none.
    pub node: &'a str,
    pub code: Code,
    pub took: Duration,
}

/// An observer of calls, such as a metric.
pub trait Observe: Send + Sync + 'static {
    /// The client calls this at the end of every call.
    fn observed(&self, call: &Observation<'_>);
}

/// A histogram of latencies by method and code, with the buckets of `csi_sidecar_operations_seconds` (C7).
#[derive(Default)]
pub struct Latencies {
    by_call: Mutex<BTreeMap<(Method, i32), Latency>>,
}

/// One row of [`Latencies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// For each of [`Latencies::BUCKETS`], how many calls took no longer.
    pub at_most: [u64; Latencies::BUCKETS.len()],
    /// The number of calls.
    pub count: u64,
    /// The sum of their latencies.
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
