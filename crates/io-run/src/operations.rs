//! What kubelet and kube-controller-manager count of calls to drivers and of what they are for, under their names.

use std::time::Duration;

use csi::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::{CALL_BUCKETS, CallLabels, MakeHistogram};

/// A call as kubelet counts it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeCallLabels {
    driver_name: String,
    method_name: &'static str,
    grpc_status_code: String,
    migrated: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    migrated: &'static str,
    operation_name: &'static str,
    status: &'static str,
    volume_plugin: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    operation_name: &'static str,
    plugin_name: String,
}

/// All of it.
pub(crate) struct OperationMetrics {
    calls: Family<NodeCallLabels, Histogram, MakeHistogram>,
    operations: Family<OperationLabels, Histogram, MakeHistogram>,
    waits: Family<WaitLabels, Histogram, MakeHistogram>,
    wait_errors: Family<WaitLabels, Counter>,
    classes_given: Counter,
    classes_failed: Counter,
}

impl Default for OperationMetrics {
    fn default() -> OperationMetrics {
        let seconds: MakeHistogram = || Histogram::new(CALL_BUCKETS);
        OperationMetrics {
            calls: Family::new_with_constructor(seconds),
            operations: Family::new_with_constructor(seconds),
            waits: Family::new_with_constructor(seconds),
            wait_errors: Family::default(),
            classes_given: Counter::default(),
            classes_failed: Counter::default(),
        }
    }
}

/// What a call is for, as upstream names it; `None` for questions.
fn operation(method: Method) -> Option<&'static str> {
    match method {
        Method::CreateVolume => Some("volume_provision"),
        Method::DeleteVolume => Some("volume_delete"),
        Method::ControllerPublishVolume => Some("volume_attach"),
        Method::ControllerUnpublishVolume => Some("volume_detach"),
        Method::ControllerExpandVolume => Some("expand_volume"),
        Method::NodeStageVolume | Method::NodePublishVolume => Some("volume_mount"),
        Method::NodeUnpublishVolume => Some("volume_unmount"),
        Method::NodeUnstageVolume => Some("unmount_device"),
        Method::NodeExpandVolume => Some("volume_fs_resize"),
        _questions => None,
    }
}

impl OperationMetrics {
    /// Under upstream's names.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("csi_operations_seconds", "calls to the node's side of a driver", self.calls.clone());
        registry.register(
            "storage_operation_duration_seconds",
            "calls to a driver by what they are for",
            self.operations.clone(),
        );
        registry.register(
            "volume_operation_total_seconds",
            "from asking for a volume, or for its end, until there is one, or it is gone",
            self.waits.clone(),
        );
        // A counter by nature, under the name that upstream gives it: the encoder adds `_total`.
        registry.register("volume_operation_errors", "attempts at these that failed", self.wait_errors.clone());
        registry.register(
            "retroactive_storageclass",
            "claims that were given a class late",
            self.classes_given.clone(),
        );
        registry.register("retroactive_storageclass_errors", "attempts at it that failed", self.classes_failed.clone());
    }

    /// A call has ended.
    pub fn called(&self, method: Method, labels: &CallLabels, migrated: bool, took: Duration) {
        let migrated = if migrated { "true" } else { "false" };
        let seconds = took.as_secs_f64();
        if labels.method_name.starts_with("/csi.v1.Node/") {
            let CallLabels { driver_name, method_name, grpc_status_code } = labels.clone();
            let labels = NodeCallLabels { driver_name, method_name, grpc_status_code, migrated };
            self.calls.get_or_create(&labels).observe(seconds);
        }
        let volume_plugin = format!("kubernetes.io/csi:{}", labels.driver_name);
        self.ended(method, volume_plugin, migrated, labels.grpc_status_code == "OK", seconds);
    }

    /// An in-tree plugin has ended what it was asked for: no driver was called.
    pub fn by_plugin(&self, method: Method, plugin: &str, done: bool, took: Duration) {
        self.ended(method, plugin.into(), "false", done, took.as_secs_f64());
    }

    fn ended(&self, method: Method, volume_plugin: String, migrated: &'static str, done: bool, seconds: f64) {
        if let Some(operation_name) = operation(method) {
            let status = if done { "success" } else { "fail-unknown" };
            let labels = OperationLabels { migrated, operation_name, status, volume_plugin };
            self.operations.get_or_create(&labels).observe(seconds);
        }
    }

    /// A wait is over, after so long, or an attempt to begin one failed.
    pub fn waited(&self, operation_name: &'static str, plugin: &str, took: Option<Duration>) {
        let labels = WaitLabels { operation_name, plugin_name: plugin.into() };
        match took {
            Some(took) => self.waits.get_or_create(&labels).observe(took.as_secs_f64()),
            None => {
                self.wait_errors.get_or_create(&labels).inc();
            }
        }
    }

    /// A claim got the default class, or was to get it.
    pub fn class_given(&self, failed: bool) {
        self.classes_given.inc();
        if failed {
            self.classes_failed.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    fn call(metrics: &Metrics, method: Method, code: &str, millis: u64) {
        let labels = CallLabels { driver_name: "d".into(), method_name: method.path(), grpc_status_code: code.into() };
        metrics.called(method, &labels, false, Duration::from_millis(millis));
    }

    #[test]
    fn calls_for_volumes_of_plugins_are_told_apart() {
        let metrics = Metrics::default();
        let path = Method::NodeStageVolume.path();
        let labels = CallLabels { driver_name: "d".into(), method_name: path, grpc_status_code: "OK".into() };
        metrics.called(Method::NodeStageVolume, &labels, true, Duration::ZERO);
        let text = metrics.text();
        let operation = "storage_operation_duration_seconds_count{migrated=\"true\",operation_name=\"volume_mount\"";
        assert!(text.contains(operation) && !text.contains("migrated=\"false\""), "{text}");
    }

    #[test]
    fn calls_are_counted_by_what_they_are_for() {
        let metrics = Metrics::default();
        call(&metrics, Method::NodePublishVolume, "OK", 200);
        call(&metrics, Method::ControllerPublishVolume, "Internal", 200);
        call(&metrics, Method::NodeGetVolumeStats, "OK", 1);
        call(&metrics, Method::GetPluginInfo, "OK", 1);
        let text = metrics.text();
        let plugin = "volume_plugin=\"kubernetes.io/csi:d\"";
        let node = "driver_name=\"d\",method_name=\"/csi.v1.Node/NodePublishVolume\",grpc_status_code=\"OK\",\
                    migrated=\"false\"";
        for line in [
            &format!("csi_operations_seconds_bucket{{le=\"0.25\",{node}}} 1"),
            &format!("csi_operations_seconds_bucket{{le=\"0.1\",{node}}} 0"),
            &format!(
                "storage_operation_duration_seconds_count{{migrated=\"false\",operation_name=\"volume_mount\",\
                 status=\"success\",{plugin}}} 1"
            ),
            &format!(
                "storage_operation_duration_seconds_count{{migrated=\"false\",operation_name=\"volume_attach\",\
                 status=\"fail-unknown\",{plugin}}} 1"
            ),
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("csi_operations_seconds_count{driver_name=\"d\",method_name=\"/csi.v1.Controller"));
        assert_eq!(text.matches("storage_operation_duration_seconds_count").count(), 2, "questions are no operations");
    }

    // PV-17, PV-46.
    #[test]
    fn waits_and_late_classes_are_counted() {
        let metrics = Metrics::default();
        metrics.waited("provision", "d", Some(Duration::from_secs(2)));
        metrics.waited("provision", "d", None);
        metrics.class_given(false);
        metrics.class_given(true);
        let text = metrics.text();
        for line in [
            "volume_operation_total_seconds_bucket{le=\"2.5\",operation_name=\"provision\",plugin_name=\"d\"} 1",
            "volume_operation_total_seconds_bucket{le=\"1.0\",operation_name=\"provision\",plugin_name=\"d\"} 0",
            "volume_operation_errors_total{operation_name=\"provision\",plugin_name=\"d\"} 1",
            "retroactive_storageclass_total 2",
            "retroactive_storageclass_errors_total 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
