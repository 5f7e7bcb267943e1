//! Where a volume should be reachable from (sidecars 2.7).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Node, ObjectKey, StorageClass, TopologySelectorTerm, names};
use control::Cache;
use csi::v1;
use serde::{Deserialize, Serialize};

use crate::{Local, Obstacle, Reason, Unfit};

/// Labels and their values: one place, or a set of places.
pub type Segments = BTreeMap<String, String>;

/// What is asked of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// Places of which the volume must be reachable from one: sorted, none twice.
    pub requisite: Vec<Segments>,
    /// Which of them is preferred most; the others follow in a circle.
    pub first: usize,
}

impl Requirement {
    /// As the driver gets it.
    pub fn to_csi(&self) -> v1::TopologyRequirement {
        let place = |segments: &Segments| v1::Topology { segments: segments.clone() };
        let (before, after) = self.requisite.split_at(self.first.min(self.requisite.len()));
        v1::TopologyRequirement {
            requisite: self.requisite.iter().map(place).collect(),
            preferred: after.iter().chain(before).map(place).collect(),
        }
    }
}

/// What is known of the nodes: keys a driver uses on a node, and the node's labels.
pub(crate) trait Places {
    /// The driver's topology keys on a node; `None` if nothing is known of drivers on it.
    fn keys_on(&self, node: &str) -> Option<Vec<String>>;
    /// The keys of some node on which the driver has any.
    fn any_keys(&self) -> Option<Vec<String>>;
    /// A node's labels.
    fn labels(&self, node: &str) -> Option<Segments>;
    /// Shows the labels of every node.
    fn each_labels(&self, show: &mut dyn FnMut(&Segments));
}

/// The nodes of the cluster.
pub(crate) struct Cluster<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) driver: &'a str,
}

impl Cluster<'_> {
    pub(crate) fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.cache.node(&ObjectKey::cluster(name))
    }
}

impl Places for Cluster<'_> {
    fn keys_on(&self, node: &str) -> Option<Vec<String>> {
        let found = self.cache.csi_node(&ObjectKey::cluster(node))?;
        let entry = found.spec.drivers.iter().find(|entry| entry.name == self.driver);
        Some(entry.and_then(|entry| entry.topology_keys.clone()).unwrap_or_default())
    }

    /// Upstream takes any node; the first by name gives the same answer every time.
    fn any_keys(&self) -> Option<Vec<String>> {
        let mut found = self.cache.csi_nodes().filter_map(|node| self.keys_on(&node.metadata.name));
        found.find(|keys| !keys.is_empty())
    }

    fn labels(&self, node: &str) -> Option<Segments> {
        self.node(node).map(|node| node.metadata.labels.clone())
    }

    fn each_labels(&self, show: &mut dyn FnMut(&Segments)) {
        self.cache.nodes().for_each(|node| show(&node.metadata.labels));
    }
}

/// A provisioner that works for one node knows that node alone.
impl Places for crate::OwnNode {
    fn keys_on(&self, node: &str) -> Option<Vec<String>> {
        (node == self.name).then(|| self.segments.keys().cloned().collect())
    }

    fn any_keys(&self) -> Option<Vec<String>> {
        (!self.segments.is_empty()).then(|| self.segments.keys().cloned().collect())
    }

    fn labels(&self, node: &str) -> Option<Segments> {
        (node == self.name).then(|| self.segments.clone())
    }

    fn each_labels(&self, show: &mut dyn FnMut(&Segments)) {
        show(&self.segments);
    }
}

/// The requirement for a claim of this name: `None` if the driver is to be asked for no place at all.
pub(crate) fn requirement(
    claim: &str,
    node: Option<&str>,
    class: &StorageClass,
    cache: &Cache,
    local: &Local,
) -> Result<Option<Requirement>, Unfit> {
    if !local.uses_topology() {
        return Ok(None);
    }
    let cluster = Cluster { cache, driver: &local.driver };
    let places: &dyn Places = match &local.settings.node {
        Some(own) => own,
        None => &cluster,
    };
    let allowed = allowed(&class.allowed_topologies);
    match node {
        Some(node) => for_node(node, class, &allowed, places, local),
        None => immediate(claim, class, &allowed, places, local),
    }
}

fn for_node(
    node: &str,
    class: &StorageClass,
    allowed: &BTreeSet<Ordered>,
    places: &dyn Places,
    local: &Local,
) -> Result<Option<Requirement>, Unfit> {
    let driver = &local.driver;
    let Some(keys) = places.keys_on(node) else {
        return Err(Unfit::Reschedule(format!("no driver is registered on node {node}")));
    };
    if keys.is_empty() {
        return Err(obstacle(Reason::NoTopologyKeys, format!("driver {driver} has no topology keys on node {node}")));
    }
    let Some(labels) = places.labels(node) else {
        return Err(obstacle(Reason::NodeMissing, format!("node {node}, selected for the claim, does not exist")));
    };
    let Some(own) = term(&keys, &labels) else {
        return Err(obstacle(
            Reason::LabelsMissing,
            format!("node {node} lacks a label driver {driver} needs: {keys:?}"),
        ));
    };
    let elsewhere = || obstacle(Reason::NodeNotAllowed, format!("node {node} is in no place the class allows"));
    if local.settings.strict_topology {
        let fits = allowed.is_empty() || allowed.iter().any(|place| is_part(&place.0, &own));
        let strict = Requirement { requisite: alloc::vec![own], first: 0 };
        return if fits { Ok(Some(strict)) } else { Err(elsewhere()) };
    }
    let requisite = match class.allowed_topologies.is_empty() {
        true => distinct(&keys, places),
        false => allowed.clone(),
    };
    if requisite.is_empty() {
        return Ok(None);
    }
    let first = requisite.iter().position(|place| is_part(&place.0, &own)).ok_or_else(elsewhere)?;
    Ok(Some(Requirement { requisite: requisite.into_iter().map(|place| place.0).collect(), first }))
}

fn immediate(
    claim: &str,
    class: &StorageClass,
    allowed: &BTreeSet<Ordered>,
    places: &dyn Places,
    local: &Local,
) -> Result<Option<Requirement>, Unfit> {
    let requisite: BTreeSet<Ordered> = match class.allowed_topologies.is_empty() {
        false => allowed.clone(),
        true if !local.settings.immediate_topology => return Ok(None),
        true => {
            let driver = &local.driver;
            let nowhere =
                || obstacle(Reason::NoTopology, format!("no node says where volumes of driver {driver} can be"));
            let keys = places.any_keys().ok_or_else(nowhere)?;
            let found = distinct(&keys, places);
            if found.is_empty() {
                return Err(nowhere());
            }
            found
        }
    };
    if requisite.is_empty() {
        return Ok(None);
    }
    let first = spread(claim, requisite.len());
    Ok(Some(Requirement { requisite: requisite.into_iter().map(|place| place.0).collect(), first }))
}

fn obstacle(code: Reason, text: String) -> Unfit {
    Unfit::Obstacle(Obstacle { code, text })
}

/// A place in Kubernetes' order: fewer labels first, then by key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ordered(pub(crate) Segments);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().cmp(other.0.iter()))
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The place a node is in, if it has every label.
pub(crate) fn term(keys: &[String], labels: &Segments) -> Option<Segments> {
    keys.iter().map(|key| labels.get(key).map(|value| (key.clone(), value.clone()))).collect()
}

/// The places of all nodes that have every label. There may be thousands of nodes and few places, so values are compared
/// before anything is copied.
fn distinct(keys: &[String], places: &dyn Places) -> BTreeSet<Ordered> {
    let mut found: BTreeSet<Ordered> = BTreeSet::new();
    let is_known = |found: &BTreeSet<Ordered>, labels: &Segments| found.iter().any(|place| is_part(&place.0, labels));
    places.each_labels(&mut |labels| {
        if !is_known(&found, labels) {
            found.extend(term(keys, labels).map(Ordered));
        }
    });
    found
}

/// Every label of the one is a label of the other.
fn is_part(place: &Segments, of: &Segments) -> bool {
    place.iter().all(|(key, value)| of.get(key) == Some(value))
}

/// Every place the class allows: within a term every expression may take each of its values.
pub(crate) fn allowed(terms: &[TopologySelectorTerm]) -> BTreeSet<Ordered> {
    terms.iter().flat_map(each).map(Ordered).collect()
}

fn each(term: &TopologySelectorTerm) -> Vec<Segments> {
    let mut places = Vec::new();
    for (index, expression) in term.match_label_expressions.iter().enumerate() {
        let with = |place: &Segments, value: &String| {
            let mut place = place.clone();
            place.insert(expression.key.clone(), value.clone());
            place
        };
        let before = if index == 0 { alloc::vec![Segments::new()] } else { places };
        places = before.iter().flat_map(|place| expression.values.iter().map(|value| with(place, value))).collect();
    }
    places
}

/// Which of so many places a claim prefers: replicas of one set are spread over them.
pub(crate) fn spread(claim: &str, places: usize) -> usize {
    let (hashed, index) = match claim.rsplit_once('-') {
        Some((rest, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            match number.parse::<u32>() {
                Ok(index) => (rest.rsplit_once('-').map_or(rest, |(_, set)| set), index),
                Err(_too_large) => (claim, 0),
            }
        }
        Some(_) | None => (claim, 0),
    };
    let at = u64::from(names::fnv1_32(hashed).wrapping_add(index)) % (places.max(1) as u64);
    usize::try_from(at).unwrap_or(0)
}
