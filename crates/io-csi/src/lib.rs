//! gRPC over Unix sockets, both ends: calling drivers ([`CsiClient`]) and being one ([`serve`]).
//!
//! It owns the connections, the socket files it binds, and the judgement of *who* made a status: one that arrived in
//! the driver's headers or trailers came from the driver, everything else was made here and proves nothing.
//! It writes nothing but its sockets; it reads no object, no clock of its own and no file.
//!
//! Laws: a call always ends by its deadline (reliability 71). A status made here is never passed off as the driver's
//! (70). A caller that hangs up cancels no work that has begun (75). Sockets are never wider than their owner (122).
//! No value of a secret leaves in a status, whoever wrote the text (121).
//!
//! It does not know what the calls mean, which of them may run side by side, when to call again, or Kubernetes. It is
//! the only crate that knows a gRPC library.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod authority;
mod client;
mod outcome;
mod reply;
mod secrets;
mod server;
mod socket;
mod wire;

pub use client::CsiClient;
pub use outcome::outcome;
pub use server::{Answers, Server, serve};
