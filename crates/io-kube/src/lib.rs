//! A client of the Kubernetes API: reads, writes and watches, over HTTPS or in process.
//!
//! This is the only crate that knows a Kubernetes client library. It performs what rules decide and reports what happened
//! in their words ([`control::Outcome`]); it decides nothing. It counts every request, so that the cost of a volume in API
//! calls can be read off.
//!
//! Owns: the connection and the client's credentials; it reloads tokens, certificates and the output of credential plugins
//! while it runs. Writes: what its callers ask for, each write once. Only reads: kubeconfigs and the files they name.
//!
//! Laws: a request is sent again only if the server has certainly not begun with it (401, 415, 429, an HTTP/2 stream that
//! the server refused, or a connection that ended before anything was sent). A request that may have been carried out is
//! *unknown*. An object that cannot be decoded never counts as absent. No error or log contains a secret.
//!
//! Does not know: any rules, what objects mean, what time it is for others.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aimd;
mod batch;
mod concurrency;
mod connect;
mod counts;
mod credential;
mod encode;
mod error;
mod event;
mod leader;
mod negotiation;
mod outcome;
mod past;
mod path;
mod plugin;
mod proxy;
mod request;
mod throttle;
mod transport;
mod watch;

pub use connect::Kube;
pub use counts::RequestCounts;
pub use credential::{CredentialError, TokenProblem};
pub use error::{ConfigError, ConnectError, DecodeError, RequestError, TransportError};
pub use leader::{LeaderElector, LeaderStatus};
pub use plugin::{OutputProblem, PluginError};
pub use proxy::ProxyError;
pub use watch::{Scope, WatchEvent};
