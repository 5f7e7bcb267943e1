//! gRPC over Unix sockets, both ends: calling drivers ([`CsiClient`], and [`Driver`] with care) and being one ([`serve`],
//! and [`kit`] with everything a driver's author should not have to write).
//!
//! It owns the connections, the socket files it binds, and the judgement of *who* made a status: one that arrived in
//! the driver's headers or trailers came from the driver, everything else was made here and proves nothing.
//! It writes nothing but its sockets and, for drivers that keep one, the files of a [`kit::Ledger`]; it reads no object.
//!
//! Laws: a call always ends by its deadline (reliability 71). A status made here is never passed off as the driver's
//! (70). A caller that hangs up cancels no work that has begun (75). Sockets are never wider than their owner (122).
//! No value of a secret leaves in a status, whoever wrote the text (121). No field travels that is larger than CSI allows,
//! and a volume has one mutating call at a time (68, 73, 81), where [`Driver`] calls or the [`kit`] answers.
//!
//! It does not know when to call again, or Kubernetes. It is the only crate that knows a gRPC library.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ability;
mod authority;
mod client;
mod driver;
pub mod kit;
mod limits;
mod line;
mod locks;
mod observe;
mod outcome;
mod reply;
mod secrets;
mod server;
mod socket;
mod wire;

pub use ability::{Ability, ControllerRpc, Expansion, GroupRpc, NodeRpc, PluginService};
pub use client::CsiClient;
pub use driver::{Driver, Profile};
pub use limits::Limits;
pub use locks::{Held, Locks};
pub use observe::{Latencies, Latency, Observation, Observe};
pub use outcome::outcome;
pub use server::{Answers, Caller, Server, caller, serve};
