//! The worlds that are explored.

use std::fmt;

use api::{Kind, ObjectRef, Patch, Value, Write, names};
use serde_json::json;

use control::Rules;

use crate::bounds::{Bounds, Budget};
use crate::cluster::Cluster;
use crate::explore::{Scenario, explore};
use crate::member::Seat;
use crate::report::Report;
use crate::truth::Truth;

pub mod attach;
pub mod copy;
pub mod growth;
pub mod life;
pub mod node;
pub mod protect;
pub mod provision;
pub mod reclaim;
pub mod register;
pub mod resize;
pub mod store;

/// The driver of all volumes.
const DRIVER: &str = "local.csi.longshore";

/// Every world there is, with the bounds of `make prove`: larger than those of the tests, which take seconds.
pub fn worlds() -> &'static [(Scenario, Bounds)] {
    const ALL: [(Scenario, Bounds); 34] = [
        (attach::SCENARIO, Bounds::of(Budget::troubled(2, 1, 0))),
        (attach::REPORTED, Bounds::of(Budget::troubled(2, 0, 1))),
        (attach::FORCED, Bounds::of(Budget::troubled(2, 0, 1))),
        (node::gates::controllers::SCENARIO, Bounds::of(Budget::troubled(2, 1, 0))),
        // Two moves and two delays: still going on after 300,000 states.
        (node::gates::controllers::LATE, Bounds::of(Budget::troubled(3, 0, 1))),
        (copy::SCENARIO, Bounds::of(Budget::troubled(1, 1, 1))),
        (copy::ON_CLAIM, Bounds::of(Budget::troubled(1, 1, 1))),
        // A move under a fault: still going on after 250,000 states and 108 seconds. A delay beside the fault ends.
        (life::ONE, Bounds::of(Budget::troubled(0, 1, 1))),
        (life::RUNNING, Bounds::of(Budget::troubled(2, 1, 0))),
        (life::PLACING, Bounds::of(Budget::troubled(2, 1, 1))),
        (node::SCENARIO, Bounds::of(Budget::troubled(1, 1, 0))),
        (node::ONE_POD, Bounds::of(Budget::troubled(1, 1, 0))),
        (node::BLOCK, Bounds::of(Budget::troubled(1, 1, 0))),
        (node::SECRET, Bounds::of(Budget::troubled(1, 1, 0))),
        // Two moves under a fault: still going on after 300,000 states and 3.2 GB.
        (node::INLINE, Bounds::of(Budget::troubled(1, 1, 1))),
        (node::TIDY, Bounds::of(Budget::calm(3))),
        (growth::SCENARIO, Bounds::of(Budget::troubled(2, 1, 0))),
        (growth::LEFT, Bounds::of(Budget::calm(3))),
        (node::UNREADABLE, Bounds::of(Budget::troubled(2, 1, 1))),
        // Two moves under a fault: no end in sight after 250,000 states in either, and at 2.8 GB in the first.
        (node::dead::SCENARIO, Bounds::of(Budget::calm(3))),
        (node::dead::BACK_AGAIN, Bounds::of(Budget::calm(3))),
        (node::evicted::SCENARIO, Bounds::of(Budget::troubled(2, 1, 0))),
        // Two moves under a fault are more than a machine holds; a move more is in the two worlds after it.
        (node::gates::SCENARIO, Bounds::of(Budget::troubled(1, 1, 1))),
        (node::gates::BY_PLUGIN, Bounds::of(Budget::troubled(2, 1, 1))),
        (node::gates::SWITCHED_EARLY, Bounds::of(Budget::troubled(2, 1, 1))),
        (node::lost::SCENARIO, Bounds::of(Budget::troubled(2, 2, 1))),
        (protect::SCENARIO, Bounds::of(Budget::troubled(3, 1, 2))),
        (provision::SCENARIO, Bounds::of(Budget::troubled(2, 1, 1))),
        (provision::ON_CLAIM, Bounds::of(Budget::troubled(2, 1, 1))),
        (reclaim::SCENARIO, Bounds::of(Budget::troubled(2, 1, 2))),
        (register::SCENARIO, Bounds::of(Budget::troubled(2, 1, 1))),
        (register::IN_USE, Bounds::of(Budget::troubled(2, 1, 1))),
        (resize::SCENARIO, Bounds::of(Budget::troubled(2, 1, 1))),
        (store::SCENARIO, Bounds::of(Budget::troubled(2, 1, 1))),
    ];
    &ALL
}

/// The worlds that are too large to be explored and are only walked through.
pub fn walked() -> &'static [Scenario] {
    &[life::SCENARIO]
}

/// There is no world of this name, or none that can be explored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWorld(pub String);

impl fmt::Display for UnknownWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if walked().iter().any(|scenario| scenario.name == self.0) {
            return write!(f, "{} is too large to be enumerated; --walks 1000 walks through it", self.0);
        }
        let names: Vec<_> = worlds().iter().map(|(scenario, _)| scenario.name).collect();
        write!(f, "there is no world called {}; choose one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownWorld {}

/// Explores a world by name, within its own bounds unless others are given.
pub fn run(name: &str, bounds: Option<Bounds>) -> Result<Report, UnknownWorld> {
    let found = worlds().iter().find(|(scenario, _)| scenario.name == name);
    let (scenario, usual) = found.ok_or_else(|| UnknownWorld(name.into()))?;
    Ok(explore(scenario, &bounds.unwrap_or(*usual)))
}

/// A world to walk through, by name.
pub fn find(name: &str) -> Result<&'static Scenario, UnknownWorld> {
    let all = worlds().iter().map(|(scenario, _)| scenario).chain(walked());
    all.into_iter().find(|scenario| scenario.name == name).ok_or_else(|| UnknownWorld(name.into()))
}

impl<R: Rules> Seat<R> {
    /// For rules whose local facts are the same in every state.
    pub fn fixed(build: fn(&Truth, &str) -> R::Local) -> Seat<R> {
        Seat { build, refresh: |_, _, _| false, digest: |_, _| {} }
    }
}

/// Puts an object into a world that is being set up, status and all.
pub(crate) fn put(cluster: &mut Cluster, target: ObjectRef, mut body: Value) {
    let kind = target.kind;
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.name().into();
    body["metadata"]["name"] = target.key.name.clone().into();
    if kind.namespaced() {
        body["metadata"]["namespace"] = target.key.namespace.clone().into();
    }
    let status = body.get("status").cloned();
    let mut writes = vec![Write::Create { target: target.clone(), body }];
    if let Some(status) = status {
        let patch = Patch::merge(api::Precondition::default(), json!({ "status": status }));
        writes.push(Write::Patch { target, subresource: Some(api::Subresource::Status), patch });
    }
    for write in writes {
        if let Err(refusal) = cluster.write("setup", &write) {
            unreachable!("the world is set up with objects the API takes: {refusal}");
        }
    }
}

/// How a node's agent says which incarnation it is in.
pub(crate) fn incarnation_write(node: &str, incarnation: u64) -> Write {
    Write::Patch {
        target: ObjectRef::cluster(Kind::Node, node),
        subresource: None,
        patch: Patch::merge(
            api::Precondition::default(),
            json!({ "metadata": { "annotations": { names::AGENT_INCARNATION: incarnation.to_string() } } }),
        ),
    }
}
