//! What pods ask for, against what a node has.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Container, Node, Pod, Quantity};

/// Amounts by resource: processors in thousandths, all else in whole units.
type Amounts = BTreeMap<String, i64>;

/// What a pod needs at any moment of its life: its containers and sidecars together, or the greediest of its init
/// containers beside the sidecars that were started before it.
pub(super) fn requests(pod: &Pod) -> Amounts {
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in &pod.spec.init_containers {
        let asked = asked(container);
        if container.is_sidecar() {
            add(&mut sidecars, &asked);
            raise(&mut starting, &sidecars);
        } else {
            let mut both = sidecars.clone();
            add(&mut both, &asked);
            raise(&mut starting, &both);
        }
    }
    let mut needs = sidecars;
    pod.spec.containers.iter().for_each(|container| add(&mut needs, &asked(container)));
    raise(&mut needs, &starting);
    needs
}

/// Resources of which the node has less left than needed. A node that says nothing about itself is not judged.
pub(super) fn lacks(needs: &Amounts, node: &Node, pods: &[Arc<Pod>]) -> Vec<String> {
    let allocatable = &node.status.allocatable;
    if allocatable.is_empty() {
        return Vec::new();
    }
    let mut used = Amounts::new();
    pods.iter().for_each(|pod| add(&mut used, &requests(pod)));
    used.insert("pods".into(), i64::try_from(pods.len()).unwrap_or(i64::MAX));
    let place = BTreeMap::from([("pods".into(), 1)]);
    let short = |(resource, needed): &(&String, &i64)| {
        let has = allocatable.get(*resource).map_or(0, |quantity| amount(resource, quantity));
        **needed > 0 && has.saturating_sub(used.get(*resource).copied().unwrap_or(0)) < **needed
    };
    place.iter().chain(needs).filter(short).map(|(resource, _)| resource.clone()).collect()
}

fn asked(container: &Container) -> Amounts {
    let requests = container.resources.requests.iter();
    requests.map(|(resource, quantity)| (resource.clone(), amount(resource, quantity))).collect()
}

/// A quantity that cannot be read, which the API server refuses, counts for nothing.
fn amount(resource: &str, quantity: &Quantity) -> i64 {
    if resource == "cpu" { quantity.millis() } else { quantity.bytes() }.unwrap_or(0)
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let entry = sum.entry(resource.clone()).or_default();
        *entry = entry.saturating_add(*amount);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (resource, amount) in least {
        let entry = to.entry(resource.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}
