//! Hands on the Kubernetes API: read, write and watch, over HTTPS or in process.
//!
//! This is the only crate that knows a Kubernetes client. It performs what rules decided and reports what happened in
//! their words ([`control::Outcome`]); it decides nothing. Every request is counted, so that the cost of a volume in
//! API calls can be read off.
//!
//! Owns: the connection, and who we are to the server: tokens, certificates and what plugins hand out are looked at again
//! while we run. Writes: what it is told, each time once. Only reads: kubeconfigs and the files they name.
//!
//! Laws: a request is made again only if the server has certainly not begun with it (401, 415, 429, or an HTTP/2 stream
//! that it says it has not looked at); what may have happened is *unknown*. Nothing secret is in an error or a log.
//!
//! Does not know: any rules, what objects mean, what time it is for others.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod beside;
mod connect;
mod count;
mod credential;
mod event;
mod failure;
mod gate;
mod lease;
mod note;
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
