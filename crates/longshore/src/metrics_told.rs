//! Every metric that is served, and that docs/metrics.md tells of each.

use std::collections::BTreeSet;
use std::time::Duration;

use api::Kind;
use io_run::{Acted, CallLabels, Metrics};

use crate::{collected, stats};

/// Everything a process can tell, once everything that is counted has happened.
pub fn served() -> BTreeSet<String> {
    let metrics = Metrics::default();
    for method in [csi::Method::CreateVolume, csi::Method::NodePublishVolume] {
        let labels = CallLabels { driver_name: "d".into(), method_name: method.path(), grpc_status_code: "OK".into() };
        metrics.called(method, &labels, false, Duration::ZERO);
    }
    metrics.leads("l", true);
    metrics.force_detached(true);
    metrics.class_given(true);
    metrics.capacities(1, 1, 1);
    for took in [Some(Duration::ZERO), None] {
        metrics.provisioned("c", "", took);
        metrics.deleted("c", took);
        metrics.waited("provision", "d", took);
    }
    metrics.queued("binding", 1, 1);
    metrics.decided("binding", "do", "Binding");
    let (controller, action, outcome) = ("binding", "Reserve", "unknown");
    metrics.acted(&Acted { controller, action, outcome, failed: true, took: Duration::ZERO });
    let mut cache = control::Cache::default();
    let kinds = [Kind::PersistentVolume, Kind::PersistentVolumeClaim, Kind::VolumeAttachment, Kind::Pod];
    kinds.into_iter().for_each(|kind| drop(cache.replace(kind, 1, vec![])));
    let told = metrics.text() + &collected::text(&cache);
    let names = told.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some(if kind == "counter" { format!("{name}_total") } else { name.to_string() })
    });
    names.chain(stats::names().into_iter().map(String::from)).collect()
}

#[test]
fn the_document_tells_of_every_metric_and_of_no_other() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let document = std::fs::read_to_string(root).unwrap();
    let row = |line: &str| {
        let (name, _) = line.strip_prefix("| `")?.split_once("` |")?;
        (!name.contains(' ')).then(|| name.to_string())
    };
    let told: BTreeSet<String> = document.lines().filter_map(row).collect();
    let served = served();
    let missing: Vec<&String> = served.difference(&told).collect();
    assert!(missing.is_empty(), "docs/metrics.md does not tell of {missing:?}");
    let invented: Vec<&String> = told.difference(&served).collect();
    assert!(invented.is_empty(), "docs/metrics.md tells of {invented:?}, which nobody serves");
}
