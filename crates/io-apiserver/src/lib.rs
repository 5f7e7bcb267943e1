//! The embedded Kubernetes API server: HTTP, TLS, authentication and a durable log around the pure store.
//!
//! Owns: the data directory (one process at a time, one format), the database in it, the certificates, the published
//! state and the recent history watches are served from.
//!
//! Writes: the data directory, and kubeconfig files where it is told to.
//!
//! Only reads: what objects mean. Every rule about objects is in `rules-store`; this crate gives it the time, fresh
//! uids and names of callers, and carries its answers.
//!
//! Laws:
//! - an acknowledged write is on disk; nothing is shown to any reader or watcher before it is (reliability 84, 91);
//! - resource versions only rise, across restarts too (85);
//! - after a failed write to the disk the process ends; a full disk is answered and nothing is lost (101, 102);
//! - a watch tells every matching change once and in order, or says that it cannot (92 to 98);
//! - keys and kubeconfigs are never readable by others, not even for an instant (122).
//!
//! Who may do what is read from the roles and bindings in the store, for everybody but the administrator's group; service
//! accounts prove who they are by tokens this server signs.
//!
//! Does not know: controllers, CSI, containers (a [`LogSource`] reads their logs, an [`ExecSource`] runs commands in
//! them). Protobuf is read, for the kinds that kubectl sends in it, and never written.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod auth;
mod directory;
mod durable;
mod error;
mod exec;
mod files;
mod http_api;
mod hub;
mod kubeconfig;
mod limits;
mod logs;
mod pki;
mod refusal;
mod reserve;
mod snapshots;
mod stall;
mod start;
mod strangers;
mod tls;
mod token;
mod view;
mod watch;
mod writer;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use rules_store::Tolerance;
use tokio::net::TcpListener;

pub use auth::{Identity, MASTERS};
pub use directory::FORMAT;
pub use error::Error;
pub use exec::{ExecError, ExecRequest, ExecSession, ExecSource, OpeningExec};
pub use limits::CallerLimits;
pub use logs::{LogError, LogRequest, LogSource, LogStream, OpeningLog};

/// How to open a server.
#[derive(Clone, Default)]
pub struct Config {
    /// Where everything is kept; created if it is missing.
    pub data_dir: PathBuf,
    /// Names and addresses the serving certificate is also good for, besides localhost.
    pub extra_names: Vec<String>,
    /// The most the database may grow to; writes beyond are refused as if the disk were full.
    pub max_database_bytes: Option<u64>,
    /// Who reads the logs of containers; without one, there are none.
    pub logs: Option<Arc<dyn LogSource>>,
    /// Who runs commands in containers; without one, none are run.
    pub exec: Option<Arc<dyn ExecSource>>,
    /// Routes of the binary, served beside the API to callers who may do everything.
    pub extra: Router,
    /// What callers may take of time and connections.
    pub limits: CallerLimits,
    /// The file in which each request is told; without one, none is.
    pub audit_log: Option<PathBuf>,
    /// For how long pods that say nothing about it stay on a node that is not ready, or not heard of.
    pub tolerance: Tolerance,
}

/// What all requests share.
pub(crate) struct Core {
    pub hub: Arc<hub::Hub>,
    pub writer: writer::Writer,
    pub snapshots: snapshots::Snapshots,
    pub signer: token::Signer,
    pub logs: Option<Arc<dyn LogSource>>,
    pub exec: Option<Arc<dyn ExecSource>>,
    pub limits: CallerLimits,
    pub audit: Option<audit::AuditLog>,
}

/// An open server. Clones are handles to the same one; the last handle dropped closes it.
#[derive(Clone)]
pub struct ApiServer {
    core: Arc<Core>,
    pki: Arc<pki::Pki>,
    tls: Arc<tls::Tls>,
    router: Router,
}

impl ApiServer {
    /// Opens or creates the data directory and loads everything in it. Blocks for as long as the disk takes.
    pub fn open(config: Config) -> Result<ApiServer, Error> {
        start::open(config)
    }

    /// The service for parts of this process, which are trusted to be who they say.
    ///
    /// A Kubernetes client takes it as it is, in place of a connection.
    pub fn service_as(&self, user: &str) -> Router {
        self.service_for(Identity::trusted(user))
    }

    /// The service as a caller with this identity sees it.
    pub fn service_for(&self, identity: Identity) -> Router {
        self.router.clone().layer(axum::Extension(identity))
    }

    /// Serves HTTPS until `shutdown` is done; open requests then have a few seconds to end.
    pub fn serve_tls(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = ()> + Send {
        tls::serve(self.tls.clone(), self.core.limits, listener, self.router.clone(), shutdown)
    }

    /// The administrator's kubeconfig for the server at this URL. Holds a private key.
    pub fn kubeconfig(&self, url: &str) -> String {
        kubeconfig::render(&self.pki, url)
    }

    /// Writes the administrator's kubeconfig for this port on this machine, readable by its owner only.
    pub fn write_kubeconfig(&self, path: &Path, port: u16) -> Result<(), Error> {
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            files::private_directory(parent)?;
        }
        files::write_private(path, self.kubeconfig(&format!("https://127.0.0.1:{port}")).as_bytes())
    }

    /// The revision of the last published change.
    pub fn revision(&self) -> u64 {
        self.core.hub.read(rules_store::Store::revision)
    }

    /// Finishes what was sent, tidies the log and frees the data directory. Later writes get 503.
    pub fn close(&self) {
        self.core.writer.stop();
    }
}
