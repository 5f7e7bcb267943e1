//! A kit for CSI drivers: everything but what the driver does.
//!
//! An author writes one type, gives its name and capabilities ([`Identity`]), and implements the RPCs it serves
//! ([`Controller`], [`Node`], [`GroupController`]; the kit answers all others with UNIMPLEMENTED). Each RPC has an error type
//! with the errors that CSI names for it. Then [`serve`] does the rest:
//!
//! - It refuses requests that are incomplete, malformed or beyond the limits of CSI before the author sees them.
//! - It never runs two calls that change the same volume or snapshot side by side: the second is answered with ABORTED.
//! - It runs a call to its end even if the caller hangs up, and [`Serving::finished`] waits for the end.
//! - With a [`Ledger`] it answers a repeated CreateVolume as it answered the first, one that differs with ALREADY_EXISTS, and
//!   a DeleteVolume of an unknown volume with success. What it acknowledged survives a power loss.
//! - It answers the capability RPCs from the same set by which it decides which RPCs it serves.
//! - Until the author calls [`Serving::ready`], Probe says that the driver is not ready, and RPCs about volumes are answered
//!   with UNAVAILABLE.
//! - It keeps the socket private, removes secrets from errors, and tells the author who calls ([`caller`]).
//!
//! `examples/tiny-driver` is a whole driver.

mod door;
mod id;
mod ledger;
mod required;
mod serve;
mod services;
mod shelf;

pub use id::{id_of, is_id};
pub use ledger::Ledger;
pub use serve::{Serving, serve, signalled};
pub use services::controller::*;
pub use services::group_controller::*;
pub use services::node::*;
pub use services::{Identity, Plugin, ProbeError};

pub use crate::server::{Caller, caller};
pub use csi::v1;
pub use csi::{Capabilities, ControllerRpc, DriverCapability, GroupRpc, NodeRpc, PluginService, VolumeExpansion};
