//! Hands on the Kubernetes API: read, write and watch, over HTTPS or in process.
//!
//! This is the only crate that knows a Kubernetes client. It performs what rules decided and reports what happened in
//! their words ([`control::Outcome`]); it decides nothing. Every request is counted, so that the cost of a volume in
//! API calls can be read off.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod connect;
mod count;
mod credential;
mod failure;
mod gate;
mod lease;
mod path;
mod plugin;
mod proxy;
mod request;
mod stack;
mod throttle;
mod watch;

pub use connect::{ConnectError, Kube};
pub use count::Counts;
pub use lease::{Campaign, Standing};
pub use watch::{Feed, Scope};
