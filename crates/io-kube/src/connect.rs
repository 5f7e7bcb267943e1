use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::Counts;

/// A connection to an API server.
#[derive(Clone)]
pub struct Kube {
    pub(crate) client: kube::Client,
    pub(crate) counts: Arc<Counts>,
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

    /// Connects as the environment says: `KUBECONFIG`, the usual file, or the service account of a pod.
    pub async fn from_environment() -> Result<Kube, ConnectError> {
        let config = kube::Config::infer().await.map_err(|error| ConnectError::Nowhere(chain(&error)))?;
        Kube::from_config(config).map_err(ConnectError::Nowhere)
    }

    fn from_config(mut config: kube::Config) -> Result<Kube, String> {
        // A watch is quiet for as long as nothing happens.
        config.read_timeout = None;
        let client = kube::Client::try_from(config).map_err(|error| chain(&error))?;
        Ok(Kube { client, counts: Arc::default() })
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
        Kube { client: kube::Client::new(service, "default"), counts: Arc::default() }
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
