//! Everything to write a CSI driver with, but what the driver does.
//!
//! An author writes one type, says who it is and what it offers ([`Identity`]), and writes the calls it offers
//! ([`Controller`], [`Node`], [`GroupController`]; all others are answered with UNIMPLEMENTED). Each call has an error type
//! of its own with the reasons CSI names for it. Then [`serve`] does the rest:
//!
//! - requests are complete, well formed and within the limits of CSI before the author sees them;
//! - two calls that change the same volume or snapshot never run side by side: the second is answered with ABORTED;
//! - a call that has begun runs to its end, also when its caller hangs up, and [`Serving::finished`] waits for it;
//! - with a [`Ledger`], a repeated CreateVolume is answered as the first was, one that differs with ALREADY_EXISTS, and
//!   deleting what is not known succeeds; what was acknowledged outlives a power loss;
//! - answers about capabilities come from the same list that decides which calls are answered;
//! - until the author says that the driver is ready, Probe says that it is not, and nothing else is answered;
//! - the socket is private, values of secrets are covered in errors, and [`caller`] says who calls.
//!
//! `examples/tiny-driver` is a whole driver.

mod door;
mod errors;
mod id;
mod ledger;
mod required;
mod serve;
mod services;
mod shelf;

pub use errors::*;
pub use id::{id_of, is_id};
pub use ledger::Ledger;
pub use serve::{Serving, serve, signalled};
pub use services::{Controller, GroupController, Identity, Node, Plugin};

pub use crate::ability::{Ability, ControllerRpc, Expansion, GroupRpc, NodeRpc, PluginService};
pub use crate::server::{Caller, caller};
pub use csi::v1;
