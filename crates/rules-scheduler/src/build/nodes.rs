//! The nodes, each as this pod finds it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Node, ObjectKey, Pod, Taint};
use control::Cache;
use rules_translate::{NodeSays, Plugin};

use super::{limits, resources};
use crate::{NodeObstacle, NodeView};

/// The taint of a cordoned node.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

pub(super) fn nodes(pod: &Pod, cache: &Cache) -> Vec<NodeView> {
    let (needs, volumes) = (resources::requests(pod), limits::volumes(pod, cache));
    let view = |node: Arc<Node>| {
        let pods: Vec<Arc<Pod>> = cache.pods_by_node(&node.metadata.name).filter(|pod| !pod.is_terminal()).collect();
        NodeView {
            closed: closed(&node, pod),
            lacks: resources::lacks(&needs, &node, &pods),
            drivers: limits::rooms(&volumes, &node.metadata.name, &pods, cache),
            left_to_drivers: left_to_drivers(&node.metadata.name, cache),
            pods: pods.len(),
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
        }
    };
    cache.nodes().map(view).collect()
}

fn left_to_drivers(node: &str, cache: &Cache) -> Vec<Plugin> {
    let csi_node = cache.csi_node(&ObjectKey::cluster(node));
    let says = NodeSays::of(csi_node.as_deref());
    Plugin::ALL.into_iter().filter(|plugin| says.leaves_to_csi(*plugin)).collect()
}

fn closed(node: &Node, pod: &Pod) -> Option<NodeObstacle> {
    let tolerated = |taint: &Taint| pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint));
    let cordon = Taint { key: UNSCHEDULABLE_TAINT.into(), effect: "NoSchedule".into(), ..Taint::default() };
    if node.spec.unschedulable && !tolerated(&cordon) {
        return Some(NodeObstacle::Cordoned);
    }
    if let Some(taint) = node.spec.taints.iter().find(|taint| taint.closes() && !tolerated(taint)) {
        return Some(NodeObstacle::Tainted { key: taint.key.clone(), value: taint.value.clone() });
    }
    let (name, labels) = (&node.metadata.name, &node.metadata.labels);
    let selected = pod.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        && pod.spec.affinity.as_ref().is_none_or(|affinity| affinity.admits(name, labels));
    if !selected {
        return Some(NodeObstacle::NotSelected);
    }
    // Last, because kube-scheduler does not ask: of a node that is not ready it tells the taint that says so.
    if node.metadata.is_deleting() {
        return Some(NodeObstacle::Deleting);
    }
    (!node.is_ready()).then_some(NodeObstacle::NotReady)
}
