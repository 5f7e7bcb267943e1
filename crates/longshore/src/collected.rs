//! What Kubernetes' own components count of objects, under their names: computed from what this process has seen when
//! somebody asks, so that nothing is counted twice and nothing is forgotten. A kind that nobody here watches is not
//! told.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::{ClaimPhase, Kind, VolumePhase};
use control::Cache;

/// A gauge: its name, what it says, the kind it is computed from, and its values by labels.
type Gauge = (&'static str, &'static str, Kind, fn(&Cache) -> BTreeMap<String, usize>);

/// Those of the volume binder, the attach/detach controller, the scheduler and kubelet.
const GAUGES: [Gauge; 7] = [
    ("pv_collector_total_pv_count", "volumes by who has them", Kind::PersistentVolume, kinds_of_volumes),
    ("pv_collector_bound_pv_count", "volumes that are bound", Kind::PersistentVolume, |cache| volumes(cache, true)),
    ("pv_collector_unbound_pv_count", "volumes that are not", Kind::PersistentVolume, |cache| volumes(cache, false)),
    ("pv_collector_bound_pvc_count", "claims that are bound", Kind::PersistentVolumeClaim, |cache| claims(cache, true)),
    ("pv_collector_unbound_pvc_count", "claims that are not", Kind::PersistentVolumeClaim, |cache| {
        claims(cache, false)
    }),
    (
        "attachdetach_controller_total_volumes",
        "volumes by where they should and do be attached",
        Kind::VolumeAttachment,
        attachments,
    ),
    ("scheduler_pending_pods", "pods without a node", Kind::Pod, pending),
];

/// The gauges as they are scraped.
pub fn text(cache: &Cache) -> String {
    let mut text = String::new();
    for (name, help, _, values) in GAUGES.iter().filter(|(_, _, kind, _)| cache.is_synced(*kind)) {
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} gauge");
        for (labels, value) in values(cache) {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
    text
}

fn count(labels: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    labels.fold(BTreeMap::new(), |mut counts, labels| {
        *counts.entry(labels).or_default() += 1;
        counts
    })
}

fn volumes(cache: &Cache, bound: bool) -> BTreeMap<String, usize> {
    let these = cache.volumes().filter(|volume| (volume.status.phase == VolumePhase::Bound) == bound);
    count(these.map(|volume| format!("storage_class={:?}", volume.class())))
}

fn claims(cache: &Cache, bound: bool) -> BTreeMap<String, usize> {
    let these = cache.claims().filter(|claim| (claim.status.phase == ClaimPhase::Bound) == bound);
    count(these.map(|claim| {
        let attributes = claim.spec.volume_attributes_class_name.as_deref().unwrap_or("");
        let (namespace, class) = (&claim.metadata.namespace, claim.class().unwrap_or(""));
        format!("namespace={namespace:?},storage_class={class:?},volume_attributes_class={attributes:?}")
    }))
}

/// `N/A` is upstream's word for a plugin that it does not know.
fn kinds_of_volumes(cache: &Cache) -> BTreeMap<String, usize> {
    count(cache.volumes().map(|volume| {
        let driver = volume.spec.csi.as_ref().map(|csi| format!("kubernetes.io/csi:{}", csi.driver));
        let plugin = driver.unwrap_or_else(|| "N/A".into());
        format!("plugin_name={plugin:?},volume_mode={:?}", volume.volume_mode().as_str())
    }))
}

fn attachments(cache: &Cache) -> BTreeMap<String, usize> {
    let all = || cache.attachments();
    let label = |state: &str, attacher: &str| format!("plugin_name=\"kubernetes.io/csi:{attacher}\",state=\"{state}\"");
    let mut counts = count(all().map(|one| label("desired_state_of_world", &one.spec.attacher)));
    counts.extend(count(
        all().filter(|one| one.status.attached).map(|one| label("actual_state_of_world", &one.spec.attacher)),
    ));
    counts
}

fn pending(cache: &Cache) -> BTreeMap<String, usize> {
    let waiting = cache.pods().filter(|pod| pod.spec.node_name.is_empty() && !pod.is_terminal());
    let told = |pod: &api::Pod| pod.status.conditions.iter().any(|c| c.r#type == "PodScheduled" && c.status == "False");
    count(waiting.map(|pod| format!("queue=\"{}\"", if told(&pod) { "unschedulable" } else { "active" })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Object;
    use serde_json::json;

    #[test]
    fn objects_are_counted_under_the_names_dashboards_know() {
        let mut cache = Cache::default();
        let mut put = |kind: Kind, object: api::Value| drop(cache.set(Object::from_json(kind, object).unwrap()));
        let meta = |name: &str| json!({ "name": name, "namespace": "n", "uid": name, "resourceVersion": "1" });
        for (name, phase) in [("a", "Bound"), ("b", "Bound"), ("c", "Available")] {
            let spec = json!({ "storageClassName": "x" });
            put(Kind::PersistentVolume, json!({ "metadata": meta(name), "spec": spec, "status": { "phase": phase } }));
        }
        let spec = json!({ "attacher": "d", "nodeName": "n", "source": {} });
        put(Kind::VolumeAttachment, json!({ "metadata": meta("v"), "spec": spec, "status": { "attached": false } }));
        let told = json!({ "conditions": [{ "type": "PodScheduled", "status": "False" }] });
        put(Kind::Pod, json!({ "metadata": meta("p"), "status": told }));
        put(Kind::Pod, json!({ "metadata": meta("q"), "spec": { "nodeName": "n" } }));
        let text = text(&cache);
        for line in [
            "# TYPE pv_collector_bound_pv_count gauge",
            "pv_collector_bound_pv_count{storage_class=\"x\"} 2",
            "pv_collector_unbound_pv_count{storage_class=\"x\"} 1",
            "pv_collector_total_pv_count{plugin_name=\"N/A\",volume_mode=\"Filesystem\"} 3",
            "attachdetach_controller_total_volumes\
             {plugin_name=\"kubernetes.io/csi:d\",state=\"desired_state_of_world\"} 1",
            "scheduler_pending_pods{queue=\"unschedulable\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("actual_state_of_world"), "{text}");
        assert!(!text.contains("pvc_count"), "claims were never seen:\n{text}");
    }
}
