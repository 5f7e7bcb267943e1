use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::Semaphore;

use crate::Counts;
use crate::gate::Gate;
use crate::note::Desk;
use crate::stack;
use crate::throttle::Throttle;

/// A connection to an API server.
#[derive(Clone)]
pub struct Kube {
    pub(crate) client: kube::Client,
    pub(crate) counts: Arc<Counts>,
    pub(crate) throttle: Option<Arc<Throttle>>,
    pub(crate) gate: Option<Arc<Gate>>,
    /// Where notes wait to be carried together.
    pub(crate) desk: Arc<Desk>,
    /// Whose turn it is to read a long list.
    pub(crate) lists: Arc<Semaphore>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {path}: {reason}; check the file or name another with --kubeconfig")]
    Kubeconfig {
        /// Where it was looked for.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No kubeconfig and not inside a cluster.
    #[error("found no way to reach a cluster: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    Nowhere(String),
}

impl Kube {
    /// Connects as a kubeconfig says.
    pub async fn from_kubeconfig(path: &Path) -> Result<Kube, ConnectError> {
        let fail = |reason: String| ConnectError::Kubeconfig { path: path.display().to_string(), reason };
        let kubeconfig = Kubeconfig::read_from(path).map_err(|error| fail(chain(&error)))?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| fail(chain(&error)))?;
        Kube::from_config(config).map_err(fail)
    }

    /// Connects to the API server at this URL, without credentials.
    pub fn from_url(url: &str) -> Result<Kube, ConnectError> {
        let wrong = |reason: String| ConnectError::Nowhere(format!("{url} is no URL of an API server: {reason}"));
        let url = url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
        Kube::from_config(kube::Config::new(url)).map_err(wrong)
    }

    /// Connects as the environment says: `KUBECONFIG`, the usual file, or the service account of a pod.
    pub async fn from_environment() -> Result<Kube, ConnectError> {
        let config = kube::Config::infer().await.map_err(|error| ConnectError::Nowhere(chain(&error)))?;
        Kube::from_config(config).map_err(ConnectError::Nowhere)
    }

    fn from_config(mut config: kube::Config) -> Result<Kube, String> {
        // A watch is quiet for as long as nothing happens.
        config.read_timeout = None;
        let client = stack::client(config).map_err(|error| chain(error.as_ref()))?;
        Ok(Kube::over(client))
    }

    /// Talks to a server in this process, without a socket.
    pub fn in_process<S, B>(service: S) -> Kube
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Kube::over(kube::Client::new(service, "default"))
    }

    fn over(client: kube::Client) -> Kube {
        let lists = Arc::new(Semaphore::new(1));
        Kube { client, counts: Arc::default(), throttle: None, gate: None, desk: Arc::default(), lists }
    }

    /// The same connection with a limit of its own: so many requests a second, and so many at once before that counts.
    /// Requests for a lease should not have to wait behind others: they go over a connection without a limit.
    #[must_use]
    pub fn throttled(&self, per_second: f64, burst: u32) -> Kube {
        Kube { throttle: Throttle::new(per_second, burst).map(Arc::new), ..self.clone() }
    }

    /// The same connection with as many requests at once as the server keeps up with. Requests for a lease should not have
    /// to wait behind others: they go over a connection without this.
    #[must_use]
    pub fn paced(&self) -> Kube {
        Kube { gate: Some(Arc::new(Gate::new())), ..self.clone() }
    }

    /// How many requests of each sort have been made.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

/// An error and its causes in one line: the outermost alone often says only that something failed.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}
