use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::Semaphore;

use crate::gate::Gate;
use crate::note::Desk;
use crate::stack::Client;
use crate::throttle::Throttle;
use crate::{Counts, failure, proxy};

/// What a pod is told of its cluster, and where.
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
const SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A connection to an API server.
#[derive(Clone)]
pub struct Kube {
    pub(crate) client: Client,
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
    /// The server and we do not trust each other.
    #[error("{0}")]
    Distrust(String),
}

impl Kube {
    /// Connects as a kubeconfig says.
    pub async fn from_kubeconfig(path: &Path) -> Result<Kube, ConnectError> {
        let fail = |reason: String| ConnectError::Kubeconfig { path: path.display().to_string(), reason };
        let mut kubeconfig = Kubeconfig::read_from(path).map_err(|error| fail(sentence(&error)))?;
        for plugin in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()?.exec.as_mut()) {
            plugin.command = plugin.command.take().map(|command| beside(path, command));
        }
        Kube::from_parsed(kubeconfig).await.map_err(fail)
    }

    async fn from_parsed(kubeconfig: Kubeconfig) -> Result<Kube, String> {
        let proxy = proxy::named(&kubeconfig);
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| chain(&error))?;
        Kube::from_config(config, proxy.as_deref()).await
    }

    /// Connects to the API server at this URL, without credentials.
    pub async fn from_url(url: &str) -> Result<Kube, ConnectError> {
        let wrong = |reason: String| ConnectError::Nowhere(format!("{url} is no URL of an API server: {reason}"));
        let url = url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
        Kube::from_config(kube::Config::new(url), None).await.map_err(wrong)
    }

    /// Connects as the environment says: `KUBECONFIG`, the usual file, or the service account of a pod.
    pub async fn from_environment() -> Result<Kube, ConnectError> {
        let (host, port) = (std::env::var(SERVICE_HOST), std::env::var(SERVICE_PORT));
        match (Kubeconfig::read(), host, port) {
            (Ok(kubeconfig), _, _) => Kube::from_parsed(kubeconfig).await.map_err(ConnectError::Nowhere),
            (Err(_), Ok(host), Ok(port)) => Kube::in_cluster(&host, &port, Path::new(SERVICE_ACCOUNT)).await,
            (Err(error), _, _) => Err(ConnectError::Nowhere(format!("{}, and this is no pod", chain(&error)))),
        }
    }

    /// Connects as a pod does: to this host and port, with the token and the certificate authority in this folder. Both may
    /// be replaced at any time.
    pub async fn in_cluster(host: &str, port: &str, folder: &Path) -> Result<Kube, ConnectError> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let url = format!("https://{host}:{port}");
        let wrong =
            |reason: String| ConnectError::Nowhere(format!("the service account of this pod cannot be used: {reason}"));
        let mut config = kube::Config::new(url.parse().map_err(|error| wrong(format!("{url} is no URL: {error}")))?);
        let authority = folder.join("ca.crt");
        let trusted = CertificateDer::pem_file_iter(&authority).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let trusted = trusted.map_err(|error| wrong(format!("cannot read {}: {error}", authority.display())))?;
        config.root_cert = Some(trusted.iter().map(|certificate| certificate.to_vec()).collect());
        config.root_cert_file = Some(authority);
        config.auth_info.token_file = Some(folder.join("token").display().to_string());
        Kube::from_config(config, None).await.map_err(wrong)
    }

    async fn from_config(config: kube::Config, proxy: Option<&str>) -> Result<Kube, String> {
        let proxy = proxy::on_the_way(&config.cluster_url, proxy, |name| std::env::var(name).ok())?;
        let client = Client::to(config, proxy).await.map_err(|error| chain(error.as_ref()))?;
        Ok(Kube::over(client))
    }

    /// Asks the server something that everybody may, only to hear of what waiting does not cure: that one of us does not trust
    /// the other. A server that is away is no reason to give up.
    pub async fn greet(&self) -> Result<(), ConnectError> {
        let question = http::Request::get("/version").body(Body::empty());
        let Ok(question) = question else { return Ok(()) };
        match self.client.send(question).await {
            Ok(_) => Ok(()),
            Err(error) => failure::lasting(&error).map_or(Ok(()), |sentence| Err(ConnectError::Distrust(sentence))),
        }
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
        Kube::over(Client::new(service))
    }

    fn over(client: Client) -> Kube {
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

/// A program named by a path is looked for beside the kubeconfig, any other where programs are.
fn beside(kubeconfig: &Path, command: String) -> String {
    let relative = command.contains('/') && !command.starts_with('/');
    match kubeconfig.parent().filter(|_| relative) {
        Some(folder) => folder.join(command).display().to_string(),
        None => command,
    }
}

/// What is wrong with a file, without the drawing of the place that a reader of YAML adds.
fn sentence(error: &dyn std::error::Error) -> String {
    chain(error).lines().next().unwrap_or_default().into()
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
