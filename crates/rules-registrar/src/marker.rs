//! The node's id and topology, written by the helper itself where nobody else does (S0-13 to S0-18).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Node, ObjectKey, ObjectRef, Patch, Precondition, Write};
use control::{
    Cache, Decision, Effect, Narrate, Outcome, Permission, Reply, Route, Rules, Timestamp, Why, Woken, routes,
};
use csi::{Call, Response, v1};
use serde_json::json;

use crate::Reason;
use crate::action::Action;
use crate::decide;
use crate::judge;
use crate::local::NodeInfo;

/// Writes the id and the topology of one node for one driver.
pub struct Marker;

/// The one thing it is about: a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkedNode(pub String);

impl fmt::Display for MarkedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// The node and the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MarkerLocal {
    /// The node's name.
    pub node: String,
    /// The driver's name.
    pub driver: String,
    /// What NodeGetInfo said, if it was answered since the driver started.
    pub place: Option<NodeInfo>,
}

/// What it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MarkerAction {
    /// Ask the driver for the node's id and topology.
    AskPlace {
        /// The driver that knows them.
        driver: String,
    },
    Describe {
        /// The node's name.
        name: String,
        /// The object as seen.
        only_if: Precondition,
        /// Annotations to set.
        annotations: BTreeMap<String, Option<String>>,
        /// Labels to set.
        labels: BTreeMap<String, String>,
    },
}

/// What a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerView {
    /// What is known outside the API.
    pub local: Box<MarkerLocal>,
    /// The Node object.
    pub node: Option<Arc<Node>>,
}

impl control::Action for MarkerAction {
    fn name(&self) -> &'static str {
        match self {
            MarkerAction::AskPlace { .. } => "AskPlace",
            MarkerAction::Describe { .. } => "DescribeNode",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            MarkerAction::AskPlace { driver } => {
                Effect::call_driver(driver.as_str(), Call::NodeGetInfo(v1::NodeGetInfoRequest {}))
            }
            MarkerAction::Describe { name, only_if, annotations, labels } => {
                let body = json!({ "metadata": { "annotations": annotations, "labels": labels } });
                let target = ObjectRef::cluster(Kind::Node, name.clone());
                let patch = Patch::merge(only_if.clone(), body);
                Effect::Write(Write::Patch { target, subresource: None, patch })
            }
        }
    }

    fn permissions() -> &'static [Permission] {
        const { &[Permission::new(Kind::Node, "", "patch")] }
    }
}

impl Rules for Marker {
    const NAME: &'static str = "marker";
    type Key = MarkedNode;
    type Local = MarkerLocal;
    type View = MarkerView;
    type Action = MarkerAction;
    type Reason = Reason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = routes![Node => each(node_wakes)];

    fn keys(_: &Cache, local: &MarkerLocal) -> Vec<MarkedNode> {
        alloc::vec![MarkedNode(local.node.clone())]
    }

    fn view(key: &MarkedNode, cache: &Cache, local: &MarkerLocal) -> MarkerView {
        MarkerView { local: Box::new(local.clone()), node: cache.node(&ObjectKey::cluster(key.0.clone())) }
    }

    fn decide(_now: Timestamp, view: &MarkerView, (): &()) -> Decision<MarkerAction, Reason> {
        next(view)
    }

    fn remember(_now: Timestamp, (): (), _did: &MarkerAction, _got: &Outcome) {}

    fn learn(local: &mut MarkerLocal, did: &MarkerAction, got: &Outcome, _cache: &Cache) -> Vec<MarkedNode> {
        if let (MarkerAction::AskPlace { .. }, Outcome::Done(Reply::Csi(Response::NodeGetInfo(info)))) = (did, got) {
            local.place = Some(NodeInfo::of(info));
        }
        Vec::new()
    }

    fn object(key: &MarkedNode) -> ObjectRef {
        ObjectRef::cluster(Kind::Node, key.0.clone())
    }
}

impl Narrate for Marker {}

fn node_wakes(node: &Node, woken: &mut Woken<'_, Marker>) {
    if node.metadata.name == woken.local.node {
        woken.wake(MarkedNode(woken.local.node.clone()));
    }
}

fn next(view: &MarkerView) -> Decision<MarkerAction, Reason> {
    let MarkerLocal { node: name, driver, place } = &*view.local;
    let Some(place) = place else {
        let why = Why::waiting(Reason::NodeIdUnknown, format!("asking driver {driver} for its id of node {name}"));
        return Decision::Do(MarkerAction::AskPlace { driver: driver.clone() }, why);
    };
    let Some(node) = &view.node else {
        return Decision::Rest(Why::waiting(Reason::NodeMissing, format!("waiting for node {name} to be in the API")));
    };
    let problem = judge::place(driver, place).or_else(|| judge::topology(driver, place));
    if let Some(problem) = problem.or_else(|| decide::collision(node, driver, place)) {
        return Decision::Rest(Why::waiting(Reason::DriverTurnedAway, problem));
    }
    match decide::describe(node, driver, place) {
        Some(Decision::Do(Action::DescribeNode { name, only_if, annotations, labels }, why)) => {
            Decision::Do(MarkerAction::Describe { name, only_if, annotations, labels }, why)
        }
        Some(other) => Decision::Rest(other.why().clone()),
        None => Decision::Rest(Why::settled(Reason::NodeMarked, format!("node {name} names driver {driver}"))),
    }
}
