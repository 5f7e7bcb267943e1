use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{Condition, Lease, ObjectKey, Seen, Taint, Time, Toleration};

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A pod: whether it may stay where it is. It comes first, so that `explain` tells of a pod what is its own.
    Pod(ObjectKey),
    /// The node of this name: whether it lives, and which taints it has.
    Node(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Node(name) => write!(f, "node {name}"),
            Key::Pod(key) => write!(f, "pod {key}"),
        }
    }
}

/// All that a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// There is no such node or pod.
    Gone(Key),
    Node(NodeLife),
    Pod(PodStay),
}

/// A node and its signs of life, as the cache has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLife {
    pub node: Seen,
    pub lease: Option<Arc<Lease>>,
    pub conditions: Vec<Condition>,
    pub taints: Vec<Taint>,
    /// Another node is ready.
    pub company: bool,
}

/// What a node's condition Ready says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The node has no such condition.
    Untold,
    Ready,
    /// The node itself says no, since this moment by its own clock.
    NotReady(Option<u64>),
    /// It is not heard of, says this controller or another one.
    Unknown,
}

/// A pod and its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStay {
    pub pod: Seen,
    pub node: PodNode,
    /// It has ended.
    pub over: bool,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// It asks for no time to end, so that its object would be gone before anybody has ended it.
    pub hasty: bool,
    pub tolerations: Vec<Toleration>,
}

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodNode {
    /// It was not placed yet.
    None,
    /// On a node of this name, which is not in the cache.
    Missing(String),
    There {
        name: String,
        ready: bool,
        /// Its condition Ready is Unknown.
        unheard: bool,
        /// Somebody has said that it is shut down.
        out_of_service: bool,
        /// Those that end pods.
        taints: Vec<Taint>,
    },
}

impl NodeLife {
    /// What its condition Ready says.
    pub fn readiness(&self) -> Readiness {
        let Some(ready) = ready(&self.conditions) else { return Readiness::Untold };
        match ready.status.as_str() {
            "True" => Readiness::Ready,
            "Unknown" => Readiness::Unknown,
            _false => Readiness::NotReady(ready.last_transition_time.as_ref().and_then(Time::unix_millis)),
        }
    }

    /// When it last spoke for itself, by its own clock.
    pub fn heartbeat(&self) -> Option<Time> {
        ready(&self.conditions)?.last_heartbeat_time.clone()
    }
}

fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.r#type == "Ready")
}
