//! How full volumes are, as kubelet tells it: its summary, and its metrics (KL-104). The drivers are asked when
//! somebody asks; one that does not answer in time is left out and holds up nobody.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api::Time;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use control::Endpoint;
use csi::{Call, v1};
use io_run::{Controller, Drivers, Manager};
use rules_node::{Node, PublishedVolume};
use rules_translate::Plugin;
use serde_json::{Value, json};

/// How long a driver may take to say how full a volume is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks drivers how full the volumes of this node are.
pub struct VolumeStats {
    manager: Arc<Manager>,
    node: Arc<Controller<Node>>,
    name: String,
}

/// What a driver said of one volume.
struct Measured {
    of: PublishedVolume,
    usage: Vec<v1::VolumeUsage>,
}

impl VolumeStats {
    /// Asks about the volumes of this node.
    pub fn new(manager: Arc<Manager>, node: Arc<Controller<Node>>, name: &str) -> VolumeStats {
        VolumeStats { manager, node, name: name.into() }
    }

    async fn measure(&self) -> Vec<Measured> {
        let cache = self.manager.cache();
        let local = self.node.look_local(Clone::clone);
        let volumes = cache.look(|cache| rules_node::published_volumes(cache, &local));
        let drivers = self.manager.drivers();
        let answers = volumes.into_iter().map(|of| ask(drivers, of));
        futures::future::join_all(answers).await.into_iter().flatten().collect()
    }

    /// As `/stats/summary` of a kubelet has it.
    async fn summary(&self) -> Value {
        let now = Time::from_unix_millis(self.manager.clock().now().0).0;
        let mut pods: Vec<Value> = Vec::new();
        for measured in self.measure().await {
            let of = &measured.of;
            let mut volume = json!({ "time": now, "name": of.name });
            for (key, value) in measured.figures() {
                volume[key.summary] = value.into();
            }
            if let Some(claim) = &of.claim {
                volume["pvcRef"] = json!({ "name": claim.name, "namespace": claim.namespace });
            }
            let reference = json!({ "name": of.pod.name, "namespace": of.pod.namespace, "uid": of.uid });
            match pods.iter_mut().find(|pod| pod["podRef"] == reference) {
                Some(pod) => pod["volume"].as_array_mut().into_iter().for_each(|all| all.push(volume.clone())),
                None => pods.push(json!({ "podRef": reference, "volume": [volume] })),
            }
        }
        json!({ "node": { "nodeName": self.name }, "pods": pods })
    }

    /// `kubelet_volume_stats_*`, by claim.
    pub async fn metrics(&self) -> String {
        let measured = self.measure().await;
        let mut text = String::new();
        for figure in FIGURES {
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} gauge", figure.metric, figure.help, figure.metric);
            for one in &measured {
                let Some(claim) = &one.of.claim else { continue };
                let Some((_, value)) = one.figures().find(|(key, _)| key.metric == figure.metric) else { continue };
                let (namespace, name) = (&claim.namespace, &claim.name);
                let _ = writeln!(
                    text,
                    "{}{{namespace=\"{namespace}\",persistentvolumeclaim=\"{name}\"}} {value}",
                    figure.metric
                );
            }
        }
        text + &self.health() + &self.managed()
    }

    /// How many volumes there should be and are, as kubelet's volume manager counts them.
    fn managed(&self) -> String {
        let local = self.node.look_local(Clone::clone);
        let all = self.manager.cache().look(|cache| rules_node::managed_volumes(cache, &local));
        let mut text = format!("# HELP {MANAGED} volumes of pods here, wanted and published\n# TYPE {MANAGED} gauge\n");
        for (driver, count) in all {
            let states = [("desired_state_of_world", count.wanted), ("actual_state_of_world", count.published)];
            for (state, count) in states {
                let of_csi = if Plugin::named(&driver).is_some() { "" } else { "kubernetes.io/csi:" };
                let labels = format!("plugin_name=\"{of_csi}{driver}\",state=\"{state}\"");
                let _ = writeln!(text, "{MANAGED}{{{labels}}} {count}");
            }
        }
        text
    }

    /// KL-105: whether drivers find anything wrong with the volumes of claims, as they last said.
    fn health(&self) -> String {
        let local = self.node.look_local(Clone::clone);
        let unwell = self.manager.cache().look(|cache| rules_node::unwell_claims(cache, &local));
        let mut text = format!("# HELP {HEALTH} 1 if something is wrong with the volume\n# TYPE {HEALTH} gauge\n");
        for (claim, unwell) in unwell {
            let labels = format!("namespace=\"{}\",persistentvolumeclaim=\"{}\"", claim.namespace, claim.name);
            let _ = writeln!(text, "{HEALTH}{{{labels}}} {}", u8::from(unwell));
        }
        text
    }
}

async fn ask(drivers: &Drivers, of: PublishedVolume) -> Option<Measured> {
    let line = drivers.to(&Endpoint::Driver(of.driver.clone()))?;
    let request = v1::NodeGetVolumeStatsRequest {
        volume_id: of.handle.clone(),
        volume_path: of.target.clone(),
        staging_target_path: of.staging.clone().unwrap_or_default(),
    };
    match line.driver.call(Call::NodeGetVolumeStats(request), PATIENCE).await {
        Ok(csi::Response::NodeGetVolumeStats(answer)) => Some(Measured { of, usage: answer.usage }),
        Ok(_) => None,
        Err(status) => {
            tracing::debug!("driver {} does not say how full {} is: {}", of.driver, of.handle, status.message);
            None
        }
    }
}

const HEALTH: &str = "kubelet_volume_stats_health_status_abnormal";
const MANAGED: &str = "volume_manager_total_volumes";

/// The metrics that are told of this node's volumes.
#[cfg(test)]
pub fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|figure| figure.metric).chain([HEALTH, MANAGED]).collect()
}

/// One figure of a volume, under the names it has in the summary and in metrics.
struct Figure {
    summary: &'static str,
    metric: &'static str,
    help: &'static str,
    unit: v1::volume_usage::Unit,
    of: fn(&v1::VolumeUsage) -> i64,
}

use v1::volume_usage::Unit::{Bytes, Inodes};

const FIGURES: [Figure; 6] = [
    Figure {
        summary: "capacityBytes",
        metric: "kubelet_volume_stats_capacity_bytes",
        help: "Capacity in bytes of the volume",
        unit: Bytes,
        of: |usage| usage.total,
    },
    Figure {
        summary: "availableBytes",
        metric: "kubelet_volume_stats_available_bytes",
        help: "Bytes of the volume that can still be used",
        unit: Bytes,
        of: |usage| usage.available,
    },
    Figure {
        summary: "usedBytes",
        metric: "kubelet_volume_stats_used_bytes",
        help: "Bytes of the volume that are in use",
        unit: Bytes,
        of: |usage| usage.used,
    },
    Figure {
        summary: "inodes",
        metric: "kubelet_volume_stats_inodes",
        help: "Inodes of the volume",
        unit: Inodes,
        of: |usage| usage.total,
    },
    Figure {
        summary: "inodesFree",
        metric: "kubelet_volume_stats_inodes_free",
        help: "Inodes of the volume that can still be used",
        unit: Inodes,
        of: |usage| usage.available,
    },
    Figure {
        summary: "inodesUsed",
        metric: "kubelet_volume_stats_inodes_used",
        help: "Inodes of the volume that are in use",
        unit: Inodes,
        of: |usage| usage.used,
    },
];

impl Measured {
    fn figures(&self) -> impl Iterator<Item = (&'static Figure, i64)> {
        let usage = |unit| self.usage.iter().find(move |usage| usage.unit == i32::from(unit));
        FIGURES.iter().filter_map(move |figure| Some((figure, (figure.of)(usage(figure.unit)?))))
    }
}

/// What `kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary` and `…/proxy/metrics` answer.
pub fn router(stats: Arc<OnceLock<VolumeStats>>) -> Router {
    let counted = stats.clone();
    Router::new()
        .route(
            "/api/v1/nodes/{node}/proxy/stats/summary",
            get(move |node: Path<String>| async move {
                match stats.get().filter(|stats| stats.name == *node) {
                    Some(stats) => axum::Json(stats.summary().await).into_response(),
                    None => absent(&node),
                }
            }),
        )
        .route(
            "/api/v1/nodes/{node}/proxy/metrics",
            get(move |node: Path<String>| async move {
                match counted.get().filter(|stats| stats.name == *node) {
                    Some(stats) => stats.metrics().await.into_response(),
                    None => absent(&node),
                }
            }),
        )
}

fn absent(node: &str) -> Response {
    let message = format!("node {node} is not run by this process, so nobody here can ask it");
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": message });
    (StatusCode::NOT_FOUND, axum::Json(status)).into_response()
}
