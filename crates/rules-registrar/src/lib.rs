//! Driver sockets on this node, and the objects that say which drivers the node has: both ends of registration.
//!
//! [`Registrar`] is the node's end, as kubelet has it. [`Helper`] is the end beside a driver, as the node-driver-registrar
//! sidecar has it, and [`Marker`] writes the node's id and topology for it where it is asked to write them itself.
//! [`object_state`] says how nodes, drivers and what names them stand.
//!
//! Owns: this node's Node object as far as the agent introduces itself (incarnation, hostname label, Ready, what the
//! machine is), its Lease in `kube-node-lease`, its CSINode object, the driver entries in it, the node id annotation
//! and topology labels; and the conversation on every registration socket: GetInfo, GetCSIDriverInfo, NodeGetInfo,
//! NodeGetCapabilities, NotifyRegistrationStatus.
//!
//! Writes: Node (create; metadata; the Ready condition and what the machine is), Lease (create; renewal), CSINode
//! (create, delete when it belongs to another Node of the same name, its driver list, its list of migrated plugins).
//!
//! Only reads: `volumesInUse` of the Node, to know whether a driver entry may be taken away; CSIDriver and
//! VolumeAttachment, to know when a driver is asked again how many volumes the node takes.
//!
//! Laws (reliability 63 to 67):
//! - the entry of a driver says what that driver's last NodeGetInfo said, which for its limit may be a later one;
//! - a driver's restart takes nothing out of CSINode, not even by a write that was decided before it; what stays away
//!   for half a minute goes out of it, and a changed node id replaces the entry, only when the node reports no volume
//!   of the driver in use;
//! - one socket per driver name; a second one is turned away unless it speaks a higher version, and then waits until
//!   the first has heard that it is not registered any more; who cannot be registered keeps the name from nobody;
//! - a name or node id that is too long or malformed is refused, never shortened;
//! - every write to the Node carries the version it was decided on, so that a write of an earlier incarnation fails.
//!
//! Does not know: volumes, pods, mounts, or how a socket is found; whoever runs the rules tells it ([`Local::seen`],
//! [`Local::gone`]).
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod entry;
mod helper;
mod judge;
mod learn;
mod lease;
mod limit;
mod local;
mod marker;
mod migrated;
mod object_state;
mod reason;
#[cfg(test)]
mod tests;
mod view;
mod wakes;

pub use action::{Action, At};
pub use helper::{Announced, AtPath, Health, Heard, Helper, HelperFacts, HelperStep, SOCKET_MODE};
pub use limit::{FullAttachment, LimitAsked, LimitWishes};
pub use local::{Local, MachineFacts, NodeInfo, PluginAtSocket, RegisteredDriver, RegistrationProgress, Socket};
pub use marker::{MarkedNode, Marker, MarkerAction, MarkerLocal, MarkerView};
pub use object_state::{ObjectState, namespace_state, object_state};
pub use reason::Reason;
pub use view::{CsiNodeSide, LeaseView, NameRival, NodeObject, SelfView, SocketView, View};

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, ObjectRef};
use control::{BackOff, Cache, Decision, Narrate, Outcome, Route, Rules, Timestamp};

/// Where nodes have their Leases.
pub const NODE_LEASES: &str = api::names::NODE_LEASES;

/// The registrar's rules.
pub struct Registrar;

/// What one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The objects of the node of this name, which is this one.
    SelfNode(String),
    /// The Lease of the node of this name.
    Lease(String),
    /// The registration socket at this path, on the node of this name.
    Socket(String, String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::SelfNode(node) => write!(f, "node {node}"),
            Key::Lease(node) => write!(f, "node {node} lease"),
            Key::Socket(node, path) => write!(f, "node {node} socket {path}"),
        }
    }
}

impl Rules for Registrar {
    const NAME: &'static str = "registrar";
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(_: &Cache, local: &Local) -> Vec<Key> {
        wakes::keys(local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        build::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &View, (): &()) -> Decision<Action, Reason> {
        decide::decide(now, view)
    }

    fn remember(_now: Timestamp, (): (), _did: &Action, _got: &Outcome) {}

    /// What one socket answered decides whether another is a rival.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        learn::learn(local, did, got);
        Self::keys(cache, local)
    }

    /// A driver that listens again is heard within five seconds (reliability 66).
    fn back_off(_local: &Local) -> BackOff {
        BackOff { longest: 5_000, ..BackOff::default() }
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::SelfNode(node) | Key::Lease(node) | Key::Socket(node, _) => {
                ObjectRef::cluster(Kind::Node, node.to_string())
            }
        }
    }
}

impl Narrate for Registrar {}
