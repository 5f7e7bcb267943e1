//! Driver sockets on this node, and the objects that say which drivers the node has.
//!
//! Owns: this node's Node object as far as the agent introduces itself (life, hostname label, Ready), its CSINode
//! object, the driver entries in it, the node id annotation and topology labels; and the conversation on every
//! registration socket: GetInfo, NodeGetInfo, NodeGetCapabilities, NotifyRegistrationStatus.
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
//! - every write to the Node carries the version it was decided on, so that a write of an earlier life fails.
//!
//! Does not know: volumes, pods, mounts, or how a socket is found; whoever runs the rules tells it ([`Local::seen`],
//! [`Local::gone`]).
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod act;
mod decide;
mod index;
mod judge;
mod local;
#[cfg(test)]
mod tests;
mod view;

pub use act::{Action, Memory};
pub use index::{Key, Registrar};
pub use local::{Driver, Local, Place, Plugin, Progress, Socket};
pub use view::{CsiNodeSide, NodeSide, SelfView, SocketView, View};
