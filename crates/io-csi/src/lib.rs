//! gRPC over Unix sockets, client and server: [`CsiClient`] and [`Driver`] call CSI drivers; [`serve`] and [`kit`] serve one.
//!
//! | to | use |
//! |---|---|
//! | call a driver as CSI wants it called | [`Driver`]: capabilities, field limits, one mutating call per volume at a time |
//! | send a single request as it is | [`CsiClient::call`] |
//! | turn the result of a call into what rules decide by | [`outcome`] |
//! | write a driver | [`kit`] |
//! | serve any [`Answers`] at a socket | [`serve`] |
//!
//! # A driver of which nothing is known yet
//!
//! [`Driver::new`] takes a socket and sends nothing; there need be no server at the socket yet.
//!
//! ```no_run
//! # async fn example() -> Result<(), csi::Status> {
//! use std::{sync::Arc, time::Duration};
//!
//! let driver = io_csi::Driver::new(Arc::new(io_csi::CsiClient::new()), "/run/csi/csi.sock");
//! let capabilities = driver.capabilities(Duration::from_secs(10)).await?;
//! if capabilities.has(csi::ControllerRpc::PublishUnpublishVolume) { /* the driver needs an attacher */ }
//! # Ok(()) }
//! ```
//!
//! - The first [`Driver::capabilities`], [`Driver::profile`] or [`Driver::call`] asks for the driver's name and for its plugin,
//!   controller, group controller and node capabilities. The answers hold for one connection. When the connection ends
//!   because the driver was restarted, the next use asks again.
//! - While there is no server at the socket, calls fail with a local UNAVAILABLE, which [`csi::classify`] reads as *unknown*, and
//!   the next call connects again, at most a second late.
//! - A call whose capability the driver lacks is not sent and fails with a local UNIMPLEMENTED.
//! - [`Driver::follow`] reports every change: the profile when the driver comes, the error when it goes, the new profile when
//!   it is back.
//!
//! # What it owns, and what it does not know
//!
//! It owns the connections, the socket files it binds, and the answer to the question *who* made a status: one that arrived
//! in the driver's headers or trailers came from the driver; every other was made here and proves nothing. It writes nothing
//! but its sockets and, for drivers that keep one, the files of a [`kit::Ledger`].
//!
//! Laws: a call ends by its deadline (reliability 71). A status made here is never passed off as the driver's (70). A caller
//! that hangs up cancels no work that has begun (75). Nobody but the owner and root can connect to a socket (122). No secret
//! of a request appears in the message of its error (121). [`Driver`] and the [`kit`] pass on no field that is larger than
//! CSI allows, and run one mutating call at a time for a volume (68, 73, 81).
//!
//! It does not know when to retry, nor Kubernetes. It is the only crate that knows a gRPC library.
#![cfg_attr(test, allow(clippy::unwrap_used))]

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

pub use client::CsiClient;
pub use driver::{Driver, Profile};
pub use locks::{CallLocks, Held};
pub use observe::{Latencies, Latency, Observation, Observe};
pub use outcome::outcome;
pub use server::{Answers, Caller, Server, caller, serve};
