//! Driver sockets on this node, and the objects that say which drivers the node has: both ends of registration.
//!
//! [`Registrar`] is the node's end, as kubelet has it. [`Helper`] is the end beside a driver, as the node-driver-registrar
//! sidecar has it, and [`Marker`] writes the node's id and topology for it where it is asked to write them itself.
//!
//! Owns: this node's Node object as far as the agent introduces itself (incarnation, hostname label, Ready), its
//! CSINode object, the driver entries in it, the node id annotation and topology labels; and the conversation on every
//! registration socket: GetInfo, GetCSIDriverInfo, NodeGetInfo, NodeGetCapabilities, NotifyRegistrationStatus.
//!
//! Writes: Node (create; metadata; the Ready condition), CSINode (create, delete when it belongs to another Node of the
//! same name, its driver list).
//!
//! Only reads: `volumesInUse` of the Node, to know whether a driver entry may be taken away.
//!
//! Laws (reliability 63 to 67):
//! - the entry of a driver says what that driver's last NodeGetInfo said;
//! - a driver's restart or its socket's loss takes nothing out of CSINode; a changed node id replaces the entry only
//!   when the node reports no volume of the driver in use;
//! - one socket per driver name; a second one is turned away;
//! - a name or node id that is too long or malformed is refused, never shortened;
//! - every write to the Node carries the version it was decided on, so that a write of an earlier incarnation fails.
//!
//! Does not know: volumes, pods, mounts, or how a socket is found; whoever runs the rules tells it ([`Local::seen`],
//! [`Local::gone`]).
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod decide;
mod helper;
mod index;
mod judge;
mod local;
mod marker;
mod reason;
#[cfg(test)]
mod tests;
mod view;

pub use action::Action;
pub use helper::{Announced, AtPath, Health, Heard, Helper, HelperFacts, HelperStep, SOCKET_MODE};
pub use index::{Key, Registrar};
pub use local::{Driver, Local, NodeInfo, Plugin, Registration, Socket};
pub use marker::{MarkedNode, Marker, MarkerAction, MarkerLocal, MarkerView};
pub use reason::Reason;
pub use view::{CsiNodeSide, NodeObject, SelfView, SocketView, View};
