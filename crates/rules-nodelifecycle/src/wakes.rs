//! Which keys a change concerns.

use alloc::vec::Vec;

use api::{Condition, Lease, Node, Pod, Taint, names};
use control::{Cache, Route, Sides, routes};

use crate::{Key, NodeLifecycle};

type Woken<'a> = control::Woken<'a, NodeLifecycle>;

pub(crate) fn keys(cache: &Cache) -> Vec<Key> {
    let nodes = cache.nodes().map(|node| Key::Node(node.metadata.name.clone()));
    nodes.chain(cache.pods().map(|pod| Key::Pod(pod.metadata.key()))).collect()
}

pub(crate) const ROUTES: &[Route<NodeLifecycle>] = routes![
    Node => both(node_wakes),
    Lease => each(lease_wakes),
    Pod => each(|pod: &Pod, woken| woken.wake(Key::Pod(pod.metadata.key()))),
];

/// Renewals come every few seconds from every node; each wakes that node alone.
fn lease_wakes(lease: &Lease, woken: &mut Woken<'_>) {
    if lease.metadata.namespace == names::NODE_LEASES {
        woken.wake(Key::Node(lease.metadata.name.clone()));
    }
}

fn node_wakes(node: Sides<'_, Node>, woken: &mut Woken<'_>) {
    let Some(one) = node.iter().next() else { return };
    let name = one.metadata.name.as_str();
    let [before, after] = [node.before, node.after].map(|side| side.map(Bearing::of));
    if before != after {
        woken.wake(Key::Node(name.into()));
    }
    // Its pods may stay, must go, or have nobody any more who says that they ended.
    if before.map(|bearing| bearing.on_pods()) != after.map(|bearing| bearing.on_pods()) {
        let pods = woken.cache.pods_by_node(name).map(|pod| Key::Pod(pod.metadata.key()));
        woken.wake_all(pods);
    }
    // Those that lost their last company keep their pods, and those that got some do not.
    let ready = |node: Option<&Node>| node.is_some_and(Node::is_ready);
    if ready(node.before) != ready(node.after) {
        let others = woken.cache.nodes().filter(|other| other.metadata.name != name && !other.is_ready());
        let others: Vec<Key> = others.map(|other| Key::Node(other.metadata.name.clone())).collect();
        woken.wake_all(others);
    }
}

/// All that we read of a node.
#[derive(Clone, Copy, PartialEq)]
struct Bearing<'a> {
    uid: &'a str,
    conditions: &'a [Condition],
    ready: Option<&'a str>,
    taints: &'a [Taint],
}

impl<'a> Bearing<'a> {
    fn of(node: &'a Node) -> Bearing<'a> {
        let conditions = node.status.conditions.as_slice();
        let ready = conditions.iter().find(|condition| condition.r#type == "Ready");
        Bearing {
            uid: &node.metadata.uid,
            conditions,
            ready: ready.map(|ready| ready.status.as_str()),
            taints: &node.spec.taints,
        }
    }

    /// What its pods hear of.
    fn on_pods(self) -> (Option<&'a str>, &'a [Taint]) {
        (self.ready, self.taints)
    }
}
