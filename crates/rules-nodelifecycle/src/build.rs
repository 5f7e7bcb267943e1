use api::{Node, ObjectKey, Pod, Seen, names};
use control::Cache;

use crate::{Key, NodeLife, PodNode, PodStay, View};

pub(crate) fn view(key: &Key, cache: &Cache) -> View {
    let found = match key {
        Key::Node(name) => {
            cache.node(&ObjectKey::cluster(name.clone())).map(|node| View::Node(node_view(&node, cache)))
        }
        Key::Pod(pod) => cache.pod(pod).map(|pod| View::Pod(pod_view(&pod, cache))),
    };
    found.unwrap_or_else(|| View::Gone(key.clone()))
}

fn node_view(node: &Node, cache: &Cache) -> NodeLife {
    let name = node.metadata.name.as_str();
    NodeLife {
        node: Seen::of::<Node>(&node.metadata),
        lease: cache.lease(&ObjectKey::new(names::NODE_LEASES, name)),
        conditions: node.status.conditions.clone(),
        taints: node.spec.taints.clone(),
        company: cache.nodes().any(|other| other.metadata.name != name && other.is_ready()),
    }
}

fn pod_view(pod: &Pod, cache: &Cache) -> PodStay {
    PodStay {
        pod: Seen::of::<Pod>(&pod.metadata),
        node: pod_node(pod, cache),
        over: pod.is_terminal(),
        deleting: pod.metadata.is_deleting(),
        hasty: pod.spec.termination_grace_period_seconds == Some(0),
        tolerations: pod.spec.tolerations.clone(),
    }
}

fn pod_node(pod: &Pod, cache: &Cache) -> PodNode {
    let name = pod.spec.node_name.as_str();
    if name.is_empty() {
        return PodNode::None;
    }
    let Some(node) = cache.node(&ObjectKey::cluster(name)) else { return PodNode::Missing(name.into()) };
    let says = |status: &str| {
        node.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == status)
    };
    PodNode::There {
        name: name.into(),
        ready: node.is_ready(),
        unheard: says("Unknown"),
        out_of_service: node.spec.taints.iter().any(|taint| taint.key == names::OUT_OF_SERVICE_TAINT),
        taints: node.spec.taints.iter().filter(|taint| taint.evicts()).cloned().collect(),
    }
}
